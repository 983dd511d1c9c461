"""A session as text: one event as a JSON object, or as lines for a human.

Knows the client interpreter's state; does not know its source.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState, StreamState
from gcspy_protocol.messages import Event, Fired
from gcspy_protocol.model import Naming, PaintStyle, Presentation, Stream
from gcspy_protocol.streams.named_stream import NamedStream
from gcspy_protocol.text.visible import visible

__all__ = ["event_as_dict", "event_as_lines", "fired_as_line", "info_lines", "unit_of"]


def unit_of(stream: Stream) -> str:
    """A stable unit for scripts: the suffix, else the prefix, without spaces and colons."""
    if stream.presentation is Presentation.ENUM:
        return "names"
    return stream.suffix.strip() or stream.prefix.strip(" :")


def event_as_dict(
    session: ClientInterpreter, event: Event, *, values: bool = False
) -> dict[str, Any]:
    """An event with the state of every space, as plain JSON values.

    Args:
        session: The state right after the event.
        event: The event.
        values: Also the value of each tile, None if it is unknown; and the names of tiles, None if
            they are missing.
    """
    return {
        "event": session.event_name(event.event),
        "occurrence": event.occurrence,
        "sequence": event.sequence,
        "time_nanos": event.time_nanos,
        "gather_nanos": event.gather_nanos,
        "held_nanos": event.held_nanos,
        "cause": event.cause,
        "clock": None if event.program_clock is None else list(event.program_clock),
        "cached": event.cached,
        "stopped_nanos": event.stopped_nanos,
        "budget": None if session.budget is None else session.budget.as_dict(),
        "missed_total": session.missed_total,
        "state": session.state.value,
        "acts_on": session.pause_acts_on.value,
        "spaces": [
            _space_as_dict(session, space, event, values) for space in session.spaces.values()
        ],
    }


def _space_as_dict(
    session: ClientInterpreter, space: SpaceState, event: Event, values: bool
) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": space.space.name,
        "tiles": space.count,
        "info": space.info,
        "streams": [
            _stream_as_dict(session, stream, event, values) for stream in space.streams.values()
        ],
    }
    if values and space.space.naming is Naming.STRINGS:
        texts = space.names.texts()
        out["tile_names"] = [texts.get(tile) for tile in range(space.count)]
    return out


def _stream_as_dict(
    session: ClientInterpreter, stream: StreamState, event: Event, all_values: bool
) -> dict[str, Any]:
    summary = stream.summary
    known = summary is not None and summary.covered > 0
    names = stream.schema.enum_names
    values = list(summary.values) if summary is not None and known else None
    if values is not None and isinstance(stream.schema, NamedStream):
        # Thousands may be known of which only a few occur: these, the most frequent first.
        there = sorted((-count, place) for place, count in enumerate(values) if count)
        names, values = tuple(names[place] for _, place in there), [-count for count, _ in there]
    out: dict[str, Any] = {
        "name": stream.schema.name,
        "unit": unit_of(stream.schema),
        "summary": values,
        "summary_names": list(names) or None,
        "covered": summary.covered if summary is not None else 0,
        "unknown": 0 if stream.known is None else int(np.count_nonzero(~stream.known)),
        "fresh": stream.is_fresh(event),
    }
    if all_values:
        numbers: list[int | None] = stream.values.tolist()
        if stream.known is not None:
            for tile in np.flatnonzero(~stream.known).tolist():
                numbers[tile] = None
        out["values"] = numbers
        source = session.spaces.get(
            -1 if stream.defined.names_from is None else stream.defined.names_from
        )
        if source is not None:
            out["names_from"] = source.space.name  # a value is the number of a tile there
    return out


def event_as_lines(session: ClientInterpreter, event: Event) -> list[str]:
    """An event as lines for a terminal: the event, then one line per space."""
    name = session.event_name(event.event)
    notes = [f"gathered in {event.gather_nanos / 1e6:.1f} ms"]
    if event.cause:
        notes.insert(0, event.cause)
    if event.held_nanos:
        notes.append(f"held {event.held_nanos / 1e6:.0f} ms")
    if session.missed_total:
        notes.append(f"{session.missed_total} events missed so far")
    if event.stopped_nanos:
        notes.append(f"the target was stopped for {event.stopped_nanos / 1e6:.1f} ms")
    if session.budget is not None and any(session.budget.left_out):
        notes.append(f"budget: {', '.join(session.budget.parts)}")
    if session.slowed_nanos:
        notes.append(session.state_reason)
    if event.cached:
        notes.append("from before this client joined")
    lines = [f"{name} #{event.occurrence}  ({', '.join(notes)})"]
    width = max((len(space.space.name) for space in session.spaces.values()), default=0)
    for space in session.spaces.values():
        parts = [_summary_text(stream, event) for stream in space.streams.values()]
        lines.append(
            f"  {space.space.name:<{width}}  {space.count:>7,} tiles  "
            + ", ".join(filter(None, parts))
        )
    return [visible(line) for line in lines]


_NUMBER = re.compile(r"\d[\d,.]*")


def info_lines(session: ClientInterpreter, told: dict[int, str]) -> list[str]:
    """The information texts of spaces, one line for each text that changed in more than its numbers.

    Args:
        session: The state.
        told: The text of each space, by its number, without numbers. Changed.
    """
    lines = []
    for number, space in session.spaces.items():
        words = _NUMBER.sub("", space.info)
        if words != told.get(number, ""):
            lines.append(f"  {space.space.name}: {space.info or 'nothing more to say'}")
        told[number] = words
    return [visible(line) for line in lines]


_MOST_NAMES = 3


def _summary_text(stream: StreamState, event: Event) -> str:
    schema, summary = stream.schema, stream.summary
    stale = "" if stream.is_fresh(event) else " (stale)"
    if summary is None or not summary.covered:
        return f"{schema.name} unknown"
    if schema.presentation is Presentation.ENUM:
        counted = sorted(zip(summary.values, schema.enum_names, strict=True), reverse=True)
        most = [f"{count:,} × {name}" for count, name in counted if count][:_MOST_NAMES]
        return f"{schema.name}: {' / '.join(most) or 'none'}{stale}"
    value = f"{summary.values[0]:,}"
    share = ""
    if len(summary.values) == 2:
        total = summary.values[1]
        value += f" of {total:,}"
        share = f" ({100 * summary.values[0] / total:.1f} %)" if total else ""
    elif schema.paint_style is PaintStyle.ZERO and summary.values[0] == schema.zero:
        return ""
    return f"{schema.name} {value}{schema.suffix}{share}{stale}"


def fired_as_line(fired: Fired) -> str:
    """A message that a trigger fired, with the operands of its condition."""
    trigger = fired.trigger
    numbers = ", ".join(f"{one.text} = {_number(one.value)}" for one in fired.operands)
    what = visible(trigger.note or trigger.expression)
    return f"  trigger {trigger.id} ({trigger.action}): {what}" + (
        f"  [{numbers}]" if numbers else ""
    )


def _number(value: int | float | bool | str | None) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
