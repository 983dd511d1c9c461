"""Defects, planted in real collectors: each must be caught, or `verify` and the suite prove nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from gcspy_drivers.simulator.heap import HEADER_WORDS, LINK_SHIFT, SIZE_MASK, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import FULL, Collection, Phase, Plan
from gcspy_drivers.simulator.plans.immix import Immix
from gcspy_drivers.simulator.plans.incremental import BARRIERS, Incremental
from gcspy_drivers.simulator.plans.marksweep import MarkSweep
from gcspy_drivers.simulator.plans.refcount import RefCount

from tests.drivers.simulator.variants import HEAP_BYTES, ROOTS, over, run_at_random, wrong_of


class MissesARoot(MarkSweep):
    """Never scans the last root slot."""

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
        return (
            roots,
            mark._replace(work=lambda limit: mark.work(min(limit, self._marking.grey))),
            sweep,
        )


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


class HasNoBarrier(Incremental):
    """Stores behind marking's back."""

    def write(self, holder: int, number: int, target: int) -> None:
        self.heap.words[holder + HEADER_WORDS + number] = target


class ForgetsTheRootsAtTheEnd(Incremental):
    """Does not scan the roots again before it sweeps."""

    def _remark(self, limit: int) -> int:
        return self._marking.trace(limit)


class ForgetsToCountRoots(RefCount):
    """Stores into roots without counting."""

    def write_root(self, slot: int, target: int) -> None:
        self.heap.roots[slot] = target


class TakesAwayTooMuch(RefCount):
    """Does not reset the counts of used objects."""

    def _put_back(self, limit: int) -> int:
        before = self.heap.words.copy()
        done = super()._put_back(limit)
        self.heap.words[:] = np.where(
            self.heap.words >> LINK_SHIFT > before >> LINK_SHIFT, before, self.heap.words
        )
        return done


class IgnoresForwardingAddressesOfRoots(Immix):
    """Moves objects, and leaves roots as they were."""

    def _roots(self, limit: int) -> int:
        before = self.heap.roots.copy()
        done = super()._roots(limit)
        self.heap.roots[:] = before
        return done


class MissesALine(Immix):
    """Takes the first line that is in use for a free one."""

    def _end(self, collection: Collection) -> None:
        super()._end(collection)
        self._space.lines[self._space.lines.argmax()] = 0


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
    (HasNoBarrier, "from black objects to white"),
    (ForgetsTheRootsAtTheEnd, "should hold object"),
    (ForgetsToCountRoots, ""),
    (TakesAwayTooMuch, "counted"),
    (IgnoresForwardingAddressesOfRoots, "root"),
    (MissesALine, "lies in lines that are free"),
    (KeepsGarbage, "survived a full collection"),
]


def hide_an_object(mutator: Mutator) -> None:
    """Take the only reference to an object that marking has not seen into a root that it has seen."""
    mutator.new(0, 1)
    mutator.new(1, 1)
    mutator.store(0, 0, 1)
    mutator.clear(1)
    mutator.plan.begin(FULL)
    mutator.plan.step()
    mutator.load(1, 0, 0)
    mutator.store(0, 0, None)
    mutator.plan.finish()


def evacuate_blocks(mutator: Mutator) -> list[str]:
    """Keep one object of twelve, so that blocks are worth leaving, and let a collection find that out and the next one leave them."""
    for number in range(12 * ROOTS):
        mutator.new(number // 12, 1, 4)
    mutator.plan.collect()
    mutator.plan.collect()
    assert mutator.plan.last is not None
    assert mutator.plan.last.counts["copied objects"] > 0
    return wrong_of(mutator, collected=True)


def test_evacuation_empties_blocks() -> None:
    mutator, watch = over(Immix(Heap(HEAP_BYTES, roots=ROOTS), block_bytes=512, line_bytes=64))
    assert evacuate_blocks(mutator) == watch.wrong == []
    blocks = mutator.plan.regions()
    assert blocks is not None
    kinds = [blocks.kind_names[kind] for kind in blocks.kinds.tolist()]
    assert kinds.count("free") > len(kinds) - 8, "twenty-four small objects are in a few blocks"


@pytest.mark.parametrize("barrier", BARRIERS)
def test_an_object_that_is_taken_where_marking_has_been_is_found_by_each_barrier(
    barrier: str,
) -> None:
    mutator, watch = over(Incremental(Heap(HEAP_BYTES, roots=ROOTS), barrier=barrier))
    hide_an_object(mutator)
    assert [*watch.wrong, *wrong_of(mutator)] == []


@pytest.mark.parametrize(("plan", "says"), PLANTED, ids=lambda one: getattr(one, "__name__", None))
def test_a_planted_defect_is_caught(plan: type[Plan], says: str) -> None:
    options = {"block_bytes": 512, "line_bytes": 64} if issubclass(plan, Immix) else {}
    mutator, watch = over(plan(Heap(HEAP_BYTES, roots=ROOTS), threads=2, **options))
    found: list[str] = []
    if isinstance(mutator.plan, Incremental):
        hide_an_object(mutator)
        mutator.plan.turn("pace", 10)
        found = wrong_of(mutator)
    if isinstance(mutator.plan, Immix):
        found = evacuate_blocks(mutator)
    turns = 0
    while not found and turns < 40:
        turns += 1
        run_at_random(mutator, 50)
        found = [*watch.wrong, *wrong_of(mutator)]
    # Something of each kind: garbage, and a long list whose end is far from its root.
    mutator.clear(0)
    mutator.new(ROOTS - 1, 1, 1)
    for _ in range(ROOTS):
        mutator.new(1, 1, 1)
        mutator.store(1, 0, ROOTS - 1)
        mutator.copy(ROOTS - 1, 1)
    mutator.clear(1)
    mutator.plan.collect()
    found = [*found, *watch.wrong, *wrong_of(mutator)]
    assert any(says in one for one in found), found


@pytest.mark.parametrize("plan", [MarkSweep, Incremental, RefCount, Immix])
def test_without_the_defect_nothing_is_found(plan: type[Plan]) -> None:
    mutator, watch = over(plan(Heap(HEAP_BYTES, roots=ROOTS), threads=2))
    run_at_random(mutator, 400)
    mutator.plan.collect()
    assert [*watch.wrong, *wrong_of(mutator, collected=True)] == []
