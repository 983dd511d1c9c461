"""The visible interval of a timeline, moving and zooming, and its ticks.

Places are event numbers or nanoseconds, as defined by `timeline.Axis`.

Knows places and pixels; does not know where events come from, colours, or Qt.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TimelineInterval", "UnrecordedEvents", "moment_text", "tick_step", "ticks_in"]

Floats = NDArray[np.float64]

_LEAST_EVENTS, _LEAST_NANOS = 8.0, 1e6
"""Limit of the zoom."""


@dataclass(frozen=True, slots=True)
class TimelineInterval:
    """The interval that the pixels of a timeline show.

    Attributes:
        start: Place at the left edge.
        end: Place at the right edge, above `start`.
        pixels: Between the two.
        by_time: Whether places are nanoseconds.
    """

    start: float
    end: float
    pixels: int
    by_time: bool

    def pixel_of(self, place: float) -> float:
        """Pixel of a place; outside 0 to `pixels` if it is not visible."""
        return (place - self.start) / (self.end - self.start) * self.pixels

    def place_at(self, pixel: float) -> float:
        """The place at a pixel."""
        return self.start + pixel / max(1, self.pixels) * (self.end - self.start)

    def columns_of(self, places: Floats) -> NDArray[np.int64]:
        """Shape (places,): the pixel of each; invisible ones get numbers out of range."""
        scaled = (places - self.start) * (self.pixels / (self.end - self.start))
        columns: NDArray[np.int64] = np.floor(scaled).astype(np.int64)
        # The event at the very end belongs to the last pixel, and not to one beyond it.
        columns[(columns == self.pixels) & (places <= self.end)] = self.pixels - 1
        return columns

    def zoomed(self, factor: float, pixel: float, whole: tuple[float, float]) -> TimelineInterval:
        """Zoom in (factor below 1) or out around a pixel, within the whole."""
        least = _LEAST_NANOS if self.by_time else _LEAST_EVENTS
        span = max(
            min((self.end - self.start) * factor, whole[1] - whole[0]),
            min(least, whole[1] - whole[0]),
        )
        start = self.place_at(pixel) - pixel / max(1, self.pixels) * span
        return self._inside(start, span, whole)

    def moved(self, pixels: float, whole: tuple[float, float]) -> TimelineInterval:
        """Move to the right by a number of pixels, within the whole."""
        span = self.end - self.start
        return self._inside(self.start + pixels / max(1, self.pixels) * span, span, whole)

    def showing(self, place: float, whole: tuple[float, float]) -> TimelineInterval:
        """Moved no more than it takes to see a place."""
        if self.start <= place <= self.end:
            return self
        span = self.end - self.start
        return self._inside(place if place < self.start else place - span, span, whole)

    def _inside(self, start: float, span: float, whole: tuple[float, float]) -> TimelineInterval:
        start = max(whole[0], min(start, whole[1] - span))
        return replace(self, start=start, end=start + span)


class UnrecordedEvents:
    """Gaps, where events happened that were not recorded: their occurrence numbers are missing.

    For a kind without a filter one may be missing for each event of another kind: a tick at which a
    collection was found is reported as the collection. Which kinds have a filter is checked as
    events arrive.

    The cost of following a growing timeline depends on the new events only.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start again."""
        self._gaps: dict[int, list[Floats]] = {}
        self._latest: dict[int, NDArray[np.int64]] = {}
        self._rows = self._missed = 0
        self._end = (0, 0)  # number and time of the latest event

    def follow(
        self, numbers: NDArray[np.uint64], rows: NDArray[Any], filtered: Collection[int] = ()
    ) -> None:
        """Add new events; start again if the timeline was replaced.

        Args:
            numbers: Shape (events,): numbers of the events, increasing.
            rows: Shape (events,), dtype `TIMELINE`.
            filtered: Kinds of which an event filter hides some now.
        """
        at = int(np.searchsorted(numbers, np.uint64(self._end[0]), side="right"))
        known = at > 0 and (int(numbers[at - 1]), int(rows["time_nanos"][at - 1])) == self._end
        if self._end != (0, 0) and not known:
            self.clear()
            at = 0
        numbers, rows = numbers[at:], rows[at:]
        if not len(rows):
            return
        missed = self._missed + np.cumsum(rows["missed"].astype(np.int64))
        for kind in np.flatnonzero(np.bincount(rows["event"])).tolist():
            self._follow_kind(kind, numbers, rows, missed, excused=kind not in filtered)
        self._rows += len(rows)
        self._missed = int(missed[-1])
        self._end = int(numbers[-1]), int(rows["time_nanos"][-1])

    def _follow_kind(
        self,
        kind: int,
        numbers: NDArray[np.uint64],
        rows: NDArray[Any],
        missed: NDArray[np.int64],
        *,
        excused: bool,
    ) -> None:
        where = np.flatnonzero(rows["event"] == kind)
        table = np.stack(
            (
                rows["occurrence"][where].astype(np.int64),
                missed[where],
                self._rows + where,
                numbers[where].astype(np.int64),
                rows["time_nanos"][where].astype(np.int64),
            )
        )
        if kind in self._latest:
            table = np.concatenate((self._latest[kind], table), axis=1)
        self._latest[kind] = table[:, -1:]
        # Missed events are reported as missed; only the rest was not recorded.
        hidden = np.diff(table[0]) - 1 - np.diff(table[1])
        if excused:
            hidden -= np.diff(table[2]) - 1
        found = np.flatnonzero(hidden > 0)
        if len(found):
            gaps = np.stack(
                (table[3][found], table[3][found + 1], table[4][found], table[4][found + 1])
            )
            self._gaps.setdefault(kind, []).append(gaps.astype(np.float64))

    def in_view(self, stretch: TimelineInterval) -> dict[int, NDArray[np.bool_]]:
        """Return, for each kind of which visible events were not recorded, shape (pixels,): whether the pixel is in such a gap."""
        found = {}
        for kind, pieces in self._gaps.items():
            if len(pieces) > 1:
                pieces[:] = [np.concatenate(pieces, axis=1)]
            starts, ends = pieces[0][2:] if stretch.by_time else pieces[0][:2]
            covered = _covered(stretch, starts, ends)
            if covered.any():
                found[kind] = covered
        return found


def _covered(stretch: TimelineInterval, starts: Floats, ends: Floats) -> NDArray[np.bool_]:
    """Shape (pixels,): which pixels lie inside one of the gaps, which are in order; each covers at least one."""
    seen = slice(
        int(np.searchsorted(ends, stretch.start)),
        int(np.searchsorted(starts, stretch.end, side="right")),
    )
    first = np.clip(stretch.columns_of(starts[seen]), 0, stretch.pixels - 1)
    last = np.clip(stretch.columns_of(ends[seen]), 0, stretch.pixels - 1)
    edges = np.bincount(first, minlength=stretch.pixels + 1) - np.bincount(
        last + 1, minlength=stretch.pixels + 1
    )
    covered: NDArray[np.bool_] = np.cumsum(edges[:-1]) > 0
    return covered


_STEPS_NANOS = (
    *(one * 10**ten for ten in range(3, 9) for one in (1, 2, 5)),
    *(
        secs * 10**9
        for secs in (
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
            900,
            1800,
            3600,
            7200,
            14400,
            43200,
            86400,
        )
    ),
)


def tick_step(stretch: TimelineInterval, most: int) -> float:
    """The shortest round step with at most n ticks."""
    least = (stretch.end - stretch.start) / max(1, most)
    if stretch.by_time:
        days = 86_400e9
        return next(
            (float(step) for step in _STEPS_NANOS if step >= least), days * np.ceil(least / days)
        )
    power = 1.0
    while True:
        for one in (1.0, 2.0, 5.0):
            if one * power >= least:
                return one * power
        power *= 10.0


def ticks_in(stretch: TimelineInterval, most: int, origin: float = 0.0) -> tuple[Floats, float]:
    """Places of ticks that are in view, and their step.

    Args:
        stretch: The visible interval.
        most: Ticks, at least 1.
        origin: Ticks are counted from here.
    """
    step = tick_step(stretch, most)
    first = np.ceil((stretch.start - origin) / step)
    last = np.floor((stretch.end - origin) / step)
    return origin + np.arange(first, last + 1) * step, step


def moment_text(nanos: float, step: float = 1e8) -> str:
    """A time since the beginning: ``12.3 s``, ``4:05``, ``1:02:03``, as exact as steps of an axis need.

    Args:
        nanos: Since the beginning.
        step: Distance of two times that must have different texts.
    """
    digits = (
        0 if step >= 1e9 else 1 if step >= 1e8 else 2 if step >= 1e7 else 3 if step >= 1e6 else 6
    )
    secs = round(abs(nanos) / 1e9, digits)
    sign = "−" if nanos < 0 and secs else ""
    if secs < 60:
        return f"{sign}{secs:.{digits}f} s"
    minutes, rest = divmod(secs, 60)
    hours, minutes = divmod(int(minutes), 60)
    width = 3 + digits if digits else 2
    clock = (
        f"{minutes:02d}:{rest:0{width}.{digits}f}"
        if hours
        else f"{minutes}:{rest:0{width}.{digits}f}"
    )
    return f"{sign}{hours}:{clock}" if hours else f"{sign}{clock}"
