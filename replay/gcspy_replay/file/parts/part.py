"""One part of a recording: its header, and the places of its chunks from the index or from a scan.

Knows one file; `reader` makes a recording of several.
"""

from __future__ import annotations

from collections import OrderedDict
from copy import copy
from typing import Any

from gcspy_protocol.codec import decode, unpack
from gcspy_protocol.errors import (
    CorruptChunk,
    RecordingError,
    RemoteProtocolError,
    TruncatedRecording,
)
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, Welcome
from numpy.typing import NDArray

from gcspy_replay.file.layout import (
    FOOTER_BYTES,
    PREAMBLE_BYTES,
    ChunkFlag,
    ChunkHead,
    ChunkPlace,
    FileFrame,
    PartFacts,
    blamed,
    read_copied_end,
    read_facts,
    read_footer,
    read_index,
    read_preamble,
)
from gcspy_replay.file.parts.chunk_records import ChunkRecords
from gcspy_replay.file.parts.scan import (
    DamagedRange,
    FoundChunk,
    PartScan,
    Progress,
    read_end,
    read_head,
    walk_chunk,
)
from gcspy_replay.file.parts.source import ByteSource, Window
from gcspy_replay.file.parts.walk import check_entry, read_entry
from gcspy_replay.file.records.record import NoticeReader

__all__ = ["ChunkFile", "RecordingPart", "read_part_header", "read_places"]

_TABLES = 64
"""Event tables of chunks that are kept at a time; one is some kilobytes."""


def read_part_header(window: Window, limits: Limits) -> tuple[PartFacts, Welcome, int]:
    """The header of the part, the recorded server, and the start of its first chunk.

    Raises:
        NotARecording: It is not a recording.
        TruncatedRecording: It ends before its header does.
        CorruptChunk: The header is damaged.
    """
    size = window.source.size()
    read_preamble(window.get(0, PREAMBLE_BYTES))
    entry = read_entry(window, PREAMBLE_BYTES, size, limits)
    if entry is None:
        raise TruncatedRecording(
            f"{window.source.name} ends after {size} bytes, in its header", offset=size
        )
    if entry.frames[0].header.type != FileFrame.RECORDING:
        raise CorruptChunk(
            f"damaged at byte {PREAMBLE_BYTES}: the file has no description",
            offset=PREAMBLE_BYTES,
        )
    # The seal is over the preamble too.
    whole = entry._replace(offset=0, data=window.get(0, PREAMBLE_BYTES) + entry.data)
    shifted = [
        place._replace(start=place.start + PREAMBLE_BYTES, end=place.end + PREAMBLE_BYTES)
        for place in entry.frames
    ]
    check_entry(whole._replace(frames=shifted))
    first = entry.frames[0]
    facts = read_facts(first.header, entry.payload(first), limits, PREAMBLE_BYTES)
    for place in entry.frames:
        if place.header.type == FrameType.WELCOME:
            try:
                raw = unpack(place.header, entry.payload(place), limits, place.start)
                welcome = decode(place.header, raw, limits)
            except RemoteProtocolError as error:
                raise blamed(error, PREAMBLE_BYTES + place.start, None) from error
            assert isinstance(welcome, Welcome)
            return facts, welcome, entry.end
    raise CorruptChunk(
        "the file does not name its target: gcspy repair searches the rest of the file for it",
        offset=PREAMBLE_BYTES,
    )


def read_places(
    window: Window, limits: Limits, *, start: int | None = None
) -> tuple[list[ChunkPlace], dict[int, bytes]] | None:
    """The places of the chunks from the index of a part.

    Args:
        window: Window of the part.
        limits: Limits on its content.
        start: Where the first chunk should begin; None if the header is damaged.

    Returns:
        The places, and by the chunks' numbers the frames that end them, if the index has these; None when there is no index, or it
        leaves bytes of the file out.
    """
    size = window.source.size()
    footer = read_footer(window.source.read_at(max(0, size - FOOTER_BYTES), FOOTER_BYTES))
    if footer is None or sum(footer) + FOOTER_BYTES != size:
        return None
    offset, length = footer
    try:
        entry = read_entry(window, offset, size, limits)
        if (
            entry is None
            or len(entry.data) != length
            or entry.frames[0].header.type != FileFrame.INDEX
        ):
            return None
        check_entry(entry)
        first = entry.frames[0]
        places, ends = read_index(first.header, entry.payload(first), limits, offset)
    except CorruptChunk:
        return None
    # An index that leaves bytes out is not of this file: a scan says what is there. Its chunks do not overlap.
    begin = start if start is not None else places[0].offset if places else offset
    return (places, ends) if begin + sum(place.size for place in places) == offset else None


_KEPT_RECORDS_BYTES = 16 << 20
"""Bytes of records, beside those of the chunk that was asked for last, that are kept unpacked."""


class ChunkFile:
    """Bytes that have chunks in them, whatever stands before and behind.

    Args:
        window: Window of the bytes.
        limits: Limits on their content.

    Attributes:
        window: The window.
        notices: Reads the notices in its records; schemas that come again are decoded once.
    """

    def __init__(self, window: Window, limits: Limits) -> None:
        self.window, self._limits = window, limits
        self._tables: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._made: dict[int, NDArray[Any]] = {}  # tables that no CHUNK_END has
        self._ends: dict[int, bytes] = {}
        self._records: OrderedDict[int, ChunkRecords] = OrderedDict()
        self._heads: dict[int, ChunkHead] = {}
        self.notices = NoticeReader(limits)

    def take(self, found: FoundChunk) -> ChunkPlace:
        """Keep the table of a chunk that a scan found."""
        if found.checked:
            self._made[found.place.number] = found.rows
        return found.place

    def rows(self, place: ChunkPlace) -> NDArray[Any]:
        """The event table of a chunk, dtype `ROWS`.

        Raises:
            CorruptChunk: The chunk is not there.
        """
        made = self._made.get(place.number)
        if made is not None:
            return made
        found = self._tables.get(place.number)
        if found is not None:
            self._tables.move_to_end(place.number)
            return found
        rows = self._read_rows(place)
        self._tables[place.number] = rows
        if len(self._tables) > _TABLES:
            self._tables.popitem(last=False)
        return rows

    def _read_rows(self, place: ChunkPlace) -> NDArray[Any]:
        copied = self._copied_rows(place)
        if copied is not None:
            return copied
        end = place.offset + place.size
        try:
            closed = read_end(
                self.window, place.offset, place.offset + place.end_at, end, self._limits
            )
            if closed is not None and len(closed[0].rows) == place.events:
                return closed[0].rows
        except CorruptChunk:
            pass  # the chunk itself may still be whole
        walked = walk_chunk(self.window, place.offset, end, self._limits)
        if walked is None or walked.head.number != place.number or walked.head.first != place.first:
            raise CorruptChunk(
                f"chunk {place.number} should be at byte {place.offset}, and is not",
                offset=place.offset,
                chunk=place.number,
            )
        self._made[place.number] = walked.rows
        return walked.rows

    def _copied_rows(self, place: ChunkPlace) -> NDArray[Any] | None:
        """The event table of a chunk as the index has it, if it does."""
        data = self._ends.get(place.number)
        if data is None:
            return None
        try:
            rows = read_copied_end(data, self._limits, place.offset, size=place.end_at).rows
        except CorruptChunk:
            return None
        return rows if len(rows) == place.events else None

    def records(self, place: ChunkPlace) -> ChunkRecords:
        """The records of a chunk that has records.

        Raises:
            CorruptChunk: Its beginning is damaged.
        """
        found = self._records.get(place.number)
        # The end of a chunk that is still being written is where its last whole entry ended.
        end = place.offset + (place.end_at or place.size)
        if found is None:
            opened = read_head(self.window, place.offset, place.offset + place.size, self._limits)
            if opened is None:
                raise self._not_there(place)
            found = ChunkRecords(self.window, opened[1].end, end, place.number, self._limits)
            self._records[place.number] = found
        self._records.move_to_end(place.number)
        found.end = max(found.end, end)
        while len(self._records) > 1 and (
            sum(one.kept_bytes for one in self._records.values()) - found.kept_bytes
            > _KEPT_RECORDS_BYTES
        ):
            self._records.popitem(last=False)
        return found

    def _not_there(self, place: ChunkPlace) -> CorruptChunk:
        return CorruptChunk(
            f"damaged at byte {place.offset}: chunk {place.number} does not begin there",
            offset=place.offset,
            chunk=place.number,
        )

    def knows_head(self, place: ChunkPlace) -> bool:
        """Whether the head of a chunk was read already."""
        return place.offset in self._heads

    def head(self, place: ChunkPlace) -> ChunkHead:
        """Fields of the CHUNK frame of a chunk.

        Raises:
            CorruptChunk: It is damaged, or another chunk's.
        """
        found = self._heads.get(place.offset)
        if found is None:
            opened = read_head(self.window, place.offset, place.offset + place.size, self._limits)
            if opened is None:
                raise self._not_there(place)
            found = opened[0]
            self._heads[place.offset] = found
        if (found.number, found.first) != (place.number, place.first):
            raise self._not_there(place)
        return found


class RecordingPart(ChunkFile):
    """A part that is read.

    Args:
        source: Its bytes.
        limits: Limits on its content.
        progress: Called with the progress of a scan.

    Attributes:
        facts: The facts in its header.
        welcome: The recorded server.
        places: Places of its chunks, in order.
        damages: Ranges that a scan could not use; empty if there was an index.
        indexed: Whether the index was there: a recorder closed the part.
        tail: Bytes at the end that are no whole entry.

    Raises:
        RecordingError: It is not a recording, or its header is damaged.
    """

    def __init__(
        self, source: ByteSource, limits: Limits, *, progress: Progress | None = None
    ) -> None:
        super().__init__(Window(source), limits)
        self.facts, self.welcome, self._start = read_part_header(self.window, limits)
        self.places: list[ChunkPlace] = []
        self.damages: list[DamagedRange] = []
        self.tail = 0
        self._scan: PartScan | None = None
        index = read_places(self.window, limits, start=self._start)
        self.indexed = index is not None
        if index is not None:
            self.places, self._ends = index
        else:
            self._scan = PartScan(self.window, self._start, limits)
            self.refresh(progress)

    def prefetch_tables(self) -> None:
        """Prepare for reading the event tables of all chunks."""
        ends = [
            (one.offset + one.end_at, one.offset + one.size)
            for one in self.places
            if one.events
            and one.end_at
            and one.number not in self._made
            and one.number not in self._ends
        ]
        self.window.source.prefetch(ends)

    def again(self, source: ByteSource) -> RecordingPart:
        """The same part for another reader, with all that this one knows of it.

        Args:
            source: The same bytes.

        Raises:
            RecordingError: They are another part's.
        """
        twin = copy(self)
        twin.window = Window(source)
        if read_part_header(twin.window, self._limits)[0] != self.facts:
            raise RecordingError(
                f"{source.name} has been replaced by another recording: open it again"
            )
        twin.places, twin.damages = list(self.places), list(self.damages)
        twin.notices = NoticeReader(self._limits)
        twin._records, twin._heads = OrderedDict(), dict(self._heads)
        twin._tables, twin._made = OrderedDict(self._tables), dict(self._made)
        twin._scan = None if self._scan is None else self._scan.again(twin.window)
        return twin

    @property
    def packed(self) -> bool:
        """Whether its records are packed by column."""
        try:
            return bool(self.places) and bool(self.head(self.places[0]).flags & ChunkFlag.PACKED)
        except CorruptChunk:
            return False

    @property
    def finished(self) -> bool:
        """Whether nothing more will come."""
        return self.indexed or (self._scan is not None and self._scan.closed)

    def refresh(self, progress: Progress | None = None) -> bool:
        """Read data that was written since; return whether there was any."""
        scan = self._scan
        if scan is None:
            return False
        grown = scan.advance(progress)
        self.damages, self.tail = scan.damages, scan.tail
        if not grown:
            return False
        first = max(0, len(self.places) - 1)
        del self.places[first:]
        self.places += [self.take(found) for found in scan.chunks[first:]]
        return True
