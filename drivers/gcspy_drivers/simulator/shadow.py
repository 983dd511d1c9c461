"""The graph of objects as the program made it, kept beside the heap by the objects' numbers: what `verify` compares the heap with.

Python objects, one for each of the heap's: for tests, and for heaps small enough to teach with. Knows neither addresses nor
collectors, so nothing that a collector does can spoil it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Shadow", "ShadowObject"]


@dataclass
class ShadowObject:
    """An object as the program knows it.

    Attributes:
        size: Words in all.
        type_id: Its type.
        fields: Numbers of the objects that its fields hold, or 0.
    """

    size: int
    type_id: int
    fields: list[int]


class Shadow:
    """The program's graph.

    Attributes:
        objects: By number; unreachable ones too, until `prune`.
        roots: Number of the object that each root slot holds, or 0.
        weak: Number of the object that each weak reference was made for, by its own number.
        finalisable: Types with a finaliser; finalised: numbers of the objects whose finaliser was called.
    """

    def __init__(self, roots: int) -> None:
        self.objects: dict[int, ShadowObject] = {}
        self.roots = [0] * roots
        self.weak: dict[int, int] = {}
        self.finalisable: set[int] = set()
        self.finalised: set[int] = set()

    def reachable(self) -> set[int]:
        """Return the numbers of all objects that the roots reach."""
        return self._reached_from({root for root in self.roots if root})

    def _reached_from(self, found: set[int]) -> set[int]:
        left = list(found)
        while left:
            for number in self.objects[left.pop()].fields:
                if number and number not in found:
                    found.add(number)
                    left.append(number)
        return found

    def prune(self, reachable: set[int]) -> None:
        """Forget all other objects: no program can reach them again, except by a weak reference or a finaliser."""
        again = {self.weak[one] for one in reachable if one in self.weak} & self.objects.keys()
        if self.finalisable:
            again |= {
                number
                for number, one in self.objects.items()
                if one.type_id in self.finalisable and number not in self.finalised
            }
        if again:
            reachable = reachable | self._reached_from(again)
        self.weak = {one: target for one, target in self.weak.items() if one in reachable}
        self.objects = {number: one for number, one in self.objects.items() if number in reachable}
