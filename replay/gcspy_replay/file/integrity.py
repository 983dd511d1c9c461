"""Checks whether every byte of a recording is intact, and saves the undamaged parts of one that is damaged.

`verify` compares each CRC, and decodes and applies each event as a viewer would, so that a verified
event can be shown. `repair` writes the rest into a new file.

Knows parts and chunks; does not know terminals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gcspy_protocol.errors import CorruptChunk, NotARecording, RecordingError, TruncatedRecording
from gcspy_protocol.limits import CLIENT_LIMITS, Limits

from gcspy_replay.file.cursor import ChunkAt, Cursor, OneChunk
from gcspy_replay.file.layout import (
    FOOTER_BYTES,
    PREAMBLE_BYTES,
    FileFrame,
    PartFacts,
    read_footer,
    read_preamble,
)
from gcspy_replay.file.parts.part import ChunkFile, read_part_header, read_places
from gcspy_replay.file.parts.scan import FoundChunk, PartScan, Progress
from gcspy_replay.file.parts.source import ByteSource, Window
from gcspy_replay.file.parts.walk import read_header
from gcspy_replay.file.storage.store import Store
from gcspy_replay.file.storage.writer import RecordingWriter

__all__ = ["IntegrityFinding", "Loss", "IntegrityReport", "RepairReport", "repair", "verify"]


class IntegrityFinding(NamedTuple):
    """Something wrong with a part.

    Attributes:
        name: Name of the part.
        start: First byte that is concerned.
        end: First byte after it.
        what: The problem, in a sentence.
        loses: Whether it loses events, or notices between them.
    """

    name: str
    start: int
    end: int
    what: str
    loses: bool


class Loss(NamedTuple):
    """Events that are lost.

    Attributes:
        first: Number of the first.
        last: Number of the last.
        nanos: The span of time without data: from the event before them to the one after, as far as
            there is one; None if neither neighbouring events nor an index determine it.
    """

    first: int
    last: int
    nanos: int | None

    @property
    def events(self) -> int:
        """Number of lost events."""
        return self.last - self.first + 1


@dataclass(slots=True)
class IntegrityReport:
    """Result of `verify`.

    Attributes:
        events: Events that can be shown.
        lost: Events that cannot. If the index is lost too, those after the last that can be shown
            are not known.
        chunks: Chunks that begin as they should.
        size: Number of bytes checked.
        findings: The problems; empty if there are none.
    """

    events: int = 0
    lost: list[Loss] = field(default_factory=list)
    chunks: int = 0
    size: int = 0
    findings: list[IntegrityFinding] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        """Whether nothing is lost; a missing index and a truncated last event lose no complete data."""
        return not any(finding.loses for finding in self.findings)


class _Range(NamedTuple):
    """Events with numbers that follow one another, and the times of the first and last."""

    first: int
    last: int
    first_time: int
    last_time: int


def _losses(there: list[_Range], good: list[_Range]) -> list[Loss]:
    """The events of `there` that are not in `good`; both in order.

    Args:
        there: The events that existed, according to the index or the numbers of the chunks.
        good: The events that can be shown.
    """
    lost: list[Loss] = []
    there, good = _joined(there), _joined(good)
    for first, last in _without([one[:2] for one in there], [one[:2] for one in good]):
        before = [one.last_time for one in good if one.last < first][-1:]
        after = [one.first_time for one in good if one.first > last][:1]
        # At the ends of the recording the index has the times of the first and last event.
        begin = before or [one.first_time for one in there if one.first == first]
        end = after or [one.last_time for one in there if one.last == last]
        lost.append(Loss(first, last, end[0] - begin[0] if begin and end else None))
    return lost


def _joined(ranges: list[_Range]) -> list[_Range]:
    """Ranges that follow one another as one: a recording without losses is a single one."""
    joined: list[_Range] = []
    for one in ranges:
        if joined and joined[-1].last + 1 == one.first:
            joined[-1] = joined[-1]._replace(last=one.last, last_time=one.last_time)
        else:
            joined.append(one)
    return joined


def _there(window: Window, limits: Limits, good: list[_Range]) -> list[_Range]:
    """The events that exist according to the index; without it, all from the first to the last event that can be shown."""
    index = read_places(window, limits)
    if index is None:
        return (
            [_Range(good[0].first, good[-1].last, good[0].first_time, good[-1].last_time)]
            if good
            else []
        )
    return [
        _Range(place.first, place.first + place.events - 1, place.first_time, place.last_time)
        for place in index[0]
        if place.events
    ]


def _halves(progress: Progress | None, *, second: bool) -> Progress | None:
    """Progress of the first or second of two runs over the same bytes."""
    if progress is None:
        return None
    return lambda done, total: progress(done + (total if second else 0), 2 * total)


def _decoded(file: ChunkFile, found: FoundChunk, limits: Limits) -> tuple[int, CorruptChunk | None]:
    """Return the number of events of a chunk that can be decoded, and the error that ended this."""
    cursor = Cursor(OneChunk(ChunkAt(file, file.take(found)), limits))
    try:
        cursor.before(found.head.first)
        while cursor.step() is not None:
            pass
    except CorruptChunk as error:
        return max(0, cursor.number + 1 - found.head.first), error
    return cursor.number + 1 - found.head.first, None


class _Note(Protocol):
    """The function that notes a finding."""

    def __call__(self, start: int, end: int, what: str, *, loses: bool = True) -> None:
        """Note it."""


def verify(
    source: ByteSource, *, limits: Limits = CLIENT_LIMITS, progress: Progress | None = None
) -> IntegrityReport:
    """Check every byte of a part.

    Args:
        source: The part.
        limits: Limits on its content.
        progress: Called with the progress.

    Raises:
        NotARecording: It is not a recording.
    """
    window = Window(source)
    report = IntegrityReport(size=source.size())
    name = source.name

    def note(start: int, end: int, what: str, *, loses: bool = True) -> None:
        report.findings.append(IntegrityFinding(name, start, end, what, loses))

    start = _header_end(window, limits, note)
    scan = PartScan(window, start, limits, careful=True)
    scan.advance(_halves(progress, second=False))
    tell = _halves(progress, second=True)
    file = ChunkFile(window, limits)
    following = 1
    good: list[_Range] = []
    for found in scan.chunks:
        place = found.place
        report.chunks += 1
        if found.head.first < following:
            note(
                place.offset,
                place.offset + place.size,
                f"chunk {place.number} repeats event {found.head.first}",
            )
            continue
        if following > 1 and found.head.first > following:
            what = f"events {following} to {found.head.first - 1} are missing before chunk {place.number}"
            note(place.offset, place.offset, what)
        events, error = _decoded(file, found, limits)
        if error is not None:
            note(error.offset, place.offset + place.size, f"chunk {place.number}: {error}")
        report.events += events
        if events:
            times = found.rows["time_nanos"]
            good.append(
                _Range(place.first, place.first + events - 1, int(times[0]), int(times[events - 1]))
            )
        following = found.head.first + place.events
        if tell is not None:
            tell(place.offset + place.size, report.size)
    report.lost = _losses(_there(window, limits, good), good)
    for damage in scan.damages:
        note(damage.start, damage.end, damage.what)
    if scan.tail:
        what = f"the last {scan.tail} bytes are an incomplete event: the recorder was killed while it wrote, or still writes"
        note(report.size - scan.tail, report.size, what, loses=False)
    _check_end(window, scan, report, note)
    return report


def _header_end(window: Window, limits: Limits, note: _Note) -> int:
    try:
        read_preamble(window.get(0, PREAMBLE_BYTES))
    except RecordingError as error:
        error.args = (f"{window.source.name}: {error}",)
        raise
    try:
        return read_part_header(window, limits)[2]
    except (CorruptChunk, TruncatedRecording) as error:
        note(0, PREAMBLE_BYTES, f"the header: {error}")
        return PREAMBLE_BYTES


def _check_end(window: Window, scan: PartScan, report: IntegrityReport, note: _Note) -> None:
    size = report.size
    footer = read_footer(window.source.read_at(max(0, size - FOOTER_BYTES), FOOTER_BYTES))
    if footer is None and scan.closed:
        note(size, size, "the footer after the index is invalid", loses=False)
        return
    if footer is None:
        what = "there is no index: the recorder was killed or is still writing; readers scan for the chunks"
        note(size, size, what, loses=False)
        return
    offset, length = footer
    header = read_header(window, offset, size) if offset < size else None
    if header is None or header.type != FileFrame.INDEX or offset + length + FOOTER_BYTES != size:
        note(size - FOOTER_BYTES, size, "the footer does not lead to the index", loses=False)
    elif not scan.closed:
        note(offset, size, "the index is damaged; readers scan for the chunks", loses=False)


# -------------------------------------------------------------------------- repair


@dataclass(slots=True)
class RepairReport:
    """Result of `repair`.

    Attributes:
        events: Events written.
        lost: Events that are lost. If the index is lost too, those before the first and after the
            last that were saved are not known.
        findings: The problems, as reported by `verify`.
        states: Events of which only the picture could be saved, from the keyframe that repeats it.
    """

    events: int = 0
    lost: list[Loss] = field(default_factory=list)
    findings: list[IntegrityFinding] = field(default_factory=list)
    states: list[int] = field(default_factory=list)


def repair(
    source: ByteSource,
    store: Store,
    *,
    limits: Limits = CLIENT_LIMITS,
    progress: Progress | None = None,
) -> RepairReport:
    """Write the undamaged events of a part into a new recording; events keep their numbers.

    A chunk needs nothing but itself: the undamaged ones are saved whole, of a damaged one the events before
    the damage; and its last event, when it is lost, from the head of the next chunk, which repeats it.

    Args:
        source: The damaged part.
        store: The destination; it is closed at the end.
        limits: Limits on the content of the part.
        progress: Called with the progress.

    Raises:
        NotARecording: There is nothing of a recording in it.
    """
    try:
        return _repair(source, store, limits, progress)
    finally:
        store.close()


def _repair(
    source: ByteSource, store: Store, limits: Limits, progress: Progress | None
) -> RepairReport:
    window = Window(source)
    scan = PartScan(window, _salvage_start(window, limits), limits, careful=True)
    scan.advance(_halves(progress, second=False))
    if not scan.chunks:
        raise NotARecording(
            f"{source.name}: no chunk of a recording was found in {source.size()} bytes"
        )
    note = f"repaired from {source.name}"
    writer: RecordingWriter | None = None
    saved = RepairReport()
    written: list[_Range] = []
    tell = _halves(progress, second=True)
    for cursor, found in _cursors(window, scan, limits):
        if writer is None:
            facts = PartFacts(recording=found.head.recording, software="gcspy repair", note=note)
            # If bytes before the first chunk are damaged, the event that its head repeats is lost
            # as well.
            cut_off = found.head.continues and any(
                d.end == found.place.offset for d in scan.damages
            )
            first = found.head.first - 1 if cut_off else found.head.first
            writer = RecordingWriter(store, cursor.session, facts=facts, first=first)
        _save_chunk(writer, cursor, found, saved, written)
        if tell is not None:
            tell(found.place.offset + found.place.size, source.size())
    if writer is None:
        raise NotARecording(f"{source.name}: none of its {len(scan.chunks)} chunks can be read")
    writer.close()
    saved.lost = _losses(_there(window, limits, written), written)
    saved.findings = [
        IntegrityFinding(source.name, d.start, d.end, d.what, True) for d in scan.damages
    ]
    return saved


def _without(there: list[tuple[int, int]], written: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges of numbers in `there`, minus those that were written; both in order."""
    lost: list[tuple[int, int]] = []
    for first, last in there:
        at = first
        for begin, end in [*written, (last + 1, last + 1)]:
            if begin > at <= last:
                gap = at, min(begin - 1, last)
                if lost and lost[-1][1] + 1 == gap[0]:
                    gap = lost.pop()[0], gap[1]
                lost.append(gap)
            at = max(at, end + 1)
    return lost


def _salvage_start(window: Window, limits: Limits) -> int:
    try:
        return read_part_header(window, limits)[2]
    except RecordingError:
        return 0  # the scan searches for the first chunk by its magic


def _cursors(window: Window, scan: PartScan, limits: Limits) -> Iterator[tuple[Cursor, FoundChunk]]:
    """A cursor before the first event of each chunk that can be read."""
    file = ChunkFile(window, limits)
    for found in scan.chunks:
        cursor = Cursor(OneChunk(ChunkAt(file, file.take(found)), limits))
        try:
            cursor.before(found.head.first)
        except CorruptChunk:
            continue
        yield cursor, found


def _save_chunk(
    writer: RecordingWriter,
    cursor: Cursor,
    found: FoundChunk,
    saved: RepairReport,
    written: list[_Range],
) -> None:
    """Append the events of a chunk."""
    first, before = found.head.first, writer.number
    if first <= before:
        return  # repeated: the file was put together from pieces
    joined = writer.started and found.head.continues and first == before + 1
    writer.follow(cursor.session)
    begun = first
    begun_time: int | None = None
    last_time: int | None = None
    if (
        not joined
        and found.head.continues
        and first - 1 > before
        and cursor.session.last_event is not None
    ):
        # The event before was lost; but this chunk's head repeats it.
        begun, begun_time = first - 1, cursor.session.last_event.time_nanos
        writer.start(begun)
        saved.states.append(begun)
        joined = True
    try:
        while (step := cursor.step()) is not None:
            last_time = step.change.event.time_nanos
            begun_time = last_time if begun_time is None else begun_time
            if joined:
                writer.add_step(step)
            else:
                writer.start(step.number)
                joined = True
    except CorruptChunk:
        pass  # the loss appears when the next chunk begins
    if writer.started and writer.number >= begun:
        written.append(_Range(begun, writer.number, begun_time or 0, last_time or begun_time or 0))
        saved.events += writer.number - begun + 1
