"""Mark-sweep with ambiguous roots: words that may be references or numbers, and keep alive whatever they seem to refer to.

A collector without help from the compiler does not know which words of a stack are references. It takes each word that is the address of an object for
one. So what it finds cannot be moved, since a number must not be changed, and some garbage is kept: by numbers that look like addresses, and by
words of calls that returned long ago and were not overwritten yet.

Source: H.-J. Boehm and M. Weiser, Garbage collection in an uncooperative environment, Software: Practice and Experience 18(9), 1988; H.-J. Boehm,
Bounding space usage of conservative garbage collectors, POPL 2002. Different here: the program's own root slots are known exactly, and the ambiguous
words stand beside them: `stale` words of old stack frames, each of which keeps what a root slot held when it was overwritten, and `numbers` numbers
that never change. Only addresses of the beginnings of objects count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.facts import AmbiguousWords
from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.loops import Words
from gcspy_drivers.simulator.plan import Collection, Phase
from gcspy_drivers.simulator.plans.marksweep import MarkSweep

__all__ = ["Conservative"]

_MOST: Final = 4096
_FACTOR, _ADDEND, _BITS = 1103515245, 12345, 31


class Conservative(MarkSweep):
    """Mark-sweep that also takes ambiguous words for roots.

    Args:
        stale: Words of old stack frames.
        numbers: Numbers that look like addresses in the heap.
        lists: As in `MarkSweep`, and so are the others.
    """

    name = "conservative"
    title = "Conservative mark-sweep"
    exact = False
    kinds: ClassVar = {"full": ("roots", "ambiguous words", "mark", "sweep")}

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        stale: int = 16,
        numbers: int = 8,
        lists: int = 32,
        fit: str = "first",
        order: str = "lifo",
        coalesce: bool = True,
    ) -> None:
        if not 0 <= stale <= _MOST or not 0 <= numbers <= _MOST:
            raise LocalProtocolError(
                f"{stale} words of old frames and {numbers} numbers: give 0 to {_MOST:,} each"
            )
        super().__init__(
            heap, threads=threads, lists=lists, fit=fit, order=order, coalesce=coalesce
        )
        self._words: Words = np.zeros(stale + numbers, dtype=np.int64)
        self._stale = stale
        self._dice = 1
        self._next = 0
        self._held = 0
        for place in range(stale, stale + numbers):
            self._words[place] = heap.start + self._throw(heap.end - heap.start)

    def _throw(self, below: int) -> int:
        """A number below this one, always the same ones: the program's dice are not for its collector."""
        self._dice = (self._dice * _FACTOR + _ADDEND) & ((1 << _BITS) - 1)
        return (self._dice >> 8) % below

    def write_root(self, slot: int, target: int) -> None:
        """Store; what was there stays in some word of an old frame, until that is overwritten."""
        old = int(self.heap.roots[slot])
        if old and self._stale:
            self._words[self._throw(self._stale)] = old
        super().write_root(slot, target)

    def ambiguous(self) -> AmbiguousWords:
        """Return the ambiguous words, and which of them are the address of an object now."""
        objects = self.objects().cells
        return AmbiguousWords(self._words.copy(), np.isin(self._words, objects), self._stale)

    def _begin(self, kind: str) -> Sequence[Phase]:
        roots, mark, sweep = super()._begin(kind)
        self._next = self._held = 0
        self._targets = np.where(self.ambiguous().objects, self._words, 0)
        return roots, Phase("ambiguous words", self._scan, "words"), mark, sweep

    def _scan(self, limit: int) -> int:
        """Shade what at most this many ambiguous words seem to refer to."""
        behind = min(self._next + limit, len(self._targets))
        for cell in self._targets[self._next : behind].tolist():
            if cell:
                self._held += 1
                self._marking.shade(cell)
        done, self._next = behind - self._next, behind
        return done

    def _end(self, collection: Collection) -> None:
        super()._end(collection)
        collection.counts["ambiguous words that hold an object"] = self._held
