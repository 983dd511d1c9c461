"""`EventCopies`: what a stub copies at an event of a CPython, and what that says.

The same readers that read the target read the copies. For objects, pages are copied (`heap_mirror`).
Several interpreters are not copied either:
only what the interpreter's lock protects is of one moment, and others may have locks of their own.

Knows the target and the copies; does not know spaces, or how copies arrive.
"""

from __future__ import annotations

from gcspy_drivers.cooperative.ring_buffer import CopyPlan, EventCopy
from gcspy_drivers.cpython.collector.generations import ranges_of, read_generations
from gcspy_drivers.cpython.collector.interpreters import Interpreter
from gcspy_drivers.cpython.pymalloc.copied_pools import CopiedPools
from gcspy_drivers.cpython.target import InterpreterReading, PymallocHeap, Target
from gcspy_drivers.remote.address import Addr

__all__ = ["EventCopies"]

_MOST_OWNERS = 1


class _Copied:
    """The copied pieces as a memory."""

    def __init__(self, copy: EventCopy) -> None:
        self._ranges = copy.ranges

    def try_read(self, addr: int, size_bytes: int, /) -> bytes | None:
        for (begin, size), content in self._ranges.items():
            if begin <= addr and addr + size_bytes <= begin + size:
                return content[addr - begin : addr - begin + size_bytes]
        return None


class EventCopies:
    """Plans and reads the copies of one target.

    Args:
        target: The target.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._interpreter: Interpreter | None = None
        self._ranges: tuple[tuple[int, int], ...] | None = None
        self._pools: CopiedPools | None = None
        self._owner = 0
        self._incomplete = False

    def plan(self, interpreters: tuple[Interpreter, ...], *, pools: bool) -> CopyPlan | None:
        """Return what is to be copied; None: events of this target are not gathered from copies.

        Args:
            interpreters: As `Target.interpreters` listed them.
            pools: Whether pools are requested.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        if len(interpreters) != 1:
            return None
        if interpreters[0] != self._interpreter or self._ranges is None or self._incomplete:
            self._look(interpreters)
        if self._ranges is None:
            return None
        if not pools or self._pools is None:
            return CopyPlan(self._ranges)
        return CopyPlan(self._ranges + self._pools.ranges, self._pools.plan)

    def _look(self, interpreters: tuple[Interpreter, ...]) -> None:
        """Find what is to be copied."""
        target = self._target
        self._interpreter, self._incomplete = interpreters[0], False
        gc = Addr(interpreters[0].address + target.layout.interpreter_gc)
        self._ranges = ranges_of(target.memory, gc, target.layout.gc)
        places = target.places(interpreters)
        self._owner, self._pools = 0, None
        if len(places) > _MOST_OWNERS:
            self._ranges = None
        elif places:
            self._owner, place = places[0]
            self._pools = CopiedPools(target.geometry, place)

    def heaps(self, copy: EventCopy) -> tuple[PymallocHeap, ...] | None:
        """Return the states of pymalloc at an event; None: they were not copied."""
        if copy.plan.pools is None or self._pools is None or copy.plan.pools != self._pools.plan:
            return None
        reading = self._pools.read(copy)
        if reading is None:
            self._incomplete = True  # it may have moved: a table found by the search can
            return None
        return (PymallocHeap(owner=self._owner, reading=reading),)

    def generations(self, copy: EventCopy) -> tuple[InterpreterReading, ...]:
        """Return the collectors at an event."""
        interpreter = self._interpreter
        if interpreter is None:
            return ()
        layout = self._target.layout
        gc = Addr(interpreter.address + layout.interpreter_gc)
        return (
            InterpreterReading(interpreter.ident, read_generations(_Copied(copy), gc, layout.gc)),
        )
