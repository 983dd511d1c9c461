"""Triggers over a real socket: the target stops at the very event, and every client learns of it in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.messages import ErrorCode, Message
from gcspy_protocol.model import ControlState, EventFilter
from gcspy_protocol.triggers import MOST_TRIGGERS, TriggerAction, TriggerState

from gcspy_server.api import ServedSession, Server, UniformNames
from gcspy_server.interpreter.core import Audience, TriggersChanged
from gcspy_server.interpreter.transmission import Snapshot
from gcspy_session.interest import Interest
from tests.server.target import END, START, Target
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

AT_THREE = "max(objects) == 300"


class Heap:
    """A target whose largest value says which occurrence it is: 100, 200, 300 and so on."""

    def __init__(self) -> None:
        self.server = Server("heap", events=["start", "end"])
        self.space = self.server.add_space("heap", names=UniformNames(0, 16, 8))
        self.objects = self.space.add_stream("objects", dtype="u2", maximum=1000)
        self.rare = self.space.add_stream("rare", dtype="u2", maximum=1000)
        self.gathered: list[list[str]] = []

    def event(self, kind: int = START, *, values: int | None = None, rare: bool = False) -> bool:
        request = self.server.should_transmit(kind)
        if request is not None:
            wanted = [one for one in (self.objects, self.rare) if request.wants(self.space, one)]
            self.gathered.append([one.name for one in wanted])
            for one in wanted:
                if one is self.objects or rare:
                    self.space.reset(one)
                    one.data[3] = 100 * request.occurrence if values is None else values
        self.server.finish(kind)
        return request is not None


def watch(
    heap: Heap, *, wants: Interest | None = None, interval_nanos: int = 0
) -> Callable[[], list[object]]:
    """Stand in for a session with a controller that never looks; what was posted, as it comes."""
    core = heap.server._core
    core.publish()
    core.handoff_queue.open(lambda: None)
    core.set_audience(
        Audience(clients=1, wants=wants or Interest(None), interval_nanos=interval_nanos)
    )
    return lambda: [
        item
        for item in core.handoff_queue.take()
        if isinstance(item, m.Fired | Snapshot | TriggersChanged | m.State)
    ]


def set_on(heap: Heap, **fields: Any) -> None:
    trigger = m.Trigger(**{"id": 1, "action": TriggerAction.NOTE, **fields})
    heap.server._core.triggers.set(trigger, tuple(space.schema for space in heap.server.spaces))


def fired_at(heap: Heap, values: list[int], **fields: Any) -> list[int]:
    """Occurrences at which a trigger fires, when the largest value is each of these in turn."""
    posted = watch(heap)
    set_on(heap, **fields)
    found = []
    for value in values:
        heap.event(values=value)
        found += [item.occurrence for item in posted() if isinstance(item, m.Fired)]
    return found


# -------------------------------------------------------------------- when it fires


def test_a_trigger_fires_when_its_condition_becomes_true_and_not_while_it_stays_so() -> None:
    assert fired_at(Heap(), [1, 9, 9, 2, 9, 9], expression="max(objects) > 5") == [2, 5]


def test_a_trigger_that_is_to_fire_once_fires_once() -> None:
    heap = Heap()
    assert fired_at(heap, [1, 9, 1, 9], expression="max(objects) > 5", once=True) == [2]
    (status,) = heap.server._core.triggers.announcement().triggers
    assert (status.state, status.fired, status.occurrence) == (TriggerState.OFF, 1, 2)


def test_a_trigger_that_is_not_enabled_does_nothing() -> None:
    assert fired_at(Heap(), [9, 1, 9], expression="max(objects) > 5", enabled=False) == []


def test_a_condition_is_compared_with_the_event_before() -> None:
    assert fired_at(
        Heap(), [10, 11, 30, 31, 90], expression="max(objects) > 2 * was(max(objects))"
    ) == [3, 5]


def test_an_unknown_condition_neither_fires_nor_arms() -> None:
    # It is unknown where the divisor is 0.
    assert fired_at(Heap(), [1, 0, 1, 0, 200, 1], expression="100 / max(objects) > 50") == [1, 6]


def test_a_trigger_sees_the_event_by_its_name() -> None:
    heap = Heap()
    posted = watch(heap)
    set_on(heap, expression="event == 'end' and max(objects) > 0")
    for kind in (START, START, END):
        heap.event(kind)
    (fired,) = [item for item in posted() if isinstance(item, m.Fired)]
    assert (fired.event, fired.occurrence) == (END, 1)


# ----------------------------------------------------------- what it makes the server do


def test_what_a_trigger_needs_is_gathered_though_no_client_wants_it_and_is_not_sent() -> None:
    heap = Heap()
    posted = watch(heap, wants=Interest(((heap.space.id, frozenset({heap.objects.schema.id})),)))
    heap.event()
    set_on(heap, expression="max(rare) > 5")
    heap.event(rare=True)
    assert heap.gathered == [["objects"], ["objects", "rare"]]
    items = posted()
    assert [item.occurrence for item in items if isinstance(item, m.Fired)] == [2]
    sent = {part.stream for item in items if isinstance(item, Snapshot) for part in item.parts}
    assert heap.rare.schema.id not in sent


def test_a_trigger_is_not_looked_at_when_its_streams_were_not_gathered() -> None:
    heap = Heap()
    posted = watch(heap)
    set_on(heap, expression="max(rare) >= was(max(rare))")
    for occurrence in range(1, 7):
        heap.event(rare=occurrence in (1, 4))
    # 400 at the fourth, against 100 at the first: the events between had no value of their own.
    assert [item.occurrence for item in posted() if isinstance(item, m.Fired)] == [4]


def test_a_trigger_sees_the_events_that_clients_find_too_frequent() -> None:
    heap = Heap()
    posted = watch(heap, interval_nanos=1 << 60)
    assert [heap.event() for _ in range(3)] == [True, False, False]
    set_on(heap, expression="max(objects) == 500")
    assert [heap.event() for _ in range(3)] == [True, True, True]
    assert [item.occurrence for item in posted() if isinstance(item, m.Fired)] == [5]


def test_events_that_are_filtered_out_are_not_looked_at() -> None:
    heap = Heap()
    posted = watch(heap)
    heap.server._core.set_filters((EventFilter(event=START, period=2),))
    set_on(heap, expression="max(objects) >= 300")
    for _ in range(4):
        heap.event()
    assert [item.occurrence for item in posted() if isinstance(item, m.Fired)] == [4]


def test_nothing_is_gathered_for_a_trigger_while_nobody_is_there() -> None:
    heap = Heap()
    set_on(heap, expression=AT_THREE)
    assert not heap.event()


def test_a_summary_that_nobody_is_sent_is_there_for_a_trigger() -> None:
    heap = Heap()
    posted = watch(heap, wants=Interest(()))
    set_on(heap, expression="summary(rare) == 200")
    for _ in range(3):
        heap.event(rare=True)
    assert [item.occurrence for item in posted() if isinstance(item, m.Fired)] == [2]


def test_what_looking_at_triggers_took_is_part_of_the_gathering() -> None:
    target = Target(time_nanos=(clock := iter(range(0, 1 << 20, 1000))).__next__)
    core = target.server._core
    core.publish()
    core.handoff_queue.open(lambda: None)
    core.set_audience(Audience(clients=1, wants=Interest(None)))
    target.event()
    core.triggers.set(m.Trigger(id=1, expression="sum(used) < 0"), ())
    target.event()
    before, after = [item.event for item in core.handoff_queue.take() if isinstance(item, Snapshot)]
    assert after.gather_nanos == before.gather_nanos + 1000
    assert next(clock)


# ------------------------------------------------------------------- what goes wrong


def test_a_trigger_waits_for_what_does_not_exist_yet_and_says_so() -> None:
    heap = Heap()
    posted = watch(heap)
    set_on(heap, expression="max(later.size) > 5")
    heap.event()
    (status,) = heap.server._core.triggers.announcement().triggers
    assert status.state is TriggerState.WAITING
    assert "there is no space 'later'; there are 'heap'" in status.why
    later = heap.server.add_space("later", names=UniformNames(0, 1, 2))
    size = later.add_stream("size")
    assert heap.server.should_transmit(START)
    later.reset()
    size.data[0] = 6
    heap.server.finish(START)
    assert [item.occurrence for item in posted() if isinstance(item, m.Fired)] == [2]


def test_a_space_that_goes_takes_the_trigger_back_to_waiting() -> None:
    heap = Heap()
    watch(heap)
    set_on(heap, expression="max(objects) > 5")
    heap.event()
    heap.server.remove_space(heap.space)
    assert heap.server.should_transmit(START)
    heap.server.finish(START)
    (status,) = heap.server._core.triggers.announcement().triggers
    assert status.state is TriggerState.WAITING


def test_a_space_that_comes_does_not_make_a_trigger_forget_the_event_before() -> None:
    heap = Heap()
    posted = watch(heap)
    set_on(heap, expression="max(objects) > was(max(objects))")
    heap.event()
    heap.server.add_space("later", names=UniformNames(0, 1, 2))
    heap.event()
    assert [item.occurrence for item in posted() if isinstance(item, m.Fired)] == [2]


def test_a_trigger_whose_evaluation_breaks_fails_alone_and_the_event_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heap = Heap()
    posted = watch(heap)
    set_on(heap, id=1, expression="max(rare) > 5")
    set_on(heap, id=2, expression="max(objects) > 5")
    from gcspy_server.interpreter.trigger_source import TriggerSource

    real = TriggerSource.stream

    def broken(self: TriggerSource, space: int, stream: int) -> object:
        if stream == heap.rare.schema.id:
            raise MemoryError("no room for this")
        return real(self, space, stream)

    monkeypatch.setattr(TriggerSource, "stream", broken)
    heap.event(rare=True)
    items = posted()
    assert [item.trigger.id for item in items if isinstance(item, m.Fired)] == [2]
    assert len([item for item in items if isinstance(item, Snapshot)]) == 1
    one, _ = heap.server._core.triggers.announcement().triggers
    assert (one.state, one.why) == (TriggerState.FAILED, "MemoryError: no room for this")


# ------------------------------------------------------------- over a real connection


def notable(message: Message) -> str:
    """The part of the diary that matters here."""
    match message:
        case m.Event():
            return f"event {message.occurrence}"
        case m.Fired():
            return f"fired {message.trigger.id}{' pauses' if message.pauses else ''}"
        case m.State():
            return message.state.value
        case _:
            return ""


def diary(viewer: Viewer) -> list[str]:
    return [text for text in map(notable, viewer.diary) if text]


def set_by(viewer: Viewer, expression: str, **fields: Any) -> m.Triggers:
    viewer.send(m.Trigger(**{"id": 1, "expression": expression, **fields}))
    return viewer.next(m.Triggers)


def test_the_target_stands_at_the_event_and_everybody_hears_event_fired_paused_in_this_order(
    serve: Serve, join: Join
) -> None:
    target = Target()
    (address,) = serve(target).addresses
    controller, viewer = join(address, control=True), join(address)
    told = set_by(controller, "occurrence == 3 and sum(used) >= 0", note="the third")
    assert told.triggers[0].state is TriggerState.ARMED
    with target.running(*[START] * 5) as progress:
        for one in (controller, viewer):
            one.wait_state(ControlState.PAUSED)
            assert diary(one)[-3:] == ["event 3", "fired 1 pauses", "paused"]
            assert one.state.state_reason == "trigger 1: the third"
            one.assert_has(target.heap)
        assert progress.events == 2
        fired = controller.state.fired
        assert fired is not None
        assert [operand.text for operand in fired.operands] == ["sum(used)"]
        assert fired.operands[0].value == int(target.used._values.sum())
        assert (fired.operands[0].covered, fired.operands[0].tiles) == (64, 64)
        controller.send(m.Resume())
        controller.until_events(5)
    assert controller.state.triggers.fired == 1


def test_the_controller_gets_the_event_at_which_the_target_stands_however_few_it_wants(
    serve: Serve, join: Join
) -> None:
    target = Target()
    (address,) = serve(target).addresses
    controller = join(address, control=True)
    controller.send(m.Subscribe(max_rate_hz=0.001))
    controller.sync()
    set_by(controller, "occurrence == 3 and sum(used) >= 0")
    with target.running(*[START] * 3):
        controller.wait_state(ControlState.PAUSED)
        assert diary(controller)[-3:] == ["event 3", "fired 1 pauses", "paused"]
        controller.assert_has(target.heap)
        controller.send(m.Resume())


def test_a_step_that_ends_at_a_trigger_says_the_trigger(serve: Serve, join: Join) -> None:
    target = Target()
    (address,) = serve(target).addresses
    controller = join(address, control=True, pause=True)
    set_by(controller, "occurrence == 2")
    with target.running(*[START] * 2):
        controller.wait_state(ControlState.PAUSED)
        controller.send(m.Step())
        controller.wait_state(ControlState.PAUSING)
        controller.wait_state(ControlState.PAUSED)
        assert controller.state.state_reason == "trigger 1: occurrence == 2"
        controller.send(m.Resume())


def test_without_a_controller_a_trigger_tells_and_holds_nothing(serve: Serve, join: Join) -> None:
    target = Target()
    (address,) = serve(target).addresses
    viewer = join(address)
    target.server._core.triggers.set(m.Trigger(id=7, expression="occurrence == 2"), ())
    with target.running(*[START] * 4):
        viewer.until_events(4)
    viewer.sync()
    assert "fired 7" in diary(viewer)
    assert "paused" not in diary(viewer)


def test_a_viewer_may_not_set_a_trigger(serve: Serve, join: Join) -> None:
    (address,) = serve(Target()).addresses
    join(address, control=True)
    viewer = join(address)
    viewer.send(m.Trigger(id=1, expression="occurrence > 5"))
    assert viewer.next(m.Error).code is ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("sum(used", "the ( is never closed (at character 4)"),
        ("sum(used)", "a condition is needed"),
        ("used > 5", "count(…) > 0"),
        ("__import__('os')", "there is no function __import__"),
        ("(" * 900, "levels of parentheses"),
        ("1" + "+1" * 499, "too long"),
        ("x" * 60_000, "at most 1000"),
        ("\ud7ff\0\n> 1", "no meaning"),
        ("used.used.used > 1", "unexpected here"),
    ],
)
def test_a_malformed_expression_is_refused_with_its_place_and_changes_nothing(
    serve: Serve, join: Join, expression: str, why: str
) -> None:
    target = Target()
    (address,) = serve(target).addresses
    controller = join(address, control=True)
    set_by(controller, "occurrence == 99")
    controller.send(m.Trigger(id=1, expression=expression))
    error = controller.next(m.Error)
    assert error.code is ErrorCode.BAD_REQUEST
    assert why in error.message
    assert "at character" in error.message
    (left,) = target.server._core.triggers.announcement().triggers
    assert left.trigger.expression == "occurrence == 99"
    with target.running(START):
        controller.until_events(1)


def test_there_is_a_limit_to_triggers_and_removing_one_makes_room(serve: Serve, join: Join) -> None:
    (address,) = serve(Target()).addresses
    controller = join(address, control=True)
    for number in range(MOST_TRIGGERS):
        set_by(controller, "occurrence == 0", id=number)
    controller.send(m.Trigger(id=MOST_TRIGGERS, expression="occurrence == 0"))
    assert "the maximum" in controller.next(m.Error).message
    assert len(set_by(controller, "", id=5).triggers) == MOST_TRIGGERS - 1
    assert len(set_by(controller, "occurrence == 0", id=MOST_TRIGGERS).triggers) == MOST_TRIGGERS


def test_who_comes_late_is_told_of_the_triggers(serve: Serve, join: Join) -> None:
    (address,) = serve(Target()).addresses
    controller = join(address, control=True)
    told = set_by(controller, "max(size) > 5", space="nowhere", action=TriggerAction.BOOKMARK)
    late = join(address)
    late.sync()
    assert late.state.triggers == told
    assert told.triggers[0].state is TriggerState.WAITING
    assert told.triggers[0].why == "there is no space 'nowhere' (at character 1)"


def test_a_trigger_that_fires_all_the_time_does_not_cost_a_slow_viewer_its_connection(
    serve: Serve, join: Join
) -> None:
    target = Target(tiles=4)
    (address,) = serve(target).addresses
    controller = join(address, control=True)
    slow = join(address)
    set_by(controller, "occurrence % 2 == 0", action=TriggerAction.NOTE)
    for _ in range(800):  # many more than its queue takes, and its socket
        target.event()
        controller.event()
    slow.until(lambda: slow.state.triggers.fired == 400 and bool(slow.seen(m.Missed)))
    assert len(slow.seen(m.Fired)) < 400
    assert not slow.seen(m.Error)
