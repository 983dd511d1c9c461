"""The cost budget in a session: omitted streams are counted and reported, explicit requests are served all the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.model import ControlState, EventFilter, PauseActsOn
from gcspy_protocol.triggers import Trigger, TriggerAction

from gcspy_server.api import LEVEL, ServedSession, Server, ServerDescription, UniformNames
from gcspy_server.interpreter.core import Audience
from gcspy_server.interpreter.cost_accounting import BUDGET
from gcspy_server.interpreter.transmission import Snapshot
from gcspy_session.interest import EVERYTHING
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

MS = 1_000_000
COST = 50 * MS


class Costly:
    """A program with one kind of event that takes time to be gathered, as its clock says."""

    def __init__(
        self, *, budget: int | None = 50, acts_on: PauseActsOn = PauseActsOn.PROGRAM
    ) -> None:
        self.now = 1_000 * MS
        self.server = Server(
            "costly",
            events=["collection"],
            time_nanos=lambda: self.now,
            budget=budget,
            pause_acts_on=acts_on,
        )
        self.heap = self.server.add_space("heap", names=UniformNames(0, 1, 4))
        self.used = self.heap.add_stream("used", maximum=255)
        self.size = self.heap.add_stream("size", maximum=255)
        self.stands_in = False
        self.items: list[object] = []

    def event(self) -> bool:
        """Let one happen, 10 ms after the one before."""
        # A session that is behind has events left out as well, which is not what is tested here.
        deadline = time.monotonic() + 60
        while (
            not self.stands_in
            and len(self.server._core.handoff_queue) > 4
            and time.monotonic() < deadline
        ):
            time.sleep(0.001)
        self.now += 10 * MS
        request = self.server.should_transmit(0)
        if request is not None:
            self.now += COST
            for stream in (self.used, self.size):
                if request.wants(self.heap, stream):
                    stream.data[:] = request.occurrence % 256
        self.server.finish(0)
        if self.stands_in:
            self.items += self.server._core.handoff_queue.take()
        return request is not None

    def events(self, number: int) -> list[int]:
        """The occurrence numbers of those that were gathered."""
        first = self.server.counts()[0] + 1
        return [first + at for at in range(number) if self.event()]

    def listened(self) -> None:
        """Stand in for a session: what is handed over waits in the handoff_queue."""
        core = self.server._core
        core.publish()
        core.handoff_queue.open(lambda: None)
        core.set_audience(Audience(clients=1, wants=EVERYTHING))
        self.stands_in = True
        self.events(30)  # the beginning is free
        self.taken()

    def taken(self) -> list[object]:
        """Return the items handed over since the last call."""
        items, self.items = self.items + list(self.server._core.handoff_queue.take()), []
        return items


def test_beyond_the_budget_events_are_counted_and_told_of() -> None:
    target = Costly()
    target.listened()
    gathered = target.events(1000)
    # 50 ms of 5 % is one in a second, in which there are 95 events besides.
    assert 9 <= len(gathered) <= 11
    assert target.server.counts() == (1030,)
    items = target.taken()
    snapshots = [item for item in items if isinstance(item, Snapshot)]
    assert [one.event.occurrence for one in snapshots] == gathered
    assert {one.event.stopped_nanos for one in snapshots} == {COST}
    told = [item for item in items if isinstance(item, m.Budget)]
    assert sum(told[-1].gathered) + sum(told[-1].left_out) > 950
    assert 40_000 < told[-1].spent < 70_000  # the beginning was free
    assert told[-1].every_nanos == 20 * COST


def test_nothing_is_told_twice_in_half_a_second_where_nothing_was_changed() -> None:
    target = Costly()
    target.listened()
    began = target.now
    target.events(1000)
    told = [item for item in target.taken() if isinstance(item, m.Budget)]
    assert 1 < len(told) <= 1 + (target.now - began) // (500 * MS)


def test_without_a_budget_every_event_is_gathered_and_nothing_told() -> None:
    target = Costly(budget=None)
    target.listened()
    assert len(target.events(50)) == 50
    assert not [item for item in target.taken() if isinstance(item, m.Budget)]
    assert target.server.settings == ()


def test_a_filter_goes_by_the_same_numbers_as_ever() -> None:
    target = Costly()
    target.listened()
    target.server._core.set_filters((EventFilter(event=0, period=7),))
    gathered = target.events(1000)
    assert 5 < len(gathered) < 11
    assert not [one for one in gathered if one % 7]


@pytest.mark.parametrize(
    "explicit",
    [EventFilter(event=0, pause=True, period=50), EventFilter(event=0, delay_millis=1, period=50)],
)
def test_events_that_pause_or_delay_are_gathered_whatever_they_cost(explicit: EventFilter) -> None:
    target = Costly()
    target.listened()
    target.server._core.set_filters((explicit,))
    assert [one % 50 for one in target.events(500)] == [0] * 10
    told = [item for item in target.taken() if isinstance(item, m.Budget)]
    assert told[-1].reason == "an event filter pauses or delays"


def test_a_trigger_fires_at_the_very_event_and_only_what_it_needs_is_gathered_for_it() -> None:
    target = Costly()
    target.listened()
    target.server.set_trigger(
        Trigger(
            id=1, expression='max("heap".used) == 200', action=TriggerAction.BOOKMARK, once=True
        )
    )
    used, size = [], []
    target.events(200 - target.server.counts()[0] % 256)
    for item in target.taken():
        if isinstance(item, m.Fired):
            assert item.occurrence % 256 == 200
            break
        if isinstance(item, Snapshot):
            used.append(item)
            size += [part for part in item.parts if part.stream == 1]
    else:
        raise AssertionError("it did not fire")
    assert len(used) > 100  # it read each
    assert 0 < len(size) < 40  # which the budget let be gathered whole only now and then


def test_beside_a_program_that_runs_on_only_what_a_driver_says_and_processor_time_count() -> None:
    target = Costly(acts_on=PauseActsOn.SAMPLING)
    target.listened()
    assert (
        len(target.events(200)) == 200
    )  # by the program's clock it took long; of the processor nothing
    request = target.server.should_transmit(0)
    assert request is not None
    target.server.held(COST)
    target.server.finish(0)
    (snapshot,) = [item for item in target.taken() if isinstance(item, Snapshot)][-1:]
    assert snapshot.event.stopped_nanos == COST
    target.server.held(COST * 10)  # besides an event: what was free is used up
    assert not target.event()


def test_a_client_is_told_of_the_budget_and_the_controller_changes_it_and_steps_over_it(
    serve: Serve, join: Join
) -> None:
    target = Costly(budget=10)
    (address,) = serve(target.server).addresses
    controller, viewer = join(address, control=True), join(address)
    controller.sync()
    assert controller.state.budget is not None
    assert (controller.state.budget.allowed, controller.state.budget.setting) == (10_000, BUDGET)
    target.events(60)
    assert not target.event()  # 50 ms of 1 %: one in five seconds
    controller.send(m.Step())
    controller.sync()
    assert target.server.pausing
    controller.until(lambda: controller.state.state.value == "pausing")

    def let_go() -> None:
        controller.wait_state(ControlState.PAUSED)
        controller.send(m.Resume())

    thread = threading.Thread(target=let_go)
    thread.start()
    assert target.event()
    thread.join()
    controller.send(m.SetSetting(id=BUDGET, value=1000))
    viewer.until(
        lambda: any(
            one.id == BUDGET and one.value == 1000 for one in viewer.state.settings.settings
        )
    )
    assert len(target.events(20)) == 20
    viewer.until(lambda: viewer.state.budget is not None and not viewer.state.budget.limits)


def test_a_lower_level_is_given_between_and_its_cost_is_kept_apart() -> None:
    """The requested level keeps its own cost, so that the user's choice rests on true figures."""
    now = 1_000 * MS
    costs = {1: MS, 2: 2 * MS, 3: 200 * MS}
    described = ServerDescription(
        name="levels",
        events=("collection",),
        levels=("1", "2", "3"),
        level=3,
        pause_acts_on=PauseActsOn.PROGRAM,
    )
    server = described.server(lambda: now, budget=50)
    space = server.add_space("heap", names=UniformNames(0, 1, 4))
    few, objects = space.add_stream("few", maximum=255), space.add_stream("objects", maximum=255)
    core = server._core
    core.publish()
    core.handoff_queue.open(lambda: None)
    core.set_audience(Audience(clients=1, wants=EVERYTHING))
    levels, items = [], list(core.handoff_queue.take())
    for _ in range(2000):
        now += 10 * MS
        server.take_setting(LEVEL)
        request = server.should_transmit(0)
        if request is not None:
            level = min(3, request.level)
            levels.append(level)
            now += costs[level]
            few.data[:] = 1
            if level == 3:
                objects.data[:] = 1
        server.finish(0)
        items += core.handoff_queue.take()
    assert {one: levels.count(one) for one in (1, 2, 3)}[3] in range(3, 7)
    assert levels.count(2) > 100
    (_, told) = server.settings
    assert told.costs[1:] == (2 * MS, 200 * MS)
    budget = core.spending.message
    assert budget is not None
    assert (budget.asked, budget.given, budget.full_nanos) == (3, 2, 8000 * MS)
    assert budget.parts[0] == "level 2 of 3"
    snapshots = [item for item in items if isinstance(item, Snapshot)]
    stale = [one for one in snapshots if not [part for part in one.parts if part.stream == 1]]
    assert len(stale) == levels.count(2) + levels.count(1)


def test_where_one_gathering_takes_long_spaces_take_turns_and_the_others_keep_their_age() -> None:
    now = 1_000 * MS
    server = Server("slow", events=["collection"], time_nanos=lambda: now, budget=50)
    spaces = [
        server.add_space(name, names=UniformNames(0, 1, 4))
        for name in ("one", "two", "three", "four")
    ]
    streams = [space.add_stream("used", maximum=255) for space in spaces]
    core = server._core
    core.publish()
    core.handoff_queue.open(lambda: None)
    core.set_audience(Audience(clients=1, wants=EVERYTHING))
    covered: list[tuple[int, ...]] = []
    items: list[object] = []
    for _ in range(4000):
        now += 10 * MS
        request = server.should_transmit(0)
        if request is not None:
            wanted = [
                stream
                for space, stream in zip(spaces, streams, strict=True)
                if request.wants(space)
            ]
            covered.append(tuple(streams.index(stream) for stream in wanted))
            for stream in wanted:
                now += 50 * MS
                stream.data[:] = request.occurrence % 256
        server.finish(0)
        items += core.handoff_queue.take()
    single = [one for one in covered if len(one) == 1]
    assert len(single) > 10
    assert {len(one) for one in covered} == {1, 4}
    assert [one[0] for one in single[:8]] in [
        [(first + at) % 4 for at in range(8)] for first in range(4)
    ]
    snapshots = [item for item in items if isinstance(item, Snapshot)]
    sent = [
        tuple(sorted({part.space for part in one.parts if part.stream == 0})) for one in snapshots
    ]
    assert sent == [tuple(spaces[at].id for at in one) for one in covered]
    budget = core.spending.message
    assert budget is not None
    assert (budget.covered, budget.spaces, budget.given) == (1, 4, 0)
    assert budget.parts[0] == "1 of 4 spaces in turn"


@pytest.mark.parametrize("exact", [True, False])
def test_an_observer_has_every_event_gathered_only_if_it_wants_that(exact: bool) -> None:
    program = Costly(budget=50)
    program.server.add_observer(lambda _event: None, exact=exact)
    # An event of 50 ms is paid for after 1000 ms at 5 %, and one happens each 10 ms.
    assert program.events(100) == (list(range(1, 101)) if exact else [1, 96])
