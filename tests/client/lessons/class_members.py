"""Students by program: sockets that follow a leader through a lesson and answer, in several processes; one in ten on a bad link.

A bad link is emulated: a student on one reads some kilobytes, then waits. The kernel's own (netem) is missing in many containers.
"""

from __future__ import annotations

import json
import random
import selectors
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Attend, LessonPlace
from gcspy_protocol.codec import encode
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import Role

from benchmarks.harness.frame_reader import FrameReader
from gcspy_client.lessons import Lesson, find_lesson

__all__ = ["ClassMembers", "MemberProcesses", "MemberState", "Student"]

_READ = {FrameType.LOOKED, FrameType.PING}
_BAD_BYTES, _BAD_SECS = 8192, (0.05, 0.6)


@dataclass(eq=False)
class Student:
    """A student: a socket, and what came and was answered.

    Attributes:
        bad: Whether the link is slow: some kilobytes, then a wait.
        looks: When each place of the lesson came first: seconds of `time.monotonic`, by step and attempt.
        answered: When each step was answered.
        tries: The choices at each step.
    """

    name: str
    sock: socket.socket
    bad: bool
    dice: random.Random
    reader: FrameReader = field(default_factory=lambda: FrameReader(_READ.__contains__))
    place: LessonPlace | None = None
    looks: dict[tuple[int, int], float] = field(default_factory=dict)
    answered: dict[int, float] = field(default_factory=dict)
    tries: dict[int, tuple[int, ...]] = field(default_factory=dict)


class ClassMembers:
    """Many students in one thread.

    Args:
        address: Unix address of the session.
        lesson: What they are asked.
        seed: Of their answers and delays.
    """

    def __init__(self, address: str, lesson: Lesson, seed: int) -> None:
        self._path, self._lesson = address.removeprefix("unix:"), lesson
        self._dice = random.Random(seed)
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._later: list[tuple[float, Student]] = []
        self.present: dict[str, Student] = {}
        self.gone: list[Student] = []
        self._thread = threading.Thread(target=self._run, name="class members")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        for one in self.present.values():
            one.sock.close()
        self._selector.close()

    def join(self, name: str, *, bad: bool = False) -> None:
        """A student joins, and follows."""
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(self._path)
        greeting = Connection(Role.CLIENT)
        hello = m.Hello(client="student", person=name, following=True)
        sock.sendall(greeting.preamble() + greeting.send(hello))
        sock.setblocking(False)
        student = Student(name, sock, bad, random.Random(self._dice.random()))
        with self._lock:
            self.present[name] = student
            self._selector.register(sock, selectors.EVENT_READ, student)

    def lose(self, name: str) -> None:
        """The connection of a student is lost."""
        with self._lock:
            student = self.present.pop(name)
            self._later = [one for one in self._later if one[1] is not student]
            if student.sock in self._selector.get_map():
                self._selector.unregister(student.sock)
            student.sock.close()
            self.gone.append(student)

    def at(self, step: int) -> int:
        """How many of those present are led to a step."""
        with self._lock:
            return sum(
                one.place is not None and one.place.step == step for one in self.present.values()
            )

    # ------------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while not self._ends.is_set():
            with self._lock:
                self._wake()
                ready = self._selector.select(0) if self._selector.get_map() else []
                for key, _ in ready:
                    self._take(key.data)
            if not ready:
                time.sleep(0.005)

    def _wake(self) -> None:
        now = time.monotonic()
        for due, student in [one for one in self._later if one[0] <= now]:
            self._later.remove((due, student))
            self._selector.register(student.sock, selectors.EVENT_READ, student)

    def _take(self, student: Student) -> None:
        try:
            data = student.sock.recv(_BAD_BYTES if student.bad else 1 << 18)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(student.sock)
            return
        for frame in student.reader.take(data):
            self._follow(student, frame.message)
        if student.bad:
            self._selector.unregister(student.sock)
            self._later.append((time.monotonic() + student.dice.uniform(*_BAD_SECS), student))

    def _follow(self, student: Student, message: Message | None) -> None:
        if isinstance(message, m.Ping):
            student.sock.send(encode(m.Pong(number=message.number)).data)
        elif isinstance(message, m.Looked) and message.at.lesson is not None:
            place = message.at.lesson
            student.place = place
            student.looks.setdefault((place.step, place.attempt), time.monotonic())
            self._answer(student, place)

    def _answer(self, student: Student, place: LessonPlace) -> None:
        question = self._lesson.steps[place.step].question
        tries = student.tries.get(place.step, ())
        if question is not None and len(tries) < place.attempt and not place.revealed:
            left = [one for one in range(len(question.choices)) if one not in tries]
            tries = (*tries, student.dice.choice(left))
            student.tries[place.step] = tries
            student.answered[place.step] = time.monotonic()
        said = Attend(person=student.name, following=True, step=place.step, tries=tries)
        student.sock.send(encode(said).data)


class MemberState(NamedTuple):
    """What became of a student: see `Student`; `looks` has step, attempt and moment."""

    name: str
    bad: bool
    placed: bool
    present: bool
    looks: list[tuple[int, int, float]]


def _serve(address: str, lesson: str, seed: int) -> None:
    """Run students in a process of their own, as each line of standard input says; the answer is a line of JSON."""
    with ClassMembers(address, find_lesson(lesson), seed) as members:
        for line in sys.stdin:
            what, *words = json.loads(line)
            answer: object = None
            if what == "join":
                members.join(words[0], bad=words[1])
            elif what == "lose":
                members.lose(words[0])
            elif what == "at":
                answer = members.at(words[0])
            else:
                answer = [_state(one) for one in [*members.present.values(), *members.gone]]
            print(json.dumps(answer), flush=True)


def _state(student: Student) -> MemberState:
    looks = [(step, attempt, moment) for (step, attempt), moment in student.looks.items()]
    return MemberState(student.name, student.bad, student.place is not None, student.sock.fileno() >= 0, looks)  # fmt: skip


class MemberProcesses:
    """Students in several processes, each with its own interpreter and event loop.

    Args:
        address: Unix address of the session.
        lesson: Name of the lesson.
        seed: Of answers and delays.
        processes: How many.
    """

    def __init__(self, address: str, lesson: str, seed: int, processes: int = 4) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", __name__, address, lesson, str(seed + number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(processes)
        ]
        self._where: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.communicate(timeout=10)

    def _ask(self, number: int, *words: object) -> Any:
        process = self._processes[number]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(words) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def join(self, name: str, *, bad: bool = False) -> None:
        """A student joins, and follows."""
        number = self._where.setdefault(name, len(self._where) % len(self._processes))
        self._ask(number, "join", name, bad)

    def lose(self, name: str) -> None:
        """The connection of a student is lost."""
        self._ask(self._where[name], "lose", name)

    def at(self, step: int) -> int:
        """How many of those present are led to a step."""
        return sum(self._ask(number, "at", step) for number in range(len(self._processes)))

    def states(self) -> list[MemberState]:
        """Return all students, those who were lost included."""
        return [
            MemberState(*one)
            for number in range(len(self._processes))
            for one in self._ask(number, "states")
        ]


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
