"""The records of one chunk, unpacked in order and kept (FORMAT.md section 11).

Knows blocks and their CRCs; does not know a client's state.
"""

from __future__ import annotations

from typing import NamedTuple

from gcspy_protocol import messages as m
from gcspy_protocol.errors import CorruptChunk, ProtocolError
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Event

from gcspy_replay.file.layout import FileFrame, blamed
from gcspy_replay.file.parts.source import Window
from gcspy_replay.file.parts.walk import check_entry, read_entry
from gcspy_replay.file.records.blocks import ColumnUnpacker, RecordUnpacker, most_unpacked
from gcspy_replay.file.records.fields import FieldReader
from gcspy_replay.file.records.record import NoticeReader, RecordKind, event_of

__all__ = ["ChunkRecords", "RowReader", "StoredRecord"]

NOT_RECORDS = (IndexError, ValueError, OverflowError)
"""What reading the fields of a record raises if it is not one; errors of the protocol besides."""


class StoredRecord(NamedTuple):
    """A record of a chunk.

    Attributes:
        kind: What it is.
        data: All its bytes.
        start: Offset of its block in the part.
        end: Offset behind its block.
    """

    kind: int
    data: memoryview
    start: int
    end: int


class ChunkRecords:
    """The records of a chunk; those that were asked for once are kept.

    Args:
        window: Window of the part.
        start: Offset of the chunk's first block.
        end: End of the chunk, or of what is there of it.
        number: Number of the chunk, for errors.
        limits: Limits on its content.

    Attributes:
        end: End of the chunk; move it when the chunk has grown.
        kept_bytes: Bytes of the records.
        at: Offset of the next block.
        crcs: The CRCs of the blocks so far, u32 each.
        events: Places of the EVENT records among the records.
        keys: Places of the KEY records.
    """

    def __init__(self, window: Window, start: int, end: int, number: int, limits: Limits) -> None:
        self._window, self._number, self._limits = window, number, limits
        self.at, self.end = start, end
        self.kept_bytes = 0
        self.crcs = bytearray()
        self.events: list[int] = []
        self.keys: list[int] = []
        self._packed_bytes = 0
        self._records: list[StoredRecord] = []
        self._unpacker: RecordUnpacker | ColumnUnpacker | None = None
        self._error: CorruptChunk | None = None

    def __len__(self) -> int:
        return len(self._records)

    def record(self, place: int) -> StoredRecord | None:
        """The record at a place; None if there is none yet.

        Raises:
            CorruptChunk: Its block, or one before it, is damaged.
        """
        while place >= len(self._records):
            if not self._unpack():
                return None
        return self._records[place]

    def event(self, number: int) -> int | None:
        """Place of the event of this number from the beginning of the chunk; None if there is none yet.

        Raises:
            CorruptChunk: Its block, or one before it, is damaged.
        """
        while number >= len(self.events):
            if not self._unpack():
                return None
        return self.events[number]

    def _unpack(self) -> bool:
        """Unpack the next block; return whether there was one."""
        if self._error is not None:
            raise self._error
        if self.at >= self.end:
            return False
        try:
            return self._take()
        except CorruptChunk as error:
            error.chunk = self._number
            self._error = error
            raise

    def _take(self) -> bool:
        entry = read_entry(self._window, self.at, self.end, self._limits)
        if entry is None:
            raise CorruptChunk(
                f"damaged at byte {self.at}: a frame leaves its chunk", offset=self.at
            )
        kind = entry.frames[0].header.type
        if entry.is_event:
            raise CorruptChunk(
                f"damaged at byte {self.at}: a frame of type {kind:#04x} among records",
                offset=self.at,
            )
        crc = check_entry(entry)
        if not entry.is_block:  # sealed, of a later version
            self.crcs += crc.to_bytes(4, "little")
            self.at = entry.end
            return True
        payload = entry.payload(entry.frames[0])
        if self._unpacker is None:
            self._unpacker = RecordUnpacker() if kind == FileFrame.RECORDS else ColumnUnpacker()
        elif kind != FileFrame.RECORDS or not isinstance(self._unpacker, RecordUnpacker):
            raise CorruptChunk(
                f"damaged at byte {self.at}: columns beside other blocks", offset=self.at
            )
        self._packed_bytes += len(entry.data)
        most = min(most_unpacked(self._packed_bytes), self._limits.event_bytes) - self.kept_bytes
        records = self._unpacker.records(payload, self.at, most)
        size = sum(map(len, records))
        self.kept_bytes += size
        self._window.charge(size)
        for record in records:
            if record[0] == RecordKind.EVENT:
                self.events.append(len(self._records))
            elif record[0] == RecordKind.KEY:
                self.keys.append(len(self._records))
            self._records.append(StoredRecord(record[0], record, self.at, entry.end))
        self.crcs += crc.to_bytes(4, "little")
        self.at = entry.end
        return True


class RowReader:
    """The fields of the events of a chunk, without their values: for its table.

    Args:
        limits: Limits on the content of records.
    """

    def __init__(self, limits: Limits) -> None:
        self._notices = NoticeReader(limits)
        self._last: Event | None = None
        self._counters: tuple[int, ...] = ()
        self._missed = 0

    def again(self) -> RowReader:
        """The same, which goes its own way from here."""
        twin = object.__new__(RowReader)
        twin._notices = self._notices
        twin._last, twin._counters, twin._missed = self._last, self._counters, self._missed
        return twin

    def take(self, record: StoredRecord) -> tuple[Event, int] | None:
        """The event of a record, with the total of missed ones; None if it is no event.

        Raises:
            CorruptChunk: It is not a record.
        """
        try:
            given = FieldReader(record.data)
            if record.kind == RecordKind.EVENT:
                self._last = event_of(given, self._last, self._counters)
                return self._last, self._missed
            if record.kind in (RecordKind.NOTICES, RecordKind.KEY):
                for message in self._notices.read(given)[0]:
                    if isinstance(message, m.Counters):
                        self._counters = message.counts
                    elif isinstance(message, m.Missed):
                        self._missed = message.total
            if record.kind == RecordKind.KEY and given.integer(0, 1):
                self._last = event_of(given, None, self._counters)
        except ProtocolError as error:
            raise blamed(error, record.start, None) from error
        except NOT_RECORDS as error:
            raise CorruptChunk(
                f"damaged at byte {record.start}: a record that cannot be read: {error}",
                offset=record.start,
            ) from error
        return None
