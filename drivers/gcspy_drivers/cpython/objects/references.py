"""Level 4: references that are found in the pools, by the pool that they are in and the one they lead to.

From outside it is not known which of an object's words are references, so all of them are tested:
each aligned word of an object that the collector may track, except its collector header, reference
count and type, and each word of a block that such an object leads to and that is not an object
itself (items of a list, the table of a dictionary, values of an instance). A word that is the
address of an object in a pool counts as a reference to it. Hence

* only references in pools are found: tables and items of more than 512 bytes are elsewhere, and so
  are their references;
* references that the collector would not follow are counted too (keys of a dictionary of names, a
  weak reference);
* a number that happens to be such an address is counted.

`tests/drivers/cpython/test_references.py` compares with ``gc.get_referents``, and
`docs/cpython-versions.md` has the results.

Knows blocks and their state; does not know types or tiles.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.objects.heap_copy import HeapCopy
from gcspy_drivers.cpython.objects.kernels import RECENT
from gcspy_drivers.cpython.objects.machine_code import Kernels
from gcspy_drivers.cpython.objects.pool_index import Outward
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading

__all__ = ["FOUND", "BlockMap", "Label", "find_leads", "find_references"]

FOUND: Final = ("within", "out", "into", "old to young", "young to old")
"""Counters of each pool: references in it to objects in it, references in it to objects in other pools, references from other pools to its
objects; references in it from an object of an older generation to one of a younger, and the other way round."""

_MOST_SPAN: Final = 1 << 26
"""Pools from the lowest to the highest, of which most may be none: 1 TiB, for which the table takes address space, and not memory."""

_LEADS: Final = 1 << 18

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


class Label(IntEnum):
    """State of a block; the lower four bits of its entry in a `BlockMap`."""

    NOT_IN_USE = 0
    NO_OBJECT = 1
    PLAIN = 2
    """An object that the collector never tracks: it has no references that matter to it."""
    UNTRACKED = 3
    TRACKED = 4
    """And three more, for the other lists: `TRACKED` + generation."""
    TRACKED_SOMEWHERE = 8
    KEPT = 9
    """Not an object, and one without a generation leads to it; + 1 + generation for one that has one: of several the oldest."""


@dataclass(frozen=True, eq=False)
class BlockMap:
    """The blocks of all pools of a process: the state of each, and the start of its object.

    Attributes:
        entry: (pools, cells) at the cell of 16 bytes at which a block begins, its `Label` plus 16 × the cells from there to its object.
        address: (pools,) where each pool begins.
        size: (pools,) bytes of its blocks; 0 where it has none in use.
        lowest: The lowest pool's number, counted in pools from address 0.
        row: (span,) row of the pool with each number from `lowest` on, plus 1; 0: none.
        header: Bytes of a pool's header.
    """

    entry: I8
    address: I64
    size: I64
    lowest: int
    row: I32
    header: int

    @classmethod
    def of(cls, readings: Iterable[HeapReading], geometry: PoolGeometry) -> BlockMap | None:
        """Make one without entries; None when the pools are too far apart."""
        pools = [reading.pools for reading in readings]
        address = np.concatenate(
            [np.zeros(0, dtype=np.uint64), *(one.address for one in pools)]
        ).astype(np.int64)
        classes = np.concatenate([np.zeros(0, dtype=np.int16), *(one.size_class for one in pools)])
        number = address // geometry.pool_bytes
        lowest = int(number.min()) if len(number) else 0
        span = int(number.max()) - lowest + 1 if len(number) else 0
        if span > _MOST_SPAN:
            return None
        row = np.zeros(span, dtype=np.int32)
        row[number - lowest] = np.arange(1, len(number) + 1)
        return cls(
            entry=np.zeros((len(address), geometry.pool_bytes // 16), dtype=np.int8),
            address=address,
            size=np.where(
                classes >= 0, (classes.astype(np.int64) + 1) * geometry.alignment_bytes, 0
            ),
            lowest=lowest,
            row=row,
            header=geometry.header_bytes,
        )

    def find(self, words: I64) -> tuple[npt.NDArray[np.intp], I64, I64]:
        """Find the blocks that words lead into.

        Returns:
            (m,) which of the words lead into a pool with blocks, the flat number of the block's entry, and the bytes from there. All new.
        """
        number = words // (16 * self.entry.shape[1]) - self.lowest
        near = np.flatnonzero((number >= 0) & (number < len(self.row)))
        pool = self.row[number[near]].astype(np.int64) - 1
        inside = pool >= 0
        near, pool = near[inside], pool[inside]
        size = self.size[pool]
        place = words[near] - self.address[pool] - self.header
        inside = (size > 0) & (place >= 0)
        near, pool, size, place = near[inside], pool[inside], size[inside], place[inside]
        begin = place // size * size
        inside = self.header + begin + size <= 16 * self.entry.shape[1]
        near, pool, place, begin = near[inside], pool[inside], place[inside], begin[inside]
        return near, pool * self.entry.shape[1] + ((self.header + begin) >> 4), place - begin

    def give_lists(self, address: U64, of_node: I8, each: int, code: Kernels | None) -> None:
        """Set the list of tracked objects.

        Args:
            address: (n,) of their heads.
            of_node: (n,) number of the list; -1: not known.
            each: Lists an interpreter has.
            code: Compiled loops, to use instead of numpy.
        """
        if code is not None:
            code.give_lists(*_arguments(self), address.view(np.int64), of_node, each)
            return
        which, at, _ = self.find(address.view(np.int64))
        flat, number = self.entry.reshape(-1), of_node[which]
        known = ((flat[at] & 15) == Label.TRACKED_SOMEWHERE) & (number >= 0)
        where = at[known]
        flat[where] = (flat[where] & ~np.int8(15)) | (Label.TRACKED + number[known] % each).astype(
            np.int8
        )


def find_references(
    blocks: BlockMap, copies: list[tuple[HeapCopy, int]], code: Kernels | None
) -> npt.NDArray[np.int64]:
    """Go through the copies twice: for the blocks that objects keep, and for references.

    Args:
        blocks: The state of the blocks; those that objects keep are added.
        copies: Of each heap, with the row of its first pool in the map.
        code: Compiled loops, to use instead of numpy.

    Returns:
        (pools, 5) the number of each of `FOUND`; new.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it any more.
    """
    found = np.zeros((len(blocks.address), len(FOUND)), dtype=np.int64)
    for copy, first in copies:
        for rows, part in copy.parts():
            if code is None:
                _enter_kept(blocks, part.words.view(np.int64), rows + first)
            else:
                code.enter_kept(*_arguments(blocks), part.words.view(np.int64), rows + first)
    for copy, first in copies:
        for rows, part in copy.parts():
            if code is None:
                _count(blocks, part.words.view(np.int64), rows + first, found)
            else:
                code.count_references(
                    *_arguments(blocks), part.words.view(np.int64), rows + first, found
                )
    return found


def find_leads(
    blocks: BlockMap, copies: list[tuple[HeapCopy, int]], outward: Outward, code: Kernels | None
) -> I64:
    """Find the targets outside of pools of the words of objects, and of their memory in pools.

    Args:
        blocks: The state of the blocks, including those that objects keep: after `find_references`.
        copies: Of each heap, with the row of its first pool in the map.
        outward: Which words are requested.
        code: Compiled loops, to use instead of numpy.

    Returns:
        (n,) addresses in order, each once; new.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it any more.
    """
    found: list[I64] = [np.zeros(0, dtype=np.int64)]
    room = np.zeros(_LEADS if code is not None else 0, dtype=np.int64)
    recent, index = np.zeros(RECENT, dtype=np.int64), outward.index
    form = np.array([index.lowest, index.shift], dtype=np.int64)
    for copy, first in copies:
        for rows, part in copy.parts():
            words = part.words.view(np.int64)
            if code is None:
                found.append(outward.choose(_words_of(blocks, words, rows + first, kept=True)[0]))
                continue
            begin = 0
            while begin < len(rows):
                fill = np.zeros(1, dtype=np.int64)
                begin = code.lead_out(
                    blocks.entry,
                    blocks.size,
                    blocks.header,
                    words,
                    rows + first,
                    begin,
                    index.inside,
                    form,
                    outward.starts,
                    outward.ends,
                    recent,
                    room,
                    fill,
                )
                found.append(outward.choose(room[: fill[0]]))
    return outward.choose(np.concatenate(found))


def _arguments(blocks: BlockMap) -> tuple[I8, I64, I64, int, I32, int]:
    return blocks.entry, blocks.address, blocks.size, blocks.lowest, blocks.row, blocks.header


def _words_of(
    blocks: BlockMap, words: I64, rows: npt.NDArray[np.intp], *, kept: bool
) -> tuple[I64, I64, I64]:
    """Return all words that may be references: the words, and pool and label of the block that each is in."""
    entry, cells = blocks.entry, blocks.entry.shape[1]
    found = []
    for size in np.unique(blocks.size[rows]).tolist():
        if not size:
            continue
        local = np.flatnonzero(blocks.size[rows] == size)
        begins = np.arange((cells * 16 - blocks.header) // size) * size + blocks.header
        labels = entry[rows[local]][:, begins >> 4].astype(np.int64)
        kind = labels & 15
        wanted = (kind >= Label.UNTRACKED) & ((kind <= Label.TRACKED_SOMEWHERE) | kept)
        pool, block = np.nonzero(wanted)
        label = labels[pool, block]
        word = np.arange(size >> 3)
        values = words[local[pool][:, None], (begins[block] >> 3)[:, None] + word]
        # An object's collector header, reference count and type are left out; other blocks are read
        # completely.
        head = ((label >> 4) * 2)[:, None]
        body = (label & 15 >= Label.KEPT)[:, None] | (word < head - 2) | (word >= head + 2)
        width = np.broadcast_to(label[:, None] & 15, values.shape)[body]
        found.append(
            (values[body], np.broadcast_to(rows[local[pool]][:, None], values.shape)[body], width)
        )
    none = np.zeros(0, dtype=np.int64)
    if not found:
        return none, none, none
    values, pools, kinds = (np.concatenate(column) for column in zip(*found, strict=True))
    return values, pools, kinds


def _enter_kept(blocks: BlockMap, words: I64, rows: npt.NDArray[np.intp]) -> None:
    values, _, kinds = _words_of(blocks, words, rows, kept=False)
    which, at, _ = blocks.find(values)
    flat = blocks.entry.reshape(-1)
    target = flat[at] & 15
    free = (target == Label.NO_OBJECT) | (target >= Label.KEPT)
    kind = kinds[which[free]]
    has_generation = (kind >= Label.TRACKED) & (kind < Label.TRACKED_SOMEWHERE)
    kept = np.where(has_generation, Label.KEPT + 1 + kind - Label.TRACKED, Label.KEPT)
    np.maximum.at(flat, at[free], kept.astype(np.int8))


def _count(blocks: BlockMap, words: I64, rows: npt.NDArray[np.intp], found: I64) -> None:
    values, pools, kinds = _words_of(blocks, words, rows, kept=True)
    which, at, place = blocks.find(values)
    entry = blocks.entry.reshape(-1)[at].astype(np.int64)
    label = entry & 15
    hit = (label >= Label.PLAIN) & (label <= Label.TRACKED_SOMEWHERE) & (place == (entry >> 4) * 16)
    source, target = pools[which[hit]], at[hit] // blocks.entry.shape[1]
    within = source == target
    count = len(found)
    found[:, 0] += np.bincount(source[within], minlength=count)
    found[:, 1] += np.bincount(source[~within], minlength=count)
    found[:, 2] += np.bincount(target[~within], minlength=count)
    mine, theirs = _generation(kinds[which[hit]]), _generation(label[hit])
    known = (mine >= 0) & (theirs >= 0)
    found[:, 3] += np.bincount(source[known & (mine > theirs)], minlength=count)
    found[:, 4] += np.bincount(source[known & (mine < theirs)], minlength=count)


def _generation(kind: I64) -> I64:
    """Return the generation of labels; -1 if they have none."""
    tracked = np.where(
        (kind >= Label.TRACKED) & (kind < Label.TRACKED_SOMEWHERE), kind - Label.TRACKED, -1
    )
    return np.where(kind > Label.KEPT, kind - Label.KEPT - 1, tracked)
