"""The purpose of the Train: cycles across cars, popular objects, trains that run for ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import FULL, OutOfHeap
from gcspy_drivers.simulator.plans.train import CAR, Train

from tests.drivers.simulator.variants import HEAP_BYTES, ROOTS, Watch, over, run_at_random, wrong_of


class Exact(Train):
    """In a heap with room for cars: nothing unreachable may be left."""

    exact = True


def make(*, heap_bytes: int = 64 << 10, **options: Any) -> tuple[Train, Mutator, Watch]:
    plan = Exact(Heap(heap_bytes, roots=24), threads=2, **options)
    return plan, *over(plan)


def grow_for_ever(mutator: Mutator) -> None:
    while True:
        mutator.new(1, 2, 4)
        mutator.store(1, 0, 0)
        mutator.copy(0, 1)


def kinds(plan: Train) -> list[str]:
    regions = plan.regions()
    return [regions.kind_names[kind] for kind in regions.kinds if kind]


def make_ring(mutator: Mutator, length: int) -> None:
    """Let slot 0 hold an object of a ring."""
    mutator.new(1, 1, 4)
    mutator.copy(0, 1)
    for _ in range(length - 1):
        mutator.new(2, 1, 4)
        mutator.store(2, 0, 0)
        mutator.copy(0, 2)
    mutator.store(1, 0, 0)
    mutator.clear(1)
    mutator.clear(2)


def test_a_full_collection_of_a_heap_with_room_leaves_nothing_unreachable() -> None:
    plan, mutator, watch = make()
    for _ in range(5):
        run_at_random(mutator, 300)
        plan.collect(FULL)
        assert wrong_of(mutator, collected=True) == []
    assert watch.wrong == []
    assert plan.last is not None
    assert plan.last.counts["freed cars"] > 0


def test_a_dead_ring_across_many_cars_is_freed_as_a_train_car_by_car_and_without_being_copied_in_the_end() -> (
    None
):
    plan, mutator, watch = make()
    make_ring(mutator, 300)
    plan.collect(CAR)
    in_use = len(kinds(plan))
    assert in_use > 3
    mutator.clear(0)
    for _ in range(3 * in_use):
        plan.collect(CAR)
        if not kinds(plan):
            break
    assert kinds(plan) == []
    assert plan.last is not None
    assert plan.last.counts["copied objects"] == 0
    assert plan.last.counts["freed cars"] >= 1
    assert watch.wrong == []
    assert all(len(one.holders) == 0 for one in plan.remembered_sets())


def test_a_popular_object_gets_a_car_of_its_own_which_changes_trains_as_it_is() -> None:
    plan, mutator, watch = make(popular=8)
    mutator.new(0, 0, 3)
    plan.collect(CAR)
    for slot in range(1, 20):
        mutator.new(slot, 6, 20)
        mutator.store(slot, 0, 0)
    mutator.clear(0)
    for _ in range(12):
        plan.collect(CAR)
        if "popular" in kinds(plan):
            break
    assert kinds(plan).count("popular") == 1
    where = np.flatnonzero(plan.regions().kinds == 2)
    trains, most = set(), 0
    for _ in range(40):
        plan.collect(CAR)
        np.testing.assert_array_equal(np.flatnonzero(plan.regions().kinds == 2), where)
        trains.add(int(plan.regions().groups[where[0]]))
        most = max(
            (
                most,
                *(
                    len(one.holders)
                    for one in plan.remembered_sets()
                    if one.start == plan.regions().starts[where[0]]
                ),
            )
        )
    assert len(trains) > 1
    assert watch.wrong == []
    # From later cars only: just after it was appended there are none.
    assert most >= 8


def test_a_program_that_moves_its_only_root_along_a_ring_does_not_keep_a_train_from_ending() -> (
    None
):
    plan, mutator, watch = make()
    make_ring(mutator, 200)
    plan.collect(CAR)
    first = int(plan.regions().groups.max())
    for _ in range(60):
        # As far from the first car as the program can see.
        for _ in range(100):
            mutator.load(0, 0, 0)
        plan.collect(CAR)
    assert first not in plan.regions().groups
    assert watch.wrong == []


def test_a_heap_that_is_full_of_garbage_is_emptied_by_and_by_and_it_is_said_what_was_left_and_why() -> (
    None
):
    mutator, watch = over(Train(Heap(HEAP_BYTES, roots=ROOTS)))
    with pytest.raises(OutOfHeap):
        grow_for_ever(mutator)
    for slot in range(ROOTS):
        mutator.clear(slot)
    plan = mutator.plan
    plan.collect()
    assert plan.last is not None
    assert plan.last.counts["objects put into another train, as cars are short"] > 0
    assert len(plan.objects()) > 0
    for _ in range(HEAP_BYTES // 64):
        mutator.new(0, 2, 4)
    plan.collect()
    assert "objects put into another train, as cars are short" not in plan.last.counts
    assert len(plan.objects()) == 1
    assert [*watch.wrong, *wrong_of(mutator, collected=True)] == []
