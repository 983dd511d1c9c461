"""`ReferenceGraph`: objects and the references between them, as columns.

A node is a number from 0; a driver knows its object. An object that is alive although nothing in
the graph refers to it has a root: a thread's frame, a static variable, the interpreter itself.

Knows arrays only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.errors import GCspyError
from numpy.typing import NDArray

__all__ = ["NO_NODE", "GraphError", "ReferenceGraph"]

NO_NODE: Final = -1
"""In a column of nodes: none, or a root."""


class GraphError(GCspyError):
    """Errors of columns that do not form a graph."""


@dataclass(frozen=True)
class ReferenceGraph:
    """References between n objects, in compressed rows.

    Attributes:
        starts: (n + 1,) where in `targets` the references of each object begin; the last entry is their number.
        targets: (m,) objects that are referred to.
        roots: (r,) objects that are held from outside, each once.

    Raises:
        GraphError: The columns contradict each other.
    """

    starts: NDArray[np.int64]
    targets: NDArray[np.int32]
    roots: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Check that every number names something."""
        if self.starts.ndim != 1 or not len(self.starts):
            raise GraphError("a graph's starts are one column of at least one entry")
        if self.starts[0] != 0 or self.starts[-1] != len(self.targets):
            raise GraphError(
                f"a graph's starts lead from {self.starts[0]} to {self.starts[-1]}; its {len(self.targets)} targets need 0 to "
                f"{len(self.targets)}"
            )
        if (np.diff(self.starts) < 0).any():
            raise GraphError(
                f"a graph's starts descend at {int(np.argmax(np.diff(self.starts) < 0))}"
            )
        for name, column in (("target", self.targets), ("root", self.roots)):
            if len(column) and (column.min() < 0 or column.max() >= self.nodes):
                raise GraphError(f"a graph of {self.nodes} objects has a {name} beyond them")

    @property
    def nodes(self) -> int:
        """Number of objects."""
        return len(self.starts) - 1

    def referrers(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the same the other way round: starts (n + 1,) and, object by object, who refers to it (m,), ascending."""
        starts = np.zeros(self.nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.targets, minlength=self.nodes), out=starts[1:])
        sources = np.repeat(np.arange(self.nodes, dtype=np.int32), np.diff(self.starts))
        return starts, sources[np.argsort(self.targets, kind="stable")]

    def referrers_of(
        self, chosen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the references to chosen objects only, as two columns: referrer and object.

        Args:
            chosen: (n,) which objects.
        """
        edges = np.flatnonzero(chosen[self.targets])
        sources = np.searchsorted(self.starts, edges, side="right") - 1
        return sources.astype(np.int32), self.targets[edges]
