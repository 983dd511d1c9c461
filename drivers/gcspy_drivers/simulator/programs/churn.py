"""Programs of many small objects, most of which die young: `Reptile`, `BinaryTrees`, `Queue`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from gcspy_drivers.simulator.heap import HEADER_WORDS, WORD_BYTES
from gcspy_drivers.simulator.plan import Knob
from gcspy_drivers.simulator.programs.program import Program
from gcspy_drivers.simulator.programs.stack import Ref, Stack

__all__ = ["BinaryTrees", "Queue", "Reptile"]

_LINE_WORDS = HEADER_WORDS + 1
_PICTURES = 24


class Reptile(Program):
    """After the paper's ``reptile``, the kernel of an Escher drawing package that was written in a lazy language.

    A picture is a list of lines, 24 bytes each. The program makes pictures of pictures and reads most of them only once. A
    picture that is kept lives for some time and then dies as a whole, so that its lines, which lie side by side, are merged into cells of multiples of 24 bytes.
    """

    name = "reptile"
    title = "Reptile: small objects"
    about = "Objects of 24 bytes, most of which die at once; pictures of them live on and go as a whole."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("live", "Kept alive", 35, (1, 90), "%"),
        Knob("kept", "Lines that are kept", 12, (0, 100), "%"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Draw."""
        with stack.scope() as whole:
            pictures = [whole.empty() for _ in range(_PICTURES)]
            drawing = 0
            lengths = [0] * _PICTURES
            while True:
                wanted = max(self.live_bytes // WORD_BYTES // _LINE_WORDS // _PICTURES, 1)
                self._draw(stack, pictures[drawing], lengths, drawing, wanted)
                if lengths[drawing] >= wanted * (50 + self.up_to(100)) // 100:
                    # The next canvas: what was on it is dropped whole.
                    drawing = self.up_to(_PICTURES)
                    pictures[drawing].be(None)
                    lengths[drawing] = 0
                yield

    def _draw(self, stack: Stack, picture: Ref, lengths: list[int], at: int, wanted: int) -> None:
        """Make some lines; keep a share of them at the head of the picture."""
        with stack.scope() as here:
            line, passing = here.empty(), here.empty()
            for _ in range(min(64, 4 * wanted)):
                line.new("Line", fields=1)
                if self.chance(self.value("kept")):
                    line[0] = picture
                    picture.be(line)
                    lengths[at] += 1
                else:
                    # A list of lines that are read only once, so that garbage refers to garbage.
                    line[0] = passing
                    passing.be(line)
            if self.chance(20):
                here.new("Transformation", fields=1, data=1 + self.up_to(4))[0] = picture


class BinaryTrees(Program):
    """The textbook's benchmark: one tree that stays, and many that are built and dropped (H. Boehm's GCBench, after J. Ellis and P. Kovac)."""

    name = "binarytrees"
    title = "Binary trees"
    about = (
        "A large tree stays; small ones are built, from the leaves or from the root, and dropped."
    )
    settings: ClassVar[Sequence[Knob]] = (
        Knob("live", "The tree that stays", 25, (1, 80), "%"),
        Knob("depth", "Depth of the others", 6, (1, 12), "levels"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Plant and fell."""
        with stack.scope() as whole:
            nodes = max(self.live_bytes // WORD_BYTES // (HEADER_WORDS + 2), 1)
            stays = whole.empty()
            yield from self._grow(stack, stays, max(nodes.bit_length() - 1, 1))
            while True:
                depth = self.value("depth")
                with stack.scope() as here:
                    tree = here.empty()
                    if self.chance(50):
                        yield from self._grow(stack, tree, depth)
                    else:
                        tree.new("Tree", fields=2)
                        yield from self._populate(stack, tree, depth - 1)
                yield

    def _grow(self, stack: Stack, into: Ref, depth: int) -> Iterator[None]:
        """Build a tree from its leaves."""
        with stack.scope() as here:
            left, right = here.empty(), here.empty()
            if depth > 1:
                yield from self._grow(stack, left, depth - 1)
                yield from self._grow(stack, right, depth - 1)
            into.new("Tree", fields=2)
            into[0], into[1] = left, right
        if depth % 5 == 0:
            yield

    def _populate(self, stack: Stack, tree: Ref, depth: int) -> Iterator[None]:
        """Build a tree from its root: each store is into an older object."""
        if depth < 1:
            return
        with stack.scope() as here:
            child = here.empty()
            for side in range(2):
                tree[side] = child.new("Tree", fields=2)
                yield from self._populate(stack, child, depth - 1)
        if depth % 5 == 0:
            yield


class Queue(Program):
    """A queue as a list: each cell dies in the order in which it was made, as no generation expects it.

    A removed cell still refers to the next one. If it is in the old generation, which minor collections do not examine, it keeps its young successors alive (*nepotism*).
    """

    name = "queue"
    title = "A queue"
    about = "First in, first out. Old dead cells refer to younger ones."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("live", "Length", 30, (1, 80), "%"),
        Knob("data", "Words a message", 4, (0, 200), "words"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Put at the end, take from the front."""
        with stack.scope() as whole:
            first, last, cell = (whole.empty() for _ in range(3))
            words = 0
            while True:
                for _ in range(32):
                    data = self.value("data")
                    cell.new("Message", fields=1, data=data)
                    words += HEADER_WORDS + 1 + data
                    if first:
                        last[0] = cell
                    else:
                        first.be(cell)
                    last.be(cell)
                    while words * WORD_BYTES > self.live_bytes and not first.same(last):
                        words -= HEADER_WORDS + 1 + data
                        first.load(first, 0)
                cell.be(None)
                yield
