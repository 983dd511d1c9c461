"""A class on one session: the participants, the teacher's view, and the controller after the teacher has gone."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import LOOK_CHARS, PERSON_CHARS, Focus, LessonPlace, person_name
from gcspy_protocol.connection import Connection
from gcspy_protocol.messages import ErrorCode
from gcspy_protocol.model import ControlState, Role

from gcspy_server.api import ServedSession, SessionOptions
from tests.server.conftest import EndLog
from tests.server.relay import Relay
from tests.server.target import START, Target
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]


def entry_of(viewer: Viewer, number: int) -> m.Client:
    """The view that a viewer received of a client; one without a name where it received nothing so far."""
    told = (one for one in viewer.state.clients.clients if one.id == number)
    return next(told, m.Client(id=number, name=""))


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("Ada Lovelace", "Ada Lovelace"),
        ("  two\n lines\tand\x00 a bell\x07 ", "two lines and a bell"),
        ("right\u202eto\u2066left", "righttoleft"),
        ("a" + "\u0301" * 30 + "b", "\u00e1\u0301\u0301b"),
        ("Nguyễn Thị", "Nguyễn Thị"),
        ("x" * 70_000, "x" * PERSON_CHARS),
        ("\u200b\ufeff", ""),
        ("\ud800", ""),
    ],
)
def test_a_name_is_one_line_of_letters_that_have_a_shape(told: str, shown: str) -> None:
    assert person_name(told) == shown
    assert person_name(shown) == shown


def test_names_are_told_to_everyone_and_can_be_changed(serve: Serve, join: Join) -> None:
    address = serve(Target()).addresses[0]
    teacher = join(address, control=True, person="Dr. Müller")
    pupil = join(address, person="Ada\u202e\n", following=True)
    teacher.until(lambda: len(teacher.state.clients.clients) == 2)
    told = entry_of(teacher, pupil.number)
    assert (told.person, told.following, told.behind, told.stalled) == ("Ada", True, None, False)
    assert entry_of(pupil, teacher.number).person == "Dr. Müller"
    pupil.send(m.Attend(person="Grace", following=False))
    teacher.until(lambda: entry_of(teacher, pupil.number).person == "Grace")
    assert not entry_of(teacher, pupil.number).following


def test_those_who_follow_are_told_where_the_controller_looks(serve: Serve, join: Join) -> None:
    target = Target()
    target.event(START)
    address = serve(target).addresses[0]
    teacher, roaming = join(address, control=True, person="t"), join(address, person="r")
    pupil = join(address, person="p", following=True)
    target.event(START)
    teacher.event()
    place = Focus(
        space=target.heap.id, stream=0, key=4096, view="hilbert", panel="history", sequence=1
    )
    teacher.send(m.Look(at=place))
    assert pupil.next(m.Looked) == m.Looked(client=teacher.number, at=place)
    late = join(address, person="late", following=True)
    assert late.next(m.Looked).at == place
    roaming.send(m.Attend(person="r", following=True))
    assert roaming.next(m.Looked).at == place
    assert len(roaming.seen(m.Looked)) == 1
    assert not teacher.seen(m.Looked)


def test_of_many_places_the_latest_arrives_and_few_others(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    teacher, pupil = (
        join(address, control=True, person="t"),
        join(address, person="p", following=True),
    )
    for key in range(2000):
        teacher.send(m.Look(at=Focus(space=target.heap.id, key=key)))
    pupil.until(lambda: bool(pupil.seen(m.Looked)) and pupil.seen(m.Looked)[-1].at.key == 1999)
    keys = [looked.at.key or 0 for looked in pupil.seen(m.Looked)]
    assert keys == sorted(keys)
    assert len(keys) < 1000


def test_what_is_not_there_is_left_out_of_a_place_and_texts_are_bounded(
    serve: Serve, join: Join
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    teacher, pupil = (
        join(address, control=True, person="t"),
        join(address, person="p", following=True),
    )
    teacher.send(m.Look(at=Focus(space=999, stream=1, key=7, view="v" * 9000, sequence=10**12)))
    assert pupil.next(m.Looked).at == Focus(view="v" * LOOK_CHARS)
    teacher.send(m.Look(at=Focus(space=target.heap.id, stream=999, key=7)))
    assert pupil.next(m.Looked).at == Focus(space=target.heap.id, key=7)


def test_only_the_controller_can_lead(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    teacher, pupil = (
        join(address, control=True, person="t"),
        join(address, person="p", following=True),
    )
    pupil.send(m.Look(at=Focus(space=target.heap.id)))
    assert pupil.next(m.Error).code is ErrorCode.NOT_CONTROLLER
    # Handed over: now it is the pupil whom the teacher may follow.
    teacher.send(m.HandOver(client=pupil.number))
    teacher.send(m.Attend(person="t", following=True))
    pupil.until(lambda: pupil.state.clients.controller == pupil.number)
    pupil.send(m.Look(at=Focus(space=target.heap.id, key=5)))
    assert teacher.next(m.Looked).client == pupil.number
    teacher.send(m.Look(at=Focus()))
    assert teacher.next(m.Error).code is ErrorCode.NOT_CONTROLLER
    pupil.send(m.HandOver(client=teacher.number))
    teacher.until(lambda: teacher.state.clients.controller == teacher.number)


def test_the_named_successor_has_control_when_the_teachers_connection_is_cut(
    serve: Serve, join: Join
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    teacher, heir = (
        join(address, control=True, person="t"),
        join(address, person="h", following=True),
    )
    teacher.send(m.NameSuccessor(client=heir.number))
    heir.until(lambda: heir.state.clients.successor == heir.number)
    teacher.link._socket.shutdown(socket.SHUT_RDWR)
    heir.until(lambda: heir.state.clients.controller == heir.number)
    heir.send(m.Look(at=Focus(space=target.heap.id)))
    heir.send(m.Pause())
    heir.wait_state(ControlState.PAUSING)
    assert not heir.seen(m.Error)


def test_a_teacher_behind_a_pulled_cable_gives_way_to_the_successor_within_two_seconds_and_has_control_again_when_heard(
    serve: Serve, join: Join, socket_directory: Path
) -> None:
    """No end of the connection is ever signalled: the relay is open, and forwards nothing."""
    relay = Relay(socket_directory / "relay.sock", serve(Target()).addresses[0])
    try:
        teacher, heir = (
            join(relay.address, control=True, person="t"),
            join(relay.address.replace("relay", "0"), person="h"),
        )
        teacher.send(m.NameSuccessor(client=heir.number))
        teacher.until(lambda: teacher.state.clients.successor == heir.number)
        relay.hold()
        pulled = time.monotonic()
        teacher.send(m.Ping(number=1))  # still there, and not heard
        heir.until(lambda: heir.state.clients.controller == heir.number)
        passed = time.monotonic() - pulled
        relay.go_on()
        # It is heard again, and soon: the class is its own again, and the successor succeeds as before.
        heir.until(lambda: heir.state.clients.controller == teacher.number)
        assert heir.state.clients.successor == heir.number
        print(f"control passed after {passed:.2f} s")
        assert SessionOptions().succession_secs + 0.25 < 2, "a look each quarter of a second"
    finally:
        relay.close()


def test_a_target_that_is_held_stays_so_when_the_successor_takes_over_from_a_silent_teacher(
    serve: Serve, join: Join
) -> None:
    target = Target()
    address = serve(target, options=SessionOptions(succession_secs=0.6)).addresses[0]
    teacher, heir = join(address, control=True, pause=True, person="t"), join(address, person="h")
    teacher.send(m.NameSuccessor(client=heir.number))
    with target.running(START) as progress:
        teacher.wait_state(ControlState.PAUSED)
        # From here on the teacher reads nothing and answers no ping.
        heir.until(lambda: heir.state.clients.controller == heir.number)
        assert progress.events == 0
        assert heir.state.state is ControlState.PAUSED
        heir.send(m.Resume())
    heir.until_events(1)


def test_a_teacher_who_was_silent_does_not_take_control_back_from_whom_the_successor_gave_it_to(
    serve: Serve, join: Join
) -> None:
    address = serve(Target(), options=SessionOptions(succession_secs=0.6)).addresses[0]
    teacher, heir, third = (
        join(address, control=True, person="t"),
        join(address, person="h"),
        join(address, person="3"),
    )
    teacher.send(m.NameSuccessor(client=heir.number))
    heir.until(lambda: heir.state.clients.controller == heir.number)
    heir.send(m.HandOver(client=third.number))
    heir.until(lambda: heir.state.clients.controller == third.number)
    teacher.sync()
    # The controller is supervised since: the next one, who reads nothing either, gives way.
    third.send(m.NameSuccessor(client=heir.number))
    heir.until(lambda: heir.state.clients.controller == heir.number)
    teacher.sync()
    assert not any(message.controller == teacher.number for message in teacher.seen(m.Clients)[-4:])


def test_who_reads_nothing_is_told_as_behind_and_stalled_and_who_reads_is_not(
    serve: Serve, join: Join
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    teacher, pupil = (
        join(address, control=True, person="t"),
        join(address, person="p", following=True),
    )
    pupil.until(lambda: entry_of(pupil, pupil.number).behind == 0)  # asked once, and answered
    teacher.until(lambda: entry_of(teacher, pupil.number).behind == 0)
    for _ in range(7):
        target.event(START)
    teacher.until(lambda: entry_of(teacher, pupil.number).stalled)
    told = entry_of(teacher, pupil.number)
    assert told.behind is not None
    assert 1 <= told.behind <= 7
    teacher.until(lambda: entry_of(teacher, teacher.number).behind == 0)
    pupil.until(
        lambda: (
            entry_of(pupil, pupil.number).behind == 0 and not entry_of(pupil, pupil.number).stalled
        )
    )


def test_a_client_that_knows_nothing_of_classes_gets_none_of_it(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    teacher, old = join(address, control=True, person="t"), join(address)
    teacher.send(m.Look(at=Focus(space=target.heap.id)))
    teacher.send(m.Attend(person="changed"))
    teacher.until(lambda: entry_of(teacher, teacher.number).person == "changed")
    target.event(START)
    old.event()
    old.sync()
    kinds = {type(message) for message in old.diary}
    assert not kinds & {m.Looked, m.Ping}
    assert entry_of(old, teacher.number).person == "t"  # unchanged since it came


def test_a_wrong_attend_ends_its_own_client_only(serve: Serve, join: Join, ended: EndLog) -> None:
    target = Target()
    address = serve(target).addresses[0]
    teacher = join(address, control=True, person="t")
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(address.removeprefix("unix:"))
    client = Connection(Role.CLIENT)
    sock.sendall(
        client.preamble() + client.send(m.Hello(client="liar", person="l", following=True))
    )
    sock.sendall(b"\x08\0\0\0\x57\0" + bytes(22) + b"\x81\xa6person\x07"[:8])
    assert "broke the protocol" in ended.abnormal()[0]
    sock.close()
    target.event(START)
    teacher.event()


def test_the_leaders_lesson_reaches_followers_and_their_answers_the_leader_alone(
    serve: Serve, join: Join
) -> None:
    address = serve(Target()).addresses[0]
    teacher = join(address, control=True, person="t")
    pupil, other = join(address, person="p", following=True), join(address, person="o")
    asked = LessonPlace(lesson="barrier", step=2, attempt=1)
    teacher.send(m.Look(at=Focus(lesson=asked)))
    assert pupil.next(m.Looked).at.lesson == asked
    late = join(address, person="l", following=True)
    assert late.next(m.Looked).at.lesson == asked, "who comes late is at the right step"
    pupil.send(m.Attend(person="p", following=True, step=2, tries=(1,)))
    teacher.until(lambda: entry_of(teacher, pupil.number).tries == (1,))
    pupil.send(m.Attend(person="p", following=True, step=2, tries=(1, 0)))
    teacher.until(lambda: entry_of(teacher, pupil.number).tries == (1, 0))
    assert entry_of(teacher, pupil.number).step == 2
    other.send(m.Attend(person="renamed"))
    late.until(lambda: entry_of(late, other.number).person == "renamed")
    for viewer in (pupil, other, late):
        assert entry_of(viewer, pupil.number).tries == ()
        assert entry_of(viewer, pupil.number).step is None
    teacher.send(m.Look(at=Focus(lesson=LessonPlace(lesson="barrier", step=2, revealed=True))))
    pupil.until(lambda: (led_to(pupil) or asked).revealed)


def led_to(viewer: Viewer) -> LessonPlace | None:
    """Where the leader of the class is, as this viewer was told."""
    return None if viewer.state.looked is None else viewer.state.looked.at.lesson


def answered(teacher: Viewer, step: int, expected: dict[int, tuple[int, ...]]) -> bool:
    """Whether the teacher was told exactly these answers to the question of a step."""
    told = {
        one.id: one.tries
        for one in teacher.state.clients.clients
        if one.following and one.step == step
    }
    return told == expected


def ask_and_answer(teacher: Viewer, pupils: list[Viewer], step: int) -> None:
    """Have a question asked, answered by all, and each answer told to the teacher."""
    asked = LessonPlace(lesson="barrier", step=step, attempt=1)
    teacher.send(m.Look(at=Focus(lesson=asked)))
    expected: dict[int, tuple[int, ...]] = {one.number: (one.number % 3,) for one in pupils}
    for pupil in pupils:
        await_place(pupil, asked)
        tries = expected[pupil.number]
        pupil.send(m.Attend(person="p", following=True, step=step, tries=tries))
    teacher.until(lambda: answered(teacher, step, expected))


def await_place(pupil: Viewer, place: LessonPlace) -> None:
    pupil.until(lambda: led_to(pupil) == place)


@pytest.mark.soak
def test_a_hundred_students_are_asked_and_each_answer_arrives(serve: Serve, join: Join) -> None:
    address = serve(Target()).addresses[0]
    teacher = join(address, control=True, person="t")
    pupils = [join(address, person=f"p{number}", following=True) for number in range(100)]
    for step in range(5):
        ask_and_answer(teacher, pupils, step)
