"""The window, fed with messages: what it shows, marks and says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.model import (
    CONTROL_STREAM,
    Control,
    ControlState,
    PaintStyle,
    PauseActsOn,
    Presentation,
    Space,
    Stream,
)
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QImage, QPaintEvent, QRegion
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.view.spaces.canvas import TileCanvas
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.feeding import PAGE, Feed, kept

BASE = 0x10000
HEAP = Space(
    id=1,
    name="Heap",
    main=True,
    tile_title="Block ",
    unused_text="not in use",
    streams=(
        Stream(id=1, name="Used", dtype="u1", maximum=255, suffix=" bytes", order=1),
        Stream(
            id=2,
            name="State",
            dtype="u1",
            presentation=Presentation.ENUM,
            enum_names=("clean", "dirty"),
            paint_style=PaintStyle.ZERO,
            order=2,
        ),
    ),
)
SMALL = Space(id=2, name="Generations", streams=(Stream(id=1, name="Count", maximum=700),))


def heap_values(count: int = 3000, seed: int = 0) -> dict[tuple[int, int], NDArray[Any]]:
    random = np.random.default_rng(seed)
    return {
        (1, 1): random.integers(0, 255, count),
        (1, 2): random.integers(0, 2, count),
        (2, 1): random.integers(0, 700, 4),
    }


@pytest.fixture
def feed() -> Feed:
    return Feed(spaces=(HEAP, SMALL), counts={1: 3000, 2: 4})


@pytest.fixture
def window(make_window: MakeWindow, feed: Feed, qtbot: QtBot) -> MainWindow:
    made = make_window()
    made.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/test.sock")
    made.take(feed.bootstrap())
    made.take(feed.event(heap_values()))
    made.settle()
    return made


def image_of(canvas: TileCanvas) -> QImage:
    return canvas.grab().toImage()


def colour_at(canvas: TileCanvas, tile: int) -> int:
    return image_of(canvas).pixel(canvas.centre_of(tile)) & 0xFFFFFFFF


def test_every_space_is_seen_at_once_and_the_main_one_is_active(window: MainWindow) -> None:
    panels = window.spaces.panels
    assert list(panels) == [1, 2]
    assert all(panel.isVisible() for panel in panels.values())
    assert panels[1].property("active") == "true"
    assert panels[2].property("active") == "false"
    assert panels[1].canvas.height() > 3 * panels[2].canvas.height()


@pytest.mark.parametrize("theme", list(Theme))
def test_a_pixel_of_a_tile_has_the_colour_of_its_value(
    window: MainWindow, feed: Feed, theme: Theme
) -> None:
    window.appearance.set_theme(theme)
    canvas = window.spaces.panels[1].canvas
    for seed in (1, 2):
        values = heap_values(seed=seed)
        window.take(feed.event(values))
        for tile in (0, 7, 1499, 2998, 2999):
            code = 5 + values[1, 1][tile] * 249 // 255
            assert colour_at(canvas, tile) == int(canvas.picture.palette.lut[code])


def test_changes_paint_what_a_whole_picture_would(window: MainWindow, feed: Feed) -> None:
    values = heap_values()
    changed = np.array([3, 900, 2500], dtype=np.int64)
    feed.sequence += 1
    stamp: dict[str, Any] = {"sequence": 2, "time_nanos": 5, "event": 0, "occurrence": 2}
    window.take(
        [
            m.StreamDelta(
                space=1,
                stream=1,
                base_sequence=1,
                count=3000,
                indices=changed,
                values=np.array([255, 0, 9], "u1"),
                **stamp,
            ),
            m.Event(sequence=2, time_nanos=5, event=0, occurrence=2, epoch=1),
        ]
    )
    canvas = window.spaces.panels[1].canvas
    palette = canvas.picture.palette
    assert [colour_at(canvas, int(tile)) for tile in changed] == [
        int(palette.lut[c]) for c in (254, 5, 5 + 9 * 249 // 255)
    ]
    assert colour_at(canvas, 4) == int(palette.lut[5 + values[1, 1][4] * 249 // 255])


def test_a_selected_tile_is_told_with_all_streams(window: MainWindow, qtbot: QtBot) -> None:
    values = heap_values()
    canvas = window.spaces.panels[1].canvas
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.centre_of(42))
    assert window.session.selected(1) == 42
    rows = window.details._streams
    assert [rows.cell(i, 0).text for i in range(2)] == ["Used", "State"]
    assert rows.cell(0, 2).text == f"{values[1, 1][42]:,} bytes"
    assert rows.cell(1, 2).text == ("clean", "dirty")[values[1, 2][42]]
    assert f"{BASE + 42 * PAGE:#x}" in window.details._selected_name.text()


def test_arrow_keys_move_the_selected_tile(window: MainWindow, qtbot: QtBot) -> None:
    canvas = window.spaces.panels[1].canvas
    canvas.setFocus()
    window.selection.select(1, 10)
    columns = canvas.picture.layout.columns
    expected = 10
    for key, step in (
        (Qt.Key.Key_Right, 1),
        (Qt.Key.Key_Down, columns),
        (Qt.Key.Key_Left, -1),
        (Qt.Key.Key_Up, -columns),
    ):
        QTest.keyClick(canvas, key)
        expected += step
        assert window.session.selected(1) == expected
    QTest.keyClick(canvas, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert window.session.selected(1) == 2999
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert window.session.selected(1) == 2999


def test_the_selection_stays_on_its_address_through_a_resize(
    window: MainWindow, feed: Feed
) -> None:
    window.selection.select(1, 100)
    feed.sequence += 1
    count = 2990  # ten tiles in front of it are gone
    values = np.full(count, 7, dtype="u1")
    stamp: dict[str, Any] = {
        "sequence": feed.sequence,
        "time_nanos": 5,
        "event": 0,
        "occurrence": 2,
    }
    window.take(
        [
            kept(1, count, [(10, 0, count)], BASE + 10 * PAGE),
            m.StreamKey(space=1, stream=1, values=values, **stamp),
            m.StreamKey(
                space=1, stream=CONTROL_STREAM, values=np.full(count, Control.USED, "u1"), **stamp
            ),
            m.Event(sequence=feed.sequence, time_nanos=5, event=0, occurrence=2, epoch=1),
        ]
    )
    assert window.session.selected(1) == 90
    assert window.spaces.panels[1].canvas.selected == 90
    feed.sequence += 1
    window.take(
        [
            kept(1, 80, [(0, 0, 80)], BASE + 10 * PAGE),
            m.Event(sequence=feed.sequence, time_nanos=6, event=0, occurrence=3, epoch=1),
        ]
    )
    window.settle()
    assert window.session.selected(1) is None
    assert "no longer exists" in window.details._selected_name.text()


def test_an_unknown_tile_is_told_and_painted_as_unknown(window: MainWindow, feed: Feed) -> None:
    feed.sequence += 1
    stamp: dict[str, Any] = {
        "sequence": feed.sequence,
        "time_nanos": 5,
        "event": 0,
        "occurrence": 2,
    }
    known = np.ones(3000, dtype=np.bool_)
    known[5] = False
    window.take(
        [
            m.StreamKey(space=1, stream=1, values=np.zeros(3000, "u1"), known=known, **stamp),
            m.Event(sequence=feed.sequence, time_nanos=5, event=0, occurrence=2, epoch=1),
        ]
    )
    window.selection.select(1, 5)
    assert window.details._streams.cell(0, 2).text == "unknown"
    assert int(window.spaces.panels[1].canvas.picture.codes[5]) == 4


def test_a_stream_that_was_not_gathered_for_a_while_is_marked_stale(
    window: MainWindow, feed: Feed
) -> None:
    only_state = {(1, 2): heap_values()[1, 2]}
    window.take(feed.event(only_state))
    window.settle()
    rows = window.details._streams
    assert "stale" not in rows.cell(0, 0).text, "a driver may gather it more rarely"
    assert not window.spaces.panels[1]._stale.isVisible()
    for _ in range(19):  # two seconds
        window.take(feed.event(only_state))
    window.settle()
    assert "stale" in rows.cell(0, 0).text
    assert "stale" not in rows.cell(1, 0).text
    assert window.spaces.panels[1]._stale.isVisible()
    points = window.session.history.series(1, 1)
    assert len(points) == 1  # the old summary is no new point


def test_the_view_chooser_repaints_the_active_space(window: MainWindow, qtbot: QtBot) -> None:
    canvas = window.spaces.panels[1].canvas
    before = image_of(canvas)
    window.details._chooser.setCurrentIndex(1)
    assert canvas.picture.stream_id == 2
    assert image_of(canvas) != before
    QTest.keyClick(window, Qt.Key.Key_BracketRight)
    assert canvas.picture.stream_id == 1


def test_tiles_can_be_zoomed_and_scrolled(window: MainWindow, qtbot: QtBot) -> None:
    canvas = window.spaces.panels[1].canvas
    size = canvas.picture.layout.cell_height
    for _ in range(6):
        QTest.keyClick(window, Qt.Key.Key_Plus)
    assert canvas.picture.layout.cell_height > size
    assert canvas.picture.layout.scrolls
    window.selection.select(1, 10)
    canvas.setFocus()
    QTest.keyClick(canvas, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert canvas.picture.layout.first <= 2999 < canvas.picture.layout.last
    code = 5 + heap_values()[1, 1][2999] * 249 // 255
    assert colour_at(canvas, 2999) == int(canvas.picture.palette.lut[code])
    QTest.keyClick(window, Qt.Key.Key_0)
    assert not canvas.picture.layout.scrolls


@pytest.mark.parametrize(
    ("acts_on", "word"),
    [
        (PauseActsOn.PROGRAM, "program"),
        (PauseActsOn.SAMPLING, "sampling"),
        (PauseActsOn.PLAYBACK, "playback"),
    ],
)
def test_buttons_and_state_use_the_word_for_what_is_paused(
    make_window: MakeWindow, acts_on: PauseActsOn, word: str
) -> None:
    window = make_window()
    feed = Feed(spaces=(HEAP, SMALL), counts={1: 3000, 2: 4}, pause_acts_on=acts_on)
    window.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/test.sock")
    window.take([*feed.bootstrap(), *feed.event(heap_values())])
    window.settle()
    footer = window.session_part.footer
    assert footer.pause.text() == f"Pause {word}"
    assert footer.pause.isEnabled()
    assert not footer.step.isEnabled()
    window.take([m.State(state=ControlState.PAUSING)])
    window.settle()
    assert f"{word} about to pause" in footer.state.text().lower()
    assert not footer.step.isEnabled()
    window.take([m.State(state=ControlState.PAUSED, reason="event filter")])
    window.settle()
    assert footer.pause.text() == f"Resume {word}"
    assert f"{word} paused · event filter" in footer.state.text().lower()
    assert footer.step.isEnabled()


def test_a_viewer_cannot_press_what_it_may_not_do(make_window: MakeWindow) -> None:
    window = make_window()
    feed = Feed(spaces=(HEAP, SMALL), counts={1: 3000, 2: 4}, controller=False)
    window.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/test.sock")
    window.take([*feed.bootstrap(), *feed.event(heap_values()), m.State(state=ControlState.PAUSED)])
    window.settle()
    assert not window.session_part.footer.pause.isEnabled()
    assert not window.session_part.footer.step.isEnabled()
    assert window.session_part.event_bar._role.text() == "viewer"
    assert "other" in window.session_part.event_bar._role.toolTip()


def test_the_end_of_the_target_keeps_what_came(window: MainWindow) -> None:
    window.take([m.State(state=ControlState.ENDED, reason="process 4711 exited")])
    window.settle()
    assert window.session_part.banner.isVisible()
    assert "The target has ended" in window.session_part.banner.text.text()
    assert "4711" in window.session_part.banner.text.text()
    assert not window.session_part.footer.pause.isEnabled()
    canvas = window.spaces.panels[1].canvas
    assert colour_at(canvas, 1499) == int(
        canvas.picture.palette.lut[5 + heap_values()[1, 1][1499] * 249 // 255]
    )


def test_messages_that_contradict_each_other_end_the_session_with_a_reason(
    window: MainWindow,
) -> None:
    window.take([m.SpaceRemoved(space=99)])
    assert window.link.status.phase is LinkPhase.FAILED
    assert "no space 99" in window.session_part.banner.text.text()


def test_a_removed_space_loses_its_panel_and_a_new_one_gets_one(
    window: MainWindow, feed: Feed
) -> None:
    third = Space(id=3, name="Free lists", streams=(Stream(id=1, name="Length", maximum=10),))
    window.take([m.SpaceRemoved(space=2), m.SpaceDefined(space=third), m.EpochEnd(epoch=2)])
    window.settle()
    feed.sequence += 1
    window.take([m.Event(sequence=feed.sequence, time_nanos=5, event=0, occurrence=2, epoch=2)])
    window.settle()
    assert list(window.spaces.panels) == [1, 3]
    image_of(window.spaces.panels[3].canvas)  # "no tiles yet", not a crash


def test_long_names_are_shortened_not_spread(make_window: MakeWindow) -> None:
    window = make_window()
    long = Space(
        id=1, name="N" * 300, main=True, streams=(Stream(id=1, name="S" * 300, maximum=255),)
    )
    feed = Feed(spaces=(long,), counts={1: 50})
    window.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/" + "p" * 90)
    window.take([*feed.bootstrap(), *feed.event({(1, 1): np.arange(50)})])
    window.settle()
    assert window.width() == 1280
    assert window.minimumSizeHint().width() <= 1280
    assert window.spaces.panels[1].width() <= window.spaces.width(), "no tile is cut off"
    for name in ("view", "tile"):
        assert window.docks[name].minimumSizeHint().width() <= window.docks[name].width(), (
            "nothing of the panels is cut off"
        )


def test_a_summary_that_covers_no_tile_is_unknown_and_not_zero(make_window: MakeWindow) -> None:
    window = make_window()
    feed = Feed(spaces=(SMALL,), counts={2: 4})
    window.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/test.sock")
    messages = feed.event({(2, 1): np.zeros(4)})
    window.take(feed.bootstrap())
    window.take(
        [replace(one, covered=0) if isinstance(one, m.Summary) else one for one in messages]
    )
    window.settle()
    labels = [label.text() for label in window.spaces.panels[2].findChildren(QLabel)]
    assert "Count  unknown" in labels


def test_the_view_chooser_has_an_arrow(window: MainWindow) -> None:
    (chooser,) = window.details.view.findChildren(Chooser)
    image = chooser.grab().toImage()
    right = [
        image.pixel(x, image.height() // 2) for x in range(image.width() - 22, image.width() - 6)
    ]
    assert len(set(right)) > 1


def test_before_any_connection_the_window_says_what_to_do(make_window: MakeWindow) -> None:
    window = make_window()
    assert window.opener.page.isVisible()
    assert window.opener.page.connect_to.isVisible()
    assert window.opener.page.processes.isHidden(), "nobody here can look for processes"


def test_a_hovered_tile_is_told_beside_the_selected_one(window: MainWindow, qtbot: QtBot) -> None:
    values = heap_values()
    canvas = window.spaces.panels[1].canvas
    window.selection.select(1, 3)
    QTest.mouseMove(canvas, canvas.centre_of(77))
    qtbot.waitUntil(lambda: canvas.under_mouse == 77, timeout=60_000)
    window.settle()
    rows = window.details._streams
    assert rows.cell(0, 1).text == f"{values[1, 1][77]:,} bytes"
    assert rows.cell(0, 2).text == f"{values[1, 1][3]:,} bytes"
    QTest.mouseMove(canvas, QPoint(canvas.width() - 1, canvas.height() - 1))


def test_the_probe_tells_of_each_finished_paint(
    window: MainWindow, feed: Feed, qtbot: QtBot
) -> None:
    paints: list[tuple[int, int, int]] = []
    window.set_probe(lambda space, sequence, nanos: paints.append((space, sequence, nanos)))
    window.take(feed.event(heap_values(seed=9)))
    qtbot.waitUntil(
        lambda: any(space == 1 and sequence == feed.sequence for space, sequence, _ in paints),
        timeout=60_000,
    )
    assert all(nanos > 0 for _, _, nanos in paints)


def test_every_button_says_what_it_does(window: MainWindow) -> None:
    for button in window.findChildren(QPushButton):
        assert button.text()


@pytest.mark.parametrize(
    ("driver_failed", "told"),
    [
        (False, "The target has ended: process 4711 exited"),
        (True, "The driver has failed: process 4711 exited"),
    ],
)
def test_the_end_of_the_session_is_still_told_when_the_server_has_gone_too(
    window: MainWindow, driver_failed: bool, told: str
) -> None:
    reason = "process 4711 exited"
    window.take([m.State(state=ControlState.ENDED, reason=reason, driver_failed=driver_failed)])
    window.link.status = LinkStatus(
        phase=LinkPhase.ENDED, address="unix:/test.sock", message="goodbye"
    )
    window.settle()
    assert told in window.session_part.banner.text.text()


def test_before_the_first_event_of_another_session_all_its_streams_can_be_chosen(
    window: MainWindow,
) -> None:
    more = tuple(Stream(id=number, name=f"Stream {number}") for number in range(3, 12))
    heap = replace(HEAP, streams=(*HEAP.streams, *more))
    third = Space(id=3, name="Third", streams=(Stream(id=1, name="Count"),))
    other = Feed(spaces=(heap, SMALL, third), counts={1: 2, 2: 4, 3: 4}, session="session-2")
    window.updater.restart()
    window.take(other.bootstrap())  # on the screen are the panels of the session before
    for _ in range(len(more) - 1):
        assert window.actions_table.run("view.next-stream")
        window.settle()
    assert window.session.chosen_stream(1) == 11
    assert window.spaces.panels[1].source.schema.id == 1
    window.selection.select(1, 2999)
    window.take(other.event({(1, n): np.arange(2) for n in range(1, 12)} | {(2, 1): np.arange(4)}))
    assert window.spaces.panels[1].source.schema.id == 11


def test_texts_are_updated_in_several_turns_of_the_loop(
    window: MainWindow, feed: Feed, qtbot: QtBot
) -> None:
    """Together they cost a screen frame, and a map is zoomed meanwhile."""
    window.settle()
    turns: list[int] = []
    window.updater.spoken.connect(lambda: turns.append(len(turns)))
    window.take(feed.event(heap_values()))
    window.updater._begin_refresh()
    assert not turns
    qtbot.waitUntil(lambda: bool(turns))
    window.updater._begin_refresh()
    window.settle()
    assert len(turns) == 2, "what was begun is not done twice"


def test_of_few_changed_tiles_only_those_are_painted(
    window: MainWindow, feed: Feed, qtbot: QtBot
) -> None:
    panel = window.spaces.panels[1]
    window.settle()
    qtbot.waitUntil(lambda: panel.canvas.painted)
    QApplication.processEvents()
    window.take(feed.event(heap_values()))
    QApplication.processEvents()
    changed = [3, 17]
    before_it = feed.sequence
    messages = feed.event({})
    delta = m.StreamDelta(
        space=1, stream=1, base_sequence=before_it, sequence=feed.sequence, time_nanos=1, event=0,
        occurrence=1, count=3000, indices=np.array(changed), values=np.array([1, 200], dtype="u1"),
    )  # fmt: skip
    regions: list[QRegion] = []

    class Watch(QObject):
        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            if isinstance(event, QPaintEvent):
                regions.append(event.region())
            return False

    watch = Watch()
    panel.canvas.installEventFilter(watch)
    before = panel.canvas.grab().toImage()
    regions.clear()
    window.take([delta, *messages])
    QApplication.processEvents()
    region = QRegion()
    for one in regions:
        region = region.united(one)
    cells = QRegion()
    for tile in changed:
        cells = cells.united(panel.canvas.rectangle_of(tile).toAlignedRect())
    assert not region.isEmpty()
    assert region.subtracted(cells).isEmpty()
    after = panel.canvas.grab().toImage()
    for x in range(0, before.width(), 3):
        for y in range(0, before.height(), 3):
            if not cells.contains(QPoint(x, y)):
                assert before.pixel(x, y) == after.pixel(x, y)
