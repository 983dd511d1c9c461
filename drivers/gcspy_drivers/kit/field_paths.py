"""`FieldPathNamer`: names objects by a root, and by the fields on the shortest path from it.

Knows graphs; does not know the names of roots and fields, which the caller supplies.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import numpy as np
from gcspy_objects.graph.references import ReferenceGraph
from gcspy_objects.graph.shortest import shortest_ways
from numpy.typing import NDArray

__all__ = ["FieldPathNamer"]

_MOST_STEPS: Final = 12
"""References of a path that are named; of a longer one the first and the last."""


class FieldPathNamer:
    """Names for the objects of one graph.

    Args:
        graph: The graph; its roots are ascending.
        address: (n,) of each object.
        type_name: Name of the type of an object.
        root_name: Name of a root, by its place among the graph's roots.
        field_name: Name of a reference, by its place among the graph's targets: ``[3]`` or ``.next``.
    """

    def __init__(
        self,
        graph: ReferenceGraph,
        address: NDArray[np.int64],
        *,
        type_name: Callable[[int], str],
        root_name: Callable[[int], str],
        field_name: Callable[[int], str],
    ) -> None:
        self._graph, self._address = graph, address
        self._type_name, self._root_name, self._field_name = type_name, root_name, field_name
        self._ways = shortest_ways(graph)

    def type_name(self, number: int) -> str:
        """Return the name of an object's type."""
        return self._type_name(number)

    def holder_type(self, number: int) -> str:
        """Return the same: no object is a mere part of another."""
        return self._type_name(number)

    def way_to(self, number: int) -> str:
        """Name the path to an object: ``root 3[0][1]``, that is field 1 of what is in field 0 of what root 3 holds."""
        way = self._ways.way(number)
        if not way:
            return f"{self._address[number]:#x}"
        steps = [self._step(one, other) for one, other in pairwise(way)]
        if len(steps) > _MOST_STEPS:
            half = _MOST_STEPS // 2
            left = len(steps) - 2 * half
            steps = [*steps[:half], f"[… {left:,} more …]", *steps[-half:]]
        return self._root_name(int(np.searchsorted(self._graph.roots, way[0]))) + "".join(steps)

    def holder_name(self, number: int) -> str:
        """Return the same: each step says something."""
        return self.way_to(number)

    def _step(self, holder: int, target: int) -> str:
        begin, end = self._graph.starts[holder], self._graph.starts[holder + 1]
        return self._field_name(int(begin + np.argmax(self._graph.targets[begin:end] == target)))
