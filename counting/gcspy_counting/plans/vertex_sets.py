"""Sets of vertices that are joined one by one (union-find)."""

from __future__ import annotations

__all__ = ["VertexSets"]


class VertexSets:
    """Disjoint sets of the vertices 0 to `vertices` - 1, at first each by itself."""

    def __init__(self, vertices: int) -> None:
        self._above = list(range(vertices))

    def find(self, vertex: int) -> int:
        """Return the vertex that names a set."""
        above = self._above
        while above[vertex] != vertex:
            above[vertex] = above[above[vertex]]
            vertex = above[vertex]
        return vertex

    def join(self, one: int, other: int) -> bool:
        """Join two sets; return whether they were two."""
        one, other = self.find(one), self.find(other)
        if one == other:
            return False
        self._above[one] = other
        return True
