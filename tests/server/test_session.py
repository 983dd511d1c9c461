"""Clients on real sockets: their messages, the order of these, and that they agree with the target."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import Refused
from gcspy_protocol.messages import ErrorCode
from gcspy_protocol.model import EventFilter

from gcspy.connection.link import connect
from gcspy_server.api import (
    ExtentNames,
    ServedSession,
    Server,
    SessionOptions,
    StringNames,
    UniformNames,
)
from tests.server.conftest import EndLog
from tests.server.target import END, START, Target
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]


def test_a_viewer_has_what_the_driver_filled_in(serve: Serve, join: Join) -> None:
    target = Target()
    viewer = join(serve(target).addresses[0])
    assert target.server.wait_for_client(10)
    for occurrence in range(1, 6):
        target.event(START, cause="allocation failure")
        event = viewer.event()
        assert (event.event, event.occurrence, event.cause) == (
            START,
            occurrence,
            "allocation failure",
        )
        viewer.assert_has(target.heap)
        viewer.assert_has(target.lists)
    assert viewer.state.missed_total == 0


def test_what_was_gathered_for_an_event_is_in_that_event(serve: Serve, join: Join) -> None:
    target = Target()
    viewer = join(serve(target).addresses[0], control=True)
    viewer.send(
        m.SetFilters(
            filters=(EventFilter(event=START, period=3), EventFilter(event=END, enabled=False))
        )
    )
    viewer.next(m.Filters)
    for _ in range(10):
        target.event(START)
        target.event(END)
    for occurrence in (3, 6, 9):
        assert (viewer.event().occurrence, START) == (occurrence, START)
        assert (
            viewer.state.spaces[target.heap.id].streams[target.objects.schema.id].values[0]
            == occurrence
        )
    assert target.gathered == [(START, 3), (START, 6), (START, 9)]


def test_counters_count_filtered_events_too(serve: Serve, join: Join) -> None:
    target = Target()
    viewer = join(serve(target).addresses[0], control=True)
    viewer.send(m.SetFilters(filters=(EventFilter(event=END, enabled=False),)))
    viewer.next(m.Filters)
    for _ in range(7):
        target.event(END)
    target.event(START)
    viewer.event()
    assert viewer.next(m.Counters).counts == (1, 7)
    for _ in range(5):
        target.event(END)
    # Nothing is transmitted any more: now the session's own pulse reports it.
    assert viewer.next(m.Counters).counts == (1, 12)


def test_a_late_joiner_equals_an_early_viewer(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    early = join(address)
    for _ in range(3):
        target.event(START)
    target.heap.info = "after the third"
    target.heap.resize(UniformNames(0x1000, 0x100, 80))
    target.event(END)
    # At this event only one stream is gathered: the others are stale, for both.
    assert target.server.should_transmit(START)
    target.heap.reset(target.used)
    target.used.set_unknown([5, 6])
    target.server.finish(START)
    early.until_events(5)
    late = join(address)
    late.event()
    assert late.changes[0].event.keyframe
    assert late.changes[0].event.cached
    late.assert_equals(early)
    assert late.state.missed_total == 0
    target.event(END)
    for viewer in (early, late):
        viewer.event()
    late.assert_equals(early)
    late.assert_has(target.heap)


def test_a_server_that_served_before_gives_its_latest_snapshot_again(
    serve: Serve, join: Join
) -> None:
    target = Target()
    with serve(target) as first:
        join(first.addresses[0])
        target.event(START)
    target.event(START)
    assert target.gathered == [(START, 1)]
    again = join(serve(target).addresses[0])
    assert again.event().occurrence == 1
    assert again.state.counters == (2, 0)
    target.event(END)
    again.event()
    again.assert_has(target.heap)


def test_a_keyframe_is_of_the_schema_that_the_client_was_told(serve: Serve, join: Join) -> None:
    target = Target()
    with serve(target) as first:
        viewer = join(first.addresses[0])
        target.event(START)
        viewer.event()
    target.server.remove_space(target.lists)
    extra = target.server.add_space("nursery", names=UniformNames(0x9000, 0x10, 4))
    again = join(serve(target).addresses[0])
    # The snapshot is older than the schema: it is repeated without the space that is gone.
    assert again.event().epoch == viewer.state.epoch + 1
    assert set(again.state.spaces) == {target.heap.id, extra.id}
    again.assert_has(target.heap)


def test_when_the_last_client_leaves_nothing_is_gathered_any_more(
    serve: Serve, join: Join, ended: EndLog
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    one, other = join(address), join(address)
    one.until(lambda: len(one.state.clients.clients) == 2)
    one.send(m.Subscribe(spaces=(m.Subscription(space=target.heap.id),)))
    one.sync()
    other.send(m.Subscribe(spaces=(m.Subscription(space=target.lists.id),)))
    other.sync()
    other.link.close()
    one.until(lambda: len(one.state.clients.clients) == 1)
    request = target.server.should_transmit(START)
    assert request is not None
    assert not request.wants(target.lists)
    target.server.finish(START)
    one.link.close()
    ended.normal(2)
    assert not target.event(START)


def test_a_client_that_does_not_keep_up_gets_back_in_step(serve: Serve, join: Join) -> None:
    target = Target(tiles=300_000)
    address = serve(target, options=SessionOptions(queued_events=2)).addresses[0]
    slow, witness = join(address), join(address)
    for occurrence in range(1, 13):
        target.event(START)  # some 1.5 MB, more than a socket takes
        assert witness.event().occurrence == occurrence
    slow.until(lambda: bool(slow.changes) and slow.changes[-1].event.occurrence == 12)
    assert witness.state.missed_total == 0
    assert slow.state.missed_total > 0
    assert slow.state.missed_total + len(slow.changes) == 12
    slow.assert_equals(witness)
    target.event(END)
    for viewer in (slow, witness):
        viewer.event()
    slow.assert_equals(witness)
    slow.assert_has(target.heap)


def test_a_freed_extent_in_the_middle_moves_nobody(serve: Serve, join: Join) -> None:
    server = Server("arenas", events=["tick"])
    bases = [0x100000 * i for i in (3, 1, 7, 5, 9)]
    space = server.add_space("arenas", names=ExtentNames(bases, [0x1000] * 5))
    stream = space.add_stream("used", maximum=99)
    viewer = join(serve(server).addresses[0])

    def tick(values: list[int]) -> None:
        request = server.should_transmit(0)
        assert request is not None
        space.reset()
        stream.data[:] = values
        server.finish(0)
        viewer.event()

    tick([3, 1, 7, 5, 9])
    space.resize(ExtentNames([*bases[:2], *bases[3:], 0xB00000], [0x1000] * 5))
    tick([3, 1, 5, 9, 11])
    state = viewer.state.spaces[space.id]
    by_key = {state.names.key(i): int(state.streams[0].values[i]) for i in range(state.count)}
    assert by_key == {0x300000: 3, 0x100000: 1, 0x500000: 5, 0x900000: 9, 0xB00000: 11}
    # Nothing but the new tile had to be sent: the rest moved with its keys.
    changed = viewer.changes[-1].changed[space.id, 0]
    assert changed is not None
    assert changed.tolist() == [4]


def test_spaces_come_and_go_between_events(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    viewer = join(address)
    target.event(START)
    viewer.event()
    epoch = viewer.state.epoch
    extra = target.server.add_space("nursery", names=UniformNames(0x9000, 0x10, 4))
    extra.add_stream("age", default=3)
    target.server.remove_space(target.lists)
    target.event(START)
    viewer.event()
    assert set(viewer.state.spaces) == {target.heap.id, extra.id}
    assert viewer.state.epoch == epoch + 1
    late = join(address)
    late.event()
    late.assert_equals(viewer)
    again = target.server.add_space("nursery", names=UniformNames(0x9000, 0x10, 4))
    assert again.id not in (target.heap.id, target.lists.id, extra.id)


def test_each_client_gets_what_it_subscribed_to(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    one, other = join(address), join(address)
    one.send(m.Subscribe(spaces=(m.Subscription(space=target.lists.id),)))
    other.send(
        m.Subscribe(
            spaces=(m.Subscription(space=target.heap.id, streams=(target.used.schema.id,)),)
        )
    )
    for viewer in (one, other):
        viewer.sync()
    request = target.server.should_transmit(START)
    assert request is not None
    assert request.wants(target.lists)
    assert request.wants(target.heap, target.used)
    assert not request.wants(target.heap, target.objects)
    target.fill()
    target.server.finish(START)
    for viewer in (one, other):
        viewer.event()
    one.assert_has(target.lists)
    assert one.state.spaces[target.heap.id].count == 0
    heap = other.state.spaces[target.heap.id]
    assert heap.streams[target.used.schema.id].sequence == 1
    assert heap.streams[target.objects.schema.id].sequence == 0
    # Wanting more later brings a keyframe, and deltas after it apply.
    one.send(m.Subscribe())
    assert one.event().keyframe
    target.event(END)
    for viewer in (one, other):
        viewer.event()
    one.assert_has(target.heap)
    one.assert_has(target.lists)


def test_a_subscription_to_what_does_not_exist_is_refused_and_changes_nothing(
    serve: Serve, join: Join
) -> None:
    target = Target()
    viewer = join(serve(target).addresses[0])
    viewer.send(m.Subscribe(spaces=(m.Subscription(space=99),)))
    assert viewer.next(m.Error).code is ErrorCode.BAD_REQUEST
    viewer.send(m.Subscribe(spaces=(m.Subscription(space=target.heap.id, streams=(0, 77)),)))
    assert "[77]" in viewer.next(m.Error).message
    target.event(START)
    viewer.event()
    viewer.assert_has(target.lists)


def test_a_client_that_wants_fewer_events_gets_fewer_and_the_others_all(
    serve: Serve, join: Join
) -> None:
    now = [0]
    target = Target(time_nanos=lambda: now[0])
    address = serve(target).addresses[0]
    few, every = join(address), join(address)
    few.send(m.Subscribe(max_rate_hz=10))
    few.sync()
    for _ in range(20):
        now[0] += 40_000_000
        target.event(START)
        every.event()
    few.until(lambda: few.changes[-1].event.occurrence >= 16 if few.changes else False)
    assert [change.event.occurrence for change in every.changes] == list(range(1, 21))
    times = [change.event.time_nanos for change in few.changes]
    assert all(b - a >= 100_000_000 for a, b in pairwise(times))
    assert few.state.missed_total > 0


def test_names_of_tiles_are_fetched_a_page_at_a_time(serve: Serve, join: Join) -> None:
    server = Server("classes", events=["tick"])
    space = server.add_space(
        "size classes", names=StringNames([f"{16 * i} bytes" for i in range(1, 33)])
    )
    space.add_stream("blocks")
    viewer = join(serve(server).addresses[0])
    assert server.should_transmit(0)
    space.reset()
    server.finish(0)
    viewer.event()
    viewer.send(m.TileNamesRequest(space=space.id, first=30, count=10))
    assert viewer.next(m.TileNames).names == ("496 bytes", "512 bytes")
    assert viewer.state.spaces[space.id].names.name(31) == "512 bytes"
    for request in (
        m.TileNamesRequest(space=space.id, first=32, count=1),
        m.TileNamesRequest(space=9, first=0, count=1),
    ):
        viewer.send(request)
        assert viewer.next(m.Error).code is ErrorCode.BAD_REQUEST


def test_the_end_of_the_target_is_told_and_clients_keep_what_they_have(
    serve: Serve, join: Join
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    viewer = join(address)
    target.event(START)
    target.server.end("process 4711 has exited")
    viewer.until(lambda: bool(viewer.state.state_reason))
    assert (viewer.state.state.value, viewer.state.state_reason) == (
        "ended",
        "process 4711 has exited",
    )
    assert not target.event(START)
    viewer.assert_has(target.heap)
    late = join(address)
    assert late.state.state.value == "ended"
    late.event()
    late.assert_equals(viewer)


def test_closing_the_server_says_goodbye_after_what_was_queued(serve: Serve, join: Join) -> None:
    target = Target()
    listening = serve(target)
    viewer = join(listening.addresses[0])
    target.event(START)
    target.server.end("over")
    listening.close()
    goodbye = viewer.next(m.Goodbye)
    assert goodbye.reason
    assert [change.event.occurrence for change in viewer.changes] == [1]
    assert viewer.state.state.value == "ended"


def test_closing_the_server_does_not_wait_for_a_client_that_reads_nothing(
    serve: Serve, join: Join
) -> None:
    target = Target(tiles=300_000)
    listening = serve(target)
    join(listening.addresses[0])
    for _ in range(5):
        target.event(START)
    listening.close()  # within its two seconds; a socket left open would be a warning, which is an error here
    gc.collect()


def test_no_socket_is_left_behind(serve: Serve, socket_directory: Path) -> None:
    listening = serve(Target())
    path = Path(listening.addresses[0].removeprefix("unix:"))
    assert path.is_socket()
    listening.close()
    assert not path.exists()
    listening.close()


def test_one_client_too_many_is_told_so(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target, options=SessionOptions(max_clients=1)).addresses[0]
    first = join(address)
    with pytest.raises(Refused, match="1 clients are connected") as refused:
        connect(address)
    assert refused.value.code == "busy"
    target.event(START)
    first.event()


def test_a_session_without_clients_gathers_nothing_any_more(serve: Serve, join: Join) -> None:
    target = Target()
    with serve(target) as listening:
        viewer = join(listening.addresses[0])
        target.event(START)
        viewer.event()
    assert not target.server._core.live
    assert not target.event(START)
    assert target.server.counts() == (2, 0)


def test_what_the_server_lost_is_missed_by_all_who_were_there_and_needs_no_keyframe(
    serve: Serve, join: Join
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    first = join(address)
    assert target.server.wait_for_client(10)
    target.event(START)
    first.event()
    target.server.skip(START, 3, untold=True)
    first.until(lambda: first.state.missed_total == 3)  # within a second, without an event
    second = join(address)
    second.event()
    target.server.skip(END, 2, untold=True)
    target.event(START)
    for viewer in (first, second):
        event = viewer.event()
        assert (event.occurrence, event.keyframe) == (5, False)
        viewer.assert_has(target.heap)
    assert (first.state.missed_total, second.state.missed_total) == (5, 2)
    assert [one.events for one in first.seen(m.Missed)] == [3, 2]


@pytest.mark.parametrize("how", ["the target ends", "the server is closed"])
def test_one_that_is_behind_at_the_end_gets_the_last_event_and_is_told_what_it_missed(
    serve: Serve, join: Join, how: str
) -> None:
    target = Target()
    listening = serve(target)
    few = join(listening.addresses[0])
    few.send(m.Subscribe(max_rate_hz=0.001))
    few.sync()
    target.server.add_observer(lambda _event: None)  # none is left out for its rate
    target.event(START)
    few.event()
    for _ in range(3):
        target.event(START)
    if how == "the target ends":
        target.server.end("gone")
        few.next(m.State)
    else:
        closing = threading.Thread(target=listening.close)
        closing.start()
        few.next(m.Missed)
        few.event()
        closing.join()
    assert few.events() == [(START, 1), (START, 4)]
    few.assert_has(target.heap)
    assert few.state.missed_total == 2


def test_one_that_is_behind_is_told_of_what_the_server_lost_with_its_keyframe(
    serve: Serve, join: Join
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    all_of_them = join(address)
    few = join(address)
    few.send(m.Subscribe(max_rate_hz=0.001))
    few.sync()
    target.event(START)
    all_of_them.event()
    few.event()
    target.event(START)  # too soon for it: from here on it is behind
    target.server.skip(END, 4, untold=True)
    all_of_them.until(lambda: all_of_them.state.missed_total == 4)
    few.sync()
    assert few.state.missed_total == 0
    few.send(m.Subscribe())
    few.until(lambda: few.state.missed_total == 4)
    few.event()
    few.assert_has(target.heap)
    assert few.state.missed_total == 4, "the keyframe is of the event that it did not get"
