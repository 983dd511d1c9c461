"""The active space is large; the others are lines that open, fold, and become the large one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.model import Space, Stream
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gcspy_client.model.codes import TileCodes
from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.model.shell.work_layout import LAYOUTS, layout_content, layout_of
from gcspy_client.model.spaces.panel_heights import PanelForm
from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.model.view_states import SpaceViewState
from gcspy_client.settings import UserSettings
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.feeding import Feed
from tests.matrix import matrix
from tests.waiting import PATIENCE_MILLIS

HEAP, TABLES, FEW, OLD = 1, 2, 3, 4
COUNTS = {HEAP: 40_000, TABLES: 900, FEW: 4, OLD: 500}


def space(number: int, name: str, stream: str) -> Space:
    return Space(
        id=number,
        name=name,
        main=number == HEAP,
        streams=(Stream(id=1, name=stream, maximum=255),),
    )


def values(seed: int = 1) -> dict[tuple[int, int], NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    return {(number, 1): random.integers(0, 255, count) for number, count in COUNTS.items()}


def show(window: MainWindow, spaces: tuple[Space, ...], counts: dict[int, int]) -> Feed:
    feed = Feed(spaces=spaces, counts=counts)
    window.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/test.sock")
    window.take(feed.bootstrap())
    window.take(feed.event({key: some for key, some in values().items() if key[0] in counts}))
    window.settle()
    QApplication.processEvents()
    return feed


@pytest.fixture
def window(make_window: MakeWindow) -> MainWindow:
    made = make_window()
    show(
        made,
        (space(HEAP, "Heap", "Used"), space(TABLES, "Tables", "Rows"), space(FEW, "Few", "Count")),
        {HEAP: 40_000, TABLES: 900, FEW: 4},
    )
    return made


def forms(window: MainWindow) -> dict[int, PanelForm]:
    return {number: panel.form for number, panel in window.spaces.panels.items()}


def has_half(window: MainWindow, number: int) -> bool:
    return window.spaces.panels[number].height() >= window.docks.area.height() / 2


@pytest.mark.parametrize(
    "size",
    matrix(
        [((1024, 600),), ((1280, 720),), ((1600, 1000),), ((3840, 2160),)], usual=[((1024, 600),)]
    ),
)
def test_the_active_space_has_half_of_the_height(
    window: MainWindow, qtbot: QtBot, size: tuple[int, int]
) -> None:
    window.resize(*size)
    for panel in ("", "history", "compare"):
        if panel:
            window.docks.show(panel)
        for number in (HEAP, TABLES, FEW):
            window.selection.turn_to(number)
            qtbot.waitUntil(partial(has_half, window, number), timeout=PATIENCE_MILLIS)
            assert forms(window)[number] is PanelForm.LARGE
            assert window.spaces.panels[number].isVisible()
    assert (window.width(), window.height()) == size, "it still fits the screen"


def test_other_spaces_are_lines_with_all_their_tiles(window: MainWindow) -> None:
    assert forms(window) == {HEAP: PanelForm.LARGE, TABLES: PanelForm.LINE, FEW: PanelForm.LINE}
    lines = [window.spaces.panels[number] for number in (TABLES, FEW)]
    assert len({line.canvas.mapTo(window, QPoint(0, 0)).x() for line in lines}) == 1, "one column"
    for line in lines:
        strip = line.canvas
        layout = strip.picture.layout
        assert strip.height() == 16
        assert (layout.first, layout.last) == (0, line.canvas.picture.space.count)
        picture = strip.grab().toImage()
        for tile in (0, layout.count // 2, layout.count - 1):
            colour = strip.picture.palette.lut[strip.picture.codes[tile]]
            assert picture.pixel(strip.centre_of(tile)) & 0xFFFFFFFF == int(colour)


def test_a_click_opens_a_line_and_a_double_click_makes_it_large(
    window: MainWindow, qtbot: QtBot
) -> None:
    tables = window.spaces.panels[TABLES]
    QTest.mouseClick(tables, Qt.MouseButton.LeftButton, pos=QPoint(40, 10))
    qtbot.waitUntil(lambda: tables.form is PanelForm.OPEN, timeout=PATIENCE_MILLIS)
    assert window.session.active != TABLES
    assert has_half(window, HEAP)
    assert tables.height() >= 84
    QTest.mouseClick(tables._fold, Qt.MouseButton.LeftButton)
    assert tables.form is PanelForm.LINE
    QTest.mouseClick(tables, Qt.MouseButton.LeftButton, pos=QPoint(40, 10))
    QTest.mouseDClick(tables, Qt.MouseButton.LeftButton, pos=QPoint(40, 10))
    QTest.mouseRelease(window, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert window.session.active == TABLES
    qtbot.waitUntil(lambda: tables.form is PanelForm.LARGE, timeout=PATIENCE_MILLIS)
    assert tables.property("active") == "true"
    assert window.spaces.panels[HEAP].property("active") == "false"
    assert forms(window)[HEAP] is PanelForm.LINE
    qtbot.wait(QApplication.doubleClickInterval() + 50)
    assert forms(window)[TABLES] is PanelForm.LARGE, "the first of the two clicks is forgotten"


def test_keys_open_fold_and_enlarge(window: MainWindow, qtbot: QtBot) -> None:
    tables = window.spaces.panels[TABLES]
    tables.setFocus()
    QTest.keyClick(tables, Qt.Key.Key_Return)
    assert tables.form is PanelForm.OPEN
    assert tables.canvas.hasFocus(), "the keyboard stays with it"
    QTest.keyClick(tables.canvas, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: tables.form is PanelForm.LARGE, timeout=PATIENCE_MILLIS)
    assert tables.canvas.hasFocus()
    QTest.keyClick(window, Qt.Key.Key_E)
    assert set(forms(window).values()) == {PanelForm.LARGE, PanelForm.OPEN}
    QTest.keyClick(window, Qt.Key.Key_E)
    assert set(forms(window).values()) == {PanelForm.LARGE, PanelForm.LINE}


def test_the_space_under_the_mouse_is_described(window: MainWindow, qtbot: QtBot) -> None:
    window.spaces.open(TABLES)
    canvas = window.spaces.panels[TABLES].canvas
    qtbot.waitUntil(lambda: canvas.height() > 40, timeout=PATIENCE_MILLIS)
    QTest.mouseMove(canvas, canvas.centre_of(7))
    qtbot.waitUntil(
        lambda: window.details._streams.cell(0, 0).text == "Rows", timeout=PATIENCE_MILLIS
    )
    expected = values()[TABLES, 1][7]
    qtbot.waitUntil(
        lambda: window.details._streams.cell(0, 1).text == f"{expected}", timeout=PATIENCE_MILLIS
    )
    assert window.session.active != TABLES, "nothing moves under the mouse"
    QTest.mouseMove(window.session_part.footer, QPoint(5, 5))
    canvas.leaveEvent(None)
    qtbot.waitUntil(
        lambda: window.details._streams.cell(0, 0).text == "Used", timeout=PATIENCE_MILLIS
    )


def test_a_click_on_a_tile_of_an_open_space_selects_it_and_makes_the_space_large(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.spaces.open(TABLES)
    panel = window.spaces.panels[TABLES]
    qtbot.waitUntil(lambda: panel.canvas.height() > 40, timeout=PATIENCE_MILLIS)
    QTest.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=panel.canvas.centre_of(11))
    assert window.session.selected(TABLES) == 11
    qtbot.waitUntil(lambda: panel.form is PanelForm.LARGE, timeout=PATIENCE_MILLIS)


def test_spaces_of_one_kind_are_open_beside_each_other(make_window: MakeWindow) -> None:
    window = make_window()
    window.resize(1280, 900)
    show(
        window,
        (space(HEAP, "Young", "Used"), space(OLD, "Old", "Used"), space(FEW, "Few", "Count")),
        {HEAP: 40_000, OLD: 500, FEW: 4},
    )
    assert forms(window) == {HEAP: PanelForm.LARGE, OLD: PanelForm.OPEN, FEW: PanelForm.LINE}
    assert has_half(window, HEAP)


def test_the_map_zooms_from_the_whole_heap_to_labelled_tiles(
    window: MainWindow, qtbot: QtBot
) -> None:
    panel = window.spaces.panels[HEAP]
    canvas = panel.canvas
    assert not panel.minimap.isVisible()
    scales = []
    for _ in range(40):
        QTest.keyClick(window, Qt.Key.Key_Plus)
        layout = canvas.picture.layout
        scales.append((-layout.per_pixel, layout.cell_height))
        if layout.labelled:
            break
    assert canvas.picture.layout.labelled, "a tile has room for its name and value"
    assert scales == sorted(set(scales)), "each step enlarges"
    window.settle()
    assert panel.minimap.isVisible()
    last = canvas.picture.layout.last
    assert f"0 to {last - 1:,} seen" in panel._count.text()
    QTest.keyClick(canvas, Qt.Key.Key_PageDown, Qt.KeyboardModifier.ShiftModifier)
    assert canvas.picture.layout.first_row > 0, "panned by keys, without a selection"
    assert canvas.selected is None
    place = QPoint(panel.minimap.width() // 2, panel.minimap.height() // 2)
    QTest.mouseClick(panel.minimap, Qt.MouseButton.LeftButton, pos=place)
    everything = panel.minimap.layout_of_all
    assert everything is not None
    aimed = everything.tiles_at(place.x(), place.y()).start
    seen = canvas.picture.layout
    assert seen.first <= aimed < seen.last
    code = canvas.picture.codes[seen.first]
    corner = canvas.grab().toImage().pixel(3, 3) & 0xFFFFFFFF
    assert corner == int(canvas.picture.palette.lut[code])
    QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert canvas.picture.layout.first != seen.first, "moved back"
    QTest.keyClick(window, Qt.Key.Key_0)
    window.settle()
    assert not panel.minimap.isVisible()


def test_dragging_pans_and_a_click_does_not(window: MainWindow) -> None:
    panel = window.spaces.panels[HEAP]
    canvas = panel.canvas
    for _ in range(12):
        QTest.keyClick(window, Qt.Key.Key_Plus)
    window.settle()
    first = canvas.picture.layout.first_row
    start = QPoint(canvas.width() // 2, canvas.height() - 1)  # below the last row that fits, maybe
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=start)
    assert canvas.picture.layout.first_row == first
    held, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
    # Sent to the widget: a pointer that is moved on the screen of the test may be over another one.
    for kind, up, button, buttons in (
        (QEvent.Type.MouseButtonPress, 0, held, held),
        (QEvent.Type.MouseMove, 30, none, held),
        (QEvent.Type.MouseMove, 120, none, held),
        (QEvent.Type.MouseButtonRelease, 120, held, none),
    ):
        at = QPointF(start - QPoint(0, up))
        event = QMouseEvent(
            kind, at, canvas.mapToGlobal(at), button, buttons, Qt.KeyboardModifier.NoModifier
        )
        QApplication.sendEvent(canvas, event)
    assert canvas.picture.layout.first_row > first


def test_a_hidden_space_is_passed_over_and_comes_back(window: MainWindow) -> None:
    spaces = window.spaces
    window.selection.turn_to(TABLES)
    QTest.keyClick(window, Qt.Key.Key_H, Qt.KeyboardModifier.ShiftModifier)
    assert list(spaces.hidden) == ["Tables"]
    assert not spaces.panels[TABLES].isVisible()
    assert window.session.active_space() is window.session.interpreter.spaces[FEW]
    assert spaces.shows_hidden.isVisible()
    assert "Tables" in spaces.shows_hidden.toolTip()
    for expected in (HEAP, FEW, HEAP):
        QTest.keyClick(window, Qt.Key.Key_N)
        assert window.session.active_space() is window.session.interpreter.spaces[expected]
    assert forms(window)[HEAP] is PanelForm.LARGE
    assert has_half(window, HEAP)
    assert not spaces.panels[TABLES].isVisible()
    QTest.mouseClick(spaces.shows_hidden, Qt.MouseButton.LeftButton)
    assert not list(spaces.hidden)
    assert spaces.panels[TABLES].isVisible()
    assert not spaces.shows_hidden.isVisible()


def test_hiding_can_be_undone_and_a_hidden_space_that_is_chosen_is_shown(
    window: MainWindow,
) -> None:
    window.selection.turn_to(FEW)
    window.selection.hide_space()
    assert not window.spaces.panels[FEW].isVisible()
    QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.spaces.panels[FEW].isVisible()
    assert window.session.active_space() is window.session.interpreter.spaces[FEW]
    window.selection.hide_space()
    window.selection.turn_to(FEW)
    window.settle()
    assert window.spaces.panels[FEW].isVisible()
    assert forms(window)[FEW] is PanelForm.LARGE


def test_the_last_space_cannot_be_hidden(window: MainWindow) -> None:
    for _ in range(5):
        window.selection.hide_space()
    assert len(window.spaces.hidden) == 2
    (shown,) = [panel for panel in window.spaces.panels.values() if panel.isVisible()]
    assert shown.form is PanelForm.LARGE
    assert not window.actions_table["view.hide-space"].enabled()
    window.spaces.show_all()
    assert all(panel.isVisible() for panel in window.spaces.panels.values())


def test_hidden_spaces_are_hidden_again_in_the_next_window_and_the_active_one_is_not(
    qtbot: QtBot, tmp_path: Path
) -> None:
    shown = (
        space(HEAP, "Heap", "Used"),
        space(TABLES, "Tables", "Rows"),
        space(FEW, "Few", "Count"),
    )

    def opened(*spaces: Space) -> MainWindow:
        window = MainWindow(Theme.DARK, UserSettings(tmp_path / "settings.ini"))
        qtbot.addWidget(window)
        with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
            window.show()
        show(window, spaces, {one.id: COUNTS[one.id] for one in spaces})
        return window

    first = opened(*shown)
    first.selection.turn_to(TABLES)
    first.selection.hide_space()
    assert list(first.spaces.hidden) == ["Tables"]
    first.close()
    second = opened(*shown)
    assert list(second.spaces.hidden) == ["Tables"]
    assert not second.spaces.panels[TABLES].isVisible()
    second.close()
    third = opened(space(TABLES, "Tables", "Rows"))
    assert third.spaces.panels[TABLES].isVisible(), "the only one there is"
    third.close()


def test_a_layout_has_the_hidden_spaces_and_one_without_leaves_them(window: MainWindow) -> None:
    window.selection.turn_to(TABLES)
    window.selection.hide_space()
    window.selection.turn_to(HEAP)
    kept = layout_of(layout_content(window.layout_part.current()), "kept")
    assert kept.hidden == ("Tables",)
    window.layout_part.use(LAYOUTS[0])
    assert list(window.spaces.hidden) == ["Tables"]
    window.spaces.show_all()
    window.layout_part.use(kept)
    assert list(window.spaces.hidden) == ["Tables"]
    window.undo.undo()
    assert not list(window.spaces.hidden)


def test_the_strip_of_a_line_stands_before_its_summary_whatever_view_was_chosen(
    window: MainWindow,
) -> None:
    panel = window.spaces.panels[FEW]
    window.spaces.open(FEW, on=False)
    for view in ("hilbert", "tiles", "table", "tiles"):
        window.session.looks.by_space[FEW] = SpaceViewState(view=view)
        window.spaces.show_look(FEW)
        window.settle()
        QApplication.processEvents()
        assert panel.form is PanelForm.LINE
        assert panel.shown.geometry().right() < panel._view.geometry().left(), view


def test_no_summary_moves_when_a_line_becomes_stale(window: MainWindow, qtbot: QtBot) -> None:
    feed = show(
        window,
        (space(HEAP, "Heap", "Used"), space(TABLES, "Tables", "Rows"), space(FEW, "Few", "Count")),
        {HEAP: 40_000, TABLES: 900, FEW: 4},
    )
    panel = window.spaces.panels[FEW]
    window.spaces.open(FEW, on=False)
    window.settle()
    QApplication.processEvents()
    assert panel.form is PanelForm.LINE
    before = panel._view.geometry(), panel.shown.geometry()
    for _ in range(20):
        window.take(feed.event({(HEAP, 1): np.zeros(40_000)}))
    window.settle()
    QApplication.processEvents()
    assert panel._stale.isVisible()
    assert (panel._view.geometry(), panel.shown.geometry()) == before


def test_the_trend_of_a_stream_is_there_when_it_is_chosen(make_window: MakeWindow) -> None:
    window = make_window()
    two = Space(
        id=1,
        name="Heap",
        main=True,
        streams=(Stream(id=1, name="Used", maximum=255), Stream(id=2, name="Objects", maximum=255)),
    )
    feed = Feed(spaces=(two,), counts={1: 10})
    window.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/test.sock")
    window.take(feed.bootstrap())
    for value in (10, 20):
        window.take(feed.event({(1, 1): np.full(10, 5), (1, 2): np.full(10, value)}))
        window.settle()
    assert not window.spaces.panels[1].has_trend
    window.session.choose_stream(1, 2)
    window.spaces.show_stream(1)
    window.spaces.refresh()
    assert window.spaces.panels[1].has_trend, "nobody looked at it before"


def test_a_window_that_nobody_sees_paints_nothing_and_shows_everything_when_it_comes_back(
    window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = (
        space(HEAP, "Heap", "Used"),
        space(TABLES, "Tables", "Rows"),
        space(FEW, "Few", "Count"),
    )
    feed = show(window, shown, {HEAP: 40_000, TABLES: 900, FEW: 4})
    picture = window.spaces.panels[HEAP].canvas.picture
    window.hide()
    QApplication.processEvents()
    followed: list[EventChange] = []
    follow = SpacePicture.follow

    def counted(one: SpacePicture, change: EventChange) -> range | None:
        followed.append(change)
        return follow(one, change)

    monkeypatch.setattr(SpacePicture, "follow", counted)
    for seed in (2, 3):
        window.take(feed.event(values(seed)))
    assert not followed
    assert window.session.interpreter.last_event is not None
    assert window.session.interpreter.last_event.sequence == feed.sequence
    assert not np.array_equal(picture.codes, coded(picture))
    with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
        window.show()
    qtbot.waitUntil(lambda: np.array_equal(picture.codes, coded(picture)), timeout=PATIENCE_MILLIS)
    window.take(feed.event(values(4)))
    assert followed, "and follows again"
    assert np.array_equal(picture.codes, coded(picture))


def coded(picture: SpacePicture) -> NDArray[np.uint8]:
    """The codes of the values that the space has now."""
    again = TileCodes(picture.source.schema)
    again.refresh(picture.source.tiles(picture.space))
    return again.codes
