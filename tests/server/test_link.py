"""The blocking link: what it says when a server is not there, ends, or comes back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.errors import LinkError, RemoteProtocolError, VersionMismatch
from gcspy_protocol.model import Role

from gcspy.link import connect, follow
from gcspy_server.api import Listening
from tests.server.target import START, Target

Serve = Callable[..., Listening]


class FakeServer:
    """Accepts once, says something, and closes."""

    def __init__(self, path: Path, says: bytes) -> None:
        self.address = f"unix:{path}"
        self._path = path
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._thread = threading.Thread(target=self._run, args=(says,))

    def _run(self, says: bytes) -> None:
        sock, _ = self._listening.accept()
        with sock:
            sock.recv(4096)
            sock.sendall(says)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(10)
        self._listening.close()
        self._path.unlink()


def test_nobody_listens(socket_directory: Path) -> None:
    with pytest.raises(LinkError, match=r"is the server running\?"):
        connect(f"unix:{socket_directory}/x.sock")


def test_a_server_that_is_none(socket_directory: Path) -> None:
    with (
        FakeServer(socket_directory / "x", b"220 mail.example ESMTP\r\n") as fake,
        pytest.raises(RemoteProtocolError, match="not a GCspy peer"),
    ):
        connect(fake.address)


def test_a_server_of_another_version(socket_directory: Path) -> None:
    with (
        FakeServer(socket_directory / "x", Connection(Role.SERVER, versions=(5, 6)).preamble()) as fake,
        pytest.raises(VersionMismatch, match="versions 5 to 6"),
    ):
        connect(fake.address)


def test_a_server_that_vanishes_during_the_greeting(socket_directory: Path) -> None:
    with (
        FakeServer(socket_directory / "x", b"GCspy") as fake,
        pytest.raises(RemoteProtocolError, match="in the middle of a frame"),
    ):
        connect(fake.address)


def test_a_server_that_says_nothing(socket_directory: Path) -> None:
    path = socket_directory / "x"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        with pytest.raises(LinkError, match="does not answer"):
            connect(f"unix:{path}", timeout_secs=0.1)
    path.unlink()


def test_waiting_for_a_message_ends_in_time(serve: Serve) -> None:
    with connect(serve(Target()).addresses[0]) as link:
        while link.receive(0.1) is not None:
            pass
        assert not link.closed


def test_the_messages_end_with_the_servers_goodbye(serve: Serve) -> None:
    listening = serve(Target())
    with connect(listening.addresses[0]) as link:
        listening.close()
        last = list(link)[-1]
        assert isinstance(last, m.Goodbye)
        assert link.closed
        assert link.receive(0) is None


class Relay:
    """Stands between a client and a server, and can be cut."""

    def __init__(self, path: Path, server: str) -> None:
        self.address = f"unix:{path}"
        self._path, self._server = path, server.removeprefix("unix:")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._server)
            self._pairs.append((near, far))
            self._start(self._pump, near, far)
            self._start(self._pump, far, near)

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            return

    def cut(self) -> None:
        for pair in self._pairs:
            for sock in pair:
                sock.shutdown(socket.SHUT_RDWR)
                sock.close()
        self._pairs.clear()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)
        self._path.unlink()


def test_following_goes_on_over_a_lost_connection(serve: Serve, socket_directory: Path) -> None:
    target = Target()
    relay = Relay(socket_directory / "relay", serve(target).addresses[0])
    messages = follow(relay.address, within_secs=10)
    first = next(message for message in messages if isinstance(message, m.Welcome))
    target.event(START)
    event = next(message for message in messages if isinstance(message, m.Event))
    relay.cut()
    again = next(message for message in messages if isinstance(message, m.Welcome))
    assert again.session == first.session
    assert again.client_id != first.client_id
    repeated = next(message for message in messages if isinstance(message, m.Event))
    assert (repeated.occurrence, repeated.cached) == (event.occurrence, True)
    relay.close()
    with pytest.raises(LinkError, match="cannot connect"):
        list(follow(relay.address, within_secs=0))
