"""Events without clients: counting, filters, and requests. An observer stands for the clients."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from gcspy_protocol.codec import decode
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.frames.frame import HEADER, Header, inflate
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Event, State, StreamKey, Subscription
from gcspy_protocol.model import ControlState, EventFilter
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.api import EventForecast, Server, UniformNames
from gcspy_server.interpreter.core import Audience
from gcspy_server.interpreter.transmission import KeyframeSource, Snapshot
from gcspy_session.interest import EVERYTHING, NOTHING, Interest, union_of
from tests.server.target import END, START, Target


class Clock:
    """A clock that stands still until the test advances it."""

    def __init__(self) -> None:
        self.nanos = 1_000

    def __call__(self) -> int:
        return self.nanos


def watched(clock: Clock | None = None) -> tuple[Target, list[Event]]:
    target = Target(time_nanos=clock)
    events: list[Event] = []
    target.server.add_observer(events.append)
    return target, events


def listening(target: Target, *, wants: Interest = EVERYTHING, interval_nanos: int = 0) -> None:
    """Stand in for a session: what is handed over waits for `snapshots`."""
    core = target.server._core
    core.publish()
    core.handoff_queue.open(lambda: None)
    core.set_audience(Audience(clients=1, wants=wants, interval_nanos=interval_nanos))


def snapshots(target: Target) -> list[Snapshot]:
    return [item for item in target.server._core.handoff_queue.take() if isinstance(item, Snapshot)]


def test_nobody_connected_means_nothing_is_gathered_but_everything_counted() -> None:
    target = Target()
    assert not target.event(START)
    assert not target.event(START)
    target.server.skip(END)
    assert target.server.counts() == (2, 1)
    assert target.gathered == []


@given(period=st.integers(1, 7), events=st.integers(0, 30))
def test_the_gathering_test_and_the_event_agree_on_the_occurrence(period: int, events: int) -> None:
    target, seen = watched()
    target.server._core.set_filters((EventFilter(event=START, period=period),))
    for _ in range(events):
        target.event(START)
    expected = [n for n in range(1, events + 1) if n % period == 0]
    # The original gathered at one number and sent with the next: data and event did not belong together.
    assert [occurrence for _, occurrence in target.gathered] == expected
    assert [event.occurrence for event in seen] == expected
    assert target.server.counts() == (events, 0)


def test_the_data_of_an_event_are_those_gathered_for_its_occurrence() -> None:
    target = Target()
    listening(target)
    target.server._core.set_filters((EventFilter(event=START, period=3),))
    for _ in range(9):
        target.event(START)
    for snapshot in snapshots(target):
        assert snapshot.event.occurrence % 3 == 0
    assert target.objects.data[0] == 9


def test_a_filter_that_changes_while_data_are_gathered_applies_to_the_next_event() -> None:
    target, seen = watched()
    assert target.server.should_transmit(START)
    target.server._core.set_filters((EventFilter(event=START, enabled=False),))
    target.fill()
    target.server.finish(START)
    assert [event.occurrence for event in seen] == [1]
    assert not target.event(START)
    assert [event.occurrence for event in seen] == [1]
    assert target.server.counts() == (2, 0)


def test_disabled_events_are_counted_and_not_gathered() -> None:
    target, seen = watched()
    target.server._core.set_filters((EventFilter(event=END, enabled=False),))
    for kind in (START, END, END, START):
        target.event(kind)
    assert target.server.counts() == (2, 2)
    assert [(event.event, event.occurrence) for event in seen] == [(START, 1), (START, 2)]


def test_skipping_an_event_that_is_being_gathered_is_refused() -> None:
    target, _ = watched()
    assert target.server.should_transmit(START)
    with pytest.raises(LocalProtocolError, match="being gathered"):
        target.server.skip(START)
    target.server.skip(END)


def test_finishing_another_event_than_the_one_asked_for_sends_nothing() -> None:
    target, seen = watched()
    assert target.server.should_transmit(START)
    target.server.finish(END)
    target.server.finish(START)
    assert seen == []
    assert target.server.counts() == (1, 1)


def test_gathering_is_timed_and_the_event_stands_where_it_was_asked_for() -> None:
    clock = Clock()
    target, seen = watched(clock=clock)
    assert target.server.should_transmit(START)
    clock.nanos += 250
    target.server.finish(START, "allocation failure", ("allocated bytes", 1 << 40))
    (event,) = seen
    assert (event.time_nanos, event.gather_nanos) == (1_000, 250)
    assert (event.cause, event.program_clock) == (
        "allocation failure",
        ("allocated bytes", 1 << 40),
    )


def test_what_nobody_subscribed_to_is_not_asked_for_and_not_sent() -> None:
    target = Target()
    wants = Interest.of([Subscription(space=target.heap.id, streams=(1,))])
    listening(target, wants=wants)
    request = target.server.should_transmit(START)
    assert request is not None
    assert request.wants(target.heap)
    assert request.wants(target.heap, target.objects)
    assert not request.wants(target.heap, target.used)
    assert not request.wants(target.lists)
    target.fill()
    target.server.finish(START)
    (snapshot,) = snapshots(target)
    assert {(part.space, part.stream) for part in snapshot.parts} == {
        (target.heap.id, None),
        (target.heap.id, 1),
    }


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.dictionaries(st.integers(0, 3), st.one_of(st.none(), st.sets(st.integers(0, 3)))),
        )
    )
)
def test_the_union_wants_what_any_of_its_parts_wants(
    parts: list[dict[int, set[int] | None] | None],
) -> None:
    wants = [
        Interest.of(
            None
            if part is None
            else [
                Subscription(space=s, streams=None if n is None else tuple(n))
                for s, n in part.items()
            ]
        )
        for part in parts
    ]
    union = union_of(wants)
    for space in range(4):
        assert union.has(space) == any(one.has(space) for one in wants)
        for stream in range(4):
            assert union.has(space, stream) == any(one.has(space, stream) for one in wants)


def test_the_union_of_nobody_wants_nothing() -> None:
    assert union_of([]) == NOTHING


def test_no_more_events_than_the_fastest_client_wants() -> None:
    clock = Clock()
    target = Target(time_nanos=clock)
    listening(target, interval_nanos=100)
    asked = []
    for _ in range(10):
        asked.append(target.event(START))
        clock.nanos += 40
    assert asked == [True, False, False, True, False, False, True, False, False, True]
    assert target.server.counts() == (10, 0)


def test_a_session_that_does_not_take_what_is_handed_over_stops_the_gathering() -> None:
    target = Target()
    listening(target)
    asked = [target.event(START) for _ in range(100)]
    assert asked.count(True) < 20
    snapshots(target)
    assert target.event(START)


def test_streams_that_were_not_gathered_are_not_sent() -> None:
    target = Target()
    listening(target)
    target.event(START)
    snapshots(target)
    assert target.server.should_transmit(END)
    target.heap.reset(target.used)
    target.server.finish(END)
    (snapshot,) = snapshots(target)
    assert (target.heap.id, target.used.schema.id) in {(p.space, p.stream) for p in snapshot.parts}
    assert (target.heap.id, target.objects.schema.id) not in {
        (p.space, p.stream) for p in snapshot.parts
    }
    assert target.lists.id not in {p.space for p in snapshot.parts}


def test_what_was_touched_between_events_does_not_count_as_gathered() -> None:
    target = Target()
    listening(target)
    target.event(START)
    snapshots(target)
    target.objects.data[:] = 9
    assert target.server.should_transmit(START)
    target.server.finish(START)
    (snapshot,) = snapshots(target)
    assert snapshot.parts == []


def test_an_accumulating_stream_is_always_sent() -> None:
    server = Server("x", events=["tick"])
    space = server.add_space("s", names=UniformNames(0, 8, 4))
    total = space.add_stream("allocated", accumulates=True)
    core = server._core
    core.handoff_queue.open(lambda: None)
    core.set_audience(Audience(clients=1, wants=EVERYTHING))
    space.count_at(total, [0, 8, 8])
    assert server.should_transmit(0)
    server.finish(0)
    sent = [
        p.stream
        for item in core.handoff_queue.take()
        if isinstance(item, Snapshot)
        for p in item.parts
    ]
    assert total.schema.id in sent


def test_a_space_is_not_removed_within_an_event() -> None:
    target, _ = watched()
    assert target.server.should_transmit(START)
    with pytest.raises(LocalProtocolError, match="within an event"):
        target.server.remove_space(target.lists)


def test_clients_of_the_same_subscription_share_one_object() -> None:
    target = Target()
    listening(target)
    target.event(START)
    (snapshot,) = snapshots(target)
    subscription = [Subscription(space=target.heap.id)]
    assert snapshot.bytes_for(EVERYTHING) is snapshot.bytes_for(Interest(None))
    assert snapshot.bytes_for(Interest.of(subscription)) is snapshot.bytes_for(
        Interest.of(subscription)
    )
    assert snapshot.bytes_for(Interest.of(subscription)) != snapshot.bytes_for(EVERYTHING)


def test_a_keyframe_is_copied_once_a_snapshot() -> None:
    target = Target()
    listening(target)
    core = target.server._core
    target.event(START)
    core.post_keyframe()
    core.post_keyframe()
    first, second = core.handoff_queue.take()[-2:]
    assert first is second
    target.event(START)
    core.post_keyframe()
    assert core.handoff_queue.take()[-1] is not first


def test_a_keyframe_does_not_change_with_what_comes_after_it() -> None:
    target = Target()
    listening(target)
    core = target.server._core
    target.event(START)
    core.post_keyframe()
    source = core.handoff_queue.take()[-1]
    assert isinstance(source, KeyframeSource)
    before = target.used.data.copy()
    target.event(START)
    assert not np.array_equal(before, target.used.data)
    frames = [
        part.frame
        for part in source.encode().parts
        if (part.space, part.stream) == (target.heap.id, 0)
    ]
    header = Header._make(HEADER.unpack_from(frames[0].data))
    key = decode(
        header, inflate(header, frames[0].data[HEADER.size :], CLIENT_LIMITS, 0), CLIENT_LIMITS
    )
    assert isinstance(key, StreamKey)
    np.testing.assert_array_equal(key.values, before)


def test_waiting_for_a_client_ends_when_one_comes() -> None:
    target = Target()
    assert not target.server.wait_for_client(0)
    came: list[bool] = []
    thread = threading.Thread(target=lambda: came.append(target.server.wait_for_client(10)))
    thread.start()
    target.server._core.set_audience(Audience(clients=1, wants=EVERYTHING))
    thread.join(60)
    assert came == [True]


def test_what_stands_nearer_to_the_events_learns_which_of_them_anybody_wants() -> None:
    target = Target()
    assert target.server.outlook(START) == EventForecast(), "nobody is there"
    target.server.add_observer(lambda _event: None)
    target.server._core.set_filters(
        (EventFilter(event=START, period=3), EventFilter(event=END, enabled=False))
    )
    found = target.server.outlook(START), target.server.outlook(END)
    assert found == (EventForecast(3, exact=True), EventForecast())
    target.server.skip(START, 2)
    assert target.event(START), "the third"
    assert target.server.counts() == (3, 0)
    target.server.end("over")
    assert target.server.outlook(START) == EventForecast()


def test_what_is_left_out_for_a_full_queue_is_lost_and_what_a_filter_or_a_rate_leaves_out_is_not() -> (
    None
):
    clock = Clock()
    target = Target(time_nanos=clock)
    listening(target, interval_nanos=10)
    target.server._core.set_filters((EventFilter(event=END, enabled=False),))
    sent = 0
    while target.event(START):
        target.event(START)  # too soon
        target.event(END)
        clock.nanos += 10
        sent += 1
    assert (target.server._core.lost, len(snapshots(target))) == (1, sent)


@pytest.mark.parametrize(
    ("untold", "enabled", "watched", "lost"),
    [(True, True, True, 2), (False, True, True, 0), (True, False, True, 0), (True, True, False, 0)],
)
def test_what_was_not_told_and_somebody_wanted_is_lost(
    untold: bool, enabled: bool, watched: bool, lost: int
) -> None:
    target = Target()
    if watched:
        listening(target)
    target.server._core.set_filters((EventFilter(event=START, period=3, enabled=enabled),))
    target.server.skip(START, 7, untold=untold)
    assert target.server._core.lost == lost
    assert target.server.counts() == (7, 0)


def test_what_was_not_told_is_lost_by_the_numbers_that_a_filter_goes_by() -> None:
    target = Target()
    listening(target)
    target.server._core.set_filters((EventFilter(event=START, period=3),))
    lost = []
    for times in (2, 1, 5, 1):  # 3, 6 and 9 were wanted
        target.server.skip(START, times, untold=True)
        lost.append(target.server._core.lost)
    assert lost == [0, 1, 2, 3]


def test_what_a_driver_does_not_take_is_lost_without_a_budget() -> None:
    target = Target()
    listening(target)
    target.server.leave_out(START)
    assert (target.server._core.lost, target.server.counts()) == (1, (1, 0))


def test_while_an_event_is_gathered_the_outlook_is_that_after_it() -> None:
    clock = Clock()
    target = Target(time_nanos=clock)
    listening(target, interval_nanos=100)
    assert target.event(START)
    assert target.server.outlook(START) == EventForecast(1, 1_100, exact=True)
    clock.nanos = 5_000
    assert target.server.should_transmit(START)
    assert target.server.outlook(START) == EventForecast(1, 5_100, exact=True)


def test_a_pause_that_cannot_hold_at_an_event_holds_at_the_next_that_can() -> None:
    target = Target()
    target.server.add_observer(lambda _event: None)
    flow = target.server._core.flow
    flow.pulse()
    flow.set_controlled(True)
    target.server._core.set_filters((EventFilter(event=START, pause=True),))
    assert target.server.should_transmit(START)
    target.fill()
    target.server.finish(START, holds=False)  # it would not come back if it held
    assert flow.state == State(state=ControlState.PAUSING, reason="event filter")
    flow.let_go_when(lambda: "the test has seen enough")
    target.event(END)
    assert flow.state == State(state=ControlState.RUNNING, reason="the test has seen enough")


def test_an_observer_that_reads_one_space_has_only_that_gathered_and_clients_get_theirs() -> None:
    target = Target()
    target.server.add_observer(lambda _event: None, lambda space: space is target.heap)
    request = target.server.should_transmit(START)
    assert request is not None
    assert request.wants(target.heap, target.used)
    assert not request.wants(target.lists)
    target.server.finish(START)
    listening(target, wants=Interest.of([Subscription(space=target.lists.id)]))
    both = target.server.should_transmit(START)
    assert both is not None
    assert both.wants(target.heap)
    assert both.wants(target.lists)
    target.server.finish(START)
    target.server.add_observer(lambda _event: None)
    everything = target.server.should_transmit(START)
    assert everything is not None
    assert everything.audience == EVERYTHING
