"""Records: an event, a whole state, or notices between events (FORMAT.md section 10).

Knows a session and its messages; does not know blocks or files.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum

from gcspy_protocol import messages as m
from gcspy_protocol.codec import decode, encode, unpack
from gcspy_protocol.connection import is_event_frame
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.frames.frame import HEADER, Header, pack_frame
from gcspy_protocol.interpreter import ClientInterpreter, EventChange
from gcspy_protocol.limits import CLIENT_LIMITS, Limits
from gcspy_protocol.messages import Event, FrameType, Message
from gcspy_protocol.model import Space

from gcspy_replay.file.keyframe import schema_messages
from gcspy_replay.file.records.body import KnownState, read_body, write_body
from gcspy_replay.file.records.fields import FieldReader, FieldWriter
from gcspy_replay.file.records.numbers import signed
from gcspy_replay.file.storage.tap import is_recorded

__all__ = [
    "NoticeReader",
    "RecordKind",
    "RecordWriter",
    "apply_key",
    "event_of",
    "frames_of_notices",
    "messages_of_event",
]


class RecordKind(IntEnum):
    """The kind of a record."""

    NOTICES = 1
    """Messages between events."""
    KEY = 2
    """Schema, notices and the whole state right after the event before; of no event if there was none."""
    EVENT = 3
    """The changes of an event."""


_NOTICE = struct.Struct("<BHHQQI")
"""A notice: u8 type, u16 space, u16 stream, u64 sequence, u64 time, u32 bytes of the payload; the payload."""

_KEYFRAME, _CACHED, _CLOCK, _WHOLE = 1, 2, 4, 8
"""Flags of an event: as of EVENT; a program clock follows; the body is of no earlier state."""

_NO_EVENT = Event(sequence=0, time_nanos=0, event=0, occurrence=0, epoch=0)
_KEPT_NOTICES = 256
_MOST_KEPT_BYTES = 64 << 10


# ------------------------------------------------------------------ writing


def pack_notices(frames: bytes) -> list[bytes]:
    """Frames of notices, each without what compresses badly: its own compression.

    Args:
        frames: Frames of the wire, between events.
    """
    found = []
    at = 0
    while at < len(frames):
        header = Header._make(HEADER.unpack_from(frames, at))
        after = at + HEADER.size + header.length
        payload = unpack(header, frames[at + HEADER.size : after], CLIENT_LIMITS, at)
        found.append(_NOTICE.pack(header.type, *_fields_of(header), len(payload)) + payload)
        at = after
    return found


def _fields_of(header: Header) -> tuple[int, int, int, int]:
    return header.space, header.stream, header.sequence, header.time_nanos


class RecordWriter:
    """Makes the records of a session.

    Args:
        session: The client's interpreter, right after an event or before the first.
    """

    def __init__(self, session: ClientInterpreter) -> None:
        self._session = session
        self._known: KnownState | None = None
        self._schema: dict[int, tuple[Space, bytes]] = {}
        self._latest: dict[int, bytes] = {}

    def follow(self, session: ClientInterpreter) -> None:
        """Continue with another session whose state is the same."""
        self._session = session
        if self._known is not None:
            self._known.rebind(session)

    def notices(self, frames: bytes) -> bytes | None:
        """A record of notices; None where they only repeat settings or a budget."""
        kept = []
        for notice in pack_notices(frames):
            kind = notice[0]
            if kind in (FrameType.SETTINGS, FrameType.BUDGET):
                if self._latest.get(kind) == notice:
                    continue
                self._latest[kind] = notice
            elif kind == FrameType.TILE_NAMES and self._known is not None:
                space = self._session.spaces.get(int.from_bytes(notice[1:3], "little"))
                if space is not None:
                    self._known.note_names(space)
            kept.append(notice)
        if not kept:
            return None
        out = FieldWriter()
        out.data(b"".join(kept))
        return out.record(RecordKind.NOTICES)

    def schema(self) -> bytes:
        """Schema and notices of now as a KEY record, for a first event that is whole."""
        out = FieldWriter()
        out.data(b"".join(self._state_of(self._session)))
        out.integers.append(0)
        return out.record(RecordKind.KEY)

    def key(self) -> bytes:
        """The state of now as a record, for a reader that begins here."""
        out, session = FieldWriter(), self._session
        out.data(b"".join(self._state_of(session)))
        event = session.last_event
        out.integers.append(0 if event is None else 1)
        if event is not None:
            event = replace(event, epoch=session.epoch)
            _write_event(out, event, None, session, whole=True)
            write_body(out, session, event, None, None)
        return out.record(RecordKind.KEY)

    def first_event(self) -> bytes:
        """The latest event with all of its state, for a reader that has the schema alone."""
        session = self._session
        event = session.last_event
        if event is None:
            raise LocalProtocolError("there is no event yet from which to make a keyframe")
        event = replace(event, epoch=session.epoch, keyframe=True)
        out = FieldWriter()
        _write_event(out, event, None, session, whole=True)
        write_body(out, session, event, None, None)
        self._known = KnownState(session)
        return out.record(RecordKind.EVENT)

    def event(self, packed: Mapping[tuple[int, int], m.StreamDelta | None] | None = None) -> bytes:
        """The latest event as its differences to the one before.

        Args:
            packed: By space and stream changes of this event that are to be stored as the server compressed them, if they can be.
        """
        session, known = self._session, self._known
        change = session.last_change
        assert known is not None
        if change is None or change.event is not session.last_event:
            raise LocalProtocolError("the interpreter has not followed the event")
        known.follow_schema(session)
        out = FieldWriter()
        _write_event(out, change.event, known.last_event, session, whole=False)
        write_body(out, session, change.event, known, change, packed or {})
        known.last_event = change.event
        return out.record(RecordKind.EVENT)

    def _state_of(self, session: ClientInterpreter) -> list[bytes]:
        """Schema and latest notices; those of a space are made once."""
        found = []
        schema: dict[int, tuple[Space, bytes]] = {}
        for message in schema_messages(session):
            if isinstance(message, m.SpaceDefined):
                space = message.space
                made = self._schema.get(space.id)
                if made is None or made[0] is not space:
                    made = (space, b"".join(pack_notices(encode(message).data)))
                schema[space.id] = made
                found.append(made[1])
                continue
            notice = b"".join(pack_notices(encode(message).data))
            if isinstance(message, m.Settings | m.Budget):
                self._latest[notice[0]] = notice
            found.append(notice)
        self._schema = schema
        return found


def _write_event(
    out: FieldWriter,
    event: Event,
    before: Event | None,
    session: ClientInterpreter,
    *,
    whole: bool,
) -> None:
    """The fields of an event, as differences to the event before."""
    last = before or _NO_EVENT
    flags = (_KEYFRAME if event.keyframe else 0) | (_CACHED if event.cached else 0)
    flags |= (_CLOCK if event.program_clock is not None else 0) | (_WHOLE if whole else 0)
    out.integers += (
        flags,
        event.event,
        signed(event.sequence - last.sequence),
        signed(event.time_nanos - last.time_nanos),
        signed(event.occurrence - _counted(session, event.event)),
        signed(event.gather_nanos - last.gather_nanos),
        signed(event.held_nanos - last.held_nanos),
        signed(event.waited_nanos - last.waited_nanos),
        signed(event.stopped_nanos - last.stopped_nanos),
        event.epoch,
    )
    out.text(event.cause)
    if event.program_clock is not None:
        name, value = event.program_clock
        out.text(name)
        out.integers.append(signed(value - _clock_of(last)))


def _counted(session: ClientInterpreter, kind: int) -> int:
    """How often a kind of event had happened when it was last counted."""
    return session.counters[kind] if kind < len(session.counters) else 0


def _clock_of(event: Event) -> int:
    return event.program_clock[1] if event.program_clock is not None else 0


# ------------------------------------------------------------------ reading


def event_of(given: FieldReader, before: Event | None, counters: tuple[int, ...]) -> Event:
    """The event of a record.

    Args:
        given: The record's fields.
        before: The event before it, or None where the record is whole.
        counters: Occurrences of each kind before it.

    Raises:
        ValueError: It is not one.
    """
    flags = given.integer(0, 15)
    last = _NO_EVENT if before is None or flags & _WHOLE else before
    kind = given.integer(0, 0xFFFF)
    sequence, time_nanos = given.moved(last.sequence), given.moved_time(last.time_nanos)
    occurrence = given.moved(counters[kind] if kind < len(counters) else 0)
    nanos = [
        given.moved(start)
        for start in (last.gather_nanos, last.held_nanos, last.waited_nanos, last.stopped_nanos)
    ]
    epoch = given.integer(0, 0xFFFFFFFF)
    cause = given.text(CLIENT_LIMITS.text_chars)
    clock = None
    if flags & _CLOCK:
        name = given.text(CLIENT_LIMITS.text_chars)
        clock = (name, given.moved(_clock_of(last)))
    return Event(
        sequence=sequence,
        time_nanos=time_nanos,
        event=kind,
        occurrence=occurrence,
        epoch=epoch,
        gather_nanos=nanos[0],
        held_nanos=nanos[1],
        keyframe=bool(flags & _KEYFRAME),
        cached=bool(flags & _CACHED),
        cause=cause,
        program_clock=clock,
        waited_nanos=nanos[2],
        stopped_nanos=nanos[3],
    )


class NoticeReader:
    """Reads notices; those that come again, as schemas do, are decoded once.

    Args:
        limits: Limits on their content.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: OrderedDict[bytes, Message] = OrderedDict()

    def read(self, given: FieldReader) -> tuple[list[Message], list[bytes]]:
        """The messages of the next bytes of a record, and each as a notice's bytes.

        Raises:
            ValueError: They are not notices.
            RemoteProtocolError: One is not what its type promises.
        """
        data = given.data(self._limits.raw_bytes)
        messages, raw = [], []
        at = 0
        while at < len(data):
            if at + _NOTICE.size > len(data):
                raise ValueError("a notice that is not whole")
            size = _NOTICE.unpack_from(data, at)[-1]
            after = at + _NOTICE.size + size
            if after > len(data):
                raise ValueError(f"a notice of {size} bytes that are not there")
            notice = data[at:after]
            messages.append(self._message(notice))
            raw.append(notice)
            at = after
        return messages, raw

    def _message(self, notice: bytes) -> Message:
        found = self._kept.get(notice)
        if found is not None:
            self._kept.move_to_end(notice)
            return found
        kind, space, stream, sequence, time_nanos, size = _NOTICE.unpack_from(notice)
        if kind != FrameType.WELCOME and (not is_recorded(kind) or is_event_frame(kind)):
            raise ValueError(f"a notice of type {kind:#04x}")
        header = Header(size, kind, 0, space, stream, 0, sequence, time_nanos)
        payload = unpack(header, notice[_NOTICE.size :], self._limits, 0)
        message = decode(header, payload, self._limits)
        if len(notice) <= _MOST_KEPT_BYTES:
            self._kept[notice] = message
            if len(self._kept) > _KEPT_NOTICES:
                self._kept.popitem(last=False)
        return message


def frames_of_notices(notices: list[bytes]) -> bytes:
    """The frames of notices, as the wire has them."""
    frames = []
    for notice in notices:
        kind, space, stream, sequence, time_nanos, _ = _NOTICE.unpack_from(notice)
        frame = pack_frame(
            kind,
            notice[_NOTICE.size :],
            space=space,
            stream=stream,
            sequence=sequence,
            time_nanos=time_nanos,
        )
        frames.append(frame.data)
    return b"".join(frames)


def apply_key(
    given: FieldReader, session: ClientInterpreter, notices: NoticeReader, limits: Limits
) -> None:
    """Bring a new session into the state of a KEY record.

    Raises:
        ValueError: It is not one.
        RemoteProtocolError: It contradicts itself.
    """
    for message in notices.read(given)[0]:
        session.apply(message)
    if given.integer(0, 1):
        event = event_of(given, None, session.counters)
        for message in read_body(given, session, event, limits, passing=True):
            session.apply(message)
        session.apply(event)
    given.end()


def messages_of_event(
    given: FieldReader, session: ClientInterpreter, limits: Limits, *, passing: bool = False
) -> tuple[list[Message], EventChange]:
    """Apply an EVENT record to a session.

    Args:
        given: The record's fields.
        session: The session before the event.
        limits: Limits on the content.
        passing: Nobody looks at this event on the way to a later one: what is returned is incomplete.

    Returns:
        The messages of the event, and what it changed.

    Raises:
        ValueError: It is not one.
        RemoteProtocolError: It contradicts the session.
    """
    event = event_of(given, session.last_event, session.counters)
    messages: list[Message] = []
    for message in read_body(given, session, event, limits, passing=passing):
        session.apply(message)
        messages.append(message)
    change = session.apply(event)
    assert change is not None
    given.end()
    return messages, change
