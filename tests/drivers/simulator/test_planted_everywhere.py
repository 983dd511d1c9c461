"""The four classic defects, planted in every collector that can have them: a missed root, a store that the barrier misses, a forwarding address ignored, free cells that overlap.

They are planted from outside, so that a new collector gets them without a change here. Defects of single collectors: `test_planted`, `test_planted_moving`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from gcspy_drivers.simulator.heap import FORWARDED, HEADER_WORDS, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import FULL, Phase, Plan
from gcspy_drivers.simulator.plans import PLANS

from tests.drivers.simulator.variants import (
    COLLECTING,
    HEAP_BYTES,
    ROOTS,
    VARIANTS,
    Variant,
    make,
    over,
    run_at_random,
    wrong_of,
)


class MissesARoot(Plan):
    """No step of a collection sees the last root."""

    def step(self, limit: int = 1 << 60) -> bool:
        last, self.heap.roots[-1] = int(self.heap.roots[-1]), 0
        try:
            return super().step(limit)
        finally:
            self.heap.roots[-1] = last


class MissesStores(Plan):
    """Has no write barrier."""

    def write(self, holder: int, number: int, target: int) -> None:
        self.heap.words[holder + HEADER_WORDS + number] = target


class MissesStoresToRoots(Plan):
    """Does not count what roots hold."""

    def write_root(self, slot: int, target: int) -> None:
        self.heap.roots[slot] = target


class ForgetsForwardingAddresses(Plan):
    """Treats each copied object as not copied: every other reference to it gets a separate copy."""

    def step(self, limit: int = 1 << 60) -> bool:
        over = super().step(2)
        for start, end in self.extents():
            for cell in self.heap.cells(start, end).tolist():
                self.heap.words[cell] &= ~FORWARDED
        return over


class LeavesRootsBehind(Plan):
    """Slides objects, and leaves roots as they were."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        def kept(phase: Phase, limit: int) -> int:
            before = self.heap.roots.copy()
            done = phase.work(limit)
            self.heap.roots[:] = before
            return done

        def other(phase: Phase) -> Phase:
            return phase._replace(work=lambda limit: kept(phase, limit))

        return [other(phase) if phase.name == "update" else phase for phase in super()._begin(kind)]


def planted(defect: type[Plan] | None, variant: Variant) -> Mutator:
    """A mutator on a collector with this defect, or with none."""
    base = PLANS[variant.plan]
    plan: Any = (
        base if defect is None else type(f"{defect.__name__}In{base.__name__}", (defect, base), {})
    )
    mutator, _ = over(
        plan(Heap(HEAP_BYTES, roots=ROOTS), threads=2, **variant.options), watched=False
    )
    return mutator


def worked(mutator: Mutator) -> list[str]:
    """Run a program that has all there can be, with collections of each kind in between; return what is wrong first."""
    plan = mutator.plan
    if plan.incremental:
        # The only reference to what marking has not seen is taken to where it has been.
        mutator.new(0, 1)
        mutator.new(1, 1)
        mutator.store(0, 0, 1)
        mutator.clear(1)
        plan.begin(FULL)
        plan.step()
        mutator.load(1, 0, 0)
        mutator.store(0, 0, None)
        plan.finish()
        if wrong_of(mutator):
            return wrong_of(mutator)
    for turn in range(30):
        run_at_random(mutator, 20)
        # Held by the last root and by nothing else; and a shared object, to which old and new ones refer.
        mutator.clear(ROOTS - 1)
        mutator.new(ROOTS - 1, 1, 1)
        mutator.new(0, 2, 1)
        mutator.new(1, 1, 1)
        mutator.store(0, 0, 1)
        mutator.store(0, 1, 1)
        mutator.clear(1)
        if turn % 10 == 5:
            # An object grows old, and then refers to a new one, which nothing else does.
            mutator.new(2, 2, 1)
            for _ in range(4):
                plan.collect([*plan.kinds][-1])
            mutator.new(3, 1, 1)
            mutator.store(2, 0, 3)
            mutator.clear(3)
            if wrong_of(mutator):
                return wrong_of(mutator)
        kinds = list(plan.kinds)
        if plan.incremental and plan.collection is None and turn % 2:
            plan.begin(FULL)  # and the program continues meanwhile
            plan.step(3)
        else:
            plan.collect(kinds[turn % len(kinds)])
        found = wrong_of(mutator)
        if found:
            return found
    return []


COUNTERS = ("refcount", "cpython", "cpython-incremental")
COUNTING = [one for one in COLLECTING if one.plan in COUNTERS]
TRACING = [one for one in COLLECTING if one.plan not in COUNTERS]
WITH_BARRIER = [one for one in COLLECTING if PLANS[one.plan].write is not Plan.write]
MOVING = [one for one in COLLECTING if PLANS[one.plan].moves and one.options.get("evacuate", True)]
SLIDING = [
    one
    for one in COLLECTING
    if any("update" in phases for phases in PLANS[one.plan].kinds.values())
]
COPYING = [one for one in MOVING if one.plan != "markcompact"]
WITH_LISTS = [one for one in VARIANTS if make(one)[0].plan.free_lists() is not None]

CASES = [
    *((MissesARoot, one) for one in TRACING),
    *((MissesStoresToRoots, one) for one in COUNTING),
    *((MissesStores, one) for one in WITH_BARRIER),
    *((ForgetsForwardingAddresses, one) for one in COPYING),
    *((LeavesRootsBehind, one) for one in SLIDING),
]


@pytest.mark.parametrize(
    ("defect", "variant"),
    CASES,
    ids=lambda one: str(one) if isinstance(one, Variant) else one.__name__,
)
def test_a_classic_defect_is_caught_in_every_collector_that_can_have_it(
    defect: type[Plan], variant: Variant
) -> None:
    assert worked(planted(defect, variant))


@pytest.mark.parametrize("variant", COLLECTING, ids=str)
def test_the_same_work_finds_nothing_without_a_defect(variant: Variant) -> None:
    mutator = planted(None, variant)
    assert worked(mutator) == []
    assert mutator.plan.collections >= 20


# In the order of addresses a cell that is listed twice refers to itself: a list without an end.
@pytest.mark.parametrize(
    ("variant", "twice"),
    [
        (one, twice)
        for one in WITH_LISTS
        for twice in (False, True)
        if not (twice and one.options.get("order") == "address")
    ],
    ids=str,
)
def test_free_cells_that_overlap_are_caught_in_every_collector_with_free_lists(
    variant: Variant, twice: bool
) -> None:
    mutator = planted(None, variant)
    run_at_random(mutator, 300)
    mutator.plan.collect()
    assert wrong_of(mutator) == []
    lists = mutator.plan.free_lists()
    assert lists is not None
    cell, size = int(lists.cells[0]), int(lists.sizes[0])
    if twice:
        plan: Any = mutator.plan
        space = plan._cells if hasattr(plan, "_cells") else plan._space
        space.give_back(cell, size)
    else:
        mutator.heap.words[cell] += 1
    assert wrong_of(mutator)


def test_each_defect_is_planted_where_it_can_be() -> None:
    assert {one.plan for one in COLLECTING} == set(PLANS) - {"nogc"}
    assert {one.plan for one in MOVING} == {name for name, plan in PLANS.items() if plan.moves}
    assert {one.plan for one in WITH_BARRIER} == {
        *COUNTERS,
        "incremental",
        "generational",
        "generational-compact",
        "train",
        "regions",
    }
    assert {one.plan for one in SLIDING} == {
        "markcompact",
        "generational",
        "generational-compact",
        "regions",
    }
    assert {one.plan for one in WITH_LISTS} == {
        "marksweep",
        "conservative",
        "incremental",
        *COUNTERS,
        "generational",
    }
