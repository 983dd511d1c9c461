"""Mark-compact: reachable objects are marked and then slid to the beginning of the heap, in their order; allocation is from one end.

Source: the Lisp-2 algorithm (`policies/sliding.py` cites the sources and lists the differences).
RJVM used it for its old generation by default, and is the second of the drivers in section 5.6 of
the GCspy paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gcspy_drivers.simulator.heap import WORD_BYTES, Heap
from gcspy_drivers.simulator.plan import FULL, Collection, Knob, Phase, Plan, PlanSpace
from gcspy_drivers.simulator.policies.bump import BumpSpace
from gcspy_drivers.simulator.policies.marking import Marking
from gcspy_drivers.simulator.policies.sliding import Sliding

__all__ = ["MarkCompact"]


class MarkCompact(Plan):
    """One space that is filled from its start.

    Args:
        buffer_bytes: Size of a thread's allocation buffer; 0: threads share the top.
    """

    name = "markcompact"
    title = "Mark-compact"
    moves = True
    kinds: ClassVar = {FULL: ("roots", "mark", "forward", "update", "move")}

    def __init__(self, heap: Heap, *, threads: int = 1, buffer_bytes: int = 256) -> None:
        super().__init__(heap, threads=threads)
        self._space = BumpSpace(
            heap, heap.start, heap.end, threads=threads, buffer_bytes=buffer_bytes
        )
        self._marking = Marking(heap)
        self._sliding = Sliding(heap)

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        return self._space.allocate(thread, size, status, identity)

    def _begin(self, kind: str) -> Sequence[Phase]:
        space, marking, sliding = self._space, self._marking, self._sliding
        space.retire()
        marking.begin()
        sliding.begin([(space.start, self.heap.end, space.top)])
        return (
            Phase("roots", marking.roots, "roots"),
            Phase("mark", marking.trace),
            Phase("forward", sliding.plan, "cells", sliding.rewind),
            Phase("update", sliding.update, "roots and cells", sliding.rewind),
            Phase("move", sliding.slide, "cells", sliding.rewind),
        )

    def _end(self, collection: Collection) -> None:
        objects, words = self._sliding.moved
        live = self._sliding.live_words
        collection.counts.update(
            {
                "moved objects": objects,
                "moved words": words,
                "freed words": collection.used_before - live,
            }
        )
        self._space.reset(int(self._sliding.news[0]))

    def spaces(self) -> Sequence[PlanSpace]:
        """One: the whole heap."""
        return [PlanSpace("Heap", "bump", self._space.start, self.heap.end, self._space.top)]

    def used_words(self) -> int:
        """Words given out, garbage included."""
        return self._space.used_words

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the heap size, which determines when the heap is collected."""
        size, whole = self._space.end - self._space.start, self.heap.end - self.heap.start
        return (
            Knob(
                "heap",
                "Heap",
                size * WORD_BYTES,
                (whole // 8 * WORD_BYTES, whole * WORD_BYTES),
                "bytes",
            ),
        )

    def _turn(self, name: str, value: int | str) -> None:
        self._space.end = self._space.start + int(value) // WORD_BYTES
