"""A viewer that floods: the server reads it more slowly, warns it, and ends it; no other client waits for it."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
import trio
import trio.testing
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.frames.frame import HEADER
from gcspy_protocol.messages import ErrorCode, Message

from gcspy_server.api import ServedSession, SessionOptions
from gcspy_session.options import RequestLimits
from tests.server.conftest import EndLog
from tests.server.target import START, Target
from tests.server.test_hostile import greeted, over_tls, raw, read_to_end
from tests.server.test_listeners import TOKEN
from tests.server.test_session_clock import Peer, started
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

_SOME = m.Subscribe(spaces=(m.Subscription(space=1),))

FLOODS: dict[str, list[Message]] = {
    "ping": [m.Ping(number=7)],
    "subscribe": [m.Subscribe(), _SOME],
    "the same subscription": [m.Subscribe()],
    "take control": [m.TakeControl()],
    "attend": [m.Attend(person="a", following=True), m.Attend(person="b")],
    "names": [m.TileNamesRequest(space=1, first=0, count=4096)],
    "a command of the controller": [m.Pause()],
    "follow": [m.Follow(client=1), m.Follow(client=None)],
    "lossless": [m.Lossless(deadline_millis=60_000)],
}

UNKNOWN = HEADER.pack(0, 0x7E, 0, 0, 0, 0, 0, 0)

_LIMITS = SessionOptions().requests


async def to_the_end(peer: Peer) -> list[tuple[float, Message]]:
    """All messages to a peer until the connection ends, and their times."""
    told: list[tuple[float, Message]] = []
    while data := await peer.stream.receive_some():
        peer.connection.receive_data(data)
        told += [(trio.current_time(), message) for message in peer.connection.messages()]
    return told


def errors(told: list[tuple[float, Message]]) -> list[tuple[float, m.Error]]:
    found = [(at, message) for at, message in told if isinstance(message, m.Error)]
    return [(at, error) for at, error in found if error.code is ErrorCode.TOO_MUCH]


async def is_told_and_ended(peer: Peer, flood: bytes) -> list[tuple[float, Message]]:
    """Send this much; the warning comes at once, and the end five seconds later."""
    await peer.stream.send_all(flood)
    began = trio.current_time()
    told = await to_the_end(peer)
    (first, warning), (last, end) = errors(told)
    assert (warning.fatal, end.fatal) == (False, True)
    assert first - began < 3
    assert 5.0 <= last - first < 5.2
    assert "asks for more than" in warning.message
    assert "wait for answers" in warning.remedy
    assert end.message == f"{warning.message}, for 5 s"
    assert told[-1][1] is end
    await peer.stream.aclose()
    await peer.gone.wait()
    return told


@pytest.mark.trio
@pytest.mark.parametrize("kind", FLOODS)
async def test_who_floods_is_told_and_then_ended(
    kind: str, autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    # A memory stream takes its time for each answer: the client that reads them all is not to be taken for one that does not.
    session = await started(nursery, Target(), SessionOptions(queued_messages=10_000))
    peer = Peer(session, nursery)
    await peer.greet()
    flood = b"".join(peer.connection.send(one) for one in FLOODS[kind])
    await is_told_and_ended(peer, flood * (8000 // len(FLOODS[kind])))
    (line,) = ended.abnormal()
    assert "ended: too much: this client asks for more than" in line


@pytest.mark.trio
async def test_frames_that_nobody_knows_are_counted_too(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    session = await started(nursery, Target())
    peer = Peer(session, nursery)
    await peer.greet()
    event_part = HEADER.pack(0, 0x2E, 0, 0, 0, 0, 0, 0)
    await is_told_and_ended(peer, (UNKNOWN + event_part) * 4000)
    ended.abnormal()


@pytest.mark.trio
async def test_long_requests_are_counted_by_their_bytes(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    session = await started(nursery, Target())
    peer = Peer(session, nursery)
    await peer.greet()
    long = HEADER.pack(1 << 16, 0x7E, 0, 0, 0, 0, 0, 0) + bytes(1 << 16)
    told = await is_told_and_ended(peer, long * 60)
    assert "262,144 bytes of requests a second" in errors(told)[0][1].message
    ended.abnormal()


@pytest.mark.trio
async def test_while_somebody_floods_others_are_answered_at_once(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    session = await started(nursery, Target())
    flooder, other = Peer(session, nursery), Peer(session, nursery)
    await flooder.greet()
    await other.greet()
    served: list[Message] = []

    async def listen() -> None:
        while data := await flooder.stream.receive_some():
            flooder.connection.receive_data(data)
            served.extend(flooder.connection.messages())

    nursery.start_soon(listen)
    await flooder.stream.send_all(flooder.connection.send(m.Ping(number=7)) * 8000)
    began = trio.current_time()
    for number in range(40):
        await other.send(m.Ping(number=number))
        assert await other.next(m.Pong) == m.Pong(number=number)
    assert trio.current_time() - began < 0.1
    pongs = [message for message in served if isinstance(message, m.Pong)]
    assert len(pongs) <= _LIMITS.burst_requests + 0.1 * _LIMITS.requests_per_sec + 1
    nursery.cancel_scope.cancel()


@pytest.mark.trio
async def test_who_waits_for_each_answer_is_only_slowed_down(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    session = await started(nursery, Target())
    peer = Peer(session, nursery)
    await peer.greet()
    began = trio.current_time()
    for number in range(6000):
        await peer.send(m.Ping(number=number))
        assert await peer.next(m.Pong) == m.Pong(number=number)
    assert trio.current_time() - began == pytest.approx(10, abs=0.1)
    await peer.send(m.Goodbye())
    assert errors(await to_the_end(peer)) == []


@pytest.mark.trio
async def test_what_is_asked_again_or_is_so_already_is_told_to_nobody(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    target = Target()
    session = await started(nursery, target)
    asker = Peer(session, nursery)
    await asker.greet(control=True)
    await trio.to_thread.run_sync(target.event, START)
    await asker.next(m.Event)
    other = Peer(session, nursery)
    await other.greet()
    await other.next(m.Event)
    await trio.sleep(1)
    await asker.send(m.Ping(number=0))
    await asker.next(m.Pong)
    for message in (m.Subscribe(), m.TakeControl(), m.Ping(number=1)):
        await asker.send(message)
    seen = asker.connection
    while (message_seen := seen.next_message()) != m.Pong(number=1):
        assert not isinstance(message_seen, m.Clients | m.Event)
        if message_seen is None:
            seen.receive_data(await asker.stream.receive_some())
    await trio.sleep(1)
    await other.send(m.Ping(number=1))
    while (message_seen := other.connection.next_message()) != m.Pong(number=1):
        assert not isinstance(message_seen, m.Clients | m.Event)
        if message_seen is None:
            other.connection.receive_data(await other.stream.receive_some())
    # Something else is another matter.
    await asker.send(_SOME)
    event = await asker.next(m.Event)
    assert isinstance(event, m.Event)
    assert event.keyframe
    nursery.cancel_scope.cancel()


# ------------------------------------------------------------------ over real sockets


def told_while_flooding(
    sock: socket.socket,
    connection: Connection,
    kind: str,
    meanwhile: Callable[[], None],
) -> list[m.Error]:
    """Flood until the connection ends, reading all the while; what is reported about too many requests.

    Args:
        sock: On which the greeting is over.
        connection: Its frames.
        kind: The flood.
        meanwhile: Actions of other clients during the flood.
    """
    flood = b"".join(connection.send(one) for one in FLOODS[kind]) * 200
    sock.settimeout(60)
    told: list[Message] = []

    def send() -> None:
        with suppress(OSError):
            while True:
                sock.sendall(flood)

    def read() -> None:
        told.extend(read_to_end(sock, connection))
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    threads = [threading.Thread(target=send), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    try:
        meanwhile()
    finally:
        for thread in threads:
            thread.join(PATIENCE_SECS)
    return too_much(told)


def too_much(told: list[Message]) -> list[m.Error]:
    found = [one for one in told if isinstance(one, m.Error)]
    return [one for one in found if one.code is ErrorCode.TOO_MUCH]


@pytest.mark.parametrize("kind", ["ping", "subscribe", "take control"])
def test_over_a_socket_a_flooder_is_ended_and_a_viewer_misses_nothing(
    kind: str, serve: Serve, join: Join, ended: EndLog
) -> None:
    target = Target()
    limits = RequestLimits(patience_secs=0.5)
    address = serve(
        target, options=SessionOptions(requests=limits, queued_messages=10_000)
    ).addresses[0]
    witness = join(address)

    def watch() -> None:
        for _ in range(20):
            target.event(START)
            witness.event()

    with raw(address) as sock:
        found = told_while_flooding(sock, greeted(sock), kind, watch)
    assert [one.fatal for one in found] == [False, True]
    (line,) = ended.abnormal()
    assert "too much: this client asks for more than" in line
    watch()
    assert witness.state.missed_total == 0


def flood_in_turns(sock: socket.socket, connection: Connection, told: list[Message]) -> None:
    """Send and read in turns until the connection ends, a record for each request: two threads cannot share one end of TLS.

    Args:
        sock: On which the greeting is over.
        connection: Its frames.
        told: Receives the messages that are read.
    """
    (ping,) = FLOODS["ping"]
    flood = connection.send(ping)
    sock.setblocking(False)
    sending = True
    while True:
        if sending:
            try:
                sock.send(flood)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                select.select([sock], [sock], [], 0.05)
            except OSError:
                sending = False  # it is ended; why may still be to be read
        else:
            select.select([sock], [], [], 0.05)
        try:
            data = sock.recv(65536)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            continue
        except OSError:
            return
        if not data:
            return
        connection.receive_data(data)
        told.extend(connection.messages())


def test_over_tls_a_flooder_that_sends_a_record_for_each_request_is_ended_too(
    serve: Serve, join: Join, ended: EndLog
) -> None:
    target = Target()
    # It reads little: the warning must have come by then. And it sends a record at a time: on a busy
    # machine that is no flood to a server with the usual limits.
    limits = RequestLimits(patience_secs=2, requests_per_sec=20, burst_requests=100)
    options = SessionOptions(requests=limits, queued_messages=100_000)
    address = serve(target, "tls:127.0.0.1:0", token=TOKEN, options=options).addresses[0]
    witness = join(address, token=TOKEN)

    def watch() -> None:
        for _ in range(20):
            target.event(START)
            witness.event()

    with over_tls(address) as sock:
        connection = greeted(sock, token=TOKEN)
        told: list[Message] = []
        flooding = threading.Thread(target=flood_in_turns, args=(sock, connection, told))
        flooding.start()
        try:
            watch()
        finally:
            flooding.join(PATIENCE_SECS)
    found = too_much(told)
    assert (found[0].fatal, found[-1].fatal) == (False, True)
    (line,) = ended.abnormal()
    assert "too much: this client asks for more than" in line
    watch()
    assert witness.state.missed_total == 0
