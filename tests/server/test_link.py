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

from gcspy.link import connect
from gcspy_server.api import Listening
from tests.server.target import Target

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
        self._thread.join(60)
        self._listening.close()
        self._path.unlink()


def test_nobody_listens(socket_directory: Path) -> None:
    with pytest.raises(LinkError, match=r"is the server running\?"):
        connect(f"unix:{socket_directory}/x.sock")


def test_a_tunnel_to_nobody_is_no_connection(socket_directory: Path) -> None:
    with (
        FakeServer(socket_directory / "x", b"") as fake,
        pytest.raises(LinkError, match="closed the connection before it greeted"),
    ):
        connect(fake.address)


def test_a_server_that_is_none(socket_directory: Path) -> None:
    with (
        FakeServer(socket_directory / "x", b"220 mail.example ESMTP\r\n") as fake,
        pytest.raises(RemoteProtocolError, match="not a GCspy peer"),
    ):
        connect(fake.address)


def test_a_server_of_another_version(socket_directory: Path) -> None:
    with (
        FakeServer(
            socket_directory / "x", Connection(Role.SERVER, versions=(5, 6)).preamble()
        ) as fake,
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
