"""A lesson, read from its file.

Knows no file and no window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from gcspy_protocol.model import EventFilter

__all__ = [
    "BEGINS",
    "TRIGGER",
    "Claim",
    "Filter",
    "Lesson",
    "LessonExercise",
    "LessonQuestion",
    "LessonStep",
    "View",
]

TRIGGER: Final = 1
"""Number of the trigger that stops at a step's event: there is one at a time."""

BEGINS: Final = "event == 'Program starts'"
"""The state of a lesson before its first step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonQuestion:
    """A question about what happens next; the continuation is hidden until the student answers.

    Attributes:
        ask: The question.
        choices: The possible answers, two or more.
        answer: Place of the right one in `choices`.
        because: Explanation; shown with the answer.
        feedback: For each choice, what is told to whoever takes it; empty: nothing in particular.
    """

    ask: str
    choices: tuple[str, ...]
    answer: int
    because: str = ""
    feedback: tuple[str, ...] = ()

    @property
    def tries(self) -> int:
        """How often a student may answer: twice, but never so often that only the right one is left."""
        return min(2, len(self.choices) - 1)

    def feedback_on(self, choice: int) -> str:
        """The feedback for whoever takes this choice."""
        return self.feedback[choice] if choice < len(self.feedback) else ""

    def order(self, seed: str) -> tuple[int, ...]:
        """The places of `choices` in the order in which they are shown: shuffled, and the same for the same seed on every system."""

        def key(place: int) -> bytes:
            text = f"{seed}\0{self.ask}\0{self.choices[place]}\0{place}"
            return blake2b(text.encode(), digest_size=8).digest()

        return tuple(sorted(range(len(self.choices)), key=key))


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonExercise:
    """Something that the student is to bring about, with settings of the running simulation.

    Attributes:
        task: What to bring about.
        check: A condition: it is solved at the event at which it becomes true.
        hint: Shown on request; empty: there is none.
        solution: Settings with which the program comes to such an event, by name: how the lesson is recorded and checked.
    """

    task: str
    check: str
    hint: str = ""
    solution: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A statement of a text, as a condition on the values that the student sees.

    Attributes:
        text: Quoted from the step: its text, title, question or an explanation.
        condition: The condition.
        at: Place of the step at whose event it holds; None: its own.
        since: Place of a step: the condition holds at each event from that step's to `at`, as far as values are known; None: at the event alone.
        line: The line in its file.
    """

    text: str
    condition: str
    at: int | None = None
    since: int | None = None
    line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """The requested view.

    Attributes:
        space: Name of the space that is made the active one; empty: none is.
        stream: Name of its stream.
        renderer: Name of the view: ``tiles``, ``table`` …; empty: as it is.
        history: Streams of history graphs beside that of the active space, as space and stream.
        panels: Names of panels to open.
        close: Names of panels to close.
        tile: A tile of the space to select.
    """

    space: str = ""
    stream: str = ""
    renderer: str = ""
    history: tuple[tuple[str, str], ...] = ()
    panels: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    tile: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """An event filter, by the name of the kind of event.

    Attributes:
        event: Name of the kind.
        enabled: Whether it is sent at all.
        delay_millis: How long to wait after it.
        period: Every n-th event is sent.
    """

    event: str
    enabled: bool = True
    delay_millis: int = 0
    period: int = 1

    def of(self, number: int) -> EventFilter:
        """The filter for the kind with this number."""
        return EventFilter(
            event=number, enabled=self.enabled, delay_millis=self.delay_millis, period=self.period
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonStep:
    """One step.

    Attributes:
        title: Its heading.
        text: Markdown.
        until: A condition: the program runs to the event at which it becomes true, and pauses there. Empty: it stays where it is.
        settings: Values to choose, by the name of the setting; a number, or the name of a choice.
        view: The view; None: unchanged.
        filters: Event filters that hold from now on; None: as before.
        question: Asked when the step's event was reached; None: there is none.
        exercise: To be done when the step's event was reached; None: there is none.
        claims: What the texts say, as conditions that can be checked.
        line: The line in its file where it begins.
    """

    title: str
    text: str
    until: str = ""
    settings: Mapping[str, int | str] = field(default_factory=dict)
    view: View | None = None
    filters: tuple[Filter, ...] | None = None
    question: LessonQuestion | None = None
    exercise: LessonExercise | None = None
    claims: tuple[Claim, ...] = ()
    line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """A lesson.

    Attributes:
        name: Its name: that of its file, without the suffix.
        title: Its heading.
        goal: The aim of the lesson, in one sentence.
        simulation: The simulation: fields of the simulator's options, by name.
        steps: In their order; at least one.
        path: The file it was read from.
        language: The language of its texts.
        original: The lesson as it was written, of which this is a translation; None: itself.
    """

    name: str
    title: str
    goal: str
    simulation: Mapping[str, Any]
    steps: tuple[LessonStep, ...]
    path: str = ""
    language: str = "en"
    original: Lesson | None = None

    def order(self, place: int, seed: str = "") -> tuple[int, ...]:
        """The order in which the choices of a step's question are shown; empty: it has no question."""
        question = (self.original or self).steps[place].question  # the same in every language
        return () if question is None else question.order(f"{self.name}/{place}/{seed}")
