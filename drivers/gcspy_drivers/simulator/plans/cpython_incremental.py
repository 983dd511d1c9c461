"""CPython's incremental collector, which 3.14.0 to 3.14.4 had: counts of references, a young list, and two old ones, of which a part is collected at a time.

Counting is as before (`cpython`). Cycles are looked for in *increments*: all young containers, and some of the *pending* old ones. An increment takes containers from the
front of the pending list, each with all pending ones that it reaches, until it is as large as the work to do; that is found from the number of new containers and the size of
the heap. What survives goes into the *visited* list. When nothing is pending, a scavenge is over: the two lists change their names, and the next one begins by
*marking*: what the roots reach is moved to the visited list without looking for cycles in it, as it is in use.

So a collection stops the program for a part of the heap. A garbage cycle stays until its turn comes, and an increment has no greatest size: one container may reach all others. Memory use
rose in some programs; 3.14.5 went back to generations.

Source: CPython 3.14, `Python/gc.c`, and `InternalDocs/garbage_collector.md` there: `gc_collect_increment`, `assess_work_to_do`, `mark_at_start`,
`completed_scavenge`. As there, what is marked at the start of a scavenge is taken off the work to do twice. Different here: roots are the slots of the
program, which are all read again in each increment, while CPython leaves out frames that were read before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from gcspy_drivers.simulator.facts import Generations
from gcspy_drivers.simulator.heap import Heap, age_of, fields_of, set_age
from gcspy_drivers.simulator.plan import FULL, Collection, Phase
from gcspy_drivers.simulator.plans.cpython import (
    GENERATION,
    INCREMENT,
    REACHED,
    REGION_PHASES,
    CPython,
)
from gcspy_drivers.simulator.policies.counted_lists import CURSOR, DONE, reach, unlink

__all__ = ["CPythonIncremental"]

INCREMENTS: Final = "increment"
_PENDING, _VISITED = 1, 2
"""Labels of objects in the old lists; young ones have 0."""
_SCAN_RATE_DIVISOR: Final = 10


class CPythonIncremental(CPython):
    """Counts and increments, as in CPython 3.14.0 to 3.14.4.

    Args:
        threshold0: New containers that begin an increment; 0: never.
        threshold1: The larger, the smaller the part of the heap that belongs to the work to do.
        lists: As in `FreeListSpace`.

    Attributes:
        work_to_do: Containers that the next increment takes at least, as far as there are so many.
    """

    name = "cpython-incremental"
    title = "CPython 3.14.0: counts and increments"
    generation_names: ClassVar = ("young", "pending", "visited")
    kinds: ClassVar = {
        INCREMENTS: ("mark", "grow", *REGION_PHASES),
        FULL: (*REGION_PHASES, "merge"),
    }

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        threshold0: int = 2000,
        threshold1: int = 10,
        lists: int = 32,
    ) -> None:
        super().__init__(
            heap, threads=threads, threshold0=threshold0, threshold1=threshold1, threshold2=0, lists=lists
        )  # fmt: skip
        self.work_to_do = 0
        self._heap_size = 0
        self._old = [GENERATION + 1, GENERATION + 2]
        self._marks = True
        self._marks_only = False
        self._increment_size = self._marked = 0

    def alloc(self, thread: int, size: int, fields: int, type_id: int) -> int:
        """Make an object, after an increment if one is due."""
        cell = super().alloc(thread, size, fields, type_id)
        self._heap_size += bool(fields)
        return cell

    @property
    def _pending(self) -> int:
        return self._old[0]

    @property
    def _visited(self) -> int:
        return self._old[1]

    def _heads(self) -> Sequence[int]:
        return GENERATION, self._pending, self._visited

    def generations(self) -> Generations:
        """Return what each list has; the work to do is the count of the pending one."""
        lists = self._lists
        return Generations(
            names=self.generation_names,
            objects=tuple(len(lists.members(head)) for head in self._heads()),
            counts=(self._counts[0], max(0, self.work_to_do), 0),
            thresholds=tuple(self._thresholds),
            collections=tuple(self._collections),
            collected=tuple(self._collected),
        )

    def _forget(self, freed: int) -> None:
        super()._forget(freed)
        self._heap_size -= freed

    def _collect_if_due(self) -> None:
        count, threshold = self._counts[0], self._thresholds[0]
        if 0 < threshold < count:
            self.collect(INCREMENTS, f"{count:,} new containers")

    def _survived(self, objects: int) -> None:
        return

    @property
    def _scale(self) -> int:
        return max(2, self._thresholds[1])

    def _assess_work(self) -> None:
        """Add to the work to do: new containers, and a part of the heap, at most one and a half times as many."""
        new, self._counts[0] = self._counts[0], 0
        part = self._heap_size // _SCAN_RATE_DIVISOR // self._scale
        self.work_to_do += new + min(part, new * 3 // 2)

    def _begin(self, kind: str) -> Sequence[Phase]:
        lists = self._lists
        self._to_label = _VISITED
        self._increment_size = self._marked = 0
        self._to = self._visited
        if kind == FULL:
            self._generation = 2
            self._marks_only = False
            lists.merge(GENERATION, self._pending)
            lists.relabel(self._pending, _VISITED)
            lists.merge(self._pending, self._visited)
            self._counts = [0, 0, 0]
            self._from = self._visited
            merging = Phase("merge", self._space.merge, "cells", self._space.begin_sweep)
            return [*self._region_phases(), merging]
        self._generation = 1
        self._assess_work()
        self._marks_only, self._from = self._marks, INCREMENT
        return [
            Phase("mark", self._mark, "objects", self._read_roots),
            Phase("grow", self._grow, "objects", self._take_young),
            *self._region_phases(),
        ]

    def _read_roots(self) -> None:
        """Move what roots refer to out of the lists that are not visited yet."""
        words, lists = self.heap.words, self._lists
        for cell in self.heap.roots.tolist():
            if cell and fields_of(words, cell) and age_of(words, cell) != _VISITED:
                self._move(cell, REACHED)
                self._marked += 1
        lists.rewind(REACHED)

    def _move(self, cell: int, head: int) -> None:
        unlink(self._lists.before, self._lists.after, cell)
        self._lists.add(head, cell)
        set_age(self.heap.words, cell, _VISITED)

    def _reach(self, source: int, target: int, limit: int) -> tuple[int, int]:
        """Follow references of a list; return how many objects were found, and how many were followed."""
        lists = self._lists
        found = reach(
            self.heap.words, lists.before, lists.after, source, _VISITED, target, lists.state, limit
        )  # fmt: skip
        return found, int(lists.state[DONE])

    def _mark(self, limit: int) -> int:
        found, done = self._reach(REACHED, self._visited, limit)
        self._marked += found
        return done

    def _take_young(self) -> None:
        """Account for what was marked; the increment begins with all young containers."""
        lists = self._lists
        self.work_to_do -= self._marked * (2 if self._marks_only else 1)
        self._left = 0
        if not self._marks_only:
            self._increment_size = lists.relabel(GENERATION, _VISITED)
            lists.merge(GENERATION, INCREMENT)
        lists.state[CURSOR] = INCREMENT

    def _grow(self, limit: int) -> int:
        """Take pending containers, each with all that it reaches."""
        done, state = 0, self._lists.state
        while done < limit and not self._marks_only:
            if state[CURSOR] != INCREMENT:
                found, followed = self._reach(INCREMENT, INCREMENT, limit - done)
                self._increment_size += found
                done += followed
                continue
            cell = self._lists.first(self._pending)
            if not cell or self._increment_size >= self.work_to_do:
                break
            self._move(cell, INCREMENT)
            self._increment_size += 1
            state[CURSOR] = cell
        return done

    def _end(self, collection: Collection) -> None:
        super()._end(collection)
        self._lists.whiten(GENERATION)
        if self._marks_only:
            self._marks = False
            collection.counts["marked objects"] = self._marked
            return
        if collection.kind == FULL:
            self._complete()
            return
        collection.counts["increment"] = self._increment_size
        self.work_to_do += self._heap_size // _SCAN_RATE_DIVISOR // self._scale
        self.work_to_do -= self._increment_size
        if not self._lists.first(self._pending):
            self._complete()

    def _complete(self) -> None:
        """End a scavenge: all that is old is pending again, and the next increment marks."""
        self._old.reverse()
        self._lists.relabel(self._pending, _PENDING)
        self.work_to_do = 0
        self._marks = True
