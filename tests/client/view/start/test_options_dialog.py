"""The options that a driver declares are a form on the start page; the values reach the code that attaches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import FrontDoor, Launch
from gcspy_client.model.shell.processes import OfferedOption, row_of
from gcspy_client.settings import UserSettings
from gcspy_client.view.plain.widgets import PlainLineEdit
from gcspy_client.view.start.options_dialog import OptionsDialog
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.window import MainWindow
from tests.waiting import PATIENCE_MILLIS

MODE = OfferedOption("cpython", "mode", "passive", "How.", "Values.", ("passive", "stopped"))
DEPTH = OfferedOption("cpython", "depth", "3", "How deep.", "Values: 1 to 9.", ())


def test_only_what_differs_from_the_default_is_handed_over(qtbot: QtBot) -> None:
    dialog = OptionsDialog(7, [MODE, DEPTH])
    qtbot.addWidget(dialog)
    assert dialog.values() == ()
    mode, depth = dialog.fields
    assert isinstance(mode, Chooser)
    assert isinstance(depth, PlainLineEdit)
    mode.setCurrentIndex(1)
    assert dialog.values() == ("cpython.mode=stopped",)
    depth.setText(" 5 ")
    assert dialog.values() == ("cpython.mode=stopped", "cpython.depth=5")


@pytest.mark.parametrize(
    "options", ["no list", [7], [{"driver": "x"}], [{"driver": 1, "name": 2}], None]
)
def test_what_is_no_option_is_left_out(options: object) -> None:
    assert row_of({"pid": 1, "options": options}).options == ()


def test_the_start_page_asks_and_attaches_with_what_was_chosen(
    qtbot: QtBot, tmp_path: Path
) -> None:
    """With the list that `gcspy ps` really prints of a Python process."""
    asked: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    launch = Launch(command=(sys.executable, "-c", "input()"), line="{}", title="Attaching")

    def attach_with(pid: int, values: tuple[str, ...], drivers: tuple[str, ...]) -> Launch:
        asked.append((pid, values, drivers))
        return launch

    with subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as target:
        assert target.stdout is not None
        target.stdout.readline()
        front = FrontDoor(
            processes=(sys.executable, "-m", "gcspy", "ps", "--watch"),
            everything="--all",
            attach=lambda _pid: launch,
            attach_with=attach_with,
            play=lambda _files: launch,
        )
        window = MainWindow(Theme.DARK, UserSettings(tmp_path / "settings.ini"), front)
        qtbot.addWidget(window)
        try:
            with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
                window.show()
            processes = window.opener.page.processes
            processes.field.setText(str(target.pid))
            qtbot.waitUntil(
                lambda: (row := processes.chosen()) is not None and row.watchable,
                timeout=60_000,
            )
            row = processes.chosen()
            assert row is not None
            assert {one.name for one in row.options} == {
                "accesses",
                "ages",
                "count",
                "count-hot",
                "count-in",
                "inject",
                "mode",
            }
            processes.options.click()
            (dialog,) = window.opener.page.findChildren(OptionsDialog)
            mode = dialog.fields[[one.name for one in row.options].index("mode")]
            assert isinstance(mode, Chooser)
            mode.setCurrentIndex(mode.findText("stopped"))
            dialog.accept()
            assert asked == [(target.pid, ("cpython.mode=stopped",), ())]
        finally:
            window.close()
            target.kill()
