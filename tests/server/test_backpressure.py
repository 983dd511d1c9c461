"""How the driver's thread waits for lossless clients, without any: the test sets the capacities."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from gcspy_protocol.messages import Event, State
from gcspy_protocol.model import ControlState, EventFilter

from gcspy_server.interpreter.backpressure import Backpressure
from gcspy_server.interpreter.core import Audience
from gcspy_server.interpreter.flow import Flow
from gcspy_server.interpreter.transmission import Snapshot
from gcspy_session.capacity import Capacity
from gcspy_session.interest import EVERYTHING
from tests.server.target import START, Target

MILLI = 1_000_000
LONG = 60_000 * MILLI
FULL = Capacity(0, 1000, LONG)


class Waited:
    """A room, the flow behind it, and a thread that waits in it."""

    def __init__(self, *, longest_hold_nanos: int | None = None, alive: bool = True) -> None:
        self.posted: list[State] = []
        self.flow = Flow(self.posted.append, longest_hold_secs=None)
        if alive:
            self.flow.pulse()
        self.room = Backpressure(self.flow, longest_hold_nanos=longest_hold_nanos)

    @contextmanager
    def waiting(self, *, held_nanos: int = 0) -> Iterator[list[int]]:
        """Let another thread wait; it has gone on when the context ends."""
        nanos: list[int] = []
        thread = threading.Thread(
            target=lambda: nanos.append(self.room.wait(held_nanos=held_nanos))
        )
        thread.start()
        yield nanos
        thread.join(60)
        assert not thread.is_alive()


def test_without_lossless_clients_nobody_waits() -> None:
    waited = Waited()
    waited.room.posted(1, 100)
    assert not waited.room.wanted
    assert waited.room.wait(held_nanos=0) == 0


def test_where_there_is_room_nobody_waits() -> None:
    waited = Waited()
    waited.room.tell(0, (Capacity(2, 1000, LONG),))
    waited.room.posted(1, 100)
    assert waited.room.wait(held_nanos=0) == 0


@pytest.mark.parametrize(
    "full",
    [
        Capacity(0, 1000, LONG),
        Capacity(9, 0, LONG),
        Capacity(1, 1000, LONG),
        Capacity(9, 100, LONG),
    ],
)
def test_a_full_queue_is_waited_for_until_it_has_room(full: Capacity) -> None:
    waited = Waited()
    waited.room.tell(0, (Capacity(9, 1000, LONG), full))
    waited.room.posted(1, 100)  # counts, because it is on its way to the queue
    with waited.waiting() as nanos:
        while not waited.room.held:
            pass
        waited.room.tell(0, (Capacity(9, 1000, LONG), Capacity(2, 101, LONG)))
    assert nanos[0] > 0
    assert not waited.room.held


def test_what_was_shared_out_does_not_count_twice() -> None:
    waited = Waited()
    waited.room.tell(0, (Capacity(9, 1000, LONG),))
    waited.room.posted(1, 900)
    waited.room.posted(2, 900)
    with waited.waiting():
        waited.room.tell(1, (Capacity(2, 1000, LONG),))
    waited.room.tell(2, (Capacity(1, 1, LONG),))
    assert waited.room.wait(held_nanos=0) == 0


def test_nobody_waits_longer_than_the_longest_deadline_of_those_without_room() -> None:
    waited = Waited()
    waited.room.tell(0, (Capacity(9, 9, LONG), Capacity(0, 9, MILLI), Capacity(0, 9, 30 * MILLI)))
    assert waited.room.wait(held_nanos=0) >= 30 * MILLI


@pytest.mark.parametrize("held", [0, 15 * MILLI, 30 * MILLI])
def test_the_operators_longest_hold_bounds_delay_pause_and_waiting_together(held: int) -> None:
    waited = Waited(longest_hold_nanos=20 * MILLI)
    waited.room.tell(0, (FULL,))
    nanos = waited.room.wait(held_nanos=held)
    assert nanos >= 20 * MILLI - held
    assert (nanos == 0) == (held > 20 * MILLI)


def test_a_silent_loop_is_not_waited_for() -> None:
    waited = Waited(alive=False)
    waited.room.tell(0, (FULL,))
    assert waited.room.wait(held_nanos=0) == 0


def test_nobody_waits_when_the_target_has_a_reason_to_go_on() -> None:
    waited = Waited()
    waited.flow.let_go_when(lambda: "the server is stopping")
    waited.room.tell(0, (FULL,))
    with waited.waiting():
        pass


def test_a_recorded_event_waits_for_room_whatever_its_target_does() -> None:
    waited = Waited(longest_hold_nanos=MILLI)
    waited.flow.let_go_when(lambda: "the target has ended")
    waited.room.tell(0, (Capacity(0, 9, MILLI),))
    nanos: list[int] = []
    waiting = threading.Thread(
        target=lambda: nanos.append(waited.room.wait(held_nanos=0, holds=False))
    )
    waiting.start()
    while not waited.room.held:
        assert not nanos
    waiting.join(0.05)
    assert waiting.is_alive(), "fifty times its deadline"
    waited.room.tell(0, (Capacity(1, 9, MILLI),))
    waiting.join()
    assert nanos[0] > MILLI


def test_nobody_waits_for_clients_that_have_gone() -> None:
    waited = Waited()
    waited.room.tell(0, (FULL,))
    with waited.waiting() as nanos:
        while not waited.room.held:
            assert not nanos
        waited.room.tell(0, ())
    assert not waited.room.wanted


# ------------------------------------------------------------------------ in the core


def taken(target: Target) -> list[Event]:
    return [
        item.event
        for item in target.server._core.handoff_queue.take()
        if isinstance(item, Snapshot)
    ]


def watched(*, longest_hold_secs: float | None = None) -> Target:
    target = Target(longest_hold_secs=longest_hold_secs)
    core = target.server._core
    core.publish()
    core.handoff_queue.open(lambda: None)
    core.set_audience(Audience(clients=1, wants=EVERYTHING))
    core.flow.pulse()
    return target


def test_what_was_waited_is_part_of_what_the_next_event_was_held_and_summed_up() -> None:
    target = watched()
    core = target.server._core
    core.set_filters((EventFilter(event=START, delay_millis=1),))
    core.flow.set_controlled(True)
    core.room.tell(0, (Capacity(0, 1, 5 * MILLI),))
    target.event(START)
    core.room.tell(1, (Capacity(9, 1 << 20, 5 * MILLI),))
    target.event(START)
    target.event(START)
    first, second, third = taken(target)
    assert (first.held_nanos, first.waited_nanos) == (0, 0)
    assert second.waited_nanos >= 5 * MILLI
    assert second.held_nanos >= second.waited_nanos + MILLI
    assert third.waited_nanos == second.waited_nanos
    assert third.held_nanos > 0


def test_a_session_that_is_behind_is_waited_for_and_no_event_is_left_out() -> None:
    target = watched()
    core = target.server._core
    core.room.tell(0, (Capacity(1000, 1 << 40, LONG),))
    seen: list[Event] = []
    with target.running(*[START] * 200) as progress:
        while progress.events < 200:
            if core.room.held or progress.events == 200:  # the handoff_queue has all that may wait
                seen += taken(target)
                core.room.tell(seen[-1].sequence if seen else 0, (Capacity(1000, 1 << 40, LONG),))
    seen += taken(target)
    assert [event.occurrence for event in seen] == list(range(1, 201))


def test_what_else_waits_for_the_session_leaves_no_event_out() -> None:
    target = watched()
    core = target.server._core
    core.room.tell(0, (Capacity(1000, 1 << 40, LONG),))
    for _ in range(20):
        core.handoff_queue.post(State(state=ControlState.RUNNING))
    assert target.event(START)


def test_a_session_that_takes_nothing_costs_no_memory_without_end() -> None:
    target = watched()
    target.server._core.room.tell(0, (Capacity(1000, 1 << 40, 1),))
    asked = [target.event(START) for _ in range(200)]
    assert asked.count(True) < 100


def test_a_pause_ends_before_anybody_is_waited_for() -> None:
    target = watched(longest_hold_secs=0.02)
    core = target.server._core
    core.room.tell(0, (FULL,))
    core.flow.set_controlled(True)
    core.flow.pause()
    target.event(START)  # the pause takes all of the longest hold, and nothing is left to wait
    assert core.flow.state.state is ControlState.RUNNING
    core.room.tell(1, ())
    target.event(START)
    assert taken(target)[-1].waited_nanos == 0
