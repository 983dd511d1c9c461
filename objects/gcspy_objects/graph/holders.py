"""`Holders`: who holds some objects, in groups: the few objects without which most of them would be garbage.

A group's holder is found from the topmost informative dominator, going down as long as one object
below it dominates most of the group. Objects that several hold independently have none; they are
grouped by these holders.

Knows graphs and dominators; knows no names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.graph.dominators import DominatorTree
from gcspy_objects.graph.references import NO_NODE, ReferenceGraph

__all__ = ["COMES_TOGETHER", "HolderGroup", "holders"]

COMES_TOGETHER: Final = 0.8
"""The share of a group that one object must dominate so that the group's holder is searched for below it."""

_MOST_NAMED: Final = 4
"""Most independent holders that are listed."""


@dataclass(frozen=True)
class HolderGroup:
    """Some of the selected objects, and who holds them.

    Attributes:
        holders: Objects that hold them: one that dominates them all, or several, any of which is enough to keep them; at most four of
            those are listed.
        independent: How many hold them independently of each other; 1: the one holder dominates them. A root that holds an object itself
            is one of them, and the object stands for it.
        objects: How many of the objects asked about.
        own_bytes: Their own size.
        example: One of the objects.
    """

    holders: tuple[int, ...]
    independent: int
    objects: int
    own_bytes: int
    example: int


def holders(
    graph: ReferenceGraph,
    tree: DominatorTree,
    chosen: NDArray[np.int32],
    own: NDArray[np.int64],
    transparent: NDArray[np.bool_],
    *,
    most: int = 12,
) -> list[HolderGroup]:
    """Group objects by who holds them.

    Args:
        graph: Who refers to whom.
        tree: Its dominators.
        chosen: (k,) objects asked about, each once.
        own: (n,) bytes of each object.
        transparent: (n,) objects that are never named as holders, such as a table of modules.
        most: Maximum number of groups.

    Returns:
        Those with the most bytes first. Objects that no root reaches are in none.
    """
    top = tree.tops(transparent)
    chosen = chosen[top[chosen] != NO_NODE]
    alone = top[chosen] == chosen
    groups = _dominated(tree, chosen[~alone], top, own)
    groups += _independent(graph, chosen[alone], top, own, transparent)
    groups.sort(key=lambda group: (-group.own_bytes, -group.objects, group.example))
    return groups[:most]


def _dominated(
    tree: DominatorTree,
    chosen: NDArray[np.int32],
    top: NDArray[np.int32],
    own: NDArray[np.int64],
) -> list[HolderGroup]:
    """Group objects by a dominator each of them has."""
    if not len(chosen):
        return []
    asked = np.zeros(len(top), dtype=np.int64)
    asked[chosen] = 1
    below = tree.retained(asked)  # how many of them each object dominates
    heads, group = np.unique(top[chosen], return_inverse=True)
    counts = np.bincount(group)
    sizes = np.bincount(group, weights=own[chosen]).astype(np.int64)
    # The child that dominates most of its parent's share: ascending, so that the last one written is the largest.
    inner = tree.order[(tree.dominator[tree.order] != NO_NODE) & (below[tree.order] > 0)]
    inner = inner[np.argsort(below[inner], kind="stable")]
    heaviest = np.full(len(top), NO_NODE, dtype=np.int32)
    heaviest[tree.dominator[inner]] = inner
    first = np.full(len(heads), -1, dtype=np.int64)
    first[group[::-1]] = chosen[::-1]
    return [
        HolderGroup((_where_they_meet(head, heaviest, below, asked),), 1, count, size, int(example))
        for head, count, size, example in zip(
            heads.tolist(), counts.tolist(), sizes.tolist(), first, strict=True
        )
    ]


def _where_they_meet(
    head: int,
    heaviest: NDArray[np.int32],
    below: NDArray[np.int64],
    asked: NDArray[np.int64],
) -> int:
    """Return the lowest object under a group's head that still dominates most of the group."""
    here, whole = head, int(below[head])
    while (child := int(heaviest[here])) != NO_NODE:
        # One of the objects asked about is held, and does not hold itself.
        if below[child] < COMES_TOGETHER * whole or (asked[child] and below[child] == 1):
            break
        here = child
    return here


def _independent(
    graph: ReferenceGraph,
    chosen: NDArray[np.int32],
    top: NDArray[np.int32],
    own: NDArray[np.int64],
    transparent: NDArray[np.bool_],
) -> list[HolderGroup]:
    """Group objects without a common dominator by the set of their holders."""
    if not len(chosen):
        return []
    asked = np.zeros(len(top), dtype=np.bool_)
    asked[chosen] = True
    by, held = graph.referrers_of(asked)
    known = top[by] != NO_NODE
    # A transparent referrer represents itself: there is nothing else to name.
    holder = np.where(transparent[by], by, top[by])[known]
    held = held[known]
    pairs = np.unique(np.stack((held, holder)), axis=1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    # An object held by a root has the root as a further holder; the object's own number stands for that root.
    itself = graph.roots[asked[graph.roots]]
    pairs = np.unique(np.concatenate((pairs, np.stack((itself, itself))), axis=1), axis=1)
    begins = np.searchsorted(pairs[0], chosen)
    lengths = np.searchsorted(pairs[0], chosen, side="right") - begins
    mark = _mixed(pairs[1])
    sums = np.append(np.uint64(0), np.cumsum(mark, dtype=np.uint64))
    # Sums of mixed numbers, modulo 2^64: two sets share one with a chance of 1 in 10^19.
    signature = np.stack((sums[begins + lengths] - sums[begins], lengths.astype(np.uint64)))
    _, first, group = np.unique(signature, axis=1, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    counts = np.bincount(group)
    sizes = np.bincount(group, weights=own[chosen]).astype(np.int64)
    found = []
    for at, count, size in zip(first.tolist(), counts.tolist(), sizes.tolist(), strict=True):
        begin, length = int(begins[at]), int(lengths[at])
        names = pairs[1][begin : begin + min(length, _MOST_NAMED)].tolist()
        example = int(chosen[at])
        found.append(HolderGroup(tuple(names) or (example,), max(1, length), count, size, example))
    return found


def _mixed(numbers: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return numbers whose sums distinguish sets (the finaliser of splitmix64)."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
