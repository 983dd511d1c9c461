"""Messages to frames and back, with one function for each direction (SPEC.md section 4).

Knows each message's fields. `connection` knows their order and who may send them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gcspy_protocol import messages as m
from gcspy_protocol.attendance import MOST_STEPS, MOST_TRIES
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.attendance import pack_attendance, read_attendance
from gcspy_protocol.frames.details import pack_details, read_details
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import (
    FLAG_ZSTD,
    Frame,
    Header,
    check_raw_size,
    inflate,
    inflate_head,
    pack_frame,
    raw_size,
)
from gcspy_protocol.frames.map_frame import pack_map_frame
from gcspy_protocol.frames.playback import (
    MOST_ROWS,
    pack_playback,
    read_filter,
    read_playback,
    write_filter,
)
from gcspy_protocol.frames.settings import pack_settings, read_settings
from gcspy_protocol.frames.triggers import pack_trigger, read_trigger
from gcspy_protocol.handshake.frames import pack_handshake, read_handshake
from gcspy_protocol.handshake.messages import NONCE_BYTES
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import ControlState, EventFilter, EventKind, Mode, PauseActsOn
from gcspy_protocol.playback import TIMELINE
from gcspy_protocol.schema import MAX_ENUM_NAMES, pack_space, read_space
from gcspy_protocol.streams.tiles import (
    TILES_HEAD_BYTES,
    decode_tiles,
    needed_tiles_bytes,
    pack_tiles,
)
from gcspy_protocol.streams.values import (
    HEAD_BYTES,
    Stamp,
    decode_delta,
    decode_key,
    needed_bytes,
    pack_delta,
    pack_key,
)

__all__ = ["crc_of_crcs", "decode", "encode", "encode_event", "join_event", "unpack"]

_U64 = (1 << 64) - 1
_I64 = (1 << 63) - 1
_MAX_DEADLINE_MILLIS = 60_000
_MAX_FACTS = 256
_MAX_CLIENTS = 65_536
_PAGE_NAME_CHARS = 1024

_SUMMARY = struct.Struct("<II")
"""SUMMARY payload: 0 u32 tiles covered, 4 u32 number of values n, 8 n x i64."""

_EVENT = struct.Struct("<IHHIxxxxQQQ")
"""EVENT payload, before the msgpack map of the rest.

    offset size  field
    0      4     CRC-32 of the event, see `crc_of_crcs`
    4      2     event id
    6      2     flags: 1 keyframe, 2 cached
    8      4     schema epoch
    12     4     reserved
    16     8     occurrence
    24     8     gather nanoseconds
    32     8     held nanoseconds
    40           msgpack map: cause, clock (name), clock_value, waited (nanoseconds), stopped (nanoseconds); absent when empty
"""

_KEYFRAME, _CACHED = 1, 2


def encode(message: Message) -> Frame:
    """The frame of a message.

    Raises:
        LocalProtocolError: It is an Event (see `encode_event`), cannot be sent, or has a number
            that does not fit its field.
    """
    try:
        return _encode(message)
    except struct.error as error:
        raise LocalProtocolError(
            f"{type(message).__name__} does not fit its frame: {error}"
        ) from error


def _encode(message: Message) -> Frame:
    match message:
        case m.StreamKey():
            return pack_key(
                message.space, message.stream, _stamp(message), message.values, message.known
            )
        case m.StreamDelta():
            return pack_delta(
                message.space,
                message.stream,
                _stamp(message),
                base_sequence=message.base_sequence,
                count=message.count,
                indices=message.indices,
                values=message.values,
                known=message.known,
            )
        case m.Tiles():
            return pack_tiles(message)
        case m.Summary():
            payload = _SUMMARY.pack(message.covered, len(message.values)) + struct.pack(
                f"<{len(message.values)}q", *message.values
            )
            return pack_frame(
                FrameType.SUMMARY,
                payload,
                space=message.space,
                stream=message.stream,
                sequence=message.sequence,
                time_nanos=message.time_nanos,
            )
        case m.SpaceInfo():
            return _placed_map(FrameType.SPACE_INFO, {"text": message.text}, message)
        case m.Counters():
            payload = struct.pack(f"<I{len(message.counts)}Q", len(message.counts), *message.counts)
            return pack_frame(FrameType.COUNTERS, payload)
        case m.SpaceDefined() | m.SpaceRemoved():
            return _schema(message)
        case m.TileNames() | m.NewNames():
            return _texts(message)
        case m.TileNamesRequest():
            fields = {"first": message.first, "count": message.count}
            return pack_map_frame(FrameType.TILE_NAMES_REQUEST, fields, space=message.space)
        case m.Playback() | m.Position() | m.Timeline() | m.SetPlayback() | m.Seek() | m.Follow():
            return pack_playback(message)
        case m.Trigger() | m.Triggers() | m.Fired() | m.Settings() | m.SetSetting() | m.Budget():
            return _chosen(message)
        case m.Query() | m.Answer() | m.Attend() | m.Look() | m.Looked():
            return _said(message)
        case m.Event() | m.Unknown():
            raise LocalProtocolError(
                f"{type(message).__name__} has no frame of its own: use encode_event"
            )
        case _:
            return _map_or_handshake(message)


def _map_or_handshake(message: Message) -> Frame:
    if isinstance(message, m.Challenge | m.Proof):
        return pack_handshake(message)
    frame_type, fields = _as_map(message)
    return pack_map_frame(frame_type, fields) if fields else pack_frame(frame_type, b"")


def _schema(message: m.SpaceDefined | m.SpaceRemoved) -> Frame:
    if isinstance(message, m.SpaceRemoved):
        return pack_frame(FrameType.SPACE_REMOVED, b"", space=message.space)
    return pack_map_frame(
        FrameType.SPACE_DEFINED, pack_space(message.space), space=message.space.id
    )


def _said(message: m.Query | m.Answer | m.Attend | m.Look | m.Looked) -> Frame:
    if isinstance(message, m.Query | m.Answer):
        return pack_details(message)
    return pack_attendance(message)


def _chosen(
    message: m.Trigger | m.Triggers | m.Fired | m.Settings | m.SetSetting | m.Budget,
) -> Frame:
    if isinstance(message, m.Trigger | m.Triggers | m.Fired):
        return pack_trigger(message)
    return pack_settings(message)


def _texts(message: m.TileNames | m.NewNames) -> Frame:
    fields = {"first": message.first, "names": list(message.names)}
    if isinstance(message, m.NewNames):
        return _placed_map(FrameType.NEW_NAMES, fields, message)
    return pack_map_frame(
        FrameType.TILE_NAMES, fields, space=message.space, sequence=message.sequence
    )


def _stamp(message: m.StreamKey | m.StreamDelta) -> Stamp:
    return Stamp(
        sequence=message.sequence,
        time_nanos=message.time_nanos,
        event=message.event,
        occurrence=message.occurrence,
    )


def _placed_map(
    frame_type: FrameType, fields: Mapping[str, Any], message: m.SpaceInfo | m.NewNames
) -> Frame:
    return pack_map_frame(
        frame_type,
        fields,
        space=message.space,
        sequence=message.sequence,
        time_nanos=message.time_nanos,
    )


def _filters(filters: tuple[EventFilter, ...]) -> dict[str, Any]:
    return {"filters": [write_filter(one) for one in filters]}


def _as_map(message: Message) -> tuple[FrameType, dict[str, Any]]:
    """Type and fields of the messages that are one msgpack map."""
    match message:
        case m.Hello():
            return FrameType.HELLO, {
                "client": message.client,
                "control": message.wants_control,
                "token": message.token,
                "pause": message.pause_at_connect,
                "codecs": list(message.codecs),
                **({"person": message.person} if message.person else {}),
                **({"following": True} if message.following else {}),
                **({"nonce": message.nonce.hex()} if message.nonce else {}),
            }
        case m.Welcome():
            return FrameType.WELCOME, {
                "server": message.server,
                "session": message.session,
                "client": message.client_id,
                "controller": message.controller,
                "mode": message.mode.value,
                "acts_on": message.pause_acts_on.value,
                "events": [
                    {"id": e.id, "name": e.name, "about": e.description} for e in message.events
                ],
                "info": message.general_info,
                "target": message.target,
                "clock": message.clock,
                "resolution": message.clock_resolution_nanos,
                "wall_offset": message.wall_offset_nanos,
            }
        case m.Error():
            return FrameType.ERROR, {
                "code": int(message.code),
                "message": message.message,
                "remedy": message.remedy,
                "fatal": message.fatal,
            }
        case m.Goodbye():
            return FrameType.GOODBYE, {"reason": message.reason}
        case m.Ping():
            return FrameType.PING, {"number": message.number}
        case m.Pong():
            return FrameType.PONG, {"number": message.number}
        case m.EpochEnd():
            return FrameType.EPOCH_END, {"epoch": message.epoch}
        case m.State():
            return FrameType.STATE, {
                "state": message.state.value,
                "reason": message.reason,
                **({"driver_failed": True} if message.driver_failed else {}),
                **({"slowed": message.slowed_nanos} if message.slowed_nanos else {}),
            }
        case m.Filters():
            return FrameType.FILTERS, _filters(message.filters)
        case m.Clients():
            return FrameType.CLIENTS, {
                "clients": [_client(one) for one in message.clients],
                "controller": message.controller,
                "successor": message.successor,
                **({} if message.leader is None else {"leader": message.leader}),
            }
        case m.Missed():
            return FrameType.MISSED, {"events": message.events, "total": message.total}
        case _:
            return _command_map(message)


def _client(client: m.Client) -> dict[str, Any]:
    """The fields of a client, without those that have their default, since a list of a hundred clients is sent to a hundred."""
    told: dict[str, Any] = {"id": client.id, "name": client.name}
    if client.person:
        told["person"] = client.person
    if client.following:
        told["following"] = True
    if client.behind is not None:
        told["behind"] = client.behind
    if client.stalled:
        told["stalled"] = True
    if client.step is not None:
        told |= {"step": client.step, "tries": list(client.tries)}
    return told


def _command_map(message: Message) -> tuple[FrameType, dict[str, Any]]:
    """Type and fields of a request of a client."""
    match message:
        case m.SetFilters():
            return FrameType.SET_FILTERS, _filters(message.filters)
        case m.Pause():
            return FrameType.PAUSE, {}
        case m.Resume():
            return FrameType.RESUME, {}
        case m.Step():
            return FrameType.STEP, {}
        case m.TakeControl():
            return FrameType.TAKE_CONTROL, {}
        case m.HandOver():
            return FrameType.HAND_OVER, {"client": message.client}
        case m.NameSuccessor():
            return FrameType.NAME_SUCCESSOR, {"client": message.client}
        case m.Lossless():
            return FrameType.LOSSLESS, {"deadline": message.deadline_millis}
        case m.Subscribe():
            spaces = message.spaces
            return FrameType.SUBSCRIBE, {
                "all": spaces is None,
                "spaces": [
                    {"space": s.space, "all": s.streams is None, "streams": list(s.streams or ())}
                    for s in spaces or ()
                ],
                "rate": message.max_rate_hz,
            }
        case _:
            raise LocalProtocolError(f"{type(message).__name__} cannot be sent")


def crc_of_crcs(crcs: bytes, end: bytes) -> int:
    """CRC-32 of an event: of the little-endian CRC-32s of its frames in order, then of its end.

    It is a CRC of CRCs, so that a frame that many clients share is hashed once, whatever subset a
    client gets.

    Args:
        crcs: The CRCs of the event's frames before EVENT, as u32s.
        end: The EVENT frame without the four bytes of the CRC itself.
    """
    return zlib.crc32(end, zlib.crc32(crcs))


def encode_event(event: m.Event, frames: list[Frame]) -> bytes:
    """All bytes of an event: its frames and the EVENT frame that ends it.

    Raises:
        LocalProtocolError: A number does not fit its field.
    """
    crcs = struct.pack(f"<{len(frames)}I", *[frame.crc for frame in frames])
    return join_event(event, [frame.data for frame in frames], crcs)


def join_event(event: m.Event, pieces: Iterable[bytes], crcs: bytes) -> bytes:
    """The same from frames that lie one behind the other.

    Args:
        event: The event.
        pieces: Its frames before EVENT.
        crcs: Their CRCs, as u32s.

    Raises:
        LocalProtocolError: A number does not fit its field.
    """
    rest: dict[str, Any] = {}
    if event.cause:
        rest["cause"] = event.cause
    if event.program_clock is not None:
        rest["clock"], rest["clock_value"] = event.program_clock
    if event.waited_nanos:
        rest["waited"] = event.waited_nanos
    if event.stopped_nanos:
        rest["stopped"] = event.stopped_nanos
    flags = (_KEYFRAME if event.keyframe else 0) | (_CACHED if event.cached else 0)
    try:
        body = _EVENT.pack(
            0,
            event.event,
            flags,
            event.epoch,
            event.occurrence,
            event.gather_nanos,
            event.held_nanos,
        ) + (pack_map(rest) if rest else b"")
    except struct.error as error:
        raise LocalProtocolError(f"{event} does not fit its frame: {error}") from error
    end = pack_frame(
        FrameType.EVENT, body, sequence=event.sequence, time_nanos=event.time_nanos, compress=False
    ).data
    header_bytes = len(end) - len(body)
    crc = crc_of_crcs(crcs, end[:header_bytes] + end[header_bytes + 4 :])
    parts = [*pieces]
    parts += [end[:header_bytes], crc.to_bytes(4, "little"), end[header_bytes + 4 :]]
    return b"".join(parts)


# ---------------------------------------------------------------- unpacking and decoding


def unpack(header: Header, payload: bytes, limits: Limits, offset: int) -> bytes:
    """The original payload of a frame, decompressed only if it is no larger than its type can need.

    Args:
        header: The frame's header.
        payload: The payload as received.
        limits: Limits on what the peer may send.
        offset: Position of the frame, for the error.

    Raises:
        RemoteProtocolError: It is not zstd, declares no size, or a size over the limit.
    """
    if header.flags & FLAG_ZSTD:
        raw_bytes = raw_size(header, payload, limits, offset)
        if raw_bytes > _TRAILING_BYTES or header.type not in _BINARY:
            check_raw_size(header, raw_bytes, _most_raw(header, payload, limits, offset), offset)
    return inflate(header, payload, limits, offset)


_TRAILING_BYTES = 64 << 10
"""Extra bytes that a later version may append to a binary payload of this version."""

_BINARY: dict[int, int] = {
    FrameType.TILES: TILES_HEAD_BYTES,
    FrameType.STREAM_KEY: HEAD_BYTES,
    FrameType.STREAM_DELTA: HEAD_BYTES,
    FrameType.SUMMARY: 0,
    FrameType.EVENT: 0,
    FrameType.COUNTERS: 0,
    FrameType.POSITION: 0,
    FrameType.TIMELINE: 0,
    FrameType.CHALLENGE: 0,
    FrameType.PROOF: 0,
}
"""Frames whose payload is not a map, and how many bytes of it determine its length."""


def _most_raw(header: Header, payload: bytes, limits: Limits, offset: int) -> int:
    """Maximum decompressed bytes of a payload, from its first bytes or its type."""
    head_bytes = _BINARY.get(header.type)
    if head_bytes is None:
        return limits.unpacked_map_bytes(len(payload))
    if head_bytes:
        head = inflate_head(header, payload, head_bytes, offset)
        needed = needed_tiles_bytes if header.type == FrameType.TILES else needed_bytes
        return needed(header, head, limits) + _TRAILING_BYTES
    if header.type == FrameType.TIMELINE:
        return MOST_ROWS * TIMELINE.itemsize + _TRAILING_BYTES
    return 8 * max(limits.events, MAX_ENUM_NAMES) + _TRAILING_BYTES


Decoder = Callable[[Header, bytes, Limits], Message]


def decode(header: Header, payload: bytes, limits: Limits) -> Message:
    """The message of a frame; `Unknown` for a type of a later version.

    Args:
        payload: After decompression.

    Raises:
        RemoteProtocolError: The payload is not what its type promises.
    """
    decoder = _DECODERS.get(header.type)
    if decoder is None:
        return m.Unknown(type=header.type, payload_bytes=header.length)
    if header.type not in _BINARY:
        _check_map(payload, FrameType(header.type).name.lower(), limits)
    return decoder(header, payload, limits)


def _fields(header: Header, payload: bytes, limits: Limits) -> Fields:
    return _map(payload, FrameType(header.type).name.lower(), limits)


def _check_map(payload: bytes, what: str, limits: Limits) -> None:
    """Refuse a map that is too long to be unpacked."""
    if len(payload) > limits.map_bytes:
        raise RemoteProtocolError(
            f"{what}: a map of {len(payload)} bytes, over the limit of {limits.map_bytes}"
        )


def _map(payload: bytes, what: str, limits: Limits) -> Fields:
    """A msgpack map, or one behind the numbers of a binary frame; no bytes mean an empty map."""
    _check_map(payload, what, limits)
    if not payload:
        return Fields({}, what, text_chars=limits.text_chars)
    return Fields.unpack(payload, what, text_chars=limits.text_chars)


def _hello(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    return m.Hello(
        client=f.text("client")[:200],
        wants_control=f.flag("control", False),
        token=f.text("token", ""),
        pause_at_connect=f.flag("pause", False),
        codecs=f.texts("codecs", 16),
        person=f.text("person", ""),
        following=f.flag("following", False),
        nonce=_nonce(f.text("nonce", "")),
    )


def _nonce(text: str) -> bytes:
    """A nonce from its hexadecimal digits; none from no text."""
    if text and not (len(text) == 2 * NONCE_BYTES and set(text) <= set("0123456789abcdef")):
        raise RemoteProtocolError(
            f"hello: the nonce should be {2 * NONCE_BYTES} hexadecimal digits in lower case, got {len(text)} characters"
        )
    return bytes.fromhex(text)


def _of_handshake(header: Header, payload: bytes, limits: Limits) -> Message:
    return read_handshake(header, payload)


def _welcome(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    events = tuple(
        EventKind(
            id=e.integer("id", 0, 0xFFFF), name=e.text("name"), description=e.text("about", "")
        )
        for e in f.maps("events", limits.events)
    )
    if [e.id for e in events] != list(range(len(events))):
        raise RemoteProtocolError("welcome: event ids should be 0, 1, 2 …")
    return m.Welcome(
        server=f.text("server"),
        session=f.text("session"),
        client_id=f.integer("client", 0, _I64),
        controller=f.flag("controller"),
        mode=f.choice("mode", Mode),
        pause_acts_on=f.choice("acts_on", PauseActsOn),
        events=events,
        general_info=f.text("info", ""),
        target=f.text_map("target", _MAX_FACTS),
        clock=f.text("clock", ""),
        clock_resolution_nanos=f.integer("resolution", 0, _I64, 1),
        wall_offset_nanos=f.integer("wall_offset", -_I64, _I64, 0),
    )


def _error(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    return m.Error(
        code=f.choice("code", m.ErrorCode),
        message=f.text("message"),
        remedy=f.text("remedy", ""),
        fatal=f.flag("fatal", False),
    )


def _event(header: Header, payload: bytes, limits: Limits) -> Message:
    if len(payload) < _EVENT.size:
        raise RemoteProtocolError(f"event: {len(payload)} bytes, at least {_EVENT.size} needed")
    _, event, flags, epoch, occurrence, gather, held = _EVENT.unpack_from(payload)
    if header.time_nanos > _I64:
        # Times are subtracted from each other in signed 64 bits everywhere; no clock runs for 292 years.
        raise RemoteProtocolError(f"event: time {header.time_nanos} is not below 2**63")
    rest = _map(payload[_EVENT.size :], "event", limits)
    clock = (rest.text("clock"), rest.integer("clock_value", 0, _U64)) if "clock" in rest else None
    return m.Event(
        sequence=header.sequence,
        time_nanos=header.time_nanos,
        event=event,
        occurrence=occurrence,
        epoch=epoch,
        gather_nanos=gather,
        held_nanos=held,
        keyframe=bool(flags & _KEYFRAME),
        cached=bool(flags & _CACHED),
        cause=rest.text("cause", ""),
        program_clock=clock,
        waited_nanos=rest.integer("waited", 0, _U64, 0),
        stopped_nanos=rest.integer("stopped", 0, _U64, 0),
    )


def _summary(header: Header, payload: bytes, limits: Limits) -> Message:
    if len(payload) < _SUMMARY.size:
        raise RemoteProtocolError(f"summary: {len(payload)} bytes, at least {_SUMMARY.size} needed")
    covered, count = _SUMMARY.unpack_from(payload)
    if count > MAX_ENUM_NAMES or len(payload) < _SUMMARY.size + 8 * count:
        raise RemoteProtocolError(f"summary: {count} values do not fit {len(payload)} bytes")
    return m.Summary(
        space=header.space,
        stream=header.stream,
        sequence=header.sequence,
        time_nanos=header.time_nanos,
        values=struct.unpack_from(f"<{count}q", payload, _SUMMARY.size),
        covered=covered,
    )


def _counters(header: Header, payload: bytes, limits: Limits) -> Message:
    if len(payload) < 4:
        raise RemoteProtocolError(f"counters: {len(payload)} bytes, at least 4 needed")
    (count,) = struct.unpack_from("<I", payload)
    if count > limits.events or len(payload) < 4 + 8 * count:
        raise RemoteProtocolError(f"counters: {count} counts do not fit {len(payload)} bytes")
    return m.Counters(counts=struct.unpack_from(f"<{count}Q", payload, 4))


def _space_info(header: Header, payload: bytes, limits: Limits) -> Message:
    text = _fields(header, payload, limits).text("text")
    return m.SpaceInfo(
        space=header.space, sequence=header.sequence, time_nanos=header.time_nanos, text=text
    )


def _space_defined(header: Header, payload: bytes, limits: Limits) -> Message:
    return m.SpaceDefined(space=read_space(header.space, _fields(header, payload, limits), limits))


def _tile_names(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    return m.TileNames(
        space=header.space,
        sequence=header.sequence,
        first=f.integer("first", 0, limits.tiles),
        names=tuple(name[:_PAGE_NAME_CHARS] for name in f.texts("names", limits.names_page)),
    )


def _new_names(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    return m.NewNames(
        space=header.space,
        sequence=header.sequence,
        time_nanos=header.time_nanos,
        first=f.integer("first", 0, limits.tiles),
        names=tuple(name[:_PAGE_NAME_CHARS] for name in f.texts("names", limits.names_page)),
    )


def _tile_names_request(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    return m.TileNamesRequest(
        space=header.space,
        first=f.integer("first", 0, limits.tiles),
        count=f.integer("count", 1, limits.names_page),
    )


def _read_filters(header: Header, payload: bytes, limits: Limits) -> tuple[EventFilter, ...]:
    return tuple(
        read_filter(one) for one in _fields(header, payload, limits).maps("filters", limits.events)
    )


def _clients(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    return m.Clients(
        clients=tuple(
            m.Client(
                id=c.integer("id", 0, _I64),
                name=c.text("name"),
                person=c.text("person", ""),
                following=c.flag("following", False),
                behind=c.optional_integer("behind", 0, _I64),
                stalled=c.flag("stalled", False),
                step=c.optional_integer("step", 0, MOST_STEPS - 1),
                tries=c.integers("tries", MOST_TRIES, 0, 0xFF) if "tries" in c else (),
            )
            for c in f.maps("clients", _MAX_CLIENTS)
        ),
        controller=f.optional_integer("controller", 0, _I64),
        successor=f.optional_integer("successor", 0, _I64),
        leader=f.optional_integer("leader", 0, _I64),
    )


def _subscribe(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    spaces = None
    if not f.flag("all", True):
        spaces = tuple(
            m.Subscription(
                space=s.integer("space", 0, 0xFFFF),
                streams=None
                if s.flag("all", True)
                else s.integers("streams", limits.streams, 0, 0xFFFF),
            )
            for s in f.maps("spaces", limits.spaces)
        )
    return m.Subscribe(spaces=spaces, max_rate_hz=f.optional_number("rate", 0.001, 1e6))


def _number(kind: Callable[..., Message], key: str) -> Decoder:
    """A decoder of a message with one number."""

    def read(header: Header, payload: bytes, limits: Limits) -> Message:
        return kind(**{key: _fields(header, payload, limits).integer(key, 0, _I64)})

    return read


def _bare(message: Message) -> Decoder:
    """A decoder of a message without fields."""
    return lambda header, payload, limits: message


def _state(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    return m.State(
        state=f.choice("state", ControlState),
        reason=f.text("reason", ""),
        driver_failed=f.flag("driver_failed", False),
        slowed_nanos=f.integer("slowed", 0, _I64, 0),
    )


def _missed(header: Header, payload: bytes, limits: Limits) -> Message:
    f = _fields(header, payload, limits)
    return m.Missed(events=f.integer("events", 0, _I64), total=f.integer("total", 0, _I64))


def _goodbye(header: Header, payload: bytes, limits: Limits) -> Message:
    return m.Goodbye(reason=_fields(header, payload, limits).text("reason", ""))


def _name_successor(header: Header, payload: bytes, limits: Limits) -> Message:
    return m.NameSuccessor(
        client=_fields(header, payload, limits).optional_integer("client", 0, _I64)
    )


def _lossless(header: Header, payload: bytes, limits: Limits) -> Message:
    return m.Lossless(
        deadline_millis=_fields(header, payload, limits).integer(
            "deadline", 0, _MAX_DEADLINE_MILLIS
        )
    )


_DECODERS: dict[int, Decoder] = {
    FrameType.HELLO: _hello,
    FrameType.WELCOME: _welcome,
    FrameType.ERROR: _error,
    FrameType.GOODBYE: _goodbye,
    FrameType.PING: _number(m.Ping, "number"),
    FrameType.PONG: _number(m.Pong, "number"),
    FrameType.CHALLENGE: _of_handshake,
    FrameType.PROOF: _of_handshake,
    FrameType.SPACE_DEFINED: _space_defined,
    FrameType.SPACE_REMOVED: lambda header, payload, limits: m.SpaceRemoved(space=header.space),
    FrameType.EPOCH_END: _number(m.EpochEnd, "epoch"),
    FrameType.TILE_NAMES: _tile_names,
    FrameType.TILES: decode_tiles,
    FrameType.STREAM_KEY: decode_key,
    FrameType.STREAM_DELTA: decode_delta,
    FrameType.SUMMARY: _summary,
    FrameType.SPACE_INFO: _space_info,
    FrameType.NEW_NAMES: _new_names,
    FrameType.EVENT: _event,
    FrameType.COUNTERS: _counters,
    FrameType.STATE: _state,
    FrameType.FILTERS: lambda header, payload, limits: m.Filters(
        filters=_read_filters(header, payload, limits)
    ),
    FrameType.CLIENTS: _clients,
    FrameType.MISSED: _missed,
    FrameType.SET_FILTERS: lambda header, payload, limits: m.SetFilters(
        filters=_read_filters(header, payload, limits)
    ),
    FrameType.PAUSE: _bare(m.Pause()),
    FrameType.RESUME: _bare(m.Resume()),
    FrameType.STEP: _bare(m.Step()),
    FrameType.SUBSCRIBE: _subscribe,
    FrameType.TAKE_CONTROL: _bare(m.TakeControl()),
    FrameType.HAND_OVER: _number(m.HandOver, "client"),
    FrameType.NAME_SUCCESSOR: _name_successor,
    FrameType.TILE_NAMES_REQUEST: _tile_names_request,
    FrameType.PLAYBACK: read_playback,
    FrameType.TIMELINE: read_playback,
    FrameType.POSITION: read_playback,
    FrameType.SET_PLAYBACK: read_playback,
    FrameType.SEEK: read_playback,
    FrameType.FOLLOW: read_playback,
    FrameType.LOSSLESS: _lossless,
    FrameType.TRIGGER: read_trigger,
    FrameType.TRIGGERS: read_trigger,
    FrameType.FIRED: read_trigger,
    FrameType.SETTINGS: read_settings,
    FrameType.SET_SETTING: read_settings,
    FrameType.BUDGET: read_settings,
    FrameType.QUERY: read_details,
    FrameType.ANSWER: read_details,
    FrameType.ATTEND: read_attendance,
    FrameType.LOOK: read_attendance,
    FrameType.LOOKED: read_attendance,
}
