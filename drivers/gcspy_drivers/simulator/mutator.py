"""The operations of a program on a heap: make objects, load and store references, hold them in root slots.

A program never has an address: a collector may move objects whenever one is made. It has *slots*, numbered: those of each thread's stack, then
the globals. That is a machine with registers, so the same steps do the same on every collector, and two of them
can be compared. A more convenient interface is built on it in `programs`.

Deterministic: the result depends only on the calls. Random numbers come from `Mutator.dice`, made from a seed.

Knows the plan through its five operations. With a `Shadow` it keeps the graph a second time, for `verify`.
"""

from __future__ import annotations

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.access_log import AccessLog
from gcspy_drivers.simulator.heap import FIELDS_SHIFT, HEADER_WORDS, identity_of
from gcspy_drivers.simulator.plan import Plan
from gcspy_drivers.simulator.shadow import Shadow, ShadowObject
from gcspy_drivers.simulator.trace_recorder import TraceRecorder

__all__ = ["Mutator"]

_FIELDS_MASK = (1 << 16) - 1


class Mutator:
    """The program's side of a heap.

    Args:
        plan: Whose heap it uses; all root slots of the heap are this mutator's.
        seed: Of `dice`.
        shadow: Whether to keep the graph beside it, so that it can be verified.
        globals_: How many of the root slots are globals; the others are the threads' stacks, in equal parts.

    Attributes:
        plan: As given; may not be replaced.
        dice: Random numbers for the program.
        shadow: The graph, or None.
        stack_slots: Root slots of each thread's stack.
        accesses: Notes each access; None: nobody asks.
        recorder: Records each operation in an object trace; None: there is none.
    """

    def __init__(
        self, plan: Plan, *, seed: int = 1, shadow: bool = False, globals_: int = 0
    ) -> None:
        self.plan = plan
        self.heap = plan.heap
        self.accesses: AccessLog | None = None
        self.recorder: TraceRecorder | None = None
        self.dice = np.random.default_rng(seed)
        self.shadow = Shadow(len(plan.heap.roots)) if shadow else None
        self.stack_slots = (len(plan.heap.roots) - globals_) // plan.threads
        self.globals_start = self.stack_slots * plan.threads
        if globals_ < 0 or self.stack_slots < 1:
            raise LocalProtocolError(
                f"{len(plan.heap.roots)} root slots are too few for {plan.threads} threads and {globals_} globals: give the heap more"
            )

    def stack(self, thread: int) -> range:
        """Return the slots of a thread's stack."""
        return range(thread * self.stack_slots, (thread + 1) * self.stack_slots)

    @property
    def globals(self) -> range:
        """The slots of globals."""
        return range(self.globals_start, len(self.heap.roots))

    def new(
        self, slot: int, fields: int, data: int = 0, *, type_id: int = 0, thread: int = 0
    ) -> None:
        """Make an object with null fields and let a slot hold it.

        Args:
            data: Words of it that are no references.
            type_id: From `Heap.type_id`.
            thread: Whose allocation buffer is used.

        Raises:
            OutOfHeap: No collection made room.
        """
        size = self.heap.aligned(HEADER_WORDS + fields + data)
        cell = self.plan.alloc(thread, size, fields, type_id)
        if self.recorder is not None:
            self.recorder.made(thread, cell, size, type_id)
        self.plan.write_root(slot, cell)
        self._record()
        if self.accesses is not None:
            self.accesses.made(cell)
        if self.shadow is not None:
            number = self.heap.identities
            self.shadow.objects[number] = ShadowObject(size, type_id, [0] * fields)
            self.shadow.roots[slot] = number

    def load(self, to: int, slot: int, field: int) -> bool:
        """Copy the reference in a field of the object in `slot` to slot `to`; return whether it refers to an object."""
        holder = self._holder(slot, field)
        target = self.plan.read(holder, field)
        self.plan.write_root(to, target)
        self._record()
        if self.shadow is not None:
            self.shadow.roots[to] = self.shadow.objects[self.shadow.roots[slot]].fields[field]
        return target != 0

    def store(self, slot: int, field: int, value: int | None) -> None:
        """Let a field of the object in `slot` hold what the slot `value` holds, or null."""
        holder = self._holder(slot, field)
        target = 0 if value is None else int(self.heap.roots[value])
        if self.recorder is not None:
            self.recorder.stored(holder, field, target)
        self.plan.write(holder, field, target)
        self._record()
        if self.shadow is not None:
            self.shadow.objects[self.shadow.roots[slot]].fields[field] = (
                0 if value is None else self.shadow.roots[value]
            )

    def copy(self, to: int, slot: int) -> None:
        """Let slot `to` hold what `slot` holds."""
        self._settle()
        self.plan.write_root(to, int(self.heap.roots[slot]))
        self._record()
        if self.shadow is not None:
            self.shadow.roots[to] = self.shadow.roots[slot]

    def clear(self, slot: int) -> None:
        """Let a slot hold null."""
        self._settle()
        self.plan.write_root(slot, 0)
        self._record()
        if self.shadow is not None:
            self.shadow.roots[slot] = 0

    def finalise(self, kind: str, revive: int | None = None) -> None:
        """Give objects of a type that are made from now on a finaliser.

        Args:
            kind: Name of the type.
            revive: Slot in which the finaliser stores the object, which is reachable again then; None: it stores nothing.
        """
        type_id = self.heap.type_id(kind)

        def call(cell: int) -> None:
            if self.shadow is not None:
                number = identity_of(self.heap.words, cell)
                self.shadow.finalised.add(number)
                if revive is not None:
                    self.shadow.roots[revive] = number
            if revive is not None:
                self.plan.write_root(revive, cell)

        self.plan.finalise(type_id, call)
        if self.shadow is not None:
            self.shadow.finalisable.add(type_id)

    def refer_weakly(
        self, slot: int, target: int, *, calls_back: bool = False, thread: int = 0
    ) -> None:
        """Let a slot hold a new weak reference to the object in another slot; both slots differ. Its field, for a callback, is null."""
        self.new(slot, 1, type_id=self.heap.type_id("Weak reference"), thread=thread)
        roots = self.heap.roots
        self.plan.refer_weakly(int(roots[slot]), int(roots[target]), calls_back=calls_back)
        if self.shadow is not None:
            self.shadow.weak[self.shadow.roots[slot]] = self.shadow.roots[target]

    def load_weak(self, to: int, slot: int) -> bool:
        """Let slot `to` hold what the weak reference in `slot` refers to, or null if it was cleared; return whether it was not."""
        self._settle()
        target = self.plan.weak_target(int(self.heap.roots[slot]))
        self.plan.write_root(to, target)
        self._record()
        if self.shadow is not None:
            self.shadow.roots[to] = identity_of(self.heap.words, target) if target else 0
        return target != 0

    def holds(self, slot: int) -> bool:
        """Return whether a slot holds an object."""
        return bool(self.heap.roots[slot])

    def same(self, slot: int, other: int) -> bool:
        """Return whether two slots hold the same object."""
        self._settle()
        if self.accesses is not None:
            for one in (slot, other):
                self.accesses.touch(int(self.heap.roots[one]))
        return bool(self.heap.roots[slot] == self.heap.roots[other])

    def fields(self, slot: int) -> int:
        """Return how many fields the object in a slot has; 0 if it holds none."""
        self._settle()
        cell = int(self.heap.roots[slot])
        if self.accesses is not None:
            self.accesses.touch(cell)
        return (int(self.heap.words[cell]) >> FIELDS_SHIFT) & _FIELDS_MASK if cell else 0

    def _holder(self, slot: int, field: int) -> int:
        """Return the object in a slot, if it has this field."""
        self._settle()
        cell = int(self.heap.roots[slot])
        has = (int(self.heap.words[cell]) >> FIELDS_SHIFT) & _FIELDS_MASK if cell else 0
        if not 0 <= field < has:
            what = f"an object with {has} fields" if cell else "null"
            raise LocalProtocolError(
                f"field {field} of slot {slot}, which holds {what}: the program has a defect"
            )
        if self.accesses is not None:
            self.accesses.touch(cell)
        return cell

    def _record(self) -> None:
        """Record what an operation freed."""
        if self.recorder is not None:
            self.recorder.operated()

    def _settle(self) -> None:
        """End a collection during which the program must not run."""
        if self.plan.program_waits:
            self.plan.finish()
