"""Reading a heap of ZGC, of one generation or two: the table of pages, and each page's extent and kind.

The table has an entry for each 2 MiB of the heap's addresses, which are many times as many as the
heap's bytes: a page's entries all point to it. The use of a page changes, so table and pages are
read twice, and a page is accepted if both reads agree.

Knows addresses; knows neither tiles nor streams. Source: OpenJDK src/hotspot/share/gc/z (and gc/x of 21, the one of a single generation),
zPageTable.hpp, zGranuleMap.hpp, zPage.hpp, zVirtualMemory.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory

__all__ = ["OLD_AGE", "PAGE_KINDS", "ZReader", "ZReading"]

_WORD: Final = 8
_TRIES: Final = 4
_GRANULE_SHIFT: Final = 21
_MOST_GRANULES: Final = 1 << 24  # 2 TiB of heap, with 16 times as many addresses
_RATIO: Final = 16
"""Ratio of its addresses to the bytes of the largest heap. Source: zGlobals, ``ZVirtualToPhysicalRatio``."""

_GENERATION, _AGE = 1, 2
_WITH_AGES: Final = {(0, 4, 192), (0, 4, 160)}
"""Page layouts (offsets of kind and sequence, bytes) for which the two bytes are known: 21 and 25."""

OLD_AGE: Final = 15
"""The age of pages of the old generation."""

PAGE_KINDS: Final = ("small", "medium", "large")

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class ZReading:
    """One reading of all pages, in order of address.

    Attributes:
        base: (pages,) offset of each in the heap, bytes.
        size: (pages,) bytes.
        unsure: Number of further pages that changed at each read; their places are unknown.
        kind: (pages,) place in `PAGE_KINDS`.
        used: (pages,) bytes up to its top; None: the version does not export it (11).
        sequence: (pages,) number of the collection in which it was made; None: the version does not export it.
        age: (pages,) collections that its objects have survived, 15: in the old generation; None: there is one generation, or it is not known.
    """

    base: U64
    size: U64
    unsure: int
    kind: npt.NDArray[np.uint8]
    used: npt.NDArray[np.int64] | None
    sequence: npt.NDArray[np.int64] | None
    age: npt.NDArray[np.uint8] | None


class ZReader:
    """Reads the pages of one JVM.

    Args:
        memory: The target's memory.
        tables: Its exports.
        heap: Address of its CollectedHeap.
        most_bytes: The largest size of the heap.
        generational: Whether it has two generations; 21 has both kinds, and calls the one of a single generation X.

    Raises:
        TargetError: A required field is not exported, or the table is invalid.
    """

    def __init__(
        self, memory: Memory, tables: VmTables, heap: int, *, most_bytes: int, generational: bool
    ) -> None:
        self._memory = memory
        z = "X" if not generational and "XPage" in tables.types else "Z"
        inner = heap + tables.need_offset(f"{z}CollectedHeap", "_heap")
        table = inner + tables.need_offset(f"{z}Heap", "_page_table", "_pagetable")
        table += tables.need_offset(f"{z}PageTable", "_map")
        granules = tables.offset(f"{z}GranuleMapForPageTable", "_map")
        if granules is None:  # 11
            granules = tables.need_offset(f"{z}AddressRangeMapForPageTable", "_map")
        self._map = int.from_bytes(memory.read(table + granules, _WORD), "little")
        self._granules = _RATIO * most_bytes >> _GRANULE_SHIFT
        page, virtual = f"{z}Page", f"{z}VirtualMemory"
        self._size = tables.size_of(page) or 0
        at = tables.need_offset(page, "_virtual")
        self._start = at + tables.need_offset(virtual, "_start")
        end, size = tables.offset(virtual, "_end"), tables.offset(virtual, "_size")
        self._end = None if end is None else at + end
        self._length = None if size is None else at + size
        self._top = tables.offset(page, "_top")
        self._type = tables.need_offset(page, "_type")
        self._sequence = tables.offset(page, "_seqnum")
        fields = [
            self._start,
            self._end or 0,
            self._length or 0,
            self._top or 0,
            self._type,
            self._sequence or 0,
        ]
        # Between the exported kind and sequence there is no room for anything else.
        self._private = generational and (self._type, self._sequence, self._size) in _WITH_AGES
        if (
            not 0 < self._granules <= _MOST_GRANULES
            or not max(fields) + _WORD <= self._size <= 4096
            or not self._map
        ):
            raise TargetError(
                f"process {memory.process.pid}: a table of {self._granules} granules at {self._map:#x}, pages described in {self._size} bytes: "
                "it is starting, or its ZGC is not supported"
            )

    @property
    def tells_used(self) -> bool:
        """Whether the version exports a page's top."""
        return self._top is not None

    @property
    def tells_sequence(self) -> bool:
        """Whether the version exports when a page was made."""
        return self._sequence is not None

    def read(self) -> ZReading | None:
        """Read all pages; None when the table cannot be read.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        found = None
        for _ in range(_TRIES):
            first = self._read_pages()
            second = self._read_pages()
            if first is None or second is None:
                continue
            found = self._judge(first, second)
            if not found.unsure:
                return found
        return found

    def _read_pages(self) -> tuple[U64, npt.NDArray[np.uint8], npt.NDArray[np.bool_]] | None:
        table = self._memory.try_read(self._map, self._granules * _WORD)
        if table is None:
            return None
        entries = np.frombuffer(table, dtype="<u8") & ~np.uint64(
            7
        )  # 11 marks entries in their lowest bit
        pages = np.unique(entries[entries != 0])
        data, ok = self._memory.read_many(pages, self._size)  # they have no neighbours
        return pages, data, ok

    def _judge(
        self,
        first: tuple[U64, npt.NDArray[np.uint8], npt.NDArray[np.bool_]],
        second: tuple[U64, npt.NDArray[np.uint8], npt.NDArray[np.bool_]],
    ) -> ZReading:
        pages, data, ok = second
        start, size = self._extents(data)
        kind = data[:, self._type]
        # Those that existed before, and were equal except for their top.
        places = np.minimum(np.searchsorted(first[0], pages), max(len(first[0]) - 1, 0))
        if len(first[0]):
            old_start, old_size = self._extents(first[1][places])
            same = (
                (first[0][places] == pages)
                & (old_start == start)
                & (old_size == size)
                & first[2][places]
            )
            same &= first[1][places][:, self._type] == kind
        else:
            same = np.zeros(len(pages), dtype=np.bool_)
        granule = np.uint64((1 << _GRANULE_SHIFT) - 1)
        most = np.uint64(self._granules << _GRANULE_SHIFT)
        good = (
            ok
            & same
            & (kind < len(PAGE_KINDS))
            & (size > 0)
            & ((start | size) & granule == 0)
            & (start < most)
            & (size <= most)
        )
        used = None
        if self._top is not None:
            top = _words(data, self._top)
            good &= (top >= start) & (top - start <= size)
            used = (top - start).astype(np.int64)
        sequence = (
            None
            if self._sequence is None
            else _words(data, self._sequence).astype(np.int64) & 0xFFFFFFFF
        )
        order = np.argsort(start[good], kind="stable")
        rows = np.flatnonzero(good)[order]
        # Two pages at one place: one of them has just been removed. Which one is unknown.
        ends = start[rows] + size[rows]
        apart = np.ones(len(rows), dtype=np.bool_)
        apart[1:] = start[rows][1:] >= ends[:-1]
        return ZReading(
            base=start[rows][apart],
            size=size[rows][apart],
            unsure=len(good) - int(np.count_nonzero(apart)),
            kind=kind[rows][apart].astype(np.uint8),
            used=None if used is None else used[rows][apart],
            sequence=None if sequence is None else sequence[rows][apart],
            age=self._ages(data[rows[apart]]),
        )

    def _ages(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8] | None:
        """Return the age of each page, if the bytes beside the exported fields can be nothing else."""
        if not self._private:
            return None
        generation, age = data[:, _GENERATION], data[:, _AGE]
        consistent = (
            (generation <= 1) & (age <= OLD_AGE) & ((generation == 1) == (age == OLD_AGE))
        ).all()
        return age.copy() if consistent else None

    def _extents(self, data: npt.NDArray[np.uint8]) -> tuple[U64, U64]:
        start = _words(data, self._start)
        if self._length is not None:
            return start, _words(data, self._length)
        return start, _words(data, self._end or 0) - start


def _words(data: npt.NDArray[np.uint8], offset: int) -> U64:
    return data[:, offset : offset + _WORD].copy().view("<u8")[:, 0]
