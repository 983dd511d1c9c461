from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gcspy_session.queue import ClientQueue, EntryKind, TooSlow
from gcspy_session.roles import Roles


def queue(events: int = 3, event_bytes: int = 100, messages: int = 4) -> ClientQueue:
    return ClientQueue(events=events, event_bytes=event_bytes, messages=messages)


def drain(full: ClientQueue) -> list[bytes]:
    taken = []
    while (entry := full.pop()) is not None:
        taken.append(bytes(entry.data or b""))
    return taken


def test_everything_comes_out_in_order() -> None:
    q = queue()
    q.add_message(b"a")
    assert q.add_event(b"1", 1) == 0
    q.add_message(b"b")
    assert drain(q) == [b"a", b"1", b"b"]


def test_it_is_crowded_when_more_than_a_quarter_of_its_messages_wait() -> None:
    q = queue(messages=8)
    for number in range(4):
        assert q.crowded == (number > 2)
        q.add_message(b"a")
    drain(q)
    assert not q.crowded


def test_too_many_events_are_dropped_whole_and_messages_keep_their_place() -> None:
    q = queue(events=2)
    q.add_event(b"1", 1)
    q.add_message(b"a")
    q.add_event(b"2", 2)
    assert q.add_event(b"3", 3) == 3
    q.add_message(b"b")
    assert drain(q) == [b"a", b"b"]


def test_too_many_bytes_are_dropped_but_one_event_is_always_allowed() -> None:
    q = queue(event_bytes=10)
    assert q.add_event(b"x" * 50, 1) == 0
    assert q.add_event(b"y", 2) == 2
    assert drain(q) == []


def test_a_reader_that_wants_to_lose_none_keeps_what_waits_and_is_refused_only_what_comes_when_it_is_full() -> (
    None
):
    q = queue(events=2)
    assert q.room() == (2, 100)
    assert q.add_event(b"1", 1, keep=True) == 0
    assert q.add_event(b"2", 2, keep=True) == 0
    assert q.room() == (0, 98)
    assert q.add_event(b"3", 3, keep=True) == 1
    assert drain(q) == [b"1", b"2"]
    # An event that is larger than the remaining room was promised its place.
    assert q.add_event(b"x" * 99, 4, keep=True) == 0
    assert q.add_event(b"y" * 50, 5, keep=True) == 0
    assert q.room() == (0, 0)


def test_an_event_that_must_arrive_is_neither_refused_nor_dropped() -> None:
    q = queue(events=1)
    q.add_event(b"1", 1)
    assert q.add_event(b"2", 2, must=True) == 0
    assert q.add_event(b"3", 3) == 2
    assert drain(q) == [b"2"]


def test_what_is_still_being_made_holds_up_what_is_behind_it() -> None:
    q = queue()
    place = q.add_place(1)
    q.add_message(b"a")
    assert drain(q) == []
    q.fill(place, b"key")
    assert drain(q) == [b"key", b"a"]


def test_a_keyframe_stays_when_the_events_behind_it_are_dropped() -> None:
    q = queue(events=2)
    place = q.add_place(1)
    assert q.add_event(b"2", 2) == 0
    assert q.add_event(b"3", 3) == 2
    q.fill(place, b"key")
    assert drain(q) == [b"key"]


def test_a_later_keyframe_replaces_an_earlier_one_and_what_builds_on_it() -> None:
    q = queue()
    earlier = q.add_place(1)
    q.add_event(b"2", 2)
    assert q.drop_events(keyframes=True) == 2
    later = q.add_place(3)
    q.fill(earlier, b"old")
    q.fill(later, b"new")
    assert drain(q) == [b"new"]
    assert q.waiting.startswith("0 events of 0 bytes")


def test_who_leaves_too_much_unread_that_must_arrive_has_to_go() -> None:
    q = queue(events=1)
    for number in range(4):
        q.add_event(b"x", number, must=True)
    with pytest.raises(TooSlow, match="4 events of 4 bytes"):
        q.add_event(b"x", 5, must=True)


def test_too_many_messages_end_the_client() -> None:
    q = queue(messages=2)
    q.add_message(b"a")
    q.add_message(b"b")
    with pytest.raises(TooSlow, match="2 messages unread"):
        q.add_message(b"c")


class QueueMachine(RuleBasedStateMachine):
    """Against a model that keeps a plain list: order, bounds and the sums are right whatever happens."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = queue(events=3, event_bytes=20, messages=5)
        self.model: list[tuple[EntryKind, bytes]] = []
        self.number = 0

    def events(self) -> list[tuple[EntryKind, bytes]]:
        return [one for one in self.model if one[0] is not EntryKind.MESSAGE]

    @rule()
    def add_message(self) -> None:
        self.number += 1
        data = f"m{self.number}".encode()
        if sum(kind is EntryKind.MESSAGE for kind, _ in self.model) >= 5:
            with pytest.raises(TooSlow):
                self.queue.add_message(data)
        else:
            self.queue.add_message(data)
            self.model.append((EntryKind.MESSAGE, data))

    @rule(size=st.integers(1, 30), must=st.booleans())
    def add_event(self, size: int, must: bool) -> None:
        self.number += 1
        events = self.events()
        if must and len(events) >= 12:
            with pytest.raises(TooSlow):
                self.queue.add_event(b"e" * size, self.number, must=True)
            return
        full = bool(events) and (len(events) >= 3 or sum(len(d) for _, d in events) + size > 20)
        dropped = self.queue.add_event(b"e" * size, self.number, must=must)
        if full and not must:
            assert dropped == 1 + sum(kind is EntryKind.EVENT for kind, _ in self.model)
            self.model = [one for one in self.model if one[0] is not EntryKind.EVENT]
        else:
            assert dropped == 0
            self.model.append((EntryKind.MUST if must else EntryKind.EVENT, b"e" * size))

    @rule()
    def pop(self) -> None:
        entry = self.queue.pop()
        expected = self.model.pop(0) if self.model else None
        assert (entry is None) == (expected is None)
        if entry is not None and expected is not None:
            assert (entry.kind, entry.data) == expected

    @invariant()
    def sums_are_right(self) -> None:
        events = self.events()
        assert len(self.queue) == len(self.model)
        assert self.queue.waiting == (
            f"{len(events)} events of {sum(len(d) for _, d in events)} bytes "
            f"and {len(self.model) - len(events)} messages unread"
        )


TestQueueMachine = QueueMachine.TestCase


def test_control_is_taken_once_and_handed_over() -> None:
    roles = Roles()
    assert roles.take(1)
    assert not roles.take(2)
    roles.hand_over(2)
    assert roles.controller == 2
    assert roles.leave(1) is False
    assert roles.leave(2) is True
    assert roles.controller is None


def test_the_successor_inherits_once() -> None:
    roles = Roles()
    roles.take(1)
    roles.name_successor(2)
    assert roles.leave(1)
    assert (roles.controller, roles.successor) == (2, None)


@given(st.lists(st.tuples(st.sampled_from(["take", "hand", "name", "leave"]), st.integers(1, 3))))
def test_the_controller_is_never_its_own_successor_nor_gone(steps: list[tuple[str, int]]) -> None:
    roles = Roles()
    for what, client in steps:
        match what:
            case "take":
                roles.take(client)
            case "hand":
                roles.hand_over(client)
            case "name":
                roles.name_successor(client)
            case _:
                roles.leave(client)
                assert client not in (roles.controller, roles.successor)
        assert roles.controller is None or roles.controller != roles.successor
