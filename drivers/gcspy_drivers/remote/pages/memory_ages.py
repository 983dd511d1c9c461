"""`MemoryAges`: for how long memory of a process was not used, by whatever unit that is known.

Knows words; `page_ages` and `access_table` know it of pages and of 16 bytes.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.pages.page_ranges import PageRanges

__all__ = ["AGE_SECS", "MemoryAges"]

AGE_SECS: Final = (10, 60, 600, 3600)
"""The ages that `MemoryAges.steps` tells apart, in seconds."""


class MemoryAges(Protocol):
    """The ages of one process's memory.

    Attributes:
        unit_bytes: Bytes of which an age is known.
        sees_reads: Whether reads count as uses; otherwise only writes do.
        begun_nanos: When the first reading was, by the clock; 0: there was none.
        looked_nanos: When the latest was.
    """

    unit_bytes: int
    sees_reads: bool
    begun_nanos: int
    looked_nanos: int

    def take_charge(self) -> int:
        """Return what the process has paid since the last call, in nanoseconds."""
        ...

    def look(self, ranges: PageRanges) -> None:
        """Read what was used, if that is due."""
        ...

    def seconds(self, address: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return for how long the page at each address was not used, (n,), whole seconds; -1: not known."""
        ...

    def sums(
        self, address: npt.NDArray[np.uint64], sizes: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """Return the bytes of ranges by age, (ages, ranges)."""
        ...

    def steps(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        """Return how many of `AGE_SECS` each unit of a range has reached, (units,)."""
        ...

    def close(self) -> None:
        """Stop."""
        ...
