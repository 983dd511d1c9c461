"""A class at a player: all followers share the teacher's playback, whoever the teacher is."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus
from gcspy_protocol.messages import ErrorCode
from gcspy_replay.player import PlaybackStart, PlayerThread
from gcspy_replay.player.class_of import ClassOf

from tests.replay.watching import Watcher

if TYPE_CHECKING:
    from gcspy_replay.player.player import Player

    from gcspy_session.client import ClientConnection

Play = Callable[..., PlayerThread]
Watch = Callable[..., Watcher]

STILL = PlaybackStart(running=False)


def _wait_for_leader(pupil: Watcher, leader: Watcher) -> None:
    pupil.until(lambda: pupil.state.clients.leader == leader.number)


def test_who_follows_the_class_sees_the_teachers_playback_and_place(
    play: Play, watch: Watch
) -> None:
    playing = play(beginning=STILL)
    teacher = watch(playing, control=True, person="teacher")
    teacher.seek(25)
    pupil = watch(playing, person="pupil", following=True)
    pupil.until_position(25)
    assert not pupil.link.welcome.controller
    assert (pupil.state.clients.leader, pupil.state.clients.controller) == (
        teacher.number,
        teacher.number,
    )
    teacher.send(m.Look(at=Focus(space=1, key=3, sequence=7)))
    assert pupil.next(m.Looked) == m.Looked(client=teacher.number, at=Focus(space=1, key=3))
    teacher.seek(3)
    pupil.until_position(3)
    pupil.send(m.Look(at=Focus()))
    assert pupil.next(m.Error).code is ErrorCode.NOT_CONTROLLER


def test_a_pupil_roams_and_comes_back(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    teacher = watch(playing, control=True, person="teacher")
    pupil = watch(playing, person="pupil", following=True)
    teacher.seek(10)
    pupil.until_position(10)
    pupil.send(m.Attend(person="pupil", following=False))
    pupil.until(lambda: pupil.state.clients.controller == pupil.number)
    pupil.seek(30)
    teacher.seek(12)
    pupil.send(m.Attend(person="pupil", following=True))
    pupil.until_position(12)


def test_those_who_came_first_are_gathered_when_the_teacher_comes(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    pupil = watch(playing, person="pupil", following=True)
    assert pupil.state.clients.leader is None
    teacher = watch(playing, control=True, person="teacher")
    teacher.seek(20)
    pupil.until_position(20)
    assert pupil.state.clients.leader == teacher.number


def test_control_of_the_playback_is_handed_over_and_back(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    teacher = watch(playing, control=True, person="teacher")
    one, roaming = watch(playing, person="one", following=True), watch(playing, person="roaming")
    teacher.seek(10)
    one.until_position(10)
    teacher.send(m.HandOver(client=one.number))
    one.until(lambda: one.state.clients.leader == one.number)
    one.seek(11)
    teacher.until_position(11)
    teacher.send(m.Pause())
    assert teacher.next(m.Error).code is ErrorCode.NOT_CONTROLLER
    # One who roams comes to lead it.
    one.send(m.HandOver(client=roaming.number))
    roaming.until(lambda: roaming.state.clients.leader == roaming.number)
    roaming.seek(14)
    for other in (one, teacher):
        other.until_position(14)
    roaming.send(m.HandOver(client=teacher.number))
    teacher.until(lambda: teacher.state.clients.leader == teacher.number)


def test_the_named_successor_inherits_the_class_and_not_the_first(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    teacher = watch(playing, control=True, person="teacher")
    first, heir = (
        watch(playing, person="first", following=True),
        watch(playing, person="heir", following=True),
    )
    for pupil in (first, heir):
        _wait_for_leader(pupil, teacher)
    teacher.send(m.NameSuccessor(client=heir.number))
    heir.until(lambda: heir.state.clients.successor == heir.number)
    teacher.link._socket.shutdown(socket.SHUT_RDWR)
    heir.until(lambda: heir.state.clients.leader == heir.number)
    heir.seek(8)
    first.until_position(8)


class Seen:
    """A playback as a class knows it: whose it is, and whether its first picture was shown."""

    def __init__(self, leader: object) -> None:
        self.leader = leader
        self.ready = False


class Shown:
    """A player as a class knows it: the welcomed clients, and what each of them sees."""

    def __init__(self) -> None:
        self.welcomed: dict[int, object] = {}
        self.seen: dict[int, Seen] = {}
        self.gathered = 0

    def playback_session_of(self, number: int) -> Seen | None:
        """Return what a client sees."""
        return self.seen.get(number)

    def gather(self) -> None:
        """Count how often the others were called."""
        self.gathered += 1


def test_nobody_leads_before_the_first_picture_of_its_own_playback() -> None:
    player = Shown()
    group = ClassOf(cast("Player", player))

    def leader() -> int | None:
        return group.leader

    one, other = SimpleNamespace(number=1), SimpleNamespace(number=2)
    for client in (one, other):
        group.offers(cast("ClientConnection", client))
        player.welcomed[client.number] = client
        group.choose()
        assert leader() is None, "it has no playback yet"
    player.seen = {1: Seen(one), 2: Seen(other)}
    group.choose()
    assert leader() is None, "neither has shown a picture"
    player.seen[2].ready = True
    group.choose()
    assert (leader(), player.gathered) == (2, 1)
    player.seen[1].ready = True
    group.choose()
    assert (leader(), player.gathered) == (2, 1), "who leads goes on"
