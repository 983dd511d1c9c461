"""Parts of a graph over events besides its points: round steps of an axis, texts on it, the area under a line.

Knows numbers and how a stream formats them; does not know Qt or a plotting library.
"""

from __future__ import annotations

from math import ceil, floor, isfinite, log2, log10

import numpy as np
from gcspy_protocol.model import Presentation, Stream
from numpy.typing import NDArray

from gcspy_client.model.text import duration, is_bytes, short_amount, short_number

__all__ = [
    "amount_range",
    "amount_step",
    "amount_text",
    "area_under",
    "lone_points",
    "time_step",
    "time_text",
]

_TIME_STEPS = (
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    1200,
    1800,
)
"""Seconds; above them whole hours."""

_SHARES = (Presentation.PERCENT, Presentation.PERCENT_VAR)


def time_step(span_secs: float, most: int) -> float:
    """The shortest round step with which an axis over this time has at most n steps.

    Args:
        span_secs: Seconds from end to end, above 0.
        most: Steps, at least 1.
    """
    least = span_secs / max(1, most)
    return next((step for step in _TIME_STEPS if step >= least), 3600.0 * ceil(least / 3600))


def time_text(secs: float) -> str:
    """A place on the axis of time, 0 and less: ``−2 s``, ``−500 ms``, ``−3 min``."""
    nanos = round(-secs * 1e9)
    if nanos == 0:
        return "0 s"
    for unit, size in (
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
    ):
        if nanos >= size and nanos % size == 0:
            return f"−{nanos // size} {unit}"
    return f"−{duration(nanos)}"


def amount_step(stream: Stream, span: float, most: int) -> float:
    """The shortest round step of values: powers of two for bytes, 1, 2 or 5 of a power of ten else; whole, as values are.

    Args:
        stream: The stream of the summary.
        span: From the lowest to the highest value on the axis, above 0.
        most: Steps, at least 1.
    """
    least = span / max(1, most)
    if stream.presentation in _SHARES:
        return next(
            (step for step in (10.0, 25.0, 50.0) if step >= least), 100.0 * ceil(least / 100)
        )
    if least <= 1:
        return 1.0
    if is_bytes(stream):
        return float(2 ** ceil(log2(least)))
    ten = 10.0 ** floor(log10(least))
    return next(step * ten for step in (1, 2, 5, 10) if step * ten >= least)


def amount_text(stream: Stream, value: float) -> str:
    """A point of `summary_share` in a few characters; NaN is unknown."""
    if not isfinite(value):
        return "unknown"
    if stream.presentation in _SHARES:
        return f"{value:.0f} %" if value == round(value) else f"{value:.1f} %"
    if stream.presentation is Presentation.ENUM:
        return f"{short_number(round(value))} tiles"
    return short_amount(stream, round(value)).strip()


def amount_range(stream: Stream, values: NDArray[np.float64]) -> tuple[float, float]:
    """The lowest and highest value of the axis: 0 to 100 for percents (more, where there is more), else with some room.

    Args:
        stream: The stream of the summary.
        values: Shape (points,); NaN where unknown.
    """
    there = values[np.isfinite(values)]
    if stream.presentation in _SHARES:
        return 0.0, max(100.0, float(there.max()) if len(there) else 0.0)
    if not len(there):
        return 0.0, 1.0
    low, high = float(there.min()), float(there.max())
    room = max((high - low) * 0.1, abs(high) * 0.02, 1.0)
    return (0.0 if 0 <= low < room else low - room), high + room


def area_under(
    x: NDArray[np.float64], y: NDArray[np.float64], base: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outlines of the area between a line with gaps and a level.

    Args:
        x: Shape (points,).
        y: Shape (points,); NaN is a gap.
        base: The level.

    Returns:
        x and y of the outlines, one for each stretch without a gap, separated by NaN; copies.
    """
    known = np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], known, [False])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    pieces: list[NDArray[np.float64]] = [np.empty((2, 0))]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        line = np.stack((x[start:end], y[start:end]))
        edges_of = np.array([[x[start], x[end - 1], np.nan], [base, base, np.nan]])
        pieces += [edges_of[:, :1], line, edges_of[:, 1:]]
    outline_x, outline_y = np.concatenate(pieces, axis=1)
    return outline_x, outline_y


def lone_points(y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Shape (points,): which have a gap on either side, so that no line shows them."""
    known = np.concatenate(([False], np.isfinite(y), [False]))
    lone: NDArray[np.bool_] = known[1:-1] & ~known[:-2] & ~known[2:]
    return lone
