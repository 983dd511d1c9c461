"""A space through each renderer, in a window on a real server: display, pointing, selecting and following."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QNativeGestureEvent, QPointingDevice, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import LOW, UNKNOWN, Theme, sequential
from gcspy_client.model.renderers.bivariate import bivariate
from gcspy_client.model.renderers.registry import load_renderer
from gcspy_client.model.renderers.renderer_worker import Drawn, SpaceRenderer
from gcspy_client.model.spaces.panel_heights import PanelForm
from gcspy_client.model.tile_source import StreamSource
from gcspy_client.model.view_states import OrderChoice, SpaceViewState
from gcspy_client.view.plain.widgets import PlainMenu
from gcspy_client.view.spaces.renderer_canvas import RendererCanvas
from gcspy_client.view.spaces.tile_table import TableView
from gcspy_client.view.spaces.views import TITLES, known_renderers
from gcspy_client.view.window import MainWindow
from gcspy_server.api import Server, UniformNames
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait, Watched
from tests.matrix import matrix

DRAWN = ["rows", "hilbert", "histogram", "distribution", "bivariate", "multiples", "curves"]


def canvas_of(window: MainWindow, space: int = 1) -> RendererCanvas:
    view = window.spaces.panels[space].view
    assert isinstance(view, RendererCanvas)
    return view


def drawn_by(canvas: RendererCanvas) -> Drawn:
    drawn = canvas.drawing.drawn
    assert drawn is not None
    return drawn


def points_at(canvas: RendererCanvas, tile: int) -> bool:
    return canvas.under_mouse == tile


def shown_as(watched: Watched, view: str) -> RendererCanvas:
    watched.window.views.choose_view(view)
    watched.window.settle()
    return canvas_of(watched.window)


def pointed(canvas: RendererCanvas, tile: int) -> QPoint:
    frames = canvas.frames_of(tile, wait_secs=5)
    assert frames, f"tile {tile} has no place"
    middle = frames[0].center()
    return QPoint(int(middle.x()), int(middle.y()))


def afresh(
    canvas: RendererCanvas, watched: Watched
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    """Return the picture that a new renderer draws."""
    space = watched.window.session.interpreter.spaces[1]
    name = watched.window.session.looks.of(1).view
    source = StreamSource(space.streams[0].schema)
    renderer = load_renderer(name)(space, source, sequential(Theme.DARK))
    renderer.resize(*drawn_by(canvas).asked, canvas.devicePixelRatioF())
    return renderer.pixels


@pytest.mark.parametrize("view", DRAWN)
def test_a_space_is_drawn_hovered_clicked_and_followed_through_each_renderer(
    watched: Watched, wait: Wait, view: str
) -> None:
    window = watched.window
    canvas = shown_as(watched, view)
    assert not window.spaces.panels[1].canvas.isVisible()
    drawn = drawn_by(canvas)
    assert np.array_equal(drawn.pixels, afresh(canvas, watched))

    for tile in (0, 17, 399):
        here = canvas.tile_at(QPointF(pointed(canvas, tile)), wait_secs=5)
        assert here is not None
        QTest.mouseMove(canvas, pointed(canvas, tile))
        wait(partial(points_at, canvas, here))
        if view not in ("distribution",):
            assert here == tile
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=pointed(canvas, 17))
    wait(lambda: window.session.selected(1) is not None)
    chosen = window.session.selected(1)
    assert chosen == canvas.selected
    assert chosen == canvas.tile_at(QPointF(pointed(canvas, 17)), wait_secs=5)

    watched.happen(2)
    drawn = drawn_by(canvas)
    event = window.session.interpreter.last_event
    assert event is not None
    assert drawn.sequence == event.sequence
    canvas.drawing.request(
        "anew", lambda renderer: renderer.draw()
    )  # takes back the marks of hidden changes
    window.settle()
    assert np.array_equal(drawn_by(canvas).pixels, afresh(canvas, watched))


@pytest.mark.parametrize("view", matrix(DRAWN, usual=["rows", "multiples"]))
def test_arrow_keys_move_the_selected_tile_in_each_renderer(
    watched: Watched, wait: Wait, view: str
) -> None:
    window = watched.window
    canvas = shown_as(watched, view)
    window.selection.select(1, 20)
    canvas.setFocus()
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    wait(lambda: canvas.selected != 20)
    there = canvas.selected
    assert there is not None
    if view in ("histogram", "rows", "bivariate", "multiples"):
        assert there == 21
    QTest.keyClick(canvas, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    wait(lambda: canvas.selected == 399)


@pytest.mark.parametrize("view", matrix(DRAWN, usual=["hilbert", "distribution"]))
def test_a_view_is_drawn_anew_when_the_window_is_resized(
    watched: Watched, wait: Wait, view: str
) -> None:
    canvas = shown_as(watched, view)
    for size in ((900, 600), (1500, 900)):
        watched.window.resize(*size)
        QApplication.processEvents()
        watched.window.settle()
        assert drawn_by(canvas).asked == canvas.viewport.asked
        assert np.array_equal(drawn_by(canvas).pixels, afresh(canvas, watched))
        tile = canvas.tile_at(QPointF(pointed(canvas, 30)), wait_secs=5)
        assert tile is not None
        assert tile >= 0


@pytest.mark.parametrize("view", matrix(DRAWN, usual=["histogram", "bivariate"]))
def test_one_can_look_closer_move_along_and_back_in_each_renderer(
    watched: Watched, wait: Wait, view: str
) -> None:
    canvas = shown_as(watched, view)
    place = QPointF(pointed(canvas, 200))
    under = canvas.tile_at(place, wait_secs=5)
    turn = QPoint(0, 120)
    for _ in range(6):
        wheel = QWheelEvent(
            place, canvas.mapToGlobal(place), QPoint(), turn, Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.ControlModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(canvas, wheel)
    watched.window.settle()
    assert canvas.viewport.zoom > 3
    assert canvas.tile_at(place, wait_secs=5) == under
    closer = canvas.viewport
    assert closer.left > 0
    middle = Qt.MouseButton.MiddleButton
    QTest.mousePress(canvas, middle, pos=QPoint(200, 100))
    QTest.mouseMove(canvas, QPoint(240, 120))
    QTest.mouseRelease(canvas, middle, pos=QPoint(240, 120))
    wait(lambda: canvas.viewport.left < closer.left)
    watched.happen(1)
    assert canvas.viewport.zoom == closer.zoom, "kept across events"
    watched.window.spaces_part.zoom(0)
    assert (canvas.viewport.zoom, canvas.viewport.left, canvas.viewport.top) == (1.0, 0.0, 0.0)
    watched.window.undo.undo()
    assert canvas.viewport.zoom == closer.zoom


def test_the_view_is_chosen_by_key_and_by_menu_and_is_the_spaces_own(
    watched: Watched, qtbot: QtBot, wait: Wait
) -> None:
    window = watched.window
    for number, view in enumerate(TITLES, 1):
        if view not in known_renderers():
            continue
        QTest.keyClick(window.spaces.panels[1].shown, Qt.Key(ord("0") + number))
        assert window.session.looks.of(1).view == view
        assert window.spaces.panels[1].toolbar.views.text() == TITLES[view]
        assert window.session.looks.of(2).view == "tiles"
    window.views.choose_view("hilbert", 2)
    assert window.spaces.panels[2].view is not None
    menu = PlainMenu()
    window.spaces.views_asked.emit(1, menu)
    entries = {action.text().split("\t")[0]: action for action in menu.actions()}
    assert entries["Curves"].isChecked()
    entries["Tiles"].trigger()
    assert window.spaces.panels[1].view is None
    assert window.spaces.panels[1].canvas.isVisible()
    window.undo.undo()
    assert window.session.looks.of(1).view == "curves"
    menu.deleteLater()


def test_tiles_are_as_if_they_had_never_been_hidden(watched: Watched, wait: Wait) -> None:
    window = watched.window
    shown_as(watched, "hilbert")
    window.selection.choose_stream(1, 0)
    watched.happen(2)
    window.views.choose_view("tiles")
    window.settle()
    assert watched.shows(window.session.number)


def test_tiles_in_the_order_of_a_stream_say_that_they_are_not_by_address(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    window.views.turn_order()
    window.settle()
    canvas, toolbar = canvas_of(window), window.spaces.panels[1].toolbar
    assert toolbar.order.text() == "by Used ↓, not by address"
    greatest = int(watched.program.values.argmax())

    def first() -> int | None:
        return canvas.tile_at(QPointF(2, 2), wait_secs=5)

    assert first() == greatest
    watched.happen(1)
    assert first() == greatest, "the order stays, whatever the values are now"
    window.views.order_again()
    window.settle()
    assert first() == int(watched.program.values.argmax())
    window.views.follow_order()
    assert toolbar.order.text().endswith("live")
    watched.happen(1)
    assert first() == int(watched.program.values.argmax())
    window.views.turn_order()
    window.settle()
    assert toolbar.order.text() == "by Used ↑, not by address · live"
    assert first() == int(watched.program.values.argmin())
    window.views.turn_order()
    assert window.spaces.panels[1].view is None
    assert not toolbar.order.isVisible()


def test_rows_have_the_width_that_the_user_chooses(watched: Watched) -> None:
    window = watched.window
    window.views.set_row_width(10)
    window.settle()
    canvas = canvas_of(window)
    one, below = canvas.frames_of(3, wait_secs=5)[0], canvas.frames_of(13, wait_secs=5)[0]
    assert (one.left(), one.bottom() < below.top()) == (below.left(), True)
    window.views.set_row_width(1)
    window.settle()
    canvas.settle()
    assert canvas.viewport.whole[1] >= 400, "a pixel for each of 400 rows, reached by scrolling"


@pytest.mark.parametrize("view", matrix(DRAWN, usual=["rows", "hilbert"]))
def test_unknown_values_are_hatched_and_an_empty_space_and_one_tile_are_drawn(
    socket_directory: Path, make_window: MakeWindow, wait: Wait, view: str
) -> None:
    server = Server("Small", events=["Clock"])
    space = server.add_space("Heap", names=UniformNames(0, 0x100, 3), main=True)
    used = space.add_stream("Used", dtype="u1", maximum=249)
    address = server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    window = make_window(address)
    wait(lambda: window.link.status.phase.connected)

    def event(values: list[int], unknown: Callable[[int], bool] = lambda tile: False) -> None:
        before = window.session.events_seen
        if len(values) != space.count:
            space.resize(UniformNames(0, 0x100, len(values)))
        assert server.should_transmit(0)
        space.reset()
        used.data[:] = values
        used.set_unknown(np.flatnonzero([unknown(tile) for tile in range(len(values))]))
        server.finish(0)
        wait(lambda: window.session.events_seen > before)
        window.settle()

    try:
        event([1, 2, 3], lambda tile: tile == 1)
        window.views.choose_view(view)
        window.settle()
        canvas = canvas_of(window)
        drawn = drawn_by(canvas)
        palette = sequential(Theme.DARK)
        colour = int(palette.lut[UNKNOWN])
        if view == "bivariate":
            colour = int(bivariate(Theme.DARK).lut[UNKNOWN])
        found = canvas.frames_of(1, wait_secs=5)
        assert found
        image = drawn.pixels
        ratio = canvas.devicePixelRatioF()
        box = found[0].translated(-canvas.area().topLeft())
        part = image[
            int(box.top() * ratio) : int(box.bottom() * ratio),
            int(box.left() * ratio) : int(box.right() * ratio),
        ]
        colours = set(part.reshape(-1).tolist())
        assert colour in colours
        assert int(palette.lut[0]) in colours, "hatched: stripes of the ground"
        assert int(palette.lut[LOW]) not in colours
        event([])
        event([7])
        assert canvas.drawing.failure is None
        assert canvas.tile_at(QPointF(pointed(canvas, 0)), wait_secs=5) == 0
    finally:
        window.close()
        server.close()


STRANGER = """
import numpy as np
from gcspy_client.model.renderers import Renderer

class Flag(Renderer):
    name, title, about = "flag", "Flag", "All of one colour."
    def draw(self):
        self.pixels = np.full((self.height, self.width), self.palette.lut[self.codes.max(initial=0)])
    def tiles_at(self, x, y):
        return np.arange(self.space.count)

class Torn(Renderer):
    name, title = "torn", "Torn"
    def draw(self):
        raise ZeroDivisionError("the sail is torn")
    def tiles_at(self, x, y):
        return np.arange(0)

class Lost(Flag):
    def tiles_at(self, x, y):
        raise KeyError("no compass")
"""


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Renderers of another package, as its installation would announce them."""
    (tmp_path / "gcspy_strangers.py").write_text(STRANGER)
    info = tmp_path / "gcspy_strangers-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gcspy-strangers\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[gcspy.renderers]\nflag = gcspy_strangers:Flag\ntorn = gcspy_strangers:Torn\n"
        "lost = gcspy_strangers:Lost\nmissing = gcspy_strangers_of_nowhere:Flag\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    known_renderers.cache_clear()
    yield
    known_renderers.cache_clear()


def test_a_renderer_of_another_package_is_offered_draws_and_is_pointed_at(
    strangers: None, watched: Watched, wait: Wait
) -> None:
    window = watched.window
    menu = PlainMenu()
    window.spaces.views_asked.emit(1, menu)
    next(action for action in menu.actions() if action.text() == "Flag").trigger()
    menu.deleteLater()
    window.settle()
    canvas = canvas_of(window)
    drawn = drawn_by(canvas)
    highest = LOW + int(watched.program.values.max()) * 249 // 255
    assert (drawn.pixels == sequential(Theme.DARK).lut[highest]).all()
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(50, 50))
    wait(lambda: window.session.selected(1) == 0)
    watched.happen(1)
    highest = LOW + int(watched.program.values.max()) * 249 // 255
    assert (drawn_by(canvas).pixels == sequential(Theme.DARK).lut[highest]).all()


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("torn", "ZeroDivisionError: the sail is torn"),
        ("missing", "ModuleNotFoundError"),
        ("lost", "no compass"),
    ],
)
def test_a_renderer_that_raises_is_named_and_replaced_by_tiles_and_the_window_goes_on(
    strangers: None, watched: Watched, wait: Wait, view: str, words: str
) -> None:
    window = watched.window
    window.views.choose_view(view)
    if view == "lost":
        window.settle()
        QTest.mouseMove(canvas_of(window), QPoint(50, 50))
    panel = window.spaces.panels[1]
    wait(lambda: panel.view is None)
    assert panel.canvas.isVisible()
    said = panel._note.text()
    assert panel._note.isVisible()
    assert view.capitalize() in said
    assert words in said
    watched.happen(1)
    assert watched.shows(window.session.number)
    window.views.choose_view("hilbert")
    assert not panel._note.isVisible(), "no news of it any more"


def test_a_view_that_is_left_leaves_no_thread_even_while_it_draws(watched: Watched) -> None:
    window = watched.window
    for view in DRAWN * 3:
        window.views.choose_view(view)
        watched.program.let_happen()
    window.views.choose_view("tiles")
    gc.collect()


def test_a_busy_renderer_gets_all_that_came_at_once(watched: Watched) -> None:
    window = watched.window
    canvas = shown_as(watched, "hilbert")
    drawing: SpaceRenderer = canvas.drawing
    with drawing._lock:  # as long as it draws
        watched.come(6)
        newest = window.session.live.last_event
        assert newest is not None
        assert drawn_by(canvas).sequence < newest.sequence, "it draws still"
    window.settle()
    assert drawn_by(canvas).sequence == newest.sequence
    assert np.array_equal(drawn_by(canvas).pixels, afresh(canvas, watched))
    drawing.request("anew", lambda renderer: renderer.draw())
    window.settle()
    assert np.array_equal(drawn_by(canvas).pixels, afresh(canvas, watched))


def test_a_look_is_one_value_that_can_be_put_back(watched: Watched) -> None:
    window = watched.window
    assert window.session.looks.of(1) == SpaceViewState()
    window.views.choose_view("rows")
    window.views.set_row_width(33)
    window.views.choose_order(0, descending=True)
    now = window.session.looks.of(1)
    assert now == SpaceViewState(view="rows", row_width=33, order=OrderChoice(0, True))
    for _ in range(3):
        window.undo.undo()
    assert window.session.looks.of(1) == SpaceViewState()


@pytest.mark.parametrize("view", ["hilbert", "histogram", "multiples"])
def test_looking_back_and_going_live_again_shows_the_state_of_that_event(
    watched: Watched, wait: Wait, view: str
) -> None:
    window = watched.window
    canvas = shown_as(watched, view)
    last = window.session.timeline.last
    for number in (3, 4, last - 1):
        window.navigator.go_to(number)
        wait(partial(_stands_at, window, number))
        window.settle()
        space = window.session.interpreter.spaces[1]
        assert np.array_equal(space.streams[watched_stream(watched)].values, watched.heaps[number])
        canvas.drawing.request("anew", lambda renderer: renderer.draw())
        window.settle()
        assert np.array_equal(drawn_by(canvas).pixels, afresh(canvas, watched))
    window.navigator.last()
    wait(lambda: window.session.is_live)
    watched.happen(1)
    canvas.drawing.request("anew", lambda renderer: renderer.draw())
    window.settle()
    assert np.array_equal(drawn_by(canvas).pixels, afresh(canvas, watched))


def watched_stream(watched: Watched) -> int:
    return watched.program.used.schema.id


def _stands_at(window: MainWindow, number: int) -> bool:
    return window.session.number == number


def test_a_reconnect_keeps_how_spaces_are_looked_at(watched: Watched, wait: Wait) -> None:
    window = watched.window
    shown_as(watched, "histogram")
    window.views.choose_view("table", 2)
    window.link.close()
    window.link.reconnect()
    wait(lambda: window.link.status.phase.connected)
    before = window.session.events_seen
    watched.program.let_happen()
    wait(lambda: window.session.events_seen > before)
    window.settle()
    canvas = canvas_of(window)
    canvas.drawing.request("anew", lambda renderer: renderer.draw())
    window.settle()
    assert np.array_equal(drawn_by(canvas).pixels, afresh(canvas, watched))
    table = window.spaces.panels[2].view
    assert isinstance(table, TableView)
    assert table.model.rowCount() == 3
    rows = table.model.table
    wait(lambda: rows.text(0, 0).endswith("young"))  # names of the visible rows are requested


def pinch(canvas: QWidget, value: float, at: QPointF) -> None:
    """Spread two fingers on a touch pad."""
    event = QNativeGestureEvent(
        Qt.NativeGestureType.ZoomNativeGesture,
        QPointingDevice.primaryPointingDevice(),
        2,
        at,
        at,
        QPointF(canvas.mapToGlobal(at)),
        value,
        QPointF(),
    )
    QApplication.sendEvent(canvas, event)


def test_two_fingers_zoom_the_tiles_and_every_view(watched: Watched) -> None:
    window = watched.window
    tiles = window.spaces.panels[1].canvas
    place, before = QPointF(tiles.rect().center()), tiles.picture.layout
    for _ in range(4):
        pinch(tiles, 0.05, place)
    near = tiles.picture.layout
    assert near.cell_height > before.cell_height
    assert window.undo.can_undo
    for _ in range(4):
        pinch(tiles, -0.05, place)
    assert tiles.picture.layout.cell_height < near.cell_height
    canvas = shown_as(watched, "hilbert")
    place = QPointF(canvas.rect().center())
    pinch(canvas, 0.5, place)
    assert canvas.viewport.zoom == 1.5
    pinch(canvas, -0.4, place)
    assert canvas.viewport.zoom < 1.5


def test_dragging_with_the_left_button_pans_and_a_click_selects(
    watched: Watched, wait: Wait
) -> None:
    canvas = shown_as(watched, "hilbert")
    for _ in range(6):
        canvas.zoom(1)
    watched.window.settle()
    start = canvas.area().center().toPoint()
    before, seen = canvas.place(), canvas.viewport
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=start)
    wait(lambda: watched.window.session.selected(1) is not None)
    assert canvas.place() == before
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(canvas, start + QPoint(-30, -40))
    assert canvas.testAttribute(Qt.WidgetAttribute.WA_SetCursor)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=start + QPoint(-30, -40))
    assert canvas.cursor().shape() is Qt.CursorShape.ArrowCursor
    assert canvas.place() == (seen.zoom, seen.left + 30, seen.top + 40)
    QTest.keyClick(watched.window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert canvas.place() == before


def has_room(canvas: RendererCanvas) -> bool:
    return canvas.has_room


def test_a_view_without_room_says_so_and_what_to_do(watched: Watched) -> None:
    canvas = shown_as(watched, "histogram")
    panel = watched.window.spaces.panels[1]
    assert has_room(canvas)
    assert "larger" in canvas.how_to_enlarge
    panel.set_form(PanelForm.OPEN)
    assert canvas.how_to_enlarge == "Click here to make this space the large one."
    high = canvas.grab().toImage()
    canvas.setFixedHeight(50)
    QApplication.processEvents()
    assert not has_room(canvas)
    assert canvas.tile_at(QPointF(canvas.rect().center())) is None, "nothing can be read there"
    low = canvas.grab().toImage()
    assert low.size() != high.size()
    ground = low.pixel(0, 0)
    columns = [
        x for x in range(low.width()) if any(low.pixel(x, y) != ground for y in range(low.height()))
    ]
    assert columns, "words"
    assert columns[0] > low.width() // 8, "and no bars"
