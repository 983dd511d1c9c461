"""Copies of the pools of a reading: a few megabytes at a time, or all at once and kept.

Stored copies are as nearly of one moment as possible, can be read repeatedly, and need as much
memory of ours as the target's heap. The others are made again each time, in a buffer that stays in
the processor's cache.

Knows pools and memory; does not know their content.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.objects.blocks import PoolCopies, judge_copies
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.kit.copier import RecordBuffers
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Gather

__all__ = ["COPY_BYTES", "HeapCopy"]

COPY_BYTES: Final = 32 << 20
"""How much is copied and examined at a time: data that is examined several times stays in the cache, and memory is limited."""


class HeapCopy:
    """The pools in use of one reading, to go through.

    Args:
        memory: The target's memory.
        reading: Which pools there are.
        geometry: Sizes that its pymalloc was built with.
        every: Take one in this number of pools, at equal distances; 1: all.
        rows: Rows of the pools in the reading; None: those in use.

    Attributes:
        rows: Rows of the pools in the reading.
    """

    def __init__(
        self,
        memory: Memory,
        reading: HeapReading,
        geometry: PoolGeometry,
        *,
        every: int = 1,
        rows: npt.NDArray[np.intp] | None = None,
    ) -> None:
        self._memory = memory
        self._geometry = geometry
        self._pools = max(1, COPY_BYTES // geometry.pool_bytes)
        self._room = np.zeros((0, geometry.pool_bytes), dtype=np.uint8)
        self._kept: list[tuple[npt.NDArray[np.intp], PoolCopies]] | None = None
        self.reading = reading
        used = np.flatnonzero(reading.pools.state == PoolState.USED) if rows is None else rows
        self.rows = used[every // 2 :: every]

    def keep(self, room: RecordBuffers) -> None:
        """Copy everything now, and keep it.

        Args:
            room: Destination; the copies are valid until it is reused.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        kept = []
        for begin in range(0, len(self.rows), self._pools):
            part = self.rows[begin : begin + self._pools]
            kept.append((part, self._copy(part, room.take(len(part)))))
        self._kept = kept

    def parts(self) -> Iterator[tuple[npt.NDArray[np.intp], PoolCopies]]:
        """Go through the pools: rows, and copies that last until the next part unless they are kept.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        if self._kept is not None:
            yield from self._kept
            return
        if not len(self._room):
            self._room = np.zeros(
                (min(len(self.rows), self._pools), self._geometry.pool_bytes), dtype=np.uint8
            )
        for begin in range(0, len(self.rows), self._pools):
            part = self.rows[begin : begin + self._pools]
            yield part, self._copy(part, self._room[: len(part)])

    def _copy(self, rows: npt.NDArray[np.intp], room: npt.NDArray[np.uint8]) -> PoolCopies:
        pools = self.reading.pools
        address, slot = pools.address[rows], self.reading.arenas.slot[pools.arena[rows]]
        gather = Gather(self._memory.process, address, self._geometry.pool_bytes, out=room)
        gather.read()
        return judge_copies(gather.data, address, slot, gather.ok, self._geometry)
