"""Which blocks in use are objects, and of which type: one copy of the pools, a few megabytes at a time.

An object is identified by two words: a possible reference count, followed by the address of a type
that has objects of this form (`types.TypeTable`) in blocks of at least this size. A block without
such words is not an object: items of a list, keys of a dictionary, a buffer. A block that contains
such words by accident is miscounted; one that an allocator's debug hooks padded is examined behind
the padding. An object in one of Python's own free lists has no reference count and does not count.

Sums are made for each pool, so that tiles of any size can be made of them, and the collector's nodes are kept for `lists`.

Source: CPython 3.9 to 3.15 Include/object.h (PyObject), pycore_gc.h (PyGC_Head), Objects/obmalloc.c (_PyMem_DebugRawAlloc).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import ObjectLayout, PoolGeometry
from gcspy_drivers.cpython.objects.blocks import PoolCopies, blocks_in_use
from gcspy_drivers.cpython.objects.containers import HOLDER_WORDS
from gcspy_drivers.cpython.objects.heap_copy import HeapCopy
from gcspy_drivers.cpython.objects.machine_code import Kernels
from gcspy_drivers.cpython.objects.pool_index import PoolIndex
from gcspy_drivers.cpython.objects.pool_loop import PoolLoop
from gcspy_drivers.cpython.objects.types import TypeTable
from gcspy_drivers.cpython.pymalloc.pools import PoolState, capacities

__all__ = ["NO_ENTRIES", "NO_HOLDERS", "Nodes", "ObjectScanner", "ScannedObjects"]

_HEAD_WORDS = (
    8  # of a block: enough for prefix, collector's head, reference count and type, behind padding
)
_PADDING_WORDS = 2  # of the debug hooks, before the requested memory
_PADDING_BYTES = 24  # of the debug hooks in all
_PADDING_POOLS = 64  # that are examined to detect padding
_PADDING_BLOCKS = 1000  # that are enough to tell once and for all
_PADDED = 0xFDFDFDFDFDFDFD00
_LOWEST_ADDRESS = np.uint64(0x400000)  # where such a program begins
_MOST_CELLS = 1 << 22  # of a table pool by type

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]
NO_ENTRIES: Final[I8] = np.zeros((0, 0), dtype=np.int8)
"""Empty argument of callers that do not need the state of each block."""

NO_HOLDERS: Final[I64] = np.zeros((0, HOLDER_WORDS + 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Nodes:
    """The collector's heads of objects, each of which is on one of its lists.

    Attributes:
        address: (n,) of the head; the object begins 16 bytes after it.
        following: (n,) of the next one on the list, without the flags that the collector keeps in it.
        before: (n,) of the one before.
        pool: (n,) row of its pool in the reading; -1: it is in none.
        type: (n,) number of the object's type; -1 where it is not known.
        block_bytes: (n,) bytes of the block; 0 outside of pools, where they are not known.
    """

    address: U64
    following: U64
    before: U64
    pool: I32
    type: I32
    block_bytes: npt.NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.address)

    def moved(self, pools: int) -> Nodes:
        """Return the same nodes with the rows of their pools shifted by a number."""
        if not pools:
            return self
        pool = np.where(self.pool >= 0, self.pool + np.int32(pools), self.pool)
        return Nodes(self.address, self.following, self.before, pool, self.type, self.block_bytes)

    def then(self, more: Nodes) -> Nodes:
        """Return these, and others behind them."""
        if not len(more):
            return self
        return Nodes(
            np.concatenate((self.address, more.address)),
            np.concatenate((self.following, more.following)),
            np.concatenate((self.before, more.before)),
            np.concatenate((self.pool, more.pool)),
            np.concatenate((self.type, more.type)),
            np.concatenate((self.block_bytes, more.block_bytes)),
        )

    @classmethod
    def together(cls, parts: list[Nodes]) -> Nodes:
        """Return all of them, in order of address."""
        if not parts:
            none = np.zeros(0, dtype=np.uint64)
            empty = np.zeros(0, dtype=np.int32)
            return cls(none, none, none, empty, empty, np.zeros(0, dtype=np.uint16))
        if len(parts) == 1 and bool((parts[0].address[1:] > parts[0].address[:-1]).all()):
            return parts[0]
        address = np.concatenate([part.address for part in parts])
        # Two parts may have come to the same node by different ways.
        address, order = np.unique(address, return_index=True)
        return cls(
            address=address,
            following=np.concatenate([part.following for part in parts])[order],
            before=np.concatenate([part.before for part in parts])[order],
            pool=np.concatenate([part.pool for part in parts])[order],
            type=np.concatenate([part.type for part in parts])[order],
            block_bytes=np.concatenate([part.block_bytes for part in parts])[order],
        )


@dataclass(frozen=True, eq=False)
class ScannedObjects:
    """The objects in the pools of one reading.

    Attributes:
        known: (pools,) whether the pool could be examined; pools without a block in use are known.
            Where not, all numbers are 0 and have no meaning.
        objects: (pools,) objects.
        trackable: (pools,) those of them that the collector may track.
        tracked: (pools,) those that it tracks.
        blocks: (pools,) blocks in use; those that are not objects belong to objects.
        pool, type, count, block_bytes: (entries,) how many objects of each type with blocks of each size a pool has, in order of pool
            and type; type -1: no object.
        nodes: The tracked ones.
        holders: (n, 10) objects that lead out of the pools, in order of address: where, type, and the eight words behind the type.
        holder_pool: (n,) row of the pool of each of them.
        pools_copied: Pools that were copied.
    """

    known: Mask
    objects: I64
    trackable: I64
    tracked: I64
    blocks: I64
    pool: I32
    type: I32
    count: I32
    block_bytes: I32
    nodes: Nodes
    holders: I64
    holder_pool: I32
    pools_copied: int


@dataclass
class _Sums:
    """Results while one reading is examined."""

    known: Mask
    objects: I64
    trackable: I64
    tracked: I64
    blocks: I64
    entries: list[tuple[I64, I64, I64, int]]
    nodes: list[Nodes]
    holders: list[I64] = field(default_factory=list)
    from_loop: list[I32] = field(default_factory=list)

    def add(self, loop: PoolLoop) -> None:
        """Add the results of a loop other than the sums."""
        self.from_loop = loop.entries
        self.holders += loop.holders
        heads, rows, size = loop.nodes()
        address, following, before = heads.view(np.uint64)
        self.nodes.append(Nodes(address, following, before, rows[0], rows[1], size))

    def columns(self) -> tuple[I32, I32, I32, I32]:
        """Return pool, type, count and bytes of a block of all entries, in order of pool and type."""
        parts = [
            np.stack((pool, kind, count, np.full(len(pool), size)), axis=1).astype(np.int32)
            for pool, kind, count, size in self.entries
        ]
        together = np.concatenate([np.zeros((0, 4), dtype=np.int32), *parts, *self.from_loop])
        if parts:
            together = together[np.lexsort((together[:, 1], together[:, 0]))]
        pool, kind, count, size = together.T.copy()
        return pool, kind, count, size


class ObjectScanner:
    """Examines the pools of one process, repeatedly.

    Args:
        types: Its types.
        layout: Layout of its objects.
        geometry: Sizes that its pymalloc was built with.
        kernels: Loops to use instead of numpy, where they are there.
        padding: Words of the debug hooks in each block, as an earlier scan found them; None: not known yet.

    Attributes:
        kernels: The loops.
        padding: The same, after a scan of enough blocks.
    """

    def __init__(
        self,
        types: TypeTable,
        layout: ObjectLayout,
        geometry: PoolGeometry,
        kernels: Kernels | None = None,
        *,
        padding: int | None = None,
    ) -> None:
        self.padding = padding
        self._types = types
        self._layout = layout
        self._geometry = geometry
        self._entries = NO_ENTRIES
        self._index = PoolIndex.of((), geometry)
        self._shift = padding or 0
        self.kernels = kernels

    def scan(
        self,
        copy: HeapCopy,
        entries: I8 = NO_ENTRIES,
        index: PoolIndex | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> ScannedObjects:
        """Examine the pools in use.

        Args:
            copy: Source of the pools. `TypeTable.begin` was called for this gathering.
            index: Places of the pools of all heaps; None: those of this one.
            entries: (pools, cells) filled: the kind of each block, see `references.BlockMap`;
                without rows: not requested.
            progress: Called with the number of pools examined so far.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        pools = copy.reading.pools
        count = len(pools)
        known = (pools.state == PoolState.FREE) | (pools.state == PoolState.UNCARVED)
        sums = _Sums(
            known=known,
            objects=np.zeros(count, dtype=np.int64),
            trackable=np.zeros(count, dtype=np.int64),
            tracked=np.zeros(count, dtype=np.int64),
            blocks=np.zeros(count, dtype=np.int64),
            entries=[],
            nodes=[],
        )
        self._index = PoolIndex.of((copy.reading,), self._geometry) if index is None else index
        loop = self._loop(int(pools.blocks_used[copy.rows].sum()), entries)
        self._entries = entries
        done = 0
        for part, copies in copy.parts():
            if not done and self.padding is None:
                self._shift = self._find_padding(copies)
            if loop is None or not self._look_with(loop, copies, part, sums):
                self._look_into(copies, part, sums)
            done += len(part)
            progress(done)
        if loop is not None:
            sums.add(loop)
        pool, kind, number, size = sums.columns()
        holders = _together(sums.holders)
        return ScannedObjects(
            known=sums.known,
            objects=sums.objects,
            trackable=sums.trackable,
            tracked=sums.tracked,
            blocks=sums.blocks,
            pool=pool,
            type=kind,
            count=number,
            block_bytes=size,
            nodes=Nodes.together(sums.nodes),
            holders=holders,
            holder_pool=_rows_of(holders[:, 0], pools.address),
            pools_copied=len(copy.rows),
        )

    def _loop(self, blocks: int, entries: I8) -> PoolLoop | None:
        if self.kernels is None:
            return None
        return PoolLoop(
            self.kernels,
            self._types,
            self._layout,
            self._geometry,
            blocks=blocks,
            entries=entries,
            index=self._index,
        )

    def _look_with(
        self, loop: PoolLoop, copies: PoolCopies, rows: npt.NDArray[np.intp], sums: _Sums
    ) -> bool:
        found = loop.look(copies, rows, self._shift)
        if found is None:
            return False
        sums.known[rows], columns = found
        for sum_of, column in zip(
            (sums.objects, sums.trackable, sums.tracked, sums.blocks), columns.T, strict=True
        ):
            sum_of[rows] = column
        return True

    def _look_into(self, copies: PoolCopies, rows: npt.NDArray[np.intp], sums: _Sums) -> None:
        in_use, good = blocks_in_use(copies, self._geometry)
        sums.known[rows] = good
        for number, capacity in enumerate(capacities(self._geometry).tolist()):
            of_class = np.flatnonzero(good & (copies.size_class == number) & (copies.count > 0))
            if not len(of_class):
                continue
            block_bytes = (number + 1) * self._geometry.alignment_bytes
            used = in_use[of_class, :capacity]
            heads = self._heads(copies, of_class, capacity, block_bytes)[used]
            local, block = np.nonzero(used)
            self._tell_apart(copies, of_class, rows, local, block, heads, block_bytes, sums)

    def _heads(
        self, copies: PoolCopies, of_class: npt.NDArray[np.intp], capacity: int, block_bytes: int
    ) -> U64:
        """Return the first words of each block of some pools, (pools, capacity, words)."""
        words = copies.words
        first = self._geometry.header_bytes >> 3
        view = np.lib.stride_tricks.as_strided(
            words[:, first:],
            shape=(len(words), capacity, min(_HEAD_WORDS, block_bytes >> 3)),
            strides=(words.strides[0], block_bytes, 8),
            writeable=False,
        )
        found: U64 = view[of_class]
        return found

    def _tell_apart(
        self,
        copies: PoolCopies,
        of_class: npt.NDArray[np.intp],
        rows: npt.NDArray[np.intp],
        local: npt.NDArray[np.intp],
        block: npt.NDArray[np.intp],
        heads: U64,
        block_bytes: int,
        sums: _Sums,
    ) -> None:
        kind, prefix = self._types_of(heads, block_bytes)
        pool = rows[of_class]
        size = len(of_class)
        is_object = kind >= 0
        sums.blocks[pool] += np.bincount(local, minlength=size)
        sums.objects[pool] += np.bincount(local[is_object], minlength=size)
        sums.entries += _histogram(pool, local, kind, block_bytes)
        first = self._geometry.header_bytes + block * block_bytes
        self._hold(copies, of_class[local], first, kind, prefix, block_bytes, sums)
        trackable = np.flatnonzero(is_object & self._types.collected[kind])
        sums.trackable[pool] += np.bincount(local[trackable], minlength=size)
        # The collector's head is right before the object, behind any other prefix.
        at = (prefix[trackable] >> 3) - 2 + self._shift
        following = heads[trackable, at] & ~np.uint64(3)
        tracked = following != 0
        if len(self._entries):
            label = np.where(is_object, 2, 1)
            label[trackable] = np.where(tracked, 8, 3)
            label[is_object] += 16 * ((prefix[is_object] >> 4) + (self._shift >> 1))
            cell = (self._geometry.header_bytes + block * block_bytes) >> 4
            self._entries[pool[local], cell] = label
        trackable, at = trackable[tracked], at[tracked]
        sums.tracked[pool] += np.bincount(local[trackable], minlength=size)
        address = copies.address[of_class[local[trackable]]] + (
            self._geometry.header_bytes + block[trackable] * block_bytes + 8 * at
        ).astype(np.uint64)
        sums.nodes.append(
            Nodes(
                address=address,
                following=following[tracked],
                before=heads[trackable, at + 1] & ~np.uint64(3),
                pool=pool[local[trackable]].astype(np.int32),
                type=kind[trackable],
                block_bytes=np.full(len(trackable), block_bytes, dtype=np.uint16),
            )
        )

    def _hold(
        self,
        copies: PoolCopies,
        row: npt.NDArray[np.intp],
        begin: I64,
        kind: I32,
        prefix: I64,
        block_bytes: int,
        sums: _Sums,
    ) -> None:
        """Write down the objects that lead out of the pools; ``row`` is the pool's in the copies, ``begin`` the block's place in it."""
        may = np.flatnonzero((kind >= 0) & (self._types.pointers[kind, 0] != 0))
        if not len(may):
            return
        words = copies.words.view(np.int64)
        row, begin, kind = row[may], begin[may], kind[may]
        at = prefix[may] + 8 * self._shift
        leads = np.zeros(len(may), dtype=np.bool_)
        for offset in self._types.pointers[kind].T:
            there = np.flatnonzero((offset != 0) & (at + offset + 8 <= block_bytes))
            word = words[row[there], (begin + at + offset)[there] >> 3]
            leads[there] |= (word != 0) & self._index.outside(word)
        row, begin, kind, at = row[leads], begin[leads], kind[leads], at[leads]
        found = np.zeros((len(row), HOLDER_WORDS + 2), dtype=np.int64)
        found[:, 0] = copies.address[row].astype(np.int64) + begin + at
        found[:, 1] = kind
        for word in range(HOLDER_WORDS):
            place = at + 16 + 8 * word
            there = np.flatnonzero(place + 8 <= block_bytes)
            found[there, 2 + word] = words[row[there], (begin + place)[there] >> 3]
        sums.holders.append(found)

    def _types_of(self, heads: U64, block_bytes: int) -> tuple[I32, I64]:
        """Return the type of each block, -1 for no object, and how many bytes it has before its reference count."""
        types = self._types
        kind = np.full(len(heads), -1, dtype=np.int32)
        prefixes = np.zeros(len(heads), dtype=np.int64)
        room = block_bytes - (_PADDING_BYTES if self._shift else 0)
        left = np.arange(len(heads))
        for prefix in range(0, 48, 16):
            at = (prefix >> 3) + self._shift
            if at + 2 > heads.shape[1] or not len(left):
                break
            counts = heads[left, at] & ~np.uint64(self._layout.refcount_flags)
            likely = counts - np.uint64(1) < np.uint64(self._layout.most_references)
            # In a program at fixed addresses, addresses are small enough to be counts.
            large = np.flatnonzero(likely & (counts >= _LOWEST_ADDRESS))
            likely[large[self._types.is_address(counts[large])]] = False
            possible = left[likely]
            words = heads[possible, at + 1]
            number = types.find(words)
            if types.learn(words[number < 0]):
                number = types.find(words)
            fits = (
                (number >= 0)
                & (types.prefix_bytes[number] == prefix)
                & (types.least_bytes[number] <= room)
            )
            kind[possible[fits]] = number[fits]
            prefixes[possible[fits]] = prefix
            left = np.flatnonzero(kind < 0)
        return kind, prefixes

    def _find_padding(self, copies: PoolCopies) -> int:
        """Return how many words precede the requested memory: those of the debug hooks, if most blocks have them."""
        copies = copies.first(_PADDING_POOLS)
        in_use, _ = blocks_in_use(copies, self._geometry)
        row, block = np.nonzero(in_use)
        size = (copies.size_class[row] + 1) * self._geometry.alignment_bytes
        word = (self._geometry.header_bytes + block * size + 8) >> 3
        padded = np.count_nonzero(copies.words[row, word] & ~np.uint64(0xFF) == np.uint64(_PADDED))
        words = _PADDING_WORDS if 2 * padded > len(row) else 0
        if len(row) >= _PADDING_BLOCKS:
            self.padding = words  # a program has the hooks from its start, or not at all
        return words


def _together(parts: list[I64]) -> I64:
    """Return all holders, in order of address."""
    if not parts:
        return NO_HOLDERS
    found = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return (
        found
        if bool((found[1:, 0] > found[:-1, 0]).all())
        else found[np.argsort(found[:, 0], kind="stable")]
    )


def _rows_of(address: I64, pools: U64) -> I32:
    """Return the row of the pool that each address is in, (n,)."""
    found = np.searchsorted(pools, address.view(np.uint64), side="right") - 1
    return found.astype(np.int32)


def _histogram(
    pool: npt.NDArray[np.intp], local: npt.NDArray[np.intp], kind: I32, block_bytes: int
) -> Iterator[tuple[I64, I64, I64, int]]:
    """Count the blocks by pool and type; yields pool, type, count, and bytes of a block."""
    # Few types are in blocks of one size: number those that are.
    present = np.flatnonzero(np.bincount(kind + 1))
    narrow = np.zeros(int(present[-1]) + 1 if len(present) else 1, dtype=np.int64)
    narrow[present] = np.arange(len(present))
    kinds = len(present)
    step = max(1, _MOST_CELLS // max(1, kinds))
    for begin in range(0, len(pool), step):
        first, last = np.searchsorted(local, (begin, begin + step))
        key = (local[first:last] - begin) * kinds + narrow[kind[first:last] + 1]
        counts = np.bincount(key)
        filled = np.flatnonzero(counts)
        yield (
            pool[begin + filled // kinds].astype(np.int64),
            present[filled % kinds] - 1,
            counts[filled],
            block_bytes,
        )
