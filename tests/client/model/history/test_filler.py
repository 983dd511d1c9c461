"""A recording gives the same rows as the live session; reading continues as the recording grows, and can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_replay.file import MemorySource, MemoryStore, Recording, RecordingWriter
from gcspy_replay.file.notebook import SavedSession
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.history import filler
from gcspy_client.model.history.events import HistoryEvents
from gcspy_client.model.history.filler import FillTarget, HistoryFiller, spread
from gcspy_client.model.history.graph import HistoryGraph
from gcspy_client.model.history.rows import HistoryRow, RowMaker
from gcspy_client.model.history.series import SeriesKind, SeriesMaker, SeriesPoint, TileSeries
from gcspy_client.model.history.view import GraphOptions, HistoryPicture
from gcspy_client.model.palette import Theme, sequential
from gcspy_client.model.tile_source import StreamSource
from tests.client.model.changing import STREAM, Changing

SAMPLES = Path(__file__).resolve().parents[4] / "replay" / "samples"
SAMPLE = SAMPLES / "demo-cpython-3.11.gcspy"
PALETTE = sequential(Theme.DARK)


def source_of(recording: Recording, space: int, stream: int) -> StreamSource:
    return StreamSource(recording.seek(recording.last).spaces[space].stream(stream).schema)


@contextmanager
def filling(
    recording: Recording, events: HistoryEvents | None = None
) -> Iterator[tuple[HistoryFiller, Callable[[Callable[[], bool]], None]]]:
    """A filling, and a way to wait for what it does."""
    told = threading.Condition()

    def notify() -> None:
        with told:
            told.notify_all()

    def wait(condition: Callable[[], bool]) -> None:
        give_up = monotonic() + 60
        with told:
            while not condition():
                assert monotonic() < give_up
                told.wait(0.2)

    made = HistoryFiller(
        recording.again, (lambda _: None) if events is None else events.add_table, notify
    )
    made.start()
    try:
        yield made, wait
    finally:
        made.close()


def rows_of(graph: HistoryGraph) -> Callable[[HistoryRow, int], None]:
    def take(row: HistoryRow, number: int) -> None:
        graph.take(row, number=number)

    return take


def put(rows: dict[int, HistoryRow], row: HistoryRow, number: int) -> None:
    rows[number] = row


@pytest.mark.parametrize(
    ("name", "space"), [("demo-cpython-3.11.gcspy", 1), ("semispace.gcspy", 1)]
)
def test_rows_that_are_read_are_those_that_were_seen_live(name: str, space: int) -> None:
    with Recording.open(SAMPLES / name) as recording:
        source = source_of(recording, space, 0)
        live, read = (HistoryGraph(source, HistoryEvents()) for _ in range(2))
        for step, session in recording.steps():
            live.follow(session.spaces[space], step.change)
        with filling(recording, read.events) as (fill, wait):
            ended: list[int] = []
            fill.add(FillTarget(space, read.maker, rows_of(read), done=lambda: ended.append(1)))
            wait(lambda: bool(ended))
            assert fill.progress == 1
        assert fill.error is None
        assert read.missing(0, len(read.events)) is None
        view = live.whole(40, 300)
        assert (live.draw(view, PALETTE).pixels == read.draw(view, PALETTE).pixels).all()
        assert read.events.numbers.tolist() == list(range(recording.first, recording.last + 1))


def test_a_part_knows_what_changed_at_its_first_event() -> None:
    with Recording.open(SAMPLES / "semispace.gcspy") as recording:
        source = source_of(recording, 1, 0)
        whole: dict[int, HistoryRow] = {}
        part: dict[int, HistoryRow] = {}
        with filling(recording) as (fill, wait):
            for rows, numbers in ((whole, None), (part, (41, 60))):
                fill.add(
                    FillTarget(1, lambda: RowMaker(source), partial(put, rows), numbers=numbers)
                )
            wait(lambda: len(whole) == len(recording) and len(part) == 20)
        assert list(part) == list(range(41, 61))
        assert all((whole[number].changes == part[number].changes).all() for number in part)


def test_what_is_looked_at_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filler, "_SEGMENT", 4)
    with Recording.open(SAMPLES / "semispace.gcspy") as recording:
        source = source_of(recording, 1, 0)
        numbers: list[int] = []
        made = HistoryFiller(recording.again, lambda _: None, lambda: None)
        made.look_at(50, 57)
        ended = threading.Event()
        made.add(
            FillTarget(
                1,
                lambda: RowMaker(source),
                lambda _, number: numbers.append(number),
                done=ended.set,
            )
        )
        made.start()
        assert ended.wait(60)
        made.close()
        assert numbers[:8] == list(range(50, 58))
        assert sorted(numbers) == list(range(recording.first, recording.last + 1))


def test_a_long_recording_shows_events_from_all_over_it_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filler, "_FEW_EVENTS", 10)
    with Recording.open(SAMPLE) as recording:
        firsts = [at.place.first for at in recording.chunks if at.place.events]
        assert len(firsts) > 3, "the sample has chunks enough"
        source = source_of(recording, 1, 0)
        graph = HistoryGraph(source, HistoryEvents())
        look = GraphOptions(60, 40)
        previews: list[tuple[int, HistoryPicture]] = []
        ended = threading.Event()

        def rough(row: HistoryRow, number: int) -> None:
            graph.take_rough(row, number=number)
            previews.append((number, graph.look(look, PALETTE)))

        made = HistoryFiller(recording.again, graph.events.add_table, lambda: None)
        made.add(FillTarget(1, graph.maker, rows_of(graph), take_rough=rough, done=ended.set))
        made.start()
        assert ended.wait(60)
        made.close()
        assert sorted(number for number, _ in previews) == firsts
        assert previews[0][0] == recording.first
        last = previews[-1][1]
        assert last.preview.all(), "all is shown, and said to be of other events"
        assert (last.codes.max(axis=1) > 0).all()
        graph.forget_rough()
        assert not graph.look(look, PALETTE).preview.any()


@given(st.lists(st.integers(), unique=True, max_size=60), st.integers(1, 70))
def test_a_spread_has_each_once_and_is_even(numbers: list[int], most: int) -> None:
    numbers.sort()
    found = spread(numbers, most)
    assert len(set(found)) == len(found) == min(most, len(numbers))
    assert set(found) <= set(numbers)
    assert found[:1] == numbers[:1]
    if most >= len(numbers):
        assert sorted(found) == numbers


def test_it_follows_a_recording_that_grows_and_reads_nothing_twice() -> None:
    store, changing, rng = MemoryStore(), Changing(), np.random.default_rng(4)
    writer = RecordingWriter(store, changing.interpreter)
    sent = 0

    def write(events: int) -> None:
        nonlocal sent
        for _ in range(events):
            changing.event(
                {key: int(rng.integers(250)) for key in range(20)}, delta=changing.sequence > 0
            )
            for message in changing.messages[sent:]:
                writer.add(message)
            sent = len(changing.messages)
        writer.flush()

    write(5)
    recording = Recording([MemorySource(store.data)])
    graph = HistoryGraph(StreamSource(STREAM), HistoryEvents())
    made: list[int] = []

    class Counting(RowMaker):
        def follow(self, space: SpaceState, change: EventChange) -> HistoryRow | None:
            made.append(change.event.sequence)
            return super().follow(space, change)

    with filling(recording, graph.events) as (fill, wait):
        fill.add(FillTarget(1, lambda: Counting(StreamSource(STREAM)), rows_of(graph)))
        wait(lambda: len(made) == 5)
        write(7)
        wait(lambda: len(made) == 12)
        assert fill.progress == 1
    assert made == list(range(1, 13))
    assert graph.missing(0, 12) is None


def test_reading_stops_when_it_is_closed() -> None:
    with Recording.open(SAMPLE) as recording:
        source = source_of(recording, 1, 0)
        entered, go_on = threading.Event(), threading.Event()
        numbers: list[int] = []

        class Slow(RowMaker):
            def follow(self, space: SpaceState, change: EventChange) -> HistoryRow | None:
                entered.set()
                assert go_on.wait(30)
                return super().follow(space, change)

        made = HistoryFiller(recording.again, lambda _: None, lambda: None)
        made.add(FillTarget(1, lambda: Slow(source), lambda _, number: numbers.append(number)))
        made.start()
        assert entered.wait(30)
        closing = threading.Thread(target=made.close)
        closing.start()
        go_on.set()
        closing.join(30)
        assert not closing.is_alive()
        assert len(numbers) < len(recording)


def test_what_is_removed_is_filled_no_more() -> None:
    with Recording.open(SAMPLE) as recording:
        source = source_of(recording, 1, 0)
        first: list[int] = []
        second: list[int] = []
        ended = threading.Event()
        made = HistoryFiller(recording.again, lambda _: None, lambda: None)
        kept = FillTarget(
            1, lambda: RowMaker(source), lambda _, number: second.append(number), done=ended.set
        )
        gone = FillTarget(1, lambda: RowMaker(source), lambda _, number: first.append(number))
        made.add(gone)
        made.add(kept)
        made.remove(gone)
        made.start()
        assert ended.wait(60)
        made.close()
        made.add(gone)  # by a thread that did not know yet
        assert made.progress == 1
        assert not first
        assert len(second) == len(recording)


def test_reading_goes_on_behind_damage() -> None:
    data = bytearray((SAMPLES / "semispace.gcspy").read_bytes())
    with Recording.open(SAMPLES / "semispace.gcspy") as whole:
        rows = whole.events
        broken = int(rows["number"][5])
        data[int(rows["offset"][5]) + int(rows["bytes"][5]) // 2] ^= 0xFF
        chunks = len(whole.chunks)
        source = source_of(whole, 1, 0)
    numbers: list[int] = []
    with filling(Recording([MemorySource(data)])) as (fill, wait):
        ended: list[int] = []
        fill.add(
            FillTarget(
                1,
                lambda: RowMaker(source),
                lambda _, number: numbers.append(number),
                done=lambda: ended.append(1),
            )
        )
        wait(lambda: bool(ended))
    assert numbers[:4] == [1, 2, 3, 4]
    assert broken not in numbers
    assert (100 in numbers) == (chunks > 1)
    assert fill.error is None


def test_an_error_ends_the_reading_and_is_kept() -> None:
    with Recording.open(SAMPLE) as recording:
        source = source_of(recording, 1, 0)

        class Failing(RowMaker):
            def follow(self, space: SpaceState, change: EventChange) -> HistoryRow | None:
                raise RecordingError("the disk is gone")

        with filling(recording) as (fill, wait):
            fill.add(FillTarget(1, lambda: Failing(source), lambda *_: None))
            wait(lambda: fill.error is not None)
            assert str(fill.error) == "the disk is gone"


def test_a_part_that_is_given_up_while_it_is_read_ends_nothing() -> None:
    with Recording.open(SAMPLE) as recording:
        source, failed = source_of(recording, 1, 0), [0]
        numbers: list[int] = []
        ended = threading.Event()

        class Once(RowMaker):
            def follow(self, space: SpaceState, change: EventChange) -> HistoryRow | None:
                if len(numbers) == 7 and failed[0] < 3:
                    failed[0] += 1
                    raise RecordingError("this file is closed")
                return super().follow(space, change)

        made = HistoryFiller(recording.again, lambda _: None, lambda: None)
        made.add(
            FillTarget(
                1, lambda: Once(source), lambda _, number: numbers.append(number), done=ended.set
            )
        )
        made.start()
        assert ended.wait(60)
        made.close()
        assert made.error is None
        assert failed == [3]
        assert numbers == list(range(recording.first, recording.last + 1))


def test_a_series_of_all_tiles_is_the_sum_of_its_parts() -> None:
    with SavedSession.open(SAMPLE) as saved:
        recording = saved.recording
        state = recording.seek(recording.last).spaces[1]
        source = StreamSource(state.stream(0).schema)
        keys = np.sort(state.names.keys())
        middle = int(keys[len(keys) // 2])
        windows = [None, (0, middle - 1), (middle, (1 << 64) - 1)]
        series = [TileSeries() for _ in windows]

        def take(into: TileSeries, point: SeriesPoint, _number: int) -> None:
            into.take(point)

        with filling(recording) as (fill, wait):
            for into, window in zip(series, windows, strict=True):
                fill.add(FillTarget(1, partial(SeriesMaker, source, window), partial(take, into)))
            wait(lambda: all(len(into) == len(recording) for into in series))
        whole, low, high = (each.points() for each in series)
        for one, two, three in zip(whole, low, high, strict=True):
            assert one.total == two.total + three.total
            assert one.covered == two.covered + three.covered
            assert one.tiles == two.tiles + three.tiles
        times, mean = series[0].line(SeriesKind.MEAN)
        assert times.tolist() == recording.events["time_nanos"].tolist()
        assert np.allclose(mean, [point.total / point.covered for point in whole])
