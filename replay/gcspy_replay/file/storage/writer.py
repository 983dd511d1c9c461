"""The writer: stores the messages of one client (FORMAT.md section 4).

An event is written with one write of the system's when it has arrived whole, so that
SIGKILL at any moment costs no event that was shown. When a chunk is full the next
one begins with a keyframe, made from the client interpreter's arrays.

Knows messages, the interpreter and a store; does not know sockets or clocks: a
second is one of the target's.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.errors import LocalProtocolError, RecordingError
from gcspy_protocol.frames.frame import HEADER, Frame
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, Message

from gcspy_replay.file.cursor import RecordedEvent
from gcspy_replay.file.keyframe import encode_keyframe, name_pages, schema_messages
from gcspy_replay.file.layout import (
    CHUNK_BYTES,
    FORMAT_VERSION,
    MOST_EVENTS,
    ROWS,
    SEAL_BYTES,
    WIRE_VERSION,
    ChunkFlag,
    ChunkHead,
    ChunkPlace,
    PartFacts,
    pack_chunk,
    pack_chunk_end,
    pack_facts,
    pack_footer,
    pack_index,
    pack_preamble,
    pack_seal,
    pack_table,
)
from gcspy_replay.file.records.blocks import FAST_LEVEL, LEVEL, ColumnPacker, RecordPacker
from gcspy_replay.file.records.record import RecordWriter
from gcspy_replay.file.storage.store import Store, TimedStore
from gcspy_replay.file.storage.tap import WireTap

__all__ = ["PACKED_RULE", "ChunkRule", "RecordingWriter"]

_OF_EVENTS = (m.Tiles, m.StreamKey, m.StreamDelta, m.Summary, m.SpaceInfo, m.NewNames)

_NOTICES = (
    m.SpaceDefined,
    m.SpaceRemoved,
    m.EpochEnd,
    m.Counters,
    m.State,
    m.Filters,
    m.Missed,
    m.TileNames,
    m.Triggers,
    m.Fired,
    m.Settings,
    m.Budget,
)
"""Recorded messages other than events, as in `tap`."""

_KEYFRAME, _CACHED = 1, 2
_NANOS = 1_000_000_000

_LEAST_WEIGHED_BYTES = 256 << 10
"""A keyframe below this weighs as much as this: it costs less than what its chunk needs besides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkRule:
    """When a chunk ends: at the first event after which one of these holds.

    A keyframe costs bytes, a long chunk costs time to seek in, and damage costs the rest of its
    chunk. With a weight of 3, a seek applies deltas of at most three keyframes. A chunk per second
    regardless of its weight, the first design, made a clock of ten events per second mostly
    keyframes, without a benefit, since each event is safe in the file once it was written.

    A chunk of records is one zstd stream, in which what was there before costs next to nothing. So
    it lasts longer than one of frames, whose keyframe is most of it, and a small heap's state is
    repeated in it, from which a seek begins.

    Attributes:
        weight: End when the deltas have the size of this many keyframes, both before zstd,
        events: but not before this many events: if everything changes, a delta is as large as a
            keyframe.
        most_events: End after this many.
        large_events: The same, where the state has more than `key_bytes`: to write it takes as long
            as a hundred events.
        most_secs: End after this time, by the target's clock.
        key_events: In a chunk of records, repeat the state after this many events; 0: never,
        key_bytes: if it has at most this many bytes before zstd.
    """

    weight: float = 3.0
    events: int = 8
    most_events: int = 128
    large_events: int = 256
    most_secs: float = 10.0
    key_events: int = 8
    key_bytes: int = 1 << 20

    @classmethod
    def of(cls, store: Store) -> ChunkRule:
        """The rule for a store: in a ring with a time limit, a chunk must not last longer than a part should."""
        part_nanos = store.part_nanos if isinstance(store, TimedStore) else None
        if part_nanos is not None:
            return cls(most_secs=min(cls().most_secs, part_nanos / _NANOS))
        return cls()

    def ends(self, *, events: int, span_nanos: int, delta_bytes: int, key_bytes: int) -> bool:
        """Whether a chunk of these sizes ends."""
        most = self.most_events
        if key_bytes > self.key_bytes:
            most = max(most, self.large_events)
        if events >= min(most, MOST_EVENTS) or span_nanos >= self.most_secs * _NANOS:
            return True
        return events >= self.events and delta_bytes >= self.weight * key_bytes


PACKED_RULE = ChunkRule(weight=8.0, most_events=512, most_secs=1e9, key_events=10)
"""When a packed chunk ends: it is unpacked whole, so that it may not become too large."""


class _Chunk:
    """The writer's state of its current chunk."""

    def __init__(
        self,
        head: ChunkHead,
        *,
        size: int,
        key_bytes: int,
        crcs: bytes,
        packer: RecordPacker | ColumnPacker | None = None,
        large: bool = False,
    ) -> None:
        self.head = head
        self.packer = packer
        self.large = large
        self.since_key = 0
        self.size = size
        self.key_bytes = key_bytes
        self.delta_bytes = 0
        self.crcs = bytearray(crcs)
        self.rows: list[tuple[int, ...]] = []

    def weighed_bytes(self) -> int:
        """Bytes of the keyframe, by which the deltas are weighed."""
        return self.key_bytes if self.packer is None else max(self.key_bytes, _LEAST_WEIGHED_BYTES)

    def span_nanos(self) -> int:
        times = [row[3] for row in (self.rows[0], self.rows[-1])] if self.rows else [0, 0]
        return abs(times[1] - times[0])

    def table(self) -> np.ndarray[Any, Any]:
        return np.array(self.rows, dtype=ROWS)


def _event_crc(data: bytes) -> bytes:
    """The CRC that an encoded event carries: the first bytes of its last frame's payload."""
    at = 0
    while True:
        length = int.from_bytes(data[at : at + 4], "little")
        after = at + HEADER.size + length
        if after >= len(data):
            return data[at + HEADER.size : at + HEADER.size + 4]
        at = after


class RecordingWriter:
    """Writes the messages of a client.

    Apply each message to the interpreter first, then add it here::

        for message in connection.messages():
            interpreter.apply(message)
            writer.add(message)

    Nothing is written before the first event. A session that is joined late, or recorded from a
    button, begins with `start`: the interpreter's current state is the first event.

    Args:
        store: The destination.
        session: The client's interpreter, of which keyframes are made.
        rule: When chunks end; by default as suits the store.
        facts: Facts in the file; by default a new random id.
        first: Number of the first event.
        tap: Source of the server's own bytes: frames of a later version are kept then, and in
            version 1 nothing is encoded again.
        version: Of the format: 2, records; or 1, the frames of the wire, which costs less time and
            more bytes.
        packed: Level of zstd at which the records of a chunk are packed by column, when the chunk is
            full; None: each event is written at once.

    Attributes:
        events: How many were written.
        bytes_written: Bytes handed to the store.
        number: Number of the latest event; `first` - 1 before it.
    """

    def __init__(
        self,
        store: Store,
        session: ClientInterpreter,
        *,
        rule: ChunkRule | None = None,
        facts: PartFacts | None = None,
        first: int = 1,
        tap: WireTap | None = None,
        version: int = FORMAT_VERSION,
        packed: int | None = None,
    ) -> None:
        self._store, self._session, self._tap = store, session, tap
        self._version, self._packed = version, packed
        self._records = RecordWriter(session) if version != WIRE_VERSION else None
        self._key = b""  # a state that is written with the next event
        self._rule = rule or (ChunkRule.of(store) if packed is None else PACKED_RULE)
        self._facts = facts or PartFacts(recording=secrets.token_bytes(16))
        self.events = 0
        self.bytes_written = 0
        self.number = first - 1
        self._frames: list[Frame] = []
        self._packed_deltas: dict[tuple[int, int], m.StreamDelta | None] = {}
        self._notices: list[bytes] = []
        self._chunk: _Chunk | None = None
        self._next: tuple[_Chunk, bytes] | None = (
            None  # the chunk that the next event begins, and its head
        )
        self._pending = b""  # a head that is written with the first event, in one write
        self._chunks = 0
        self._parts = 0
        self._part_bytes = 0
        self._places: list[ChunkPlace] = []
        self._ends: list[bytes] = []
        self._closed = False

    @property
    def started(self) -> bool:
        """Whether an event was written."""
        return self._chunk is not None

    @property
    def waiting(self) -> bool:
        """Whether there are notices that wait for the next event, or for `flush`."""
        return bool(self._notices)

    def follow(self, session: ClientInterpreter, *, tap: WireTap | None = None) -> None:
        """Make keyframes of another interpreter, which knows the same, or of which `start` is called next.

        Args:
            session: The interpreter.
            tap: The tap of its connection, if it changed; by default the previous one.
        """
        self._session = session
        if self._records is not None:
            self._records.follow(session)
        if tap is not None:
            self._tap = tap

    # ---------------------------------------------------------------- received messages

    def add(self, message: Message) -> None:
        """Keep a message that the interpreter has followed already.

        Raises:
            RecordingError: It cannot be written, or the recording was closed. Earlier data can be
                read.
            LocalProtocolError: The interpreter has not followed it, or is ahead of it.
        """
        if self._closed:
            raise RecordingError(f"the recording was closed after event {self.number}")
        if isinstance(message, Event) and self._session.last_event is not message:
            raise LocalProtocolError(
                "apply each message to the interpreter before it is recorded, one by one"
            )
        if isinstance(message, m.StreamDelta) and self._records is not None:
            self._note_packed(message)
        if self._tap is not None:
            self._add_tapped(self._tap, message)
        elif isinstance(message, Event):
            frames, self._frames = self._frames, []
            if self._chunk is None:
                self.start()
            elif self._records is not None:
                self._add_event(b"")
            else:
                self._add_event(encode_event(message, frames))
        elif self._chunk is not None:
            if isinstance(message, _OF_EVENTS):
                if self._records is None:
                    self._frames.append(encode(message))
            elif isinstance(message, _NOTICES):
                self._notices.append(encode(message).data)

    def _note_packed(self, message: m.StreamDelta) -> None:
        """Remember changes that the server has compressed already, if they are the only ones of their stream in the event."""
        where = message.space, message.stream
        if message.packed is not None or where in self._packed_deltas:
            self._packed_deltas[where] = None if where in self._packed_deltas else message

    def _add_tapped(self, tap: WireTap, message: Message) -> None:
        if not isinstance(message, (Event, *_NOTICES)):
            return  # comes with its event, or is passed over
        notices, data = tap.take(message, events=self._records is None)
        if isinstance(message, m.Missed):
            # Over several connections the recorder's own sum continues; the server's starts again.
            notices = _without_last(notices) + encode(message).data
        if self._chunk is None:
            if isinstance(message, Event):
                self.start()
            return
        self.add_notices(notices)
        if isinstance(message, Event):
            self._add_event(data)

    def start(self, number: int | None = None) -> None:
        """Begin a chunk that needs nothing before it, with the interpreter's latest event as a keyframe.

        Args:
            number: The event's number, higher than any before; by default the next.

        Raises:
            LocalProtocolError: There was no event yet.
        """
        self._next = None
        self._packed_deltas.clear()
        self._end_chunk()
        number = self.number + 1 if number is None else number
        if self._records is not None:
            self._records = RecordWriter(self._session)
            keyframe = self._records.first_event()
            self._chunk, self._pending = self._begin_records(
                self._records, number, continues=False, state_bytes=len(keyframe)
            )
        else:
            keyframe = encode_keyframe(self._session, cached=False)
            self._chunk, self._pending = self._begin(number, continues=False)
        self._chunk.key_bytes = len(keyframe)
        self._take(number, keyframe, delta=False)
        if self._records is not None:
            return
        pages = b"".join(encode(page).data for page in name_pages(self._session, large_only=True))
        if pages:
            self._notices.append(pages)

    def add_step(self, step: RecordedEvent) -> None:
        """Keep an event of another recording, with the notices before it.

        Args:
            step: The event, as a cursor hands it out; the interpreter is that of the cursor.
        """
        self.add_notices(step.notice_data)
        self._add_event(b"" if self._records is not None else step.data)

    def _add_event(self, data: bytes) -> None:
        """Keep the interpreter's latest event.

        Args:
            data: Its frames, EVENT last; not looked at if records are written.
        """
        self._turn()
        if self._records is not None:
            notices = self._take_notices()  # they precede the event
            assert self._chunk is not None
            packed = self._packed_deltas if self._chunk.large else {}
            self._take(self.number + 1, notices + self._records.event(packed), delta=True)
        else:
            self._take(self.number + 1, data, delta=True)
        self._packed_deltas.clear()
        chunk = self._chunk
        assert chunk is not None
        full = self._rule.ends(
            events=len(chunk.rows),
            span_nanos=chunk.span_nanos(),
            delta_bytes=chunk.delta_bytes,
            key_bytes=chunk.weighed_bytes(),
        )
        # A long chunk would make a part much larger than it should be.
        full |= len(chunk.rows) >= self._rule.events and self._store.is_full(
            part_bytes=self._part_bytes
        )
        if full:
            # The current state; whether a next event will begin the chunk is not known yet.
            self._next = self._begin(self.number + 1, continues=True)
        elif self._records is not None and self._rule.key_events:
            chunk.since_key += 1
            if chunk.since_key >= self._rule.key_events and chunk.key_bytes <= self._rule.key_bytes:
                self._key, chunk.since_key = self._records.key(), 0

    def add_notices(self, data: bytes) -> None:
        """Keep frames between events that are encoded already."""
        if data:
            self._notices.append(data)

    def flush(self) -> None:
        """Write the notices that wait for the next event.

        For a recorder whose session is quiet: a pause would otherwise be in the file when it is over. This
        room knows no clock, so when to call it is the caller's affair.

        Raises:
            RecordingError: They cannot be written.
        """
        if not self._closed:
            self._write_notices()

    def _write_notices(self) -> None:
        if self._notices and self._chunk is not None:
            self._turn()
            if self._records is None:
                self._append(self._sealed_notices())
                return
            notices = self._take_notices()
            block = self._block(notices) if notices else b""
            if block:
                self._append(block)

    def close(self) -> None:
        """Write the rest, the index and the footer; further calls do nothing.

        A session without any event is kept too, with its schema.
        """
        if self._closed:
            return
        self._closed = True
        if self._chunk is None and self._session.welcome is not None and not self._chunks:
            self._chunk, self._pending = self._begin(self.number + 1, continues=False)
        self._next = None  # the last notices need no keyframe of their own
        self._write_notices()
        if self._pending and not self._parts:
            self._append(b"")
        self._end_chunk()
        self._end_part()
        self._store.close()

    # ------------------------------------------------------------ written entries

    def _turn(self) -> None:
        """Begin the next chunk, if the one before is full."""
        if self._next is not None:
            notices, self._notices = (
                self._notices,
                [],
            )  # they came after the state that the head repeats
            following, self._next = self._next, None
            self._key = b""
            self._end_chunk()
            self._chunk, self._pending = following
            self._notices = notices

    def _take(self, number: int, data: bytes, *, delta: bool) -> None:
        """Write an event with the notices before it.

        Args:
            number: Its number.
            data: Its frames; or a record, after one of the notices before it.
            delta: Whether it is a difference, by whose size the chunk may end.
        """
        event, chunk = self._session.last_event, self._chunk
        assert event is not None
        assert chunk is not None
        if delta:
            chunk.delta_bytes += len(data)
        if self._records is not None:
            notices, start = b"", chunk.size
            data = self._block(data)
        else:
            notices = self._sealed_notices()
            start = chunk.size
            chunk.size += len(data)
            chunk.crcs += _event_crc(data)
            if delta:
                chunk.delta_bytes += len(notices)
        flags = (_KEYFRAME if event.keyframe or not delta else 0) | (_CACHED if event.cached else 0)
        chunk.rows.append(
            (
                start,
                chunk.size,
                event.sequence,
                event.time_nanos,
                event.occurrence,
                event.gather_nanos,
                event.held_nanos,
                self._session.missed_total,
                event.event,
                flags,
            )
        )
        if self._packed is None:
            self._append(notices + data)
        self.number = number
        self.events += 1

    def _take_notices(self) -> bytes:
        """The notices that wait, as a record; empty if there are none."""
        assert self._records is not None
        if not self._notices:
            return b""
        frames, self._notices = b"".join(self._notices), []
        return self._records.notices(frames) or b""

    def _block(self, records: bytes) -> bytes:
        """The block of some records, after the state that waits; the chunk has it then."""
        chunk = self._chunk
        assert chunk is not None
        assert chunk.packer is not None
        block = chunk.packer.block(self._key + records)
        self._key = b""
        if not block:
            return block  # by column, when the chunk ends
        chunk.size += len(block)
        chunk.crcs += block[HEADER.size : HEADER.size + 4]
        return block

    def _columns(self, chunk: _Chunk, packer: ColumnPacker) -> bytes:
        """The block of all records of a chunk."""
        block = packer.end()
        start, end = chunk.size, chunk.size + len(block)
        chunk.rows = [(start, end, *row[2:]) for row in chunk.rows]
        chunk.crcs += block[HEADER.size : HEADER.size + 4]
        chunk.size = end
        return block

    def _sealed_notices(self) -> bytes:
        if not self._notices:
            return b""
        chunk = self._chunk
        assert chunk is not None
        data = b"".join(self._notices)
        self._notices = []
        seal = pack_seal(data)
        chunk.size += len(data) + len(seal)
        chunk.crcs += seal[-4:]
        return data + seal

    def _append(self, data: bytes) -> None:
        """Hand bytes to the store, in one piece with the head that waits."""
        out = self._pending + data
        self._pending = b""
        if not self._part_bytes:
            with self._ending_where_unwritable():
                self._store.begin(self._parts)
            self._parts += 1
            out = self._part_header() + out
        chunk = self._chunk
        assert chunk is not None
        time_nanos = self._session.last_event.time_nanos if self._session.last_event else 0
        self._put(out, time_nanos)

    def _put(self, data: bytes, time_nanos: int) -> None:
        with self._ending_where_unwritable():
            self._store.append(data, time_nanos=time_nanos)
        self._part_bytes += len(data)
        self.bytes_written += len(data)

    @contextmanager
    def _ending_where_unwritable(self) -> Iterator[None]:
        """Close the recording where the body cannot write.

        Half an entry may be in the file then; another behind it would look like damage.
        """
        try:
            yield
        except RecordingError:
            self._closed = True
            self._store.close()
            raise

    def _part_header(self) -> bytes:
        assert self._session.welcome is not None
        header = pack_preamble(self._version) + pack_facts(
            replace(self._facts, part=self._facts.part + self._parts - 1)
        )
        header += encode(self._session.welcome).data
        return header + pack_seal(header)

    def _begin(self, first: int, *, continues: bool) -> tuple[_Chunk, bytes]:
        """A new chunk and its head; nothing is written yet."""
        if self._records is not None:
            return self._begin_records(self._records, first, continues=continues)
        schema = _frames_of(schema_messages(self._session))
        after = b""
        key_bytes = 0
        crcs = b""
        if continues:
            after = encode_keyframe(self._session, cached=True)
            key_bytes = len(after)
            crcs = _event_crc(after)
            pages = _frames_of(name_pages(self._session, large_only=True))
            if pages:
                seal = pack_seal(pages)
                after += pages + seal
                crcs += seal[-4:]
        head_bytes = CHUNK_BYTES + len(schema) + SEAL_BYTES + len(after)
        flags = ChunkFlag.CONTINUES if continues else ChunkFlag(0)
        head = ChunkHead(self._facts.recording, self._chunks, first, head_bytes, flags)
        sealed = pack_chunk(head) + schema
        seal = pack_seal(sealed)
        self._chunks += 1
        return _Chunk(
            head, size=head_bytes, key_bytes=key_bytes, crcs=seal[-4:] + crcs
        ), sealed + seal + after

    def _begin_records(
        self, records: RecordWriter, first: int, *, continues: bool, state_bytes: int = 0
    ) -> tuple[_Chunk, bytes]:
        """A new chunk of records and its head; `state_bytes`: of the state that follows, if it is not in the head."""
        key = records.key() if continues else records.schema()
        large = max(len(key), state_bytes) > self._rule.key_bytes
        level = FAST_LEVEL if large else LEVEL
        packer = RecordPacker(level) if self._packed is None else ColumnPacker(self._packed)
        block = packer.block(key)
        flags = ChunkFlag.RECORDS | (ChunkFlag.CONTINUES if continues else ChunkFlag(0))
        flags |= ChunkFlag(0) if self._packed is None else ChunkFlag.PACKED
        head_bytes = CHUNK_BYTES + SEAL_BYTES + len(block)
        head = ChunkHead(self._facts.recording, self._chunks, first, head_bytes, flags)
        sealed = pack_chunk(head)
        seal = pack_seal(sealed)
        self._chunks += 1
        crcs = seal[-4:] + block[HEADER.size : HEADER.size + 4]
        # The rows of a packed chunk get the place of its block when that is known.
        chunk = _Chunk(
            head,
            size=head_bytes,
            key_bytes=len(key),
            crcs=crcs,
            packer=packer,
            large=large and self._packed is None,
        )
        return chunk, sealed + seal + block

    def _end_chunk(self) -> None:
        """Write the end of the chunk, if one has begun in the store; and of the part, if that is full."""
        chunk = self._chunk
        if chunk is None:
            return
        self._write_notices()
        if isinstance(chunk.packer, ColumnPacker) and (chunk.packer.count > 1 or not self._pending):
            self._append(self._columns(chunk, chunk.packer))
        self._chunk = None
        if self._pending:
            self._pending = b""  # nothing came after its head
            return
        pack_end = pack_chunk_end if chunk.packer is None else pack_table
        end = pack_end(chunk.size, bytes(chunk.crcs), chunk.table())
        offset = self._part_bytes - chunk.size
        times = [row[3] for row in chunk.rows]
        self._places.append(
            ChunkPlace(
                offset=offset,
                size=chunk.size + len(end),
                end_at=chunk.size,
                number=chunk.head.number,
                first=chunk.head.first,
                first_time=times[0] if times else 0,
                last_time=times[-1] if times else 0,
                events=len(chunk.rows),
            )
        )
        self._ends.append(end[:-SEAL_BYTES])
        self._put(end, times[-1] if times else 0)
        if self._store.is_full(part_bytes=self._part_bytes):
            self._end_part()

    def _end_part(self) -> None:
        if not self._part_bytes:
            return
        index = pack_index(self._places, self._ends)
        data = index + pack_footer(self._part_bytes, len(index))
        self._put(data, self._places[-1].last_time if self._places else 0)
        self._store.end()
        self._part_bytes = 0
        self._places, self._ends = [], []


def _without_last(frames: bytes) -> bytes:
    """All frames but the last."""
    at = 0
    while (after := at + HEADER.size + int.from_bytes(frames[at : at + 4], "little")) < len(frames):
        at = after
    return frames[:at]


def _frames_of(messages: Iterable[Message]) -> bytes:
    return b"".join(encode(message).data for message in messages)
