"""Texts of axes, of dialogs and of the start page can be read: measured on pictures, in all themes.

One window for all themes: to make one takes a second or more.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRect
from PySide6.QtWidgets import QApplication, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.processes import OfferedOption, ProcessRow
from gcspy_client.model.shell.recent import Recent
from gcspy_client.view.classroom.join_line import JoinSheet
from gcspy_client.view.history.canvas import LEFT
from gcspy_client.view.shell.guide_window import GuideWindow
from gcspy_client.view.shell.key_sheet import KeySheet
from gcspy_client.view.start.connect_dialog import ConnectDialog
from gcspy_client.view.start.options_dialog import OptionsDialog
from gcspy_client.view.time.save_dialog import SaveDialog, SaveOffer
from tests.client.conftest import MakeWindow
from tests.client.view.shell.test_picture_contrast import LEAST, contrast_in, hard_to_read, show
from tests.client.watching import Wait, Watched


def test_every_text_of_dialogs_can_be_read(make_window: MakeWindow, tmp_path: Path) -> None:
    window = make_window()
    show(window)
    found = {}
    for theme in Theme:  # it hides when another window is shown
        window.appearance.set_theme(theme)
        window.help.palette.open()
        texts, hard = hard_to_read(window.help.palette)
        assert texts
        if hard:
            found[theme, "CommandPalette"] = hard
    window.help.palette.hide()
    window.help.show_keys()
    window.help.show_guide()
    option = OfferedOption("cpython", "mode", "passive", "How.", "Values.", ("passive", "stopped"))
    offer = SaveOffer(save=lambda *_a, **_k: 1, whole=(1, 100), chosen=None, name="one")
    formulas = window.formulas.ask()
    assert formulas is not None
    tops: list[QWidget] = [
        window.preferences.open(),
        formulas,
        ConnectDialog("", window),
        OptionsDialog(7, [option], window),
        SaveDialog(offer, tmp_path, window),
        JoinSheet(["unix:/run/gcspy.sock"], window),
        *window.findChildren(KeySheet),
        *window.findChildren(GuideWindow),
    ]
    assert len(tops) == 8
    for theme in Theme:
        window.appearance.set_theme(theme)
        for top in tops:
            top.show()
            texts, hard = hard_to_read(top)
            assert texts, f"the texts of {type(top).__name__} are found"
            if hard:
                found[theme, type(top).__name__] = hard
    for top in tops:
        top.close()
    assert not found


def process(pid: int) -> ProcessRow:
    return ProcessRow(
        pid=pid, user="root", runtime="CPython 3.11.7", watchable=True, why_not="", rss_bytes=1 << 24,
        command="python -m http.server", options=(), drivers=("cpython",), looked=True,
    )  # fmt: skip


def test_every_text_of_the_start_page_can_be_read(make_window: MakeWindow, tmp_path: Path) -> None:
    window = make_window()
    window.opener.open_page()
    page = window.opener.page
    recording = tmp_path / "one.gcspy"
    recording.touch()
    page.show_recent([Recent(files=(recording,))])
    page.processes.show_rows([process(pid) for pid in (7, 8)])
    assert page.isVisible()
    found = {}
    for theme in Theme:
        window.appearance.set_theme(theme)
        texts, hard = hard_to_read(window)
        assert texts > 6
        if hard:
            found[theme] = hard
    assert not found


def test_axes_can_be_read(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.docks.show("history")
    window.docks.give_height("history", 260)
    watched.lay_out()
    canvas, axis = window.history.panel.canvas, window.history.panel.axis
    wait(lambda: canvas.drawn is not None and bool(canvas.drawn.codes.any()))
    plot, strip = window.details.graph.plot, window.time_panel.strip
    assert plot is not None
    found = {}
    for theme in Theme:
        window.appearance.set_theme(theme)
        window.settle()
        QApplication.processEvents()
        body = strip.body.toRect()
        parts: dict[str, tuple[QWidget, QRect]] = {
            "kinds": (strip, QRect(16, body.top(), body.left() - 24, body.height())),
            "times": (
                strip,
                QRect(
                    body.left(), body.bottom() + 4, body.width(), strip.height() - body.bottom() - 4
                ),
            ),
            "tiles of the history": (canvas, QRect(0, 0, LEFT - 8, canvas.height())),
            "events of the history": (axis, axis.rect()),
            "amounts": (plot, QRect(0, 0, 30, plot.height() - 4)),
            "seconds": (plot, QRect(40, plot.height() - 16, plot.width() - 44, 15)),
        }
        for name, (widget, place) in parts.items():
            assert widget.isVisible(), name
            ratio = contrast_in(widget.grab().toImage(), place)
            if ratio < LEAST:
                found[theme, name] = round(ratio, 1)
    assert not found
