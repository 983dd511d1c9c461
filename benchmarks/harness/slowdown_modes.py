"""How a slowdown is measured: the ways to watch, runs alone and watched in turns, and the cells of a table.

Knows ratios; does not know what is run, or by what it is watched.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

__all__ = [
    "MODES",
    "Slowdowns",
    "WatchMode",
    "chosen_modes",
    "clock_cell",
    "own_cell",
    "run_in_turns",
]

_BETWEEN = 2
"""A run alone follows this many watched runs."""

Alone = TypeVar("Alone")
Watched = TypeVar("Watched")


@dataclass(frozen=True, slots=True)
class WatchMode:
    """A way to watch.

    Attributes:
        name: As it stands in the table.
        level: Of the driver.
        budget: As `--budget` takes it.
        recorded: Whether there is a recorder; otherwise there is no client.
        more: Whether it is measured only if it is named.
    """

    name: str
    level: int = 2
    budget: str = "off"
    recorded: bool = True
    more: bool = False


MODES = (
    WatchMode("no client", recorded=False, more=True),
    *(WatchMode(f"level {level}", level, more=level > 3) for level in (1, 2, 3, 4)),
    *(WatchMode(f"level {level}, 5 %", level, "5%", more=True) for level in (1, 2, 3, 4)),
)


def chosen_modes(names: Sequence[str] | None) -> list[WatchMode]:
    """Return the named modes; without names, those that are measured by default."""
    return [mode for mode in MODES if (mode.name in names if names else not mode.more)]


def run_in_turns(
    modes: Sequence[WatchMode],
    pairs: int,
    alone: Callable[[], Alone],
    watched: Callable[[WatchMode], Watched],
) -> dict[str, list[tuple[Watched, tuple[Alone, Alone]]]]:
    """Alternate runs alone with watched ones.

    Args:
        modes: The ways to watch.
        pairs: Watched runs of each mode.
        alone: Runs the program alone.
        watched: Runs it watched.

    Returns:
        The watched runs of each mode, each with the runs alone right before and after it.
    """
    found: dict[str, list[tuple[Watched, tuple[Alone, Alone]]]] = {mode.name: [] for mode in modes}
    for pair in range(pairs):
        # First the one, then the other, so that a machine that gets slower or faster favours neither.
        order = modes if pair % 2 == 0 else modes[::-1]
        before = alone()
        for first in range(0, len(order), _BETWEEN):
            some = order[first : first + _BETWEEN]
            runs = [watched(mode) for mode in some]
            after = alone()
            for mode, run in zip(some, runs, strict=True):
                found[mode.name].append((run, (before, after)))
            before = after
    return found


class Slowdowns(Protocol):
    """Ratios of watched runs to runs alone."""

    @property
    def slowdowns(self) -> tuple[float, ...]:
        """Of the time by the clock, run by run."""

    @property
    def own_slowdowns(self) -> tuple[float, ...]:
        """Of the program's own processor time."""

    @property
    def bound(self) -> bool:
        """Whether a run was ended early: the slowdown is a lower bound then."""


def clock_cell(row: Slowdowns) -> str:
    """Return the cell of a table for the time by the clock."""
    return f"{'> ' if row.bound else ''}{statistics.median(row.slowdowns):.2f}"


def own_cell(row: Slowdowns) -> str:
    """Return the cell of a table for the program's own time."""
    return f"{statistics.median(row.own_slowdowns):.2f}" if row.own_slowdowns else "–"
