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

from gcspy_replay.file.keyframe import encode_keyframe, name_pages, schema_messages
from gcspy_replay.file.layout import (
    CHUNK_BYTES,
    MOST_EVENTS,
    ROWS,
    SEAL_BYTES,
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
)
from gcspy_replay.file.storage.store import RingStore, Store
from gcspy_replay.file.storage.tap import WireTap

__all__ = ["ChunkRule", "RecordingWriter"]

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


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkRule:
    """When a chunk ends: at the first event after which one of these holds.

    A keyframe costs bytes, a long chunk costs time to seek in, and damage costs the rest of its
    chunk. With a weight of 0.6, keyframes are at most five eighths of a file, and a seek applies
    deltas of at most 0.6 keyframes. A chunk per second regardless of its weight, the first design,
    made a clock of ten events per second mostly keyframes, without a benefit, since each event is
    safe in the file once it was written.

    Attributes:
        weight: End when the deltas have the size of this many keyframes,
        events: but not before this many events: if everything changes, a delta is as large as a
            keyframe.
        most_events: End after this many.
        most_secs: End after this time, by the target's clock.
    """

    weight: float = 0.6
    events: int = 8
    most_events: int = 256
    most_secs: float = 10.0

    @classmethod
    def of(cls, store: Store) -> ChunkRule:
        """The rule for a store: in a ring with a time limit, a chunk must not last longer than a part should."""
        if isinstance(store, RingStore) and store.part_nanos is not None:
            return cls(most_secs=min(cls().most_secs, store.part_nanos / _NANOS))
        return cls()

    def ends(self, *, events: int, span_nanos: int, delta_bytes: int, key_bytes: int) -> bool:
        """Whether a chunk of these sizes ends."""
        if events >= min(self.most_events, MOST_EVENTS) or span_nanos >= self.most_secs * _NANOS:
            return True
        return events >= self.events and delta_bytes >= self.weight * key_bytes


class _Chunk:
    """The writer's state of its current chunk."""

    def __init__(self, head: ChunkHead, *, size: int, key_bytes: int, crcs: bytes) -> None:
        self.head = head
        self.size = size
        self.key_bytes = key_bytes
        self.delta_bytes = 0
        self.crcs = bytearray(crcs)
        self.rows: list[tuple[int, ...]] = []

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
        tap: Source of the server's own bytes; without it messages are encoded again, which costs
            more, and frames of a later version are lost.

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
    ) -> None:
        self._store, self._session, self._tap = store, session, tap
        self._rule = rule or ChunkRule.of(store)
        self._facts = facts or PartFacts(recording=secrets.token_bytes(16))
        self.events = 0
        self.bytes_written = 0
        self.number = first - 1
        self._frames: list[Frame] = []
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
        if self._tap is not None:
            self._add_tapped(self._tap, message)
        elif isinstance(message, Event):
            frames, self._frames = self._frames, []
            if self._chunk is None:
                self.start()
            else:
                self.add_event(encode_event(message, frames))
        elif self._chunk is not None:
            if isinstance(message, _OF_EVENTS):
                self._frames.append(encode(message))
            elif isinstance(message, _NOTICES):
                self._notices.append(encode(message).data)

    def _add_tapped(self, tap: WireTap, message: Message) -> None:
        if not isinstance(message, (Event, *_NOTICES)):
            return  # comes with its event, or is passed over
        notices, data = tap.take(message)
        if isinstance(message, m.Missed):
            # Over several connections the recorder's own sum continues; the server's starts again.
            notices = _without_last(notices) + encode(message).data
        if self._chunk is None:
            if isinstance(message, Event):
                self.start()
            return
        self.add_notices(notices)
        if isinstance(message, Event):
            self.add_event(data)

    def start(self, number: int | None = None) -> None:
        """Begin a chunk that needs nothing before it, with the interpreter's latest event as a keyframe.

        Args:
            number: The event's number, higher than any before; by default the next.

        Raises:
            LocalProtocolError: There was no event yet.
        """
        self._next = None
        self._end_chunk()
        keyframe = encode_keyframe(self._session, cached=False)
        number = self.number + 1 if number is None else number
        self._chunk, self._pending = self._begin(number, continues=False)
        self._chunk.key_bytes = len(keyframe)
        self._take(number, keyframe, delta=False)
        pages = b"".join(encode(page).data for page in name_pages(self._session, large_only=True))
        if pages:
            self._notices.append(pages)

    def add_event(self, data: bytes) -> None:
        """Keep an event that is encoded already, as `Cursor` hands it out.

        Args:
            data: Its frames, EVENT last; the interpreter has followed it.
        """
        self._turn()
        self._take(self.number + 1, data, delta=True)
        chunk = self._chunk
        assert chunk is not None
        full = self._rule.ends(
            events=len(chunk.rows),
            span_nanos=chunk.span_nanos(),
            delta_bytes=chunk.delta_bytes,
            key_bytes=chunk.key_bytes,
        )
        if full:
            # The current state; whether a next event will begin the chunk is not known yet.
            self._next = self._begin(self.number + 1, continues=True)

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
            self._append(self._sealed_notices())

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
            self._end_chunk()
            self._chunk, self._pending = following
            self._notices = notices

    def _take(self, number: int, data: bytes, *, delta: bool) -> None:
        """Write an event with the notices before it."""
        event, chunk = self._session.last_event, self._chunk
        assert event is not None
        assert chunk is not None
        notices = self._sealed_notices()
        start = chunk.size
        chunk.size += len(data)
        chunk.crcs += _event_crc(data)
        if delta:
            chunk.delta_bytes += len(data) + len(notices)
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
        self._append(notices + data)
        self.number = number
        self.events += 1

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
        header = pack_preamble() + pack_facts(
            replace(self._facts, part=self._facts.part + self._parts - 1)
        )
        header += encode(self._session.welcome).data
        return header + pack_seal(header)

    def _begin(self, first: int, *, continues: bool) -> tuple[_Chunk, bytes]:
        """A new chunk and its head; nothing is written yet."""
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
        head = ChunkHead(self._facts.recording, self._chunks, first, head_bytes, continues)
        sealed = pack_chunk(head) + schema
        seal = pack_seal(sealed)
        self._chunks += 1
        return _Chunk(
            head, size=head_bytes, key_bytes=key_bytes, crcs=seal[-4:] + crcs
        ), sealed + seal + after

    def _end_chunk(self) -> None:
        """Write the end of the chunk, if one has begun in the store; and of the part, if that is full."""
        chunk = self._chunk
        if chunk is None:
            return
        self._write_notices()
        self._chunk = None
        if self._pending:
            self._pending = b""  # nothing came after its head
            return
        end = pack_chunk_end(chunk.size, bytes(chunk.crcs), chunk.table())
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
        self._put(end, times[-1] if times else 0)
        if self._store.is_full(part_bytes=self._part_bytes):
            self._end_part()

    def _end_part(self) -> None:
        if not self._part_bytes:
            return
        index = pack_index(self._places)
        data = index + pack_footer(self._part_bytes, len(index))
        self._put(data, self._places[-1].last_time if self._places else 0)
        self._store.end()
        self._part_bytes = 0
        self._places = []


def _without_last(frames: bytes) -> bytes:
    """All frames but the last."""
    at = 0
    while (after := at + HEADER.size + int.from_bytes(frames[at : at + 4], "little")) < len(frames):
        at = after
    return frames[:at]


def _frames_of(messages: Iterable[Message]) -> bytes:
    return b"".join(encode(message).data for message in messages)
