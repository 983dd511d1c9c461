"""Loops over a graph as machine code (`gcspy_compiled.machine_code`): numpy cannot follow references in bulk.

``compiled/graph.c`` has them in C. Without that library numba compiles them. Without machine code
the module that calls a loop does the same with numpy. A test compares the three with each other and
with networkx.

Source: L. Georgiadis, R. Tarjan, R. Werneck, "Finding Dominators in Practice" (2006), algorithm SNCA.

Knows arrays; allocates nothing of the size of the graph beyond its arguments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_compiled.c_loops import CLibrary
from gcspy_compiled.machine_code import Loop, compile_all

__all__ = [
    "ADD_UP",
    "DOMINATE",
    "LIBRARY",
    "LOOPS",
    "NUMBER",
    "PREDECESSORS",
    "TOPS",
    "WIDTH",
    "compile_kernels",
]

LIBRARY: Final = CLibrary("gcspy-graph", Path(__file__).parent / "compiled")

_I64, _I32 = "int64[::1]", "int32[::1]"


def _number(
    starts: NDArray[np.int64],
    targets: NDArray[np.int32],
    roots: NDArray[np.int32],
    number: NDArray[np.int32],
    node: NDArray[np.int32],
    parent: NDArray[np.int32],
    way: NDArray[np.int32],
    turn: NDArray[np.int64],
) -> int:
    """Number the objects in the order in which a depth-first search from the roots meets them; 0 is the root of all roots.

    Args:
        starts: (n + 1,) of the graph.
        targets: (m,) of the graph.
        roots: (r,) of the graph.
        number: (n,) each object's number; unreached ones stay 0.
        node: (n + 1,) each number's object; set.
        parent: (n + 1,) each number's predecessor in the search, as a number; set.
        way: (n + 1,) room for the objects between a root and where the search is.
        turn: (n + 1,) room for the next reference of each of them.

    Returns:
        How many numbers there are, 0 included.
    """
    count = 1
    node[0] = -1
    parent[0] = 0
    for root in roots:
        if number[root] != 0:
            continue
        number[root] = count
        node[count] = root
        parent[count] = 0
        count += 1
        depth = 0
        way[0] = root
        turn[0] = starts[root]
        while depth >= 0:
            here = way[depth]
            at = turn[depth]
            if at == starts[here + 1]:
                depth -= 1
                continue
            turn[depth] = at + 1
            there = targets[at]
            if number[there] == 0:
                number[there] = count
                node[count] = there
                parent[count] = number[here]
                count += 1
                depth += 1
                way[depth] = there
                turn[depth] = starts[there]
    return count


NUMBER = Loop(
    _number, f"int64({_I64}, {_I32}, {_I32}, {_I32}, {_I32}, {_I32}, {_I32}, {_I64})", LIBRARY
)


def _predecessors(
    starts: NDArray[np.int64],
    targets: NDArray[np.int32],
    roots: NDArray[np.int32],
    number: NDArray[np.int32],
    node: NDArray[np.int32],
    count: int,
    begins: NDArray[np.int64],
    sources: NDArray[np.int32],
) -> None:
    """Turn the references round, in numbers: who refers to each.

    Args:
        starts: (n + 1,) of the graph.
        targets: (m,) of the graph.
        roots: (r,) of the graph.
        number: (n,) of each object.
        node: (n + 1,) of each number.
        count: How many numbers there are.
        begins: (count + 2,) zeros; becomes where in `sources` each number's begin, the entry behind the last included.
        sources: (m + r,) set.
    """
    # Counted two places further on, so that filling moves each begin to where it belongs.
    for root in roots:
        begins[number[root] + 2] += 1
    for u in range(1, count):
        for edge in range(starts[node[u]], starts[node[u] + 1]):
            begins[number[targets[edge]] + 2] += 1
    for u in range(2, count + 2):
        begins[u] += begins[u - 1]
    for root in roots:
        w = number[root] + 1
        sources[begins[w]] = 0
        begins[w] += 1
    for u in range(1, count):
        for edge in range(starts[node[u]], starts[node[u] + 1]):
            w = number[targets[edge]] + 1
            sources[begins[w]] = u
            begins[w] += 1


PREDECESSORS = Loop(
    _predecessors, f"void({_I64}, {_I32}, {_I32}, {_I32}, {_I32}, int64, {_I64}, {_I32})", LIBRARY
)


def _dominate(
    count: int,
    parent: NDArray[np.int32],
    begins: NDArray[np.int64],
    sources: NDArray[np.int32],
    dominator: NDArray[np.int32],
    semi: NDArray[np.int32],
    label: NDArray[np.int32],
    ancestor: NDArray[np.int32],
    way: NDArray[np.int32],
) -> None:
    """Find immediate dominators, in numbers of a depth-first search.

    Args:
        count: How many numbers there are.
        parent: (count,) in the search.
        begins: (count + 1,) where in `sources` each number's referrers begin.
        sources: Referrers, as numbers.
        dominator: (count,) set; of 0 and of a root's own it is 0.
        semi: (count,) room.
        label: (count,) room.
        ancestor: (count,) room.
        way: (count,) room.
    """
    for w in range(count):
        semi[w] = w
        label[w] = w
        ancestor[w] = parent[w]
        dominator[w] = parent[w]
    for w in range(count - 1, 0, -1):
        least = w
        for edge in range(begins[w], begins[w + 1]):
            v = sources[edge]
            candidate = v
            if v > w:
                # An object with a larger number than w is linked into the forest: shorten the path
                # up to the last such one, so that each is walked once, and carry the least
                # semidominator along.
                depth = 0
                above = v
                while ancestor[above] > w:
                    way[depth] = above
                    depth += 1
                    above = ancestor[above]
                while depth > 0:
                    depth -= 1
                    below = way[depth]
                    if semi[label[above]] < semi[label[below]]:
                        label[below] = label[above]
                    ancestor[below] = ancestor[above]
                    above = below
                candidate = semi[label[v]]
            least = min(least, candidate)
        semi[w] = least
    for w in range(1, count):
        # The nearest ancestor in the tree built so far that is no later than the semidominator.
        d = dominator[w]
        while d > semi[w]:
            d = dominator[d]
        dominator[w] = d


DOMINATE = Loop(
    _dominate,
    f"void(int64, {_I32}, {_I64}, {_I32}, {_I32}, {_I32}, {_I32}, {_I32}, {_I32})",
    LIBRARY,
)


def _add_up(
    order: NDArray[np.int32], dominator: NDArray[np.int32], amount: NDArray[np.int64]
) -> None:
    """Add to each object's amount those of the objects that it dominates.

    Args:
        order: (k,) reached objects, each after its dominator.
        dominator: (n,) of each object, -1: a root of all.
        amount: (n,) changed.
    """
    for at in range(len(order) - 1, -1, -1):
        w = order[at]
        d = dominator[w]
        if d >= 0:
            amount[d] += amount[w]


ADD_UP = Loop(_add_up, f"void({_I32}, {_I32}, {_I64})", LIBRARY)


def _tops(
    order: NDArray[np.int32],
    dominator: NDArray[np.int32],
    transparent: NDArray[np.bool_],
    top: NDArray[np.int32],
) -> None:
    """Find for each object the topmost informative dominator.

    Args:
        order: (k,) reached objects, each after its dominator.
        dominator: (n,) of each object, -1: a root of all.
        transparent: (n,) uninformative objects, such as a table of modules.
        top: (n,) set for reached objects.
    """
    for at in range(len(order)):
        w = order[at]
        d = dominator[w]
        top[w] = w if d < 0 or transparent[d] else top[d]


TOPS = Loop(_tops, f"void({_I32}, {_I32}, boolean[::1], {_I32})", LIBRARY)


def _width(
    starts: NDArray[np.int64],
    targets: NDArray[np.int32],
    roots: NDArray[np.int32],
    parent: NDArray[np.int32],
    depth: NDArray[np.int32],
    order: NDArray[np.int32],
) -> int:
    """Search breadth first from the roots: the shortest way to each object.

    Args:
        starts: (n + 1,) of the graph.
        targets: (m,) of the graph.
        roots: (r,) of the graph.
        parent: (n,) set for reached objects; -1: a root.
        depth: (n,) -1 throughout; becomes the number of references from a root.
        order: (n,) set: objects in the order in which they were reached.

    Returns:
        How many are reached.
    """
    count = 0
    for root in roots:
        if depth[root] < 0:
            depth[root] = 0
            parent[root] = -1
            order[count] = root
            count += 1
    at = 0
    while at < count:
        here = order[at]
        at += 1
        for edge in range(starts[here], starts[here + 1]):
            there = targets[edge]
            if depth[there] < 0:
                depth[there] = depth[here] + 1
                parent[there] = here
                order[count] = there
                count += 1
    return count


WIDTH = Loop(_width, f"int64({_I64}, {_I32}, {_I32}, {_I32}, {_I32}, {_I32})", LIBRARY)


LOOPS: Final = tuple(each for each in tuple(vars().values()) if isinstance(each, Loop))
"""All of them."""


def compile_kernels() -> bool:
    """Have them as machine code; False where that cannot be.

    Without the library in C, numba compiles them or loads what it compiled before. The first time
    that takes seconds.
    """
    return compile_all(LOOPS)
