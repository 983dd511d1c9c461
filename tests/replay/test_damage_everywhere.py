"""Every byte of small recordings is changed, and every length cut to: an error of ours, or what is undamaged.

Whatever is shown must be true, compared with what was written: table, welcome and every state. Work and memory are
bounded by the size of the file. By default one change meets each field of each kind of frame and a sample of the
rest; under soak every byte is changed, each bit of all that is structure, and all cuts are tried. A seed does a
share of those changes, so that it takes minutes: as many seeds in a row as there are shares do all.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.frames.frame import HEADER, Header
from gcspy_protocol.messages import FrameType
from gcspy_replay.file import ChunkRule, MemorySource, MemoryStore, Recording, repair, verify
from gcspy_replay.file.layout import PREAMBLE_BYTES, FileFrame

from tests.replay.recorded import Small
from tests.replay.test_damage import NAMES, readable, told

EVENTS = 4
TILES = 3
SHARES = 16
RULE = ChunkRule(weight=99, most_events=2)

_STRUCTURE = {*FileFrame, FrameType.WELCOME, FrameType.EPOCH_END, FrameType.MISSED, FrameType.EVENT}
"""Frames of which each bit is changed under soak: those by which a reader finds its way, and those that date."""

_FIELDS = {0, 1, 3, 4, 5, 6, 8, 12, 19, 20, 27}
"""Of a frame's header: low and high bytes of its fields."""

_WORK = 16
"""Bytes read for each byte of a file and a thousand more, by reading, verifying and repairing it together; 8 is usual."""

_MEMORY = 1 << 20
"""Bytes taken at a time by any reading of some kilobytes; the largest true array has 68."""


class Counting(MemorySource):
    """Bytes in memory that count how many were read."""

    read = 0

    def read_at(self, offset: int, size: int) -> bytes:
        found = super().read_at(offset, size)
        self.read += len(found)
        return found


class Parts(MemoryStore):
    """A part for each chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[bytearray] = []

    def begin(self, part: int) -> None:
        self.parts.append(bytearray())

    def append(self, data: bytes, *, time_nanos: int) -> None:
        self.parts[-1] += data

    def is_full(self, *, part_bytes: int) -> bool:
        return True


@dataclass(frozen=True)
class Subject:
    """A recording that is damaged, and what is true of it.

    Attributes:
        parts: The bytes of its files.
        first: Number of its first event.
        chunks: Of each chunk its part, where it begins and ends there, and its events.
        ends: Where each event ends: part and offset.
        closed: Whether its files have an index.
    """

    parts: tuple[bytes, ...]
    first: int
    chunks: tuple[tuple[int, int, int, frozenset[int]], ...]
    ends: dict[int, tuple[int, int]]
    closed: bool

    @property
    def numbers(self) -> set[int]:
        return set(range(self.first, EVENTS + 1))


@cache
def subject(name: str) -> Subject:
    store: Parts | MemoryStore = Parts() if name in ("split", "ring") else MemoryStore()
    session = Small(store, rule=RULE, tiles=TILES).events(EVENTS)
    if name != "killed":
        session.writer.close()
    parts = (
        [bytes(part) for part in store.parts] if isinstance(store, Parts) else [bytes(store.data)]
    )
    if name == "ring":
        parts = parts[1:]  # the oldest was deleted
    recording = Recording([MemorySource(part) for part in parts])
    index = {id(part): i for i, part in enumerate(recording.parts)}
    chunks = tuple(
        (
            index[id(at.part)],
            at.place.offset,
            at.place.offset + at.place.size,
            frozenset(range(at.place.first, at.place.first + at.place.events)),
        )
        for at in recording.chunks
        if isinstance(at.part, type(recording.parts[0]))
    )
    before = {at[0]: at for at in chunks}
    assert len(before) == len(parts)
    lowest = int(recording.events["part"][0])
    ends = {
        int(row["number"]): (int(row["part"]) - lowest, int(row["offset"] + row["bytes"]))
        for row in recording.events
    }
    return Subject(tuple(parts), recording.first, chunks, ends, name != "killed")


@cache
def truth() -> dict[int, dict[str, Any]]:
    """Return what is true after each event, checked against the formula that made it."""
    whole = subject("closed")
    recording = Recording([MemorySource(part) for part in whole.parts])
    found = {number: told(recording.seek(number)) for number in range(1, EVENTS + 1)}
    for number, said in found.items():
        assert said["spaces"][0][4][0][0] == Small.values(number, TILES).tolist()
    return found


@cache
def rows() -> dict[int, Any]:
    recording = Recording([MemorySource(part) for part in subject("closed").parts])
    return {int(row["number"]): row[NAMES] for row in recording.events}


def read(sources: list[Counting]) -> set[int]:
    """Read all that can be read, assert that it is true, and return which events can be shown.

    Raises:
        RecordingError: It cannot be opened at all.
    """
    return readable(Recording(sources), rows(), truth())


@dataclass
class Outcome:
    """Result of reading a damaged recording: events that can be shown (None: refused), verified, saved by a repair."""

    good: set[int] | None
    verified: int
    findings: int
    saved: set[int] | None
    lost: set[int]


def outcome_of(parts: tuple[bytes, ...], changed: int, data: bytes, *, traced: bool) -> Outcome:
    """Read, verify and repair, within bounds of work and (where it is measured, for it is slow) memory."""
    if not traced:
        return _outcome_of(parts, changed, data)
    tracemalloc.start()
    try:
        outcome = _outcome_of(parts, changed, data)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= _MEMORY, f"{taken} bytes of memory were taken"
    return outcome


def _outcome_of(parts: tuple[bytes, ...], changed: int, data: bytes) -> Outcome:
    sources = [Counting(data if i == changed else part) for i, part in enumerate(parts)]
    size = sum(source.size() for source in sources) + 1000
    try:
        good = read(sources)
    except RecordingError:
        good = None
    verified, findings = 0, 0
    for source in sources:
        try:
            report = verify(source)
        except RecordingError:
            findings += 1
            continue
        verified += report.events
        # The file that a kill left lacks its index; that is reported anyway.
        findings += len(
            [finding for finding in report.findings if "there is no index" not in finding.what]
        )
    store = MemoryStore()
    lost: set[int] = set()
    saved: set[int] | None
    try:
        told_of = repair(sources[changed], store)
    except RecordingError:
        saved = None
    else:
        saved = read([Counting(bytes(store.data))])
        assert len(saved) == told_of.events
        lost = {number for loss in told_of.lost for number in range(loss.first, loss.last + 1)}
        assert not lost & saved, "lost and saved"
        again = verify(MemorySource(store.data))
        assert all("are missing before" in finding.what for finding in again.findings), (
            "a repaired file is whole"
        )
        assert again.events == len(saved)
    read_bytes = sum(source.read for source in sources)
    assert read_bytes <= _WORK * size, f"{read_bytes} bytes were read of {size}"
    return Outcome(good, verified, findings, saved, lost)


# ------------------------------------------------------------------ a byte changed


def places(data: bytes) -> Iterator[tuple[int, FileFrame | int, int]]:
    """Yield each byte of a part: its offset, the type of the frame it is in, and its place in that frame."""
    for at in range(PREAMBLE_BYTES):
        yield at, -1, at
    start = PREAMBLE_BYTES
    while start < len(data):
        header = Header._make(HEADER.unpack_from(data, start))
        for at in range(start, start + HEADER.size + header.length):
            yield at, header.type, at - start
        start += HEADER.size + header.length
    assert start == len(data)


def changes(data: bytes, *, complete: bool) -> Iterator[tuple[int, int]]:
    """Yield offsets, and what each byte is changed by (exclusive or)."""
    seen: set[tuple[int, int]] = set()
    for at, kind, within in places(data):
        structure = kind == -1 or within < HEADER.size or kind in _STRUCTURE
        if complete:
            patterns = (
                [1 << bit for bit in range(8)]
                if structure
                else [1 << (at % 8), 0xFF, data[at] or 0x80]
            )
            yield from ((at, pattern) for pattern in patterns)
            continue
        # Each field of a header in each kind of frame, the beginnings of payloads, and a sample of the rest.
        far = within - HEADER.size
        wanted = within in _FIELDS if far < 0 else far % (3 if far < 24 else 29) == 0
        if (kind, within) in seen or not (wanted or kind == -1):
            continue
        seen.add((kind, within))
        yield at, 1 << (at % 8)


def change_everywhere(name: str, *, share: int | None = None) -> None:
    it = subject(name)
    tried = number = 0
    complete = share is not None
    for part, original in enumerate(it.parts):
        here = [chunk for chunk in it.chunks if chunk[0] == part]
        first = min(start for _, start, _, _ in here)
        for at, pattern in changes(original, complete=complete):
            number += 1
            if share is not None and number % SHARES != share % SHARES:
                continue
            data = bytearray(original)
            data[at] ^= pattern
            what = f"{name}, part {part}: byte {at} changed by {pattern:#04x}"
            outcome = outcome_of(it.parts, part, bytes(data), traced=tried % 8 == 0)
            tried += 1
            assert outcome.findings, f"{what} was not noticed"
            concerned = next(
                (numbers for _, start, end, numbers in here if start <= at < end), frozenset()
            )
            if outcome.good is None:
                assert at < first, f"{what}, behind the header, and nothing can be read"
            else:
                assert it.numbers - outcome.good <= concerned, (
                    f"{what} cost the events {it.numbers - outcome.good}"
                )
                assert outcome.verified == len(outcome.good), what
            of_part = set().union(*(numbers for _, _, _, numbers in here))
            saved = outcome.saved or set()  # of the only chunk's head nothing can be saved
            assert of_part - saved <= concerned, f"{what}: a repair lost {of_part - saved}"
            untold = (
                not it.closed or not saved or at >= here[-1][2]
            )  # the state at the end is not known
            assert untold or saved | outcome.lost >= of_part, f"{what}: a repair forgot events"
    assert tried > 150


def test_a_byte_changed_shows_nothing_wrong() -> None:
    change_everywhere("split")


@pytest.mark.soak
@pytest.mark.parametrize("name", ["closed", "killed", "split", "ring"])
def test_every_byte_changed_shows_nothing_wrong(name: str, soak_seed: int) -> None:
    change_everywhere(name, share=soak_seed)


# ------------------------------------------------------------------------- cut


def cut_everywhere(name: str, step: int) -> None:
    it = subject(name)
    for part, original in enumerate(it.parts):
        first = min(start for number, start, _, _ in it.chunks if number == part)
        sizes = {
            *range(0, len(original), step),
            *(end for at, end in it.ends.values() if at == part),
            first,
            first - 1,
        }
        for size in sorted(sizes):
            outcome = outcome_of(it.parts, part, original[:size], traced=size % 8 == 0)
            here = {number for number, (at, end) in it.ends.items() if at == part}
            kept = {number for number in here if it.ends[number][1] <= size}
            what = f"{name}, part {part} cut at byte {size}"
            if size < first:
                assert outcome.good is None, what
            else:
                assert outcome.good == it.numbers - here | kept, what
                assert outcome.verified == len(outcome.good), what
            assert (outcome.saved or set()) == kept, what


@pytest.mark.parametrize("name", ["closed", "split"])
def test_cut_it_tells_what_is_before_the_cut(name: str) -> None:
    cut_everywhere(name, 73)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["closed", "killed", "split", "ring"])
def test_cut_at_every_byte_it_tells_what_is_before_the_cut(name: str) -> None:
    cut_everywhere(name, 1)
