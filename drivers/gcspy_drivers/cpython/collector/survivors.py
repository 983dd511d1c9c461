"""The survivors of a generation's last collection, as far as the collector's own numbers show them.

CPython keeps two such numbers: how many objects survived the last full collection, and how many
have moved from collections of the middle generation to the oldest since. So survivors of a full
collection are always known. Those of the middle generation are known if exactly one of its
collections, and no full one, lies between two samples. For the young generation CPython keeps
nothing: its survivors are known only if its list was counted just before and just after a
collection, which requires exact events and level 3. Otherwise they are reported as unknown.

Knows numbers, and neither memory nor spaces. Source: CPython 3.9 to 3.13 gc_collect_main, 3.14.5 to 3.15 Python/gc.c:
``long_lived_total``, ``long_lived_pending``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.collector.generations import GENERATIONS, Generations

__all__ = ["Survivors", "full_collection_waits_for"]

_OLD, _MIDDLE = 2, 1
_WAITS_FOR_SHARE = 4

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Survivors:
    """The last collections of one interpreter.

    Attributes:
        survivors: (3,) tracked objects that the last collection of each generation left alive.
        survivors_known: (3,) whether that is known; the number is 0 if not.
        examined: (3,) objects that it examined: those of the generation, and of all younger ones.
        examined_known: (3,) the same.
    """

    def __init__(self) -> None:
        self.survivors: I64 = np.zeros(GENERATIONS, dtype=np.int64)
        self.survivors_known: Mask = np.zeros(GENERATIONS, dtype=np.bool_)
        self.examined: I64 = np.zeros(GENERATIONS, dtype=np.int64)
        self.examined_known: Mask = np.zeros(GENERATIONS, dtype=np.bool_)
        self._before: Generations | None = None

    def look(self, now: Generations | None) -> None:
        """Take the collector's numbers; the more often, the more is known. None: they could not be read."""
        before, self._before = self._before, now
        if now is None:
            return
        if before is None:
            self._forget(np.ones(GENERATIONS, dtype=np.bool_))
            if now.collections[_OLD]:
                self._set(_OLD, now.long_lived, None)
            return
        more = now.collections - before.collections
        self._forget(more != 0)
        gone = now.collected - before.collected + now.uncollectable - before.uncollectable
        if more[_OLD]:
            self._set(_OLD, now.long_lived, int(gone[_OLD]) if more[_OLD] == 1 else None)
        elif more[_MIDDLE] == 1:
            self._set(_MIDDLE, now.pending - before.pending, int(gone[_MIDDLE]))

    def compare(self, generation: int, before: I64, after: I64) -> None:
        """Use the lengths of the lists just before a collection and just after it; they are more exact than `look`.

        Args:
            generation: Which generation was collected.
            before: (3,) objects in each generation.
            after: (3,) the same after it.
        """
        target = min(generation + 1, _OLD)
        there = int(before[target]) if target != generation else 0
        self._set(generation, int(after[target]) - there, None)
        self.examined[generation] = int(before[: generation + 1].sum())
        self.examined_known[generation] = True

    def _forget(self, which: Mask) -> None:
        for numbers, known in (
            (self.survivors, self.survivors_known),
            (self.examined, self.examined_known),
        ):
            numbers[which] = 0
            known[which] = False

    def _set(self, generation: int, survivors: int, gone: int | None) -> None:
        if survivors < 0:
            return  # two numbers that were read while they changed
        self.survivors[generation] = survivors
        self.survivors_known[generation] = True
        if gone is not None:
            self.examined[generation] = survivors + gone
            self.examined_known[generation] = True


def full_collection_waits_for(now: Generations) -> int:
    """Return how many objects must have been moved to the oldest generation before it is collected.

    Its threshold is not enough: it is collected only when ``pending`` is at least this, so that the work of full collections
    stays in proportion to the heap.
    """
    return now.long_lived // _WAITS_FOR_SHARE
