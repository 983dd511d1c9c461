"""No collector: objects are allocated one behind the other until the heap is full (after Epsilon, JEP 318, and mmtk's NoGC).

It shows all that a program allocates, and has the fastest allocation: a baseline for comparing the other plans.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcspy_drivers.simulator.heap import WORD_BYTES, Heap
from gcspy_drivers.simulator.plan import Knob, Plan, PlanSpace, heap_knob
from gcspy_drivers.simulator.policies.bump import BumpSpace

__all__ = ["NoGC"]


class NoGC(Plan):
    """Bump allocation, from a buffer a thread.

    Args:
        buffer_bytes: Size of a thread's allocation buffer.
    """

    name = "nogc"
    title = "No collection"
    exact = False

    def __init__(self, heap: Heap, *, threads: int = 1, buffer_bytes: int = 4096) -> None:
        super().__init__(heap, threads=threads)
        self._space = BumpSpace(
            heap, heap.start, heap.end, threads=threads, buffer_bytes=buffer_bytes
        )

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        return self._space.allocate(thread, size, status, identity)

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        return 0

    def spaces(self) -> Sequence[PlanSpace]:
        """One: the whole heap."""
        return [PlanSpace("Heap", "bump", self.heap.start, self._space.end, self._space.top)]

    def knobs(self) -> Sequence[Knob]:
        """Size of the heap."""
        return (heap_knob(self.heap, self._space.end),)

    def _turn(self, name: str, value: int | str) -> None:
        self._space.end = max(
            self.heap.start + self.heap.aligned(int(value) // WORD_BYTES), self._space.top
        )

    def used_words(self) -> int:
        """All that was given out."""
        return self._space.used_words
