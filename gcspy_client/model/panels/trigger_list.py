"""Triggers as users see them: checked while they are typed, described with their state, found in the timeline.

Knows triggers, expressions and schemas; does not know who evaluates them, or widgets.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gcspy_protocol.errors import AmbiguousName, ExpressionError, UnknownName
from gcspy_protocol.expression import (
    FACTS,
    FUNCTIONS,
    Operand,
    bind,
    name_part,
    parse_condition,
)
from gcspy_protocol.messages import Fired
from gcspy_protocol.model import EventKind, Space
from gcspy_protocol.triggers import TriggerAction, TriggerState, TriggerStatus

from gcspy_client.model.playback.timeline import EventTimeline
from gcspy_client.model.text import UNKNOWN_TEXT

__all__ = [
    "ACTION_WORDS",
    "ConditionCheck",
    "Completions",
    "FiredLog",
    "TriggerFiring",
    "check",
    "completions",
    "event_number",
    "free_id",
    "operand_words",
    "state_words",
]

ACTION_WORDS = {
    TriggerAction.PAUSE: "pause",
    TriggerAction.BOOKMARK: "bookmark",
    TriggerAction.NOTE: "only report",
}

_MOST_FIRINGS = 1_000
"""Maximum firings whose times a window stores; of earlier ones only the number."""

_JOINS = ("and", "or", "not", "true", "false")
_LAST_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
_OF_SPACE = re.compile(r"""(?:"(?P<quoted>[^"]*)"|(?P<word>[A-Za-z_][A-Za-z0-9_]*))\s*\.\s*$""")
_EVENT_TEXT = re.compile(r"""\bevent\s*[=!]=\s*'(?P<text>[^']*)$""")
_NAME_TEXT = re.compile(r"""\bsummary\(\s*(?P<stream>[^,()']*),\s*'(?P<text>[^']*)$""")


# ------------------------------------------------------------------- while it is written


@dataclass(frozen=True, slots=True)
class ConditionCheck:
    """The check of a condition while it is typed.

    Attributes:
        problem: The error, or the missing part; empty: none.
        offset: Character of the error; None: the error has no place.
        waits: Whether the condition names something that does not exist yet: it may be set, and waits.
        clear: The condition to set, with the space before each name that several spaces have.
    """

    problem: str = ""
    offset: int | None = None
    waits: bool = False
    clear: str = ""

    @property
    def fits(self) -> bool:
        """Whether a server would take it."""
        return not self.problem or self.waits


def check(text: str, spaces: Sequence[Space], scope: str = "", active: str = "") -> ConditionCheck:
    """Check a condition like the server, after each name that several spaces have got its space.

    Args:
        text: The text so far.
        spaces: The spaces of the session.
        scope: Name of the default space of names; empty: none.
        active: Name of the active space: that of names that several spaces have; empty: there is none.
    """
    if not text.strip():
        return ConditionCheck("a condition is needed")
    default = next((space.id for space in spaces if space.name == scope), None)
    clear, inserted = text.strip(), 0
    leading = len(text) - len(text.lstrip())
    while True:
        try:
            bind(parse_condition(clear), spaces, default)
        except AmbiguousName as error:
            mine = f"{name_part(active)}."
            if active and sum(choice.startswith(mine) for choice in error.choices) == 1:
                clear = clear[: error.offset] + mine + clear[error.offset :]
                inserted += len(mine)
                continue
            return ConditionCheck(_plain(error), _offset(error, inserted, leading))
        except UnknownName as error:
            offset = _offset(error, inserted, leading)
            return ConditionCheck(_plain(error), offset, waits=True, clear=clear)
        except ExpressionError as error:
            return ConditionCheck(_plain(error), _offset(error, inserted, leading))
        return ConditionCheck(clear=clear)


def _offset(error: ExpressionError, inserted: int, leading: int) -> int | None:
    """The place in what was typed; None: it is behind a name that got its space."""
    return None if inserted else error.offset + leading


def _plain(error: ExpressionError) -> str:
    """Without the place, which is shown."""
    return str(error).removesuffix(f" (at character {error.offset + 1})")


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions of the text at the cursor.

    Attributes:
        start: Character from which on it is replaced.
        words: The replacements, the likeliest first.
    """

    start: int
    words: tuple[str, ...]


def completions(
    text: str,
    cursor: int,
    spaces: Sequence[Space],
    kinds: Sequence[EventKind] = (),
    scope: str = "",
) -> Completions:
    """The completions of the word before the cursor; empty if there are none.

    Args:
        text: The text so far.
        cursor: Characters before the cursor.
        spaces: The spaces of the session.
        kinds: The kinds of event.
        scope: Name of the space in question; empty: none.
    """
    before = text[:cursor]
    said = _EVENT_TEXT.search(before)
    if said is not None:
        return _ranked(
            said["text"], said.start("text"), [(kind.name, f"{kind.name}'") for kind in kinds]
        )
    said = _NAME_TEXT.search(before)
    if said is not None:
        wanted = said["stream"].rpartition(".")[2].strip().strip('"').casefold()
        names = [
            name
            for space in spaces
            for stream in space.streams
            if stream.name.casefold() == wanted
            for name in stream.enum_names
        ]
        return _ranked(
            said["text"], said.start("text"), [(name, f"{name}'") for name in dict.fromkeys(names)]
        )
    if before.count("'") % 2:
        return Completions(cursor, ())
    in_quotes = before.count('"') % 2 == 1
    word = None if in_quotes else _LAST_WORD.search(before)
    start = before.rindex('"') if in_quotes else cursor if word is None else word.start()
    written = before[start:].lstrip('"')
    of_space = _OF_SPACE.search(before[:start])
    if of_space is not None:
        name = (of_space["quoted"] or of_space["word"] or "").casefold()
        streams = [
            stream.name
            for space in spaces
            if space.name.casefold() == name
            for stream in space.streams
        ]
        return _ranked(written, start, [(one, _written(one)) for one in streams])
    if not in_quotes and word is None:
        return Completions(cursor, ())
    choices = _streams(spaces, scope) + [
        (space.name, f"{_written(space.name)}.") for space in spaces
    ]
    if word is not None:
        choices += [(name, f"{name}(") for name in FUNCTIONS] + [
            (name, name) for name in (*FACTS, *_JOINS)
        ]
    return _ranked(written, start, choices)


def _streams(spaces: Sequence[Space], scope: str) -> list[tuple[str, str]]:
    """Names of streams, each written so that it is unambiguous."""
    count: dict[str, int] = {}
    for space in spaces:
        for stream in space.streams:
            count[stream.name.casefold()] = count.get(stream.name.casefold(), 0) + 1
    return [
        (
            stream.name,
            _written(stream.name)
            if count[stream.name.casefold()] == 1 or space.name == scope
            else f"{_written(space.name)}.{_written(stream.name)}",
        )
        for space in spaces
        for stream in space.streams
    ]


def _written(name: str) -> str:
    """A name as written in an expression; one that is also a function's stands in quotes, as people confuse them."""
    return f'"{name}"' if name in FUNCTIONS else name_part(name)


def _ranked(written: str, start: int, choices: Iterable[tuple[str, str]]) -> Completions:
    """Return the choices with this prefix, then those with a word of this prefix; a complete name needs no completion."""
    wanted = written.casefold()
    begins, inside = [], []
    for name, word in choices:
        lower = name.casefold()
        if lower.startswith(wanted):
            begins.append(word)
        elif wanted and f" {wanted}" in f" {lower}":
            inside.append(word)
    words = tuple(dict.fromkeys(begins + inside))
    return Completions(start, () if words == (written,) else words)


# ----------------------------------------------------------------------------- in words


def operand_words(operands: Iterable[Operand]) -> str:
    """The numbers that went into a condition: ``sum(Used) = 1,234``."""
    return ", ".join(_operand(one) for one in operands)


def _operand(one: Operand) -> str:
    value = one.value
    if value is None:
        words = UNKNOWN_TEXT
    elif isinstance(value, bool):
        words = "true" if value else "false"
    elif isinstance(value, int):
        words = f"{value:,}"
    else:
        words = f"{value:,.6g}" if isinstance(value, float) else repr(value)
    partly = (
        f" (of {one.covered:,} of {one.tiles:,} tiles)"
        if value is not None and one.covered < one.tiles
        else ""
    )
    return f"{one.text} = {words}{partly}"


def state_words(status: TriggerStatus) -> tuple[str, str]:
    """State of a trigger, and its tone: ``good``, ``warning``, ``error``, ``dim`` or ``accent``."""
    match status.state:
        case TriggerState.ARMED:
            return "armed", "good"
        case TriggerState.HOLDS:
            return "fired", "accent"
        case TriggerState.WAITING:
            return "waiting", "warning"
        case TriggerState.FAILED:
            return "failed", "error"
        case TriggerState.OFF:
            return (
                ("fired once", "dim") if status.trigger.enabled and status.fired else ("off", "dim")
            )


def free_id(triggers: Iterable[TriggerStatus]) -> int:
    """The lowest number, from 1, that no trigger has."""
    taken = {status.trigger.id for status in triggers}
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


# ------------------------------------------------------------------------------ in time


def event_number(
    timeline: EventTimeline, kind: int, occurrence: int, time_nanos: int | None = None
) -> int | None:
    """The number of an event in the timeline; None where it is not in it.

    Args:
        timeline: Timeline of the session.
        kind: Kind of the event.
        occurrence: Its occurrence number.
        time_nanos: Its time, where it is known: then nothing is searched through.
    """
    if time_nanos is not None:
        number = timeline.nearest_time(time_nanos)
        while number is not None:
            row = timeline.row(number)
            if row is None or int(row["time_nanos"]) != time_nanos:
                return None
            if int(row["event"]) == kind and int(row["occurrence"]) == occurrence:
                return number
            number = timeline.next_shown(number)
        return None
    rows = timeline.rows
    same = (rows["event"] == kind) & (rows["occurrence"] == occurrence)
    places = same.nonzero()[0]
    return int(timeline.numbers[places[-1]]) if len(places) else None


@dataclass(frozen=True, slots=True)
class TriggerFiring:
    """A firing of a trigger.

    Attributes:
        fired: The server's message.
        number: Number of the event in the timeline; 0 if it is not in it.
    """

    fired: Fired
    number: int


class FiredLog:
    """The firings of a session, the latest thousand.

    Attributes:
        version: Increases with each change, so that a view knows when to redraw.
    """

    def __init__(self) -> None:
        self.version = 0
        self._firings: deque[TriggerFiring] = deque(maxlen=_MOST_FIRINGS)

    @property
    def all(self) -> tuple[TriggerFiring, ...]:
        """The earliest first."""
        return tuple(self._firings)

    def add(self, fired: Fired, timeline: EventTimeline) -> TriggerFiring:
        """Handle the server's message."""
        number = event_number(timeline, fired.event, fired.occurrence, fired.time_nanos)
        firing = TriggerFiring(fired, number or 0)
        if number is not None:
            # A playback passes an event again and again.
            same = [
                one
                for one in self._firings
                if one.number == number and one.fired.trigger.id == fired.trigger.id
            ]
            for one in same:
                self._firings.remove(one)
        self._firings.append(firing)
        self.version += 1
        return firing

    def clear(self) -> None:
        """Another session begins."""
        self._firings.clear()
        self.version += 1

    def latest_of(self, trigger: int) -> TriggerFiring | None:
        """When a trigger last fired, as far as known."""
        return next(
            (one for one in reversed(self._firings) if one.fired.trigger.id == trigger), None
        )
