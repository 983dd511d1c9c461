"""Computes which types grew over a recording, for `gcspy growth`.

Knows recordings and the model of growth; decodes each event once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcspy_protocol.errors import CommandError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.text.visible import visible
from gcspy_replay.file import Recording
from gcspy_replay.file.export.tables import ExportSelection

from gcspy.output.terminal import say, say_json
from gcspy.recorder.named_recordings import opened
from gcspy_client.model.panels.growth import (
    GrowthLog,
    GrowthRow,
    TypeSample,
    growing_space,
    growth,
    measures_of,
    sample_of,
    total_growth,
)
from gcspy_client.model.text import duration

__all__ = ["Grown", "TypeSamples", "as_json", "grown", "print_as_json", "print_as_text"]

_BLOCKS = "▁▂▃▄▅▆▇█"
_LINE = 16


@dataclass(frozen=True, slots=True)
class Grown:
    """The result.

    Attributes:
        space: Name of the space.
        measures: Names of the numbers.
        first: Number of the earlier event.
        last: Number of the later one.
        before: The amounts at the earlier event.
        now: The amounts at the later one.
        rows: The types that changed most, those that grew first.
        total: By how much all types together grew, for each of the numbers.
    """

    space: str
    measures: tuple[str, ...]
    first: int
    last: int
    before: TypeSample
    now: TypeSample
    rows: list[GrowthRow]
    total: tuple[int, ...]


class TypeSamples:
    """The counts of types at the events of a recording, taken while it is read."""

    def __init__(self) -> None:
        self._log = GrowthLog()
        self._ends: list[tuple[int, TypeSample]] = []

    def take(self, number: int, session: ClientInterpreter) -> None:
        """Take what types have at an event, by its number, if they were gathered at it."""
        space = growing_space(session)
        sample = None if space is None else sample_of(session, space)
        if sample is not None:
            self._log.add(sample)
            self._ends = [self._ends[0] if self._ends else (number, sample), (number, sample)]

    def compared(self, recording: Recording, begin: int, end: int, top: int) -> Grown:
        """Compare the first with the last.

        Args:
            recording: The recording.
            begin: Number of the first event that was read.
            end: Number of the last.
            top: Rows.

        Raises:
            CommandError: None of these events has types, or they are of two spaces.
        """
        if not self._ends:
            raise CommandError(
                f"no event from {begin} to {end} has types: record at level 3, with `gcspy record PID -o FILE --level 3`"
            )
        (begin, before), (end, now) = self._ends
        space = growing_space(recording.seek(end))
        assert space is not None, "that event has a sample of it"
        if before.space != now.space:
            raise CommandError(
                f"the space of types was removed between event {begin} and {end}: choose events on one side, with --from and --to"
            )
        samples = self._log.samples
        rows = growth(before, now, space, samples, most=top)
        measures = tuple(one.name for one in measures_of(space))
        total = total_growth(before, now, samples)
        return Grown(space.space.name, measures, begin, end, before, now, rows, total)


def grown(paths: list[Path], first: int | None, last: int | None, top: int) -> Grown:
    """Compute the growth.

    Args:
        paths: Files of a recording.
        first: Number of the earlier event; None: the recording's first.
        last: Number of the later event; None: the recording's last.
        top: Rows.

    Raises:
        RecordingError: It cannot be read, or has no such events.
        CommandError: No event of these has types.
    """
    samples = TypeSamples()
    with opened(paths) as recording:
        begin, end = ExportSelection(first=first, last=last).range(recording)
        for step, session in recording.steps(begin, end):
            samples.take(step.number, session)
        return samples.compared(recording, begin, end, top)


def print_as_json(found: Grown) -> None:
    """One JSON object; unknown is null."""
    say_json(as_json(found))


def as_json(found: Grown) -> dict[str, Any]:
    """Return the result, for JSON; unknown is null."""
    rows = [
        {
            "name": row.name,
            "new": row.new,
            **{
                name.lower(): {"before": change.before, "now": change.now, "grew": change.grew}
                for name, change in zip(found.measures, row.changes, strict=True)
            },
        }
        for row in found.rows
    ]
    return {
        "space": found.space,
        "from": found.first,
        "to": found.last,
        "nanos": found.now.time_nanos - found.before.time_nanos,
        "rows": rows,
    }


def print_as_text(found: Grown) -> None:
    """A table for people."""
    took = duration(found.now.time_nanos - found.before.time_nanos)
    say(f"{visible(found.space)}: from event {found.first:,} to {found.last:,}, {took}")
    if not found.rows:
        say("nothing changed")
        return
    head = [
        "Type",
        *(
            text
            for name in map(visible, found.measures)
            for text in (f"{name} grew", f"{name} now")
        ),
        "Over time",
    ]
    rows = [
        [
            visible(row.name) + (" (new)" if row.new else ""),
            *(
                text
                for change in row.changes
                for text in (_signed(change.grew), _plain(change.now))
            ),
            _line(row.line),
        ]
        for row in found.rows
    ]
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    for row in [head, *rows]:
        cells = [
            text.ljust(width) if place in (0, len(head) - 1) else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        say("  ".join(cells).rstrip())


def _signed(value: int | None) -> str:
    return "unknown" if value is None else f"{value:+,}" if value else "0"


def _plain(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _line(values: tuple[int | None, ...]) -> str:
    """A small graph of blocks; a gap where values are unknown."""
    picked = (
        [values[round(place * (len(values) - 1) / (_LINE - 1))] for place in range(_LINE)]
        if len(values) > _LINE
        else values
    )
    top = max((value for value in picked if value is not None), default=0)
    return "".join(
        " " if value is None else _BLOCKS[round(7 * value / top) if top > 0 else 0]
        for value in picked
    )
