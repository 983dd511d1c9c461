"""The usual conditions of triggers, written from a few choices: what, of which stream, from which amount on.

Knows expressions and schemas; does not know widgets, or who evaluates a condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from gcspy_protocol.errors import ExpressionError
from gcspy_protocol.expression import name_part, parse
from gcspy_protocol.expression.nodes import Literal
from gcspy_protocol.model import Naming, Presentation, Space, Stream

__all__ = [
    "FALLBACK_EXAMPLE",
    "KIND_WORDS",
    "ConditionKind",
    "Subject",
    "amount_problem",
    "default_amount",
    "example",
    "subjects",
    "write_condition",
]


class ConditionKind(Enum):
    """Kind of condition that a trigger waits for."""

    OWN = "own"
    ABOVE = "above"
    GROWS = "grows"
    FREE = "free"
    APPEARS = "appears"


KIND_WORDS = {
    ConditionKind.OWN: "own condition",
    ConditionKind.ABOVE: "total rises above",
    ConditionKind.GROWS: "total grows in one event by",
    ConditionKind.FREE: "free share rises above",
    ConditionKind.APPEARS: "a new type appears",
}

FALLBACK_EXAMPLE = 'sum("name of a space".Used) > 64MiB'
"""Shown while there is no session to take names from."""

_PERCENT = (Presentation.PERCENT, Presentation.PERCENT_VAR)
_STEPS = (1, 2, 5, 10)
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_GROWTH, _FREE_SHARE = "10%", "50%"


@dataclass(frozen=True, slots=True)
class Subject:
    """A stream that a condition can be about.

    Attributes:
        space: Name of its space.
        stream: Its name.
        in_bytes: Whether its values are bytes.
    """

    space: str
    stream: str
    in_bytes: bool = False

    @property
    def title(self) -> str:
        """As people read it."""
        return f"{self.stream} · {self.space}"

    @property
    def written(self) -> str:
        """As written in an expression, with its space, in quotes where they are needed."""
        return f"{name_part(self.space)}.{name_part(self.stream)}"


_FITS: dict[ConditionKind, Callable[[Space, Stream], bool]] = {
    ConditionKind.OWN: lambda _space, _stream: False,
    ConditionKind.ABOVE: lambda _space, stream: _is_amount(stream),
    ConditionKind.GROWS: lambda _space, stream: _is_amount(stream),
    ConditionKind.FREE: lambda _space, stream: (
        stream.presentation in _PERCENT and "used" in stream.name.casefold()
    ),
    ConditionKind.APPEARS: lambda space, stream: (
        _names_types(space) and stream.name == "Objects" and _is_amount(stream)
    ),
}


def _is_amount(stream: Stream) -> bool:
    return stream.presentation is not Presentation.ENUM and stream.names_from is None


def _in_bytes(stream: Stream) -> bool:
    return "byte" in f"{stream.prefix} {stream.suffix}".casefold()


def _names_types(space: Space) -> bool:
    """Whether a tile is a type of objects: its driver names them one by one, and says so in their title."""
    return space.naming is Naming.STRINGS and space.tile_title.strip() in ("Type", "Class")


def subjects(kind: ConditionKind, spaces: Sequence[Space], active: str = "") -> tuple[Subject, ...]:
    """The streams that a condition of a kind can be about: those of the active space first.

    Args:
        kind: The kind.
        spaces: The spaces of the session; of several with one name none can be written, so they are left out.
        active: Name of the active space.
    """
    names = [space.name for space in spaces]
    ordered = sorted(spaces, key=lambda space: space.name != active)
    return tuple(
        Subject(space.name, stream.name, _in_bytes(stream))
        for space in ordered
        if names.count(space.name) == 1
        for stream in sorted(space.streams, key=lambda one: one.name != "Used")
        if _FITS[kind](space, stream) and sum(one.name == stream.name for one in space.streams) == 1
    )


def write_condition(kind: ConditionKind, subject: Subject | None, amount: str) -> str:
    """Write a condition; empty if something is missing or wrong.

    Args:
        kind: The kind.
        subject: The stream.
        amount: A number as in expressions: ``64MiB``, ``10%``; `APPEARS` needs none.
    """
    if kind is ConditionKind.OWN or subject is None or amount_problem(kind, amount):
        return ""
    name, number = subject.written, _joined(amount)
    total = f"sum({name})"
    match kind:
        case ConditionKind.ABOVE:
            return f"{total} > {number}"
        case ConditionKind.GROWS:
            more = f"{number} * was({total})" if number.endswith("%") else number
            return f"{total} > was({total}) + {more}"
        case ConditionKind.FREE:
            return f"1 - summary({name}) / total({name}) > {number}"
        case _:
            types = f"count({name} > 0)"
            return f"{types} > was({types})"


def amount_problem(kind: ConditionKind, amount: str) -> str:
    """Return the reason why an amount is invalid; empty: it is valid."""
    if kind in (ConditionKind.OWN, ConditionKind.APPEARS):
        return ""
    text = _joined(amount)
    if not text:
        return "an amount is needed, such as 64MiB or 10%"
    try:
        root = parse(text).root
    except ExpressionError:
        root = None
    if not isinstance(root, Literal) or isinstance(root.value, bool):
        return f"{amount!r} is not an amount: write one such as 500, 64MiB or 10%"
    if kind is ConditionKind.FREE and not 0 <= root.value < 1:
        return "a share is needed, such as 40%"
    return ""


def _joined(amount: str) -> str:
    return "".join(amount.split())


def default_amount(kind: ConditionKind, now: float | None, *, in_bytes: bool = False) -> str:
    """The amount that a form begins with.

    Args:
        kind: The kind.
        in_bytes: Whether it is an amount of bytes.
        now: The total at the displayed event; None: it is unknown.
    """
    if kind is ConditionKind.GROWS:
        return _GROWTH
    if kind is ConditionKind.FREE:
        return _FREE_SHARE
    return _round_above(now, in_bytes=in_bytes) if kind is ConditionKind.ABOVE else ""


def _round_above(now: float | None, *, in_bytes: bool) -> str:
    """A round number above a value: 1, 2 or 5 times a power of ten, of KiB, MiB or GiB where it counts bytes."""
    if now is None or now <= 0:
        return "1MiB" if in_bytes else "1"
    units = [unit for unit in _UNITS if in_bytes and now >= 10 * unit[0]] or [(1, "")]
    factor, unit = units[0]
    power = 10 ** int(math.log10(max(1.0, now / factor)))
    step = next(step for step in (*_STEPS, 20) if step * power * factor > now)
    return f"{step * power}{unit}"


def example(spaces: Sequence[Space], active: str, now: Callable[[str], float | None]) -> str:
    """A condition that could be added as it stands.

    Args:
        spaces: The spaces of the session.
        active: Name of the active space.
        now: From an expression to its value at the displayed event; None: unknown.
    """
    found = subjects(ConditionKind.ABOVE, spaces, active)
    if not found:
        return FALLBACK_EXAMPLE
    amount = default_amount(
        ConditionKind.ABOVE, now(f"sum({found[0].written})"), in_bytes=found[0].in_bytes
    )
    return write_condition(ConditionKind.ABOVE, found[0], amount)
