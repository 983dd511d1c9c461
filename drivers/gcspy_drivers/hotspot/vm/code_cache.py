"""Reading the code cache: heaps of compiled methods and stubs, in blocks.

Each code heap has a map with a byte for each segment: where a block begins it is zero. The blocks'
own headers have their length and whether they are used. Map and headers are read, then the map
again; if it changed, all is read again.

Knows addresses; knows neither tiles nor streams. Source: OpenJDK src/hotspot/share/memory/heap.hpp and heap.cpp (``CodeHeap``,
``HeapBlock``); JDK 8 to 25 differ in the width of a block's length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory

__all__ = ["CodeCache", "CodeHeapReading", "find_code_cache"]

_WORD: Final = 8
_TRIES: Final = 3
_MOST_HEAPS: Final = 16
_MOST_SEGMENTS: Final = 1 << 26
_NO_BLOCK: Final = 0xFF

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CodeHeapReading:
    """One reading of a code heap.

    Attributes:
        low: Its first address.
        committed: End of the committed part.
        high: End of the reserved part.
        begins: (blocks,) address of each block; None: it changed each time while it was read.
        size: (blocks,) bytes of each.
        used: (blocks,) whether it is in use; the others were given back and wait for others.
    """

    low: int
    committed: int
    high: int
    begins: I64 | None
    size: I64
    used: npt.NDArray[np.bool_]


class CodeCache:
    """The code heaps of one JVM.

    Args:
        memory: The target's memory.
        tables: Its exports.
        heaps: Address of each CodeHeap.

    Raises:
        TargetError: A required field is not exported.
    """

    def __init__(self, memory: Memory, tables: VmTables, heaps: list[int]) -> None:
        self._memory = memory
        self._heaps = heaps
        virtual = {
            name: tables.need_offset("VirtualSpace", name)
            for name in ("_low_boundary", "_low", "_high", "_high_boundary")
        }
        self._memory_at = tables.need_offset("CodeHeap", "_memory")
        self._map_at = tables.need_offset("CodeHeap", "_segmap")
        self._shift_at = tables.need_offset("CodeHeap", "_log2_segment_size")
        self._virtual = virtual
        header = tables.need_offset("HeapBlock", "_header")
        self._length_at = header + tables.need_offset("HeapBlock::Header", "_length")
        self._used_at = header + tables.need_offset("HeapBlock::Header", "_used")
        # A length of 64 bits ends where the flag begins, one of 32 too.
        self._length_type = "<u8" if self._used_at - self._length_at >= _WORD else "<u4"
        self._header_bytes = self._used_at + 1

    def read(self) -> list[CodeHeapReading]:
        """Read all code heaps, in order of address.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
            TargetError: Their bounds are invalid.
        """
        return sorted((self._read_heap(heap) for heap in self._heaps), key=lambda heap: heap.low)

    def _read_heap(self, heap: int) -> CodeHeapReading:
        for _ in range(_TRIES):
            bounds = [
                self._word(heap + self._memory_at + offset) for offset in self._virtual.values()
            ]
            low_boundary, low, committed, high = bounds
            shift = int.from_bytes(self._memory.read(heap + self._shift_at, 4), "little")
            segments = (committed - low) >> shift if 3 <= shift <= 16 else -1
            if not low_boundary <= low <= committed <= high or not 0 <= segments <= _MOST_SEGMENTS:
                raise TargetError(
                    f"process {self._memory.process.pid}: a code heap from {low:#x} to {high:#x} cannot be"
                )
            blocks = self._read_blocks(
                self._word(heap + self._map_at + self._virtual["_low"]), segments, low, shift
            )
            if blocks is not None:
                return CodeHeapReading(low, committed, high, *blocks)
        nothing = np.zeros(0, dtype=np.int64)
        return CodeHeapReading(low, committed, high, None, nothing, nothing.astype(np.bool_))

    def _read_blocks(
        self, where: int, segments: int, low: int, shift: int
    ) -> tuple[I64, I64, npt.NDArray[np.bool_]] | None:
        before = self._memory.try_read(where, segments)
        if before is None:
            return None
        begins = np.flatnonzero(np.frombuffer(before, dtype=np.uint8) == 0)
        addrs = np.uint64(low) + (begins.astype(np.uint64) << np.uint64(shift))
        data, ok = self._memory.read_many(addrs, self._header_bytes)
        if not ok.all() or self._memory.try_read(where, segments) != before:
            return None
        width = 8 if self._length_type == "<u8" else 4
        length = (
            data[:, self._length_at : self._length_at + width]
            .copy()
            .view(self._length_type)[:, 0]
            .astype(np.int64)
        )
        used = data[:, self._used_at]
        ends = begins + length
        # For merged blocks, the map may still have the starts of the later ones: they are inside of
        # the first.
        outer = np.ones(len(begins), dtype=np.bool_)
        outer[1:] = begins[1:] >= np.maximum.accumulate(ends)[:-1]
        if (used > 1).any() or (length <= 0).any() or (ends > segments).any():
            return None
        rows = np.flatnonzero(outer)
        return addrs[rows].astype(np.int64), length[rows] << shift, used[rows] != 0

    def _word(self, addr: int) -> int:
        return int.from_bytes(self._memory.read(addr, _WORD), "little")


def find_code_cache(memory: Memory, tables: VmTables) -> CodeCache | None:
    """Find the code heaps; None when the VM does not export them."""
    try:
        return CodeCache(memory, tables, _heaps(memory, tables))
    except TargetError:
        memory.process.check()
        return None


def _heaps(memory: Memory, tables: VmTables) -> list[int]:
    only = tables.static("CodeCache", "_heap")
    if only is not None:  # JDK 8
        return [int.from_bytes(memory.read(only, _WORD), "little")]
    array = int.from_bytes(memory.read(tables.need_static("CodeCache", "_heaps"), _WORD), "little")
    base = "GrowableArrayBase" if "GrowableArrayBase" in tables.types else "GenericGrowableArray"
    count = int.from_bytes(memory.read(array + tables.need_offset(base, "_len"), 4), "little")
    data = memory.read(array + tables.need_offset("GrowableArray<int>", "_data"), _WORD)
    if not 0 < count <= _MOST_HEAPS:
        raise TargetError(f"process {memory.process.pid}: {count} code heaps cannot be")
    found = memory.read(int.from_bytes(data, "little"), count * _WORD)
    return [int(heap) for heap in np.frombuffer(found, dtype="<u8")]
