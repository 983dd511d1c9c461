"""Defects, planted in collectors that run beside the program: each must be caught. How: `test_planted`."""

from __future__ import annotations

from typing import Any

import pytest
from gcspy_drivers.simulator.heap import HEADER_WORDS, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import FULL, Plan
from gcspy_drivers.simulator.plans.conservative import Conservative
from gcspy_drivers.simulator.plans.incremental import Incremental
from gcspy_drivers.simulator.plans.relocation import Relocating

from tests.drivers.simulator.variants import HEAP_BYTES, ROOTS, over, run_at_random, wrong_of


class ShadesWhatIsOverwrittenOnly(Incremental):
    """Has half of the hybrid barrier: a stack that was not scanned yet hides an object in one that was."""

    def write(self, holder: int, number: int, target: int) -> None:
        if self.marks:
            self._shade(int(self.heap.words[holder + HEADER_WORDS + number]))
        self.heap.words[holder + HEADER_WORDS + number] = target


class ShadesWhatIsStoredOnly(Incremental):
    """Has the other half: what a scanned stack loads and cuts off is lost."""

    def write(self, holder: int, number: int, target: int) -> None:
        if self.marks:
            self._shade(target)
        self.heap.words[holder + HEADER_WORDS + number] = target


class HasNoLoadBarrier(Relocating):
    """Gives the program whatever stands in a field."""

    def read(self, holder: int, number: int) -> int:
        return int(self.heap.words[holder + HEADER_WORDS + number])


class MarksNoLoads(Relocating):
    """Has a load barrier while objects move, and none while they are marked."""

    def read(self, holder: int, number: int) -> int:
        return super().read(holder, number) if self._moves else self._raw(holder, number)

    def _raw(self, holder: int, number: int) -> int:
        return int(self.heap.words[holder + HEADER_WORDS + number])


class LeavesRootsBehind(Relocating):
    """Does not move what roots refer to before the program continues."""

    def _start_moving(self) -> None:
        before = self.heap.roots.copy()
        super()._start_moving()
        self.heap.roots[:] = before


class UpdatesNothing(Relocating):
    """Frees the old copies although fields refer to them."""

    def _update(self, limit: int) -> int:
        return 0


class ForgetsItsRoots(Conservative):
    """Marks from ambiguous words alone."""

    def _begin(self, kind: str) -> Any:
        roots, *others = super()._begin(kind)
        return roots._replace(work=lambda _limit: 0), *others


PLANTED: list[tuple[type[Plan], dict[str, Any]]] = [
    (ShadesWhatIsOverwrittenOnly, {"barrier": "hybrid", "pace": 1}),
    (ShadesWhatIsStoredOnly, {"barrier": "hybrid", "pace": 1}),
    (HasNoLoadBarrier, {"pace": 1}),
    (MarksNoLoads, {"pace": 1}),
    (LeavesRootsBehind, {"pace": 1}),
    (UpdatesNothing, {"pace": 1}),
    (ForgetsItsRoots, {}),
]


def move_between_stacks(mutator: Mutator) -> None:
    """Move the only reference to an object from a stack that was not scanned into an object that is black."""
    mutator.new(ROOTS - 1, 0, 1)
    mutator.plan.begin(FULL)
    mutator.plan.step(1)
    mutator.new(0, 1)
    mutator.store(0, 0, ROOTS - 1)
    mutator.clear(ROOTS - 1)
    mutator.plan.finish()


def load_and_cut_off(mutator: Mutator) -> list[str]:
    """Load the only reference to an object before marking has come there, and overwrite it, after all roots were read."""
    mutator.new(0, 1)
    mutator.new(1, 0, 1)
    mutator.store(0, 0, 1)
    mutator.clear(1)
    mutator.new(ROOTS - 1, 0, 1)
    plan = mutator.plan
    plan.begin(FULL)
    while plan.collection is not None and not (
        plan.collection.phase == "mark" and plan.collection.work["mark"]
    ):
        plan.step(4 if plan.collection.phase == "" and "roots" in plan.kinds[FULL] else 1)
    mutator.load(1, 0, 0)
    mutator.store(0, 0, None)
    found = wrong_of(mutator)
    plan.finish()
    return found


def run(plan: type[Plan], options: dict[str, Any]) -> list[str]:
    """Let a program run beside collections, some of which begin early."""
    mutator, watch = over(plan(Heap(HEAP_BYTES, roots=ROOTS), threads=4, **options))
    found: list[str] = []
    if plan.incremental:
        move_between_stacks(mutator)
        found = load_and_cut_off(mutator)
    found += [*watch.wrong, *wrong_of(mutator)]
    for turn in range(0 if found else 200):
        if plan.incremental:
            if mutator.plan.collection is None:
                mutator.plan.begin(FULL)
            mutator.plan.step(1 + turn % 7)
        elif turn % 8 == 0:
            mutator.plan.collect()
        run_at_random(mutator, 12)
        found = [*watch.wrong, *wrong_of(mutator)]
        if found:
            break
    return found


@pytest.mark.parametrize(
    ("plan", "options"), PLANTED, ids=lambda one: getattr(one, "__name__", None)
)
def test_a_planted_defect_is_caught(plan: type[Plan], options: dict[str, Any]) -> None:
    assert run(plan, options)


@pytest.mark.parametrize(
    ("plan", "options"),
    [
        (Incremental, {"barrier": "hybrid", "pace": 1}),
        (Relocating, {"pace": 1}),
        (Conservative, {}),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_without_the_defect_nothing_is_found(plan: type[Plan], options: dict[str, Any]) -> None:
    assert run(plan, options) == []
