"""A class on one session: the participants, and the leader's place (SPEC.md section 8.12).

Names and places come from strangers. So everything here has a limit, and a displayed name can
neither leave its line nor change the direction of writing.

Knows the values; does not know who may send or receive them.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

__all__ = [
    "LOOK_CHARS",
    "MOST_STEPS",
    "MOST_TRIES",
    "PERSON_CHARS",
    "Attend",
    "Focus",
    "LessonPlace",
    "Look",
    "Looked",
    "person_name",
]

PERSON_CHARS = 40
"""Longest name of a person: a row of a list that can be read from the last row of a classroom."""

LOOK_CHARS = 64
"""Longest name of a view or a panel."""

MOST_STEPS = 1000
"""Steps of a lesson."""

MOST_TRIES = 8
"""Tries at a question."""

_MOST_MARKS = 2
"""Accents on one letter: Vietnamese has two, a prank has forty."""

_READ_CHARS = 8 * PERSON_CHARS
"""Only this many characters of a text are examined; of a longer text the rest is ignored."""


def person_name(text: str) -> str:
    """Return a name as it may be shown to others: one line of visible letters.

    Control characters, such as line ends, and invisible ones are removed, among them those that
    change the direction of writing, and all accents beyond two on one letter. Runs of spaces become
    one. The result may be empty.
    """
    kept: list[str] = []
    marks = 0
    for char in unicodedata.normalize("NFC", text[:_READ_CHARS]):
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if char.isspace():
            kept.append(" ")
        elif category[0] != "C" and marks <= _MOST_MARKS:
            kept.append(char)
    return " ".join("".join(kept).split())[:PERSON_CHARS].rstrip()


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonPlace:
    """Where a class is in a lesson.

    Attributes:
        lesson: Name of the lesson.
        step: Place of the step, from 0.
        attempt: 0: the event of the step was not reached yet; otherwise which try at its question is open, from 1.
        revealed: Whether the right answer may be shown.
    """

    lesson: str
    step: int = 0
    attempt: int = 0
    revealed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Focus:
    """Place that a person is viewing; None means not specified.

    Attributes:
        space: Id of the active space.
        stream: Id of the stream that paints it.
        key: Stable key of the selected tile; None: none is selected.
        view: How the space is drawn: ``tiles`` or the name of another renderer.
        panel: Name of the panel in front.
        sequence: Sequence of the viewed event, in a live session; None: the latest. In a playback
            the playback has the position.
        lesson: Where the leader is in a lesson; None: in none.
    """

    space: int | None = None
    stream: int | None = None
    key: int | None = None
    view: str = ""
    panel: str = ""
    sequence: int | None = None
    lesson: LessonPlace | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Attend:
    """Client: my name, whether I follow the leader, and my answers to the question of a step.

    Attributes:
        person: Name for the others; the server sanitises it. Empty: none.
        following: Whether to receive what the leader is viewing, and in a playback to see the
            leader's.
        step: Place of the step of a lesson that I am at; None: at none.
        tries: The choices that I took at its question, by their places in it, in the order of the tries.
    """

    person: str = ""
    following: bool = False
    step: int | None = None
    tries: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Client, controller: what I am viewing from now on."""

    at: Focus = field(default_factory=Focus)


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """Server, to followers: what the leader is viewing.

    Attributes:
        client: Number of the leader.
        at: The place.
    """

    client: int
    at: Focus = field(default_factory=Focus)
