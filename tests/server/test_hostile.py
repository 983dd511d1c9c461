"""Clients that stall, lie or vanish: no other client notices, and the log says in one line what happened."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.address import TcpAddress, UnixAddress, parse_address
from gcspy_protocol.errors import VersionMismatch
from gcspy_protocol.frames.frame import HEADER
from gcspy_protocol.messages import ErrorCode, FrameType
from gcspy_protocol.model import Role

from gcspy.connection.link import connect
from gcspy_server.api import ServedSession, SessionOptions
from tests.server.conftest import EndLog
from tests.server.target import START, Target
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]


@contextmanager
def raw(address: str) -> Iterator[socket.socket]:
    """A bare socket to the server."""
    place = parse_address(address)
    assert isinstance(place, UnixAddress)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_SECS)
        sock.connect(place.path)
        yield sock


@contextmanager
def over_tls(address: str) -> Iterator[socket.socket]:
    """A socket to the server's TLS port, with nothing said yet."""
    place = parse_address(address)
    assert isinstance(place, TcpAddress)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((place.host, place.port), 10) as bare,
        trusting.wrap_socket(bare) as sock,
    ):
        yield sock


def read_to_end(sock: socket.socket, connection: Connection) -> list[m.Message]:
    """Everything that the server still says before it closes."""
    try:
        while data := sock.recv(65536):
            connection.receive_data(data)
    except ConnectionResetError:
        pass  # it closed while bytes of ours were unread: what it said is here all the same
    return list(connection.messages())


def greeted(sock: socket.socket, *, token: str = "") -> Connection:
    """Greet properly, so that what follows comes from a client that was let in."""
    connection = Connection(Role.CLIENT)
    sock.sendall(connection.preamble() + connection.send(m.Hello(client="stranger", token=token)))
    while not any(isinstance(message, m.Counters) for message in connection.messages()):
        connection.receive_data(sock.recv(65536))
    return connection


@dataclass
class Bystander:
    """A target, and a witness that watches it while another client misbehaves.

    Attributes:
        target: The target.
        address: Where it is served.
        witness: Who sees every event.
    """

    target: Target
    address: str
    witness: Viewer

    def notices_nothing(self, events: int = 5) -> None:
        """The target runs and the witness gets every event, complete."""
        for _ in range(events):
            before = self.target.server.counts()[START]
            self.target.event(START)
            self.witness.event()
            assert self.witness.state.last_event is not None
            assert self.witness.state.last_event.occurrence == before + 1
            self.witness.assert_has(self.target.heap)
        assert self.witness.state.missed_total == 0

    def alone(self) -> None:
        """Wait until all others are gone, by the witness's list of participants."""
        self.witness.until(
            lambda: [one.id for one in self.witness.state.clients.clients] == [self.witness.number]
        )


@pytest.fixture
def beside(serve: Serve, join: Join) -> Callable[..., Bystander]:
    """Serve a target and watch it."""

    def start(*, tiles: int = 64, options: SessionOptions | None = None) -> Bystander:
        target = Target(tiles=tiles)
        address = serve(target, options=options).addresses[0]
        return Bystander(target, address, join(address))

    return start


Beside = Callable[..., Bystander]


def an_error(messages: list[m.Message]) -> bool:
    return any(isinstance(message, m.Error) for message in messages)


def test_a_viewer_that_stops_reading_is_ended_after_a_while(beside: Beside, ended: EndLog) -> None:
    watched = beside(tiles=200_000, options=SessionOptions(stall_secs=1.0, queued_events=3))
    with raw(watched.address) as stalled:
        greeted(stalled)
        watched.witness.until(lambda: len(watched.witness.state.clients.clients) == 2)
        watched.notices_nothing(events=10)
        watched.alone()  # it is gone when the others receive the new list
        watched.notices_nothing()
    ended_with(ended, "'stranger'", "stalled: read nothing for 1 s", "unread")


def http(sock: socket.socket) -> None:
    sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    (error,) = read_to_end(sock, Connection(Role.CLIENT))
    assert isinstance(error, m.Error)
    assert (error.code, error.fatal) == (ErrorCode.PROTOCOL, True)


def garbage_after_a_greeting(sock: socket.socket) -> None:
    connection = greeted(sock)
    sock.sendall(bytes(range(256)) * 4)
    assert an_error(read_to_end(sock, connection))


def a_frame_of_four_gigabytes(sock: socket.socket) -> None:
    connection = greeted(sock)
    sock.sendall(HEADER.pack(0xFFFFFFFF, FrameType.SUBSCRIBE, 0, 0, 0, 0, 0, 0))
    assert an_error(read_to_end(sock, connection))


def a_cut_frame(sock: socket.socket) -> None:
    greeted(sock)
    sock.sendall(HEADER.pack(1000, FrameType.SUBSCRIBE, 0, 0, 0, 0, 0, 0) + b"x" * 100)


def no_greeting(sock: socket.socket) -> None:
    read_to_end(sock, Connection(Role.CLIENT))


def another_version(sock: socket.socket) -> None:
    future = Connection(Role.CLIENT, versions=(7, 9))
    sock.sendall(future.preamble())
    with pytest.raises(VersionMismatch, match="versions 1 to 2, this end 7 to 9"):
        read_to_end(sock, future)


def a_flood(sock: socket.socket) -> None:
    connection = greeted(sock)
    refused = connection.send(m.Pause())  # each one costs an error message that may not be dropped
    with pytest.raises(OSError, match=r"(?i)pipe|reset"):
        flood(sock, refused * 1000)


@pytest.mark.parametrize(
    ("misbehave", "words", "options"),
    [
        (http, ("not a GCspy peer", "b'GET / HT'"), None),
        (garbage_after_a_greeting, ("'stranger'", "broke the protocol at byte"), None),
        (a_frame_of_four_gigabytes, ("claims 4294967295 bytes, over the limit of 65536",), None),
        (a_cut_frame, ("in the middle of a frame: 128 bytes of it came",), None),
        (no_greeting, ("did not greet within 1 s",), SessionOptions(handshake_secs=1.0)),
        (another_version, ("version mismatch", "7 to 9"), None),
        (a_flood, ("too slow", "64 messages unread"), SessionOptions(queued_messages=64)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_who_misbehaves_is_ended_with_one_line_and_nobody_else_notices(
    beside: Beside,
    ended: EndLog,
    misbehave: Callable[[socket.socket], None],
    words: tuple[str, ...],
    options: SessionOptions | None,
) -> None:
    watched = beside(options=options)
    with raw(watched.address) as sock:
        misbehave(sock)
    watched.alone()
    watched.witness.sync()
    watched.notices_nothing()
    ended_with(ended, *words)


def flood(sock: socket.socket, data: bytes) -> None:
    while True:
        sock.sendall(data)


def ended_with(ended: EndLog, *words: str) -> None:
    """The one line in the log says all of this."""
    (line,) = ended.abnormal()
    assert all(word in line for word in words), line


def test_many_bad_clients_at_once(beside: Beside, ended: EndLog) -> None:
    watched = beside()
    for number in range(20):
        with raw(watched.address) as sock:
            if number % 2:
                greeted(sock)
            sock.sendall(struct.pack("<I", number) * 16)
    watched.notices_nothing(events=10)
    assert len(ended.abnormal(20)) == 20


def test_a_peer_that_only_looks_whether_somebody_listens_is_no_trouble(
    beside: Beside, ended: EndLog
) -> None:
    watched = beside()
    with raw(watched.address):
        pass
    ended.normal()
    watched.notices_nothing()
    assert ended.abnormal(0) == []


_VIEWER = """
import sys
from gcspy.connection.link import connect
link = connect(sys.argv[1], client="doomed")
print("here", flush=True)
for message in link:
    pass
"""


def test_a_viewer_process_that_is_killed(beside: Beside) -> None:
    watched = beside(tiles=200_000)
    process = subprocess.Popen(
        [sys.executable, "-c", _VIEWER, watched.address], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        watched.notices_nothing()
    finally:
        process.kill()
        process.communicate()
    watched.notices_nothing()
    watched.alone()


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
