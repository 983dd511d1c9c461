"""Finds where the paths from node to node end: at which list's own head, or nowhere.

Two equivalent implementations. With numpy alone no list is walked: each node has the number of the
next one, and each round doubles the distance, so that 5,000,000 are resolved in 23 rounds, and a
damaged ring without an end cannot block it. With compiled loops (`machine_code`) each path is
walked once, and whether an address is a node's is one look-up in a bit table instead of a search.

Knows addresses, and not whose they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.objects import kernels
from gcspy_drivers.cpython.objects.machine_code import Kernels
from gcspy_drivers.cpython.objects.scan import Nodes
from gcspy_drivers.cpython.objects.types import distinct

__all__ = ["UNKNOWN", "LoopWays", "NumpyWays", "among", "ends_of"]

UNKNOWN: Final = -1
"""The list of a node whose ways are both broken."""

_MOST_PAGES: Final = 1 << 27
"""From the lowest node to the highest: 512 GiB, for which the table of pages takes as much of our address space as 512 MiB, and less memory."""

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]


class NumpyWays:
    """Ways between some nodes, by searching.

    Args:
        address: (n,) of the nodes in pools, in order.
    """

    def __init__(self, address: U64) -> None:
        self.address = address

    def strangers(self, ways: tuple[U64, ...], heads: U64) -> U64:
        """Return the addresses among some that are neither a node's nor one of `heads`, in order, each once."""
        together = np.concatenate(ways)
        return distinct(together[~among(together, self.address) & ~among(together, heads)])

    def resolve(self, inside: Nodes, outside: Nodes, ends: Mapping[int, int]) -> I8:
        """Return the list of each node: the end of its path forwards, or else of its path backwards.

        Args:
            inside: Those in pools.
            outside: The others, in order of address; they come after these.
            ends: Number of the list by the address of its own head.
        """
        forwards = self._ends((inside.following, outside.following), outside.address, ends)
        broken = np.flatnonzero(forwards == UNKNOWN)
        if len(broken):
            backwards = self._ends((inside.before, outside.before), outside.address, ends)
            forwards[broken] = backwards[broken]
        return forwards

    def _ends(self, ways: tuple[U64, U64], outside: U64, ends: Mapping[int, int]) -> I8:
        return ends_of(np.concatenate((self.address, outside)), np.concatenate(ways), ends)


class LoopWays(NumpyWays):
    """Ways between some nodes, with compiled loops; made by `of`.

    Args:
        code: The loops.
        address: (n,) of the nodes in pools, in order.
        index: As `kernels.index_nodes` made it: lowest page, pages, bits, ranks.
    """

    def __init__(self, code: Kernels, address: U64, index: tuple[int, I32, I64, I32]) -> None:
        super().__init__(address)
        self._code = code
        self._index = index

    @classmethod
    def of(cls, code: Kernels, address: U64) -> LoopWays | None:
        """Index some nodes; None when they are too far apart."""
        span = (
            int(address[-1] >> np.uint64(12)) - int(address[0] >> np.uint64(12)) + 1
            if len(address)
            else 0
        )
        if span > _MOST_PAGES or int(address[-1:].sum()) >= 1 << 63:
            return None
        lowest = int(address[0]) >> 12 if len(address) else 0
        signed = address.view(np.int64)
        bits, ranks = _tables(0)
        found = code.index_nodes(signed, lowest, np.zeros(span, dtype=np.int32), bits, ranks)
        bits, ranks = _tables(found)
        pages = np.zeros(span, dtype=np.int32)
        code.index_nodes(signed, lowest, pages, bits, ranks)
        return cls(code, address, (lowest, pages, bits, ranks))

    def strangers(self, ways: tuple[U64, ...], heads: U64) -> U64:
        """Return the addresses among some that are neither a node's nor one of `heads`, in order, each once."""
        found = []
        for part in ways:
            room = np.empty(len(part), dtype=np.int64)
            count = self._code.strangers(
                np.ascontiguousarray(part).view(np.int64), *self._index, heads.view(np.int64), room
            )
            found.append(distinct(room[:count].view(np.uint64)))
        return distinct(np.concatenate(found))

    def _ends(self, ways: tuple[U64, U64], outside: U64, ends: Mapping[int, int]) -> I8:
        heads = np.array(sorted(ends), dtype=np.uint64)
        inside = len(self.address)
        to = np.empty(inside + len(outside), dtype=np.int32)
        for part, room in zip(ways, (to[:inside], to[inside:]), strict=True):
            self._code.rows_of(
                part.view(np.int64),
                inside,
                *self._index,
                outside.view(np.int64),
                heads.view(np.int64),
                room,
            )
        numbers = np.array([ends[int(head)] for head in heads], dtype=np.int8)
        mark, result = np.zeros(len(to), dtype=np.int32), np.empty(len(to) + 1, dtype=np.int8)
        of_node = np.empty(len(to), dtype=np.int8)
        self._code.walk(to, numbers, mark, result, of_node)
        return of_node


def _tables(pages: int) -> tuple[I64, I32]:
    shape = (pages, kernels.WORDS_PER_PAGE)
    return np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int32)


def among(words: U64, address: U64) -> npt.NDArray[np.bool_]:
    """Determine which words are among sorted addresses."""
    if not len(address):
        return np.zeros(len(words), dtype=np.bool_)
    row = np.minimum(np.searchsorted(address, words), len(address) - 1)
    return np.asarray(address[row] == words)


def ends_of(address: U64, following: U64, ends: Mapping[int, int]) -> I8:
    """Return the number of the list's end that each node's way leads to; `UNKNOWN` where it leads nowhere, or to no end.

    Args:
        address: (n,) of the nodes, each once.
        following: (n,) where each leads.
        ends: Number of the list by the address of its own head; at most 127 lists.
    """
    count = len(address)
    heads = np.array(sorted(ends), dtype=np.uint64)
    # Numbers from `count` on are ends of the way: the lists' own heads, and the last one is nowhere.
    nowhere = count + len(heads)
    to = np.full(nowhere + 1, nowhere, dtype=np.int32)
    to[count:] = np.arange(count, nowhere + 1)
    if count:
        order = np.argsort(address, kind="stable")
        place = np.minimum(np.searchsorted(address, following, sorter=order), count - 1)
        row = order[place]
        hit = address[row] == following
        to[:count][hit] = row[hit]
        at_end = np.minimum(np.searchsorted(heads, following), len(heads) - 1)
        hit = heads[at_end] == following
        to[:count][hit] = count + at_end[hit]
    going = np.flatnonzero(to[:count] < count)
    for _ in range(count.bit_length() + 1):
        if not len(going):
            break
        # All at once, from the state before the round: so that each path becomes twice as long.
        to[going] = to[to[going]]
        going = going[to[going] < count]
    to[going] = nowhere  # a ring without an end
    numbers = np.array([*(ends[int(head)] for head in heads), UNKNOWN], dtype=np.int8)
    return numbers[to[:count] - count]
