"""A class on one session: who is present, and where the one who leads looks (SPEC.md section 8.12).

Names and places come from strangers: everything here has a bound, and a name that is shown to others can
neither reach beyond its line nor run the other way.

Knows what is said; does not know who may say it, nor who is told.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

__all__ = ["LOOK_CHARS", "PERSON_CHARS", "Attend", "Look", "Focus", "Looked", "person_name"]

PERSON_CHARS = 40
"""Longest name of a person: a row of a list, legible from the last bench."""

LOOK_CHARS = 64
"""Longest name of a view or a panel."""

_MOST_MARKS = 2
"""Accents on one letter: Vietnamese has two, a prank has forty."""

_READ_CHARS = 8 * PERSON_CHARS
"""So much of a text is looked at; a name that has more of what is left out is cut."""


def person_name(text: str) -> str:
    """A name as it may be shown to others: one line, of letters that have a shape.

    Left out are control characters, such as line ends, and invisible ones, among them those that turn the
    direction of what follows; of accents on one letter those beyond two. Spaces are made one. May be empty.
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
class Focus:
    """Where somebody looks; what is None is not said.

    Attributes:
        space: Id of the active space.
        stream: Id of the stream that paints it.
        key: Stable key of the selected tile; None: none is selected.
        view: How the space is drawn: ``tiles`` or the name of another renderer.
        panel: Name of the panel in front.
        sequence: Of the event that is looked at, in a live session; None: the latest. In a playback the position is the playback's.
    """

    space: int | None = None
    stream: int | None = None
    key: int | None = None
    view: str = ""
    panel: str = ""
    sequence: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Attend:
    """Client: who I am, and whether I follow the one who leads.

    Attributes:
        person: Name for the others; the server makes it fit. Empty: none.
        following: Whether to be told where the leader looks, and in a playback to see the leader's.
    """

    person: str = ""
    following: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Client, controller: where I look from now on."""

    at: Focus = field(default_factory=Focus)


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """Server, to those who follow: where the leader looks.

    Attributes:
        client: Number of the leader.
        at: Where.
    """

    client: int
    at: Focus = field(default_factory=Focus)
