"""Defects, planted in real collectors: each must be caught, or `verify` and the suite prove nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from gcspy_drivers.simulator.heap import SIZE_MASK, Heap
from gcspy_drivers.simulator.plan import Phase, Plan
from gcspy_drivers.simulator.plans.marksweep import MarkSweep

from tests.drivers.simulator.variants import HEAP_BYTES, ROOTS, over, run_at_random, wrong_of


class MissesARoot(MarkSweep):
    """Never looks at the last root slot."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        roots, mark, sweep = super()._begin(kind)

        def all_but_one(limit: int) -> int:
            last, self.heap.roots[-1] = int(self.heap.roots[-1]), 0
            done = roots.work(limit)
            self.heap.roots[-1] = last
            return done

        return roots._replace(work=all_but_one), mark, sweep


class StopsMarkingEarly(MarkSweep):
    """Takes a phase for over when one grey object is left."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        roots, mark, sweep = super()._begin(kind)
        return roots, mark._replace(work=lambda limit: mark.work(min(limit, self._marking.grey))), sweep


class FreesTwice(MarkSweep):
    """Gives a cell back that is free already: two objects will get it."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        roots, mark, sweep = super()._begin(kind)

        def twice(limit: int) -> int:
            done = sweep.work(limit)
            cells = self._space.lists().cells
            if done < limit and len(cells):
                self._space.give_back(int(cells[0]), int(self.heap.words[cells[0]] & SIZE_MASK))
            return done

        return roots, mark, sweep._replace(work=twice)


class OverlapsFreeCells(MarkSweep):
    """Takes cells for one word larger than they are when it frees them."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        roots, mark, sweep = super()._begin(kind)

        def larger(limit: int) -> int:
            done = sweep.work(limit)
            lists = self._space.lists()
            if done < limit and len(lists.cells) > 1:
                self.heap.words[lists.cells[0]] += 1
            return done

        return roots, mark, sweep._replace(work=larger)


class KeepsGarbage(MarkSweep):
    """Marks an object that nothing reaches: no program ever notices."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        phases = super()._begin(kind)
        objects = self.objects()
        if len(objects):
            self._marking.shade(int(objects.cells[0]))
        return phases


PLANTED: list[tuple[type[Plan], str]] = [
    (MissesARoot, "root 23"),
    (StopsMarkingEarly, "field"),
    (FreesTwice, "free list"),
    (OverlapsFreeCells, "cell"),
    (KeepsGarbage, "survived a full collection"),
]


@pytest.mark.parametrize(("plan", "says"), PLANTED, ids=lambda one: getattr(one, "__name__", None))
def test_a_planted_defect_is_caught(plan: type[Plan], says: str) -> None:
    mutator, watch = over(plan(Heap(HEAP_BYTES, roots=ROOTS), threads=2))
    run_at_random(mutator, 400)
    # Something of each kind: garbage, and a long list whose end is far from its root.
    mutator.clear(0)
    mutator.new(ROOTS - 1, 1, 1)
    for _ in range(ROOTS):
        mutator.new(1, 1, 1)
        mutator.store(1, 0, ROOTS - 1)
        mutator.copy(ROOTS - 1, 1)
    mutator.clear(1)
    mutator.plan.collect()
    found = [*watch.wrong, *wrong_of(mutator)]
    assert any(says in one for one in found), found


@pytest.mark.parametrize("plan", [MarkSweep])
def test_without_the_defect_nothing_is_found(plan: type[Plan]) -> None:
    mutator, watch = over(plan(Heap(HEAP_BYTES, roots=ROOTS), threads=2))
    run_at_random(mutator, 400)
    mutator.plan.collect()
    assert [*watch.wrong, *wrong_of(mutator, collected=True)] == []
