"""Streams whose values are numbers of names, with the currently known names (SPEC.md section 5.1, `names_from`).

A view can treat such a stream like an enum: its values are names, its summary counts the tiles of
each. Unlike an enum's the names grow, and the summary is counted here, since a sum of numbers of
names is meaningless.

Knows values and texts; does not know where names come from, or which colours they get.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.model import Control, PaintStyle, Presentation, Stream

__all__ = ["MOST_FREQUENT", "NamedStream", "named", "same_meaning", "steady", "tally"]

MOST_FREQUENT = 12
"""Number of names with colours of their own; the others share one."""

_CHALLENGE = 2
"""A name replaces another only if it has more than this many times the other's tiles, so that
colours do not change at each event."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedStream(Stream):
    """A stream with the names of its values: an enum whose names grow.

    Attributes:
        frequent: The values that most tiles have, at most `MOST_FREQUENT`, each at a fixed place.
    """

    frequent: tuple[int, ...] = ()


_SHARED = tuple(
    one.name
    for one in fields(Stream)
    if one.name not in ("presentation", "enum_names", "max_stream")
)


def named(stream: Stream, names: tuple[str, ...], frequent: tuple[int, ...]) -> NamedStream:
    """A stream with names.

    Args:
        stream: As it was defined.
        names: At least one; value v has the name at index v.
        frequent: The values that most tiles have.
    """
    same = {name: getattr(stream, name) for name in _SHARED}
    return NamedStream(**same, presentation=Presentation.ENUM, enum_names=names, frequent=frequent)


def same_meaning(one: Stream, other: Stream) -> bool:
    """Whether values of two streams of one session can be compared, whichever names were known at the time."""
    if one.names_from is None or one.names_from != other.names_from:
        return one == other
    return (one.id, one.name, one.dtype) == (other.id, other.name, other.dtype)


def tally(
    values: NDArray[Any], known: NDArray[np.bool_] | None, control: NDArray[Any], names: int
) -> NDArray[np.int64]:
    """Count the tiles that have each name.

    Args:
        values: Shape (tiles,), numbers of names.
        known: Shape (tiles,), whether they are known; None: all.
        control: Shape (tiles,), control flags; unused tiles do not count.
        names: Number of names; greater values do not count.

    Returns:
        Shape (names,), tiles.
    """
    kept: NDArray[np.bool_] | None = known
    if len(control) and not int(np.bitwise_and.reduce(control)) & Control.USED:
        in_use = (control & np.uint8(Control.USED)) != 0
        kept = in_use if kept is None else kept & in_use
    if kept is not None:
        values = values[kept]
    if values.dtype.itemsize > 2 or values.dtype.kind == "i":
        values = values[(values >= 0) & (values < names)]
    counts: NDArray[np.int64] = np.bincount(values.astype(np.intp), minlength=names)[:names].astype(
        np.int64
    )
    return counts


def steady(before: tuple[int, ...], counts: NDArray[np.int64], stream: Stream) -> tuple[int, ...]:
    """Choose the values that most tiles have; earlier choices keep their places as long as they are frequent enough.

    Args:
        before: The earlier choice.
        counts: Shape (names,), tiles of each.
        stream: The stream; a zero value with a colour of its own needs no place.
    """
    counts = counts.copy()
    if stream.paint_style is PaintStyle.ZERO and 0 <= stream.zero < len(counts):
        counts[stream.zero] = 0
    most = np.argsort(-counts, kind="stable")[:MOST_FREQUENT]
    places = [value for value in before if value < len(counts)]
    for value in most[counts[most] > 0].tolist():
        if value in places:
            continue
        if len(places) < MOST_FREQUENT:
            places.append(value)
            continue
        weakest = min(range(len(places)), key=lambda place: int(counts[places[place]]))
        if counts[value] > _CHALLENGE * counts[places[weakest]]:
            places[weakest] = value
    return tuple(places)
