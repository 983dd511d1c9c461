"""Streams that the user makes of others, and several streams in one view, in a window on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.address import parse_address
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from gcspy_client.model.palette import LOW, Theme
from gcspy_client.model.renderers.bivariate import STEPS, bivariate
from gcspy_client.view.spaces.renderer_canvas import RendererCanvas
from gcspy_client.view.spaces.tile_table import TableView
from gcspy_client.view.window import MainWindow
from gcspy_server.api import Server, UniformNames
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait

TILES = 60


class Two:
    """A heap with two streams."""

    def __init__(self, window: MainWindow, server: Server, wait: Wait) -> None:
        self.window, self.server, self._wait = window, server, wait
        self.heap = server.add_space("Heap", names=UniformNames(0x1000, 0x100, TILES), main=True)
        self.used = self.heap.add_stream("Used", dtype="u2", maximum=1000)
        self.size = self.heap.add_stream("Size", dtype="u2", maximum=2000)
        self.values = np.arange(TILES) * 10, np.full(TILES, 600)

    def happen(self) -> None:
        """An event."""
        before = self.window.session.events_seen
        assert self.server.should_transmit(0)
        self.heap.reset()
        self.used.data[:], self.size.data[:] = self.values
        self.used.set_unknown([5])
        self.server.finish(0)
        self._wait(lambda: self.window.session.events_seen > before)
        self.window.settle()


@pytest.fixture
def two(socket_directory: Path, make_window: MakeWindow, wait: Wait) -> Iterator[Two]:
    server = Server("Two streams", events=["Clock"])
    window = make_window()
    made = Two(window, server, wait)
    address = server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    window.link.open(parse_address(address))
    wait(lambda: window.link.status.phase.connected)
    made.happen()
    yield made
    window.close()
    server.close()


def rows_of(window: MainWindow) -> dict[str, list[str]]:
    model = window.details._streams
    return {
        model.cell(row, 0).text: [model.cell(row, column).text for column in (1, 2, 3)]
        for row in range(model.rowCount())
    }


def test_a_formula_is_written_shown_and_found_wherever_streams_are_chosen(two: Two) -> None:
    window = two.window
    dialog = window.formulas.ask()
    assert dialog is not None
    QTest.keyClicks(dialog.name, "Fill")
    QTest.keyClicks(dialog.formula, "Used / Size")
    dialog.percent.setChecked(True)
    QTest.mouseClick(dialog.add, Qt.MouseButton.LeftButton)
    window.settle()
    panel = window.spaces.panels[1]
    assert panel.source.schema.name == "Fill"
    chooser = window.details._chooser
    assert chooser.currentText() == "Fill"
    window.selection.select(1, 30)
    window.settle()
    assert rows_of(window)["Fill"][1] == "50.0 %"
    picture = panel.canvas.picture
    assert int(picture.codes[5]) == 4, "of a part that is unknown it is unknown"
    assert int(picture.codes[30]) == LOW + 249 * 300 // 600
    two.values = np.full(TILES, 150), two.values[1]
    two.happen()
    assert rows_of(window)["Fill"][1] == "25.0 %"
    window.views.choose_view("table")
    window.settle()
    view = panel.view
    assert isinstance(view, TableView)
    assert view.model.table.columns == ["Tile", "Used", "Size", "Fill"]
    assert view.model.table.text(30, 3) == "25.0 %"
    window.views.choose_view("hilbert")
    window.settle()
    canvas = panel.view
    assert isinstance(canvas, RendererCanvas)
    assert canvas.drawing.ask(lambda renderer: renderer.source.schema.name, wait_secs=5) == "Fill"
    window.views.choose_order(picture.stream_id, descending=True)
    assert "by Fill" in panel.toolbar.order.text()
    window.selection.next_stream(1)
    assert panel.source.schema.name == "Used"
    window.undo.undo()
    assert panel.source.schema.name == "Fill"


def test_what_is_wrong_is_told_at_its_place_and_cannot_be_added(two: Two) -> None:
    dialog = two.window.formulas.ask()
    assert dialog is not None
    for text, place, words in (
        ("Used / Sice", 7, "Sice"),
        ("Used +", 6, ""),
        ("sum(Used)", 0, "per tile"),
    ):
        dialog.formula.clear()
        QTest.keyClicks(dialog.formula, text)
        assert dialog.formula._wrong == place, text
        assert words in dialog.said.text()
        assert not dialog.add.isEnabled()
    dialog.formula.setText("Used / Size")
    for least, greatest, words in (
        ("x", "", "not a number"),
        ("2", "1", "smaller than its end"),
        ("nan", "1", "smaller than its end"),
    ):
        dialog.least.setText(least)
        dialog.greatest.setText(greatest)
        assert words in dialog.said.text()
        assert not dialog.add.isEnabled()
    dialog.least.setText("-1")
    assert dialog.add.isEnabled()
    dialog.add.click()
    made = two.window.session.looks.made_of(two.window.session.interpreter.spaces[1])[0]
    assert (made.least, made.greatest, made.ends) == (-1.0, 1.0, (-1.0, 1.0))
    dialog.formula.clear()
    dialog.formula.setFocus()
    QTest.keyClicks(dialog.formula, "Us")
    assert "Used" in dialog.formula.offered()


def test_a_formula_is_changed_and_removed(two: Two) -> None:
    window = two.window
    space = window.session.interpreter.spaces[1]
    made = window.formulas.add(space, "Half", "Used / 2")
    other = window.formulas.add(space, "Twice", "Used * 2")
    assert (made.schema.id, other.schema.id) == (-1, -2)
    dialog = window.formulas.ask()
    assert dialog is not None
    dialog.listed.setCurrentRow(0)
    assert dialog.formula.text() == "Used / 2"
    dialog.formula.setText("Used / 4")
    dialog.add.click()
    assert window.session.looks.made_of(space)[0].text(space, 40) == "100"
    dialog.listed.setCurrentRow(1)
    dialog.remove.click()
    assert [one.schema.name for one in window.session.looks.made_of(space)] == ["Half"]
    window.settle()
    assert (
        window.spaces.panels[1].source.schema.id >= 0
        or window.spaces.panels[1].source.schema.name == "Half"
    )


def test_formulas_are_remembered_for_spaces_of_the_name(
    two: Two, tmp_path: Path, make_window: MakeWindow, wait: Wait, socket_directory: Path
) -> None:
    settings = two.window.settings
    space = two.window.session.interpreter.spaces[1]
    two.window.formulas.add(space, "Half", "Used / 2", ends=(0, 800))
    two.window.formulas.add(space, "Fill", "Used / Size", percent=True)
    again = MainWindow(Theme.DARK, settings)
    try:
        again.link.open(parse_address(f"unix:{socket_directory}/a.sock"))
        wait(lambda: again.link.status.phase.connected)
        two.happen()
        wait(lambda: again.session.events_seen > 0)
        made = again.session.looks.made_of(again.session.interpreter.spaces[1])
        assert [(one.schema.name, one.formula, one.percent, one.ends) for one in made] == [
            ("Half", "Used / 2", False, (0, 800)),
            ("Fill", "Used / Size", True, (0, 1)),
        ]
    finally:
        again.close()
        again.deleteLater()


def test_two_streams_share_a_colour_with_a_legend_of_two_dimensions(two: Two) -> None:
    window = two.window
    second = next(
        stream
        for stream in window.session.interpreter.spaces[1].streams.values()
        if stream.schema.name == "Size"
    )
    window.views.choose_second(second.schema.id)
    window.settle()
    canvas = window.spaces.panels[1].view
    assert isinstance(canvas, RendererCanvas)
    drawn = canvas.drawing.drawn
    assert drawn is not None
    place = canvas.frames_of(59, wait_secs=5)[0].center()
    pixel = canvas.pixel_at(place)
    assert pixel is not None
    steps = [(590 * 249 // 1000) * STEPS // 250, (600 * 249 // 2000) * STEPS // 250]
    assert (
        drawn.pixels[pixel[1], pixel[0]]
        == bivariate(Theme.DARK).lut[LOW + steps[0] * STEPS + steps[1]]
    )
    legend = window.details._legend
    assert legend._square.isVisible()
    assert (legend._square._words[0], legend._square._words[3]) == ("Used", "Size")
    window.views.choose_view("tiles")
    window.settle()
    assert not legend._square.isVisible()


def test_streams_side_by_side_are_pointed_at_together(two: Two, wait: Wait) -> None:
    window = two.window
    window.views.choose_view("multiples")
    window.settle()
    canvas = window.spaces.panels[1].view
    assert isinstance(canvas, RendererCanvas)
    frames = canvas.frames_of(7, wait_secs=5)
    assert len(frames) == 2, "one in each panel"
    drawn = canvas.drawing.drawn
    assert drawn is not None
    assert [one.text for one in drawn.inscriptions] == ["Used", "Size"]
    for frame in frames:
        middle = frame.center()
        QTest.mouseClick(
            canvas,
            Qt.MouseButton.LeftButton,
            pos=QPointF(int(middle.x()), int(middle.y())).toPoint(),
        )
        wait(lambda: window.session.selected(1) == 7)
        window.selection.select(1, None)
    made = window.formulas.add(window.session.interpreter.spaces[1], "Fill", "Used / Size")
    window.selection.choose_stream(1, two.used.schema.id)
    window.views.toggle_part(made.schema.id)
    window.settle()
    canvas.settle()
    assert len(canvas.frames_of(7, wait_secs=5)) == 3
