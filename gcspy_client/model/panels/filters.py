"""Event filters as users see them: the text of each, and the result of removing a part of it.

Knows filters; does not know who applies them, or widgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from gcspy_protocol.model import EventFilter

__all__ = ["FilterPart", "ActiveFilter", "parts_in_force", "without"]


class FilterPart(Enum):
    """One effect of a filter; each can be removed by itself. The value is the name of removing it everywhere."""

    OFF = "Enable all"
    PERIOD = "Every one"
    DELAY = "No delays"
    PAUSE = "No pauses"


@dataclass(frozen=True, slots=True)
class ActiveFilter:
    """A part of a filter that is in force.

    Attributes:
        event: The kind of event.
        part: Which part.
        words: Its text.
    """

    event: int
    part: FilterPart
    words: str


def _words(one: EventFilter) -> dict[FilterPart, str]:
    there = {
        FilterPart.OFF: "" if one.enabled else "off",
        FilterPart.PERIOD: f"1 in {one.period:,}" if one.period > 1 else "",
        FilterPart.DELAY: f"+{one.delay_millis:,} ms" if one.delay_millis else "",
        FilterPart.PAUSE: "pauses" if one.pause else "",
    }
    return {part: words for part, words in there.items() if words}


def parts_in_force(filters: Iterable[EventFilter]) -> list[ActiveFilter]:
    """All effects of all filters, in the order of the kinds of event."""
    ordered = sorted(filters, key=lambda one: one.event)
    return [
        ActiveFilter(one.event, part, words)
        for one in ordered
        for part, words in _words(one).items()
    ]


def _without(one: EventFilter, part: FilterPart) -> EventFilter:
    match part:
        case FilterPart.OFF:
            return replace(one, enabled=True)
        case FilterPart.PERIOD:
            return replace(one, period=1)
        case FilterPart.DELAY:
            return replace(one, delay_millis=0)
        case FilterPart.PAUSE:
            return replace(one, pause=False)


def without(
    filters: Mapping[int, EventFilter], part: FilterPart, events: Iterable[int] | None = None
) -> tuple[EventFilter, ...]:
    """The filters that are to be set so that a part is in force no more.

    Args:
        filters: Those in force, by kind of event.
        part: The effect to remove.
        events: For which kinds; None: for all.

    Returns:
        The changed filters.
    """
    wanted = set(filters if events is None else events)
    new = [_without(one, part) for event, one in filters.items() if event in wanted]
    return tuple(one for one in new if one != filters[one.event])
