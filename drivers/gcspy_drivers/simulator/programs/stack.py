"""References as a program likes to have them: names for root slots, which go with the scope they were made in.

    with stack.scope() as here:
        node = here.new("Node", fields=2, data=1)
        node[0] = other            # store a reference
        child = node[0]            # load one; `child` is a new slot of this scope
        if child: ...              # not null
        node.be(child)             # let the name stand for another object

A `Ref` is a slot, not an object: a collector that moves the object updates the slot, and the program notices nothing. Slots are few, as
registers are; a loop that loads opens a scope for each turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.mutator import Mutator

__all__ = ["Ref", "Scope", "Stack"]


class Ref:
    """A root slot, and through it an object, or null.

    Attributes:
        slot: The number of the slot, as `Mutator` has it.
    """

    __slots__ = ("_scope", "slot")

    def __init__(self, scope: Scope, slot: int) -> None:
        self._scope = scope
        self.slot = slot

    def __bool__(self) -> bool:
        return self._scope.mutator.holds(self.slot)

    def __len__(self) -> int:
        return self._scope.mutator.fields(self.slot)

    def __getitem__(self, field: int) -> Ref:
        found = self._scope.empty()
        self._scope.mutator.load(found.slot, self.slot, field)
        return found

    def __setitem__(self, field: int, value: Ref | None) -> None:
        self._scope.mutator.store(self.slot, field, None if value is None else value.slot)

    def load(self, holder: Ref, field: int) -> bool:
        """Stand for what a field of `holder` holds; tell whether that is an object. Takes no new slot."""
        return self._scope.mutator.load(self.slot, holder.slot, field)

    def be(self, other: Ref | None) -> None:
        """Stand for another object, or for none."""
        if other is None:
            self._scope.mutator.clear(self.slot)
        else:
            self._scope.mutator.copy(self.slot, other.slot)

    def weak(self, target: Ref, *, calls_back: bool = False) -> Ref:
        """Stand for a new weak reference to another object; return itself. Only with a collector that has these."""
        self._scope.make_weak(self.slot, target.slot, calls_back=calls_back)
        return self

    def load_weak(self, weak: Ref) -> bool:
        """Stand for what a weak reference refers to; tell whether that is still there."""
        return self._scope.mutator.load_weak(self.slot, weak.slot)

    def same(self, other: Ref) -> bool:
        """Return whether both are the same object."""
        return self._scope.mutator.same(self.slot, other.slot)

    def new(self, kind: str = "object", *, fields: int = 0, data: int = 0) -> Ref:
        """Stand for a new object; return itself. Takes no new slot."""
        self._scope.make(self.slot, kind, fields, data)
        return self


class Scope:
    """Slots that are given back, and cleared, when it ends: see `Stack.scope`."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._first = stack.depth
        self.mutator = stack.mutator

    def empty(self) -> Ref:
        """Return a name for nothing yet."""
        return Ref(self, self._stack.push())

    def new(self, kind: str = "object", *, fields: int = 0, data: int = 0) -> Ref:
        """Make an object.

        Args:
            kind: Its type.
            fields: How many references it has; they are null.
            data: How many words it has besides.
        """
        return self.empty().new(kind, fields=fields, data=data)

    def make(self, slot: int, kind: str, fields: int, data: int) -> None:
        """Make an object in a slot."""
        self.mutator.new(
            slot, fields, data, type_id=self.mutator.heap.type_id(kind), thread=self._stack.thread
        )

    def make_weak(self, slot: int, target: int, *, calls_back: bool) -> None:
        """Make a weak reference in a slot."""
        self.mutator.refer_weakly(slot, target, calls_back=calls_back, thread=self._stack.thread)

    def close(self) -> None:
        """Give the slots back."""
        self._stack.pop(self._first)


class Stack:
    """The slots of one thread.

    Args:
        thread: Which; its number picks the allocation buffer, too.

    Attributes:
        depth: Slots in use.
    """

    def __init__(self, mutator: Mutator, thread: int = 0) -> None:
        self.mutator = mutator
        self.thread = thread
        self.depth = 0
        self._slots = mutator.stack(thread)

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Open a scope: what is made in it is dropped at its end."""
        scope = Scope(self)
        try:
            yield scope
        finally:
            scope.close()

    def finalise(self, kind: str, revive: Ref | None = None) -> None:
        """Give objects of a type that are made from now on a finaliser, which may store the object in a name."""
        self.mutator.finalise(kind, None if revive is None else revive.slot)

    def push(self) -> int:
        """Take a slot."""
        if self.depth >= len(self._slots):
            raise LocalProtocolError(
                f"thread {self.thread} has {len(self._slots)} root slots, and all are in use: open a scope where references are loaded in a loop"
            )
        self.depth += 1
        return self._slots[self.depth - 1]

    def pop(self, depth: int) -> None:
        """Clear and release all slots above the given depth."""
        for slot in self._slots[depth : self.depth]:
            self.mutator.clear(slot)
        self.depth = depth
