"""Reading a Shenandoah heap: each region's bounds and state, which it exports from 17 on.

As for G1, all regions are read twice and accepted if both reads agree. Knows addresses; does not
know tiles or streams. Source: OpenJDK src/hotspot/share/gc/shenandoah/shenandoahHeapRegion.hpp,
whose states are numbered by exported constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.hotspot.heaps.generational import read_reserved
from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Neighbours

__all__ = ["RegionState", "ShenandoahReader", "ShenandoahReading"]

_WORD: Final = 8
_TRIES: Final = 4
_MOST_REGIONS: Final = 1 << 20
_MOST_REGION_BYTES: Final = 1 << 30
_UNTOLD: Final = 255


class RegionState(IntEnum):
    """State of a region; the names are the VM's constants, without their underscore."""

    EMPTY_UNCOMMITTED = 0
    EMPTY_COMMITTED = 1
    REGULAR = 2
    HUMONGOUS_START = 3
    HUMONGOUS_CONT = 4
    PINNED_HUMONGOUS_START = 5
    CSET = 6
    PINNED = 7
    PINNED_CSET = 8
    TRASH = 9


@dataclass(frozen=True, eq=False)
class ShenandoahReading:
    """One reading of all regions, in order of address.

    Attributes:
        base: Address of the first region.
        grain: Bytes of a region.
        known: (regions,) whether it could be read consistently.
        state: (regions,) `RegionState`.
        used: (regions,) bytes up to its top.
    """

    base: int
    grain: int
    known: npt.NDArray[np.bool_]
    state: npt.NDArray[np.uint8]
    used: npt.NDArray[np.int64]


class ShenandoahReader:
    """Reads the regions of one JVM.

    Args:
        memory: The target's memory.
        tables: Its exports.
        heap: Address of its CollectedHeap.

    Raises:
        Unsupported: It does not export its regions (11).
        TargetError: They are invalid.
    """

    def __init__(self, memory: Memory, tables: VmTables, heap: int) -> None:
        self._memory = memory
        regions = tables.offset("ShenandoahHeap", "_regions")
        if regions is None:
            raise Unsupported(
                "this JVM does not export Shenandoah's regions",
                found="11 or earlier",
                known="Shenandoah of 17 and later",
            )
        count = memory.read(heap + tables.need_offset("ShenandoahHeap", "_num_regions"), _WORD)
        self.regions = int.from_bytes(count, "little")
        size = tables.need_static("ShenandoahHeapRegion", "RegionSizeBytes")
        self.grain = int.from_bytes(memory.read(size, _WORD), "little")
        self._low, high = read_reserved(memory, tables, heap)
        self._size = tables.size_of("ShenandoahHeapRegion") or 0
        names = ("_index", "_bottom", "_end", "_top", "_state")
        self._offsets = [tables.need_offset("ShenandoahHeapRegion", name) for name in names]
        if (
            not 0 < self.regions <= _MOST_REGIONS
            or not 0 < self.grain <= _MOST_REGION_BYTES
            or self._low + self.regions * self.grain > high
            or max(self._offsets) + _WORD > self._size
        ):
            raise TargetError(
                f"process {memory.process.pid}: {self.regions} regions of {self.grain} bytes at {self._low:#x}: it is starting, or its Shenandoah is not supported"
            )
        self._states = _states(tables)
        pointers = memory.read(heap + regions, _WORD)
        table = memory.read(int.from_bytes(pointers, "little"), self.regions * _WORD)
        # Regions are made once, at the start.
        self._structures = Neighbours(memory.process, np.frombuffer(table, dtype="<u8"), self._size)

    @property
    def reserved(self) -> tuple[int, int]:
        """First and end address of the heap."""
        return self._low, self._low + self.regions * self.grain

    def read(self) -> ShenandoahReading:
        """Read all regions.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        self._structures.read()
        found: ShenandoahReading | None = None
        for _ in range(_TRIES):
            before, ok = self._state_tags(), self._structures.ok.copy()
            self._structures.read()
            found = _completed(found, self._judge(before, ok))
            if found.known.all():
                break
        if found is None:
            raise AssertionError("there is at least one try")
        return found

    def _state_tags(self) -> npt.NDArray[np.uint8]:
        tags: npt.NDArray[np.uint8] = self._structures.column(self._offsets[4], np.uint8)
        return tags

    def _judge(self, before: npt.NDArray[np.uint8], ok: npt.NDArray[np.bool_]) -> ShenandoahReading:
        index, bottom, end, top = (self._structures.column(offset) for offset in self._offsets[:4])
        tags = self._state_tags()
        state = self._states[tags]
        numbers = np.arange(self.regions, dtype=np.uint64)
        expected = np.uint64(self._low) + numbers * np.uint64(self.grain)
        good = (
            ok
            & self._structures.ok
            & (index == numbers)
            & (bottom == expected)
            & (state != _UNTOLD)
        )
        good &= (
            (end == expected + np.uint64(self.grain))
            & (bottom <= top)
            & (top <= end)
            & (before == tags)
        )
        used = np.where(good, top - bottom, 0).astype(np.int64)
        return ShenandoahReading(
            self._low, self.grain, good, np.where(good, state, 0).astype(np.uint8), used
        )


def _completed(first: ShenandoahReading | None, then: ShenandoahReading) -> ShenandoahReading:
    """Return a reading whose unknown regions are taken from a later one."""
    if first is None:
        return then
    state = np.where(first.known, first.state, then.state)
    used = np.where(first.known, first.used, then.used)
    return ShenandoahReading(first.base, first.grain, first.known | then.known, state, used)


def _states(tables: VmTables) -> npt.NDArray[np.uint8]:
    """Return the state for each number, (256,)."""
    found = np.full(256, _UNTOLD, dtype=np.uint8)
    for state in RegionState:
        number = tables.constants.get(f"ShenandoahHeapRegion::_{state.name.lower()}")
        if number is not None:
            found[number & 0xFF] = state
    return found
