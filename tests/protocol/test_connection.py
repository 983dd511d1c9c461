"""One end of a connection: any fragmentation, any garbage, any end of the stream, and which end may send what when."""

from __future__ import annotations

import struct
from contextlib import suppress

import numpy as np
import pytest
import zstandard
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.connection import (
    MAGIC,
    VERSIONS,
    Connection,
    ConnectionState,
    is_event_frame,
    preamble,
)
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError, VersionMismatch
from gcspy_protocol.frames.frame import HEADER, pack_frame
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import Role
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.protocol.sameness import all_same, same
from tests.protocol.session import Session, server_streams
from tests.protocol.strategies import BY_TYPE, COMMANDS, cuts, damaged

WELCOME = Session.welcome

HELLO = m.Hello(client="test")

EVENT = m.Event(sequence=1, time_nanos=2, event=0, occurrence=1, epoch=1)

SMALL = Limits(
    payload_bytes=1 << 14, raw_bytes=1 << 16, event_bytes=1 << 17, tiles=1 << 10, map_bytes=1 << 13, text_chars=1000,
    values_bytes=1 << 20,
)  # fmt: skip
"""Limits under which accepted garbage stays cheap."""


def info(text: str = "text") -> m.SpaceInfo:
    return m.SpaceInfo(space=1, sequence=1, time_nanos=1, text=text)


def opened(role: Role, limits: Limits | None = None) -> Connection:
    """A connection whose peer has greeted and that has greeted itself."""
    connection = Connection(role, limits=limits)
    connection.send(HELLO if role is Role.CLIENT else WELCOME)
    connection.receive_data(preamble() + encode(WELCOME if role is Role.CLIENT else HELLO).data)
    assert len(list(connection.messages())) == 1
    return connection


def read_all(connection: Connection, pieces: list[bytes]) -> tuple[list[Message], str]:
    """Messages, and the error with its place if there was one."""
    messages: list[Message] = []
    try:
        for piece in pieces:
            connection.receive_data(piece)
            messages += connection.messages()
        connection.receive_eof()
    except RemoteProtocolError as error:
        return messages, f"{error} at {error.offset}"
    return messages, ""


def place_of(error: str) -> str:
    """An error without the stranger's first bytes: the message quotes as many of those as arrived at once."""
    return error if "it began with" not in error else error.rpartition(" at ")[2]


# ------------------------------------------------------- the four properties


def test_golden_bytes_of_a_preamble() -> None:
    assert preamble() == bytes.fromhex("47 43 73 70 79 0D 0A 1A 0100 0200")
    assert Connection(Role.SERVER, versions=(2, 0x0304)).preamble()[8:] == bytes.fromhex(
        "0200 0403"
    )
    assert VERSIONS == (1, 2)


@given(st.data())
def test_any_cutting_gives_the_same_messages(data: st.DataObject) -> None:
    stream = data.draw(server_streams())
    whole, error = read_all(Connection(Role.CLIENT), [stream])
    assert error == ""
    pieces, error = read_all(Connection(Role.CLIENT), data.draw(cuts(stream)))
    assert error == ""
    assert all_same(whole, pieces)


@given(server_streams(most_steps=2))
def test_byte_by_byte_gives_the_same_messages(stream: bytes) -> None:
    whole, _ = read_all(Connection(Role.CLIENT), [stream])
    singly, error = read_all(
        Connection(Role.CLIENT), [stream[i : i + 1] for i in range(len(stream))]
    )
    assert error == ""
    assert all_same(whole, singly)


@given(st.lists(COMMANDS, max_size=5).flatmap(lambda sent: st.tuples(st.just(sent), st.data())))
def test_a_server_gets_what_the_client_sent(drawn: tuple[list[Message], st.DataObject]) -> None:
    sent, data = drawn
    client = Connection(Role.CLIENT)
    stream = client.preamble() + b"".join(
        client.send(message) for message in [HELLO, *sent, m.Goodbye()]
    )
    got, error = read_all(Connection(Role.SERVER), data.draw(cuts(stream)))
    assert error == ""
    assert all_same(got, [HELLO, *sent, m.Goodbye()])


@given(st.data())
def test_damage_is_read_or_blamed_on_the_peer_however_it_is_cut(data: st.DataObject) -> None:
    """Also by the interpreter, which is all that stands between a hostile server and a window."""
    stream = data.draw(damaged(data.draw(server_streams())))
    client, interpreter = Connection(Role.CLIENT, limits=SMALL), ClientInterpreter(limits=SMALL)
    with suppress(RemoteProtocolError):
        for piece in data.draw(cuts(stream)):
            client.receive_data(piece)
            for message in client.messages():
                interpreter.apply(message)
        client.receive_eof()
    whole = read_all(Connection(Role.CLIENT, limits=SMALL), [stream])
    pieces = read_all(Connection(Role.CLIENT, limits=SMALL), data.draw(cuts(stream)))
    assert all_same(whole[0], pieces[0])
    assert place_of(whole[1]) == place_of(pieces[1])


@given(st.sampled_from(Role), st.booleans(), st.binary(max_size=200))
def test_garbage_is_read_or_blamed_on_the_peer(role: Role, greeted: bool, garbage: bytes) -> None:
    connection = opened(role, SMALL) if greeted else Connection(role, limits=SMALL)
    with suppress(RemoteProtocolError):
        connection.receive_data(garbage)
        list(connection.messages())
        connection.receive_eof()


@given(
    st.sampled_from(sorted(FrameType)), st.integers(0, 3), st.binary(max_size=60), st.integers(0, 3)
)
def test_frames_of_garbage_are_read_or_blamed_on_the_peer(
    kind: FrameType, flags: int, payload: bytes, place: int
) -> None:
    header = HEADER.pack(len(payload), kind, flags, place, place, 0, 1, 1)
    for role in Role:
        connection = opened(role, SMALL)
        connection.receive_data(header + payload)
        with suppress(RemoteProtocolError):
            list(connection.messages())


@examples(0.25)  # each of them is cut at each of its bytes
@given(st.data())
def test_a_stream_cut_short_is_an_error_except_between_frames(data: st.DataObject) -> None:
    session = Session(data.draw)
    server = Connection(Role.SERVER)
    steps = [server.preamble(), *(server.send(message) for message in session.bootstrap())]
    steps += [server.send(message) for message in session.add_space()]
    steps += [session.event(), session.event(), server.send(m.Goodbye(reason="end"))]
    stream, ends = b"", set()
    for step in steps:
        stream += step
        ends.add(len(stream))
    ends -= {len(steps[0])}  # a peer that closes before its WELCOME has not greeted
    for size in range(len(stream) + 1):
        _, error = read_all(Connection(Role.CLIENT), [stream[:size]])
        assert bool(error) != (size in ends), f"{size} of {len(stream)}: {error!r}"


# --------------------------------------------------------------- events


def test_an_event_is_shown_whole_or_not_at_all() -> None:
    client = opened(Role.CLIENT)
    frames = [encode(info("a")), encode(info("b"))]
    data = encode_event(EVENT, frames)
    client.receive_data(data[:-1])
    assert client.next_message() is None
    client.receive_data(data[-1:])
    assert all_same(list(client.messages()), [info("a"), info("b"), EVENT])


@pytest.mark.parametrize("place", ["header", "payload", "end header", "crc", "end payload"])
def test_one_flipped_bit_anywhere_in_an_event_is_found(place: str) -> None:
    first, second = encode(info("a")), encode(info("bcd"))
    data = bytearray(encode_event(EVENT, [first, second]))
    end = len(first.data) + len(second.data)
    at = {
        "header": len(first.data) + 12,  # the second frame's sequence: legal, but not what was sent
        "payload": end - 1,
        "end header": end + 20,
        "crc": end + 28,
        "end payload": end + 28 + 16,
    }[place]
    data[at] ^= 1
    client = opened(Role.CLIENT)
    before = 12 + len(encode(WELCOME).data)
    client.receive_data(data)
    with pytest.raises(RemoteProtocolError, match="damaged event: CRC 0x") as caught:
        list(client.messages())
    assert caught.value.offset == before + end


def test_frames_left_out_doubled_or_in_another_order_are_found() -> None:
    a, b = encode(info("a")), encode(info("b"))
    end = encode_event(EVENT, [a, b])[len(a.data) + len(b.data) :]
    for frames in ([], [a], [b, a], [a, b, b]):
        client = opened(Role.CLIENT)
        client.receive_data(b"".join(frame.data for frame in frames) + end)
        with pytest.raises(RemoteProtocolError, match="damaged event"):
            list(client.messages())


def test_an_event_frame_of_a_later_version_counts_for_the_crc_and_is_skipped() -> None:
    later = pack_frame(0x2E, b"what later versions say of an event")
    data = encode_event(EVENT, [encode(info()), later])
    client = opened(Role.CLIENT)
    client.receive_data(data)
    assert all_same(list(client.messages()), [info(), EVENT])
    client = opened(Role.CLIENT)
    client.receive_data(data.replace(b"later versions", b"LATER versions"))
    with pytest.raises(RemoteProtocolError, match="damaged event"):
        list(client.messages())
    for size in (len(encode(info()).data), len(encode(info()).data + later.data)):
        client = opened(Role.CLIENT)
        client.receive_data(data[:size])
        assert client.next_message() is None
        with pytest.raises(RemoteProtocolError, match="in the middle of an event"):
            client.receive_eof()
    client = opened(Role.CLIENT)
    client.receive_data(later.data)
    assert client.next_message() is None
    with pytest.raises(RemoteProtocolError, match="in the middle of an event: 1 frames"):
        client.receive_eof()


def test_nothing_known_stands_between_the_frames_of_an_event() -> None:
    between = encode(m.Counters(counts=(1,))).data
    client = opened(Role.CLIENT)
    client.receive_data(encode(info()).data + between)
    with pytest.raises(RemoteProtocolError, match="COUNTERS in the middle of an event"):
        list(client.messages())


def test_an_unknown_frame_between_the_frames_of_an_event_is_not_part_of_it() -> None:
    a, b = encode(info("a")), encode(info("b"))
    end = encode_event(EVENT, [a, b])[len(a.data) + len(b.data) :]
    client = opened(Role.CLIENT)
    client.receive_data(a.data + pack_frame(0x3F, b"aside").data + b.data + end)
    assert all_same(
        list(client.messages()),
        [m.Unknown(type=0x3F, payload_bytes=5), info("a"), info("b"), EVENT],
    )


def test_an_event_without_frames_is_an_event() -> None:
    client = opened(Role.CLIENT)
    client.receive_data(encode_event(EVENT, []))
    assert list(client.messages()) == [EVENT]


def test_a_compressed_end_of_event_is_refused() -> None:
    end = encode_event(
        m.Event(sequence=1, time_nanos=1, event=0, occurrence=1, epoch=1, cause="x" * 600), []
    )
    payload = zstandard.ZstdCompressor().compress(end[HEADER.size :])
    client = opened(Role.CLIENT)
    client.receive_data(HEADER.pack(len(payload), FrameType.EVENT, 1, 0, 0, 0, 1, 1) + payload)
    with pytest.raises(RemoteProtocolError, match="EVENT frame is compressed"):
        list(client.messages())


def test_which_numbers_belong_to_an_event() -> None:
    assert [n for n in range(256) if is_event_frame(n)] == list(range(0x20, 0x2F))


# --------------------------------------------------------------- limits


def test_a_frame_that_claims_four_gigabytes_is_refused_before_any_of_it_came() -> None:
    for role in Role:
        connection = opened(role)
        connection.receive_data(HEADER.pack(0xFFFFFFFF, FrameType.PING, 0, 0, 0, 0, 0, 0))
        with pytest.raises(RemoteProtocolError, match="claims 4294967295 bytes, over the limit of"):
            connection.next_message()


def test_a_payload_at_the_limit_is_read_and_one_byte_more_is_not() -> None:
    limits = Limits(payload_bytes=100)
    for size, fine in ((100, True), (101, False)):
        client = opened(Role.CLIENT)
        client._limits = limits
        client.receive_data(pack_frame(0x7F, bytes(size)).data)
        if fine:
            assert client.next_message() == m.Unknown(type=0x7F, payload_bytes=100)
        else:
            with pytest.raises(
                RemoteProtocolError, match="claims 101 bytes, over the limit of 100"
            ):
                client.next_message()


def test_a_server_takes_no_more_than_commands_need() -> None:
    for kind in (FrameType.SUBSCRIBE, 0x7F):
        server = opened(Role.SERVER)
        server.receive_data(HEADER.pack((64 << 10) + 1, kind, 0, 0, 0, 0, 0, 0))
        with pytest.raises(RemoteProtocolError, match="over the limit of 65536"):
            server.next_message()


def test_an_event_is_counted_as_large_as_it_unpacks() -> None:
    """A frame of 100 bytes that unpacks to megabytes is held back as megabytes."""
    small = pack_frame(FrameType.STREAM_KEY, struct.pack("<HBBIQ", 0, 5, 0, 0, 1) + bytes(50_000))
    assert len(small.data) < 200
    client = opened(Role.CLIENT, SMALL)
    client.receive_data(small.data * 3)
    with pytest.raises(RemoteProtocolError, match="an event of more than 131072 bytes"):
        list(client.messages())
    client = opened(Role.CLIENT, SMALL)
    for _ in range(3):  # each event begins to count again
        client.receive_data(encode_event(EVENT, [small, small]))
        assert len(list(client.messages())) == 3


@pytest.mark.parametrize("role", Role)
def test_frames_of_an_event_that_are_empty_and_unknown_are_counted_too(role: Role) -> None:
    receiver = opened(role, SMALL)
    empty = HEADER.pack(0, 0x2E, 0, 0, 0, 0, 0, 0)
    receiver.receive_data(empty * (SMALL.event_bytes // HEADER.size))
    assert list(receiver.messages()) == []
    receiver.receive_data(empty)
    with pytest.raises(RemoteProtocolError, match="an event of more than 131072 bytes"):
        list(receiver.messages())


def test_an_unknown_frame_is_skipped_without_unpacking_it() -> None:
    client = opened(Role.CLIENT)
    client.receive_data(HEADER.pack(9, 0x7F, 1, 0, 0, 0, 0, 0) + b"not zstd!")
    assert client.next_message() == m.Unknown(type=0x7F, payload_bytes=9)


# ----------------------------------------------------- order and permission


def test_a_peer_that_is_no_gcspy_is_told_by_its_first_wrong_byte() -> None:
    for first in (b"GET / HTTP/1.1\r\n", b"GCspy\n\x1a", b"\0", b"gcspy\r\n\x1a"):
        connection = Connection(Role.SERVER)
        connection.receive_data(first)
        with pytest.raises(RemoteProtocolError, match="not a GCspy peer: it began with"):
            connection.next_message()


@pytest.mark.parametrize(
    ("theirs", "version"),
    [
        ((1, 1), 1),
        ((1, 9), 2),
        ((0, 1), 1),
        ((2, 2), 2),
        ((2, 9), 2),
        ((3, 9), None),
        ((0, 0), None),
        ((9, 1), None),
    ],
)
def test_the_highest_version_that_both_speak_is_used(
    theirs: tuple[int, int], version: int | None
) -> None:
    connection = Connection(Role.CLIENT)
    assert connection.version is None
    connection.receive_data(MAGIC + struct.pack("<HH", *theirs))
    if version is None:
        with pytest.raises(VersionMismatch) as caught:
            connection.next_message()
        assert (caught.value.theirs, caught.value.ours) == (theirs, (1, 2))
        with pytest.raises(VersionMismatch):
            connection.receive_eof()
    else:
        assert connection.next_message() is None
        assert connection.version == version
    assert connection.their_versions == theirs


FROM_CLIENT = {t for t in FrameType if t >= FrameType.SET_FILTERS} - {
    FrameType.SETTINGS,
    FrameType.ANSWER,
}
FROM_BOTH = {FrameType.ERROR, FrameType.GOODBYE, FrameType.PING, FrameType.PONG}
GREETINGS = {FrameType.HELLO, FrameType.WELCOME}
HANDSHAKE = {FrameType.CHALLENGE, FrameType.PROOF}
FROM_SERVER = set(FrameType) - FROM_CLIENT - FROM_BOTH - GREETINGS - HANDSHAKE

MAY_SEND = {
    (Role.CLIENT, "greeting"): {FrameType.HELLO, FrameType.GOODBYE},
    (Role.SERVER, "greeting"): {FrameType.WELCOME, FrameType.ERROR},
    (Role.CLIENT, "open"): FROM_CLIENT | FROM_BOTH,
    (Role.SERVER, "open"): FROM_SERVER | FROM_BOTH,
    (Role.CLIENT, "closed"): set(),
    (Role.SERVER, "closed"): set(),
}
"""The table of SPEC.md sections 2 to 4, written a second time."""


def in_state(role: Role, state: str) -> Connection:
    connection = Connection(role)
    if state != "greeting":
        connection.send(HELLO if role is Role.CLIENT else WELCOME)
    if state == "closed":
        connection.send(m.Goodbye())
    assert connection.our_state.value == state
    return connection


@pytest.mark.parametrize(("role", "state"), MAY_SEND)
@examples(0.25)
@given(data=st.data())
def test_an_end_may_send_what_the_table_says_and_nothing_else(
    role: Role, state: str, data: st.DataObject
) -> None:
    for frame_type in set(FrameType) - {FrameType.EVENT}:
        connection = in_state(role, state)
        message = data.draw(BY_TYPE[frame_type])
        if frame_type in MAY_SEND[role, state] and not is_event_frame(frame_type):
            assert connection.send(message) == encode(message).data
        else:
            with pytest.raises(LocalProtocolError):
                connection.send(message)
    connection = in_state(role, state)
    if FrameType.EVENT in MAY_SEND[role, state]:
        assert connection.send_event(b"event") == b"event"
    else:
        with pytest.raises(LocalProtocolError, match="may not send EVENT"):
            connection.send_event(b"event")


@pytest.mark.parametrize(("role", "state"), [key for key in MAY_SEND if key[1] != "closed"])
def test_an_end_believes_what_the_table_says_and_nothing_else(role: Role, state: str) -> None:
    """Judged by the header alone: not a byte of a payload is waited for."""
    reader = Role.SERVER if role is Role.CLIENT else Role.CLIENT
    for number in range(256):
        connection = Connection(reader)
        greeting = (
            encode(HELLO if role is Role.CLIENT else WELCOME).data if state == "open" else b""
        )
        connection.receive_data(preamble() + greeting)
        list(connection.messages())
        connection.receive_data(HEADER.pack(10, number, 0, 0, 0, 0, 0, 0))
        known = number in set(FrameType)
        if number in MAY_SEND[role, state] or (state == "open" and not known):
            assert connection.next_message() is None
        else:
            with pytest.raises(RemoteProtocolError, match=r"may not send|before the greeting"):
                connection.next_message()


def test_frames_of_an_event_are_not_sent_singly() -> None:
    server = in_state(Role.SERVER, "open")
    with pytest.raises(LocalProtocolError, match="part of an event"):
        server.send(info())
    with pytest.raises(LocalProtocolError, match="never sent alone"):
        server.send(EVENT)
    with pytest.raises(LocalProtocolError, match="never sent alone"):
        server.send(m.Unknown(type=0x7F, payload_bytes=0))


def test_a_goodbye_or_a_fatal_error_closes_and_what_follows_is_not_looked_at() -> None:
    for last in (
        m.Goodbye(reason="bye"),
        m.Error(code=m.ErrorCode.TOO_SLOW, message="m", fatal=True),
    ):
        client, server = opened(Role.CLIENT), in_state(Role.SERVER, "open")
        data = server.send(last)
        assert server.our_state is ConnectionState.CLOSED
        client.receive_data(data + b"anything")
        assert list(client.messages()) == [last]
        assert client.their_state is ConnectionState.CLOSED
        client.receive_data(b"more")
        assert client.next_message() is None
        client.receive_eof()
    client = opened(Role.CLIENT)
    client.receive_data(encode(m.Error(code=m.ErrorCode.BAD_REQUEST, message="m")).data)
    assert len(list(client.messages())) == 1
    assert client.their_state is ConnectionState.OPEN


def test_a_server_may_refuse_before_it_welcomes() -> None:
    refusal = m.Error(code=m.ErrorCode.TOKEN, message="no token", fatal=True)
    client = Connection(Role.CLIENT)
    client.receive_data(preamble() + Connection(Role.SERVER).send(refusal))
    assert list(client.messages()) == [refusal]
    client.receive_eof()


def test_what_came_before_an_error_is_taken_first_and_the_error_stays() -> None:
    client = opened(Role.CLIENT)
    client.receive_data(
        encode(m.Ping(number=1)).data + encode(m.Ping(number=2)).data + pack_frame(0x41, b"").data
    )
    assert client.next_message() == m.Ping(number=1)
    assert client.next_message() == m.Ping(number=2)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match="may not send PAUSE"):
            client.next_message()
    assert client.their_state is ConnectionState.BROKEN
    client.receive_data(bytes(100_000))
    assert len(client._buffer) == 0
    with pytest.raises(RemoteProtocolError, match="may not send PAUSE"):
        client.receive_eof()


def test_whole_frames_that_nobody_took_yet_are_no_middle_of_a_frame() -> None:
    client = opened(Role.CLIENT)
    client.receive_data(encode_event(EVENT, [encode(info())]) + encode(m.Goodbye()).data)
    client.receive_eof()
    assert len(list(client.messages())) == 3
    client = opened(Role.CLIENT)
    client.receive_data(encode(m.Ping(number=1)).data + b"rest")
    with pytest.raises(RemoteProtocolError, match="in the middle of a frame: 4 bytes"):
        client.receive_eof()
    assert client.next_message() == m.Ping(number=1)
    with pytest.raises(RemoteProtocolError, match="in the middle of a frame"):
        client.next_message()


def test_an_error_tells_its_place_in_the_stream() -> None:
    client = Connection(Role.CLIENT)
    good = preamble() + encode(WELCOME).data + encode(m.Ping(number=1)).data * 100_000
    client.receive_data(good + pack_frame(FrameType.PING, b"\xc1").data)
    with pytest.raises(RemoteProtocolError) as caught:
        list(client.messages())
    assert caught.value.offset == len(good)


def test_messages_do_not_change_when_more_is_read() -> None:
    """Arrays are views of received bytes: of bytes that nothing is written to afterwards."""
    key = m.StreamKey(space=1, stream=0, sequence=1, time_nanos=1, event=0, occurrence=1,
                      values=np.arange(9, dtype="<i4"))  # fmt: skip
    client = opened(Role.CLIENT)
    client.receive_data(encode_event(EVENT, [encode(key)]))
    got = client.next_message()
    assert got is not None
    client.receive_data(encode_event(EVENT, [encode(info("x" * 100))]) * 9)
    list(client.messages())
    assert same(got, key)
    assert isinstance(got, m.StreamKey)
    assert not got.values.flags.writeable
