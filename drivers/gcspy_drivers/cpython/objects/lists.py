"""In which generation each tracked object is: the collector's lists, put together from a copy.

A list is a ring of heads, millions long. It is not walked: each node has the number of the one behind it, and in each round every
node looks as far again as it has looked so far, so that 5,000,000 are resolved in 23 rounds, and what is damaged into a ring without an
end cannot hold anything up. Nodes outside of the pools (large objects) are read one by one, but those next to the ones that are known already
all at once. Where the way forwards is broken, because the target went on while it was copied, the way backwards may not be; where both
are, the generation is unknown.

Knows heads, and not how they were found. Source: CPython 3.9 to 3.15 pycore_gc.h (PyGC_Head, gc_list), the lists' ends in
struct _gc_runtime_state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.objects.scan import Nodes
from gcspy_drivers.cpython.objects.types import TypeTable, distinct
from gcspy_drivers.remote.maps import LiveMaps
from gcspy_drivers.remote.memory import Memory

__all__ = ["UNKNOWN", "Lists", "ListReader"]

UNKNOWN: Final = -1
"""The list of a node whose ways are both broken."""

_HEAD_BYTES = 32  # a head, and of the object its reference count and type
_MOST_ROUNDS = 20_000  # a chain of so many nodes outside of the pools, each known only from the one before
_MOST_OUTSIDE = 4_000_000
_FLAGS = np.uint64(3)

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lists:
    """The nodes of a reading, and the list that each is on.

    Attributes:
        nodes: Those in pools, and those outside that the lists lead to, in order of address.
        of_node: (n,) number of its list, as they were given; `UNKNOWN` where its ways are broken.
        complete: Whether each list was seen whole: no way was broken.
    """

    nodes: Nodes
    of_node: npt.NDArray[np.int8]
    complete: bool

    def count(self, lists: int) -> I64:
        """Return how many nodes are on each list, (lists,)."""
        return np.bincount(self.of_node[self.of_node >= 0], minlength=lists).astype(np.int64)


class ListReader:
    """Puts the collector's lists of one process together.

    Args:
        memory: Its memory.
        maps: Its maps.
        types: Its types.
    """

    def __init__(self, memory: Memory, maps: LiveMaps, types: TypeTable) -> None:
        self._memory = memory
        self._maps = maps
        self._types = types

    def read(self, nodes: Nodes, ends: Mapping[int, int]) -> Lists:
        """Find the list of each node.

        Args:
            nodes: Those that were found in pools.
            ends: Number of the list by the address of its own head; at most 127 lists.

        Raises:
            TargetGone: The target has ended.
        """
        outside, whole = self._outside(nodes, ends)
        everything = Nodes.together([nodes, outside]) if len(outside) else nodes
        of_node = _resolve(everything, ends)
        broken = of_node == UNKNOWN
        if broken.any() and len(everything):
            everything = self._read_again(everything, broken)
            of_node = _resolve(everything, ends)
        return Lists(everything, of_node, whole and not bool((of_node == UNKNOWN).any()))

    def _outside(self, nodes: Nodes, ends: Mapping[int, int]) -> tuple[Nodes, bool]:
        """Read the nodes that lists lead to and that are in no pool; and whether the ways to them came to an end."""
        heads = np.array(sorted(ends), dtype=np.uint64)
        data, ok = self._memory.read_many(heads, 16)
        own = data.view("<u8")[ok] & ~_FLAGS
        ways = np.concatenate((nodes.following, nodes.before, own.reshape(-1)))
        frontier = distinct(ways[~_among(ways, nodes.address) & ~_among(ways, heads)])
        parts: list[Nodes] = []
        seen: U64 = np.zeros(0, dtype=np.uint64)
        maps = self._maps.maps
        for _ in range(_MOST_ROUNDS):
            frontier = frontier[
                (frontier % np.uint64(8) == 0) & maps.covers(frontier, _HEAD_BYTES) & ~_among(frontier, seen)
            ]
            if not len(frontier):
                return Nodes.together(parts), True
            if len(seen) + len(frontier) > _MOST_OUTSIDE:
                break
            seen = np.union1d(seen, frontier)
            found = self._read_nodes(frontier)
            parts.append(found)
            frontier = distinct(np.concatenate((found.following, found.before)))
            frontier = frontier[~_among(frontier, nodes.address) & ~_among(frontier, heads)]
        return Nodes.together(parts), False

    def _read_nodes(self, where: U64) -> Nodes:
        data, ok = self._memory.read_many(where, _HEAD_BYTES)
        words: U64 = data.view("<u8")[ok]
        self._types.learn(words[:, 3].copy())
        kind = self._types.find(words[:, 3])
        # What the ways lead to and has no type is no object; and nothing there says where the list goes on.
        good = kind >= 0
        words, kind = words[good], kind[good]
        return Nodes(
            address=where[ok][good],
            following=words[:, 0] & ~_FLAGS,
            before=words[:, 1] & ~_FLAGS,
            pool=np.full(len(words), -1, dtype=np.int32),
            type=kind,
            block_bytes=np.zeros(len(words), dtype=np.uint16),
        )

    def _read_again(self, nodes: Nodes, which: npt.NDArray[np.bool_]) -> Nodes:
        """Read heads again whose ways were broken: most were copied while an object beside them was made or dropped."""
        rows = np.flatnonzero(which)
        following, before = nodes.following.copy(), nodes.before.copy()
        for begin in range(0, len(rows), 1 << 20):
            part = rows[begin : begin + (1 << 20)]
            data, ok = self._memory.read_many(nodes.address[part], 16)
            words = data.view("<u8")
            following[part[ok]] = words[ok, 0] & ~_FLAGS
            before[part[ok]] = words[ok, 1] & ~_FLAGS
        return Nodes(nodes.address, following, before, nodes.pool, nodes.type, nodes.block_bytes)


def _among(words: U64, address: U64) -> npt.NDArray[np.bool_]:
    """Tell which words are among addresses in order."""
    if not len(address):
        return np.zeros(len(words), dtype=np.bool_)
    row = np.minimum(np.searchsorted(address, words), len(address) - 1)
    return np.asarray(address[row] == words)


def _resolve(nodes: Nodes, ends: Mapping[int, int]) -> npt.NDArray[np.int8]:
    """Return the list of each node: where its way forwards ends, or else where its way backwards does."""
    forwards = _ends_of(nodes.address, nodes.following, ends)
    broken = np.flatnonzero(forwards == UNKNOWN)
    if len(broken):
        backwards = _ends_of(nodes.address, nodes.before, ends)
        forwards[broken] = backwards[broken]
    return forwards


def _ends_of(address: U64, following: U64, ends: Mapping[int, int]) -> npt.NDArray[np.int8]:
    """Return the number of the list's end that each node's way leads to; `UNKNOWN` where it leads nowhere, or to no end."""
    count = len(address)
    heads = np.array(sorted(ends), dtype=np.uint64)
    # Numbers from `count` on are ends of the way: the lists' own heads, and the last one is nowhere.
    nowhere = count + len(heads)
    to = np.full(nowhere + 1, nowhere, dtype=np.int32)
    to[count:] = np.arange(count, nowhere + 1)
    if count:
        row = np.minimum(np.searchsorted(address, following), count - 1)
        hit = address[row] == following
        to[:count][hit] = row[hit]
        at_end = np.minimum(np.searchsorted(heads, following), len(heads) - 1)
        hit = heads[at_end] == following
        to[:count][hit] = count + at_end[hit]
    going = np.flatnonzero(to[:count] < count)
    for _ in range(count.bit_length() + 1):
        if not len(going):
            break
        # All at once, from what was known before the round: so that each way becomes twice as long.
        to[going] = to[to[going]]
        going = going[to[going] < count]
    to[going] = nowhere  # a ring without an end
    numbers = np.array([*(ends[int(head)] for head in heads), UNKNOWN], dtype=np.int8)
    return numbers[to[:count] - count]
