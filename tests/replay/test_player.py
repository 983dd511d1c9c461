"""A player over real sockets: what each client sees, whose playback it is, and what it may ask for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.messages import ErrorCode
from gcspy_protocol.model import ControlState, EventFilter, Mode, PauseActsOn
from gcspy_protocol.playback import Direction, Pace, Seek, SetPlayback
from gcspy_protocol.settings import Setting
from gcspy_replay.file import ChunkRule, MemoryStore
from gcspy_replay.player import PlaybackStart, PlayerThread

from tests.replay.crowded import crowded
from tests.replay.recorded import WELCOME, Small
from tests.replay.watching import Watcher

FAST = PlaybackStart(manner=SetPlayback(pace=Pace.FIXED, interval_millis=0))
STILL = PlaybackStart(running=False)

Play = Callable[..., PlayerThread]
Watch = Callable[..., Watcher]


def test_a_client_sees_all_events_in_order_and_then_the_end(play: Play, watch: Watch) -> None:
    watcher = watch(play(beginning=FAST))
    watcher.wait_state(ControlState.PAUSED)
    assert watcher.positions == list(range(1, 41))
    assert watcher.state.state_reason == "end of the recording"
    assert watcher.state.missed_total == 0
    watcher.assert_as_recorded()


def test_a_player_introduces_itself_and_its_recording(play: Play, watch: Watch) -> None:
    watcher = watch(play(beginning=STILL))
    welcome = watcher.link.welcome
    assert (welcome.mode, welcome.pause_acts_on, welcome.controller) == (
        Mode.PLAYBACK,
        PauseActsOn.PLAYBACK,
        True,
    )
    assert (welcome.server, welcome.events) == (WELCOME.server, WELCOME.events)
    assert welcome.target["recorded mode"] == "passive"
    assert welcome.target["recorded pause"] == "sampling"
    watcher.until_position(1)
    told = watcher.state.playback
    assert told is not None
    assert (told.first, told.last, told.growing, told.follows) == (1, 40, False, None)
    assert watcher.state.is_controller()
    pages = watcher.seen(m.Timeline)
    assert [(page.first, len(page.rows), page.fresh) for page in pages] == [(1, 40, True)]
    assert np.array_equal(pages[0].rows["time_nanos"], watcher.recording.events["time_nanos"])
    kinds = [type(message) for message in watcher.diary]
    assert (
        kinds.index(m.SpaceDefined)
        < kinds.index(m.EpochEnd)
        < kinds.index(m.Playback)
        < kinds.index(m.Event)
    )


def test_what_the_budget_had_done_is_told_as_it_was_at_the_event_that_is_shown(
    play: Play, watch: Watch
) -> None:
    def level(number: int) -> m.Settings:
        """Level 3 from event 20 on."""
        return m.Settings(
            settings=(
                Setting(
                    id=1,
                    name="Level",
                    value=2 if number < 20 else 3,
                    minimum=1,
                    maximum=3,
                    choices=("1", "2", "3"),
                    applies=1,
                ),
                Setting(
                    id=3,
                    name="Rung",
                    value=number % 2,
                    minimum=0,
                    maximum=1,
                    applies=1,
                    modes=(Mode.PASSIVE, Mode.STOPPED),
                ),
            )
        )

    def budget(number: int) -> m.Budget:
        return m.Budget(
            setting=2,
            allowed=50_000,
            spent=1000 * number,
            sequence=number,
            gathered=(number, 0),
            left_out=(2 * number, 0),
        )

    store = MemoryStore()
    session = Small(store, rule=ChunkRule(events=1, most_events=7))
    session.say(level(0))
    session.say(budget(0))
    for number in range(1, 41):
        session.event()
        session.say(level(number))
        session.say(budget(number))
    session.writer.close()
    data = bytes(store.data)
    watcher = watch(play(data, beginning=STILL), data)
    watcher.until_position(1)
    for number in (1, 30, 5, 8, 7, 19, 20, 21, 40, 3, 2):
        watcher.seek(number)
        # Messages after an event belong to the next one that is shown.
        assert watcher.state.budget == budget(number - 1)
        assert watcher.state.settings == level(number - 1)
        assert watcher.state.mode is Mode.PLAYBACK, "how it was watched is not how it is played"
    watcher.send(m.Step())
    watcher.until_position(3)
    assert watcher.state.budget == budget(2)
    follower = watch(play(data, beginning=PlaybackStart(number=12, running=False)), data)
    follower.until_position(12)
    assert follower.state.budget == budget(11)
    follower.send(m.SetSetting(id=1, value=1))
    assert follower.next(m.Error).code is ErrorCode.BAD_REQUEST


def test_a_recording_of_as_many_spaces_as_there_may_be_is_played(play: Play, watch: Watch) -> None:
    """Each space was an entry of the client's queue, which 512 filled."""
    data = crowded(1024)
    watcher = watch(play(data, beginning=STILL), data)
    watcher.until_position(1)
    assert len(watcher.state.spaces) == 1024


def test_each_client_has_a_playback_of_its_own(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    one, other = watch(playing), watch(playing)
    one.until_position(1)
    other.until_position(1)
    one.seek(30)
    other.seek(7)
    one.send(m.SetFilters(filters=(EventFilter(event=1, enabled=False),)))
    one.send(Seek(number=30))
    one.until_position(29)
    other.send(m.Step())
    other.until_position(8)
    other.send(Seek(number=9))
    other.until_position(9)
    assert other.state.filters[1].enabled


def test_it_steps_pauses_and_goes_backwards(play: Play, watch: Watch) -> None:
    watcher = watch(play(beginning=STILL))
    watcher.seek(20)
    watcher.send(SetPlayback(direction=Direction.BACKWARDS, pace=Pace.FIXED, interval_millis=0))
    watcher.send(m.Step())
    watcher.until_position(19)
    watcher.until(lambda: watcher.state.state_reason == "step")
    watcher.send(m.Resume())
    watcher.until_position(1)
    watcher.until(lambda: watcher.state.state_reason == "end of the recording")
    assert watcher.positions[-19:] == list(range(19, 0, -1))
    watcher.send(m.Pause())
    watcher.send(m.Resume())
    watcher.until_position(40)


def test_a_place_that_does_not_exist_is_refused_and_nothing_moves(play: Play, watch: Watch) -> None:
    watcher = watch(play(beginning=STILL))
    watcher.seek(40)
    for request in (
        Seek(name="nonsense"),
        Seek(name="clock"),
        m.SetFilters(filters=(EventFilter(event=9),)),
        m.HandOver(client=1),
        m.NameSuccessor(client=77),
        m.Follow(client=1),
        m.Follow(client=77),
        m.TileNamesRequest(space=1, first=0, count=1),
        m.Subscribe(spaces=(m.Subscription(space=5),)),
        m.Subscribe(spaces=(m.Subscription(space=1, streams=(0, 9)),)),
    ):
        watcher.send(request)
        assert watcher.next(m.Error).code is ErrorCode.BAD_REQUEST
    watcher.assert_as_recorded()
    assert watcher.positions[-1] == 40


def test_who_follows_sees_what_the_other_sees_and_may_not_move_it(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    teacher, pupil = watch(playing, name="teacher"), watch(playing, name="pupil")
    teacher.seek(25)
    pupil.until_position(1)
    pupil.send(m.Follow(client=teacher.number))
    pupil.until_position(25)
    assert pupil.state.playback is not None
    assert pupil.state.playback.follows == teacher.number
    assert pupil.state.clients.controller == teacher.number
    teacher.seek(3)
    pupil.until_position(3)
    teacher.send(m.Step())
    pupil.until_position(4)
    for request in (
        m.Pause(),
        m.Resume(),
        m.Step(),
        Seek(number=1),
        SetPlayback(),
        m.SetFilters(filters=()),
    ):
        pupil.send(request)
        assert pupil.next(m.Error).code is ErrorCode.NOT_CONTROLLER
    third = watch(playing)
    third.send(m.Follow(client=pupil.number))
    assert "follows another" in third.next(m.Error).message


@pytest.mark.parametrize("way", [m.Follow(client=None), m.TakeControl()])
def test_who_stops_following_goes_on_from_where_it_was(
    play: Play, watch: Watch, way: m.Message
) -> None:
    playing = play(beginning=STILL)
    teacher, pupil = watch(playing), watch(playing)
    teacher.seek(25)
    pupil.send(m.Follow(client=teacher.number))
    pupil.until_position(25)
    pupil.positions.clear()
    pupil.send(way)
    pupil.until_position(25)
    pupil.until(pupil.state.is_controller)
    assert pupil.state.playback is not None
    assert pupil.state.playback.follows is None
    pupil.seek(7)
    teacher.send(m.Step())
    teacher.until_position(26)
    pupil.send(m.Step())
    pupil.until_position(8)


def test_the_first_follower_inherits_when_the_leader_leaves(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    teacher, heir, other = watch(playing), watch(playing), watch(playing)
    teacher.seek(25)
    for pupil in (heir, other):
        pupil.send(m.Follow(client=teacher.number))
        pupil.until_position(25)
    heir.until(lambda: heir.state.clients.successor == heir.number)
    teacher.link.close()
    heir.until(heir.state.is_controller)
    other.until(lambda: other.state.clients.controller == heir.number)
    heir.seek(2)
    other.until_position(2)
    assert other.state.playback is not None
    assert other.state.playback.follows == heir.number
    # Also when it follows another client.
    late = watch(playing)
    late.until_position(1)
    heir.send(m.Follow(client=late.number))
    other.until(other.state.is_controller)
    late.seek(9)
    heir.until_position(9)


def test_each_client_gets_what_it_subscribed_to(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    watcher, whole = watch(playing), watch(playing)
    whole.until_position(1)
    whole.send(m.Follow(client=watcher.number))
    watcher.until_position(1)
    watcher.send(m.Subscribe(spaces=(m.Subscription(space=1, streams=(1,)),)))
    watcher.sync()
    for number in (2, 3, 17, 18, 4):
        watcher.positions.clear()
        watcher.send(Seek(number=number))
        watcher.until(lambda: bool(watcher.positions))
        whole.until_position(number)
        streams = watcher.state.spaces[1].streams
        assert streams[1].sequence == 1
        assert streams[0].sequence <= 1
    watcher.send(m.Subscribe())
    watcher.seek(5)


def test_who_wants_fewer_events_gets_fewer_and_sees_where_it_ends(play: Play, watch: Watch) -> None:
    watcher = watch(play(beginning=STILL))
    watcher.until_position(1)
    watcher.send(m.Subscribe(max_rate_hz=0.5))
    watcher.sync()
    watcher.send(SetPlayback(pace=Pace.FIXED, interval_millis=0))
    watcher.send(m.Resume())
    watcher.until(lambda: watcher.state.state_reason == "end of the recording")
    watcher.assert_as_recorded()
    assert watcher.state.position == 40
    assert len(watcher.positions) < 10
    assert watcher.state.missed_total > 0


def test_a_ping_is_answered(play: Play, watch: Watch) -> None:
    watcher = watch(play(beginning=STILL))
    watcher.send(m.Ping(number=7))
    assert watcher.next(m.Pong).number == 7


def test_closing_the_player_says_goodbye(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    watcher = watch(playing)
    playing.close()
    assert watcher.next(m.Goodbye).reason


def test_what_is_asked_right_behind_a_change_of_playbacks_is_done_there(
    play: Play, watch: Watch
) -> None:
    playing = play(beginning=STILL)
    teacher, pupil = watch(playing), watch(playing)
    teacher.seek(25)
    pupil.until_position(1)
    for message in (
        m.Follow(client=teacher.number),
        m.Step(),
        m.Follow(client=None),
        Seek(number=9),
    ):
        pupil.send(message)
    pupil.until_position(9)
    assert [error.code for error in pupil.seen(m.Error)] == [ErrorCode.NOT_CONTROLLER]
    assert pupil.state.is_controller()
