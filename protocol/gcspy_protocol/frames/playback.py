"""The frames of a playback's messages (SPEC.md section 8.5).

Knows their bytes; does not know who may send them, or when.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import Frame, Header, pack_frame
from gcspy_protocol.frames.map_frame import pack_map_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType
from gcspy_protocol.model import EventFilter
from gcspy_protocol.playback import (
    FASTEST,
    SLOWEST,
    TIMELINE,
    Direction,
    Follow,
    Pace,
    Playback,
    Position,
    Seek,
    SetPlayback,
    Timeline,
)

__all__ = ["MOST_ROWS", "pack_playback", "read_filter", "read_playback", "write_filter"]

MOST_ROWS = 65_536
"""Events in one page of a timeline: 2.8 MB before compression."""

_I64 = (1 << 63) - 1
_MAX_DELAY_MILLIS = 3_600_000
_MAX_PERIOD = 1 << 32

_POSITION = struct.Struct("<Q")
_TIMELINE = struct.Struct("<IIQ")
"""TIMELINE payload, before the columns.

    offset size  field
    0      4     n: events
    4      4     flags: 1 the client forgets the pages before
    8      8     number of the first event
    16     8n    time
           8n    occurrence
           8n    nanoseconds gathering
           8n    nanoseconds held
           8n    events that the recorder missed right before it
           2n    event id
           2n    flags, as in EVENT
"""

_FRESH = 1


def write_filter(one: EventFilter) -> dict[str, Any]:
    """An event filter as a map."""
    return {
        "event": one.event,
        "enabled": one.enabled,
        "delay": one.delay_millis,
        "pause": one.pause,
        "period": one.period,
    }


def read_filter(fields: Fields) -> EventFilter:
    """An event filter from a map.

    Raises:
        RemoteProtocolError: A field is invalid.
    """
    return EventFilter(
        event=fields.integer("event", 0, 0xFFFF),
        enabled=fields.flag("enabled", True),
        delay_millis=fields.integer("delay", 0, _MAX_DELAY_MILLIS, 0),
        pause=fields.flag("pause", False),
        period=fields.integer("period", 1, _MAX_PERIOD, 1),
    )


def pack_playback(message: Playback | Position | Timeline | SetPlayback | Seek | Follow) -> Frame:
    """The frame of a message.

    Raises:
        LocalProtocolError: A number does not fit its field.
    """
    match message:
        case Position():
            return pack_frame(FrameType.POSITION, _POSITION.pack(message.number))
        case Timeline():
            return pack_frame(FrameType.TIMELINE, _timeline_payload(message))
        case Playback():
            fields = {
                "first": message.first,
                "last": message.last,
                "growing": message.growing,
                **_manner(message.manner),
                "follows": message.follows,
                "filters": [write_filter(one) for one in message.filters],
            }
            return pack_map_frame(FrameType.PLAYBACK, fields)
        case SetPlayback():
            return pack_map_frame(FrameType.SET_PLAYBACK, _manner(message))
        case Seek():
            fields = {
                "number": message.number,
                "time": message.time_nanos,
                "name": message.name,
                "steps": message.steps,
                "backwards": message.backwards,
            }
            return pack_map_frame(FrameType.SEEK, fields)
        case Follow():
            return pack_map_frame(FrameType.FOLLOW, {"client": message.client})


def _manner(manner: SetPlayback) -> dict[str, Any]:
    return {
        "pace": manner.pace.value,
        "interval": manner.interval_millis,
        "speed": manner.speed,
        "direction": int(manner.direction),
        "loop": list(manner.loop or ()),
    }


def _timeline_payload(message: Timeline) -> bytes:
    rows: NDArray[Any] = message.rows
    if len(rows) > MOST_ROWS:
        raise LocalProtocolError(
            f"a timeline's page of {len(rows)} events, at most {MOST_ROWS} fit"
        )
    head = _TIMELINE.pack(len(rows), _FRESH if message.fresh else 0, message.first)
    return head + b"".join(
        np.ascontiguousarray(rows[name]).tobytes() for name in TIMELINE.names or ()
    )


def read_playback(
    header: Header, payload: bytes, limits: Limits
) -> Playback | Position | Timeline | SetPlayback | Seek | Follow:
    """The message of a frame of one of these types, after decompression.

    Raises:
        RemoteProtocolError: The payload does not fit its type.
    """
    kind = FrameType(header.type)
    match kind:
        case FrameType.POSITION:
            if len(payload) < _POSITION.size:
                raise RemoteProtocolError(
                    f"position: {len(payload)} bytes, at least {_POSITION.size} needed"
                )
            return Position(number=_POSITION.unpack_from(payload)[0])
        case FrameType.TIMELINE:
            return _read_timeline(payload)
        case _:
            raw = payload or pack_map({})
            return _read_map(
                kind, Fields.unpack(raw, kind.name.lower(), text_chars=limits.text_chars), limits
            )


def _read_map(
    kind: FrameType, fields: Fields, limits: Limits
) -> Playback | SetPlayback | Seek | Follow:
    match kind:
        case FrameType.PLAYBACK:
            return Playback(
                first=fields.integer("first", 0, _I64),
                last=fields.integer("last", 0, _I64),
                growing=fields.flag("growing", False),
                manner=_read_manner(fields),
                follows=fields.optional_integer("follows", 0, _I64),
                filters=tuple(read_filter(one) for one in fields.maps("filters", limits.events)),
            )
        case FrameType.SET_PLAYBACK:
            return _read_manner(fields)
        case FrameType.SEEK:
            return _read_seek(fields)
        case _:
            return Follow(client=fields.optional_integer("client", 0, _I64))


def _read_manner(fields: Fields) -> SetPlayback:
    loop = fields.integers("loop", 2, 0, _I64)
    if len(loop) == 1 or (loop and loop[0] > loop[1]):
        raise RemoteProtocolError(
            f"field 'loop' should be the first and last event of a range, got {list(loop)}"
        )
    speed = fields.optional_number("speed", SLOWEST, FASTEST)
    return SetPlayback(
        pace=fields.choice("pace", Pace, Pace.ORIGINAL),
        interval_millis=fields.integer("interval", 0, _MAX_DELAY_MILLIS, 100),
        speed=1.0 if speed is None else speed,
        direction=fields.choice("direction", Direction, Direction.FORWARDS),
        loop=(loop[0], loop[1]) if loop else None,
    )


def _read_seek(fields: Fields) -> Seek:
    number = fields.optional_integer("number", 0, _I64)
    time_nanos = fields.optional_integer("time", 0, _I64)
    name = fields.text("name") if "name" in fields else None
    steps = fields.optional_integer("steps", -_I64, _I64)
    try:
        return Seek(
            number=number,
            time_nanos=time_nanos,
            name=name,
            steps=steps,
            backwards=fields.flag("backwards", False),
        )
    except LocalProtocolError as error:
        raise RemoteProtocolError(f"seek: {error}") from None


def _read_timeline(payload: bytes) -> Timeline:
    if len(payload) < _TIMELINE.size:
        raise RemoteProtocolError(
            f"timeline: {len(payload)} bytes, at least {_TIMELINE.size} needed"
        )
    count, flags, first = _TIMELINE.unpack_from(payload)
    if count > MOST_ROWS or len(payload) < _TIMELINE.size + count * TIMELINE.itemsize:
        raise RemoteProtocolError(f"timeline: {count} events do not fit {len(payload)} bytes")
    rows = np.empty(count, dtype=TIMELINE)
    at = _TIMELINE.size
    for name in TIMELINE.names or ():
        column = np.frombuffer(payload, TIMELINE[name], count, at)
        rows[name] = column
        at += column.nbytes
    return Timeline(first=first, rows=rows, fresh=bool(flags & _FRESH))
