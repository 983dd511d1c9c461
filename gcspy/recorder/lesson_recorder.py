"""Records a lesson: runs it like a student who watches every event, and writes a file that plays like the live session.

For students whose system cannot simulate, and for authors of lessons: it ends with an error at a
step whose event never comes.

It does not wait: times are computed from the pace. Knows lessons, the simulator and the recorder;
does not know windows.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from gcspy_protocol.errors import CommandError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, Fired, Message, Resume, State
from gcspy_protocol.model import ControlState
from gcspy_protocol.triggers import Trigger
from gcspy_replay.file import FileStore, WireTap

from gcspy.connection.link import Link, connect
from gcspy.connection.reconnecting_link import ReconnectingLink
from gcspy.hosts.simulation_host import fields_of_lesson, simulation_of
from gcspy.recorder.lossless import LosslessMode
from gcspy.recorder.recorder import Recorder, StopFlag, StopReason
from gcspy_client.lessons import Lesson
from gcspy_client.lessons.lesson import BEGINS, TRIGGER
from gcspy_client.lessons.step_requests import filters_of, problem_of_event, settings_of

__all__ = ["record_lesson"]

_DEADLINE_SECS = 60.0
_MOST_EVENTS = 1_000
"""Events within which the solution of an exercise must lead to what it asks for."""


class _Leader(ReconnectingLink):
    """A link that runs a lesson by its messages.

    Attributes:
        reached: Number of the event of each step, in their order.
        problem: Why it could not continue; empty: it could.
    """

    def __init__(self, dial: Callable[[], Link], lesson: Lesson, stop: StopFlag) -> None:
        super().__init__(dial)
        self._lesson, self._stop = lesson, stop
        self._session = ClientInterpreter()
        self._events = 0
        self._waits = self._solves = False
        self._solved: set[int] = set()
        self.reached: list[int] = []
        self.problem = ""

    def receive(self, timeout_secs: float | None = None) -> Message | None:
        """The next message; it drives the lesson."""
        message = super().receive(timeout_secs)
        if message is not None:
            self._follow(message)
        return message

    def _follow(self, message: Message) -> None:
        self._session.apply(message)
        match message:
            case Event():
                self._events += 1
                if self._solves and self._events - self.reached[-1] > _MOST_EVENTS:
                    self._solves = False
                    self._end(
                        f"its solution does not solve the exercise within {_MOST_EVENTS:,} events",
                        -1,
                    )
            case Fired() if self._solves:
                self._solves = False
            case Fired() if self._waits:
                self.reached.append(self._events)
                self._waits = False
            case State(state=ControlState.PAUSED) if not self._waits and not self._solves:
                self._go_on()
            case State(state=ControlState.ENDED) if self._solves:
                self._end("the program ended before the exercise was solved by its solution", -1)
            case State(state=ControlState.ENDED) if self._waits:
                self._end(f"the program ended before the event of the step: {message.reason}")
            case _:
                pass  # not a message that a lesson waits for

    def _go_on(self) -> None:
        """Take the next steps, up to one whose event has to come."""
        while not self._waits:
            if self._solve():
                return
            if len(self.reached) == len(self._lesson.steps):
                self._stop.requested = True
                return
            step = self._lesson.steps[len(self.reached)]
            kinds = () if self._session.welcome is None else self._session.welcome.events
            for messages, wrong in (
                filters_of(step, kinds),
                settings_of(step.settings, self._session.settings.settings),
            ):
                for message in messages:
                    self.send(message)
                if wrong:
                    self._end(wrong)
                    return
            spaces = [state.space for state in self._session.spaces.values()]
            unclear = problem_of_event(step, spaces)
            if unclear:
                self._end(unclear)
                return
            self._waits = bool(step.until)
            if step.until:
                self.send(Trigger(id=TRIGGER, expression=step.until, note=step.title))
                self.send(Resume())
            else:
                self.reached.append(self._events)

    def _solve(self) -> bool:
        """Solve the exercise of the step that was reached last, if it has one; tell whether to wait for that."""
        place = len(self.reached) - 1
        exercise = self._lesson.steps[place].exercise if place >= 0 else None
        if exercise is None or place in self._solved:
            return False
        self._solved.add(place)
        messages, wrong = settings_of(exercise.solution, self._session.settings.settings)
        if wrong:
            self._end(f"solution: {wrong}", -1)
            return True
        for message in messages:
            self.send(message)
        self._solves = True
        self.send(Trigger(id=TRIGGER, expression=exercise.check, note=exercise.task))
        self.send(Resume())
        return True

    def _end(self, why: str, back: int = 0) -> None:
        place = len(self.reached) + back
        step = self._lesson.steps[place]
        self.problem = f"{self._lesson.path}:{step.line}: step {place + 1}, {step.title!r}: {why}"
        self._stop.requested = True


def record_lesson(lesson: Lesson, path: Path) -> tuple[int, ...]:
    """Run a lesson to its end, and record it.

    Args:
        lesson: The lesson.
        path: A file that does not exist yet.

    Returns:
        The number of the event of each step, by step.

    Raises:
        CommandError: A step's event never comes, or a setting is impossible.
        RecordingError: The file cannot be written.
    """
    from gcspy_drivers.simulator.driver import PacedClock, SimulatorSession

    from gcspy_server.api import Trigger as ServerTrigger

    session = SimulatorSession(simulation_of(fields_of_lesson(lesson)), clock=PacedClock())
    session.server.set_trigger(
        ServerTrigger(id=TRIGGER, expression=BEGINS, note="the lesson begins")
    )
    stop, ends = StopFlag(), threading.Event()
    taps = [WireTap()]
    with (
        tempfile.TemporaryDirectory(prefix="gcspy-") as folder,
        session.server.serve(f"unix:{folder}/lesson.sock") as listening,
    ):
        thread = threading.Thread(target=_run, args=(session, ends), name="gcspy lesson")

        def dial() -> Link:
            return connect(
                listening.addresses[0],
                client="gcspy demo --record",
                wants_control=True,
                tap=taps[0].receive_data,
            )

        link = _Leader(dial, lesson, stop)
        with link:
            session.server.let_go_when(lambda: "the lesson is recorded" if ends.is_set() else "")
            thread.start()
            try:
                recorder = Recorder(
                    link,
                    lambda: taps[0],
                    lambda: FileStore(path),
                    lossless=LosslessMode(_DEADLINE_SECS),
                )
                report = recorder.run(stop=stop)
            finally:
                ends.set()
                link.close()
                thread.join()
    if link.problem:
        raise CommandError(link.problem)
    if report.error is not None:
        raise report.error
    if report.stopped is not StopReason.SIGNAL:
        raise CommandError(
            f"{lesson.path}: the recording ended before the lesson did: {report.stopped.value}"
        )
    return tuple(link.reached)


def _run(session: object, ends: threading.Event) -> None:
    from gcspy_drivers.simulator.driver import SimulatorSession

    assert isinstance(session, SimulatorSession)
    ended = session.run(ends)
    if not ends.is_set():
        session.server.end(ended)
