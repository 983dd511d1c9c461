"""Counts of all sites, read again and again: what did not change since is not computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType

from gcspy_counting.code_unit import CodeUnit, sums_of
from gcspy_counting.instrumented_code import InstrumentedCode, Position
from gcspy_counting.snapshot import Snapshot, take_snapshot

__all__ = ["CountReader", "Reading"]

_SUSPENDABLE = 0x0020 | 0x0080 | 0x0200
"""`CO_GENERATOR`, `CO_COROUTINE` and `CO_ASYNC_GENERATOR`."""

_NOWHERE: dict[Position, int] = {}


@dataclass(slots=True)
class Reading:
    """Counts of one moment.

    Attributes:
        units: The code objects.
        counts: For each the counts of its sites, in the order of `CodeUnit.rows`; None where counters contradict each other.
        increments: How often a counter was incremented.
        uncounted: Number of frames that run code without counters although the code object has some by now.
        time_nanos: When it was, by the monotonic clock.
        took_nanos: How long no other thread ran.
    """

    units: list[CodeUnit]
    counts: list[list[int | None]]
    increments: int
    uncounted: int
    time_nanos: int
    took_nanos: int


@dataclass(slots=True)
class _Known:
    """The latest values of a version."""

    values: list[int]
    left: dict[Position, int]


class CountReader:
    """Reads the counters of code objects."""

    def __init__(self) -> None:
        self._known: dict[int, list[_Known]] = {}
        self._counts: dict[int, list[int | None]] = {}

    def snapshot(
        self, growing: Sequence[CodeUnit]
    ) -> tuple[Snapshot, list[CodeUnit], list[InstrumentedCode]]:
        """Read the counters of all versions, and where all frames are.

        Args:
            growing: The code objects; other threads may add some, and versions of them.

        Returns:
            What was read, the code objects, and their versions in the order of the counters.
        """
        while True:
            units = list(growing)
            versions = [version for unit in units for version in unit.versions]
            counters = [each for version in versions for each in version.all_counters()]
            suspended = 0
            for unit in units:
                if unit.versions:
                    suspended |= unit.original.co_flags & _SUSPENDABLE
            found = take_snapshot(counters, [version.raised for version in versions], suspended)
            # What was made meanwhile may have counted already.
            now = sum(len(unit.versions) for unit in units)
            if now == len(versions) and len(growing) == len(units):
                return found, units, versions

    def left_of(
        self, found: Snapshot, versions: Sequence[InstrumentedCode]
    ) -> list[dict[Position, int]]:
        """Return for each version how often control left a block in its middle, or is there now."""
        row_of = {id(version.code): row for row, version in enumerate(versions)}
        left = [dict(each) if each else _NOWHERE for each in found.raised]
        for code, place in found.places:
            row = row_of.get(id(code))
            position = None if row is None else versions[row].position_of_frame(place)
            if row is not None and position is not None:
                if left[row] is _NOWHERE:
                    left[row] = {}
                left[row][position] = left[row].get(position, 0) + 1
        return left

    def read(self, growing: Sequence[CodeUnit]) -> Reading:
        """Return the counts of all sites of some code objects; see `snapshot`."""
        found, units, versions = self.snapshot(growing)
        left = self.left_of(found, versions)
        counts: list[list[int | None]] = []
        at = row = increments = 0
        for unit in units:
            now = []
            while row < len(versions) and versions[row] in unit.versions:
                version = versions[row]
                end = at + version.value_count
                now.append(_Known(found.values[at:end], left[row]))
                increments += sum(now[-1].values[: version.counter_count()])
                at, row = end, row + 1
            if now != self._known.get(id(unit)):
                self._known[id(unit)] = now
                self._counts[id(unit)] = sums_of(
                    unit, [each.values for each in now], [each.left for each in now]
                )
            counts.append(self._counts.get(id(unit), []))
        return Reading(
            units,
            counts,
            increments,
            _uncounted(units, found.places),
            found.time_nanos,
            found.took_nanos,
        )


def _uncounted(units: Sequence[CodeUnit], places: Sequence[tuple[CodeType, int]]) -> int:
    running = {id(code) for code, _ in places}
    return sum(
        id(unit.original) in running
        for unit in units
        if unit.latest is not None and unit.latest.code is not unit.original
    )
