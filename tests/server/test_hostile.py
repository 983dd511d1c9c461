"""Clients that stall, lie or vanish: nobody else notices, and the log says in one line what happened."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.address import UnixAddress, parse_address
from gcspy_protocol.errors import VersionMismatch
from gcspy_protocol.frame import HEADER
from gcspy_protocol.messages import ErrorCode, FrameType
from gcspy_protocol.model import Role

from gcspy.link import connect
from gcspy_server.api import Listening, SessionOptions
from tests.server.conftest import EndLog
from tests.server.target import START, Target
from tests.server.viewer import Viewer

Serve = Callable[..., Listening]
Join = Callable[..., Viewer]


@contextmanager
def raw(address: str) -> Iterator[socket.socket]:
    """A bare socket to the server."""
    place = parse_address(address)
    assert isinstance(place, UnixAddress)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(place.path)
        yield sock


def read_to_end(sock: socket.socket, connection: Connection) -> list[m.Message]:
    """Everything that the server still says before it closes."""
    try:
        while data := sock.recv(65536):
            connection.receive_data(data)
    except ConnectionResetError:
        pass  # it closed while bytes of ours were unread: what it said is here all the same
    return list(connection.messages())


def notices_nothing(target: Target, witness: Viewer, events: int = 5) -> None:
    """The target runs and the witness gets every event, complete."""
    for _ in range(events):
        before = target.server.counts()[START]
        target.event(START)
        witness.event()
        assert witness.state.last_event is not None
        assert witness.state.last_event.occurrence == before + 1
        witness.assert_has(target.heap)
    assert witness.state.missed_total == 0


def greeted(sock: socket.socket) -> Connection:
    """Greet properly, so that what follows comes from a client that was let in."""
    connection = Connection(Role.CLIENT)
    sock.sendall(connection.preamble() + connection.send(m.Hello(client="stranger")))
    while not any(isinstance(message, m.Counters) for message in connection.messages()):
        connection.receive_data(sock.recv(65536))
    return connection


def test_a_viewer_that_stops_reading_is_ended_after_a_while(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target(tiles=200_000)
    options = SessionOptions(stall_secs=1.0, queued_events=3)
    address = serve(target, options=options).addresses[0]
    witness = join(address)
    with raw(address) as stalled:
        greeted(stalled)
        notices_nothing(target, witness, events=10)
        # It is gone for the others when they are told so.
        witness.until(lambda: len(witness.state.clients.clients) == 1)
        notices_nothing(target, witness)
    (line,) = ended.abnormal()
    assert "'stranger'" in line
    assert "stalled: took nothing for 1 s" in line
    assert "unread" in line


def test_garbage_instead_of_a_greeting(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target).addresses[0]
    witness = join(address)
    with raw(address) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        (error,) = read_to_end(sock, Connection(Role.CLIENT))
        assert isinstance(error, m.Error)
        assert (error.code, error.fatal) == (ErrorCode.PROTOCOL, True)
    notices_nothing(target, witness)
    (line,) = ended.abnormal()
    assert "not a GCspy peer" in line
    assert "b'GET / HT'" in line


def test_garbage_after_a_greeting(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target).addresses[0]
    witness = join(address)
    with raw(address) as sock:
        connection = greeted(sock)
        sock.sendall(bytes(range(256)) * 4)
        assert any(isinstance(message, m.Error) for message in read_to_end(sock, connection))
    witness.until(lambda: len(witness.state.clients.clients) == 1)
    notices_nothing(target, witness)
    (line,) = ended.abnormal()
    assert "'stranger'" in line
    assert "broke the protocol at byte" in line


def test_a_claim_of_a_frame_of_four_gigabytes(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target).addresses[0]
    witness = join(address)
    with raw(address) as sock:
        connection = greeted(sock)
        sock.sendall(HEADER.pack(0xFFFFFFFF, FrameType.SUBSCRIBE, 0, 0, 0, 0, 0, 0))
        assert any(isinstance(message, m.Error) for message in read_to_end(sock, connection))
    notices_nothing(target, witness)
    (line,) = ended.abnormal()
    assert "claims 4294967295 bytes, over the limit of 65536" in line


def test_a_client_that_is_cut_in_the_middle_of_a_frame(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target).addresses[0]
    witness = join(address)
    with raw(address) as sock:
        greeted(sock)
        sock.sendall(HEADER.pack(1000, FrameType.SUBSCRIBE, 0, 0, 0, 0, 0, 0) + b"x" * 100)
    witness.until(
        lambda: len(witness.state.clients.clients) == 1 and witness.state.clients.clients[0].id == 1
    )
    witness.sync()
    notices_nothing(target, witness)
    (line,) = ended.abnormal()
    assert "in the middle of a frame: 128 bytes of it came" in line


def test_a_peer_that_never_greets(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target, options=SessionOptions(handshake_secs=1.0)).addresses[0]
    witness = join(address)
    with raw(address) as sock:
        read_to_end(sock, Connection(Role.CLIENT))
    notices_nothing(target, witness)
    (line,) = ended.abnormal()
    assert "did not greet within 1 s" in line


def test_a_peer_of_another_version_is_told_which_would_work(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target).addresses[0]
    witness = join(address)
    future = Connection(Role.CLIENT, versions=(7, 9))
    with raw(address) as sock:
        sock.sendall(future.preamble())
        with pytest.raises(VersionMismatch, match="versions 1 to 1, this end 7 to 9"):
            read_to_end(sock, future)
    notices_nothing(target, witness)
    (line,) = ended.abnormal()
    assert "version mismatch" in line
    assert "7 to 9" in line


def flood(sock: socket.socket, data: bytes) -> None:
    while True:
        sock.sendall(data)


def test_a_client_that_floods_the_server_and_reads_nothing(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target, options=SessionOptions(queued_messages=64)).addresses[0]
    witness = join(address)
    with raw(address) as sock:
        connection = greeted(sock)
        refused = connection.send(m.Pause())  # each one costs an error message that may not be dropped
        with pytest.raises(OSError, match=r"(?i)pipe|reset"):
            flood(sock, refused * 1000)
    notices_nothing(target, witness)
    witness.until(lambda: len(witness.state.clients.clients) == 1)
    (line,) = ended.abnormal()
    assert "too slow" in line
    assert "64 messages unread" in line


def test_many_bad_clients_at_once(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target).addresses[0]
    witness = join(address)
    for number in range(20):
        with raw(address) as sock:
            if number % 2:
                greeted(sock)
            sock.sendall(struct.pack("<I", number) * 16)
    notices_nothing(target, witness, events=10)
    assert len(ended.abnormal(20)) == 20


def test_a_peer_that_only_looks_whether_somebody_listens_is_no_trouble(
    serve: Serve, join: Join, ended: EndLog
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    witness = join(address)
    with raw(address):
        pass
    ended.normal()
    notices_nothing(target, witness)
    assert ended.abnormal(0) == []


_VIEWER = """
import sys
from gcspy.link import connect
link = connect(sys.argv[1], client="doomed")
print("here", flush=True)
for message in link:
    pass
"""


def test_a_viewer_process_that_is_killed(serve: Serve, join: Join) -> None:
    target = Target(tiles=200_000)
    address = serve(target).addresses[0]
    witness = join(address)
    process = subprocess.Popen([sys.executable, "-c", _VIEWER, address], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        notices_nothing(target, witness)
    finally:
        process.kill()
        process.communicate()
    notices_nothing(target, witness)
    witness.until(lambda: len(witness.state.clients.clients) == 1)


def test_a_client_whose_greeting_is_cut_up_is_welcome(serve: Serve) -> None:
    address = serve(Target()).addresses[0]
    connection = Connection(Role.CLIENT)
    with raw(address) as sock:
        for byte in connection.preamble() + connection.send(m.Hello(client="slow typist")):
            sock.sendall(bytes([byte]))
        while (message := connection.next_message()) is None:
            connection.receive_data(sock.recv(65536))
        assert isinstance(message, m.Welcome)
        sock.sendall(connection.send(m.Goodbye()))
        read_to_end(sock, connection)
    connect(address).close()
