"""The heap as a student's collector sees it: objects with marks and references, and freeing, which refuses what the program can still reach.

Knows the heap's words and free lists; does not know in which order anybody looks at objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gcspy_drivers.simulator.heap import (
    BLACK,
    FREE,
    GREY,
    HEADER_WORDS,
    TYPE_SHIFT,
    WHITE,
    WORD_BYTES,
    Heap,
    colour_of,
    fields_of,
    identity_of,
    paint,
    size_of,
)
from gcspy_drivers.simulator.policies.freelist import FreeListSpace
from gcspy_drivers.simulator.user_code.guard import Mistake, line_in

__all__ = ["HeapObject", "UserHeap"]

_COLOURS: Final = {"white": WHITE, "grey": GREY, "black": BLACK}
_MOST_PATH: Final = 6
_TYPE_MASK: Final = (1 << 12) - 1


class HeapObject:
    """An object of the program.

    Attributes:
        number: Its number: the first object that the program made is 1.
    """

    __slots__ = ("_cell", "_heap", "number")

    def __init__(self, heap: UserHeap, cell: int) -> None:
        self._heap, self._cell = heap, cell
        self.number = identity_of(heap.heap.words, cell)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeapObject) and (self._cell, self.number) == (
            other._cell,
            other.number,
        )

    def __hash__(self) -> int:
        return hash((self._cell, self.number))

    def __repr__(self) -> str:
        return f"object {self.number}"

    @property
    def type(self) -> str:
        """The name of its type."""
        heap = self._heap.heap
        return heap.types[(int(heap.words[self._there()]) >> TYPE_SHIFT) & _TYPE_MASK]

    @property
    def size(self) -> int:
        """Its bytes, header included."""
        return size_of(self._heap.heap.words, self._there()) * WORD_BYTES

    @property
    def fields(self) -> list[HeapObject | None]:
        """The contents of its reference fields; None: nothing."""
        words, cell = self._heap.heap.words, self._there()
        first = cell + HEADER_WORDS
        targets = words[first : first + fields_of(words, cell)].tolist()
        return [HeapObject(self._heap, target) if target else None for target in targets]

    @property
    def references(self) -> list[HeapObject]:
        """The objects that its fields hold."""
        return [target for target in self.fields if target is not None]

    @property
    def colour(self) -> str:
        """``white``, ``grey`` or ``black``; all objects are white when a collection starts."""
        code = colour_of(self._heap.heap.words, self._there())
        return next(name for name, one in _COLOURS.items() if one == code)

    @colour.setter
    def colour(self, colour: str) -> None:
        if colour not in _COLOURS:
            raise Mistake(f"an object cannot be {colour!r}: use one of {', '.join(_COLOURS)}")
        paint(self._heap.heap.words, self._there(), _COLOURS[colour])

    @property
    def marked(self) -> bool:
        """Whether it is black."""
        return colour_of(self._heap.heap.words, self._there()) == BLACK

    @marked.setter
    def marked(self, marked: bool) -> None:
        paint(self._heap.heap.words, self._there(), BLACK if marked else WHITE)

    def _there(self) -> int:
        """Its address, if it is still there."""
        words = self._heap.heap.words
        if words[self._cell] & FREE or identity_of(words, self._cell) != self.number:
            line = self._heap.freed_lines.get(self.number)
            when = f" in line {line}" if line else ""
            raise Mistake(f"object {self.number} was freed{when}: it must not be used any more")
        return self._cell


class UserHeap:
    """The heap as a collector of a student works on it.

    Attributes:
        heap: The words.
        freed_lines: For each freed object, by number, the line that freed it.
        freed: Objects and words freed since `begin`.
    """

    def __init__(self, heap: Heap, space: FreeListSpace, path: Path, threads: int) -> None:
        self.heap = heap
        self.freed_lines: dict[int, int] = {}
        self.freed = [0, 0]
        self._space, self._path, self._threads = space, path, threads
        self._ways: dict[int, tuple[int, str]] = {}
        self._newest = 0
        self.stale = True

    # What students use.

    @property
    def roots(self) -> list[HeapObject]:
        """The objects that the program's variables hold; one that two of them hold is there twice."""
        return [HeapObject(self, cell) for cell in self.heap.roots.tolist() if cell]

    @property
    def objects(self) -> list[HeapObject]:
        """All objects, in the order of their addresses, as they are now."""
        words = self.heap.words
        cells = self.heap.cells(self._space.start, self._space.end).tolist()
        return [HeapObject(self, cell) for cell in cells if not words[cell] & FREE]

    def free(self, thing: HeapObject) -> None:
        """Free an object: its memory can be used again."""
        if not isinstance(thing, HeapObject):
            raise Mistake(f"free takes an object, and this is {thing!r}")
        cell, line = thing._there(), line_in(self._path)
        if self._may_be_reached(cell, thing.number):
            raise Mistake(
                f"object {thing.number} was freed and is reachable from {self._way_to(cell)}"
            )
        self.freed_lines[thing.number] = line
        size = size_of(self.heap.words, cell)
        self.freed[0] += 1
        self.freed[1] += size
        self._space.give_back(cell, size)

    # What the plan uses.

    def begin(self) -> None:
        """A collection begins: nothing was freed in it."""
        self.freed[:] = 0, 0
        self.freed_lines.clear()
        self.stale = True
        words = self.heap.words
        for cell in self.heap.cells(self._space.start, self._space.end).tolist():
            if not words[cell] & FREE:
                paint(words, cell, WHITE)

    def garbage(self) -> list[HeapObject]:
        """The objects that nothing reaches, as of now."""
        self._find_ways()
        return [one for one in self.objects if one._cell not in self._ways]

    def _may_be_reached(self, cell: int, number: int) -> bool:
        """Whether the program can reach an object. What it could not reach once it never can again."""
        if self.stale and (not self._ways or cell in self._ways or number > self._newest):
            self._find_ways()
        return cell in self._ways

    def _find_ways(self) -> None:
        """Find, for each object that can be reached, who holds it: breadth first, so that ways are short."""
        words, roots = self.heap.words, self.heap.roots.tolist()
        each = max(1, len(roots) // self._threads)
        ways: dict[int, tuple[int, str]] = {}
        for slot, cell in enumerate(roots):
            if cell and cell not in ways:
                thread, number = divmod(slot, each)
                name = (
                    f"stack[{number}]"
                    if self._threads == 1
                    else f"stack[{number}] of thread {thread}"
                )
                ways[cell] = (0, name)
        left: Iterable[int] = list(ways)
        while left:
            found: list[int] = []
            for cell in left:
                first = cell + HEADER_WORDS
                targets = words[first : first + fields_of(words, cell)].tolist()
                for field, target in enumerate(targets):
                    if target and target not in ways:
                        ways[target] = (cell, f"field {field}")
                        found.append(target)
            left = found
        self._ways, self._newest, self.stale = ways, self.heap.identities, False

    def _way_to(self, cell: int) -> str:
        """The way from a root to an object."""
        parts: list[str] = []
        while cell:
            holder, name = self._ways[cell]
            number = identity_of(self.heap.words, holder) if holder else 0
            parts.append(f"{name} of object {number}" if holder else f"`{name}`")
            cell = holder
        parts.reverse()
        if len(parts) > _MOST_PATH:
            parts[3:-2] = ["…"]
        return ", ".join(parts)
