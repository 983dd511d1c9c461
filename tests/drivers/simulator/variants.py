"""Collectors with the options under which the behaviour suite runs each; a new plan gets a line here, or it is run with its defaults."""

from __future__ import annotations

from typing import Any, NamedTuple

from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import FULL, Collection, CollectionListener, OutOfHeap, Plan
from gcspy_drivers.simulator.plans import PLANS, make_plan
from gcspy_drivers.simulator.verify import verify


class Variant(NamedTuple):
    plan: str
    options: dict[str, Any]

    def __str__(self) -> str:
        return "-".join([self.plan, *(f"{name}={value}" for name, value in self.options.items())])


_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "nogc": [{"buffer_bytes": 256}],
    "marksweep": [
        {},
        {"order": "address"},
        {"lists": 1, "fit": "best", "order": "address"},
        {"lists": 1, "fit": "next"},
        {"lists": 1, "fit": "first", "coalesce": False},
    ],
    "immix": [
        {"block_bytes": 512, "line_bytes": 64},
        {"block_bytes": 1024, "line_bytes": 64, "evacuate": False},
    ],
    "refcount": [{}, {"candidates": 20, "burst": 3}],
    "cpython": [{"threshold0": 20, "threshold1": 2, "threshold2": 2}],
    "cpython-incremental": [{"threshold0": 15, "threshold1": 2}],
    "incremental": [
        {"barrier": "insertion", "pace": 10},
        {"barrier": "retreating", "pace": 10},
        {"barrier": "snapshot", "pace": 10},
        {"barrier": "hybrid", "pace": 10},
    ],
    "generational": [{}, {"barrier": "set", "tenuring": 0}, {"young": "bump", "card_bytes": 64}],
    "generational-compact": [{"card_bytes": 64}, {"young": "bump", "barrier": "set"}],
    "train": [{}, {"young_bytes": 0, "train_cars": 2, "popular": 3}],
    "conservative": [{"stale": 8, "numbers": 8}],
    "relocation": [{"pace": 20}],
    "regions": [{}, {"tenuring": 0, "pause_regions": 3, "marking_percent": 20}],
}

VARIANTS = [Variant(plan, options) for plan in PLANS for options in _OPTIONS.get(plan, [{}])]
COLLECTING = [variant for variant in VARIANTS if PLANS[variant.plan].kinds]

HEAP_BYTES = 32 << 10
ROOTS = 24


class Watch(CollectionListener):
    """Verifies at the end of each collection, and walks the heap at each step of one."""

    def __init__(self, mutator: Mutator) -> None:
        self._mutator = mutator
        self.wrong: list[str] = []
        self.phases: list[tuple[str, list[str]]] = []

    def collection_starts(self, collection: Collection) -> None:
        self.phases.append((collection.kind, []))

    def phase_ends(self, collection: Collection, phase: str) -> None:
        self.phases[-1][1].append(phase)

    def progress(self, collection: Collection, phase: str, done: int) -> None:
        if not self._mutator.plan.incremental:
            self._verify()

    def collection_ends(self, collection: Collection) -> None:
        # Objects made during an incremental collection may be garbage that the next one finds.
        whole = collection.kind == FULL and not self._mutator.plan.incremental
        self._verify(collected=whole)

    def _verify(self, *, collected: bool = False) -> None:
        assert self._mutator.shadow is not None
        self.wrong += verify(self._mutator.plan, self._mutator.shadow, collected=collected)


def make(
    variant: Variant,
    *,
    heap_bytes: int = HEAP_BYTES,
    seed: int = 1,
    threads: int = 2,
    watched: bool = True,
) -> tuple[Mutator, Watch]:
    """Make a small heap with this collector, a mutator with a shadow, and a watch over them."""
    plan = make_plan(
        variant.plan, Heap(heap_bytes, roots=ROOTS), threads=threads, **variant.options
    )
    return over(plan, seed=seed, watched=watched)


def over(plan: Plan, *, seed: int = 1, watched: bool = True) -> tuple[Mutator, Watch]:
    """Put a mutator with a shadow over a plan, and a watch over both."""
    mutator = Mutator(plan, seed=seed, shadow=True)
    watch = Watch(mutator)
    if watched:
        plan.listener = watch
    return mutator, watch


def run_at_random(mutator: Mutator, turns: int) -> int:
    """Make objects, link and drop them by the mutator's dice; return how many turns there was room for."""
    dice, roots, threads = mutator.dice, len(mutator.heap.roots), mutator.plan.threads
    for turn in range(turns):
        slot, other = (int(one) for one in dice.integers(roots, size=2))
        what = int(dice.integers(10))
        fields = mutator.fields(other)
        if what < 5:
            large = 40 if what == 0 and turn % 8 == 0 else 1
            try:
                mutator.new(
                    slot,
                    int(dice.integers(4)),
                    int(dice.integers(6)) * large,
                    thread=turn % threads,
                )
            except OutOfHeap:
                return turn
        elif what < 8 and fields:
            mutator.store(other, int(dice.integers(fields)), slot if mutator.holds(slot) else None)
        elif what == 8 and fields:
            mutator.load(slot, other, int(dice.integers(fields)))
        elif what == 9 and turn % 3 == 0:
            mutator.clear(slot)
    return turns


def wrong_of(mutator: Mutator, *, collected: bool = False) -> list[str]:
    """Verify now."""
    assert mutator.shadow is not None
    return verify(mutator.plan, mutator.shadow, collected=collected)
