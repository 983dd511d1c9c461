"""The session's deadlines, at their real lengths, by a clock that jumps: no socket, no thread, no waiting."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.handshake.credentials import Channel
from gcspy_protocol.messages import Message
from gcspy_protocol.model import EventFilter, Mode, PauseActsOn, Role

from gcspy_server.api import SessionOptions
from gcspy_server.clients.session import Introduction, Session
from gcspy_session.network.transport import Transport
from tests.server.conftest import EndLog
from tests.server.target import END, START, Target

pytestmark = pytest.mark.trio


class Peer:
    """The client's end of a memory stream; `through` puts something between the server and its end.

    `over` gives both ends of another stream.
    """

    def __init__(
        self,
        session: Session,
        nursery: trio.Nursery,
        *,
        through: Callable[[trio.abc.Stream], trio.abc.Stream] = lambda stream: stream,
        over: tuple[trio.abc.Stream, trio.abc.Stream] | None = None,
    ) -> None:
        self.stream, theirs = over or trio.testing.memory_stream_pair()
        self.connection = Connection(Role.CLIENT)
        self.gone = trio.Event()
        nursery.start_soon(
            self._serve, session, Transport(through(theirs), "memory", channel=Channel.LOCAL)
        )

    async def _serve(self, session: Session, transport: Transport) -> None:
        await session.serve(transport)
        self.gone.set()

    async def send(self, message: Message) -> None:
        await self.stream.send_all(self.connection.send(message))

    async def greet(self, *, control: bool = False, pause: bool = False) -> None:
        await self.stream.send_all(self.connection.preamble())
        await self.send(m.Hello(client="peer", wants_control=control, pause_at_connect=pause))
        await self.next(m.Counters)

    async def next(self, kind: type[Message]) -> Message:
        while True:
            message = self.connection.next_message()
            if isinstance(message, kind):
                return message
            if message is None:
                data = await self.stream.receive_some()
                assert data, f"the server closed before {kind.__name__} came"
                self.connection.receive_data(data)


async def started(
    nursery: trio.Nursery, target: Target, options: SessionOptions | None = None
) -> Session:
    introduction = Introduction(
        server="memory",
        events=target.server.events,
        mode=Mode.EMBEDDED,
        pause_acts_on=PauseActsOn.PROGRAM,
    )
    target.server._core.publish()
    session = Session(
        introduction, target.server._core, token=None, options=options or SessionOptions()
    )
    await nursery.start(session.run)
    return session


async def test_a_half_open_peer_is_told_and_goes_away_after_fifteen_seconds(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    session = await started(nursery, Target())
    peer = Peer(session, nursery)
    await peer.stream.send_all(b"GCspy")
    before = trio.current_time()
    error = await peer.next(m.Error)
    assert trio.current_time() - before == 15.0
    assert isinstance(error, m.Error)
    assert (error.code, error.fatal) == (m.ErrorCode.PROTOCOL, True)
    assert error.message == "this client did not greet within 15 s"
    await peer.gone.wait()
    assert trio.current_time() - before == 16.0, "it had a second to read that"
    assert "did not greet within 15 s" in ended.abnormal()[0]


async def test_a_controller_that_is_silent_for_five_seconds_loses_a_held_target(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    target = Target()
    session = await started(nursery, target)
    controller = Peer(session, nursery)
    await controller.greet(control=True, pause=True)
    before = trio.current_time()
    await trio.to_thread.run_sync(target.event, START)  # held, and released by the session
    await controller.gone.wait()
    assert trio.current_time() - before > 5.0
    assert session.roles.controller is None
    assert "silent for" in ended.abnormal()[0]


async def test_a_silent_controller_loses_a_target_that_is_held_by_a_delay(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    target = Target()
    session = await started(nursery, target)
    controller = Peer(session, nursery)
    await controller.greet(control=True)
    target.server._core.set_filters((EventFilter(event=START, delay_millis=3_600_000),))
    await trio.to_thread.run_sync(target.event, START)
    await controller.gone.wait()
    assert "silent for" in ended.abnormal()[0]


async def test_a_viewer_may_be_silent_for_as_long_as_it_likes(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    session = await started(nursery, Target())
    viewer = Peer(session, nursery)
    await viewer.greet()
    await trio.sleep(3600)
    assert not viewer.gone.is_set()


async def test_counters_of_filtered_events_are_told_at_most_once_a_second(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    target = Target()
    session = await started(nursery, target)
    viewer = Peer(session, nursery)
    await viewer.greet()
    target.server._core.set_filters((EventFilter(event=END, enabled=False),))
    told = []
    for _ in range(50):
        target.event(END)
        await trio.sleep(0.1)
    with trio.move_on_after(10):
        while True:
            told.append(await viewer.next(m.Counters))
    assert len(told) <= 6
    assert told[-1] == m.Counters(counts=(0, 50))


async def test_what_is_sent_to_one_client_does_not_wait_for_another(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    target = Target(tiles=4096)
    session = await started(nursery, target, SessionOptions(queued_events=2))
    stuck_stream = _Stuck()
    nursery.start_soon(session.serve, Transport(stuck_stream, "stuck", channel=Channel.LOCAL))
    await stuck_stream.greet()
    viewer = Peer(session, nursery)
    await viewer.greet()
    for occurrence in range(1, 21):
        target.event(START)
        event = await viewer.next(m.Event)
        assert isinstance(event, m.Event)
        assert event.occurrence == occurrence
    before = trio.current_time()
    await stuck_stream.closed.wait()
    await trio.testing.wait_all_tasks_blocked()
    assert 29 <= trio.current_time() - before <= 31
    assert "stalled: read nothing for 30 s, 0 events" in ended.abnormal()[0]


class _Stuck(trio.abc.Stream):
    """A client that greets and then takes not one byte."""

    def __init__(self) -> None:
        self.closed = trio.Event()
        connection = Connection(Role.CLIENT)
        self._greeting = [connection.preamble() + connection.send(m.Hello(client="stuck"))]
        self._sending = trio.Event()
        self._preamble = True

    async def greet(self) -> None:
        await self._sending.wait()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._preamble:
            self._preamble = False
            await trio.lowlevel.checkpoint()
            return
        self._sending.set()
        await trio.sleep_forever()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self._greeting:
            await trio.lowlevel.checkpoint()
            return self._greeting.pop()
        await trio.sleep_forever()
        raise AssertionError("never here")

    async def aclose(self) -> None:
        self.closed.set()
        await trio.lowlevel.checkpoint()
