"""Reports of a collector besides its objects: free lists, cards, remembered sets, regions; for drivers and for `verify`.

Copies, taken at the moment of the call. Addresses are numbers of words. The module depends on no
plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.simulator.loops import Bytes, Words

__all__ = [
    "CLEAN",
    "DIRTY",
    "AmbiguousWords",
    "CardTable",
    "FinalisationCounts",
    "FreeLists",
    "Generations",
    "Regions",
    "RememberedSet",
]

CLEAN, DIRTY = 0, 1


@dataclass(frozen=True, eq=False)
class FreeLists:
    """Free lists.

    Attributes:
        names: Of each list: which sizes it has, such as ``24 bytes`` or ``512 bytes and more``.
        smallest: Words of the smallest cell that belongs into each list.
        cells: Addresses of the cells of all lists, one list behind the other, each in its own order.
        starts: Where in `cells` each list starts, and behind the last one its end: one more than there are lists.
        sizes: Words of each of `cells`, as their status says.
    """

    names: tuple[str, ...]
    smallest: Words
    cells: Words
    starts: Words
    sizes: Words

    @property
    def lengths(self) -> Words:
        """Cells in each list."""
        return self.starts[1:] - self.starts[:-1]


@dataclass(frozen=True, eq=False)
class CardTable:
    """A card table.

    Attributes:
        start: First word that it covers.
        card_words: Words a card.
        table: CLEAN or DIRTY a card; a plan with more states numbers them from 2 and names them.
        states: Their names.
    """

    start: int
    card_words: int
    table: Bytes
    states: tuple[str, ...] = ("clean", "dirty")

    @property
    def end(self) -> int:
        """The word behind the last that it covers."""
        return self.start + len(self.table) * self.card_words


@dataclass(frozen=True, eq=False)
class RememberedSet:
    """References into a part of the heap from elsewhere.

    Attributes:
        name: Whose it is: ``Nursery``, ``Car 3.1``.
        start: First word of the part; `end`: behind its last; both 0 where it is not one range.
        holders: Words that hold references, or objects that have such words: as the plan keeps them.
    """

    name: str
    start: int
    end: int
    holders: Words


@dataclass(frozen=True, eq=False)
class Regions:
    """Parts of equal or unequal size that spaces are made of: blocks, regions, cars.

    Attributes:
        what: Name of one part: ``block``, ``region``, ``car``.
        starts: First word each; `ends`: behind the last; `tops`: up to where it is in use.
        used: Words of each that are in use, or -1 where that is not known; None where all are up to its top.
        kinds: Present kind of each: index of `kind_names`.
        kind_names: Such as ``free``, ``eden``, ``survivor``, ``old``, ``large``.
        groups: Number of the group that each belongs to (its train), or -1.
        numbers: Its number in that, or -1.
        live: Words of each that the last marking found alive, or -1 where that is not known; None where the plan never knows.
        chosen: Whether each is, or last was, in the collection set: 0 or 1; None where there is
            none.
        ages: Collections that each was there for; None where they are not counted.
    """

    what: str
    starts: Words
    ends: Words
    tops: Words
    kinds: Words
    kind_names: tuple[str, ...]
    groups: Words
    numbers: Words
    live: Words | None = None
    chosen: Words | None = None
    ages: Words | None = None
    used: Words | None = None


@dataclass(frozen=True, eq=False)
class AmbiguousWords:
    """Words that a conservative collector takes for references if they look like some.

    Attributes:
        words: Their values.
        objects: Whether each is the address of an object now.
        stale: How many of them, the first ones, are words of old stack frames; the others are numbers.
    """

    words: Words
    objects: NDArray[np.bool_]
    stale: int


@dataclass(frozen=True)
class Generations:
    """Lists of objects by age, and what begins their collections.

    Attributes:
        names: Of the generations; the others have an entry for each.
        objects: Objects in the list.
        counts: What is compared with the threshold.
        thresholds: A collection begins when the count is larger.
        collections: How many there were.
        collected: Objects that these found to be garbage.
    """

    names: tuple[str, ...]
    objects: tuple[int, ...]
    counts: tuple[int, ...]
    thresholds: tuple[int, ...]
    collections: tuple[int, ...]
    collected: tuple[int, ...]


@dataclass(frozen=True)
class FinalisationCounts:
    """Weak references and finalisers of a run.

    Attributes:
        weak: Weak references that refer to an object.
        cleared: How many were cleared.
        callbacks: Callbacks that were called.
        finalisers: Finalisers that were called.
        resurrected: Objects that were reachable again after that.
    """

    weak: int
    cleared: int
    callbacks: int
    finalisers: int
    resurrected: int
