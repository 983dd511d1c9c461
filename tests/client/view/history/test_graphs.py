"""History graphs in the window: several of them, zoomed in, with lines and pooling, and written into files. Real server, real window."""

from __future__ import annotations

import base64
import csv
import threading
from collections.abc import Callable
from functools import partial
from io import StringIO
from pathlib import Path
from time import sleep
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from benchmarks.harness.watchdog import Watchdog
from gcspy_client.model.derived_source import DerivedSource
from gcspy_client.model.history import filler
from gcspy_client.model.history.graph import HistoryGraph
from gcspy_client.model.history.painter import HistoryPainter
from gcspy_client.model.history.pooling import Pooling
from gcspy_client.model.history.rows import HistoryRow
from gcspy_client.model.history.tracks import TrackSpec
from gcspy_client.model.history.view import GraphOptions, HistoryPicture
from gcspy_client.model.palette import LEVELS, LOW, Palette
from gcspy_client.view.history.canvas import HistoryCanvas
from gcspy_client.view.history.track import HistoryTrack
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import EVENTS, Wait, Watched

SAMPLE = Path(__file__).parents[4] / "replay" / "samples" / "semispace.gcspy"
XLINK = "{http://www.w3.org/1999/xlink}href"
SVG = "{http://www.w3.org/2000/svg}"


def has_drawn(track: HistoryTrack, events: int) -> bool:
    drawn = track.canvas.drawn
    return (
        drawn is not None
        and len(drawn.events) == events
        and bool(drawn.codes.size)
        and bool(drawn.codes.any(axis=1).all())
    )


def is_settled(track: HistoryTrack) -> bool:
    """Whether the picture is the one that was requested last."""
    canvas = track.canvas
    return canvas.drawn is not None and canvas.drawn.view == canvas.view()


def says(window: MainWindow, words: str) -> bool:
    return words in window.history.panel.said.text()


def opened(watched: Watched, wait: Wait, *, by_number: bool = True) -> MainWindow:
    window = watched.window
    window.resize(1280, 2000)  # half of the height stays the tiles'
    window.time_panel.strip.set_by_time(not by_number)
    QTest.keyClick(window, Qt.Key.Key_H)
    window.docks.give_height("history", 700)
    watched.lay_out()
    first = window.history.panel.first
    wait(lambda: has_drawn(first, EVENTS) and is_settled(first))
    watched.lay_out()  # what was read meanwhile may have made the timeline higher
    wait(lambda: has_drawn(first, EVENTS) and is_settled(first))
    return window


def added(window: MainWindow, wait: Wait, spec: TrackSpec, events: int = EVENTS) -> HistoryTrack:
    track = window.history.panel.add_track(spec)
    assert track is not None
    wait(partial(has_drawn, track, events))
    return track


def drag(canvas: HistoryCanvas, top: float, bottom: float) -> None:
    """Over tiles, from one share of the height to another."""
    area = canvas.area()
    ends = [
        QPoint(area.left() + 30, area.top() + round(share * area.height()))
        for share in (top, bottom)
    ]
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=ends[0])
    QTest.mouseMove(canvas, ends[1])
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=ends[1])


def wheel(
    canvas: HistoryCanvas,
    turns: int,
    modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
    x: float = 0.5,
    y: float = 0.5,
) -> None:
    area = canvas.area()
    where = QPointF(area.left() + x * area.width(), area.top() + y * area.height())
    for _ in range(abs(turns)):
        event = QWheelEvent(
            where, canvas.mapToGlobal(where), QPoint(), QPoint(0, 120 if turns > 0 else -120), Qt.MouseButton.NoButton,
            modifiers, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(canvas, event)


def read_png(path: Path) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    image = QImage(str(path)).convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), dtype=np.uint32).reshape(
        image.height(), image.bytesPerLine() // 4
    )
    return rows[:, : image.width()].copy()


# ------------------------------------------------------------------------- several


def test_graphs_of_several_spaces_and_streams_stand_on_one_axis(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    panel = window.history.panel
    other = added(window, wait, TrackSpec("Generations", "Count"))
    assert [track.title.text() for track in panel.tracks] == ["Heap · Used", "Generations · Count"]
    first, second = (track.canvas.drawn for track in panel.tracks)
    assert first is not None
    assert second is not None
    assert len(second.keys) == 3
    sequence = int(first.events.sequences[4])
    assert panel.canvas.x_of(sequence) == other.canvas.x_of(sequence)
    assert [track.separator.isVisible() for track in panel.tracks] == [False, True], (
        "between two spaces"
    )
    panel.tracks[1].up.click()
    assert [track.title.text() for track in panel.tracks] == ["Generations · Count", "Heap · Used"]
    assert (
        panel.tracks[0].canvas.mapTo(panel, QPoint(0, 0)).y()
        < panel.tracks[1].canvas.mapTo(panel, QPoint(0, 0)).y()
    )
    watched.happen(2)
    wait(lambda: all(has_drawn(track, EVENTS + 2) for track in panel.tracks))
    panel.tracks[0].close_button.click()
    assert [track.title.text() for track in panel.tracks] == ["Heap · Used"]
    assert not panel.first.close_button.isVisible(), "one graph stays"


def test_a_graph_that_was_added_stays_when_another_space_is_chosen(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    window.actions_table.run("history.add")
    wait(partial(has_drawn, window.history.panel.tracks[1], EVENTS))
    window.selection.activate(2)
    wait(partial(has_drawn, window.history.panel.first, EVENTS))
    assert [track.title.text() for track in window.history.panel.tracks] == [
        "Generations · Count",
        "Heap · Used",
    ]


def test_an_expression_is_graphed_as_a_stream_is(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    track = window.history.menus.add_expression("Used > 100")
    assert track is not None
    wait(partial(has_drawn, track, EVENTS))
    assert track.title.text() == "Heap · Used > 100"
    drawn = track.canvas.drawn
    assert drawn is not None
    whole = track.graph
    assert whole is not None
    assert track.palette_now is not None
    exact = whole.draw(whole.whole(EVENTS, len(whole.keys)), track.palette_now)
    codes = {
        number: set(exact.codes[number - 1][watched.heaps[number] > 100].tolist())
        for number in range(1, EVENTS + 1)
    }
    assert all(len(found) == 1 for found in codes.values()), "all that are greater look the same"
    assert window.history.menus.add_expression("no such stream / 2") is None
    assert "cannot be graphed" in window.history.panel.said.text()


def test_a_formula_that_the_user_made_for_the_tiles_is_graphed_with_its_name_and_scale(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    made = window.formulas.add(
        window.session.live.spaces[1], "doubled", "Used * 2", ends=(0.0, 1000.0)
    )
    track = window.history.panel.first
    wait(lambda: track.title.text() == "Heap · doubled" and has_drawn(track, EVENTS))
    assert track.graph is not None
    source = track.graph.source
    assert isinstance(source, DerivedSource)
    assert (source.formula, source.least, source.greatest) == (made.formula, 0.0, 1000.0)
    window.actions_table.run("history.add")
    window.selection.choose_stream(1, 0)
    wait(lambda: track.title.text() == "Heap · Used")
    assert window.history.panel.tracks[1].title.text() == "Heap · doubled"


def test_no_more_threads_for_more_graphs(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    before = threading.active_count()
    for _ in range(3):
        added(window, wait, TrackSpec("Generations", "Count"))
    assert threading.active_count() <= before


# ---------------------------------------------------------------------- closer


@pytest.mark.parametrize("by_number", [True, False], ids=["by number", "by time"])
def test_the_wheel_looks_closer_at_time_and_the_timeline_with_it(
    watched: Watched, wait: Wait, by_number: bool
) -> None:
    window = opened(watched, wait, by_number=by_number)
    panel, canvas, strip = (
        window.history.panel,
        window.history.panel.canvas,
        window.time_panel.strip,
    )
    other = added(window, wait, TrackSpec("Generations", "Count"))
    assert strip.span is None
    wheel(canvas, 3)
    spans = [list(span) if span else [] for span in (strip.span, panel.time.span)]
    assert spans[0][:1] == pytest.approx(spans[1][:1])
    assert len(spans[0]) == 2
    wait(lambda: is_settled(panel.first) and is_settled(other))
    views = [track.canvas.view() for track in panel.tracks]
    assert views[0] is not None
    assert views[1] is not None
    assert (views[0].first, views[0].last) == (views[1].first, views[1].last)
    before = panel.time.span
    wheel(canvas, 1, Qt.KeyboardModifier.ShiftModifier)
    assert panel.time.span != before
    strip.show_whole()
    assert panel.time.span is None
    strip.zoom_at(0.5, strip.width() / 2)
    assert panel.time.span == strip.span
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.area().center())
    assert panel.time.span is None
    assert not strip.zoomed


def test_what_is_under_the_mouse_stays_there_while_one_looks_closer(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    canvas = window.history.panel.canvas
    drawn = canvas.drawn
    assert drawn is not None
    sequence, key = int(drawn.events.sequences[5]), window.session.live.spaces[1].names.key(100)
    before = canvas.position_of(sequence, key)
    assert before is not None
    area = canvas.area()
    x, y = (before.x() - area.left()) / area.width(), (before.y() - area.top()) / area.height()
    wheel(canvas, 2, x=x, y=y)
    wheel(canvas, 2, Qt.KeyboardModifier.ControlModifier, x=x, y=y)
    at_once = canvas.position_of(sequence, key)
    wait(lambda: is_settled(window.history.panel.first))
    after = canvas.position_of(sequence, key)
    assert at_once is not None
    assert after is not None
    assert (after - before).manhattanLength() < 2
    assert (at_once - before).manhattanLength() < 2, "also before it was drawn"
    under = canvas.under(after)
    assert under is not None
    assert under.sequences[0] <= sequence <= under.sequences[1]
    assert under.keys[0] <= key <= under.keys[1]


def test_tiles_are_looked_at_closely_each_with_its_own_value(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    track = window.history.panel.first
    wheel(track.canvas, 8, Qt.KeyboardModifier.ControlModifier)
    wait(lambda: is_settled(track))
    view = track.canvas.view()
    assert view is not None
    assert view.last_tile - view.first_tile < 120
    assert track.scroll_bar.isVisible()
    before = view.first_tile
    track.scroll_bar.setValue(round(before) + 40)
    wait(lambda: is_settled(track))
    moved = track.canvas.view()
    assert moved is not None
    assert moved.first_tile == pytest.approx(round(before) + 40)
    window.history.panel.set_tile_pixels(6.0)
    wait(lambda: is_settled(track))
    sized = track.canvas.view()
    assert sized is not None
    assert (sized.last_tile - sized.first_tile) * 6 == pytest.approx(track.canvas.area().height())
    window.history.panel.fit()
    wait(lambda: is_settled(track))
    assert not track.scroll_bar.isVisible()


def test_tiles_that_are_kept_together_are_read_again_when_one_looks_closer(
    watched: Watched, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = HistoryGraph.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "bins", 200)
    window = opened(watched, wait)
    track = window.history.panel.first
    assert track.canvas.drawn is not None
    assert track.canvas.drawn.group == 2
    track.canvas.show_tiles(100, 120)
    expected = (
        np.array(
            [watched.heaps[number][100:120] for number in range(1, EVENTS + 1)], dtype=np.int64
        )
        * (LEVELS - 1)
        // 255
        + LOW
    )

    def shows_each() -> bool:
        drawn = track.canvas.drawn
        return (
            drawn is not None
            and drawn.codes.shape == expected.shape
            and bool((drawn.codes == expected).all())
        )

    wait(shows_each)
    heap = len(watched.heaps)
    watched.happen(1)
    expected = np.vstack(
        [expected, watched.heaps[heap + 1][100:120] * np.int64(LEVELS - 1) // 255 + LOW]
    )
    wait(shows_each)


def test_a_busy_painter_loses_no_row_that_is_read_again(
    watched: Watched, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = HistoryGraph.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "bins", 40)
    do = HistoryPainter.do

    def do_late(painter: HistoryPainter, work: Callable[[], None]) -> None:
        def late() -> None:
            sleep(0.3)  # the thread that reads would long be through
            work()

        do(painter, late)

    track = opened(watched, wait).history.panel.first
    monkeypatch.setattr(HistoryPainter, "do", do_late)
    track.canvas.show_tiles(100, 120)
    codes = [watched.heaps[number][100:120] for number in range(1, EVENTS + 1)]
    expected = np.array(codes, dtype=np.int64) * (LEVELS - 1) // 255 + LOW
    wait(
        lambda: (
            track.canvas.drawn is not None and np.array_equal(track.canvas.drawn.codes, expected)
        )
    )


def test_keys_move_and_zoom_the_graph_and_not_the_tiles(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    canvas, panel = window.history.panel.canvas, window.history.panel
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.area().center())
    wait(lambda: window.session.number > 0)
    canvas.setFocus()
    zoomed = window.spaces.panels[1].canvas.picture.zoom
    QTest.keyClick(canvas, Qt.Key.Key_Plus)
    first = panel.time.span
    assert first is not None
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    second = panel.time.span
    assert second is not None
    assert second[0] > first[0]
    QTest.keyClick(canvas, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert canvas.tiles is not None
    assert window.spaces.panels[1].canvas.picture.zoom == zoomed
    QTest.keyClick(canvas, Qt.Key.Key_0)
    assert panel.time.span is None
    assert canvas.tiles is None


def test_the_middle_button_moves_along(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    canvas, panel = window.history.panel.canvas, window.history.panel
    wheel(canvas, 4)
    span = panel.time.span
    assert span is not None
    middle = canvas.area().center()
    QTest.mousePress(canvas, Qt.MouseButton.MiddleButton, pos=middle)
    QTest.mouseMove(canvas, middle + QPoint(60, 0))
    QTest.mouseRelease(canvas, Qt.MouseButton.MiddleButton, pos=middle + QPoint(60, 0))
    moved = panel.time.span
    assert moved is not None
    assert moved[0] < span[0]
    assert not canvas.brushes


def test_what_was_changed_of_graphs_is_taken_back_and_done_again(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    panel = window.history.panel
    added(window, wait, TrackSpec("Generations", "Count"))
    panel.set_pooling(Pooling.LEAST)
    wheel(panel.canvas, 3)
    wheel(panel.canvas, 3, Qt.KeyboardModifier.ControlModifier)
    span, tiles = panel.time.span, panel.canvas.tiles
    for _ in range(2):
        window.actions_table.run("view.undo")
    assert panel.time.span is None, "three turns of the wheel are one change"
    assert panel.canvas.tiles is None
    window.actions_table.run("view.undo")
    assert {track.spec.pooling for track in panel.tracks} == {Pooling.GREATEST}
    window.actions_table.run("view.undo")
    assert len(panel.tracks) == 1
    for _ in range(4):
        window.actions_table.run("view.redo")
    assert (panel.time.span, panel.canvas.tiles) == (span, tiles)
    assert [track.spec.pooling for track in panel.tracks] == [Pooling.LEAST] * 2
    wait(partial(has_drawn, panel.tracks[1], EVENTS))


# ------------------------------------------------------------------ lines and pooling


def test_lines_stand_every_so_many_tiles_and_at_the_events_of_a_kind_with_their_count(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    track = window.history.panel.first
    window.history.panel.set_lines(every=80, at_kind=0)
    wait(lambda: track.canvas.drawn is not None and bool(track.canvas.drawn.event_lines))
    drawn = track.canvas.drawn
    assert drawn is not None
    assert [line.value for line in drawn.tile_lines] == [80, 160, 240, 320]
    assert [line.value for line in drawn.event_lines] == drawn.events.sequences.tolist()
    assert track.palette_now is not None
    assert (drawn.pixels[drawn.tile_lines[0].pixel] == track.palette_now.line).all()
    window.history.panel.set_lines(every=0, at_kind=1)
    wait(lambda: is_settled(track))
    drawn = track.canvas.drawn
    assert drawn is not None
    assert not drawn.tile_lines
    assert not drawn.event_lines, "no collection has happened"


def test_a_pixel_shows_the_greatest_the_mean_or_the_least_of_its_tiles(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    track = window.history.panel.first
    found = {}
    for pooling in Pooling:
        window.history.panel.set_pooling(pooling)
        wait(lambda: has_drawn(track, EVENTS) and is_settled(track))
        graph, palette = track.graph, track.palette_now
        assert graph is not None
        assert palette is not None
        assert graph.pooling is pooling
        with graph.events.lock:
            found[pooling] = graph.draw(graph.whole(EVENTS, 1), palette).codes[:, 0].astype(int)
    levels = np.array([watched.heaps[number] for number in range(1, EVENTS + 1)]) / 255 * 249 + 5
    assert np.abs(found[Pooling.GREATEST] - levels.max(axis=1)).max() <= 1
    assert np.abs(found[Pooling.MEAN] - levels.mean(axis=1)).max() <= 1.5
    assert np.abs(found[Pooling.LEAST] - levels.min(axis=1)).max() <= 1


# ------------------------------------------------------------------------- brushes


def test_several_ranges_of_tiles_are_plotted_each_with_a_name_and_a_colour(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    track = window.history.panel.first
    drag(track.canvas, 0.1, 0.3)
    drag(track.canvas, 0.5, 0.9)
    wait(
        lambda: (
            len(track.series.plotted) == 2
            and all(len(one.series) == EVENTS for one in track.series.plotted)
        )
    )
    one, two = (plotted.brush for plotted in track.series.plotted)
    assert one.colour != two.colour
    assert one.high < two.low
    points = [plotted.series.points() for plotted in track.series.plotted]
    assert points[0][0].tiles < points[1][0].tiles
    track.rename_brush(two, "the old ones")
    assert "the old ones" in [
        button.text().removeprefix("■ ") for button in track.findChildren(QPushButton)
    ]
    watched.happen(2)
    wait(lambda: all(len(plotted.series) == EVENTS + 2 for plotted in track.series.plotted))
    track.remove_brush(one)
    assert [plotted.brush for plotted in track.series.plotted] == [two]
    window.actions_table.run("history.no-tiles")
    assert not track.series.isVisible()


# -------------------------------------------------------------------------- files


def test_the_picture_that_is_written_has_the_pixels_title_axis_and_legend(
    watched: Watched, wait: Wait, tmp_path: Path
) -> None:
    window = opened(watched, wait)
    added(window, wait, TrackSpec("Generations", "Count"))
    window.history.panel.set_lines(at_kind=0)
    wait(lambda: all(is_settled(track) for track in window.history.panel.tracks))
    export = window.history.menus.export
    for name in ("a.svg", "a.png"):
        export.picture(tmp_path / name)
        wait(partial(says, window, f"written: {tmp_path / name}"))
    root = ET.parse(tmp_path / "a.svg").getroot()
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {
        "Test program, pid 1",
        "Heap · Used",
        "Generations · Count",
        "unknown",
        "zero",
        "12",
    } <= set(texts)
    images = list(root.iter(f"{SVG}image"))
    picture = read_png(tmp_path / "a.png")
    assert picture.shape == (int(root.attrib["height"]), int(root.attrib["width"]))
    at = 0
    for image, track in zip(images, window.history.panel.tracks, strict=True):
        drawn = track.canvas.drawn
        assert drawn is not None
        (tmp_path / "inner.png").write_bytes(
            base64.b64decode(image.attrib[XLINK].partition(",")[2])
        )
        assert (read_png(tmp_path / "inner.png") == drawn.pixels).all()
        # Somewhere below the one before stand the very same pixels.
        height, width = drawn.pixels.shape
        rows = [
            y
            for y in range(at, len(picture) - height + 1)
            if (picture[y : y + height, 56 : 56 + width] == drawn.pixels).all()
        ]
        assert rows
        at = rows[0] + height


def test_the_series_that_are_written_are_what_the_tiles_held(
    watched: Watched, wait: Wait, tmp_path: Path
) -> None:
    window = opened(watched, wait)
    track, export = window.history.panel.first, window.history.menus.export
    export.series(tmp_path / "none.csv")
    assert "no tiles are selected" in window.history.panel.said.text()
    names = window.session.live.spaces[1].names
    track.add_brush(names.key(10), names.key(19))
    track.add_brush(names.key(100), names.key(100))
    wait(
        lambda: (
            all(len(one.series) == EVENTS for one in track.series.plotted)
            and len(track.series.plotted) == 2
        )
    )
    export.series(tmp_path / "a.csv")
    wait(partial(says, window, "written"))
    rows = list(csv.DictReader(StringIO((tmp_path / "a.csv").read_text())))
    assert [int(row["event"]) for row in rows] == list(range(1, EVENTS + 1))
    for row in rows:
        heap = watched.heaps[int(row["event"])].astype(int)
        assert int(row["tiles 1 sum"]) == heap[10:20].sum()
        assert int(row["tiles 1 greatest"]) == heap[10:20].max()
        assert int(row["tiles 2 sum"]) == heap[100]
        assert (row["tiles 1 covered"], row["tiles 2 tiles"]) == ("10", "1")


# ----------------------------------------------------------------- a session that continues


def test_graphs_ranges_and_lines_are_there_again_after_a_reconnect(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    panel = window.history.panel
    added(window, wait, TrackSpec("Generations", "Count"))
    panel.set_lines(every=100)
    drag(panel.canvas, 0.2, 0.6)
    brush = panel.canvas.brushes[0]
    window.link.close()
    wait(lambda: not window.link.status.phase.connected)
    window.link.reconnect()
    wait(lambda: window.link.status.phase.connected and window.session.live.last_event is not None)
    watched.happen(2)
    wait(
        lambda: all(
            (drawn := track.canvas.drawn) is not None and len(drawn.events) >= EVENTS + 2
            for track in panel.tracks
        )
    )
    assert [track.title.text() for track in panel.tracks] == ["Heap · Used", "Generations · Count"]
    assert panel.canvas.every == 100
    assert panel.canvas.brushes == [brush]
    wait(
        lambda: len(panel.series.plotted) == 1 and len(panel.series.plotted[0].series) >= EVENTS + 2
    )


def test_a_window_is_closed_in_the_middle_of_filling_a_graph(
    watched: Watched, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go_on = threading.Event(), threading.Event()
    take = HistoryGraph.take

    def waits(graph: HistoryGraph, row: HistoryRow, *, number: int = 0) -> bool:
        entered.set()
        assert go_on.wait(30)
        return take(graph, row, number=number)

    monkeypatch.setattr(HistoryGraph, "take", waits)
    window = watched.window
    QTest.keyClick(window, Qt.Key.Key_H)
    wait(entered.is_set)
    threading.Timer(0.05, go_on.set).start()
    window.close()
    assert not [one.name for one in threading.enumerate() if "history" in one.name]
    assert window.history.panel.graph is None


# ----------------------------------------------------------------------- smoothness


def test_no_graph_is_ever_drawn_or_filled_in_the_thread_of_the_window(
    watched: Watched, wait: Wait, watchdog: Watchdog, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[str] = set()
    look, take = HistoryGraph.look, HistoryGraph.take

    def looking(graph: HistoryGraph, request: GraphOptions, palette: Palette) -> HistoryPicture:
        threads.add(threading.current_thread().name)
        return look(graph, request, palette)

    def taking(graph: HistoryGraph, row: HistoryRow, *, number: int = 0) -> bool:
        threads.add(threading.current_thread().name)
        return take(graph, row, number=number)

    monkeypatch.setattr(HistoryGraph, "look", looking)
    monkeypatch.setattr(HistoryGraph, "take", taking)
    window = opened(watched, wait)
    wheel(window.history.panel.canvas, 3)
    window.resize(1100, 1000)
    watched.happen(3)
    wait(lambda: is_settled(window.history.panel.first))
    assert threads == {"gcspy history painter", "gcspy history filling"}
    assert len(watchdog.waits)


def test_a_long_recording_is_seen_coarsely_first_and_then_finely(
    socket_directory: Path, make_window: MakeWindow, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filler, "_FEW_EVENTS", 10)
    held, go_on = threading.Event(), threading.Event()
    read = filler.HistoryFiller._read

    def waits(filling: filler.HistoryFiller, recording: Recording, first: int, last: int) -> None:
        held.set()
        assert go_on.wait(30)
        read(filling, recording, first, last)

    monkeypatch.setattr(filler.HistoryFiller, "_read", waits)
    with serve_recording(
        Recording.open(SAMPLE),
        f"unix:{socket_directory}/p.sock",
        beginning=PlaybackStart(running=False),
    ):
        window = make_window(f"unix:{socket_directory}/p.sock")
        window.bookmark_store.use_files(SAMPLE)
        wait(lambda: window.navigator.usable)
        window.docks.toggle("history")
        canvas = window.history.panel.canvas
        wait(lambda: canvas.drawn is not None and bool(canvas.drawn.preview.any()))
        assert held.wait(60)
        assert canvas.drawn is not None
        assert canvas.drawn.preview.all(), "nothing was read yet but what stands for the rest"
        assert "0% read" in window.history.panel.said.text()
        go_on.set()
        wait(lambda: canvas.drawn is not None and not canvas.drawn.preview.any())
        assert "read" not in window.history.panel.said.text()
        window.close()
