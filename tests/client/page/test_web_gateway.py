"""The gateway for browsers: one page, its own WebSockets only, a proof of the token, and strangers that can do nothing else."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import CommandError
from gcspy_protocol.model import Role
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from gcspy.connection.link import connect as link_to
from gcspy.hosts.sidecar import start_sidecar
from gcspy.hosts.simulation_host import SimulatingOptions
from gcspy.hosts.web_gateway import WebGateway, proof_of
from tests.client.page.serving import TOKEN, ServedLesson, served_lesson
from tests.waiting import PATIENCE_SECS


@pytest.fixture
def lesson(tmp_path: Path) -> Iterator[ServedLesson]:
    """A served lesson."""
    with served_lesson("tiles", tmp_path) as served:
        yield served


@contextmanager
def opened(
    lesson: ServedLesson, *, origin: str | None = None, path: str = "/session"
) -> Iterator[ClientConnection]:
    host, port = lesson.place
    with connect(
        f"ws://{host}:{port}{path}",
        origin=Origin(origin or f"http://{host}:{port}"),
        compression=None,
        proxy=None,
        ping_interval=None,
    ) as page:
        yield page


def prove(page: ClientConnection, token: str) -> dict[str, object]:
    nonce = json.loads(page.recv(timeout=PATIENCE_SECS))["nonce"]
    page.send(json.dumps({"proof": proof_of(token, bytes.fromhex(nonce))}))
    answer: dict[str, object] = json.loads(page.recv(timeout=PATIENCE_SECS))
    return answer


def asked(lesson: ServedLesson, request: bytes) -> bytes:
    """The answer to bytes, up to the end of the connection."""
    with socket.create_connection(lesson.place, timeout=PATIENCE_SECS) as line:
        line.sendall(request)
        found = b""
        while more := line.recv(1 << 16):
            found += more
        return found


def get(lesson: ServedLesson, path: str = "/", host: str = "") -> bytes:
    name = host or f"{lesson.place[0]}:{lesson.place[1]}"
    return asked(lesson, f"GET {path} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())


def test_there_is_one_page_and_it_says_what_it_may_load(lesson: ServedLesson) -> None:
    page = get(lesson)
    assert page.startswith(b"HTTP/1.1 200 ")
    assert b"Content-Security-Policy" in page
    assert b"default-src 'none'" in page
    assert b"X-Frame-Options: DENY" in page
    assert TOKEN.encode() not in page
    assert get(lesson, "/other").startswith(b"HTTP/1.1 404 ")
    assert get(lesson, host="rebound.example").startswith(b"HTTP/1.1 421 ")


def test_a_client_with_the_token_gets_the_session(lesson: ServedLesson) -> None:
    with opened(lesson) as page:
        assert prove(page, TOKEN) == {"ready": True}
        client = Connection(Role.CLIENT)
        page.send(client.preamble() + client.send(m.Hello(client="page")))
        seen: list[m.Message] = []
        while not any(isinstance(one, m.EpochEnd) for one in seen):
            data = page.recv(timeout=PATIENCE_SECS)
            assert isinstance(data, bytes)
            client.receive_data(data)
            seen += client.messages()
        assert isinstance(seen[0], m.Welcome)
        assert seen[0].target["lesson"] == "tiles"


@pytest.mark.parametrize("proof", ["00" * 32, "", 7, None, "x" * 5000])
def test_a_client_without_the_token_gets_nothing(lesson: ServedLesson, proof: object) -> None:
    with opened(lesson) as page:
        json.loads(page.recv(timeout=PATIENCE_SECS))
        page.send(json.dumps({"proof": proof}))
        assert json.loads(page.recv(timeout=PATIENCE_SECS)) == {"error": "The token is wrong."}
        with pytest.raises(ConnectionClosed):
            page.recv(timeout=PATIENCE_SECS)


@pytest.mark.parametrize("first", ["", "[" * 3000, "{}", "nothing", b"\0" * 100])
def test_nonsense_instead_of_a_proof_is_refused(lesson: ServedLesson, first: str | bytes) -> None:
    with opened(lesson) as page:
        page.recv(timeout=PATIENCE_SECS)
        page.send(first)
        assert "error" in json.loads(page.recv(timeout=PATIENCE_SECS))


def test_another_page_may_not_connect(lesson: ServedLesson) -> None:
    with pytest.raises(InvalidStatus, match="403"), opened(lesson, origin="http://evil.example"):
        pass
    with pytest.raises(InvalidStatus, match="404"), opened(lesson, path="/elsewhere"):
        pass


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\0" * 9000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 500 + b"\r\n",
        b"GET /" + b"a" * 100_000,
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GCspy\r\n\x1a" + b"\1\0\2\0",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n",
    ],
    ids=["zeros", "headers", "line", "two hosts", "our own wire", "length"],
)
def test_strange_requests_are_refused_and_others_are_served(
    lesson: ServedLesson, request_bytes: bytes
) -> None:
    try:
        answer = asked(lesson, request_bytes)
    except ConnectionResetError:
        answer = b""
    assert not answer.startswith(b"HTTP/1.1 200")
    assert get(lesson).startswith(b"HTTP/1.1 200 ")


def test_a_message_that_is_too_long_ends_the_page_alone(lesson: ServedLesson) -> None:
    with opened(lesson) as page:
        prove(page, TOKEN)
        page.send(b"\0" * (70 << 10))
        with pytest.raises(ConnectionClosed):
            list(iter(lambda: page.recv(timeout=PATIENCE_SECS), ""))
    with opened(lesson) as page:
        assert prove(page, TOKEN) == {"ready": True}


def test_a_page_that_reads_nothing_does_not_hold_the_session(lesson: ServedLesson) -> None:
    with opened(lesson) as page, link_to(lesson.address, wants_control=True) as leader:
        prove(page, TOKEN)
        client = Connection(Role.CLIENT)
        page.send(client.preamble() + client.send(m.Hello(client="page")))
        # It never reads again, while events are stepped.
        events = 0
        leader.send(m.Step())
        while events < 6:
            message = leader.receive(PATIENCE_SECS)
            assert message is not None
            if isinstance(message, m.Event):
                events += 1
            if isinstance(message, m.State):
                leader.send(m.Step())


def test_plain_http_is_for_this_machine_only() -> None:
    with pytest.raises(CommandError, match="can be reached from other machines"):
        WebGateway("unix:/nowhere", ("0.0.0.0:0",), token="a", title="")
    with pytest.raises(CommandError, match="needs a token"):
        WebGateway("unix:/nowhere", ("127.0.0.1:0",), token="", title="")


def test_a_sidecar_tells_the_address_of_its_page(socket_directory: Path) -> None:
    options = SimulatingOptions(
        simulation={"heap_bytes": 4096, "pace_millis": 0},
        listen=(f"unix:{socket_directory}/s.sock",),
        token="t",
        web=("127.0.0.1:0",),
        wait=True,
    )
    with start_sidecar(options) as sidecar:
        assert sidecar.pages[0].startswith("http://127.0.0.1:")
