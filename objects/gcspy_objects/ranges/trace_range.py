"""`TraceRange`: a part of a trace that begins at a checkpoint, and the plan that divides a trace into such parts.

Knows an index; does not know what a range is asked.
"""

from __future__ import annotations

from typing import NamedTuple

from gcspy_protocol.errors import LocalProtocolError

from gcspy_objects.heap.index.heap_index import HeapIndex

__all__ = ["TraceRange", "plan_ranges"]


class TraceRange(NamedTuple):
    """A part of a trace.

    Attributes:
        number: 0 for the first, and so on.
        checkpoint: Row of the checkpoint at its start; -1: it begins where the trace does.
        first: Its first event.
        last: The event behind it.
        final: Whether the trace ends with it.
    """

    number: int
    checkpoint: int
    first: int
    last: int
    final: bool


def plan_ranges(index: HeapIndex, most: int) -> list[TraceRange]:
    """Divide a trace into at most so many ranges of about the same number of events.

    The ranges follow each other without a gap. There are fewer where there are fewer checkpoints.

    Raises:
        LocalProtocolError: None are asked for.
    """
    if most < 1:
        raise LocalProtocolError(f"{most} ranges: at least 1 is needed")
    rows = index.checkpoints.rows()
    begins: list[tuple[int, int]] = [(0, -1)]
    for number in range(1, most):
        sought = index.events * number // most
        row = next((at for at, one in enumerate(rows) if one.event >= sought), len(rows))
        # The nearest one, on either side.
        if row and (row == len(rows) or sought - rows[row - 1].event < rows[row].event - sought):
            row -= 1
        if row < len(rows) and begins[-1][0] < rows[row].event < index.events:
            begins.append((rows[row].event, row))
    ends = [event for event, _ in begins[1:]] + [index.events]
    return [
        TraceRange(number, row, first, last, last == index.events)
        for number, ((first, row), last) in enumerate(zip(begins, ends, strict=True))
    ]
