"""What is read from a recording is what was seen live; and it can be stopped."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_replay.file import MemorySource, Recording
from gcspy_replay.file.notebook import SavedSession

from gcspy_client.model.history_events import HistoryEvents
from gcspy_client.model.history_graph import HistoryGraph
from gcspy_client.model.history_reader import HistoryReading, Target
from gcspy_client.model.history_rows import HistoryRow, RowMaker
from gcspy_client.model.palette import Theme, sequential
from gcspy_client.model.tile_series import SeriesKind, SeriesMaker, SeriesPoint, TileSeries
from gcspy_client.model.tile_source import StreamSource

SAMPLES = Path(__file__).resolve().parents[3] / "replay" / "samples"
SAMPLE = SAMPLES / "demo-cpython-3.11.gcspy"
PALETTE = sequential(Theme.DARK)


def source_of(recording: Recording, space: int, stream: int) -> StreamSource:
    return StreamSource(recording.seek(recording.last).spaces[space].stream(stream).schema)


def finished(reading: HistoryReading[HistoryRow]) -> HistoryReading[HistoryRow]:
    reading.start()
    assert reading.wait(60)
    return reading


@pytest.mark.parametrize(("name", "space"), [("demo-cpython-3.11.gcspy", 1), ("semispace.gcspy", 1)])
def test_rows_that_are_read_are_those_that_were_seen_live(name: str, space: int) -> None:
    with Recording.open(SAMPLES / name) as recording:
        source = source_of(recording, space, 0)
        live, read = (HistoryGraph(source, HistoryEvents()) for _ in range(2))
        for step, session in recording.steps():
            live.follow(session.spaces[space], step.change)
        reading = finished(
            HistoryReading(
                recording.again(), [Target(space, lambda: RowMaker(source))], recording.first, recording.last
            )
        )
        assert reading.error is None
        assert reading.progress == 1
        for row in reading.collect():
            read.take(row.made, number=row.number)
        assert reading.collect() == []
        assert read.missing(0, len(read.events)) is None
        view = live.whole(40, 300)
        assert (live.draw(view, PALETTE).pixels == read.draw(view, PALETTE).pixels).all()
        assert read.events.numbers.tolist() == list(range(recording.first, recording.last + 1))


def test_a_part_knows_what_changed_at_its_first_event() -> None:
    with Recording.open(SAMPLES / "semispace.gcspy") as recording:
        source = source_of(recording, 1, 0)
        rows = []
        for first in (recording.first, 41):
            reading = finished(
                HistoryReading(recording.again(), [Target(1, lambda: RowMaker(source))], first, 60)
            )
            rows.append({row.number: row.made for row in reading.collect()})
        whole, part = rows
        assert list(part) == list(range(41, 61))
        assert all((whole[number].changes == part[number].changes).all() for number in part)


def test_reading_stops_when_it_is_cancelled() -> None:
    with Recording.open(SAMPLE) as recording:
        source = source_of(recording, 1, 0)
        entered, go_on = threading.Event(), threading.Event()

        class Slow(RowMaker):
            def follow(self, space: SpaceState, change: EventChange) -> HistoryRow | None:
                entered.set()
                assert go_on.wait(30)
                return super().follow(space, change)

        reading = HistoryReading(
            recording.again(), [Target(1, lambda: Slow(source))], recording.first, recording.last
        )
        reading.start()
        assert entered.wait(30)
        reading._cancelled.set()
        go_on.set()
        reading.cancel()
        assert not reading.running
        assert len(reading.collect()) <= 1
        assert reading.progress < 1


def test_reading_goes_on_behind_damage() -> None:
    data = bytearray((SAMPLES / "semispace.gcspy").read_bytes())
    with Recording.open(SAMPLES / "semispace.gcspy") as whole:
        rows = whole.events
        broken = int(rows["number"][5])
        data[int(rows["offset"][5]) + int(rows["bytes"][5]) // 2] ^= 0xFF
        chunks = len(whole.chunks)
        source = source_of(whole, 1, 0)
    recording = Recording([MemorySource(data)])
    reading = finished(HistoryReading(recording, [Target(1, lambda: RowMaker(source))], 1, 100))
    numbers = [row.number for row in reading.collect()]
    assert numbers[:4] == [1, 2, 3, 4]
    assert broken not in numbers
    assert (100 in numbers) == (chunks > 1)
    assert reading.error is None


def test_an_error_ends_the_reading_and_is_kept() -> None:
    with Recording.open(SAMPLE) as recording:
        source = source_of(recording, 1, 0)

        class Failing(RowMaker):
            def follow(self, space: SpaceState, change: EventChange) -> HistoryRow | None:
                raise RecordingError("the disk is gone")

        told: list[int] = []
        reading = HistoryReading(
            recording.again(), [Target(1, lambda: Failing(source))], 1, 3, notify=lambda: told.append(1)
        )
        finished(reading)
        assert str(reading.error) == "the disk is gone"
        assert told == [1]


def test_a_series_of_all_tiles_is_the_sum_of_its_parts() -> None:
    with SavedSession.open(SAMPLE) as saved:
        recording = saved.recording
        state = recording.seek(recording.last).spaces[1]
        source = StreamSource(state.stream(0).schema)
        keys = np.sort(state.names.keys())
        middle = int(keys[len(keys) // 2])
        windows = [None, (0, middle - 1), (middle, (1 << 64) - 1)]
        targets = [Target(1, partial(SeriesMaker, source, window)) for window in windows]
        reading: HistoryReading[SeriesPoint] = HistoryReading(recording.again(), targets, 1, recording.last)
        reading.start()
        assert reading.wait(60)
        series = [TileSeries() for _ in windows]
        for row in reading.collect():
            series[row.target].take(row.made)
        whole, low, high = (each.points() for each in series)
        assert len(whole) == len(recording)
        for one, two, three in zip(whole, low, high, strict=True):
            assert one.total == two.total + three.total
            assert one.covered == two.covered + three.covered
            assert one.tiles == two.tiles + three.tiles
        times, mean = series[0].line(SeriesKind.MEAN)
        assert times.tolist() == recording.events["time_nanos"].tolist()
        assert np.allclose(mean, [point.total / point.covered for point in whole])
