"""Costs of a simulated collector: pauses, throughput, minimum mutator utilisation, memory.

A simulation has no time of its own, and the time that Python takes says nothing about a collector. So time is counted in *words*: the time in which the
program allocates one. What a unit of a collector's work costs is a model, `UNIT_TENTHS`: the order of magnitude is that of memory accesses, not of a
measurement. The same model is used for all collectors, so that they can be compared.

Source: P. Cheng and G. E. Blelloch, A parallel, real-time garbage collector, PLDI 2001, for the minimum mutator utilisation: the least share of the
time that the program has in any window of a length.

Knows plans and their reports; does not know spaces.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.simulator.heap import WORD_BYTES
from gcspy_drivers.simulator.loops import Words
from gcspy_drivers.simulator.plan import Collection, CollectionListener, Plan

__all__ = ["UNIT_TENTHS", "CostMeter"]

UNIT_TENTHS: Final = {"roots": 1, "words": 1, "stacks": 60, "cells": 3, "roots and cells": 3}
"""Tenths of a word's time for a unit of a phase; an object, marked or copied, is `_OBJECT_TENTHS`."""
_OBJECT_TENTHS: Final = 15
_MOST_PAUSES: Final = 1 << 16


class CostMeter(CollectionListener):
    """The costs of one plan, as its listener.

    Args:
        plan: The collector.

    Attributes:
        next: Is told everything after it.
        starts: When each pause began, in words; `lengths`: how long each was, in tenths of words.
        collector_tenths: Time of the collector, in tenths of words.
        collections: How many have ended.
        most_bytes: Most memory that was in use when a collection began or ended.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.next = CollectionListener()
        self.starts: list[int] = []
        self.lengths: list[int] = []
        self.collector_tenths = 0
        self.collections = 0
        self.most_bytes = 0
        self._seen = 0
        self._at = -1

    def collection_starts(self, collection: Collection) -> None:
        """Nothing was done yet."""
        self._seen = 0
        self.most_bytes = max(self.most_bytes, collection.used_before * WORD_BYTES)
        self.next.collection_starts(collection)

    def phase_starts(self, collection: Collection, phase: str) -> None:
        """Nothing of the phase was done yet."""
        self._seen = sum(collection.work.values())
        self.next.phase_starts(collection, phase)

    def progress(self, collection: Collection, phase: str, done: int) -> None:
        """A bit of a phase was done."""
        self._note(collection)
        self.next.progress(collection, phase, done)

    def phase_ends(self, collection: Collection, phase: str) -> None:
        """A phase is over."""
        self._note(collection)
        self.next.phase_ends(collection, phase)

    def collection_ends(self, collection: Collection) -> None:
        """Everything was done."""
        self.collections += 1
        self.most_bytes = max(self.most_bytes, self._plan.used_words() * WORD_BYTES)
        self.next.collection_ends(collection)

    def _note(self, collection: Collection) -> None:
        total = sum(collection.work.values())
        done, self._seen = total - self._seen, total
        tenths = done * UNIT_TENTHS.get(self._plan.unit, _OBJECT_TENTHS)
        if not tenths:
            return
        allocated = self._plan.heap.allocated_words
        if allocated == self._at:  # the program did nothing since: the pause goes on
            self.lengths[-1] += tenths
        else:
            self.starts.append(10 * allocated + self.collector_tenths)
            self.lengths.append(tenths)
            self._at = allocated
            if len(self.starts) > _MOST_PAUSES:
                del self.starts[: _MOST_PAUSES // 2], self.lengths[: _MOST_PAUSES // 2]
        self.collector_tenths += tenths

    @property
    def total_tenths(self) -> int:
        """Time of program and collector, in tenths of words."""
        return 10 * self._plan.heap.allocated_words + self.collector_tenths

    @property
    def throughput_percent(self) -> float:
        """The program's share of the time."""
        total = self.total_tenths
        return 100 * (total - self.collector_tenths) / total if total else 100.0

    def latest_pauses(self, count: int) -> Words:
        """The latest pauses in words, the latest last; 0 where there were fewer; a copy."""
        found = np.zeros(count, dtype=np.int64)
        latest = self.lengths[-count:]
        if latest:
            found[-len(latest) :] = -(-np.array(latest, dtype=np.int64) // 10)
        return found

    def longest_pauses(self, count: int) -> Words:
        """The longest pauses in words, the longest first; 0 where there were fewer; a copy."""
        found = np.zeros(count, dtype=np.int64)
        longest = np.sort(np.array(self.lengths, dtype=np.int64))[::-1][:count]
        found[: len(longest)] = -(-longest // 10)
        return found

    @property
    def longest_words(self) -> int:
        """The longest pause in words."""
        return -(-max(self.lengths, default=0) // 10)

    def utilisation_percent(self, windows: Words) -> NDArray[np.float64]:
        """The minimum mutator utilisation for windows of these lengths in words; NaN: the run is shorter; a copy."""
        starts = np.array(self.starts, dtype=np.float64)
        lengths = np.array(self.lengths, dtype=np.float64)
        found = np.full(len(windows), 100.0)
        first = starts[0] if len(starts) == _MOST_PAUSES else 0.0
        total = self.total_tenths
        found[windows * 10 > total - first] = np.nan
        if not len(starts):
            return found
        ends = starts + lengths
        before = np.concatenate(([0.0], np.cumsum(lengths)))

        def paused_until(moments: NDArray[np.float64]) -> NDArray[np.float64]:
            place = np.searchsorted(starts, moments, side="right")
            last = np.maximum(place - 1, 0)
            beyond = np.where(place > 0, np.maximum(ends[last] - moments, 0.0), 0.0)
            paused: NDArray[np.float64] = before[place] - beyond
            return paused

        for place, window in enumerate((windows * 10).tolist()):
            if np.isnan(found[place]):
                continue
            # The worst window begins with a pause, or ends with one.
            begins = np.concatenate((starts, ends - window))
            begins = np.clip(begins, first, total - window)
            worst = float((paused_until(begins + window) - paused_until(begins)).max())
            found[place] = 100 * (1 - worst / window)
        return found
