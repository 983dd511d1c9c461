"""Triggers of a playback: it pauses at the event where a condition becomes true, forwards, and a seek forgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.messages import ErrorCode
from gcspy_protocol.model import ControlState, EventFilter
from gcspy_protocol.playback import Direction, Pace, Seek, SetPlayback
from gcspy_protocol.triggers import Trigger, TriggerAction, TriggerState
from gcspy_replay.file import MemorySource, Recording
from gcspy_replay.playback import RecordingPlayback
from gcspy_replay.player import PlaybackStart, PlayerThread

from tests.replay.recorded import small
from tests.replay.watching import Watcher

STILL = PlaybackStart(running=False)
BACKWARDS = SetPlayback(direction=Direction.BACKWARDS, pace=Pace.FIXED, interval_millis=0)
FAST = SetPlayback(pace=Pace.FIXED, interval_millis=0)

Play = Callable[..., PlayerThread]
Watch = Callable[..., Watcher]

# Tile i of nine has i * n at event n, modulo 97: the greatest is 8 n up to the twelfth.
AT_SEVEN = "max(Used) > 50"


def playback(
    condition: str, *, manner: SetPlayback = FAST, running: bool = True, **fields: Any
) -> RecordingPlayback:
    played = RecordingPlayback(Recording([MemorySource(small(12))]), manner=manner, running=running)
    played.set_trigger(Trigger(id=1, expression=condition, **fields))
    return played


def run(played: RecordingPlayback) -> list[tuple[int, bool]]:
    """Let it play until it stands; the events that it showed, and whether something fired at each."""
    shown = []
    while played.due_nanos is not None:
        move = played.advance(1 << 60)
        if move is not None:
            shown.append((move.number, bool(move.fired)))
    return shown


def test_a_playback_pauses_at_the_event_at_which_a_condition_becomes_true() -> None:
    played = playback(AT_SEVEN)
    assert run(played) == [(n, n == 7) for n in range(1, 8)]
    assert played.state == m.State(state=ControlState.PAUSED, reason=f"trigger 1: {AT_SEVEN}")
    played.resume(0)
    assert run(played) == [(n, False) for n in range(8, 13)]
    assert played.state.reason == "end of the recording"


def test_a_step_forwards_looks_at_triggers_too() -> None:
    played = playback("max(Used) > was(max(Used)) + 7", running=False)
    played.advance(0)
    reasons = []
    for _ in range(2):
        played.step(0)
        reasons.append(played.state.reason)
    assert reasons == ["trigger 1: max(Used) > was(max(Used)) + 7", "step"]


def test_a_seek_looks_at_nothing_and_forgets_the_event_before() -> None:
    played = playback("max(Used) > 2 * was(max(Used))", running=False)
    played.advance(0)
    assert played.seek(Seek(number=9), 0).fired == ()
    move = played.step(0)
    assert move is not None
    assert move.fired == (), "against the event where it stood before the seek it would be true"


def test_a_seek_arms_what_has_fired() -> None:
    played = playback(AT_SEVEN)
    run(played)
    played.seek(Seek(number=5), 0)
    (status,) = played.triggers.announcement().triggers
    assert (status.state, status.fired) == (TriggerState.ARMED, 1)
    played.resume(0)
    assert run(played) == [(6, False), (7, True)]


def test_backwards_nothing_is_looked_at() -> None:
    played = playback("max(Used) < 40", manner=BACKWARDS)
    assert run(played) == [(n, False) for n in range(12, 0, -1)]


def test_a_loop_begins_as_if_nothing_was_before() -> None:
    played = playback(
        "max(Used) < was(max(Used))",
        manner=SetPlayback(pace=Pace.FIXED, interval_millis=0, loop=(3, 5)),
    )
    shown = [played.advance(1 << 60) for _ in range(7)]
    assert [move.number for move in shown if move is not None] == [3, 4, 5, 3, 4, 5, 3]
    assert not any(move.fired for move in shown if move is not None)


def test_what_the_filters_hide_is_not_looked_at() -> None:
    played = playback(AT_SEVEN)
    played.set_filters((EventFilter(event=0, enabled=False),))
    # Each third event is a collection.
    assert run(played) == [(3, False), (6, False), (9, True)]


def test_a_delay_comes_before_the_pause() -> None:
    played = playback(AT_SEVEN)
    played.set_filters((EventFilter(event=0, delay_millis=5),))
    while played.number < 7:
        assert played.due_nanos is not None
        played.advance(played.due_nanos)
    assert played.running
    due = played.due_nanos
    assert due is not None
    assert played.advance(due) is None
    assert (played.state.reason, played.number) == (f"trigger 1: {AT_SEVEN}", 7)


def test_what_is_no_condition_is_refused() -> None:
    with pytest.raises(RecordingError, match="never closed"):
        playback("max(Used")


def test_a_player_tells_event_fired_and_paused_in_this_order(play: Play, watch: Watch) -> None:
    watcher = watch(play(beginning=STILL))
    watcher.until_position(1)
    watcher.send(Trigger(id=3, expression=AT_SEVEN, note="half full"))
    assert watcher.next(m.Triggers).triggers[0].state is TriggerState.ARMED
    watcher.send(FAST)
    watcher.send(m.Resume())
    fired = watcher.next(m.Fired)
    watcher.wait_state(ControlState.PAUSED)
    assert watcher.state.state_reason == "trigger 3: half full"
    assert watcher.positions[-1] == fired.sequence == 7
    kinds = [type(message) for message in watcher.diary]
    assert kinds[kinds.index(m.Fired) :].count(m.Event) == 0
    assert fired.pauses
    told = watcher.next(m.Triggers)
    assert (told.fired, told.triggers[0].state) == (1, TriggerState.HOLDS)


def test_a_player_only_tells_where_a_bookmark_is_asked_for_and_refuses_what_is_none(
    play: Play, watch: Watch
) -> None:
    watcher = watch(play(beginning=STILL))
    watcher.until_position(1)
    watcher.send(Trigger(id=1, expression="max(Used"))
    error = watcher.next(m.Error)
    assert (error.code, "at character 4" in error.message) == (ErrorCode.BAD_REQUEST, True)
    watcher.send(Trigger(id=1, expression=AT_SEVEN, action=TriggerAction.BOOKMARK))
    watcher.send(FAST)
    watcher.send(m.Resume())
    watcher.until(lambda: watcher.state.state_reason == "end of the recording")
    assert next(one.sequence for one in watcher.seen(m.Fired)) == 7


def test_who_follows_hears_of_the_triggers_and_may_set_none(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    teacher, pupil = watch(playing), watch(playing)
    teacher.until_position(1)
    teacher.send(Trigger(id=1, expression=AT_SEVEN))
    teacher.next(m.Triggers)
    pupil.until_position(1)
    pupil.send(m.Follow(client=teacher.number))
    assert pupil.next(m.Triggers).triggers[0].trigger.expression == AT_SEVEN
    pupil.send(Trigger(id=2, expression="1 < 2"))
    assert pupil.next(m.Error).code is ErrorCode.NOT_CONTROLLER
    teacher.send(FAST)
    teacher.send(m.Resume())
    assert pupil.next(m.Fired).sequence == 7
