"""Damaged traces: cut anywhere, or with bits flipped, each is read as far as it is valid, and what is wrong is said as an error of ours."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.anttracks.layout import DATA_OFFSET
from gcspy_objects.anttracks.reader import AntTracksTrace
from gcspy_objects.records import RecordBatch, RecordKind
from gcspy_protocol.errors import TraceError

from benchmarks.targets.anttracks_writer import long, word, write_run
from tests.objects.anttracks.made import EVENTS, symbols, trace
from tests.objects.anttracks.samples import sample

VALUE_LIMIT = 1 << 62


def sound(batch: RecordBatch, opened: AntTracksTrace) -> None:
    """Assert that who works with a batch can rely on what its columns say."""
    assert (
        len(
            {
                len(getattr(batch, name))
                for name in ("kind", "thread", "address", "to", "size", "type", "length", "offset")
            }
        )
        == 1
    )
    assert np.isin(batch.kind, list(RecordKind)).all()
    assert np.all(
        batch.type[
            np.isin(
                batch.kind,
                [
                    RecordKind.ALLOCATE,
                    RecordKind.ALLOCATE_NEXT,
                    RecordKind.SNAPSHOT_MOVE,
                    RecordKind.SNAPSHOT_KEEP,
                ],
            )
        ]
        < len(opened.types)
    )
    assert np.all(batch.site < len(opened.sites))
    assert np.all(batch.thread < len(opened.threads))
    assert np.all(batch.buffer < len(batch.buffer_position))
    for column in (batch.address, batch.to, batch.size, batch.length):
        assert np.all((column >= 0) & (column < VALUE_LIMIT + (1 << 36)))
    assert np.all(np.diff(batch.pointer_record) >= 0)
    assert np.all(batch.pointer_record < max(len(batch), 1))


def outcome(path: Path) -> tuple[int, TraceError | None]:
    """Read a trace to its end, or to what is wrong with it: how many events, and what."""
    events = 0
    try:
        with AntTracksTrace(path) as opened:
            for batch in opened.batches():
                sound(batch, opened)
                assert batch.place.event == events
                events += len(batch)
    except TraceError as error:
        return events, error
    return events, None


def cuts(path: Path, data: bytes, places: list[int]) -> None:
    before = 0
    for cut in places:
        path.write_bytes(data[:cut])
        events, error = outcome(path.parent)
        assert events >= before, "who has more of a trace reads more of it"
        before = events
        if error is None:
            # The first byte of the threads' addresses that is the same in all.
            assert (
                cut == len(data) or int.from_bytes(data[cut : cut + 8], "little") >> 40 == 0x7F
            ), "only a cut between two buffers goes unnoticed"
            continue
        assert error.file in str(error)
        if cut >= DATA_OFFSET:
            assert error.offset <= cut
            assert error.buffer is not None


def test_wherever_a_trace_is_cut_it_is_read_to_there_and_the_place_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path, symbols(2), trace())
    data = trace().data()
    cuts(folder / "trace", data, [*range(0, len(data), 5), len(data)])


@pytest.mark.soak
def test_at_each_byte_of_two_traces(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "made", symbols(2), trace())
    data = trace().data()
    cuts(folder / "trace", data, list(range(len(data) + 1)))
    start = (sample("promote") / "trace").read_bytes()[:20_000]
    real = tmp_path / "real"
    real.mkdir()
    (real / "symbols").write_bytes((sample("promote") / "symbols").read_bytes())
    (real / "trace").write_bytes(start)
    whole, _ = outcome(real)
    before = 0
    for cut in range(0, len(start), 3):
        (real / "trace").write_bytes(start[:cut])
        events, _ = outcome(real)
        assert before <= events <= whole
        before = events


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (5 << 20, "expected at most 4,194,304"),
        (100, "the file ends 92 bytes before that"),
        (3 << 29 | 8, "mode 3"),
        (1 << 31 | 1 << 29 | 8, "mode 1, compressed"),
        (6, "expected whole words"),
        (1 << 31 | 8, "its compressed payload of 8 bytes"),
    ],
)
def test_a_header_that_cannot_be_is_named_with_what_was_expected(
    tmp_path: Path, header: int, expected: str
) -> None:
    writer = trace()
    at = len(writer.data())
    writer.buffers += long(1) + word(header) + bytes(8)
    write_run(tmp_path, symbols(2), writer)
    events, error = outcome(tmp_path)
    assert events == len(EVENTS)
    assert error
    assert (error.offset, error.buffer) == (at, 4)
    assert expected in str(error)


def flip(path: Path, data: bytes, chance: random.Random, times: int) -> int:
    """Flip a bit, or some, anywhere in a file, again and again; how often it was noticed."""
    noticed = 0
    for _ in range(times):
        damaged = bytearray(data)
        for _ in range(chance.choice([1, 1, 1, 2, 8])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        _, error = outcome(path.parent)
        noticed += error is not None
    path.write_bytes(data)
    return noticed


def test_whichever_bits_are_flipped_it_is_a_trace_or_an_error_of_ours(tmp_path: Path) -> None:
    folder = write_run(tmp_path, symbols(2), trace())
    chance = random.Random(8)
    assert flip(folder / "trace", trace().data(), chance, 200) > 50
    assert flip(folder / "symbols", symbols(2).data(), chance, 100) > 20


@pytest.mark.soak
def test_ten_thousand_times(tmp_path: Path, soak_seed: int) -> None:
    chance = random.Random(soak_seed)
    folder = write_run(tmp_path / "made", symbols(2), trace())
    flip(folder / "trace", trace().data(), chance, 4000)
    flip(folder / "symbols", symbols(2).data(), chance, 2000)
    for name in ("promote", "compressed", "pointers"):
        real = tmp_path / name
        real.mkdir()
        (real / "symbols").write_bytes((sample(name) / "symbols").read_bytes())
        flip(real / "trace", (sample(name) / "trace").read_bytes()[:60_000], chance, 1333)


def peak(folder: Path, events: int) -> int:
    """Return the most bytes that are in use while a trace is read."""
    tracemalloc.start()
    try:
        with AntTracksTrace(folder, chunk_bytes=1 << 14) as opened:
            assert sum(map(len, opened.batches())) == events
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_depend_on_the_length_of_a_trace(tmp_path: Path) -> None:
    peaks = []
    for times in (160, 640):
        writer = trace()
        writer.buffers *= times
        folder = write_run(tmp_path / str(times), symbols(2), writer)
        # What the process allocates elsewhere meanwhile, such as for an import, is not allocated each time.
        peaks.append(min(peak(folder, times * len(EVENTS)) for _ in range(3)))
    assert peaks[1] < 1.2 * peaks[0]
