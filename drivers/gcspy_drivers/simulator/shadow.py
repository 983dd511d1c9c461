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
    """

    def __init__(self, roots: int) -> None:
        self.objects: dict[int, ShadowObject] = {}
        self.roots = [0] * roots

    def reachable(self) -> set[int]:
        """Return the numbers of all objects that the roots reach."""
        found = {root for root in self.roots if root}
        left = list(found)
        while left:
            for number in self.objects[left.pop()].fields:
                if number and number not in found:
                    found.add(number)
                    left.append(number)
        return found

    def prune(self, reachable: set[int]) -> None:
        """Forget all other objects: no program can reach them again."""
        self.objects = {number: one for number, one in self.objects.items() if number in reachable}
