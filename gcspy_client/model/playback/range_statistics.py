"""Statistics of a range of events: how memory grew, what collections cost, how many events of each kind.

Knows the table of events, memory and collections; does not know widgets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcspy_client.model.memory_history import MemoryRole
from gcspy_client.model.panels.facts import PanelFact
from gcspy_client.model.playback.memory_track import MemoryTrack
from gcspy_client.model.playback.strip import moment_text
from gcspy_client.model.playback.timeline import EventTimeline, TimelineAxis
from gcspy_client.model.text import UNKNOWN_TEXT, duration, size_in_words

__all__ = ["change_in_words", "range_facts", "range_headline"]

_MINUTE_NANOS = 60 * 10**9
_LEAST_NANOS = 10 * 10**9
"""A rate over less time says little."""


def change_in_words(change: int) -> str:
    """A signed number of bytes: ``+12.3 MiB``, ``−4.0 KiB``."""
    sign = "+" if change > 0 else "−" if change < 0 else "±"
    return f"{sign}{size_in_words(abs(change))}"


def range_headline(track: MemoryTrack, timeline: EventTimeline, first: int, last: int) -> str:
    """A range in a line: its length, the change of memory, the cost of collections."""
    parts = [duration(_nanos(timeline, first, last))]
    for i, quantity in enumerate(track.source.quantities):
        if quantity.role is MemoryRole.COMMITTED:
            continue  # it moves in great steps, and says least
        before, after = track.samples.at(i, first).value, track.samples.at(i, last).value
        if before is not None and after is not None:
            parts.append(f"{quantity.name} {change_in_words(after - before)}")
            break
    _, costs = track.costs.between(first, last)
    if len(costs):
        known = costs[costs >= 0]
        took = f", {duration(int(known.sum()))}" if len(known) else ""
        parts.append(f"{len(costs):,} {_of('collection', len(costs))}{took}")
    return "  ·  ".join(parts)


def range_facts(
    track: MemoryTrack, timeline: EventTimeline, kinds: tuple[str, ...], first: int, last: int
) -> list[PanelFact]:
    """Everything about a range.

    Args:
        track: Memory and collections.
        timeline: The table of events.
        kinds: Names of the kinds of event.
        first: Number of its first event.
        last: Number of its last event.
    """
    nanos = _nanos(timeline, first, last)
    overview = timeline.overview(1, axis=TimelineAxis.NUMBER, start=first, stop=last + 1)
    origin = timeline.span(TimelineAxis.TIME)[0]
    begins, ends = (
        moment_text(timeline.place_of(number, TimelineAxis.TIME) - origin)
        for number in (first, last)
    )
    facts = [
        PanelFact("Range"),
        PanelFact("Events", f"{first:,} to {last:,}"),
        PanelFact("Time", f"{duration(nanos)}, from {begins} to {ends}"),
    ]
    if track.has_memory:
        facts.append(PanelFact("Memory"))
    for i, quantity in enumerate(track.source.quantities):
        facts += _memory(track, i, quantity.name, quantity.about, first, last, nanos)
    if track.costs.kinds:
        facts += _collections(*track.costs.between(first, last), nanos)
    facts.append(PanelFact("Events by kind"))
    for i, kind in enumerate(overview.kinds):
        name = kinds[kind] if kind < len(kinds) else f"event kind {kind}"
        facts.append(PanelFact(name, f"{int(overview.by_kind[i, 0]):,}"))
    if overview.missed[0]:
        facts.append(PanelFact("Missed", f"{int(overview.missed[0]):,}"))
    return facts


def _nanos(timeline: EventTimeline, first: int, last: int) -> int:
    begin, end = (timeline.place_of(number, TimelineAxis.TIME) for number in (first, last))
    return max(0, end - begin)


def _of(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _memory(
    track: MemoryTrack, place: int, name: str, about: str, first: int, last: int, nanos: int
) -> list[PanelFact]:
    before, after = track.samples.at(place, first).value, track.samples.at(place, last).value
    words = [UNKNOWN_TEXT if one is None else size_in_words(one) for one in (before, after)]
    text = f"{words[0]} to {words[1]}"
    if before is not None and after is not None:
        text += f": {change_in_words(after - before)}"
        if nanos >= _LEAST_NANOS and after != before:
            rate = round((after - before) * _MINUTE_NANOS / nanos)
            text += f", {change_in_words(rate)} a minute"
    facts = [PanelFact(name, text, about)]
    values = track.samples.between(place, first, last)
    if len(values):
        low, high = (size_in_words(int(one)) for one in (values.min(), values.max()))
        facts.append(PanelFact("  least, greatest", f"{low}, {high}", about))
    return facts


def _collections(
    numbers: NDArray[np.int64], costs: NDArray[np.int64], nanos: int
) -> list[PanelFact]:
    facts = [PanelFact("Collections"), PanelFact("Number", f"{len(costs):,}")]
    known = costs >= 0
    if known.any():
        total = int(costs[known].sum())
        share = f", {100 * total / nanos:.1f} % of the time" if nanos else ""
        worst = int(np.argmax(costs))
        median = int(np.median(costs[known]))
        facts += [
            PanelFact("Cost", f"{duration(total)} in all{share}"),
            PanelFact("Median cost", duration(median)),
            PanelFact(
                "Greatest cost", f"{duration(int(costs[worst]))} (event {int(numbers[worst]):,})"
            ),
        ]
    hidden = int(np.count_nonzero(~known))
    if hidden:
        facts.append(PanelFact("Of unknown cost", f"{hidden:,}"))
    return facts
