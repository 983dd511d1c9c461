"""Memory behind the timeline: live from the first event, while looking back, in recordings and in a trace."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.traced import TracedOptions
from gcspy_protocol.address import parse_address
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gcspy.objects.trace_conversion import traced_recording
from gcspy_client.model.colour import VISIONS, Floats, distance, oklab_from_rgb, seen_by
from gcspy_client.model.memory_history import MemoryRole
from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.collection_costs import PooledCosts
from gcspy_client.model.playback.memory_samples import PooledMemory
from gcspy_client.view.theme import tokens
from gcspy_client.view.time.memory_plot import MemoryPlot, draw_plot, role_colour
from gcspy_client.view.time.timeline import TimelineStrip
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.memory_program import GC_END, GC_START, MIB, MemoryProgram, Said
from tests.client.program import Program
from tests.client.watching import Wait

ROOT = Path(__file__).parents[4]
PROMOTE = ROOT / "objects" / "samples" / "anttracks" / "promote.tar.xz"
DEMO = ROOT / "replay" / "samples" / "demo-cpython-3.11.gcspy"
SHIFT = Qt.KeyboardModifier.ShiftModifier
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def speaking() -> Iterator[MemoryProgram]:
    made = MemoryProgram()
    yield made
    made.server.close()
    made.stop()


class Watching:
    """A window on a program that says what memory it has."""

    def __init__(self, window: MainWindow, program: MemoryProgram, wait: Wait) -> None:
        self.window, self.program, self._wait = window, program, wait

    @property
    def strip(self) -> TimelineStrip:
        return self.window.time_panel.strip

    def say(self, *said: Said) -> None:
        """Let events happen, each received and kept."""
        for one in said:
            before = self.window.session.events_seen
            self.program.say(one)
            self._wait(partial(self._has_seen, before + 1))
        assert self.window.shift.settle(60)
        self.window.settle()
        self.strip.repaint()

    def _has_seen(self, events: int) -> bool:
        return self.window.session.events_seen >= events

    def values(self, number: int) -> list[int | None]:
        return [one.value for one in self.window.ranges.feed.track.at(number)]


@pytest.fixture
def watching(
    speaking: MemoryProgram, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> Watching:
    address = speaking.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    window = make_window(address)
    wait(lambda: window.link.status.phase.connected)
    return Watching(window, speaking, wait)


def steps(count: int) -> list[Said]:
    """Memory that grows by a MiB an event."""
    return [Said((100 + i) * MIB, (60 + i) * MIB, (50 + i) * MIB) for i in range(count)]


def has_memory(window: MainWindow) -> bool:
    return window.ranges.feed.track.has_memory


def is_compact(window: MainWindow) -> bool:
    return window.ranges.bar.compact


def is_zoomed(strip: TimelineStrip) -> bool:
    return strip.zoomed


def picture(strip: TimelineStrip) -> QImage:
    return strip.grab().toImage()


def test_memory_is_there_with_the_first_event(watching: Watching) -> None:
    strip = watching.strip
    watching.say(Said(100 * MIB, 60 * MIB, 50 * MIB))
    assert watching.values(1) == [100 * MIB, 60 * MIB, 50 * MIB]
    plot = strip.plot()
    assert plot.height() >= 56
    memory = strip.layer.memory
    assert memory is not None
    assert memory.high[:3, 0].tolist() == [100 * MIB, 60 * MIB, 50 * MIB]
    assert strip.layer.top == 128 * MIB
    words = strip.words_at(QPointF(strip.x_of(1), plot.center().y()))
    assert "Resident: 100 MiB" in words
    assert "Committed: 60.0 MiB  (taken from the system by arena)" in words
    assert "Used: 50.0 MiB  (in use in arena)" in words


def test_half_of_a_small_window_stays_for_spaces(watching: Watching) -> None:
    watching.say(*steps(3))
    window = watching.window
    assert window.height() == 720
    assert window.docks.area.height() >= 360
    window.resize(1024, 600)
    watching.say(*steps(1))
    assert watching.strip.plot().height() >= 40
    assert window.docks.area.height() >= 300


def test_what_is_unknown_is_a_gap_in_the_picture(watching: Watching) -> None:
    strip = watching.strip
    unknown = Said(None, None, None)
    watching.say(*steps(4), unknown, unknown, *steps(4))
    strip.set_by_time(False)
    strip.repaint()
    assert watching.values(5) == [None, None, None]
    image, plot = picture(strip), strip.plot()
    ground = QColor(tokens(Theme.DARK).canvas)
    low = round(plot.bottom()) - 2
    middle = round((strip.x_of(5) + strip.x_of(6)) / 2)
    assert image.pixelColor(middle, low) == ground
    assert image.pixelColor(round(strip.x_of(3)), low) != ground
    assert image.pixelColor(round(strip.x_of(8)), low) != ground
    assert "Used: unknown" in strip.words_at(QPointF(strip.x_of(5), plot.center().y()))


def test_while_looking_back_memory_goes_on_and_the_legend_is_of_then(
    watching: Watching, wait: Wait
) -> None:
    window, strip = watching.window, watching.strip
    watching.say(*steps(5))
    window.navigator.go_to(2)
    wait(lambda: window.session.number == 2)
    watching.say(*steps(3))
    assert window.session.number == 2
    assert watching.values(8) == [102 * MIB, 62 * MIB, 52 * MIB]
    memory = strip.layer.memory
    assert memory is not None
    assert memory.most == 104 * MIB
    assert watching.values(window.session.number)[0] == 101 * MIB


def test_a_collection_is_a_bar_as_high_as_it_took_and_says_so(watching: Watching) -> None:
    strip = watching.strip
    for took in (10, 40, 20):
        watching.say(
            Said(MIB, MIB, MIB, GC_START), Said(MIB, MIB, MIB, GC_END, nanos=took * 1_000_000)
        )
    watching.say(Said(None, None, None))
    costs = watching.window.ranges.feed.track.costs
    assert costs.nanos.tolist() == [10_000_000, 40_000_000, 20_000_000]
    strip.repaint()
    assert strip.layer.most_nanos == 40_000_000
    words = strip.words_at(QPointF(strip.x_of(4), strip.plot().center().y()))
    assert "collection took 40.0 ms" in words
    assert strip.layer.top == 1 * MIB, "the scale is that of memory, and not of times"


def test_a_program_without_memory_has_the_timeline_that_it_had(
    program: Program, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    address = program.server.serve(f"unix:{socket_directory}/b.sock").addresses[0]
    window = make_window(address)
    wait(lambda: window.link.status.phase.connected)
    program.let_happen(3)
    wait(lambda: window.session.events_seen >= 3)
    window.settle()
    strip = window.time_panel.strip
    assert strip.plot().height() == 0
    picture(strip)
    assert "Used" not in strip.words_at(QPointF(strip.x_of(2), strip.body.center().y()))


def test_another_session_in_the_window_has_other_memory(
    watching: Watching, program: Program, socket_directory: Path, wait: Wait
) -> None:
    window = watching.window
    watching.say(*steps(3))
    assert has_memory(window)
    address = program.server.serve(f"unix:{socket_directory}/c.sock").addresses[0]
    window.link.open(parse_address(address))
    program.let_happen_when_watched(2)
    wait(lambda: window.session.timeline.last == 2)
    window.settle()
    assert not has_memory(window)
    assert window.time_panel.strip.plot().height() == 0


@pytest.fixture
def played(make_window: MakeWindow, socket_directory: Path, wait: Wait) -> Iterator[MainWindow]:
    """A window on a recording of a process, of which the files are known."""
    recording = Recording.open(DEMO)
    last = recording.last
    playing = serve_recording(
        recording, f"unix:{socket_directory}/p.sock", beginning=PlaybackStart(running=False)
    )
    with playing:
        window = make_window()
        window.bookmark_store.use_files(DEMO)
        window.link.open(parse_address(playing.addresses[0]))
        wait(lambda: len(window.session.timeline) == last)
        wait(lambda: window.ranges.feed.settled and len(window.ranges.feed.track.samples) == last)
        window.settle()
        yield window
        window.close()


def test_a_recording_has_the_memory_of_all_its_events_at_once(played: MainWindow) -> None:
    strip, track = played.time_panel.strip, played.ranges.feed.track
    strip.repaint()
    assert played.session.number == 1
    assert [one.name for one in track.source.quantities] == ["Resident", "Carved", "Used"]
    memory = strip.layer.memory
    assert memory is not None
    last = played.session.timeline.last
    resident, carved, used = (track.samples.at(i, last).value for i in range(3))
    assert resident is not None
    assert carved is not None
    assert used is not None
    assert resident > carved >= used > 0
    assert int(memory.high[0, -1]) == resident
    assert (memory.high[:3] >= 0).mean() > 0.9


def test_a_recording_of_which_the_files_are_not_known_has_what_was_seen(
    make_window: MakeWindow, socket_directory: Path, wait: Wait
) -> None:
    recording = Recording.open(DEMO)
    playing = serve_recording(
        recording, f"unix:{socket_directory}/p.sock", beginning=PlaybackStart(running=False)
    )
    with playing:
        window = make_window(playing.addresses[0])
        wait(lambda: window.session.number == 1 and len(window.session.timeline) > 30)
        window.navigator.go_to(20)
        wait(lambda: window.session.number == 20)
        window.settle()
        track = window.ranges.feed.track
        assert track.samples.at(0, 20).value is not None
        assert track.samples.at(0, 10).value is None, "nobody has seen it"
        window.close()


def test_a_trace_has_the_used_bytes_of_its_heap_and_what_its_collections_took(
    make_window: MakeWindow, socket_directory: Path, wait: Wait
) -> None:
    options = TracedOptions(tile_bytes=1 << 17, clock_bytes=1 << 22)
    with traced_recording(PROMOTE, options) as made:
        recording = Recording.open(made.path)
        last = recording.last
        address = f"unix:{socket_directory}/t.sock"
        start = PlaybackStart(running=False)
        with serve_recording(recording, address, beginning=start):
            window = make_window()
            window.bookmark_store.use_files(made.path)
            window.link.open(parse_address(address))
            wait(lambda: len(window.session.timeline) == last)
            feed = window.ranges.feed
            wait(lambda: feed.settled and len(feed.track.samples) == last)
            window.settle()
            track = feed.track
            (used,) = track.source.quantities
            assert used.about == 'sum of "Used" of Eden, Survivors, Old'
            then = recording.seek(last)
            sums = [
                state.summary.values[0]
                for space in then.spaces.values()
                for state in space.streams.values()
                if state.schema.name == "Used" and state.summary is not None
            ]
            assert track.samples.at(0, last).value == sum(sums) > 0
            assert len(track.costs.numbers) > 0
            assert (track.costs.nanos >= 0).all()
            window.close()


# ----------------------------------------------------------------------- choosing a range


def drag(strip: TimelineStrip, first: int, last: int, y: float) -> None:
    begin, end = (QPoint(round(strip.x_of(number)), round(y)) for number in (first, last))
    QTest.mousePress(strip, LEFT, pos=begin)
    QTest.mouseMove(strip, (begin + end) / 2)
    QTest.mouseMove(strip, end)
    QTest.mouseRelease(strip, LEFT, pos=end)


def test_a_drag_over_memory_chooses_a_range_and_a_click_goes_there(
    watching: Watching, wait: Wait
) -> None:
    window, strip = watching.window, watching.strip
    watching.say(*steps(12))
    strip.set_by_time(False)
    y = strip.plot().center().y()
    drag(strip, 3, 9, y)
    assert window.navigator.chosen == (3, 9)
    assert window.session.is_live, "choosing goes nowhere"
    QTest.mouseClick(strip, LEFT, pos=QPoint(round(strip.x_of(5)), round(y)))
    wait(lambda: window.session.number == 5)
    assert window.navigator.chosen == (3, 9)


def test_a_drag_over_the_lanes_still_goes_along(watching: Watching, wait: Wait) -> None:
    window, strip = watching.window, watching.strip
    watching.say(*steps(12))
    strip.set_by_time(False)
    drag(strip, 3, 9, strip.body.bottom() - 4)
    wait(lambda: window.session.number == 9)
    assert window.navigator.chosen is None


def test_keys_choose_a_range_from_the_event_on_display(watching: Watching, wait: Wait) -> None:
    window, strip = watching.window, watching.strip
    watching.say(*steps(30))
    window.navigator.go_to(15)
    wait(lambda: window.session.number == 15)
    window.settle()
    strip.setFocus()
    for key, wanted in (
        (Qt.Key.Key_Right, (15, 16)),
        (Qt.Key.Key_Right, (15, 17)),
        (Qt.Key.Key_Left, (15, 16)),
        (Qt.Key.Key_Down, (6, 15)),
        (Qt.Key.Key_End, (15, 30)),
        (Qt.Key.Key_Home, (1, 15)),
    ):
        QTest.keyClick(strip, key, SHIFT)
        assert window.navigator.chosen == wanted, key
    QTest.keyClick(strip, Qt.Key.Key_PageDown, SHIFT)
    assert window.navigator.chosen is not None
    assert 1 < window.navigator.chosen[0] < 15
    assert window.session.number == 15
    QTest.keyClick(strip, Qt.Key.Key_Delete)
    assert window.navigator.chosen is None


def test_keys_zoom_the_timeline_that_has_the_focus(watching: Watching) -> None:
    window, strip = watching.window, watching.strip
    watching.say(*steps(30))
    strip.setFocus()
    assert not is_zoomed(strip)
    QTest.keyClick(strip, Qt.Key.Key_Plus)
    QTest.keyClick(strip, Qt.Key.Key_Plus)
    first = strip.span
    assert first is not None
    QTest.keyClick(strip, Qt.Key.Key_Minus)
    second = strip.span
    assert second is not None
    assert second[1] - second[0] > first[1] - first[0]
    QTest.keyClick(strip, Qt.Key.Key_0)
    assert not is_zoomed(strip)
    window.navigator.choose_range(10, 20)
    window.settle()
    assert window.actions_table.run("time.zoom-range")
    assert is_zoomed(strip)
    left, right = strip.x_of(10), strip.x_of(20)
    assert right - left > 0.9 * strip.plot().width()


def test_a_range_says_how_memory_grew_and_what_collections_took(watching: Watching) -> None:
    window = watching.window
    gc = [Said(110 * MIB, MIB, MIB, GC_START), Said(120 * MIB, MIB, MIB, GC_END, nanos=7_000_000)]
    watching.say(*steps(5), *gc, *steps(5))
    window.navigator.choose_range(2, 10)
    assert window.actions_table.run("time.range-statistics")
    window.settle()
    texts = window.ranges.panel.facts.texts()
    assert texts["Events"] == "2 to 10"
    assert texts["Resident"] == "101 MiB to 102 MiB: +1.0 MiB"
    assert texts["least, greatest"] == "100 MiB, 120 MiB"
    assert texts["Number"] == "1"
    assert texts["Cost"].startswith("7.00 ms in all")
    assert texts["Greatest cost"] == "7.00 ms (event 7)"
    assert (texts["Clock"], texts["GC start"], texts["GC end"]) == ("7", "1", "1")
    assert "Resident +1.0 MiB  ·  1 collection, 7.00 ms" in window.ranges.bar.words.text()
    window.navigator.forget_range()
    window.settle()
    assert window.ranges.panel.facts.texts() == {}
    assert not window.ranges.bar.isVisible()


def test_the_difference_between_both_ends_is_shown(watching: Watching, wait: Wait) -> None:
    window = watching.window
    watching.say(*steps(12))
    assert not window.actions_table.run("time.compare-range"), "there is no range"
    window.navigator.choose_range(3, 9)
    window.settle()
    assert window.actions_table.run("time.compare-range")
    wait(lambda: window.compare.moment is not None and window.session.number == 9)
    assert window.compare.moment is not None
    assert window.compare.moment.number == 3
    assert window.compare.painter.on


def test_the_bar_lies_beside_the_range_or_is_small(watching: Watching) -> None:
    window, strip = watching.window, watching.strip
    watching.say(*steps(40))
    strip.set_by_time(False)
    bar = window.ranges.bar
    window.navigator.choose_range(2, 8)
    window.settle()
    assert bar.isVisible()
    assert not is_compact(window)
    assert bar.geometry().left() > strip.x_of(8)
    assert strip.rect().contains(bar.geometry())
    window.navigator.choose_range(2, 39)
    window.settle()
    assert is_compact(window)
    assert strip.rect().contains(bar.geometry())
    assert [action.text() for action in bar.make_menu().actions()] == [
        "Difference",
        "Statistics",
        "Save…",
        "Zoom",
        "No range",
    ]
    bar.make_menu().actions()[-1].trigger()
    assert window.navigator.chosen is None


def test_the_range_is_what_saving_proposes(watching: Watching) -> None:
    watching.say(*steps(12))
    watching.window.navigator.choose_range(3, 9)
    offer = watching.window.navigator.offer()
    assert offer is not None
    assert offer.chosen == (3, 9)


# ------------------------------------------------------------------------------ the image


def oklab(colour: QColor) -> Floats:
    rgb = np.array([colour.red(), colour.green(), colour.blue()], dtype=np.float64)
    return oklab_from_rgb(rgb)


def luminance(colour: QColor) -> float:
    parts = np.array([colour.redF(), colour.greenF(), colour.blueF()])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("theme", list(Theme))
def test_lines_are_told_apart_by_all_eyes_and_stand_out_from_the_ground(
    qtbot: QtBot, theme: Theme
) -> None:
    colours = [role_colour(role, theme) for role in MemoryRole]
    ground = luminance(QColor(tokens(theme).canvas))
    for colour in colours:
        low, high = sorted((luminance(colour), ground))
        assert (high + 0.05) / (low + 0.05) >= 3, colour.name()
    for vision in VISIONS:
        for i, one in enumerate(colours):
            for other in colours[i + 1 :]:
                apart = distance(seen_by(vision, oklab(one)), seen_by(vision, oklab(other)))
                assert float(apart) >= 0.1, (vision, one.name(), other.name())


def plot_of(costs: PooledCosts | None, values: list[int], top: int = 100) -> MemoryPlot:
    column = np.array([values], dtype=np.int64)
    return MemoryPlot(
        memory=PooledMemory(column, column),
        roles=(MemoryRole.USED,),
        top=top,
        costs=costs,
        most_nanos=100,
        colours=(QColor("red"), QColor("blue")),
    )


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("theme", [Theme.DARK, Theme.LIGHT])
def test_an_area_is_as_high_as_its_value(qtbot: QtBot, theme: Theme, scale: float) -> None:
    values = [0, 25, 50, 100, -1, 50]
    image = draw_plot(plot_of(None, values), theme, 60, scale)
    assert (image.width(), image.height()) == (round(6 * scale), round(60 * scale))
    ground, line = QColor(tokens(theme).canvas), role_colour(MemoryRole.USED, theme)
    for column, value in enumerate(values):
        x = int((column + 0.5) * scale)
        colours = [image.pixelColor(x, y) for y in range(image.height())]
        filled = sum(colour != ground for colour in colours)
        if value < 0:
            assert filled == 0
        else:
            top = colours.index(line)
            assert abs(top - (1 - value / 100) * (image.height() - 1)) <= 1


def test_bars_are_in_proportion_to_costs_and_marks_are_low(qtbot: QtBot) -> None:
    columns = 40
    counts, most = np.zeros(columns, dtype=np.int64), np.full(columns, -1, dtype=np.int64)
    kinds = np.full(columns, -1, dtype=np.int64)
    for column, cost in ((5, 100), (15, 50), (25, -1), (35, 0)):
        counts[column], most[column], kinds[column] = 1, cost, 1
    costs = PooledCosts(counts, most, np.maximum(most, 0), (most < 0) * counts, kinds)
    image = draw_plot(plot_of(costs, [-1] * columns), Theme.DARK, 100, 1.0)
    blue = QColor("blue")

    def height(x: int) -> int:
        return sum(image.pixelColor(x, y) == blue for y in range(image.height()))

    assert height(15) * 2 == pytest.approx(height(5), abs=2)
    assert height(5) < 70, "what a bar stands for is told above it"
    assert 0 < height(25) <= 6
    assert 0 < height(35) <= 4
    assert height(10) == 0
