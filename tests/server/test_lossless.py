"""Lossless clients on real sockets, and by a clock that jumps: what they are promised, and what they cannot do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import numpy as np
import pytest
import trio
import trio.testing
from gcspy_protocol import messages as m
from gcspy_protocol.messages import ErrorCode
from gcspy_protocol.model import Mode, PauseActsOn

from gcspy_server.api import ServedSession, SessionOptions
from gcspy_server.clients.session import Introduction, Session
from gcspy_session.lossless import Grant
from tests.server.target import START, Progress, Target
from tests.server.test_session_clock import Peer
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

LONGEST = 60_000
BIG = 300_000
"""Tiles: an event of some 1.5 MB, more than a socket takes."""

TIGHT = SessionOptions(queued_events=2)


def sampled(*, tiles: int = BIG, longest_hold_secs: float | None = None) -> Target:
    return Target(tiles=tiles, acts_on=PauseActsOn.SAMPLING, longest_hold_secs=longest_hold_secs)


def lossless(viewer: Viewer, millis: int = LONGEST) -> Viewer:
    viewer.send(m.Lossless(deadline_millis=millis))
    viewer.sync()
    return viewer


def waits_of(viewer: Viewer) -> list[int]:
    """How long was waited before each event, for lossless clients."""
    sums = [change.event.waited_nanos for change in viewer.changes]
    return np.diff(sums, prepend=0).tolist()


def until_occurrence(viewer: Viewer, occurrence: int) -> None:
    """Read until this event has come."""
    viewer.until(lambda: bool(viewer.changes) and viewer.changes[-1].event.occurrence == occurrence)


def until_held(target: Target, progress: Progress) -> int:
    """Wait until the driver's thread waits for a client; returns how many events it got through."""
    patience = threading.Event()
    for _ in range(10_000):
        if target.server._core.room.held:
            return progress.events
        patience.wait(0.001)  # lets the others work; what is waited for is the state
    raise AssertionError(f"not held after {progress.events} events")


def test_a_reader_that_does_not_keep_up_loses_nothing_and_is_told_what_that_cost(
    serve: Serve, join: Join
) -> None:
    target = sampled()
    recorder = lossless(join(serve(target, options=TIGHT).addresses[0]))
    with target.running(*[START] * 12) as progress:
        until_held(target, progress)
        recorder.until_events(12)
    assert [occurrence for _, occurrence in recorder.events()] == list(range(1, 13))
    assert recorder.state.missed_total == 0
    assert not recorder.seen(m.Missed)
    waits = waits_of(recorder)
    assert max(waits) > 0
    assert all(
        change.event.held_nanos >= wait
        for change, wait in zip(recorder.changes, waits, strict=True)
    )
    recorder.assert_has(target.heap)


def test_events_by_the_thousand_reach_a_reader_one_by_one(serve: Serve, join: Join) -> None:
    target = sampled(tiles=64)
    recorder = lossless(join(serve(target, options=SessionOptions(queued_events=8)).addresses[0]))
    with target.running(*[START] * 3000):
        recorder.until_events(3000)
    assert [occurrence for _, occurrence in recorder.events()] == list(range(1, 3001))
    assert recorder.state.missed_total == 0


def test_a_reader_that_reads_nothing_costs_one_deadline_and_not_one_at_each_event(
    serve: Serve, join: Join
) -> None:
    target = sampled()
    address = serve(target, options=TIGHT).addresses[0]
    witness, recorder = join(address), lossless(join(address), 20)
    for occurrence in range(1, 21):
        target.event(START)
        assert witness.event().occurrence == occurrence
    waits = waits_of(witness)
    assert max(waits[:10]) >= 20_000_000
    assert not any(waits[10:]), "it lacks an event by then, and is to get a keyframe"
    assert witness.state.missed_total == 0
    # It keeps the data it had to read already; then it learns of its losses, and gets back in step.
    until_occurrence(recorder, 20)
    first = [occurrence for _, occurrence in recorder.events()[:-1]]
    assert first == list(range(1, len(first) + 1))
    assert len(first) >= 2, "one that the socket had begun to take, and what waited behind it"
    assert recorder.state.missed_total == 20 - len(recorder.changes) > 0
    recorder.assert_equals(witness)
    # And is waited for again; long enough that it is not late again because this machine is busy.
    lossless(recorder)
    with target.running(*[START] * 6) as progress:
        until_held(target, progress)
        recorder.until_events(len(first) + 7)
    assert [occurrence for _, occurrence in recorder.events()[-6:]] == list(range(21, 27))


def test_a_reader_that_is_cut_off_lets_go_at_once(serve: Serve, join: Join) -> None:
    target = sampled()
    recorder = lossless(join(serve(target, options=TIGHT).addresses[0]))
    with target.running(*[START] * 12) as progress:
        until_held(target, progress)
        recorder.link._socket.shutdown(socket.SHUT_RDWR)
        progress.wait_for(12)


def test_closing_the_server_lets_go_at_once(serve: Serve, join: Join) -> None:
    target = sampled()
    listening = serve(target, options=TIGHT)
    lossless(join(listening.addresses[0]))
    with target.running(*[START] * 12) as progress:
        until_held(target, progress)
        listening.close()
        progress.wait_for(12)


def test_a_reader_that_wants_it_no_more_is_not_waited_for(serve: Serve, join: Join) -> None:
    target = sampled()
    recorder = lossless(join(serve(target, options=TIGHT).addresses[0]))
    with target.running(*[START] * 12) as progress:
        until_held(target, progress)
        recorder.send(m.Lossless(deadline_millis=0))
        progress.wait_for(12)
    until_occurrence(recorder, 12)
    assert recorder.state.missed_total > 0


def test_the_operators_longest_hold_is_the_longest_deadline(serve: Serve, join: Join) -> None:
    target = sampled(longest_hold_secs=0.02)
    address = serve(target, options=TIGHT).addresses[0]
    witness = join(address)
    lossless(join(address))
    with target.running(*[START] * 12):  # would take a minute
        witness.until_events(12)


def test_a_reader_that_is_too_slow_too_often_is_told_that_it_is_lossless_no_more(
    serve: Serve, join: Join
) -> None:
    target = sampled(
        longest_hold_secs=0.001
    )  # so that its deadline is short, but counts as a minute
    address = serve(target, options=TIGHT).addresses[0]
    witness, recorder = join(address), lossless(join(address))
    latest = 0
    for stall in range(1, 4):
        while target.server._core.room.wanted:
            target.event(START)
            latest = witness.event().occurrence
        if stall < 3:
            until_occurrence(recorder, latest)
    error = recorder.next(m.Error)
    assert (error.code, error.fatal) == (ErrorCode.TOO_SLOW, False)
    assert "3 deadlines of 60 s in vain" in error.message
    # It continues like any other client, and cannot have it back.
    until_occurrence(recorder, latest)
    recorder.send(m.Lossless(deadline_millis=1000))
    assert "already withdrawn from this connection" in recorder.next(m.Error).message
    for _ in range(12):
        target.event(START)
        witness.event()
    assert not any(waits_of(witness)[-11:])


def test_a_program_is_held_for_its_controller_only(serve: Serve, join: Join) -> None:
    target = Target(tiles=BIG)
    address = serve(target, options=TIGHT).addresses[0]
    viewer = join(address)
    viewer.send(m.Lossless(deadline_millis=LONGEST))
    error = viewer.next(m.Error)
    assert error.code is ErrorCode.NOT_CONTROLLER
    assert "holds the program" in error.message
    for _ in range(12):
        target.event(START)
    controller = lossless(join(address, control=True))
    with target.running(*[START] * 12) as progress:
        until_held(target, progress)
        # With control the promise is gone, and the program continues.
        controller.send(m.HandOver(client=viewer.number))
        progress.wait_for(12)
    assert "no longer controls the program" in controller.next(m.Error).message


@pytest.mark.parametrize("acts_on", [PauseActsOn.SAMPLING, PauseActsOn.PLAYBACK])
def test_where_no_program_waits_anybody_may_ask(
    serve: Serve, join: Join, acts_on: PauseActsOn
) -> None:
    target = Target(acts_on=acts_on)
    address = serve(target).addresses[0]
    join(address, control=True)
    viewer = lossless(join(address))
    assert not viewer.seen(m.Error)
    assert target.server._core.room.wanted


# ------------------------------------------------------------------------ deadlines, by a clock that jumps


@pytest.mark.trio
async def test_deadlines_in_vain_count_unless_ten_of_them_lie_between(
    mock_clock: trio.testing.MockClock,
) -> None:
    grant = Grant(lambda: None)
    grant.wait(2.0)
    for _ in range(6):
        grant.waited_in_vain()
        mock_clock.jump(21.0)
    assert not grant.withdrawn
    for _ in range(2):
        grant.waited_in_vain()
        grant.wait(0.001)  # a shorter deadline in between forgives nothing
        mock_clock.jump(19.0)
    assert not grant.withdrawn
    grant.waited_in_vain()
    assert grant.withdrawn


class _Trickle(trio.abc.Stream):
    """A client's stream that takes what it is sent once it may."""

    def __init__(self, inner: trio.abc.Stream) -> None:
        self._inner = inner
        self.open = trio.Event()
        self.open.set()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.open.wait()
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._inner.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.mark.trio
async def test_a_reader_that_takes_nothing_for_five_seconds_is_not_waited_for_any_more(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    target = Target(tiles=64, acts_on=PauseActsOn.SAMPLING)
    introduction = Introduction(
        server="memory",
        events=target.server.events,
        mode=Mode.EMBEDDED,
        pause_acts_on=PauseActsOn.SAMPLING,
    )
    target.server._core.publish()
    options = SessionOptions(queued_events=2, stall_secs=86_400)
    session = Session(introduction, target.server._core, token=None, options=options)
    await nursery.start(session.run)
    streams: list[_Trickle] = []

    def slow(stream: trio.abc.Stream) -> _Trickle:
        streams.append(_Trickle(stream))
        return streams[0]

    peer = Peer(session, nursery, through=slow)
    await peer.greet()
    await peer.send(m.Lossless(deadline_millis=LONGEST))
    await trio.testing.wait_all_tasks_blocked()
    (stream,) = streams
    stream.open = trio.Event()
    before = trio.current_time()
    waits: list[int] = []
    target.server.add_observer(lambda event: waits.append(event.waited_nanos))
    for _ in range(10):
        await trio.to_thread.run_sync(target.event, START)
    assert trio.current_time() - before >= 5
    assert waits[-1] < LONGEST * 1_000_000, (
        "our clock does not jump: without the five seconds it is a minute"
    )
    stream.open.set()
    missed = await peer.next(m.Missed)
    assert isinstance(missed, m.Missed)
    assert missed.events > 0
