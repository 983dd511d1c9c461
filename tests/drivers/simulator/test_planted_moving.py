"""Defects, planted in collectors that move objects: each must be caught. How: `test_planted`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from gcspy_drivers.simulator.heap import HEADER_WORDS, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import Collection, Phase, Plan
from gcspy_drivers.simulator.plans._regions import OLD
from gcspy_drivers.simulator.plans._train import FROM_TRAIN
from gcspy_drivers.simulator.plans.generational import Generational, GenerationalCompact
from gcspy_drivers.simulator.plans.markcompact import MarkCompact
from gcspy_drivers.simulator.plans.regions import MARK, GarbageFirst
from gcspy_drivers.simulator.plans.semispace import SemiSpace
from gcspy_drivers.simulator.plans.train import Train
from gcspy_drivers.simulator.policies.slotsets import KEY

from tests.drivers.simulator.variants import HEAP_BYTES, ROOTS, Watch, over, run_at_random, wrong_of


def but(phases: Sequence[Phase], name: str, work: Callable[[Phase, int], int]) -> list[Phase]:
    """Return phases of which one does something else."""

    def other(phase: Phase) -> Phase:
        return phase._replace(work=lambda limit: work(phase, limit))

    return [other(phase) if phase.name == name else phase for phase in phases]


class MissesARoot(SemiSpace):
    """Never scans the last root slot."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        def all_but_one(phase: Phase, limit: int) -> int:
            last, self.heap.roots[-1] = int(self.heap.roots[-1]), 0
            done = phase.work(limit)
            self.heap.roots[-1] = last
            return done

        return but(super()._begin(kind), "roots", all_but_one)


class IgnoresAForwardingPointer(SemiSpace):
    """Takes a root's object for not copied yet: there will be two of it."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        def again(phase: Phase, limit: int) -> int:
            copied = [int(cell) for cell in self.heap.roots if cell]
            done = phase.work(limit)
            for cell in copied:
                self.heap.words[cell] &= ~(1 << 58)
            return done

        return but(super()._begin(kind), "roots", again)


class ScansNothing(SemiSpace):
    """Copies what the roots hold, and nothing else."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        return but(super()._begin(kind), "copy", lambda phase, limit: 0)


class ForgetsToUpdate(MarkCompact):
    """Moves objects, but leaves fields as they were."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        return but(
            super()._begin(kind), "update", lambda phase, limit: phase.work(min(limit, ROOTS))
        )


class ForgetsTheRoots(MarkCompact):
    """Moves objects, but leaves roots as they were."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        def not_roots(phase: Phase, limit: int) -> int:
            before = self.heap.roots.copy()
            done = phase.work(limit)
            self.heap.roots[:] = before
            return done

        return but(super()._begin(kind), "update", not_roots)


class LeavesMarks(MarkCompact):
    """Marks an object after the marking was over: it stays, and no program ever notices."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        phases = super()._begin(kind)
        self._marking.shade(int(self.objects().cells[0]))
        return phases


class MissesCards(Generational):
    """Has a write barrier that records no field but the first."""

    def write(self, holder: int, number: int, target: int) -> None:
        if number == 0:
            super().write(holder, number, target)
        else:
            self.heap.words[holder + HEADER_WORDS + number] = target


class CleansCardsTooEarly(Generational):
    """Forgets what refers to survivors that are still young."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        def cleaned(phase: Phase, limit: int) -> int:
            done = phase.work(limit)
            self._records.table[:] = 0
            return done

        return but(super()._begin(kind), "remembered", cleaned)


class LosesARememberedObject(GenerationalCompact):
    """Loses the last entry of its remembered set."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        phases = super()._begin(kind)
        self._noted -= self._noted > 0
        return phases


class DoesNotRecordPromoted(GenerationalCompact):
    """Does not look whether promoted objects refer to young ones."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        def unrecorded(phase: Phase, limit: int) -> int:
            before = self._records.count
            done = phase.work(limit)
            self._records.state[3] = before
            return done

        return but(super()._begin(kind), "copy", unrecorded)


class FreesACarTooEarly(Train):
    """Does not follow references from a car's own train."""

    def _pull_set(self, limit: int) -> int:
        return 0 if self._state[FROM_TRAIN] else super()._pull_set(limit)


class LosesARememberedReference(Train):
    """Has a write barrier that does not see references from one car into another."""

    def write(self, holder: int, number: int, target: int) -> None:
        if target >= self._start:
            self.heap.words[holder + HEADER_WORDS + number] = target
        else:
            super().write(holder, number, target)


class FreesALivingTrain(Train):
    """Takes a train for garbage that only roots refer into."""

    def _referenced(self, car: int, train: int) -> int:
        roots = self.heap.roots.copy()
        self.heap.roots[:] = 0
        found = super()._referenced(car, train)
        self.heap.roots[:] = roots
        return found


class LosesAReferenceBetweenRegions(GarbageFirst):
    """Has a write barrier that sees no field but the first."""

    def write(self, holder: int, number: int, target: int) -> None:
        if number == 0:
            super().write(holder, number, target)
        else:
            self.heap.words[holder + HEADER_WORDS + number] = target


class EvacuatesFromRootsOnly(GarbageFirst):
    """Frees the collection set without reading its remembered sets."""

    def _pull_sets(self, limit: int) -> int:
        return 0


class FreesALivingRegion(GarbageFirst):
    """Counts nothing alive in the last old region that has objects."""

    def _end(self, collection: Collection) -> None:
        old = self._of_kind(OLD)
        if collection.kind == MARK and old:
            self._table[old[-1], KEY] = 0
        super()._end(collection)


Planted = tuple[type[Plan], dict[str, Any], str]

PLANTED: list[Planted] = [
    (MissesARoot, {}, "root 23"),
    (IgnoresAForwardingPointer, {}, "others at"),
    (ScansNothing, {}, "field"),
    (ForgetsToUpdate, {}, "field"),
    (ForgetsTheRoots, {}, "root"),
    (LeavesMarks, {}, "survived a full collection"),
    (MissesCards, {"card_bytes": 32}, "the cards missed it"),
    (CleansCardsTooEarly, {}, "the cards missed it"),
    (LosesARememberedObject, {"barrier": "set"}, "field"),
    (FreesACarTooEarly, {}, "should hold object"),
    (LosesARememberedReference, {"young_bytes": 0}, "should hold object"),
    (FreesALivingTrain, {}, "root"),
    (LosesAReferenceBetweenRegions, {"tenuring": 0}, "is not in its remembered set"),
    (EvacuatesFromRootsOnly, {}, "should hold object"),
    (FreesALivingRegion, {}, "should hold object"),
    (DoesNotRecordPromoted, {"barrier": "set"}, "the set missed it"),
]


def run(mutator: Mutator, watch: Watch) -> list[str]:
    """Make all there can be: old objects that refer to young ones, garbage, a list whose end is far from its root; collect."""
    run_at_random(mutator, 600)
    mutator.clear(0)
    mutator.new(ROOTS - 1, 1, 1)
    for _ in range(ROOTS):
        mutator.new(1, 1, 1)
        mutator.store(1, 0, ROOTS - 1)
        mutator.copy(ROOTS - 1, 1)
    mutator.copy(2, 1)
    mutator.clear(1)
    mutator.new(3, 3, 9)
    for kind in [*mutator.plan.kinds] * 4:
        mutator.plan.collect(kind)
    found = [*watch.wrong, *wrong_of(mutator)]
    for _ in range(0 if found else 3):
        mutator.new(4, 1, 1)
        mutator.store(3, 2, 4)
        mutator.clear(4)
        found += wrong_of(mutator)
        mutator.plan.collect(sorted(mutator.plan.kinds)[-1])
    return [*watch.wrong, *found, *wrong_of(mutator)]


@pytest.mark.parametrize(
    ("plan", "options", "says"), PLANTED, ids=lambda one: getattr(one, "__name__", None)
)
def test_a_planted_defect_is_caught(plan: type[Plan], options: dict[str, Any], says: str) -> None:
    found = run(*over(plan(Heap(HEAP_BYTES, roots=ROOTS), threads=2, **options)))
    assert any(says in one for one in found), found


@pytest.mark.parametrize(
    "plan",
    sorted({(one[0].__mro__[1], *one[1].items()) for one in PLANTED}, key=str),
    ids=lambda one: one[0].__name__,
)
def test_without_the_defect_nothing_is_found(plan: tuple[Any, ...]) -> None:
    mutator, watch = over(plan[0](Heap(HEAP_BYTES, roots=ROOTS), threads=2, **dict(plan[1:])))
    assert run(mutator, watch) == []
