"""Messages to frames and back: every type, whole, cut, with bytes behind and with garbage."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgpack
import pytest
import zstandard
from gcspy_protocol import messages as m
from gcspy_protocol.codec import crc_of_crcs, decode, encode, encode_event, unpack
from gcspy_protocol.connection import may_send
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.frame import HEADER, Frame, Header, inflate
from gcspy_protocol.limits import CLIENT_LIMITS, SERVER_LIMITS, Limits
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import EventFilter, Role, Stream
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.sameness import same
from tests.protocol.strategies import BY_TYPE, EVENTS, any_message, damaged

LIMITS = Limits()
BINARY = {
    FrameType.TILES,
    FrameType.STREAM_KEY,
    FrameType.STREAM_DELTA,
    FrameType.SUMMARY,
    FrameType.EVENT,
    FrameType.COUNTERS,
    FrameType.POSITION,
    FrameType.TIMELINE,
    FrameType.CHALLENGE,
    FrameType.PROOF,
}
"""Types whose payload is no map."""

SMALL = Limits(
    payload_bytes=1 << 16, raw_bytes=1 << 18, tiles=1 << 12, map_bytes=1 << 14, text_chars=1 << 10
)
"""Limits under which accepted garbage stays cheap."""


def parts(frame: bytes) -> tuple[Header, bytes]:
    header = Header._make(HEADER.unpack_from(frame))
    assert len(frame) == HEADER.size + header.length
    return header, inflate(header, frame[HEADER.size :], LIMITS, 0)


def decoded(frame: bytes) -> Message:
    return decode(*parts(frame), LIMITS)


def header_of(frame_type: int, **more: int) -> Header:
    fields = dict.fromkeys(Header._fields, 0)
    return Header(**{**fields, "type": frame_type, **more})


def read(frame_type: int, payload: bytes, **more: int) -> Message:
    return decode(header_of(frame_type, **more), payload, LIMITS)


def packed(fields: Any) -> bytes:
    return msgpack.packb(fields)


def test_every_frame_type_has_a_strategy() -> None:
    assert set(BY_TYPE) == set(FrameType)


def test_every_message_class_has_a_frame_type_of_its_name() -> None:
    names = {"".join("_" + c if c.isupper() and i else c for i, c in enumerate(t.__name__)).upper()
             for t in Message.__args__}  # fmt: skip
    assert names - {"UNKNOWN"} == {t.name for t in FrameType}


@given(any_message())
def test_decoding_what_was_encoded_gives_the_same_message(message: Message) -> None:
    frame = encode(message)
    assert frame.crc == zlib.crc32(frame.data)
    assert same(decoded(frame.data), message)


@given(EVENTS, st.lists(any_message(), max_size=3))
def test_an_event_is_its_frames_and_an_end_with_their_crc(
    event: m.Event, messages: list[Message]
) -> None:
    frames = [encode(message) for message in messages]
    data = encode_event(event, frames)
    before = b"".join(frame.data for frame in frames)
    assert data.startswith(before)
    end = data[len(before) :]
    assert same(decoded(end), event)
    crcs = b"".join(zlib.crc32(frame.data).to_bytes(4, "little") for frame in frames)
    without = end[: HEADER.size] + end[HEADER.size + 4 :]
    assert int.from_bytes(end[HEADER.size : HEADER.size + 4], "little") == zlib.crc32(
        crcs + without
    )
    assert crc_of_crcs(crcs, without) == zlib.crc32(crcs + without)


_MAY_BE_CUT_TO = {FrameType.EVENT: {40}}
"""Payload lengths below the whole at which a payload is still one: the EVENT before its map."""


@given(st.data())
def test_a_payload_cut_short_is_blamed_on_the_peer_at_every_length(data: st.DataObject) -> None:
    frame_type = data.draw(st.sampled_from(sorted(BY_TYPE)))
    message = data.draw(BY_TYPE[frame_type])
    whole = encode_event(message, []) if isinstance(message, m.Event) else encode(message).data
    header, payload = parts(whole)
    for size in range(1, len(payload)):
        if size in _MAY_BE_CUT_TO.get(frame_type, ()):
            continue
        with pytest.raises(RemoteProtocolError):
            decode(header, payload[:size], LIMITS)


@given(st.data(), st.binary(max_size=9))
def test_bytes_behind_a_payload_are_not_looked_at(data: st.DataObject, behind: bytes) -> None:
    frame_type = data.draw(st.sampled_from([t for t in BY_TYPE if t is not FrameType.EVENT]))
    message = data.draw(BY_TYPE[frame_type])
    header, payload = parts(encode(message).data)
    if payload:  # no bytes are the empty map, some bytes are a map
        assert same(decode(header, payload + behind, LIMITS), message)


@given(EVENTS, st.binary(min_size=1, max_size=9))
def test_bytes_behind_the_map_of_an_event_are_not_looked_at(event: m.Event, behind: bytes) -> None:
    header, payload = parts(encode_event(event, []))
    if len(payload) == 40:
        payload += packed({})
    assert same(decode(header, payload + behind, LIMITS), event)


def _with_strangers(value: Any) -> Any:
    """The same map with keys of a later version, in it and in every map of its lists."""
    if isinstance(value, dict):
        return {
            "zz later": [1, {"x": None}],
            **{k: _with_strangers(v) for k, v in value.items()},
            "a a": 2.5,
        }
    if isinstance(value, list):
        return [_with_strangers(item) for item in value]
    return value


_MAPS = [
    t
    for t in FrameType
    if t
    not in (FrameType.TILES, FrameType.STREAM_KEY, FrameType.STREAM_DELTA, FrameType.SUMMARY,
            FrameType.COUNTERS, FrameType.EVENT, FrameType.SPACE_REMOVED, FrameType.TIMELINE, FrameType.POSITION,
            FrameType.CHALLENGE, FrameType.PROOF)
]  # fmt: skip


@pytest.mark.parametrize("frame_type", _MAPS, ids=lambda t: t.name)
@given(data=st.data())
def test_unknown_keys_of_a_newer_peer_are_not_looked_at(
    frame_type: FrameType, data: st.DataObject
) -> None:
    message = data.draw(BY_TYPE[frame_type])
    header, payload = parts(encode(message).data)
    fields = msgpack.unpackb(payload) if payload else {}
    target = fields.pop("target", None)  # a map of free texts: every key of it means something
    stranger = _with_strangers(fields)
    if target is not None:
        stranger["target"] = target
    assert same(decode(header, packed(stranger), LIMITS), message)


@given(st.sampled_from(sorted(FrameType)), st.binary(max_size=80), st.integers(0, 0xFFFF))
def test_a_payload_of_garbage_is_read_or_blamed_on_the_peer(
    kind: int, payload: bytes, place: int
) -> None:
    header = header_of(kind, length=len(payload), space=place, stream=place)
    with suppress(RemoteProtocolError):
        decode(header, payload, SMALL)


_JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(st.data())
def test_a_map_with_fields_of_any_other_kind_is_read_or_blamed_on_the_peer(
    data: st.DataObject,
) -> None:
    frame_type = data.draw(st.sampled_from(_MAPS))
    message = data.draw(BY_TYPE[frame_type])
    header, payload = parts(encode(message).data)
    fields = msgpack.unpackb(payload) if payload else {}
    path: Any = fields
    for _ in range(2):  # one field is replaced, at the top or one list down
        if not path:
            break
        key = data.draw(
            st.sampled_from(sorted(path) if isinstance(path, dict) else range(len(path)))
        )
        if not isinstance(path[key], (list, dict)) or data.draw(st.booleans()):
            path[key] = data.draw(_JSONISH)
            break
        path = path[key]
    with suppress(RemoteProtocolError):
        decode(header, packed(fields), SMALL)


@given(st.data())
def test_a_damaged_payload_is_read_or_blamed_on_the_peer(data: st.DataObject) -> None:
    frame_type = data.draw(st.sampled_from(sorted(BY_TYPE)))
    message = data.draw(BY_TYPE[frame_type])
    whole = encode_event(message, []) if isinstance(message, m.Event) else encode(message).data
    header, payload = parts(whole)
    with suppress(RemoteProtocolError):
        decode(header, data.draw(damaged(payload)), SMALL)


def test_a_frame_of_a_later_version_is_unknown_and_tells_its_size() -> None:
    assert read(0x7F, b"abc", length=3) == m.Unknown(type=0x7F, payload_bytes=3)


def test_an_event_or_an_unknown_message_has_no_frame_of_its_own() -> None:
    for message in (
        m.Event(sequence=1, time_nanos=2, event=0, occurrence=1, epoch=1),
        m.Unknown(type=1, payload_bytes=0),
    ):
        with pytest.raises(LocalProtocolError, match="encode_event"):
            encode(message)


@pytest.mark.parametrize(
    "message",
    [
        m.Summary(space=1, stream=0, sequence=1, time_nanos=0, values=(1 << 63,), covered=1),
        m.Summary(space=1, stream=0, sequence=1, time_nanos=0, values=(1,), covered=-1),
        m.Counters(counts=(1 << 64,)),
        m.SpaceRemoved(space=0x10000),
        m.SpaceInfo(space=1, sequence=-1, time_nanos=0, text=""),
        m.Ping(number=1 << 64),
    ],
)
def test_a_number_that_does_not_fit_its_field_is_our_own_fault(message: Message) -> None:
    with pytest.raises(LocalProtocolError):
        encode(message)


def test_a_text_that_is_no_unicode_travels_with_a_question_mark() -> None:
    assert decoded(encode(m.Goodbye(reason="/tmp/caf\udce9")).data) == m.Goodbye(reason="/tmp/caf?")


def test_golden_bytes_of_an_event_worked_out_by_hand() -> None:
    event = m.Event(sequence=7, time_nanos=9, event=2, occurrence=5, epoch=3, gather_nanos=11, held_nanos=13,
                    keyframe=True)  # fmt: skip
    rest = (
        "0200 0100 03000000 00000000"
        "0500000000000000 0b00000000000000 0d00000000000000"
    )  # fmt: skip
    header = bytes.fromhex("28000000 2f 00 0000 0000 0000 0700000000000000 0900000000000000")
    crc = zlib.crc32(header + bytes.fromhex(rest))
    whole = header + struct.pack("<I", crc) + bytes.fromhex(rest)
    assert encode_event(event, []) == whole
    assert decoded(whole) == event
    frame = Frame(b"any bytes", 0x04030201)
    crc = zlib.crc32(b"\x01\x02\x03\x04" + header + bytes.fromhex(rest))
    assert encode_event(event, [frame])[9 + 28 : 9 + 32] == struct.pack("<I", crc)


def test_an_event_happened_below_two_to_the_63_nanoseconds() -> None:
    event = m.Event(sequence=1, time_nanos=(1 << 63) - 1, event=0, occurrence=1, epoch=1)
    assert decoded(encode_event(event, [])) == event
    with pytest.raises(RemoteProtocolError, match="time 9223372036854775808 is not below"):
        decoded(encode_event(replace(event, time_nanos=1 << 63), []))


def test_golden_bytes_of_summary_and_counters_worked_out_by_hand() -> None:
    summary = m.Summary(space=2, stream=3, sequence=4, time_nanos=5, values=(-1, 256), covered=6)
    payload = bytes.fromhex("06000000 02000000 ffffffffffffffff 0001000000000000")
    header = bytes.fromhex("18000000 23 00 0200 0300 0000 0400000000000000 0500000000000000")
    assert encode(summary).data == header + payload
    assert decoded(header + payload) == summary
    counters = bytes.fromhex("02000000 0100000000000000 ffffffffffffffff")
    assert encode(m.Counters(counts=(1, (1 << 64) - 1))).data[28:] == counters
    assert read(FrameType.COUNTERS, counters) == m.Counters(counts=(1, (1 << 64) - 1))


@pytest.mark.parametrize(
    ("kind", "fields", "about"),
    [
        (FrameType.HELLO, {}, "client"),
        (FrameType.HELLO, {"client": "x", "control": 1}, "true or false"),
        (FrameType.HELLO, {"client": "x", "codecs": ["zstd"] * 17}, "at most 16"),
        (FrameType.WELCOME, {"server": "s", "session": "x", "client": 1, "controller": True, "mode": "passive",
                             "acts_on": "program", "events": [{"id": 1, "name": "n"}]}, "event ids"),
        (FrameType.WELCOME, {"server": "s", "session": "x", "client": 1, "controller": True, "mode": "asleep",
                             "acts_on": "program", "events": []}, "one of passive"),
        (FrameType.ERROR, {"code": 99, "message": "m"}, "one of 1, 2"),
        (FrameType.ERROR, {"code": True, "message": "m"}, "one of 1, 2"),
        (FrameType.ERROR, {"code": 1.0, "message": "m"}, "one of 1, 2"),
        (FrameType.PING, {}, "an integer"),
        (FrameType.STATE, {"state": "asleep"}, "one of running"),
        (FrameType.FILTERS, {"filters": [{"event": 1, "period": 0}]}, "from 1 to"),
        (FrameType.FILTERS, {"filters": [{"event": 1, "delay": 3_600_001}]}, "from 0 to 3600000"),
        (FrameType.FILTERS, {"filters": [1]}, "expected a map, got int"),
        (FrameType.SUBSCRIBE, {"rate": 0.0}, "a number"),
        (FrameType.SUBSCRIBE, {"rate": float("nan")}, "a number"),
        (FrameType.TILE_NAMES_REQUEST, {"first": 0, "count": 4097}, "from 1 to 4096"),
        (FrameType.TILE_NAMES_REQUEST, {"first": 0, "count": 0}, "from 1 to 4096"),
        (FrameType.TILE_NAMES, {"first": 0, "names": ["x"] * 4097}, "at most 4096"),
        (FrameType.NAME_SUCCESSOR, {"client": -1}, "an integer"),
        (FrameType.MISSED, {"events": 1}, "'total'"),
    ],
)  # fmt: skip
def test_a_field_that_is_missing_or_impossible_is_named(
    kind: int, fields: dict[str, Any], about: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=about):
        read(kind, packed(fields))


@pytest.mark.parametrize("kind", sorted(set(FrameType) - BINARY))
def test_a_map_of_any_type_has_a_limit(kind: FrameType) -> None:
    payload = packed({"unknown": "y" * 100})
    limits = replace(Limits(), map_bytes=len(payload) - 1)
    text = (
        f"{kind.name.lower()}: a map of {len(payload)} bytes, over the limit of {limits.map_bytes}"
    )
    with pytest.raises(RemoteProtocolError, match=text):
        decode(header_of(kind), payload, limits)


@pytest.mark.parametrize(
    ("kind", "payload", "about"),
    [
        (FrameType.SUMMARY, struct.pack("<II", 1, 0xFFFFFFFF) + bytes(64), "do not fit"),
        (FrameType.SUMMARY, struct.pack("<II", 1, 4097) + bytes(8 * 4097), "do not fit"),
        (FrameType.CHALLENGE, bytes(31), "challenge: 31 bytes, 32 needed"),
        (FrameType.PROOF, b"", "proof: 0 bytes, 32 needed"),
        (FrameType.HELLO, packed({"client": "c", "nonce": "0" * 63}), "64 hexadecimal digits"),
        (FrameType.HELLO, packed({"client": "c", "nonce": "0" * 63 + "A"}), "in lower case"),
        (FrameType.COUNTERS, struct.pack("<I", 0xFFFFFFFF) + bytes(64), "do not fit"),
        (FrameType.COUNTERS, struct.pack("<I", 1025) + bytes(8 * 1025), "do not fit"),
        (FrameType.PING, packed({"number": 1, "x": "y" * (9 << 20)}), "over the limit of 8388608"),
        (FrameType.GOODBYE, packed({"reason": "y" * 65_537}), "at most 65536"),
        (FrameType.GOODBYE, packed([1]), "expected a map, got list"),
        (FrameType.GOODBYE, packed({1: 2}), "not msgpack"),
        (FrameType.GOODBYE, b"\xc1", "not msgpack"),
        (FrameType.GOODBYE, b"\x81\xa6reason" + b"\x91" * 2000 + b"\xc0", "not msgpack"),
        (FrameType.GOODBYE, b"\x81\xa6reason" + b"\x91" * 1000 + b"\xc0", "should be a text"),
        (FrameType.STATE, b"\x81\xa5state" + b"\x91" * 1000 + b"\xc0", "one of running"),
        (FrameType.GOODBYE, b"\x81\xa6reason\xa2\xff\xff", "not msgpack"),
        (FrameType.GOODBYE, b"\x81\xa6reason\xd6\xff\0\0\0\0", "not msgpack"),
        (FrameType.GOODBYE, b"\x81\x90\xa1x", "not msgpack"),
        (FrameType.GOODBYE, b"\xdf\xff\xff\xff\xff", "not msgpack"),
        (FrameType.GOODBYE, b"\x81\xa6reason\xdd\xff\xff\xff\xff", "not msgpack"),
    ],
)
def test_a_payload_that_lies_about_its_size_or_kind_is_refused(
    kind: int, payload: bytes, about: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=about):
        read(kind, payload)


def test_absent_fields_get_the_defaults_of_the_specification() -> None:
    assert read(FrameType.GOODBYE, b"") == m.Goodbye(reason="")
    assert read(FrameType.SUBSCRIBE, b"") == m.Subscribe(spaces=None, max_rate_hz=None)
    filters = packed({"filters": [{"event": 3}]})
    assert read(FrameType.SET_FILTERS, filters) == m.SetFilters(filters=(EventFilter(event=3),))
    assert read(FrameType.NAME_SUCCESSOR, b"") == m.NameSuccessor(client=None)
    hello = m.Hello(client="c", codecs=())
    assert read(FrameType.HELLO, packed({"client": "c"})) == hello
    space = read(FrameType.SPACE_DEFINED, packed({"name": "n", "naming": "uniform", "streams": [
        {"id": 1, "name": "s", "type": "i4", "max": 9}]}), space=5)  # fmt: skip
    assert isinstance(space, m.SpaceDefined)
    assert (space.space.id, space.space.streams) == (5, (Stream(id=1, name="s", maximum=9),))


# ---------------------------------------------------------------- what a payload may unpack to


class Unpacked:
    """Counts what is unpacked whole."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        monkeypatch.setattr("gcspy_protocol.codec.inflate", self._inflate)

    def _inflate(self, header: Header, payload: bytes, limits: Limits, offset: int) -> bytes:
        raw = inflate(header, payload, limits, offset)
        self.bytes += len(raw)
        return raw


def zeros(size: int) -> bytes:
    return zstandard.ZstdCompressor().compress(bytes(size))


def zipped(frame_type: FrameType, packed: bytes) -> Header:
    return Header(len(packed), frame_type, 1, 1, 0, 0, 1, 1)


@pytest.mark.parametrize("frame_type", list(FrameType))
@pytest.mark.parametrize("limits", [CLIENT_LIMITS, SERVER_LIMITS], ids=["client", "server"])
def test_no_frame_unpacks_more_than_its_type_can_need(
    frame_type: FrameType, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 MiB of zeros say that they are a map, no tiles, no values, no counts, no summary or no timeline."""
    unpacked = Unpacked(monkeypatch)
    packed = zeros(16 << 20)
    with pytest.raises(
        RemoteProtocolError, match=r"would unpack to 16777216 bytes, over the limit|dtype number 0"
    ):
        unpack(zipped(frame_type, packed), packed, limits, 0)
    assert unpacked.bytes == 0


@pytest.mark.parametrize(
    ("frame_type", "head"),
    [
        (FrameType.STREAM_KEY, struct.pack("<HBBIQ", 0, 8, 1, 1000, 0)),
        (FrameType.STREAM_DELTA, struct.pack("<HBBIQQII", 0, 8, 1, 2000, 0, 0, 1000, 1000)),
        (FrameType.TILES, struct.pack("<IIIB3xQQ", 1000, 1000, 1000, 1, 0, 0)),
    ],
)
def test_a_payload_unpacks_to_what_its_beginning_declares(
    frame_type: FrameType, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = Unpacked(monkeypatch)
    fits = zstandard.ZstdCompressor().compress(head + bytes(9_000))
    assert len(unpack(zipped(frame_type, fits), fits, CLIENT_LIMITS, 0)) == unpacked.bytes
    more = zstandard.ZstdCompressor().compress(head + bytes(200_000))
    with pytest.raises(RemoteProtocolError, match="over the limit"):
        unpack(zipped(frame_type, more), more, CLIENT_LIMITS, 0)
    assert unpacked.bytes == len(head) + 9_000


@pytest.mark.parametrize(
    ("frame_type", "head", "about"),
    [
        (FrameType.STREAM_KEY, struct.pack("<HBBIQ", 0, 8, 1, 0xFFFFFFFF, 0), "4294967295 tiles"),
        (FrameType.STREAM_KEY, struct.pack("<HBBIQ", 0, 9, 1, 1, 0), "dtype number 9"),
        (
            FrameType.STREAM_DELTA,
            struct.pack("<HBBIQQII", 0, 8, 1, 2, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF),
            "4294967295 changes",
        ),
        (
            FrameType.TILES,
            struct.pack("<IIIB3xQQ", 0xFFFFFFFF, 0, 0, 1, 0, 0),
            "4294967295 tiles, over",
        ),
        (FrameType.TILES, struct.pack("<IIIB3xQQ", 9, 0xFFFFFFFF, 9, 1, 0, 0), "4294967295 runs"),
    ],
)
def test_what_is_declared_is_compared_with_the_limits_before_it_is_unpacked(
    frame_type: FrameType, head: bytes, about: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = Unpacked(monkeypatch)
    packed = zstandard.ZstdCompressor().compress(head + bytes(1 << 20))
    with pytest.raises(RemoteProtocolError, match=about):
        unpack(zipped(frame_type, packed), packed, CLIENT_LIMITS, 0)
    assert unpacked.bytes == 0


@pytest.mark.parametrize(
    "message",
    [
        m.Filters(filters=tuple(EventFilter(event=i) for i in range(1024))),
        m.Clients(clients=tuple(m.Client(id=i, name="window") for i in range(1000))),
        m.TileNames(space=1, sequence=1, first=0, names=("unused",) * 4096),
        m.Subscribe(
            spaces=tuple(m.Subscription(space=i, streams=tuple(range(512))) for i in range(40))
        ),
        m.SetFilters(filters=tuple(EventFilter(event=i) for i in range(1024))),
    ],
    ids=lambda message: type(message).__name__,
)
def test_the_most_regular_honest_maps_pass(message: m.Message) -> None:
    frame = encode(message).data
    header = Header._make(HEADER.unpack_from(frame))
    limits = SERVER_LIMITS if may_send(Role.CLIENT, header.type) else CLIENT_LIMITS
    assert header.flags & 1
    raw = unpack(header, frame[HEADER.size :], limits, 0)
    assert same(decode(header, raw, limits), message)


def test_the_map_behind_an_event_has_the_same_limit() -> None:
    more = packed({"unknown": "y" * 100})
    limits = replace(Limits(), map_bytes=len(more) - 1)
    text = f"event: a map of {len(more)} bytes, over the limit of {limits.map_bytes}"
    with pytest.raises(RemoteProtocolError, match=text):
        decode(header_of(FrameType.EVENT), bytes(40) + more, limits)
