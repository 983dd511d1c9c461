"""Programs that are bad for a kind of collector on purpose: `Fragmentation`, `CardMarking`, `RingProgram`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from gcspy_drivers.simulator.heap import HEADER_WORDS, WORD_BYTES
from gcspy_drivers.simulator.plan import Knob
from gcspy_drivers.simulator.programs.program import Program
from gcspy_drivers.simulator.programs.stack import Stack

__all__ = ["CardMarking", "Fragmentation", "RingProgram"]


class Fragmentation(Program):
    """Fills the heap with objects of one size, drops all but every n-th, and asks for objects that are a little larger than what was freed.

    No collector that does not move objects can use what was freed (J. M. Robson, Bounds for some functions concerning dynamic storage allocation,
    JACM 21(3), 1974, for how bad it can get). When the objects have become large it begins anew with small ones.
    """

    name = "fragmentation"
    title = "Fragmentation"
    about = "Keeps every second object, and asks for larger ones than what was freed."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("live", "Filled in a round", 45, (5, 80), "%"),
        Knob("kept", "Keeps one in", 2, (2, 20), "objects"),
        Knob("rounds", "Rounds before it starts again", 5, (1, 10), "rounds"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Make holes."""
        while True:
            with stack.scope() as whole:
                kept, cell, last = whole.empty(), whole.empty(), whole.empty()
                held = 0
                for turn in range(self.value("rounds")):
                    data = 2 + 4 * turn * turn
                    words = HEADER_WORDS + 1 + data
                    count = max((self.live_bytes // WORD_BYTES - held) // words, 0)
                    last.be(None)
                    for number in range(count):
                        cell.new(f"Size {words * WORD_BYTES}", fields=1, data=data)
                        # All are held until the round is over, in two lists.
                        if number % self.value("kept") == 0:
                            cell[0] = kept
                            kept.be(cell)
                            held += words
                        else:
                            cell[0] = last
                            last.be(cell)
                        if number % 32 == 0:
                            yield
                    yield


class CardMarking(Program):
    """A large old table, and young objects stored all over it: each store dirties another card, and each collection of the young looks at the whole table."""

    name = "cards"
    title = "A card storm"
    about = "Stores references to new objects at random into a large old table."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("live", "The table", 30, (1, 60), "%"),
        Knob("stores", "Stores a turn", 32, (1, 1000), "stores"),
        Knob("spread", "Of the table that is stored to", 100, (1, 100), "%"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Store."""
        fields = 30
        with stack.scope() as whole:
            root = whole.empty()
            rows = max(self.live_bytes // WORD_BYTES // (HEADER_WORDS + fields) // 2, 1)
            root.new("Table", fields=min(rows, 1000))
            row, item = whole.empty(), whole.empty()
            for number in range(len(root)):
                root[number] = row.new("Row", fields=fields)
                if number % 16 == 0:
                    yield
            while True:
                for _ in range(self.value("stores")):
                    used = max(len(root) * self.value("spread") // 100, 1)
                    row.load(root, self.up_to(used))
                    row[self.up_to(fields)] = item.new("Item", data=1)
                row.be(None)
                item.be(None)
                yield


class RingProgram(Program):
    """Rings of objects, each of which refers to the next one: when a ring is dropped, no count in it falls to zero, and counting references never frees it.

    In between objects are made that refer to nothing: those are freed as soon as they are dropped.
    """

    name = "rings"
    title = "Dropped rings"
    about = (
        "Drops rings of objects that refer to each other, which counting references does not see."
    )
    settings: ClassVar[Sequence[Knob]] = (
        Knob("live", "Rings that are kept", 20, (1, 70), "%"),
        Knob("size", "Objects a ring", 8, (1, 200), "objects"),
        Knob("short", "Short-lived objects, a turn", 24, (0, 500), "objects"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Forge rings, and drop them."""
        with stack.scope() as whole:
            ring_words = self.value("size") * (HEADER_WORDS + 3)
            rings = whole.new(
                "RingProgram", fields=min(max(self.live_bytes // WORD_BYTES // ring_words, 1), 1000)
            )
            while True:
                with stack.scope() as here:
                    first, last, link = here.empty(), here.empty(), here.empty()
                    for _ in range(self.value("short")):
                        link.new("Short", data=2)
                    first.new("Link", fields=1, data=2)
                    last.be(first)
                    for _ in range(self.value("size") - 1):
                        last[0] = link.new("Link", fields=1, data=2)
                        last.be(link)
                    last[0] = first
                    rings[self.up_to(len(rings))] = first
                yield
