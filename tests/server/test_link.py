"""The blocking link: what it says when a server is not there, ends, or comes back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.errors import LinkError, Refused, RemoteProtocolError, VersionMismatch
from gcspy_protocol.model import Mode, PauseActsOn, Role

from gcspy.cli import main
from gcspy.connection.link import Link, connect
from gcspy_server.api import ServedSession
from tests.server.target import Target

Serve = Callable[..., ServedSession]


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
        pytest.raises(LinkError, match="closed the connection before its greeting"),
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


def dismissal() -> bytes:
    """A welcome, the end of the bootstrap, and an error that ends the connection."""
    server = Connection(Role.SERVER)
    greeting = m.Welcome(
        server="S",
        session="s",
        client_id=1,
        controller=False,
        mode=Mode.PASSIVE,
        pause_acts_on=PauseActsOn.SAMPLING,
        events=(),
    )
    why = m.Error(
        code=m.ErrorCode.PROTOCOL, message="byte 7 is wrong", remedy="mend it", fatal=True
    )
    return server.preamble() + server.send(greeting) + server.send(why)


def test_a_dismissal_is_a_message_and_then_an_error(socket_directory: Path) -> None:
    with (
        FakeServer(socket_directory / "x", dismissal()) as fake,
        connect(fake.address) as link,
    ):
        assert isinstance(link.receive(), m.Welcome)
        assert isinstance(link.receive(), m.Error)
        for _ in range(2):
            with pytest.raises(
                Refused, match="ended the connection: byte 7 is wrong: mend it"
            ) as e:
                link.receive()
            assert e.value.code == "protocol"


def ping_for_ever(link: Link) -> None:
    while True:
        link.send(m.Ping(number=1))


def test_who_sends_to_a_server_that_has_dismissed_it_learns_why(socket_directory: Path) -> None:
    with (
        FakeServer(socket_directory / "x", dismissal()) as fake,
        connect(fake.address) as link,
        pytest.raises(Refused, match="byte 7 is wrong"),
    ):
        ping_for_ever(link)


def test_the_text_client_prints_why_it_was_dismissed(
    socket_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer(socket_directory / "x", dismissal()) as fake:
        assert main(["tail", fake.address]) == 6
    assert "ended the connection: byte 7 is wrong: mend it" in capsys.readouterr().err
