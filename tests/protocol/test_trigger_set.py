"""The triggers of a session as the player and the server use them: on the events of a client interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcspy_protocol import ClientInterpreter
from gcspy_protocol import messages as m
from gcspy_protocol.errors import AmbiguousName, ExpressionError, LocalProtocolError
from gcspy_protocol.expression.client import ClientSource
from gcspy_protocol.model import EventKind, Mode, Naming, PauseActsOn, Space, Stream
from gcspy_protocol.trigger_set import TriggerSet, pause_reason
from gcspy_protocol.triggers import MOST_NOTE_CHARS, Fired, Trigger, TriggerAction, TriggerState

HEAP = Space(
    id=1,
    name="heap",
    naming=Naming.UNIFORM,
    streams=(Stream(id=0, name="used"), Stream(id=1, name="rare")),
)


class Session:
    """A client interpreter that is fed one event after the other."""

    def __init__(self, *spaces: Space) -> None:
        self.state = ClientInterpreter()
        self.sequence = 0
        self.state.apply(
            m.Welcome(
                server="test",
                session="s",
                client_id=1,
                controller=True,
                mode=Mode.EMBEDDED,
                pause_acts_on=PauseActsOn.PROGRAM,
                events=(EventKind(id=0, name="start"),),
            )
        )
        for space in spaces or (HEAP,):
            self.define(space)

    def define(self, space: Space) -> None:
        self.state.apply(m.SpaceDefined(space=space))
        self.state.apply(m.EpochEnd(epoch=self.state.epoch + 1))

    @property
    def spaces(self) -> tuple[Space, ...]:
        return tuple(space.space for space in self.state.spaces.values())

    def event(self, *values: int, stream: int = 0, space: int = 1) -> m.Event:
        self.sequence += 1
        stamp: dict[str, Any] = {
            "space": space,
            "sequence": self.sequence,
            "time_nanos": self.sequence,
        }
        none = np.empty(0, dtype=np.uint32)
        tiles = m.Tiles(
            space=space,
            count=len(values),
            old_starts=none,
            new_starts=none,
            lengths=none,
            naming=Naming.UNIFORM,
            tile_bytes=1,
        )
        self.state.apply(tiles)
        key = m.StreamKey(
            **stamp,
            stream=stream,
            event=0,
            occurrence=self.sequence,
            values=np.array(values, dtype="<i4"),
            known=None,
        )
        self.state.apply(key)
        event = m.Event(
            sequence=self.sequence,
            time_nanos=self.sequence,
            event=0,
            occurrence=self.sequence,
            epoch=self.state.epoch,
        )
        self.state.apply(event)
        return event


def looked(session: Session, triggers: TriggerSet, *values: int, stream: int = 0) -> list[Fired]:
    event = session.event(*values, stream=stream)
    triggers.bind(session.spaces)
    return triggers.look(ClientSource(session.state), event)[0]


def holding(*expressions: str, **fields: Any) -> tuple[Session, TriggerSet]:
    session, triggers = Session(), TriggerSet()
    for number, expression in enumerate(expressions):
        triggers.set(Trigger(id=number, expression=expression, **fields), session.spaces)
    return session, triggers


def test_the_events_of_a_client_make_triggers_fire_as_those_of_a_server_do() -> None:
    session, triggers = holding("sum(used) > 5", "sum(rare) > 5")
    assert looked(session, triggers, 1, 2) == []
    (fired,) = looked(session, triggers, 3, 4)
    assert (fired.trigger.id, fired.sequence, fired.operands[0].value) == (0, 2, 7)
    assert looked(session, triggers, 9, stream=1)[0].trigger.id == 1, (
        "and the stale one is not looked at"
    )


def test_another_place_of_a_recording_forgets_the_event_before_and_arms_again() -> None:
    session, triggers = holding("sum(used) > was(sum(used))", "sum(used) > 5")
    looked(session, triggers, 1)
    assert len(looked(session, triggers, 9)) == 2
    triggers.reset()
    (fired,) = looked(session, triggers, 99)
    assert fired.trigger.id == 1, "the first does not know the event before, the second is armed"
    assert triggers.announcement().fired == 3


def test_triggers_are_told_in_order_of_their_ids_and_replaced_by_them() -> None:
    session, triggers = holding()
    for number in (5, 2, 9):
        triggers.set(Trigger(id=number, expression="sum(used) > 5"), session.spaces)
    looked(session, triggers, 9)
    triggers.set(Trigger(id=5, expression="sum(used) > 7", enabled=False), session.spaces)
    told = triggers.announcement()
    assert [one.trigger.id for one in told.triggers] == [2, 5, 9]
    assert [one.state for one in told.triggers] == [
        TriggerState.HOLDS,
        TriggerState.OFF,
        TriggerState.HOLDS,
    ]
    assert [one.fired for one in told.triggers] == [1, 0, 1]
    assert told.fired == 3, "also of the one that was replaced"


def test_what_a_trigger_needs_is_all_it_names_and_nothing_once_it_is_done() -> None:
    session, triggers = holding("sum(used) > 5 or max(rare) > 3", once=True)
    assert triggers.needs() == {(1, 0), (1, 1)}
    session.event(9)
    triggers.set(Trigger(id=0, expression="sum(used) > 5", once=True), session.spaces)
    looked(session, triggers, 9)
    assert not triggers.active
    assert triggers.needs() == frozenset()


def test_the_space_in_question_is_found_by_its_name_in_any_case() -> None:
    other = Space(id=2, name="other", naming=Naming.UNIFORM, streams=HEAP.streams)
    session, triggers = Session(HEAP, other), TriggerSet()
    triggers.set(Trigger(id=1, expression="sum(used) > 5", space="OTHER"), session.spaces)
    assert triggers.needs() == {(2, 0)}


def test_a_name_that_several_spaces_have_is_refused_and_the_trigger_before_stays() -> None:
    other = Space(id=2, name="other", naming=Naming.UNIFORM, streams=HEAP.streams)
    session, triggers = Session(HEAP, other), TriggerSet()
    triggers.set(Trigger(id=1, expression="sum(heap.used) > 5"), session.spaces)
    before = triggers.announcement()
    with pytest.raises(AmbiguousName, match=r"write heap\.used or other\.used"):
        triggers.set(Trigger(id=1, expression="sum(used) > 5"), session.spaces)
    assert triggers.announcement() == before
    triggers.set(Trigger(id=1, expression="sum(used) > 5", enabled=False), session.spaces)
    assert triggers.announcement().triggers[0].state is TriggerState.OFF


def test_a_name_that_becomes_ambiguous_makes_the_trigger_wait_and_say_why() -> None:
    other = Space(id=2, name="other", naming=Naming.UNIFORM, streams=HEAP.streams)
    session, triggers = Session(HEAP, other), TriggerSet()
    triggers.set(Trigger(id=1, expression="sum(used) > 5"), (HEAP,))
    assert triggers.announcement().triggers[0].state is TriggerState.ARMED
    assert triggers.bind(session.spaces)
    (waits,) = triggers.announcement().triggers
    assert waits.state is TriggerState.WAITING
    assert "write heap.used or other.used" in waits.why


def test_the_slowest_fails_when_all_together_take_too_long_and_the_others_stay() -> None:
    now = [0]
    session = Session()
    triggers = TriggerSet(time_nanos=lambda: now[0], most_nanos=100)
    for number, expression in enumerate(["sum(used) > 1", "sum(rare * 2) > 1", "sum(used) > 2"]):
        triggers.set(Trigger(id=number, expression=expression), session.spaces)
    source = _Slow(session, now)
    event = session.event(3)
    triggers.look(source, event)
    states = [one.state for one in triggers.announcement().triggers]
    assert states == [TriggerState.HOLDS, TriggerState.FAILED, TriggerState.ARMED]
    assert "ms" in triggers.announcement().triggers[1].why
    assert [one.trigger.id for one in triggers.look(source, event)[0]] == [2]


class _Slow(ClientSource):
    """A source in which the second stream takes its time."""

    def __init__(self, session: Session, now: list[int]) -> None:
        session.event(3)
        super().__init__(session.state)
        self._now = now

    def is_fresh(self, space: int, stream: int) -> bool:
        return True

    def stream(self, space: int, stream: int) -> tuple[Any, Any]:
        self._now[0] += 1000 if stream else 1
        return np.array([3], dtype="<i4"), None


def test_a_trigger_that_cannot_be_taken_leaves_the_one_that_is_there() -> None:
    session, triggers = holding("sum(used) > 5")
    with pytest.raises(ExpressionError, match="never closed"):
        triggers.set(Trigger(id=0, expression="sum(used"), session.spaces)
    with pytest.raises(LocalProtocolError, match="note of 1001"):
        triggers.set(
            Trigger(id=0, expression="1 < 2", note="x" * (MOST_NOTE_CHARS + 1)), session.spaces
        )
    assert triggers.announcement().triggers[0].trigger.expression == "sum(used) > 5"


def test_why_a_pause_holds_is_the_first_triggers_note_or_else_its_text() -> None:
    note = Trigger(id=1, expression="1 < 2", action=TriggerAction.NOTE)
    plain, noted = (
        Trigger(id=2, expression="1 < 2"),
        Trigger(id=3, expression="1 < 2", note="too much"),
    )
    fired = [
        Fired(trigger=one, sequence=1, time_nanos=1, event=0, occurrence=1)
        for one in (note, plain, noted)
    ]
    assert pause_reason(fired[:1]) == ""
    assert pause_reason(fired[:2]) == "trigger 2: 1 < 2"
    assert pause_reason(fired) == "trigger 2: 1 < 2 and 1 more"
    assert pause_reason(fired[2:]) == "trigger 3: too much"
