"""Programs of which much lives long: `GCold`, `Paraffins`, `LRUCache`, `Leak`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from gcspy_drivers.simulator.heap import HEADER_WORDS, WORD_BYTES
from gcspy_drivers.simulator.plan import Knob
from gcspy_drivers.simulator.programs.program import Program
from gcspy_drivers.simulator.programs.stack import Ref, Stack

__all__ = ["GCold", "LRUCache", "Leak", "Paraffins"]


class GCold(Program):
    """After GCold (T. Printezis and D. Detlefs, A generational mostly-concurrent garbage collector, ISMM 2000): a large tree that is changed all the time.

    A part of the tree is replaced by a new one, subtrees change places, and short-lived objects are made in between; how much of
    each are knobs.
    """

    name = "gcold"
    title = "GCold: a large tree"
    about = "A tree that fills much of the heap; parts of it are replaced, others change places."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("live", "The tree", 40, (1, 80), "%"),
        Knob("mutation", "Subtrees that change places, a turn", 2, (0, 100), "times"),
        Knob("short", "Short-lived objects, a turn", 20, (0, 500), "objects"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Plant a tree, then garden."""
        with stack.scope() as whole:
            nodes = max(self.live_bytes // WORD_BYTES // (HEADER_WORDS + 3), 7)
            depth = (nodes + 1).bit_length() - 1
            root = whole.new("Tree", fields=2, data=1)
            yield from self._grow(stack, root, depth - 1)
            while True:
                with stack.scope() as here:
                    short = here.empty()
                    for _ in range(self.value("short")):
                        short.new("Short", data=2)
                    for _ in range(self.value("mutation")):
                        self._swap(stack, root, depth)
                replaced = min(4, depth - 1)
                with stack.scope() as here:
                    parent = here.empty()
                    self._descend(parent, root, depth - replaced - 1)
                    fresh = here.new("Tree", fields=2, data=1)
                    yield from self._grow(stack, fresh, replaced - 1)
                    parent[self.up_to(2)] = fresh
                yield

    def _grow(self, stack: Stack, tree: Ref, depth: int) -> Iterator[None]:
        if depth < 1:
            return
        with stack.scope() as here:
            child = here.empty()
            for side in range(2):
                tree[side] = child.new("Tree", fields=2, data=1)
                yield from self._grow(stack, child, depth - 1)
        if depth % 5 == 0:
            yield

    def _descend(self, into: Ref, root: Ref, depth: int) -> None:
        """Descend at random by `depth` levels, or to a leaf."""
        into.be(root)
        for _ in range(depth):
            side = self.up_to(2)
            if not into.load(into, side):
                into.be(root)

    def _swap(self, stack: Stack, root: Ref, depth: int) -> None:
        """Let two grandchildren of a node change places: cousins, so that no tree ever gets into itself."""
        with stack.scope() as here:
            parent = here.empty()
            self._descend(parent, root, self.up_to(max(depth - 2, 1)))
            one, two = parent[0], parent[1]
            if one and two:
                left, right = one[0], two[1]
                one[0], two[1] = right, left


class Paraffins(Program):
    """After ``paraffins`` (D. A. Turner; the Id benchmark): all alkyl radicals up to some size, each made of three smaller ones.

    For once a real computation: a radical of n carbon atoms refers to three radicals that together have n - 1. So almost all of them refer, directly or
    not, to the few smallest, and one object, hydrogen, is referred to more often than all others together: *popular objects*.
    """

    name = "paraffins"
    title = "Paraffins: popular objects"
    about = "Radicals made of smaller ones: the smallest are referred to by almost all others."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("carbons", "Carbon atoms", 9, (2, 14), "atoms"),
        Knob("kept", "Results kept", 2, (1, 8), "results"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Compute, keep the result for a while, and begin anew."""
        with stack.scope() as whole:
            results = [whole.empty() for _ in range(8)]
            turn = 0
            while True:
                most = self.value("carbons")
                with stack.scope() as here:
                    # The lists of radicals by size: fields of one object, so that they are in the heap, too.
                    table = here.new("Table", fields=most + 1)
                    yield from self._compute(stack, table, most)
                    results[turn % self.value("kept")].be(table)
                for old in results[self.value("kept") :]:
                    old.be(None)
                turn += 1

    def _compute(self, stack: Stack, table: Ref, most: int) -> Iterator[None]:
        with stack.scope() as here:
            cell = here.new("Cell", fields=2)
            cell[0] = here.new("Hydrogen", data=1)
            table[0] = cell
        for size in range(1, most + 1):
            for i in range((size - 1) // 3 + 1):
                for j in range(i, (size - 1 - i) // 2 + 1):
                    yield from self._combine(stack, table, size, (i, j, size - 1 - i - j))

    def _combine(
        self, stack: Stack, table: Ref, size: int, parts: tuple[int, int, int]
    ) -> Iterator[None]:
        """Make all radicals of three lists; of two lists that are the same, each pair once."""
        i, j, k = parts
        with stack.scope() as here:
            one, two, three, radical, cell, taken = (here.empty() for _ in range(6))
            made = 0
            one.load(table, i)
            while one:
                two.be(one) if i == j else two.load(table, j)
                while two:
                    three.be(two) if j == k else three.load(table, k)
                    while three:
                        radical.new("Radical", fields=3, data=1)
                        for field, part in enumerate((one, two, three)):
                            taken.load(part, 0)
                            radical[field] = taken
                        cell.new("Cell", fields=2)
                        cell[0] = radical
                        taken.load(table, size)
                        cell[1] = taken
                        table[size] = cell
                        made += 1
                        if made % 16 == 0:
                            yield
                        three.load(three, 1)
                    two.load(two, 1)
                one.load(one, 1)
        yield


class LRUCache(Program):
    """A cache that drops the least recently used entry: a table and a doubly linked list. The oldest objects die."""

    name = "lru"
    title = "An LRU cache"
    about = "A table of entries in a doubly linked list; the entry used longest ago is dropped: the oldest die."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("live", "The cache", 35, (1, 80), "%"),
        Knob("hits", "Found in the cache", 60, (0, 100), "%"),
        Knob("data", "Words an entry", 6, (0, 100), "words"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Look things up."""
        newer, older, value = range(3)
        with stack.scope() as whole:
            head = whole.new("Entry", fields=3)
            tail, entry, next_, before = (whole.empty() for _ in range(4))
            tail.be(head)
            length = 0
            buckets = 64
            # Some entries by name, so that hits are not only at the ends.
            table = whole.new("Table", fields=buckets)
            while True:
                for _ in range(16):
                    data = self.value("data")
                    at = self.up_to(buckets)
                    if (
                        self.chance(self.value("hits"))
                        and entry.load(table, at)
                        and next_.load(entry, value)
                    ):
                        self._use(stack, entry, head, tail)
                        continue
                    entry.new("Entry", fields=3)
                    entry[value] = next_.new("Value", data=data)
                    entry[older] = head
                    head[newer] = entry
                    head.be(entry)
                    table[at] = entry
                    length += 1
                    words = 2 * HEADER_WORDS + 3 + data
                    while length * words * WORD_BYTES > self.live_bytes and not tail.same(head):
                        before.load(tail, newer)
                        before[older] = None
                        tail[newer] = None
                        tail[value] = None
                        tail.be(before)
                        length -= 1
                for one in (entry, next_, before):
                    one.be(None)
                yield

    def _use(self, stack: Stack, entry: Ref, head: Ref, tail: Ref) -> None:
        """Take an entry out of the list, and put it at the head."""
        newer, older = 0, 1
        if entry.same(head):
            return
        with stack.scope() as here:
            before, behind = here.empty(), here.empty()
            before.load(entry, newer)
            if entry.same(tail):
                tail.be(before)
            elif behind.load(entry, older):
                behind[newer] = before
            before[older] = behind
            entry[newer], entry[older] = None, head
            head[newer] = entry
            head.be(entry)


class Leak(Program):
    """A server that answers requests and forgets to deregister a listener now and then."""

    name = "leak"
    title = "A leak"
    about = "Requests come and go; some leave a listener registered for ever."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("leaked", "Requests that leak, of 1000", 20, (0, 1000), "requests"),
        Knob("size", "Objects a request", 12, (1, 200), "objects"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Answer requests."""
        with stack.scope() as whole:
            registry = whole.empty()
            while True:
                with stack.scope() as here:
                    request = here.new("Request", fields=1, data=2)
                    part, latest = here.empty(), here.empty()
                    latest.be(request)
                    for _ in range(self.value("size")):
                        part.new("Buffer", fields=1, data=1 + self.up_to(6))
                        latest[0] = part
                        latest.be(part)
                    if self.chance(self.value("leaked") / 10):
                        listener = here.new("Listener", fields=2, data=3)
                        listener[0] = registry
                        listener[1] = part
                        registry.be(listener)
                yield
