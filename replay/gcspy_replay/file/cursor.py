"""A position in a recording: a viewer's state right after an event, and stepping forwards from there.

A chunk of frames is fed to a `Connection` as a server would send it; records are applied to the
interpreter directly, and become frames only if somebody asks for them. Knows one recording; many
cursors may read one, each with sources of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import CorruptChunk, ProtocolError, RecordingError, TruncatedRecording
from gcspy_protocol.interpreter import ClientInterpreter, EventChange
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Event, Message, Unknown
from gcspy_protocol.model import Role

from gcspy_replay.file.layout import ChunkPlace, FileFrame, blamed
from gcspy_replay.file.parts.chunk_records import NOT_RECORDS, StoredRecord
from gcspy_replay.file.parts.part import ChunkFile
from gcspy_replay.file.parts.walk import FileEntry, check_entry, read_entry
from gcspy_replay.file.records.fields import FieldReader
from gcspy_replay.file.records.record import (
    RecordKind,
    apply_key,
    frames_of_notices,
    messages_of_event,
)

__all__ = ["ChunkAt", "Cursor", "OneChunk", "Places", "RecordedEvent"]

_PREFETCH_BYTES = 64 << 20
"""Maximum bytes of a chunk that a seek reads at once."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedEvent:
    """An event, as it came.

    Attributes:
        number: Its number in the recording.
        change: The event and its changes.
        notices: Messages between the previous event and this one: schema, state, filters, counters.
    """

    number: int
    change: EventChange
    notices: tuple[Message, ...]
    _frames: Callable[[], bytes]
    _notice_frames: Callable[[], bytes]

    @property
    def data(self) -> bytes:
        """Its bytes: frames and EVENT, as a server may send them to a client that is at the event before.

        Made anew at each call where the recording has records.
        """
        return self._frames()

    @property
    def notice_data(self) -> bytes:
        """`notices` as frames."""
        return self._notice_frames()


def _joined(raw: list[Callable[[], bytes]]) -> Callable[[], bytes]:
    return lambda: b"".join(make() for make in raw)


def _frames_of(event: Event, messages: list[Message]) -> bytes:
    return encode_event(event, [encode(message) for message in messages])


class ChunkAt(NamedTuple):
    """A chunk and its part; the caller owns `part`."""

    part: ChunkFile
    place: ChunkPlace


class Places(Protocol):
    """The places of chunks, as a cursor needs them."""

    limits: Limits

    def chunk_of(self, number: int) -> ChunkAt:
        """The chunk of an event.

        Raises:
            RecordingError: The recording does not have that event.
        """

    def chunk_now(self, at: ChunkAt) -> ChunkAt:
        """The same chunk as it is known now: that of a live recorder grows."""

    def chunk_after(self, at: ChunkAt) -> ChunkAt | None:
        """The next chunk that has events, or notices; None after the last."""


class OneChunk(Places):
    """A single chunk, as `integrity` and the repair examine it.

    Args:
        at: The chunk.
        limits: Limits on its content.
    """

    def __init__(self, at: ChunkAt, limits: Limits) -> None:
        self.limits, self._at = limits, at

    def chunk_of(self, number: int) -> ChunkAt:
        """This chunk, for any event."""
        return self._at

    def chunk_now(self, at: ChunkAt) -> ChunkAt:
        """It, as it is."""
        return at

    def chunk_after(self, at: ChunkAt) -> ChunkAt | None:
        """None."""
        return None


class Cursor:
    """A viewer's state right after one event, and moves to others.

    Args:
        places: File to write.

    Attributes:
        number: The current event; 0 before the first `seek` or `step`.
        session: A viewer's state at that event. `step` changes it in place, `seek` replaces it.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self.number = 0
        self.session = ClientInterpreter(limits=places.limits)
        self._connection = Connection(Role.CLIENT, limits=places.limits)
        self._at: ChunkAt | None = None
        self._offset = 0
        self._record = 0

    def seek(self, number: int) -> ClientInterpreter:
        """Go to the position right after the event with this number.

        Returns:
            `session`: a viewer's state at that event.

        Raises:
            RecordingError: The recording does not have it.
            CorruptChunk: Its bytes, or those before it in its chunk, are damaged.
        """
        at = self._places.chunk_of(number)
        if number < at.place.first:
            raise RecordingError(
                f"event {number} is not in the recording: it begins with event {at.place.first}"
            )
        if not self._same(at):
            at.part.window.source.prefetch([(at.place.offset, at.place.offset + at.place.size)])
        rows = at.part.rows(at.place)
        if number - at.place.first >= len(rows):
            raise CorruptChunk(
                f"event {number} is lost: chunk {at.place.number} is damaged after event {at.place.first + len(rows) - 1}",
                offset=at.place.offset + (int(rows["end"][-1]) if len(rows) else 0),
                chunk=at.place.number,
            )
        here = self._same(at) and at.place.first <= self.number <= number
        ahead = min(int(rows["end"][number - at.place.first]), _PREFETCH_BYTES)
        if not here and not at.part.knows_head(at.place):
            at.part.window.get(at.place.offset, ahead, ahead=0)
        if at.part.head(at.place).has_records:
            return self._seek_record(at, number)
        if not here:
            at.part.window.get(at.place.offset, ahead, ahead=0)
            self._enter(at)
        while self.number < number:
            if self.step() is None:
                raise TruncatedRecording(
                    f"the recording ends after event {self.number}", offset=self._offset
                )
        return self.session

    def _seek_record(self, at: ChunkAt, number: int) -> ClientInterpreter:
        """Go to an event of a chunk of records, from the nearest whole state before it."""
        records = at.part.records(at.place)
        place = records.event(number - at.place.first)
        if place is None:
            raise TruncatedRecording(f"the recording ends before event {number}", offset=records.at)
        key = bisect_right(records.keys, place) - 1
        start = records.keys[key] if key >= 0 else -1
        if not (self._same(at) and self.number <= number and self._record > start):
            self._begin_records(at, max(0, start))
        while self.number < number and (record := records.record(self._record)) is not None:
            self._record += 1
            if record.kind == RecordKind.EVENT:
                self._apply(at, record, passing=self.number + 1 < number)
                self.number += 1
            elif record.kind == RecordKind.NOTICES:
                self._apply_notices(at, record)
        return self.session

    def stand(self, number: int, session: ClientInterpreter) -> None:
        """Go to the position right after an event whose state is known already, without reading anything.

        Args:
            number: Number of the event.
            session: A viewer's state at that event; this cursor takes ownership.

        Raises:
            RecordingError: The recording does not have the event.
        """
        at = self._places.chunk_of(number)
        rows = at.part.rows(at.place)
        if session.welcome is None or number - at.place.first >= len(rows):
            raise RecordingError(f"event {number} is not whole in the recording")
        self.session, self.number, self._at = session, number, at
        if at.part.head(at.place).has_records:
            place = at.part.records(at.place).event(number - at.place.first)
            if place is None:
                raise RecordingError(f"event {number} is not whole in the recording")
            self._record = place + 1
            return
        self._offset = at.place.offset + int(rows["end"][number - at.place.first])
        self._connection = Connection(Role.CLIENT, limits=self._places.limits)
        self._connection.receive_data(self._connection.preamble() + encode(session.welcome).data)
        for _ in self._connection.messages():
            pass  # the welcome, which opens it

    def before(self, number: int) -> ClientInterpreter:
        """Go to the position from which the next `step` returns the event with this number.

        Raises:
            RecordingError: As `seek`.
        """
        at = self._places.chunk_of(number)
        if number > at.place.first:
            return self.seek(number - 1)
        self._enter(at)
        return self.session

    def _same(self, at: ChunkAt) -> bool:
        return (
            self._at is not None
            and self._at.part is at.part
            and self._at.place.number == at.place.number
        )

    def _enter(self, at: ChunkAt) -> None:
        """Begin a chunk from its head, with nothing known before."""
        if self._at is not None and self._at.part is not at.part:
            self._at.part.window.forget()  # a chunk of each of many parts would be much memory
        head = at.part.head(at.place)
        if head.has_records:
            self._begin_records(at, 0)
            return
        self._at = None
        self.session = ClientInterpreter(limits=self._places.limits)
        self._connection = Connection(Role.CLIENT, limits=self._places.limits)
        self._connection.receive_data(self._connection.preamble())
        self._offset = at.place.offset
        stop = at.place.offset + head.head_bytes
        self.number = head.first - 1
        while self._offset < stop:
            entry = self._entry(at)
            if entry is None:
                raise CorruptChunk(
                    f"chunk {at.place.number} ends in its head, at byte {self._offset}",
                    offset=self._offset,
                    chunk=at.place.number,
                )
            self._feed(at, entry)
        self._at = at

    def _begin_records(self, at: ChunkAt, place: int) -> None:
        """Begin at a KEY record, with nothing known before."""
        records = at.part.records(at.place)
        self._at = None
        self.session = ClientInterpreter(limits=self._places.limits)
        record = records.record(place)
        if record is None or record.kind != RecordKind.KEY:
            raise CorruptChunk(
                f"damaged at byte {records.at}: chunk {at.place.number} begins without a state",
                offset=records.at,
                chunk=at.place.number,
            )
        with self._blaming(at, record):
            apply_key(FieldReader(record.data), self.session, at.part.notices, self._places.limits)
        self._at, self._record = at, place + 1
        self.number = at.place.first - 1 + bisect_right(records.events, place)

    @contextmanager
    def _blaming(self, at: ChunkAt, record: StoredRecord) -> Iterator[None]:
        """Report an error in a record, with its place."""
        try:
            yield
        except ProtocolError as error:
            self._at = None
            raise blamed(error, record.start, at.place.number) from error
        except NOT_RECORDS as error:
            self._at = None
            what = f"damaged at byte {record.start}: a record that cannot be read: {error}"
            raise CorruptChunk(what, offset=record.start, chunk=at.place.number) from error

    def _apply(
        self, at: ChunkAt, record: StoredRecord, *, passing: bool = False
    ) -> tuple[list[Message], EventChange]:
        """Follow a record of an event."""
        with self._blaming(at, record):
            return messages_of_event(
                FieldReader(record.data), self.session, self._places.limits, passing=passing
            )

    def _apply_notices(
        self, at: ChunkAt, record: StoredRecord
    ) -> tuple[list[Message], list[bytes]]:
        """Follow a record of notices."""
        with self._blaming(at, record):
            given = FieldReader(record.data)
            messages, raw = at.part.notices.read(given)
            given.end()
            for message in messages:
                self.session.apply(message)
        return messages, raw

    def _next_record(self, at: ChunkAt) -> StoredRecord | None:
        try:
            record = at.part.records(at.place).record(self._record)
        except CorruptChunk:
            self._at = None
            raise
        if record is not None:
            self._record += 1
        return record

    def _end_of(self, at: ChunkAt) -> int:
        # The end of a chunk that is still being written is where its last whole entry ended.
        return at.place.offset + (at.place.end_at or at.place.size)

    def _entry(self, at: ChunkAt) -> FileEntry | None:
        if self._offset >= self._end_of(at):
            return None
        try:
            entry = read_entry(at.part.window, self._offset, self._end_of(at), self._places.limits)
            if entry is None:
                raise CorruptChunk(
                    f"damaged at byte {self._offset}: a frame leaves its chunk", offset=self._offset
                )
            if not entry.is_event:
                check_entry(entry)  # that of an event is compared by the connection
        except CorruptChunk as error:
            error.chunk = at.place.number
            self._at = None
            raise
        self._offset = entry.end
        return entry

    def _feed(self, at: ChunkAt, entry: FileEntry) -> tuple[list[Message], EventChange | None]:
        """Follow an entry."""
        skipped = entry.frames[0].end if entry.frames[0].header.type == FileFrame.CHUNK else 0
        messages, change = [], None
        try:
            self._connection.receive_data(memoryview(entry.data)[skipped:])
            for message in self._connection.messages():
                change = self.session.apply(message) or change
                messages.append(message)
        except ProtocolError as error:
            self._at = None
            raise blamed(error, entry.offset, at.place.number) from error
        return messages, change

    def step(self) -> RecordedEvent | None:
        """Go to the next event.

        Returns:
            The event; None after the last one, when the notices after it have been applied.

        Raises:
            CorruptChunk: Its bytes are damaged. `seek` continues behind the damage.
        """
        return self._follow([], [])

    def rest(self) -> bytes:
        """Apply the notices after the last event, at which the cursor is, and return their frames.

        Raises:
            RecordingError: There is another event.
        """
        raw: list[Callable[[], bytes]] = []
        if self._follow([], raw) is not None:
            raise RecordingError(f"event {self.number} was not the last to come")
        return b"".join(make() for make in raw)

    def _follow(
        self, notices: list[Message], raw: list[Callable[[], bytes]]
    ) -> RecordedEvent | None:
        if self._at is None:
            if self.number:
                raise RecordingError("the cursor stands at no event since an error: seek first")
            self._enter(self._places.chunk_of(0))
        while True:
            at = self._at
            assert at is not None
            if self._in_records(at):
                found = self._follow_record(at, notices, raw)
                if found is not None:
                    return found
                if not self._grown(at) and not self._next_chunk(at):
                    return None
                continue
            entry = self._entry(at)
            if entry is None:
                if not self._grown(at) and not self._next_chunk(at):
                    return None
                continue
            messages, change = self._feed(at, entry)
            if change is not None:
                self.number += 1
                return RecordedEvent(
                    self.number, change, tuple(notices), partial(bytes, entry.data), _joined(raw)
                )
            notices += [message for message in messages if not isinstance(message, Unknown)]
            data = entry.data[: entry.frames[-1].start]
            raw.append(partial(bytes, data))

    def _in_records(self, at: ChunkAt) -> bool:
        return at.part.head(at.place).has_records

    def _follow_record(
        self, at: ChunkAt, notices: list[Message], raw: list[Callable[[], bytes]]
    ) -> RecordedEvent | None:
        """The next event of a chunk of records; None at its end, when its notices were followed."""
        while (record := self._next_record(at)) is not None:
            if record.kind == RecordKind.EVENT:
                messages, change = self._apply(at, record)
                self.number += 1
                frames = partial(_frames_of, change.event, messages)
                return RecordedEvent(self.number, change, tuple(notices), frames, _joined(raw))
            if record.kind == RecordKind.NOTICES:
                found, packed = self._apply_notices(at, record)
                notices += [message for message in found if not isinstance(message, Unknown)]
                raw.append(partial(frames_of_notices, packed))
        return None

    def _grown(self, at: ChunkAt) -> bool:
        """Whether the chunk, of a recorder that still runs, has more now."""
        now = self._places.chunk_now(at)
        if now.place.size <= at.place.size:
            return False
        self._at = now
        return True

    def _next_chunk(self, at: ChunkAt) -> bool:
        """Continue in the next chunk: behind its head, if that repeats the known state."""
        following = self._places.chunk_after(at)
        if following is None:
            return False
        if following.part is not at.part:
            at.part.window.forget()
        head = following.part.head(following.place)
        if head.continues and head.first == self.number + 1:
            self._at, self._record = following, 1  # behind the state that is known
            self._offset = following.place.offset + head.head_bytes
        else:
            self._enter(following)
        return True
