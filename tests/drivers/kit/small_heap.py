"""A heap of a few objects, made by hand, with names that contain their numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from gcspy_objects.graph.dominators import DominatorTree, dominators
from gcspy_objects.graph.references import ReferenceGraph
from numpy.typing import NDArray

__all__ = ["Numbered", "SmallHeap"]


@dataclass
class SmallHeap:
    """A heap under construction: objects are numbered as they are made; a `KnownHeap`."""

    references: list[list[int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    transparent: list[int] = field(default_factory=list)

    def one(self, type_name: str, size: int, *by: int, at: int | None = None) -> int:
        """Make an object that others refer to; without any: a root does.

        Args:
            type_name: Name of its type.
            size: Its bytes.
            by: Who refers to it.
            at: Its address; else 0x1000, 0x1010, …
        """
        made = len(self.references)
        self.references.append([])
        self.sizes.append(size)
        self.types.append(type_name)
        self.places.append(0x1000 + 16 * made if at is None else at)
        for each in by:
            self.references[each].append(made)
        if not by:
            self.roots.append(made)
        return made

    def namespace(self) -> int:
        """Make a module, which is a root and never a holder."""
        made = self.one("module", 7)
        self.transparent.append(made)
        return made

    @property
    def graph(self) -> ReferenceGraph:
        """Who refers to whom."""
        starts = np.cumsum([0, *map(len, self.references)]).astype(np.int64)
        targets = [each for some in self.references for each in some]
        return ReferenceGraph(
            starts, np.array(targets, dtype=np.int32), np.array(self.roots, dtype=np.int32)
        )

    @property
    def tree(self) -> DominatorTree:
        """Who dominates whom."""
        return dominators(self.graph)

    @property
    def address(self) -> NDArray[np.int64]:
        """(n,) where each object is."""
        return np.array(self.places, dtype=np.int64)

    @property
    def own(self) -> NDArray[np.int64]:
        """(n,) bytes of each object."""
        return np.array(self.sizes, dtype=np.int64)

    @property
    def namespaces(self) -> NDArray[np.bool_]:
        """(n,) which are modules."""
        found = np.zeros(len(self.sizes), dtype=np.bool_)
        found[self.transparent] = True
        return found

    def number_of(self, address: int) -> int | None:
        """Return the object at an address."""
        return self.places.index(address) if address in self.places else None

    def of_type(self, name: str) -> NDArray[np.int32]:
        """Return (k,) the objects of a type."""
        return np.array([n for n, one in enumerate(self.types) if one == name], dtype=np.int32)


class Numbered:
    """Names that contain the numbers of objects; a `Namer`.

    Args:
        heap: The objects.
        ways: Names of the ways to some of them.
    """

    def __init__(self, heap: SmallHeap, **ways: int) -> None:
        self._heap = heap
        self._ways = {number: way for way, number in ways.items()}

    def type_name(self, number: int) -> str:
        """Return the name of an object's type."""
        return self._heap.types[number]

    def way_to(self, number: int) -> str:
        """Say how a root leads to an object."""
        return self._ways.get(number, f"way to {number}")

    def holder_name(self, number: int) -> str:
        """Say the same of a holder."""
        return f"holder {number}"

    def holder_type(self, number: int) -> str:
        """Return the type of what is named so."""
        return f"{self._heap.types[number]} that holds"
