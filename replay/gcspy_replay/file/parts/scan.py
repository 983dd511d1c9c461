"""The way through a part without its index: files still being written, killed, or damaged.

Whole chunks are hopped over: their end has a seal and a table, so that frames inside need
not be read. The chunk without an end, and every chunk in which something is wrong, is
walked entry by entry with each CRC compared, so that a table made here is as true
as one that was written. After damage the next chunk is found by its magic.

Knows chunks; does not decode a client's view.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gcspy_protocol.codec import decode, unpack
from gcspy_protocol.errors import CorruptChunk, RemoteProtocolError
from gcspy_protocol.frames.frame import HEADER
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Event, FrameType, Missed
from numpy.typing import NDArray

from gcspy_replay.file.layout import (
    CHUNK_ENDS,
    CHUNK_MAGIC,
    MOST_EVENTS,
    ROWS,
    ChunkEnd,
    ChunkHead,
    ChunkPlace,
    FileFrame,
    blamed,
    read_chunk,
    read_chunk_end,
)
from gcspy_replay.file.parts.chunk_records import ChunkRecords, RowReader
from gcspy_replay.file.parts.source import Window, WorkExceeded
from gcspy_replay.file.parts.walk import FileEntry, check_entry, read_entry, read_header

__all__ = ["DamagedRange", "FoundChunk", "PartScan", "Progress", "hop_chunk", "walk_chunk"]

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes to do."""

_SEARCH_BYTES = 1 << 20
_WORK_FACTOR = 8
"""A scan stops after work of eight times the file, so that a file of chunk beginnings cannot block
it. An honest file is read once, and the rest of each damaged chunk twice more."""

_MOST_RATIO = 32
"""The file counts as at most this many times the bytes that were sent: recordings are packed 4 to 13 times smaller."""

_RESUME_BYTES = 1 << 10
"""Charge for searching the next chunk, besides the bytes that are searched."""


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Bytes of a part that cannot be used.

    Attributes:
        start: First of them.
        end: First after them.
        chunk: Number of the chunk they are in, or None where that is not known.
        what: The problem.
    """

    start: int
    end: int
    chunk: int | None
    what: str


class FoundChunk(NamedTuple):
    """A chunk that a scan found.

    Attributes:
        place: Where, as in an index.
        head: Fields of its CHUNK frame.
        rows: Its event table, dtype `ROWS`.
        sealed: Whether its end was found and is right.
        checked: Whether the CRC of each of its bytes was compared.
        damage: The damage at its end, or None.
        at: Where the next entry would begin.
    """

    place: ChunkPlace
    head: ChunkHead
    rows: NDArray[Any]
    sealed: bool
    checked: bool
    damage: CorruptChunk | None
    at: int


def _place(offset: int, size: int, end_at: int, head: ChunkHead, rows: NDArray[Any]) -> ChunkPlace:
    times = rows["time_nanos"]
    return ChunkPlace(
        offset=offset,
        size=size,
        end_at=end_at,
        number=head.number,
        first=head.first,
        first_time=int(times[0]) if len(rows) else 0,
        last_time=int(times[-1]) if len(rows) else 0,
        events=len(rows),
    )


def read_head(
    window: Window, offset: int, end: int, limits: Limits
) -> tuple[ChunkHead, FileEntry] | None:
    """The beginning of a chunk, its seal compared; None where it does not end before `end`.

    Raises:
        CorruptChunk: No chunk begins there, or it is damaged.
    """
    entry = read_entry(window, offset, end, limits)
    if entry is None:
        return None
    if entry.frames[0].header.type != FileFrame.CHUNK or entry.is_event:
        raise CorruptChunk(f"damaged at byte {offset}: no chunk begins here", offset=offset)
    head = read_chunk(entry.payload(entry.frames[0]), offset)
    check_entry(entry)
    if head.head_bytes < len(entry.data):
        raise CorruptChunk(
            f"damaged at byte {offset}: a head of {head.head_bytes} bytes",
            offset=offset,
            chunk=head.number,
        )
    return head, entry


def read_end(
    window: Window, offset: int, at: int, end: int, limits: Limits
) -> tuple[ChunkEnd, int] | None:
    """The end of the chunk that began at `offset`, if it is at `at`; and where it ends.

    Raises:
        CorruptChunk: It is damaged.
    """
    entry = read_entry(window, at, end, limits)
    if entry is None or entry.frames[0].header.type not in CHUNK_ENDS:
        return None
    check_entry(entry)
    place = entry.frames[0]
    return read_chunk_end(
        place.header, entry.payload(place), limits, at, size=at - offset
    ), entry.end


def hop_chunk(window: Window, offset: int, end: int, limits: Limits) -> FoundChunk | None:
    """The chunk at `offset` by its own end, the frames between hopped over; None when that does not work."""
    try:
        opened = read_head(window, offset, end, limits)
        if opened is None:
            return None
        head, entry = opened
        at = entry.end
        while (header := read_header(window, at, end)) is not None:
            if header.type in CHUNK_ENDS:
                closed = read_end(window, offset, at, end, limits)
                if closed is None:
                    return None
                place = _place(offset, closed[1] - offset, at - offset, head, closed[0].rows)
                return FoundChunk(place, head, closed[0].rows, True, False, None, closed[1])
            if header.type in (FileFrame.CHUNK, FileFrame.INDEX, FileFrame.FOOTER):
                return None
            at += HEADER.size + header.length
    except CorruptChunk:
        return None
    return None


class _Walk:
    """A walk over a chunk, entry by entry, that compares each CRC; it can continue when the file has grown."""

    def __init__(self, offset: int, head: ChunkHead, entry: FileEntry, limits: Limits) -> None:
        self.offset, self.head, self._limits = offset, head, limits
        self.at = entry.end
        self.crcs = bytearray(check_entry(entry).to_bytes(4, "little"))
        self._blocks_at = entry.end
        self._records: ChunkRecords | None = None
        self._taken = 0
        self._fields = RowReader(limits)
        self.rows: list[tuple[int, ...]] = []
        self.missed = 0
        self._notice(entry)
        self.sealed = False
        self.end_at = 0
        self.damage: CorruptChunk | None = None

    def again(self) -> _Walk:
        """The same, which goes its own way from here."""
        twin = copy(self)
        twin.crcs, twin.rows = bytearray(self.crcs), list(self.rows)
        twin._records, twin._fields = None, self._fields.again()
        return twin

    def advance(self, window: Window, end: int) -> None:
        """Take every entry that is there whole."""
        while not self.sealed and self.damage is None:
            try:
                entry = read_entry(window, self.at, end, self._limits)
                if entry is None:
                    return
                self._take(window, entry, end)
            except CorruptChunk as error:
                error.chunk = self.head.number
                self.damage = error

    def _take(self, window: Window, entry: FileEntry, end: int) -> None:
        kind = entry.frames[0].header.type
        if kind in CHUNK_ENDS:
            closed = read_end(window, self.offset, self.at, end, self._limits)
            if closed is not None:
                self._close(closed[0])
                self.sealed, self.end_at, self.at = True, self.at - self.offset, closed[1]
            return
        if kind in (FileFrame.CHUNK, FileFrame.INDEX, FileFrame.FOOTER):
            # A recorder that was killed, and began again, is not this one: the chunk should have ended.
            raise CorruptChunk(
                f"damaged at byte {self.at}: the chunk does not end before it", offset=self.at
            )
        if entry.is_event if self.head.has_records else entry.is_block:
            raise CorruptChunk(
                f"damaged at byte {self.at}: a frame of type {kind:#04x} in a chunk of another kind",
                offset=self.at,
            )
        crc = check_entry(entry)
        if entry.is_event:
            self._event(entry)
        elif entry.is_block:
            self._block(window, entry)
        else:
            self._notice(entry)
        self.crcs += crc.to_bytes(4, "little")
        self.at = entry.end

    def _close(self, closed: ChunkEnd) -> None:
        if zlib.crc32(self.crcs) != closed.crc or not np.array_equal(closed.rows, self.table()):
            raise CorruptChunk(
                f"damaged at byte {self.at}: entries of the chunk are missing, or are not its own",
                offset=self.at,
            )

    def _block(self, window: Window, entry: FileEntry) -> None:
        """Take the events of a block of records."""
        if self._records is None:
            number = self.head.number
            self._records = ChunkRecords(window, self._blocks_at, entry.end, number, self._limits)
        self._records.end = entry.end
        while (record := self._records.record(self._taken)) is not None:
            self._taken += 1
            found = self._fields.take(record)
            if found is not None:
                self._add_row(record.start, record.end, *found)

    def _add_row(self, start: int, end: int, event: Event, missed: int) -> None:
        if len(self.rows) >= MOST_EVENTS:
            raise CorruptChunk(
                f"damaged at byte {start}: more than {MOST_EVENTS} events", offset=start
            )
        flags = (1 if event.keyframe else 0) | (2 if event.cached else 0)
        self.rows.append(
            (
                start - self.offset,
                end - self.offset,
                event.sequence,
                event.time_nanos,
                event.occurrence,
                event.gather_nanos,
                event.held_nanos,
                missed,
                event.event,
                flags,
            )
        )

    def _event(self, entry: FileEntry) -> None:
        if entry.offset - self.offset < self.head.head_bytes:
            return  # the event before, repeated
        place = entry.frames[-1]
        try:
            event = decode(place.header, entry.payload(place), self._limits)
        except RemoteProtocolError as error:
            raise blamed(error, entry.offset, self.head.number) from error
        assert isinstance(event, Event)
        self._add_row(entry.offset, entry.end, event, self.missed)

    def _notice(self, entry: FileEntry) -> None:
        for place in entry.frames:
            if place.header.type == FrameType.MISSED:
                try:
                    raw = unpack(place.header, entry.payload(place), self._limits, entry.offset)
                    message = decode(place.header, raw, self._limits)
                except RemoteProtocolError as error:
                    raise blamed(error, entry.offset, self.head.number) from error
                assert isinstance(message, Missed)
                self.missed = message.total

    def table(self) -> NDArray[Any]:
        return np.array(self.rows, dtype=ROWS)

    def found(self) -> FoundChunk:
        size = self.at - self.offset
        rows = self.table()
        place = _place(self.offset, size, self.end_at, self.head, rows)
        return FoundChunk(place, self.head, rows, self.sealed, True, self.damage, self.at)


def walk_chunk(window: Window, offset: int, end: int, limits: Limits) -> FoundChunk | None:
    """Walk over the chunk at `offset`, entry by entry with each CRC compared, up to its end, `end`, or damage.

    Returns:
        The chunk; None where not even its beginning is there whole.

    Raises:
        CorruptChunk: Its beginning is damaged.
    """
    opened = read_head(window, offset, end, limits)
    if opened is None:
        return None
    walk = _Walk(offset, *opened, limits)
    walk.advance(window, end)
    return walk.found()


class PartScan:
    """Finds the chunks of a part from the end of its header; continues when the part has grown.

    Args:
        window: Window of the part.
        start: End of the header.
        limits: Limits on the content of the file.
        careful: Compare each CRC, also of chunks that have an end.

    Attributes:
        chunks: Found so far; the last one grows while it is being written.
        damages: Ranges that could not be used.
        closed: Whether the index was reached: nothing more will come.
        tail: Bytes at the end that are no whole entry: torn, or still being written.
    """

    def __init__(
        self, window: Window, start: int, limits: Limits, *, careful: bool = False
    ) -> None:
        self._window, self._at, self._limits, self._careful = window, start, limits, careful
        self._open: _Walk | None = None
        self._work = 0
        self._seen_bytes = -1
        self._block = (0, b"")
        self.chunks: list[FoundChunk] = []
        self.damages: list[DamagedRange] = []
        self.closed = False
        self.tail = 0

    def again(self, window: Window) -> PartScan:
        """The same, for another reader of the same bytes."""
        twin = copy(self)
        twin._window = window
        twin._open = None if self._open is None else self._open.again()
        twin.chunks, twin.damages = list(self.chunks), list(self.damages)
        return twin

    def advance(self, progress: Progress | None = None) -> bool:
        """Process the available data.

        Returns:
            Whether anything new was found.
        """
        window, end = self._window, self._window.source.size()
        if end == self._seen_bytes:
            return False
        self._seen_bytes = end
        window.forget()
        self._block = (0, b"")
        before = (len(self.chunks), len(self._open.rows) if self._open else 0, self.closed)
        begun = window.work_bytes
        most = min(end, _MOST_RATIO * window.source.sent_bytes()) + _SEARCH_BYTES
        window.work_limit = begun + max(0, _WORK_FACTOR * most - self._work)
        try:
            while not self.closed and self._step(end):
                if progress is not None:
                    progress(min(self._at, end), end)
        finally:
            window.work_limit = None
            self._work += window.work_bytes - begun
        self.tail = 0 if self.closed else max(0, end - self._at)
        return before != (len(self.chunks), len(self._open.rows) if self._open else 0, self.closed)

    def _step(self, end: int) -> bool:
        """Process one chunk, or the rest of one; return whether to continue."""
        if self._open is not None:
            return self._go_on(self._open, end)
        try:
            header = read_header(self._window, self._at, end)
        except WorkExceeded as error:
            return self._resume(end, error)
        if header is not None and header.type == FileFrame.INDEX:
            return self._index(end)
        found = None if self._careful else hop_chunk(self._window, self._at, end, self._limits)
        if found is None:
            try:
                opened = read_head(self._window, self._at, end, self._limits)
            except CorruptChunk as error:
                return self._resume(end, error)
            # A truncated head is damage too: nothing of its chunk can be shown, and nothing was
            # lost.
            if opened is None or self._at + opened[0].head_bytes > end:
                return self._tail(end)
            self._open = _Walk(self._at, *opened, self._limits)
            self.chunks.append(self._open.found())
            return self._go_on(self._open, end)
        self.chunks.append(found)
        self._at = found.at
        return True

    def _go_on(self, walk: _Walk, end: int) -> bool:
        walk.advance(self._window, end)
        self.chunks[-1] = walk.found()
        self._at = walk.at
        if walk.sealed:
            self._open = None
            return True
        if walk.damage is not None:
            self._open = None
            return self._resume(end, walk.damage)
        return self._tail(end)

    def _tail(self, end: int) -> bool:
        """The entry that begins here does not end: it is being written, was truncated, or its length is damaged."""
        if self._at >= end or (
            self._search(self._at + 1, end) is None and not self._window.exhausted
        ):
            return False
        self._open = None
        error = CorruptChunk(
            f"damaged at byte {self._at}: a frame that does not end", offset=self._at
        )
        return self._resume(end, error)

    def _index(self, end: int) -> bool:
        try:
            entry = read_entry(self._window, self._at, end, self._limits)
            if entry is None:
                return self._tail(end)
            check_entry(entry)
        except CorruptChunk as error:
            return self._resume(end, error)
        self._at = entry.end
        self.closed = True
        return True

    def _resume(self, end: int, error: CorruptChunk) -> bool:
        """Note damage that begins here and search for the next chunk."""
        start = self._at
        chunk = self.chunks[-1].place.number if self.chunks and error.chunk is None else error.chunk
        self._window.charge(_RESUME_BYTES)
        found = self._search(start + 1, end)
        stop = end if found is None or self._window.exhausted else found
        if self.damages and self.damages[-1].end == start:
            before = self.damages.pop()
            self.damages.append(DamagedRange(before.start, stop, before.chunk, before.what))
        else:
            self.damages.append(DamagedRange(start, stop, chunk, str(error)))
        self._at = stop
        return self._at < end

    def _search(self, start: int, end: int) -> int | None:
        """Return the place at which the next CHUNK frame may begin, at or after `start`; None: there is none."""
        at = start + HEADER.size
        while at + len(CHUNK_MAGIC) <= end and not self._window.exhausted:
            begin, block = self._block
            if not begin <= at <= begin + len(block) - len(CHUNK_MAGIC):
                begin, block = at, self._window.source.read_at(at, min(_SEARCH_BYTES, end - at))
                self._window.charge(len(block))
                self._block = (begin, block)
                if len(block) < len(CHUNK_MAGIC):
                    return None
            found = block.find(CHUNK_MAGIC, at - begin)
            if found >= 0:
                return begin + found - HEADER.size
            at = begin + len(block) - len(CHUNK_MAGIC) + 1
        return None
