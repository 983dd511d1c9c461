"""Runs a lesson: the current step, the actions to get to its event, and the parts that are hidden until a question is answered.

A trigger waits for a step's event. The server evaluates it in a live session, the player in a
recording: so the same lesson runs in both. In a recording no setting that changes the run is sent:
it was set when the recording was made.

Knows link, session, triggers and time; does not know widgets.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from gcspy_protocol.attendance import LessonPlace
from gcspy_protocol.messages import Pause, Resume
from gcspy_protocol.model import ControlState
from gcspy_protocol.triggers import Trigger
from PySide6.QtCore import QObject, Signal

from gcspy_client.lessons.lesson import TRIGGER, Lesson, LessonStep
from gcspy_client.lessons.report import QuestionResult, StudentReport, digest_of
from gcspy_client.lessons.score import Score
from gcspy_client.lessons.step_requests import filters_of, problem_of_event, settings_of
from gcspy_client.link import WindowLink
from gcspy_client.model.panels.trigger_list import TriggerFiring
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import LinkPhase
from gcspy_client.translation import translate

__all__ = ["LessonProgress"]

_FIRST = 1
"""Number of the event with which a lesson begins."""


class LessonProgress(QObject):
    """The progress in a lesson.

    Attributes:
        lesson: The lesson; None: there is none.
        at: Place of the step whose text is shown.
        reached: For each step that was reached, the number of the event at which it stood.
        waiting: Whether the program runs to the event of the step `at`.
        tries: For each question that was tried, the places of the choices in the order of the tries.
        solved: Places of the steps whose exercise was solved.
        times: For each question or exercise, when it was first shown and when it was last tried; seconds of `clock`.
        seed: Seed of the order in which choices are shown.
        led: Where the leader of the class is, while this window follows; None: it does not, or the leader is in no lesson.
        teaches: Whether others follow this window: then they answer, and not its user.
        attempts: For each question that was asked in the class, which try is open.
        revealed: Places of the steps whose right answer was shown to the class.
        problem: The part of the step that failed; empty: none.

    Signals:
        changed: Any of these changed.
        view_requested: Another view is to be shown; its `View`.
        event_requested: An event of the past is to be shown; its number. 0: the latest.

    Args:
        session: The displayed and the live state.
        link: To the server or player.
        clock: Seconds, for the times of answers.
    """

    changed = Signal()
    view_requested = Signal(object)
    event_requested = Signal(int)

    def __init__(
        self,
        session: ClientSession,
        link: WindowLink,
        parent: QObject | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._session, self._link = session, link
        self.lesson: Lesson | None = None
        self.at = 0
        self.reached: dict[int, int] = {}
        self.tries: dict[int, tuple[int, ...]] = {}
        self.solved: set[int] = set()
        self.times: dict[int, tuple[float, float]] = {}
        self._clock = clock
        self.seed = ""
        self.led: LessonPlace | None = None
        self.teaches = False
        self.attempts: dict[int, int] = {}
        self.revealed: set[int] = set()
        self.waiting = False
        self.problem = ""
        self._begun = False
        self._asked_as: int | None = None
        """Number of this client when it asked for the event of the step; None: what it asked for may be lost."""

    # --------------------------------------------------------------------------- state

    @property
    def step(self) -> LessonStep | None:
        """The step whose text is shown."""
        return None if self.lesson is None else self.lesson.steps[self.at]

    @property
    def arrived(self) -> bool:
        """Whether the event of this step was reached."""
        return self.at in self.reached

    @property
    def asks(self) -> bool:
        """Whether a question waits for its answer: then nothing that comes later may be seen."""
        step = self.step
        return (
            step is not None
            and step.question is not None
            and self.arrived
            and not self.is_answered(self.at)
        )

    def is_answered(self, place: int) -> bool:
        """Whether the question of a step was answered right, or as often as it may be."""
        question = None if self.lesson is None else self.lesson.steps[place].question
        tries = self.tries.get(place, ())
        if self.led is not None or self.teaches:
            return question is not None and place in self.revealed
        return question is not None and (question.answer in tries or len(tries) >= question.tries)

    @property
    def is_playback(self) -> bool:
        """Whether a recording is played."""
        return self._session.is_playback

    @property
    def order(self) -> tuple[int, ...]:
        """The places of this question's choices in the order in which they are shown."""
        return () if self.lesson is None else self.lesson.order(self.at, self.seed)

    @property
    def score(self) -> Score:
        """The result so far."""
        steps = () if self.lesson is None else self.lesson.steps
        questions = {
            place: step.question for place, step in enumerate(steps) if step.question is not None
        }
        first = sum(
            self.tries.get(place, ())[:1] == (question.answer,)
            for place, question in questions.items()
        )
        right = sum(
            question.answer in self.tries.get(place, ()) for place, question in questions.items()
        )
        done = sum(map(self.is_answered, questions))
        return Score(first=first, later=right - first, answered=done, questions=len(questions))

    @property
    def limit(self) -> int | None:
        """Number of the last event that may be seen while a question waits; None: all may."""
        return self.reached[self.at] if self.asks else None

    @property
    def why_not_next(self) -> str:
        """Why the next step cannot be shown; empty: it can."""
        if self.lesson is None:
            return translate("there is no lesson")
        if self.led is not None:
            return translate("the leader of the class goes to the next step")
        if self.at + 1 >= len(self.lesson.steps):
            return translate("this is the last step")
        if self.asks:
            return (
                translate("reveal the answer first")
                if self.teaches
                else translate("answer the question first")
            )
        if not self.arrived:
            return self._why_not_run() or translate(
                "the program has not reached the event of this step yet"
            )
        return self._why_not_run() if self.at + 1 not in self.reached else ""

    def _why_not_run(self) -> str:
        live = self._session.live
        if self._link.status.phase is not LinkPhase.LIVE:
            return translate("not connected")
        if live.state is ControlState.ENDED:
            return translate("the program has ended")
        return (
            ""
            if live.is_controller()
            else translate("only the client in control may run the program: Session ▸ Take control")
        )

    # ------------------------------------------------------------------- actions of users

    def open(self, lesson: Lesson | None) -> None:
        """Begin a lesson, or put it away."""
        if (
            lesson is None
            and self.lesson is not None
            and self._link.status.phase is LinkPhase.LIVE
            and not self._why_not_run()
        ):
            self._link.send(Trigger(id=TRIGGER))
        self.lesson = lesson
        self.at, self.waiting, self.problem, self._begun = 0, False, "", False
        self.reached.clear()
        self.tries.clear()
        self.solved.clear()
        self.times.clear()
        self.attempts.clear()
        self.revealed.clear()
        self.follow()
        self.changed.emit()

    def next(self) -> None:
        """Go to the next step; to its event if that was not reached yet."""
        if not self.why_not_next:
            self._turn_to(self.at + 1)

    def back(self) -> None:
        """Go to the step before, and to its event."""
        if self.lesson is not None and self.at > 0 and self.led is None:
            self._turn_to(self.at - 1)

    def answer(self, choice: int) -> None:
        """Answer the question of this step: once more if that was wrong and another try is left.

        Args:
            choice: Its place in the question.
        """
        step = self.step
        if (
            self.asks
            and step is not None
            and step.question is not None
            and 0 <= choice < len(step.question.choices)
            and choice not in self.tries.get(self.at, ())
            and self.may_try
        ):
            self.tries[self.at] = (*self.tries.get(self.at, ()), choice)
            self._time_try()
            self.changed.emit()

    @property
    def may_try(self) -> bool:
        """Whether the question may be answered now: in a class once in each try that the leader opens."""
        if self.led is not None:
            return len(self.tries.get(self.at, ())) < self.led.attempt and not self.led.revealed
        return not self.teaches

    # ------------------------------------------------------------------------ a class

    @property
    def place(self) -> LessonPlace | None:
        """Where this window is in a lesson, for those who follow; None: in none."""
        if self.lesson is None:
            return None
        attempt = self.attempts.get(self.at, 1) if self.arrived else 0
        shown = self.at in self.revealed
        return LessonPlace(lesson=self.lesson.name, step=self.at, attempt=attempt, revealed=shown)

    def reveal(self) -> None:
        """Show the right answer to the class."""
        if self.teaches and self.asks:
            self.revealed.add(self.at)
            self.changed.emit()

    def ask_again(self) -> None:
        """Give the class a second try."""
        if self.teaches and self.asks:
            self.attempts[self.at] = self.attempts.get(self.at, 1) + 1
            self.changed.emit()

    def teach(self, teaches: bool) -> None:
        """Ask the class, or the user of this window."""
        if teaches != self.teaches:
            self.teaches = teaches
            self.changed.emit()

    def lead(self, place: LessonPlace | None) -> None:
        """Go to where the leader of the class is; None: to nobody's place any more."""
        before, self.led = self.led, place
        if before is not None and place is None:
            self._begun = True  # whoever gets control goes on here, and not from the beginning
            if before.attempt:
                self.attempts[before.step] = before.attempt
        if self.lesson is not None and place is not None and place.step < len(self.lesson.steps):
            self.at, self.waiting, self.problem = place.step, False, ""
            if place.attempt and self.at not in self.reached:
                self.reached[self.at] = (
                    self._session.number
                    if self._session.is_playback
                    else self._session.timeline.last
                )
                now = self._clock()
                self.times.setdefault(self.at, (now, now))
            if place.revealed:
                self.revealed.add(self.at)
        if place != before:
            self.changed.emit()

    def _time_try(self) -> None:
        now = self._clock()
        self.times[self.at] = (self.times.get(self.at, (now, now))[0], now)

    def _arrive(self, place: int, event: int) -> None:
        """A step's event was reached: its question is asked, its exercise begins."""
        assert self.lesson is not None
        self.reached[place] = event
        step = self.lesson.steps[place]
        if step.question is not None or step.exercise is not None:
            now = self._clock()
            self.times.setdefault(place, (now, now))
        self._await_exercise(step)

    def report(self, student: str) -> StudentReport:
        """The report of what was answered and solved so far.

        Args:
            student: The name that the student gives.
        """
        lesson = self.lesson
        results = []
        for place, step in enumerate(() if lesson is None else lesson.steps):
            shown, tried = self.times.get(place, (0.0, 0.0))
            if step.question is not None:
                tries = self.tries.get(place, ())
                results.append(
                    QuestionResult(
                        step=place + 1,
                        ask=step.question.ask,
                        tries=tuple(step.question.choices[one] for one in tries),
                        right=tries.index(step.question.answer) + 1
                        if step.question.answer in tries
                        else 0,
                        secs=round(tried - shown, 1),
                    )
                )
            if step.exercise is not None:
                results.append(
                    QuestionResult(
                        step=place + 1,
                        ask=step.exercise.task,
                        right=int(place in self.solved),
                        secs=round(tried - shown, 1),
                    )
                )
        return StudentReport(
            student=student,
            lesson="" if lesson is None else lesson.name,
            digest="" if lesson is None else digest_of(lesson),
            questions=tuple(results),
        )

    def answer_shown(self, number: int) -> None:
        """Answer with the choice that is shown at this place, from 0."""
        order = self.order
        if number < len(order):
            self.answer(order[number])

    # ------------------------------------------------------------------------ messages

    def follow(self) -> None:
        """Begin when the session has something to show; say when it ended before the event came."""
        if self.lesson is None or self.led is not None:
            return
        live = self._session.live
        if (
            not self._begun
            and self._session.interpreter.last_event is not None
            and not self._why_not_run()
        ):
            self._begun = True
            if live.state is ControlState.RUNNING:
                self._link.send(Pause())
            self._turn_to(0, rewound=self._session.is_playback)
        self._ask_anew()
        if self.waiting and live.state is ControlState.ENDED:
            self.waiting = False
            self.problem = (
                translate(
                    "The program ended before the event of this step: {reason}",
                    reason=live.state_reason,
                )
                if live.state_reason
                else translate("The program ended before the event of this step.")
            )
            self.changed.emit()

    def _ask_anew(self) -> None:
        """Ask for the event of the step again: after this window was silent, lost its connection or its control, and is back in control."""
        welcome, step = self._session.live.welcome, self.step
        if welcome is None or self._why_not_run():
            self._asked_as = None
            return
        lost, self._asked_as = self._asked_as != welcome.client_id, welcome.client_id
        if not lost or step is None or not self._begun:
            return
        if self.waiting:
            self._do(step)
            self._run_to(step)
        elif step.exercise is not None and self.arrived and self.at not in self.solved:
            self._await_exercise(step)

    def fired(self, firings: list[TriggerFiring]) -> None:
        """The event of the step may have come."""
        for firing in firings:
            if (
                self.waiting
                and firing.fired.trigger.id == TRIGGER
                and self.step is not None
                and firing.fired.trigger.expression == self.step.until
            ):
                self.waiting = False
                self._link.send(Trigger(id=TRIGGER))
                self._arrive(self.at, firing.number or self._session.timeline.last)
                self.changed.emit()
            elif (
                self.arrived
                and firing.fired.trigger.id == TRIGGER
                and self.step is not None
                and self.step.exercise is not None
                and firing.fired.trigger.expression == self.step.exercise.check
            ):
                self.solved.add(self.at)
                self._time_try()
                self._link.send(Trigger(id=TRIGGER))
                self.changed.emit()

    def restarted(self) -> None:
        """Another session has begun: the lesson starts again with it."""
        if self.lesson is not None:
            self.open(self.lesson)

    # ------------------------------------------------------------------------ how

    def _turn_to(self, place: int, *, rewound: bool = False) -> None:
        """Go to a step; `rewound`: from the first event on, as a playback may have been running when the lesson was opened."""
        lesson = self.lesson
        assert lesson is not None
        self.at, self.problem = place, ""
        step = lesson.steps[place]
        if place in self.reached:
            self._look_at(place)
        else:
            self.event_requested.emit(_FIRST if rewound else 0)
            self._do(step)
            spaces = [state.space for state in self._session.live.spaces.values()]
            unclear = problem_of_event(step, spaces)
            if unclear:
                self._say(unclear)
            elif step.until:
                self.waiting = True
                self._run_to(step)
            else:
                self._arrive(
                    place,
                    _FIRST
                    if rewound
                    else self._session.number
                    if self._session.is_playback
                    else self._session.timeline.last,
                )
        self.changed.emit()

    def _run_to(self, step: LessonStep) -> None:
        """Let the program run to the event of a step."""
        welcome = self._session.live.welcome
        self._asked_as = None if welcome is None else welcome.client_id
        self._link.send(Trigger(id=TRIGGER, expression=step.until, note=step.title))
        self._link.send(Resume())

    def _await_exercise(self, step: LessonStep) -> None:
        """Notice the event at which the exercise of a step is solved."""
        if step.exercise is not None and not self._session.is_playback:
            self._link.send(
                Trigger(id=TRIGGER, expression=step.exercise.check, note=step.exercise.task)
            )

    def _look_at(self, place: int) -> None:
        """Show the event at which a step stood."""
        assert self.lesson is not None
        number = self.reached[place]
        newest = number == max(self.reached.values())
        self.event_requested.emit(0 if newest and not self._session.is_playback else number)
        self._show_view(place)

    def _show_view(self, place: int) -> None:
        """The view of a step: its own, or the latest one before it."""
        assert self.lesson is not None
        for step in reversed(self.lesson.steps[: place + 1]):
            if step.view is not None:
                self.view_requested.emit(step.view)
                return

    def _do(self, step: LessonStep) -> None:
        """Set what a step sets."""
        if step.view is not None:
            self.view_requested.emit(step.view)
        welcome = self._session.live.welcome
        requested = [filters_of(step, () if welcome is None else welcome.events)]
        if not self._session.is_playback:
            requested.append(settings_of(step.settings, self._session.live.settings.settings))
        for messages, wrong in requested:
            for message in messages:
                self._link.send(message)
            if wrong:
                self._say(wrong)

    def _say(self, what: str) -> None:
        assert self.lesson is not None
        assert self.step is not None
        self.problem = f"{self.lesson.path}:{self.step.line}: {what}"
