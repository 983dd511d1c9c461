"""The wire: golden bytes both ways, limits, and what a hostile end sends."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from gcspy_original.wire import (
    Bootstrap,
    ClientGreeting,
    Connection,
    ControlValues,
    Event,
    EventCounts,
    EventFilter,
    EventFilters,
    Message,
    Paused,
    PauseRequest,
    PlayOne,
    Restart,
    ServerGreeting,
    Shutdown,
    ShutdownRequest,
    Side,
    SpaceAdded,
    SpaceChanged,
    SpaceDefinition,
    SpaceInfo,
    StreamDefinition,
    StreamValues,
    Summary,
    commands,
    encode,
)
from gcspy_original.wire.limits import MOST_COMMANDS, MOST_FRAME_BYTES, MOST_TEXT_BYTES
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from hypothesis import given
from hypothesis import strategies as st

_STREAM = StreamDefinition(id=0, name="Used", dtype="i2", maximum=7, suffix=" b", colour=(1, 2, 3))
_SPACE = SpaceDefinition(
    id=0, name="S", driver="D", tiles=2, unused_text="u", main=True, streams=(_STREAM,), names=b"a\0b\0"
)  # fmt: skip
_GREETED: list[Message] = [
    ServerGreeting(name="t"),
    Bootstrap(spaces=1, general_info="i", events=("A", "B")),
    SpaceAdded(space=_SPACE),
]

GOLDEN: list[tuple[Message, str]] = [
    (ClientGreeting(pause_at_start=True), "0000000e 4743737079363636 00 00000001 01"),
    (ServerGreeting(name="t"), "0000000f 4743737079363636 00 00000001 7400"),
    (
        Bootstrap(spaces=1, general_info="i", events=("A", "B")),
        "0000000a 0001 6900 0002 4100 4200",
    ),
    (
        SpaceAdded(space=_SPACE),
        """0000003d 0000 5300 4400 426c6f636b2000 00 00000002 7500 01 0001
        00 01 5573656400 00000000 00000007 00000000 00000000 00 206200 00 00 00 010203 00
        6100 6200""",
    ),
    (PauseRequest(), "0000000a 000a2c2a 01 00 fffffd66"),
    (Paused(), "0000000a 000a2c2a 02 00 fffffd66"),
    (Restart(), "0000000a 000a2c2a 03 00 fffffd66"),
    (PlayOne(), "0000000a 000a2c2a 04 00 fffffd66"),
    (ShutdownRequest(), "0000000a 000a2c2a 05 00 fffffd66"),
    (Shutdown(), "0000000a 000a2c2a 06 00 fffffd66"),
    (
        StreamValues(space=0, stream=0, values=np.array([1, -2], dtype="i2")),
        "00000014 000a2c2a 07 00 00 00000002 0001 fffe 00 fffffd66",
    ),
    (
        Event(event=1, elapsed_millis=0x102, compensation_millis=3),
        "00000013 000a2c2a 08 01 00000102 00000003 00 fffffd66",
    ),
    (
        ControlValues(space=0, values=np.array([1, 12], dtype="u1")),
        "00000011 000a2c2a 09 00 00000002 01 0c 00 fffffd66",
    ),
    (
        EventFilters(filters=(EventFilter(), EventFilter(enabled=False, delay_millis=5, pause=True, period=9))),
        "00000020 000a2c2a 0a 0002 01 00000000 00 00000001 00 00000005 01 00000009 00 fffffd66",
    ),
    (EventCounts(counts=(1, 2)), "00000016 000a2c2a 0b 00000002 00000001 00000002 00 fffffd66"),
    (
        Summary(space=0, stream=0, values=(4, -1)),
        "00000018 000a2c2a 0c 00 00 00000002 00000004 ffffffff 00 fffffd66",
    ),
    (SpaceInfo(space=0, text="hi"), "0000000e 000a2c2a 0d 00 686900 00 fffffd66"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "text"), GOLDEN, ids=lambda one: type(one).__name__)
def test_golden_bytes_both_ways(message: Message, text: str) -> None:
    data = bytes.fromhex(text)
    assert encode(message) == data
    of_client = isinstance(
        message, ClientGreeting | PauseRequest | Restart | PlayOne | ShutdownRequest | EventFilters
    )
    connection = Connection(Side.CLIENT if of_client else Side.SERVER, events=2)
    before: list[Message] = [ClientGreeting()] if of_client else _GREETED
    index = next((i for i, one in enumerate(before) if type(one) is type(message)), len(before))
    connection.receive_data(b"".join(map(encode, before[:index])) + data)
    found = list(connection.messages())
    assert len(found) == index + 1
    assert encode(found[-1]) == data


def _server() -> Connection:
    connection = Connection(Side.SERVER)
    connection.receive_data(b"".join(map(encode, _GREETED)))
    assert len(list(connection.messages())) == 3
    assert connection.described
    return connection


def test_a_whole_event_may_be_one_frame() -> None:
    connection = _server()
    values = StreamValues(space=0, stream=0, values=np.array([5, 6], dtype="i2"))
    connection.receive_data(commands([values, EventCounts(counts=(1, 0)), Event(event=0)]))
    found = list(connection.messages())
    assert [type(one) for one in found] == [StreamValues, EventCounts, Event]


def test_values_have_the_type_and_the_tiles_of_the_space_as_it_is_now() -> None:
    connection = _server()
    wide = StreamDefinition(id=0, name="Used", dtype="i4")
    grown = SpaceDefinition(id=0, name="S", tiles=3, streams=(wide,), names=b"\0\0\0")
    values = np.array([1, 2, 1 << 20], dtype="i4")
    connection.receive_data(
        encode(SpaceChanged(space=grown)) + encode(StreamValues(space=0, stream=0, values=values))
    )
    changed, found = connection.messages()
    assert isinstance(changed, SpaceChanged)
    assert isinstance(found, StreamValues)
    assert found.values.tolist() == values.tolist()


def _frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def _command(body: bytes) -> bytes:
    return _frame(struct.pack(">i", 666666) + body + b"\0" + struct.pack(">i", -666))


@pytest.mark.parametrize(
    ("data", "about"),
    [
        (struct.pack(">I", MOST_FRAME_BYTES + 1), "a frame of"),
        (b"\xff\xff\xff\xff", "a frame of"),
        (_frame(b""), "needs 4 bytes"),
        (_frame(struct.pack(">i", 5)), "begins with 5"),
        (_command(b"\x01"), "command 1"),
        (_command(b"\x0f"), "command 15"),
        (_command(b"\x07\x01\x00" + struct.pack(">i", 2) + bytes(4)), "no space 1"),
        (_command(b"\x07\x00\x05" + struct.pack(">i", 2) + bytes(4)), "no stream 5"),
        (_command(b"\x07\xff\x00" + struct.pack(">i", 2)), "is -1"),
        (_command(b"\x07\x00\x00" + struct.pack(">i", 3) + bytes(6)), "3 values for 2 tiles"),
        (_command(b"\x07\x00\x00" + struct.pack(">i", -1)), "is -1"),
        (_frame(struct.pack(">i", 666666) + b"\x07\0\0" + struct.pack(">i", 2) + b"xxx"), "needs 4 bytes"),
        (_command(b"\x08\x02" + bytes(8)), "no kind of event 2"),
        (_command(b"\x09\x00" + struct.pack(">i", 1) + b"\1"), "1 values for 2 tiles"),
        (_command(b"\x0b" + struct.pack(">i", 3) + bytes(12)), "3 counts for 2"),
        (_command(b"\x0c\x00\x00" + struct.pack(">i", 1 << 30)), "the length of a summary"),
        (_command(b"\x0d\x00" + b"x" * (MOST_TEXT_BYTES + 9) + b"\0"), "does not end within"),
        (_command(b"\x02" * (MOST_COMMANDS + 1)), "more than"),
        (_frame(struct.pack(">i", 666666) + b"\2"), "needs 1 bytes"),
        (_frame(struct.pack(">i", 666666) + b"\0" + struct.pack(">i", -665)), "ends with -665"),
        (_frame(struct.pack(">i", 666666) + b"\0" + struct.pack(">i", -666) + b"x"), "1 bytes more"),
    ],
)  # fmt: skip
def test_a_wrong_frame_is_blamed_on_the_server_with_its_place(data: bytes, about: str) -> None:
    connection = _server()
    start = connection.offset
    connection.receive_data(data)
    with pytest.raises(RemoteProtocolError, match=about) as caught:
        list(connection.messages())
    assert start <= caught.value.offset <= start + len(data)
    with pytest.raises(LocalProtocolError, match="nothing more is read"):
        connection.receive_data(b"more")
    assert list(connection.messages()) == []


@pytest.mark.parametrize(
    ("tiles", "streams", "number", "about"),
    [
        (1 << 30, (_STREAM,), 0, "the number of tiles"),
        (3, (_STREAM,), 0, "3 texts are announced"),
        (2, (_STREAM, _STREAM), 0, "two streams"),
        (2, (_STREAM,), 200, "the number of a space"),
    ],
)
def test_an_impossible_space_is_refused(
    tiles: int, streams: tuple[StreamDefinition, ...], number: int, about: str
) -> None:
    space = SpaceDefinition(id=number, name="S", tiles=2, streams=streams, names=b"a\0b\0")
    data = bytearray(encode(SpaceAdded(space=space)))
    place = data.index(b"Block \0") + len(b"Block \0") + 1
    data[place : place + 4] = struct.pack(">i", tiles)
    connection = Connection(Side.SERVER)
    connection.receive_data(b"".join(map(encode, _GREETED[:2])) + bytes(data))
    with pytest.raises(RemoteProtocolError, match=about):
        list(connection.messages())


def test_a_greeting_of_something_else_is_told_at_once() -> None:
    for data, about in (
        (b"HTTP/1.1 400 Bad Request\r\n", "this is not the wire"),
        (_frame(b"GCspy667\0" + struct.pack(">i", 1) + b"x\0"), "GCspy667"),
        (_frame(b"GCspy666\0" + struct.pack(">i", 2) + b"x\0"), "version 2"),
    ):
        connection = Connection(Side.SERVER)
        connection.receive_data(data)
        with pytest.raises(RemoteProtocolError, match=about):
            list(connection.messages())


def test_the_end_is_only_right_between_frames() -> None:
    connection = _server()
    connection.receive_eof()
    connection.receive_data(encode(Paused())[:5])
    assert list(connection.messages()) == []
    with pytest.raises(RemoteProtocolError, match="within a frame"):
        connection.receive_eof()
    with pytest.raises(RemoteProtocolError, match="before the description"):
        Connection(Side.SERVER).receive_eof()


def test_what_does_not_fit_is_our_mistake() -> None:
    for message in (
        SpaceInfo(space=128, text=""),
        EventCounts(counts=(1 << 31,)),
        SpaceAdded(space=SpaceDefinition(id=0, name="S", tiles=1)),
        SpaceAdded(space=SpaceDefinition(id=0, name="S", streams=(StreamDefinition(id=0, name="x", dtype="u8"),))),
    ):  # fmt: skip
        with pytest.raises(LocalProtocolError):
            encode(message)


@given(st.binary(max_size=200), st.booleans())
def test_garbage_is_read_or_blamed_on_the_other_end(data: bytes, greeted: bool) -> None:
    connection = _server() if greeted else Connection(Side.SERVER)
    connection.receive_data(data)
    blamed = None
    try:
        list(connection.messages())
    except RemoteProtocolError as error:
        blamed = error
    assert blamed is None or blamed.offset <= connection.offset + 4 + len(data)


@given(st.binary(max_size=30).map(lambda one: one.replace(b"\0", b"")))
def test_any_bytes_of_a_text_come_back(text: bytes) -> None:
    connection = _server()
    data = _command(b"\x0d\0" + text + b"\0")
    connection.receive_data(data)
    (found,) = connection.messages()
    assert encode(found) == data
