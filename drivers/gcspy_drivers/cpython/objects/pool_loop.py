"""Examines copied pools with a compiled loop; equivalent to `scan` in numpy.

The loop stops when it may run out of room, and when it met words that may be types: these are
checked, and if one was a type, the last step is repeated.

Knows arrays and the kernel's arguments; does not know how pools were copied or the use of the sums.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import ObjectLayout, PoolGeometry
from gcspy_drivers.cpython.objects import kernels
from gcspy_drivers.cpython.objects.blocks import PoolCopies
from gcspy_drivers.cpython.objects.containers import HOLDER_WORDS
from gcspy_drivers.cpython.objects.machine_code import Kernels
from gcspy_drivers.cpython.objects.pool_index import PoolIndex
from gcspy_drivers.cpython.objects.types import TypeColumns, TypeTable
from gcspy_drivers.cpython.pymalloc.pools import capacities

__all__ = ["PoolLoop"]

_ENTRIES: Final = 1 << 17
_CANDIDATES: Final = 1 << 17
_HOLDERS: Final = 1 << 15
_LOWEST_ADDRESS: Final = 0x400000

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U16 = npt.NDArray[np.uint16]


class PoolLoop:
    """Examines the pools of one reading, a part at a time, in order of address.

    Args:
        code: The compiled loops.
        types: The process's types.
        layout: Layout of its objects.
        geometry: Sizes that its pymalloc was built with.
        blocks: About how many blocks are in use in all; more are no trouble.
        entries: Filled with the type of each block; see `references.BlockMap`. Without rows: not filled.
        index: Places of pools.

    Attributes:
        entries: Parts of (entries, 4): pool, type, count and bytes of a block.
        holders: Parts of (holders, 10): objects that lead out of the pools, see `kernels.look_into`.
    """

    def __init__(
        self,
        code: Kernels,
        types: TypeTable,
        layout: ObjectLayout,
        geometry: PoolGeometry,
        *,
        blocks: int,
        entries: npt.NDArray[np.int8],
        index: PoolIndex,
    ) -> None:
        self._block_entries = entries
        self._index = index
        self._code = code
        self._types = types
        self._layout = layout
        self._geometry = geometry
        self._most = int(capacities(geometry)[0])
        # Unwritten memory is not allocated: room for every block costs only as much as the nodes.
        self._heads, self._head_rows, self._head_bytes = _room_for(blocks + self._most)
        self._entries: I32 = np.empty((_ENTRIES, 4), dtype=np.int32)
        self._candidates: I64 = np.empty(_CANDIDATES, dtype=np.int64)
        self._in_use = np.zeros(self._most, dtype=np.bool_)
        self._holders: I64 = np.empty((_HOLDERS, HOLDER_WORDS + 2), dtype=np.int64)
        self._fill: I64 = np.zeros(4, dtype=np.int64)
        self._accounting: I64 = np.zeros(0, dtype=np.int64)
        self.entries: list[I32] = []
        self.holders: list[I64] = []

    def look(
        self, copies: PoolCopies, rows: npt.NDArray[np.intp], shift: int
    ) -> tuple[npt.NDArray[np.bool_], I64] | None:
        """Examine some pools.

        Args:
            copies: The pools.
            rows: (n,) their rows in the reading.
            shift: Words of padding in each block.

        Returns:
            (n,) whether the pool could be looked into, and (n, 4) objects, those that may be tracked, those that are, and blocks in use;
            None when there are too many types for the loop.
        """
        count = len(rows)
        good, sums = np.zeros(count, dtype=np.bool_), np.zeros((count, 4), dtype=np.int64)
        free = copies.carved - copies.count
        begin = 0
        columns = self._types.columns()
        while begin < count:
            if columns is None:
                return None
            nodes = int(self._fill[1])
            self._fill[0] = self._fill[2] = self._fill[3] = 0
            if len(self._accounting) != len(columns.address) + 1:
                self._accounting = np.zeros(len(columns.address) + 1, dtype=np.int64)
            end = self._code.look_into(
                copies.words.view(np.int64),
                copies.address.view(np.int64),
                copies.size_class,
                copies.carved,
                free,
                copies.valid,
                rows,
                begin,
                self._form(columns, shift),
                *self._types.mapped(),
                columns.slots,
                columns.address,
                columns.forms,
                columns.refused,
                np.zeros(kernels.RECENT, dtype=np.int64),
                good,
                sums,
                self._in_use,
                self._accounting,
                self._entries,
                self._heads,
                self._head_rows,
                self._head_bytes,
                self._candidates,
                self._fill,
                self._block_entries,
                self._index.inside,
                self._holders,
            )
            if self._fill[2] and self._types.learn(
                self._candidates[: self._fill[2]].astype(np.uint64)
            ):
                columns = self._types.columns()
                self._fill[1] = nodes
                continue
            if end == begin:
                self._grow(nodes)
            self.entries.append(self._entries[: self._fill[0]].copy())
            if self._fill[3]:
                self.holders.append(self._holders[: self._fill[3]].copy())
            begin = end
        return good, sums

    def nodes(self) -> tuple[I64, I32, U16]:
        """Return the results: (3, nodes) address, following, before; (2, nodes) pool and type; (nodes,) bytes of the block."""
        count = int(self._fill[1])
        return self._heads[:, :count], self._head_rows[:, :count], self._head_bytes[:count]

    def _grow(self, nodes: int) -> None:
        heads, rows, size = _room_for(2 * self._heads.shape[1])
        heads[:, :nodes] = self._heads[:, :nodes]
        rows[:, :nodes] = self._head_rows[:, :nodes]
        size[:nodes] = self._head_bytes[:nodes]
        self._heads, self._head_rows, self._head_bytes = heads, rows, size

    def _form(self, columns: TypeColumns, shift: int) -> I64:
        return np.array(
            [
                self._geometry.header_bytes,
                self._geometry.alignment_bytes,
                shift,
                np.uint64(self._layout.refcount_flags).astype(np.int64),
                self._layout.most_references,
                _LOWEST_ADDRESS,
                columns.multiplier,
                columns.shift,
                columns.mask,
                columns.refused_shift,
                columns.refused_mask,
                columns.golden,
                self._index.lowest,
                self._index.shift,
            ],
            dtype=np.int64,
        )


def _room_for(nodes: int) -> tuple[I64, I32, U16]:
    return (
        np.empty((3, nodes), dtype=np.int64),
        np.empty((2, nodes), dtype=np.int32),
        np.empty(nodes, dtype=np.uint16),
    )
