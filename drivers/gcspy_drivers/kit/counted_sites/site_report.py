"""Reports of the counters in a target's code at one moment, and their sites; knows no runtime and no line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["CountReport", "CountedSite", "ReportedSites"]


@dataclass(frozen=True, slots=True)
class CountedSite:
    """An allocation site.

    Attributes:
        file: Number of its source file.
        line: Its line; 0: not known.
        column: Its column, from 1; 0: not known.
        function: Qualified name of its function.
        what: What it makes.
        always: Whether it allocates each time.
        size: Bytes of each time; -1: they differ, or are not known.
    """

    file: int
    line: int
    column: int
    function: str
    what: str
    always: bool
    size: int


@dataclass(frozen=True, eq=False, slots=True)
class CountReport:
    """Counts of one moment.

    Attributes:
        number: Number of the report, from 1.
        counts: (sites,) how often each site began.
        known: (sites,) whether the count is known.
        carriers: (sites,) number of counters that it follows from.
        time_nanos: When it was, by the monotonic clock of the target's host.
        took_nanos: How long no other thread of the program ran meanwhile; 0: all ran.
        totals: Sums, by name as in `gcspy_counting.live.count_answer`; what is not known is absent.
    """

    number: int
    counts: NDArray[np.int64]
    known: NDArray[np.bool_]
    carriers: NDArray[np.int64]
    time_nanos: int
    took_nanos: int
    totals: dict[str, float]


class ReportedSites(Protocol):
    """Where reports come from."""

    @property
    def sites(self) -> list[CountedSite]:
        """The sites of the latest report; the list only grows."""
        ...

    @property
    def latest(self) -> CountReport | None:
        """The latest report; None: there is none yet."""
        ...

    def file_of(self, site: CountedSite) -> str:
        """Return the name of a site's file."""
        ...

    def source_of(self, site: CountedSite) -> str | None:
        """Return the source of a site's file; None: it is not known."""
        ...
