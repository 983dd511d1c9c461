"""The generation of each tracked object: the collector's lists, assembled from a copy.

A list is a ring of heads, millions long; `ways` finds the end of each node's path. Nodes outside of
the pools (large objects) are read one by one, but the neighbours of known ones all at once. If the
path forwards is broken, because the target continued during the copy, the path backwards may not
be; if both are, the generation is unknown.

Knows heads, and not how they were found. Source: CPython 3.9 to 3.15 pycore_gc.h (PyGC_Head, gc_list), the lists' ends in
struct _gc_runtime_state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.objects.machine_code import Kernels
from gcspy_drivers.cpython.objects.scan import Nodes
from gcspy_drivers.cpython.objects.types import TypeTable, distinct
from gcspy_drivers.cpython.objects.ways import UNKNOWN, LoopWays, NumpyWays, among
from gcspy_drivers.remote.maps import LiveMaps
from gcspy_drivers.remote.memory import Memory

__all__ = ["UNKNOWN", "Heads", "ListReader", "Lists"]

HEAD_BYTES: Final = 32
"""A head, and of the object its reference count and type."""

_MOST_ROUNDS = (
    20_000  # a chain of this many nodes outside of the pools, each known only from the previous one
)
_MOST_OUTSIDE = 4_000_000
_AT_ONCE = 1 << 20
"""Most heads that are read again in one call: 16 MB."""

_FLAGS = np.uint64(3)

U64 = npt.NDArray[np.uint64]
I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lists:
    """The nodes of a reading, and the list that each is on.

    Attributes:
        inside: Those in pools, in order of address.
        outside: Those outside that the lists lead to, in order of address.
        of_node: (n,) number of the list of each, first of those inside; `UNKNOWN` where its ways are broken.
        complete: Whether each list was seen whole: no way was broken.
        code: Loops to count with instead of numpy, where they are there.
    """

    inside: Nodes
    outside: Nodes
    of_node: I8
    complete: bool
    code: Kernels | None = None

    @cached_property
    def nodes(self) -> Nodes:
        """All of them, those outside behind the others; copied at the first time."""
        return self.inside.then(self.outside)

    def count(self, lists: int) -> I64:
        """Return how many nodes are on each list, (lists,)."""
        return np.bincount(self.of_node[self.of_node >= 0], minlength=lists).astype(np.int64)

    def sums(self, *, pools: int, lists: int, each: int) -> tuple[I32, I64]:
        """Count the nodes.

        Args:
            pools: How many pools there are in all.
            lists: How many lists there are.
            each: How many of them an interpreter has.

        Returns:
            (pools, each + 1) nodes in each pool by generation, the last column those whose list is not known; and (lists + 1, 3) nodes,
            bytes of their blocks, and nodes outside of pools by list, the last row those whose list is not known. Both new.
        """
        by_pool = np.zeros((pools, each + 1), dtype=np.int32)
        by_list = np.zeros((lists + 1, 3), dtype=np.int64)
        number = len(self.inside)
        for nodes, of_node in (
            (self.inside, self.of_node[:number]),
            (self.outside, self.of_node[number:]),
        ):
            if self.code is None:
                _count_nodes(of_node, nodes, each, by_pool, by_list)
            else:
                self.code.count_nodes(
                    of_node, nodes.pool, nodes.block_bytes, each, by_pool, by_list
                )
        return by_pool, by_list


class Heads:
    """Heads of nodes, read on demand or at an earlier moment.

    Args:
        memory: The target's memory.
        early: (n,) addresses to read now, since they will be requested.

    Raises:
        TargetGone: The target has ended.
    """

    def __init__(self, memory: Memory, early: U64) -> None:
        self._memory = memory
        self._address = distinct(early)
        self._data, self._ok = memory.read_many(self._address, HEAD_BYTES)

    def read(self, where: U64) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """Return (n, `HEAD_BYTES`) content of some addresses, and (n,) whether it could be read. Both new."""
        early = np.flatnonzero(
            among(where, self._address) if len(self._address) else np.zeros(len(where), np.bool_)
        )
        if not len(early):
            return self._memory.read_many(where, HEAD_BYTES)
        data = np.zeros((len(where), HEAD_BYTES), dtype=np.uint8)
        ok = np.zeros(len(where), dtype=np.bool_)
        row = np.searchsorted(self._address, where[early])
        data[early], ok[early] = self._data[row], self._ok[row]
        late = np.ones(len(where), dtype=np.bool_)
        late[early] = False
        if late.any():
            data[late], ok[late] = self._memory.read_many(where[late], HEAD_BYTES)
        return data, ok


class ListReader:
    """Puts the collector's lists of one process together.

    Args:
        memory: Its memory.
        maps: Its maps.
        types: Its types.
        code: Loops to use instead of numpy, where they are there.
        heads: Heads that were read at the moment of the nodes; without it all are read now.
    """

    def __init__(
        self,
        memory: Memory,
        maps: LiveMaps,
        types: TypeTable,
        code: Kernels | None = None,
        heads: Heads | None = None,
    ) -> None:
        self._memory = memory
        self._maps = maps
        self._types = types
        self._code = code
        self._heads = Heads(memory, np.zeros(0, dtype=np.uint64)) if heads is None else heads

    def read(self, nodes: Nodes, ends: Mapping[int, int]) -> Lists:
        """Find the list of each node.

        Args:
            nodes: Those found in pools.
            ends: Number of the list by the address of its own head; at most 127 lists.

        Raises:
            TargetGone: The target has ended.
        """
        ways = self._ways(nodes)
        outside, whole = self._outside(nodes, ends, ways)
        of_node = ways.resolve(nodes, outside, ends)
        broken = of_node == UNKNOWN
        if broken.any():
            nodes = self._read_again(nodes, broken[: len(nodes)])
            outside = self._read_again(outside, broken[len(nodes) :])
            of_node = ways.resolve(nodes, outside, ends)
            broken = of_node == UNKNOWN
        return Lists(nodes, outside, of_node, whole and not bool(broken.any()), self._code)

    def _ways(self, nodes: Nodes) -> NumpyWays:
        found = None if self._code is None else LoopWays.of(self._code, nodes.address)
        return NumpyWays(nodes.address) if found is None else found

    def _outside(
        self, nodes: Nodes, ends: Mapping[int, int], ways: NumpyWays
    ) -> tuple[Nodes, bool]:
        """Read the nodes that lists lead to and that are in no pool; and whether the ways to them came to an end."""
        heads = np.array(sorted(ends), dtype=np.uint64)
        data, ok = self._heads.read(heads)
        own = data.view("<u8")[ok, :2] & ~_FLAGS
        frontier = ways.strangers((nodes.following, nodes.before, own.reshape(-1)), heads)
        parts: list[Nodes] = []
        seen: U64 = np.zeros(0, dtype=np.uint64)
        maps = self._maps.maps
        for _ in range(_MOST_ROUNDS):
            frontier = frontier[
                (frontier % np.uint64(8) == 0)
                & maps.covers(frontier, HEAD_BYTES)
                & ~among(frontier, seen)
            ]
            if not len(frontier):
                return Nodes.together(parts), True
            if len(seen) + len(frontier) > _MOST_OUTSIDE:
                break
            # Both in order and apart, so merging two runs does it: `numpy.union1d` took 11 of the 15 seconds of a long chain.
            seen = np.sort(np.concatenate((seen, frontier)), kind="stable")
            found = self._read_nodes(frontier)
            parts.append(found)
            frontier = distinct(np.concatenate((found.following, found.before)))
            frontier = frontier[~among(frontier, nodes.address) & ~among(frontier, heads)]
        return Nodes.together(parts), False

    def _read_nodes(self, where: U64) -> Nodes:
        data, ok = self._heads.read(where)
        words: U64 = data.view("<u8")[ok]
        self._types.learn(words[:, 3].copy())
        kind = self._types.find(words[:, 3])
        # A target without a type is not an object, and has no further links.
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
        for begin in range(0, len(rows), _AT_ONCE):
            part = rows[begin : begin + _AT_ONCE]
            data, ok = self._memory.read_many(nodes.address[part], 16)
            words = data.view("<u8")
            following[part[ok]] = words[ok, 0] & ~_FLAGS
            before[part[ok]] = words[ok, 1] & ~_FLAGS
        return Nodes(nodes.address, following, before, nodes.pool, nodes.type, nodes.block_bytes)


def _count_nodes(of_node: I8, nodes: Nodes, each: int, by_pool: I32, by_list: I64) -> None:
    """Do what `kernels.count_nodes` does."""
    row = np.where(of_node == UNKNOWN, len(by_list) - 1, of_node).astype(np.int64)
    inside = nodes.pool >= 0
    by_list[:, 0] += np.bincount(row, minlength=len(by_list))
    # Sums of less than 2^53 bytes are exact as floats.
    size = np.bincount(row, weights=nodes.block_bytes, minlength=len(by_list))
    by_list[:, 1] += size.astype(np.int64)
    by_list[:, 2] += np.bincount(row[~inside], minlength=len(by_list))
    column = np.where(of_node == UNKNOWN, each, of_node % each)[inside]
    key = nodes.pool[inside].astype(np.int64) * (each + 1) + column
    by_pool += np.bincount(key, minlength=by_pool.size).reshape(by_pool.shape).astype(np.int32)
