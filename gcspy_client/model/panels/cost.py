"""The cost of monitoring, for a panel and a footer: levels with their cost, the budget and its effect, old data.

Knows the server's messages; does not know widgets. A cost that was not measured is shown as such,
never as zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gcspy_protocol.interpreter import ClientInterpreter, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Mode
from gcspy_protocol.settings import Setting, SettingKind

from gcspy_client.model.text import duration

__all__ = [
    "BUDGETS",
    "LevelRow",
    "age_nanos",
    "budget_setting",
    "budget_text",
    "budget_words",
    "did_text",
    "footer_text",
    "kinds_of_event",
    "level_rows",
    "level_setting",
    "looks_old",
    "old_spaces",
    "mode_of",
    "mode_rows",
    "mode_setting",
]

BUDGETS = (10, 20, 50, 100, 250, 1000)
"""Budgets that are offered, in thousandths."""

_HOLDS = {
    Mode.PASSIVE: "read while it runs",
    Mode.STOPPED: "held while it is read",
    Mode.COOPERATIVE: "waits at its events",
    Mode.EMBEDDED: "reports by itself",
    Mode.PLAYBACK: "a recording",
}

_ALL = 1000
_OLD_NANOS = 2_000_000_000
"""Data older than this is dimmed; more recent data shows its age without a change of colours."""


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A level that can be chosen.

    Attributes:
        value: Its number.
        name: Description of the level.
        cost: Cost of a gathering, as text.
        chosen: Whether it was requested.
        given: Whether most events are gathered at it now.
    """

    value: int
    name: str
    cost: str
    chosen: bool
    given: bool


def level_setting(session: ClientInterpreter) -> Setting | None:
    """The setting for the level; None: there is none."""
    settings, budget = session.settings.settings, session.budget
    if budget is not None and budget.level_setting:
        return next((one for one in settings if one.id == budget.level_setting), None)
    return next((one for one in settings if one.kind is SettingKind.CHOICE and one.costs), None)


def budget_setting(session: ClientInterpreter) -> Setting | None:
    """The setting for the budget; None: there is none."""
    budget = session.budget
    if budget is None:
        return None
    return next((one for one in session.settings.settings if one.id == budget.setting), None)


def mode_setting(session: ClientInterpreter) -> Setting | None:
    """The setting for the mode; None: it cannot be changed."""
    return next((one for one in session.settings.settings if one.modes), None)


def mode_of(session: ClientInterpreter) -> Mode | None:
    """The mode that was chosen and applies; None: none was, or it cannot be chosen."""
    setting = mode_setting(session)
    return None if setting is None or not setting.applies else setting.mode


def mode_rows(session: ClientInterpreter) -> list[tuple[int, str]]:
    """Value and text of each selectable mode; the current one includes the cost of a gathering."""
    setting = mode_setting(session)
    if setting is None:
        return []
    rows = []
    for place, mode in enumerate(setting.modes):
        cost = setting.costs[place] if place < len(setting.costs) else 0
        took = f", took {duration(cost)}" if cost else ""
        rows.append((setting.minimum + place, f"{mode.value}: {_HOLDS[mode]}{took}"))
    return rows


def level_rows(session: ClientInterpreter) -> list[LevelRow]:
    """The levels that the driver has, from the cheapest on."""
    setting, budget = level_setting(session), session.budget
    if setting is None:
        return []
    given = setting.value if budget is None or not budget.given else budget.given
    rows = []
    for place, name in enumerate(setting.choices):
        value = setting.minimum + place
        cost = setting.costs[place] if place < len(setting.costs) else 0
        rows.append(
            LevelRow(
                value,
                name,
                duration(cost) if cost else "not measured",
                chosen=value == setting.value,
                given=value == given,
            )
        )
    return rows


def budget_text(thousandths: int) -> str:
    """A budget in words."""
    return "no limit" if thousandths >= _ALL else f"{thousandths / 10:g} %"


def budget_words(session: ClientInterpreter) -> str:
    """The cost and its limit; empty: there is no budget."""
    budget = session.budget
    if budget is None:
        return ""
    spent = f"{budget.spent / 10_000:.1f} %"
    return (
        f"{spent} of {budget.allowed / 10_000:g} % used recently"
        if budget.limits
        else f"{spent} used recently, no limit"
    )


def did_text(session: ClientInterpreter) -> str:
    """The effect of the budget on levels and on the interval of gatherings; empty: none."""
    budget = session.budget
    if budget is None or not budget.limits or not budget.every_nanos:
        return ""
    every = f"at most every {duration(budget.every_nanos)}"
    if budget.full_nanos:
        return f"Level {budget.asked} every {duration(budget.full_nanos)}, level {budget.given} between, {every}"
    return every[:1].upper() + every[1:]


def kinds_of_event(session: ClientInterpreter) -> list[tuple[str, int, int]]:
    """Name of each kind of event, how many were gathered, and how many were left out for the budget."""
    budget = session.budget
    if budget is None:
        return []
    return [
        (session.event_name(kind), gathered, left_out)
        for kind, (gathered, left_out) in enumerate(
            zip(budget.gathered, budget.left_out, strict=False)
        )
    ]


def footer_text(session: ClientInterpreter) -> str:
    """All of it in one line; empty: there is no budget."""
    return "" if session.budget is None else "  ·  ".join(session.budget.parts)


def age_nanos(space: SpaceState, stream_id: int, event: Event | None) -> int:
    """How long before an event a stream was gathered; 0: at it, or unknown."""
    stream = space.streams.get(stream_id)
    if stream is None or event is None or not stream.sequence or stream.is_fresh(event):
        return 0
    return max(0, event.time_nanos - stream.time_nanos)


def looks_old(age: int) -> bool:
    """Whether values of this age are shown as old."""
    return age >= _OLD_NANOS


def old_spaces(session: ClientInterpreter) -> Iterator[tuple[str, int]]:
    """Spaces of which no stream was gathered at the latest event, and how long before that the youngest was."""
    event = session.last_event
    for space in session.spaces.values():
        ages = [
            age_nanos(space, number, event)
            for number, stream in space.streams.items()
            if stream.sequence
        ]
        youngest = min(ages, default=0)
        if youngest:
            yield space.space.name, youngest
