"""The token goes to nobody: a listener at the address, or a relay in between, learns nothing of it, and is refused with the reason."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode
from gcspy_protocol.connection import preamble
from gcspy_protocol.errors import CommandError, LinkError, Refused, VersionMismatch

from gcspy.cli import main
from gcspy.connection.link import connect
from gcspy.connection.reconnecting_link import ReconnectingLink
from gcspy.exit_codes import ExitCode
from gcspy_server.api import ServedSession
from tests.protocol.exchange import TOKEN, WELCOME, exchange
from tests.server.conftest import EndLog
from tests.server.relay import Relay, dial
from tests.server.target import START, Target
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]
Answer = Callable[[socket.socket, bytes], None]

_KEY = hashlib.sha256(TOKEN.encode())
SECRETS = TOKEN.encode(), _KEY.digest(), _KEY.hexdigest().encode()


class Eavesdropper:
    """Listens where a server should, answers as it likes, and keeps all that it hears.

    Args:
        listening: Where.
        answer: Given each connection and the first bytes that came.
    """

    def __init__(self, listening: socket.socket, answer: Answer) -> None:
        self.heard = b""
        self._listening, self._answer = listening, answer
        self.place = listening.getsockname()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Eavesdropper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._listening.close()

    @property
    def port(self) -> int:
        return int(self.place[1])

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            with sock, suppress(OSError):
                said = sock.recv(65536)
                self.heard += said
                self._answer(sock, said)
                while data := sock.recv(65536):
                    self.heard += data

    def learned_nothing(self) -> None:
        """Neither the token nor its hash came by, but a greeting did."""
        assert b"client" in self.heard
        assert not any(secret in self.heard for secret in SECRETS)


def nobody(sock: socket.socket, said: bytes) -> None:
    pass


def closing(sock: socket.socket, said: bytes) -> None:
    sock.shutdown(socket.SHUT_RDWR)


def echoing(sock: socket.socket, said: bytes) -> None:
    sock.sendall(said)


def of_version_1(sock: socket.socket, said: bytes) -> None:
    sock.sendall(preamble((1, 1)) + encode(WELCOME).data)


def welcoming(sock: socket.socket, said: bytes) -> None:
    sock.sendall(preamble((1, 2)) + encode(WELCOME).data)


def replaying(sock: socket.socket, said: bytes) -> None:
    sock.sendall(exchange().answer)


def knowing_another(sock: socket.socket, said: bytes) -> None:
    sock.sendall(exchange("another").answer)


def without_a_proof(sock: socket.socket, said: bytes) -> None:
    sock.sendall(exchange().answer[:72] + encode(WELCOME).data)


def truncating(sock: socket.socket, said: bytes) -> None:
    sock.sendall(exchange().answer[:100])
    sock.shutdown(socket.SHUT_WR)


def exaggerating(sock: socket.socket, said: bytes) -> None:
    sock.sendall(preamble((2, 2)) + b"\0\0\0\x10\x07" + bytes(23))


def asking(sock: socket.socket, said: bytes) -> None:
    error = m.Error(code=m.ErrorCode.TOKEN, message="no token", remedy="run gcspy-evil", fatal=True)
    sock.sendall(preamble((2, 2)) + encode(error).data)


@contextmanager
def eavesdropper(answer: Answer) -> Iterator[Eavesdropper]:
    with Eavesdropper(socket.create_server(("127.0.0.1", 0)), answer) as found:
        yield found


ANSWERS: list[tuple[Answer, str]] = [
    (nobody, "does not answer"),
    (closing, "closed the connection|is lost"),
    (echoing, "a server in state greeting may not send HELLO"),
    (of_version_1, "version 1 would send the token in the clear over plain TCP"),
    (welcoming, "cannot prove that it knows the token .it sent a welcome without"),
    (replaying, "cannot prove that it knows the token"),
    (knowing_another, "cannot prove that it knows the token"),
    (without_a_proof, "a server in state proving may not send WELCOME|cannot prove"),
    (truncating, "in the middle of a frame"),
    (exaggerating, "over the limit of"),
    (asking, "has not proved that it knows the token, and reports: no token$"),
]


@pytest.mark.parametrize(("answer", "about"), ANSWERS)
def test_who_listens_at_the_address_learns_nothing_and_is_refused_with_the_reason(
    answer: Answer, about: str
) -> None:
    with eavesdropper(answer) as ear:
        timeout = 0.5 if answer is nobody else 60.0
        with pytest.raises(Exception, match=about) as refused:
            connect(f"127.0.0.1:{ear.port}", token=TOKEN, client="client", timeout_secs=timeout)
    ear.learned_nothing()
    assert TOKEN not in str(refused.value)
    if isinstance(refused.value, Refused) and answer is not asking:
        assert f"127.0.0.1:{ear.port}" in str(refused.value)
        assert "the token was not sent" in refused.value.remedy
        assert "GCSPY_TOKEN" in refused.value.remedy


@pytest.mark.parametrize("command", ["tail", "record"])
@pytest.mark.parametrize("answer", [welcoming, replaying, of_version_1])
def test_no_command_tells_it(
    command: str,
    answer: Answer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GCSPY_TOKEN", TOKEN)
    more = ["-o", str(tmp_path / "a.gcspy")] if command == "record" else []
    with eavesdropper(answer) as ear:
        code = main([command, f"127.0.0.1:{ear.port}", *more])
    assert code == (ExitCode.PROTOCOL if answer is of_version_1 else ExitCode.NO_CONNECTION)
    ear.learned_nothing()
    assert "token" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_unix_socket_of_somebody_gets_no_token(socket_directory: Path) -> None:
    path = socket_directory / "x"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    with Eavesdropper(listening, of_version_1) as ear:
        connect(f"unix:{path}", token=TOKEN, client="client").close()
    ear.learned_nothing()
    path.unlink()


@contextmanager
def over_at_the_end(over: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        over.set()


def test_a_server_that_sends_a_byte_now_and_then_does_not_keep_a_client() -> None:
    over = threading.Event()

    def dripping(sock: socket.socket, said: bytes) -> None:
        for byte in preamble((2, 2)) + bytes([32, 0, 0, 0, 7]):
            sock.sendall(bytes([byte]))
            over.wait(0.2)

    with (
        eavesdropper(dripping) as ear,
        over_at_the_end(over),
        pytest.raises(LinkError, match="does not answer"),
    ):
        connect(f"127.0.0.1:{ear.port}", token=TOKEN, client="client", timeout_secs=1.0)
    ear.learned_nothing()


@pytest.mark.parametrize(
    ("answer", "about"),
    [
        (nobody, "not reconnected within 0.3 s: the server at .* does not answer"),
        (truncating, "not reconnected within 0.3 s: .* closed the connection"),
        (replaying, "cannot prove that it knows the token"),
    ],
)
def test_a_link_that_is_made_anew_asks_for_a_proof_again_and_does_not_hang(
    serve: Serve, answer: Answer, about: str
) -> None:
    relay = Relay(None, serve(Target(), "127.0.0.1:0", token=TOKEN).addresses[0])
    try:
        with eavesdropper(answer) as ear:
            places = chain([relay.address], repeat(f"127.0.0.1:{ear.port}"))
            with ReconnectingLink(
                lambda: connect(next(places), token=TOKEN, client="client", timeout_secs=1.0),
                within_secs=0.3,
            ) as link:
                assert isinstance(link.receive(), m.Welcome)
                relay.cut()
                with pytest.raises(LinkError, match=about):
                    read_for_ever(link)
        ear.learned_nothing()
    finally:
        relay.close()


def read_for_ever(link: ReconnectingLink) -> None:
    for _ in link:
        pass


# ------------------------------------------------------------- a relay in between


class Between:
    """Stands between and changes the first bytes of each direction.

    Args:
        server: The real server's address.
        of_client: Converts the client's greeting.
        of_server: Converts the server's preamble, 12 bytes.
    """

    def __init__(
        self,
        server: str,
        of_client: Callable[[bytes], bytes],
        of_server: Callable[[bytes], bytes],
    ) -> None:
        self.heard = b""
        self._changes = of_client, of_server
        self._far = dial(server)

    def __call__(self, sock: socket.socket, said: bytes) -> None:
        of_client, of_server = self._changes
        with self._far as far:
            far.sendall(of_client(said))
            start = far.recv(12, socket.MSG_WAITALL)
            sock.sendall(of_server(start))
            back = threading.Thread(target=self._pump, args=(far, sock))
            back.start()
            self._pump(sock, far)
            back.join(60)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.heard += data
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def as_version(low: int, high: int) -> Callable[[bytes], bytes]:
    return lambda said: preamble((low, high)) + said[12:]


def as_it_is(said: bytes) -> bytes:
    return said


def another_name(said: bytes) -> bytes:
    return said.replace(b"honest", b"Honest")


@pytest.mark.parametrize(
    ("of_client", "of_server", "about"),
    [
        (as_version(1, 1), as_it_is, "(?i)version"),
        (as_version(1, 2), as_it_is, "cannot prove"),
        (as_it_is, as_version(1, 1), "version 1 would send the token in the clear"),
        (as_it_is, as_version(1, 2), "cannot prove"),
        (as_version(1, 1), as_version(1, 1), "version 1 would send the token in the clear"),
        (as_version(1, 2), as_version(1, 2), "cannot prove"),
        (another_name, as_it_is, "cannot prove"),
    ],
)
def test_who_stands_between_cannot_lower_the_version_nor_change_a_greeting(
    serve: Serve,
    ended: EndLog,
    of_client: Callable[[bytes], bytes],
    of_server: Callable[[bytes], bytes],
    about: str,
) -> None:
    address = serve(Target(), "127.0.0.1:0", token=TOKEN).addresses[0]
    between = Between(address, of_client, of_server)
    with eavesdropper(between) as ear, pytest.raises(Exception, match=about):
        connect(f"127.0.0.1:{ear.port}", token=TOKEN, client="honest client")
    ear.learned_nothing()
    assert not any(secret in between.heard for secret in SECRETS)
    assert ended.abnormal()


# --------------------------------------------------------------- what still works


def test_a_tunnel_is_no_obstacle_whichever_end_is_a_unix_socket(
    serve: Serve, socket_directory: Path
) -> None:
    target = Target()
    listening = serve(target, f"unix:{socket_directory}/x.sock", "127.0.0.1:0", token=TOKEN)
    local, remote = listening.addresses
    into_tcp = Relay(socket_directory / "relay", remote)
    into_local = Relay(None, local)
    try:
        for address in (into_tcp.address, remote):
            with connect(address, token=TOKEN) as link:
                assert link.welcome.session
        with connect(into_local.address) as link:  # the tunnel's end is ours: no token is needed
            assert link.welcome.session
        for address in (into_tcp.address, remote):
            with pytest.raises(Refused, match="no token"):
                connect(address)
    finally:
        into_tcp.close()
        into_local.close()


def test_a_session_without_a_token_takes_a_client_that_has_one(serve: Serve, join: Join) -> None:
    target = Target()
    viewer = join(serve(target).addresses[0], token=TOKEN)
    target.event(START)
    viewer.event()
    viewer.assert_has(target.heap)


def test_a_wrong_token_is_told_at_both_ends_and_written_into_no_log(
    serve: Serve, ended: EndLog, caplog: pytest.LogCaptureFixture
) -> None:
    address = serve(Target(), "127.0.0.1:0", token=TOKEN).addresses[0]
    with pytest.raises(Refused, match="cannot prove that it knows the token") as refused:
        connect(address, token="guessed wrong")
    assert refused.value.code == "token"
    (line,) = ended.abnormal()
    assert "wrong token" in line
    assert TOKEN not in caplog.text
    assert "guessed wrong" not in caplog.text


# ------------------------------------------------------------------ beyond this machine


@pytest.mark.parametrize("address", ["192.0.2.1:7777", "[2001:db8::1]:7777", "0.0.0.0:1"])
@pytest.mark.parametrize("token", ["", TOKEN])
def test_plain_tcp_to_another_machine_is_refused_unsent(address: str, token: str) -> None:
    with pytest.raises(
        CommandError, match="plain TCP would carry the heap in the clear"
    ) as refused:
        connect(address, token=token)
    assert f"tls:{address}#sha256=" in str(refused.value)
    assert "ssh -N -L" in str(refused.value)


def test_so_is_a_name_that_leads_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", port))]

    monkeypatch.setattr(socket, "getaddrinfo", elsewhere)
    with pytest.raises(CommandError, match="lecture-hall:7777 can be reached from other machines"):
        connect("lecture-hall:7777", token=TOKEN)


def test_commands_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCSPY_TOKEN", TOKEN)
    assert main(["tail", "192.0.2.1:7777"]) == ExitCode.USAGE
    assert "in the clear" in capsys.readouterr().err


def test_a_version_1_server_is_told_apart_from_a_stranger() -> None:
    with (
        eavesdropper(of_version_1) as ear,
        pytest.raises(VersionMismatch, match="install a newer GCspy at the other end"),
    ):
        connect(f"127.0.0.1:{ear.port}", token=TOKEN, client="client")
    with eavesdropper(of_version_1) as ear:
        connect(f"127.0.0.1:{ear.port}", client="client").close()
