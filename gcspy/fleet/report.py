"""`report_of`: what a table of many recordings says: who grows, who is an outlier, what a deployment changed.

An outlier is told by the modified z score of Iglewicz and Hoaglin (1993): 0.6745 times the distance
from the median, divided by the median of these distances. Median and distances are of the recordings
of one program; a program with fewer than `LEAST` recordings has no outliers.

Before and after a deployment, medians are compared, and how often a later recording has the larger
number, over all pairs (0.5: no difference), with the two-sided p of Mann and Whitney's test in its
normal approximation, ties corrected. Knows rows; does not know files or how an answer is shown.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy.fleet.features import Features

__all__ = [
    "LEAST",
    "MEASURES",
    "FleetChange",
    "FleetOutlier",
    "FleetReport",
    "Measure",
    "report_of",
]

LEAST: Final = 5
"""Recordings of a program that outliers, or either side of a comparison, need."""

_FAR: Final = 3.5
_NORMAL: Final = 0.6745
"""Third quartile of the normal distribution: makes the median distance comparable with its deviation."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a recording that is compared.

    Attributes:
        column: Its column, see `Features`.
        title: What people read.
        unit: ``bytes``, ``share`` or ``seconds``.
    """

    column: str
    title: str
    unit: str


MEASURES: Final = (
    Measure("resident_most", "Largest resident set", "bytes"),
    Measure("growth_per_minute", "Growth a minute", "bytes"),
    Measure("fragmentation", "Fragmentation", "share"),
    Measure("collecting_share", "Time in collections", "share"),
    Measure("longest_hold_seconds", "Longest hold", "seconds"),
)


@dataclass(frozen=True, slots=True)
class FleetOutlier:
    """A number of a recording that is far from those of its program.

    Attributes:
        row: The recording.
        measure: Which number.
        value: It.
        median: Of the program.
        score: Modified z score; its sign is that of the distance.
    """

    row: Features
    measure: Measure
    value: float
    median: float
    score: float


@dataclass(frozen=True, slots=True)
class FleetChange:
    """Change of a number of a program by a deployment.

    Attributes:
        program: Its name.
        measure: Which number.
        before: (n,) numbers before it, ascending.
        after: (m,) numbers after it, ascending.
        larger: Share of pairs in which the later is larger, ties counted as half.
        p: Of no difference.
    """

    program: str
    measure: Measure
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    larger: float
    p: float


@dataclass(frozen=True, slots=True)
class FleetReport:
    """Answers about many recordings.

    Attributes:
        rows: All of them, in the table's order.
        growing: Those that grow, the fastest first.
        outliers: By distance, the farthest first.
        too_few: Programs with too few recordings for outliers, and how many.
        deployed: Time of the deployment; None: none was named.
        changes: By program and measure, in which both sides have enough recordings.
    """

    rows: tuple[Features, ...]
    growing: tuple[Features, ...]
    outliers: tuple[FleetOutlier, ...]
    too_few: dict[str, int]
    deployed: datetime | None
    changes: tuple[FleetChange, ...]

    @property
    def unread(self) -> tuple[Features, ...]:
        """Recordings that could not be read."""
        return tuple(row for row in self.rows if row.error is not None)

    @property
    def anomalies(self) -> dict[str, int]:
        """How many recordings are conspicuous for what."""
        return dict(sorted(Counter(name for row in self.rows for name in row.anomalies).items()))

    @property
    def programs(self) -> dict[str, int]:
        """How many recordings each program has, the most first."""
        return dict(
            Counter(program_of(row) for row in self.rows if row.error is None).most_common()
        )


def program_of(row: Features) -> str:
    """Return the name under which a recording is compared with others: its program, without the process number."""
    return (row.program or "unknown").split(" (")[0]


def report_of(rows: Sequence[Features], *, deployed: datetime | None) -> FleetReport:
    """Return what a table says.

    Args:
        rows: The recordings.
        deployed: Divides them by the time of their first event; None: they are not compared.
    """
    by_program: dict[str, list[Features]] = defaultdict(list)
    for row in rows:
        if row.error is None:
            by_program[program_of(row)].append(row)
    outliers: list[FleetOutlier] = []
    changes: list[FleetChange] = []
    for program, group in sorted(by_program.items()):
        for measure in MEASURES:
            outliers += _outliers(group, measure)
            if deployed is not None and (found := _change(program, group, measure, deployed)):
                changes.append(found)
    return FleetReport(
        rows=tuple(rows),
        growing=tuple(
            sorted(
                (row for row in rows if row.growth == "growing"),
                key=lambda row: (-(row.growth_per_minute or 0), row.file),
            )
        ),
        outliers=tuple(sorted(outliers, key=lambda one: (-abs(one.score), one.row.file))),
        too_few={name: len(group) for name, group in by_program.items() if len(group) < LEAST},
        deployed=deployed,
        changes=tuple(changes),
    )


def _known(group: Sequence[Features], measure: Measure) -> list[tuple[Features, float]]:
    numbers = [(row, getattr(row, measure.column)) for row in group]
    return [(row, float(number)) for row, number in numbers if number is not None]


def _outliers(group: Sequence[Features], measure: Measure) -> list[FleetOutlier]:
    known = _known(group, measure)
    if len(known) < LEAST:
        return []
    values = np.array([number for _, number in known])
    median = float(np.median(values))
    distances = np.abs(values - median)
    usual = float(np.median(distances))
    if usual == 0:  # more than half of them are equal: the mean distance, as the authors advise
        usual = float(distances.mean()) * 1.253314 * _NORMAL
    if usual == 0:
        return []
    scores = _NORMAL * (values - median) / usual
    return [
        FleetOutlier(row, measure, number, median, float(score))
        for (row, number), score in zip(known, scores, strict=True)
        if abs(score) > _FAR
    ]


def _change(
    program: str, group: Sequence[Features], measure: Measure, deployed: datetime
) -> FleetChange | None:
    nanos = round(deployed.timestamp()) * 1_000_000_000
    sides: tuple[list[float], list[float]] = [], []
    for row, number in _known(group, measure):
        if row.started is not None:
            sides[row.started >= nanos].append(number)
    if min(map(len, sides)) < LEAST:
        return None
    before, after = (np.sort(np.array(side)) for side in sides)
    larger, p = _mann_whitney(before, after)
    return FleetChange(program, measure, before, after, larger, p)


def _mann_whitney(before: NDArray[np.float64], after: NDArray[np.float64]) -> tuple[float, float]:
    """Return the share of pairs in which the later is larger, and the two-sided p of no difference."""
    below = np.searchsorted(before, after, side="left")
    equal = np.searchsorted(before, after, side="right") - below
    pairs = len(before) * len(after)
    wins = float(below.sum() + equal.sum() / 2)
    count = len(before) + len(after)
    _, ties = np.unique(np.concatenate((before, after)), return_counts=True)
    tied = float((ties.astype(np.float64) ** 3 - ties).sum()) / (count * (count - 1))
    deviation = math.sqrt(pairs / 12 * (count + 1 - tied)) if count + 1 > tied else 0.0
    if deviation == 0:
        return 0.5, 1.0
    z = max(0.0, abs(wins - pairs / 2) - 0.5) / deviation
    return wins / pairs, math.erfc(z / math.sqrt(2))
