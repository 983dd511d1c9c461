"""Curves over age or over collections, made from tables of a server: their drawing, and the text for a place under the mouse.

Four kinds of question have such tables, of a whole session of an object trace (`gcspy_drivers.traced.whole` answers them):

| kind | columns |
|---|---|
| `survival.bytes`, `survival.gcs` | generation; age; millionths held and seen alive, of bytes, then of objects; objects watched |
| `lifetimes.bytes`, `lifetimes.gcs` | age from; to below; objects, millionths of them, and bytes that died; objects and bytes left |
| `collections` | number; kind; cause; objects and bytes allocated, survived, promoted, died |
| `accesses` | interval; objects and bytes allocated, accessed (nothing: not known), collected |

Knows tables and numbers; does not know Qt or a plotting library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.details import Cell, DetailTable
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.model import Presentation, Stream
from numpy.typing import NDArray

from gcspy_client.model.panels.graph import amount_text

__all__ = ["CHART_KINDS", "ChartAxis", "Chart", "ChartCurve", "chart_of"]

Floats = NDArray[np.float64]

CHART_KINDS: Final = (
    "survival.bytes",
    "survival.gcs",
    "lifetimes.bytes",
    "lifetimes.gcs",
    "collections",
    "accesses",
)
"""Kinds of question that are drawn."""

_SHARE: Final = Stream(id=0, name="share", presentation=Presentation.PERCENT)
_BYTES: Final = Stream(id=0, name="bytes", suffix=" bytes")
_OBJECTS: Final = Stream(id=0, name="objects", suffix=" objects")
_NUMBER: Final = Stream(id=0, name="number")
_MILLION = 1_000_000
_MOST_BARS = 60
"""Up to this many collections have bars; more have lines."""
_STILL_ALL = 0.995
"""A logarithmic axis begins where the first curve falls below this: before it there is nothing to see."""


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """One axis.

    Attributes:
        title: Its text.
        stream: How its values are worded.
        log: Whether a place on it is the logarithm, to base 2, of a value.
    """

    title: str
    stream: Stream
    log: bool = False

    def text(self, place: float) -> str:
        """A place on it in a few characters."""
        return amount_text(self.stream, 2.0**place if self.log else place)


@dataclass(frozen=True, slots=True, eq=False)
class ChartCurve:
    """One line.

    Attributes:
        name: Its meaning.
        x: (n,) ascending places on the axis across.
        y: (n,) values.
        low: (n,) the lower bound of the value; None: it is exact.
        counts: The values and their places for the text, if the line has others: (k,) each.
        filled: Whether the area between it and `low`, or under it, is tinted.
    """

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    counts: tuple[Floats, Floats] | None = None
    filled: bool = False

    def at(self, place: float) -> tuple[float, float] | None:
        """The value at the last point at or before a place, and its lower bound; None before the first."""
        x, y = (self.x, self.y) if self.counts is None else self.counts
        row = int(np.searchsorted(x, place, side="right")) - 1
        if row < 0:
            return None
        return float(y[row]), float(y[row] if self.low is None else self.low[row])


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves with their axes.

    Attributes:
        title: Title of the text.
        across: The axis from left to right.
        up: The axis from below.
        curves: At most four.
        span: Which part of the axis across is shown.
        top: The greatest value on the axis from below.
        hint: How it is to be read, in a line.
    """

    title: str
    across: ChartAxis
    up: ChartAxis
    curves: tuple[ChartCurve, ...]
    span: tuple[float, float]
    top: float
    hint: str

    def reading(self, place: float) -> str:
        """The curves at a place, as text."""
        parts = [f"{self.across.title} {self.across.text(place)}"]
        for curve in self.curves:
            found = curve.at(place)
            if found is not None:
                high, low = (self.up.text(value) for value in found)
                parts.append(
                    f"{curve.name} {high}" if low == high else f"{curve.name} {low} to {high}"
                )
        return "  ·  ".join(parts)


def chart_of(kind: str, table: DetailTable, *, in_bytes: bool = True) -> Chart | None:
    """Draw a table.

    Args:
        kind: One of `CHART_KINDS`.
        table: The answer.
        in_bytes: Count bytes, not objects.

    Returns:
        The chart; None where there is nothing to be drawn.

    Raises:
        RemoteProtocolError: The table is not of this kind.
    """
    what, _, clock = kind.partition(".")
    if not table.rows:
        return None
    try:
        if what == "survival":
            return _survival(table.rows, clock, in_bytes=in_bytes)
        if what == "lifetimes":
            return _lifetimes(table.rows, clock, in_bytes=in_bytes)
        if what == "accesses":
            return _accesses(table.rows, in_bytes=in_bytes)
        return _collections(table.rows, in_bytes=in_bytes)
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        raise RemoteProtocolError(f"the table is not one of {kind!r}: {error}") from error


def _numbers(rows: Sequence[tuple[Cell, ...]], place: int) -> Floats:
    """A column as numbers; one without a number is an error."""
    values = np.array([row[place] for row in rows], dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a number is unknown")
    return values


def _stairs(edges: Floats, values: Floats) -> tuple[Floats, Floats]:
    """A line that stays at each value from one edge to the next; there is one edge more than values."""
    return np.repeat(edges, 2)[1:-1], np.repeat(values, 2)


def _log(values: Floats, least: float) -> Floats:
    return np.log2(np.maximum(values, least))


def _age_axis(clock: str) -> ChartAxis:
    return (
        ChartAxis("after GCs", _NUMBER) if clock == "gcs" else ChartAxis("after", _BYTES, log=True)
    )


def _survival(rows: Sequence[tuple[Cell, ...]], clock: str, *, in_bytes: bool) -> Chart | None:
    held, seen = (2, 3) if in_bytes else (4, 5)
    across = _age_axis(clock)
    found = []
    for name in dict.fromkeys(str(row[0]) for row in rows):
        own = [row for row in rows if row[0] == name]
        age, high, low = (_numbers(own, place) for place in (1, held, seen))
        found.append((name, age, high / _MILLION, low / _MILLION))
    oldest = max(float(age[-1]) for _, age, _, _ in found)
    begin = 0.0
    if across.log:
        _, age, high, _ = found[0]
        begin = float(age[high < _STILL_ALL][0]) / 2 if (high < _STILL_ALL).any() else 1.0
    least = max(begin, 1.0)
    curves: list[ChartCurve] = []
    for name, age, high, low in found:
        edges = np.append(age, oldest if age[-1] < oldest else age[-1] + 1)
        # After the end of the observation it is unknown: the line ends there.
        edges[-1] = age[-1] if len(age) > 1 else edges[-1]
        places = _log(edges, least) if across.log else edges
        x, y = _stairs(places, high * 100)
        curves.append(
            ChartCurve(
                _GENERATIONS.get(name, name), x, y, _stairs(places, low * 100)[1], filled=not curves
            )
        )
    unit = "bytes" if in_bytes else "objects"
    last = float(np.log2(max(oldest, 2 * least))) if across.log else max(oldest, 1.0)
    first = float(np.log2(least)) if across.log else 0.0
    return Chart(
        f"Share of {unit} still alive",
        across,
        ChartAxis("", _SHARE),
        tuple(curves[:4]),
        (first, last),
        100.0,
        f"{_ACROSS[clock]} Lines: until found dead. {_BAND}",
    )


_ACROSS: Final = {
    "bytes": "Horizontal axis: age, in bytes allocated meanwhile.",
    "gcs": "Horizontal axis: age, in collections.",
}
_BAND: Final = "Band: they may have died earlier, at any time since they were last seen alive."
_GENERATIONS: Final = {
    "all": "all objects",
    "young": "young objects",
    "old": "old objects, since promotion",
}


def _lifetimes(rows: Sequence[tuple[Cell, ...]], clock: str, *, in_bytes: bool) -> Chart | None:
    died, left = (4, 6) if in_bytes else (2, 5)
    low, high = _numbers(rows, 0), _numbers(rows, 1)
    across = (
        ChartAxis("GCs survived", _NUMBER) if clock == "gcs" else ChartAxis("age", _BYTES, log=True)
    )
    if across.log:
        low, high = _log(low, 512.0), _log(high, 512.0)
    edges, values = [float(low[0])], []
    counts = np.stack([_numbers(rows, died), _numbers(rows, left)], axis=1)
    for begin, end, count in zip(low.tolist(), high.tolist(), counts.tolist(), strict=True):
        if begin > edges[-1]:  # ages at which there was nothing
            edges.append(begin)
            values.append([0.0, 0.0])
        edges.append(end)
        values.append(count)
    made = np.array(values)
    curves = tuple(
        ChartCurve(name, *_stairs(np.array(edges), made[:, place]), filled=not place)
        for place, name in enumerate(("died", "alive at the end"))
    )
    up = ChartAxis("", _BYTES if in_bytes else _OBJECTS)
    title = f"{'Bytes' if in_bytes else 'Objects'} by age at death"
    return Chart(
        title,
        across,
        up,
        curves,
        (edges[0], edges[-1]),
        _top(made),
        f"{_ACROSS[clock]} Ages are those at which a collection found them dead.",
    )


def _bars(name: str, number: Floats, value: Floats, place: int, *, lines: bool) -> ChartCurve:
    """One of up to four bars beside each number, or a line."""
    if lines:
        return ChartCurve(name, number, value)
    left = number - 0.4 + 0.2 * place
    x = np.stack((left, left, left + 0.18, left + 0.18), axis=1).ravel()
    y = np.stack((0 * value, value, value, 0 * value), axis=1).ravel()
    return ChartCurve(name, x, y, counts=(number, value), filled=True)


def _accesses(rows: Sequence[tuple[Cell, ...]], *, in_bytes: bool) -> Chart | None:
    made, most = [], [1.0]
    for place, name in enumerate(("allocated", "accessed", "collected")):
        known = [row for row in rows if name != "accessed" or row[3] is not None]
        if not known:
            continue
        number, value = _numbers(known, 0), _numbers(known, 1 + 2 * place + int(in_bytes))
        made.append(_bars(name, number, value, place, lines=len(rows) > _MOST_BARS))
        most.append(float(value.max()))
    number = _numbers(rows, 0)
    return Chart(
        f"{'Bytes' if in_bytes else 'Objects'} in each interval between collections",
        ChartAxis("interval", _NUMBER),
        ChartAxis("", _BYTES if in_bytes else _OBJECTS),
        tuple(made),
        (float(number[0]) - 0.5, float(number[-1]) + 0.5),
        _top(np.array(most)),
        "Horizontal axis: collections before the interval. Where accesses are not known, there is no bar.",
    )


def _collections(rows: Sequence[tuple[Cell, ...]], *, in_bytes: bool) -> Chart | None:
    number = _numbers(rows, 0)
    values = [_numbers(rows, 3 + 2 * place + int(in_bytes)) for place in range(4)]
    names = ("allocated before", "survived", "promoted", "died")
    made = [
        _bars(name, number, value, place, lines=len(number) > _MOST_BARS)
        for place, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    up = ChartAxis("", _BYTES if in_bytes else _OBJECTS)
    span = float(number[0]) - 0.5, float(number[-1]) + 0.5
    title = f"{'Bytes' if in_bytes else 'Objects'} in each collection"
    return Chart(
        title,
        ChartAxis("GC", _NUMBER),
        up,
        tuple(made),
        span,
        _top(np.stack(values)),
        "Horizontal axis: number of the collection.",
    )


def _top(values: Floats) -> float:
    return max(1.0, 1.08 * float(values.max(initial=0.0)))
