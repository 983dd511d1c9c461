"""A client that breaks a rule learns which one, whatever way it connected and whatever it sends afterwards."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
import trio
import trio.testing
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.address import TcpAddress, UnixAddress, parse_address
from gcspy_protocol.codec import encode
from gcspy_protocol.frames.frame import pack_frame
from gcspy_protocol.handshake.credentials import Credentials, channel_of
from gcspy_protocol.messages import ErrorCode, FrameType, Message
from gcspy_protocol.model import Role

from gcspy_server.api import ServedSession
from tests.server.conftest import EndLog
from tests.server.target import Target
from tests.server.test_session_clock import Peer, started

Serve = Callable[..., ServedSession]

BREACHES = {
    "a second HELLO": (encode(m.Hello(client="again")).data, "HELLO"),
    "an event of a client's": (pack_frame(FrameType.EVENT, bytes(40)).data, "EVENT"),
    "a frame of an event": (pack_frame(FrameType.SUMMARY, bytes(8)).data, "SUMMARY"),
    "a server's message": (encode(m.EpochEnd(epoch=1)).data, "EPOCH_END"),
}


def dial(address: str) -> socket.socket:
    place = parse_address(address)
    if isinstance(place, UnixAddress):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(60)
        sock.connect(place.path)
        return sock
    assert isinstance(place, TcpAddress)
    return socket.create_connection((place.host, place.port), 60)


def last_message(sock: socket.socket, connection: Connection) -> Message:
    """Return the server's last message; a reset of the connection fails the test."""
    while data := sock.recv(65536):
        connection.receive_data(data)
    return list(connection.messages())[-1]


@pytest.mark.parametrize("behind", [0, 1 << 18], ids=["nothing behind", "256 kB unread behind"])
@pytest.mark.parametrize("at_once", [True, False], ids=["with the greeting", "later"])
@pytest.mark.parametrize("breach", BREACHES)
@pytest.mark.parametrize("place", ["unix", "127.0.0.1:0"])
def test_the_reason_arrives(
    serve: Serve, ended: EndLog, place: str, breach: str, at_once: bool, behind: int
) -> None:
    target = Target()
    where = () if place == "unix" else (place,)
    address = serve(target, *where, token="sesame").addresses[0]
    bad, name = BREACHES[breach]
    credentials = Credentials("sesame", channel_of(parse_address(address)))
    connection = Connection(Role.CLIENT, credentials=credentials)
    with dial(address) as sock:
        hello = credentials.greeting(m.Hello(client="x"))
        greeting = connection.preamble() + connection.send(hello)
        if place != "unix":
            sock.sendall(greeting)
            while not any(isinstance(message, m.Proof) for message in connection.messages()):
                data = sock.recv(65536)
                assert data
                connection.receive_data(data)
            greeting = connection.prove()
        if at_once:
            sock.sendall(greeting + bad + bytes(behind))
        else:
            sock.sendall(greeting)
            while not any(isinstance(message, m.Counters) for message in connection.messages()):
                connection.receive_data(sock.recv(65536))
            sock.sendall(bad + bytes(behind))
        error = last_message(sock, connection)
    assert isinstance(error, m.Error)
    assert (error.code, error.fatal) == (ErrorCode.PROTOCOL, True)
    assert f"may not send {name}" in error.message
    assert "broke the protocol" in ended.abnormal()[0]


@pytest.mark.trio
async def test_the_frame_that_is_being_sent_is_finished_before_the_reason(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    """The peer takes byte by byte, and breaks the rule after the first bytes of the welcome."""
    session = await started(nursery, Target())
    stream, theirs = trio.testing.lockstep_stream_pair()
    peer = Peer(session, nursery, over=(stream, theirs))
    connection = peer.connection
    nursery.start_soon(
        stream.send_all, connection.preamble() + connection.send(m.Hello(client="x"))
    )
    received = b""
    while len(received) < 12 + 10:
        received += await stream.receive_some(1)
    nursery.start_soon(stream.send_all, encode(m.Hello(client="again")).data)
    await trio.testing.wait_all_tasks_blocked()
    while data := await stream.receive_some(100):
        received += data
    connection.receive_data(received)
    messages = list(connection.messages())
    assert isinstance(messages[0], m.Welcome)
    assert isinstance(messages[-1], m.Error)
    assert "may not send HELLO" in messages[-1].message


@pytest.mark.trio
async def test_a_peer_that_does_not_read_its_reason_is_gone_for_all_that(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    session = await started(nursery, Target())
    stream, theirs = trio.testing.lockstep_stream_pair()
    peer = Peer(session, nursery, over=(stream, theirs))
    connection = peer.connection
    nursery.start_soon(
        stream.send_all,
        connection.preamble()
        + connection.send(m.Hello(client="x"))
        + BREACHES["a second HELLO"][0],
    )
    received = b""
    while len(received) < 12 + 10:
        received += await stream.receive_some(1)
    before = trio.current_time()
    await peer.gone.wait()
    assert trio.current_time() - before <= 2.0


@pytest.mark.trio
async def test_a_rule_that_is_broken_after_the_goodbye_ends_nothing_else(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    session = await started(nursery, Target())
    stream, theirs = trio.testing.lockstep_stream_pair()
    peer = Peer(session, nursery, over=(stream, theirs))
    connection = peer.connection
    nursery.start_soon(
        stream.send_all, connection.preamble() + connection.send(m.Hello(client="x"))
    )
    await stream.receive_some(12)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(session.close, "over")
    await trio.testing.wait_all_tasks_blocked()  # the goodbye is queued: nothing may follow it
    nursery.start_soon(
        stream.send_all, encode(m.Ping(number=1)).data + BREACHES["a second HELLO"][0]
    )
    await peer.gone.wait()
    assert "broke the protocol" in ended.abnormal()[0]
    assert not any("internal" in line for line in ended.abnormal())
