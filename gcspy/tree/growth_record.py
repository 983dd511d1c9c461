"""`GrowthRecord`: the sizes of a process over time, and whether it grows.

A collected heap goes up and down, so two sizes prove nothing. A process counts as growing if the
smallest size of the last third of the time is above the largest of the first third, by a threshold.
Of a long time few sizes are kept: when the record is full, every second one is dropped.

Knows numbers; does not know processes.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["GrowthRecord", "GrowthState"]

_MOST_SIZES = 96
_FEWEST_SIZES = 6
_LEAST_BYTES = 256 << 10
_LEAST_SHARE = 0.01


class GrowthState(IntEnum):
    """Whether a process grows; the value of a stream."""

    UNKNOWN = 0
    """Too few sizes are known."""
    STEADY = 1
    GROWING = 2
    SHRINKING = 3


class GrowthRecord:
    """Sizes of one process, the latest last.

    Args:
        rest_secs: Least time between two sizes that are kept, at first.
    """

    def __init__(self, rest_secs: float = 0.5) -> None:
        self._rest_secs = rest_secs
        self._sizes: list[tuple[float, int]] = []
        self._latest: tuple[float, int] | None = None

    def note(self, secs: float, size: int) -> None:
        """Note a size.

        Args:
            secs: Time, in seconds from any start, never less than before.
            size: Bytes.
        """
        self._latest = (secs, size)
        if self._sizes and secs - self._sizes[-1][0] < self._rest_secs:
            return
        self._sizes.append((secs, size))
        if len(self._sizes) > _MOST_SIZES:
            self._sizes = self._sizes[::2]
            self._rest_secs *= 2

    @property
    def grew(self) -> int | None:
        """Bytes by which the latest size is above the first one; None: not known."""
        if self._latest is None or self._latest[0] <= self._sizes[0][0]:
            return None
        return self._latest[1] - self._sizes[0][1]

    @property
    def secs(self) -> float:
        """Time from the first to the latest size, in seconds."""
        return 0.0 if self._latest is None else self._latest[0] - self._sizes[0][0]

    @property
    def bytes_per_minute(self) -> int | None:
        """Growth between the first and the last third, by their medians; None: not known."""
        if len(self._sizes) < _FEWEST_SIZES:
            return None
        first, last = self._thirds()
        secs = _median([at for at, _ in last]) - _median([at for at, _ in first])
        grew = _median([size for _, size in last]) - _median([size for _, size in first])
        return round(grew * 60 / secs) if secs > 0 else None

    @property
    def state(self) -> GrowthState:
        """Whether it grows."""
        if len(self._sizes) < _FEWEST_SIZES:
            return GrowthState.UNKNOWN
        first, last = ([size for _, size in third] for third in self._thirds())
        least = max(_LEAST_BYTES, _LEAST_SHARE * max(first))
        if min(last) - max(first) >= least:
            return GrowthState.GROWING
        if min(first) - max(last) >= least:
            return GrowthState.SHRINKING
        return GrowthState.STEADY

    def _thirds(self) -> tuple[list[tuple[float, int]], list[tuple[float, int]]]:
        third = len(self._sizes) // 3
        return self._sizes[:third], self._sizes[-third:]


def _median(values: list[float] | list[int]) -> float:
    ordered = sorted(values)
    return float(ordered[len(ordered) // 2])
