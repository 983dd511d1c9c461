"""The purpose of a region collector: pauses of a bounded number of regions, garbage first."""

from __future__ import annotations

import numpy as np
from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.plan import FULL
from gcspy_drivers.simulator.plans.regions import MARK, MIXED, YOUNG, GarbageFirst

from tests.drivers.simulator.variants import over, run_at_random, wrong_of


def test_a_mixed_collection_takes_the_old_regions_with_the_least_in_them_and_no_more_than_the_goal() -> (
    None
):
    plan = GarbageFirst(Heap(64 << 10, roots=100), pause_regions=6, tenuring=0)
    mutator, watch = over(plan)
    # Old regions of which ever more of each ten objects live.
    for region in range(8):
        for i in range(25):
            mutator.new(99, 0, 8)
            if i < 3 * region:
                mutator.new(98, 1, 1)
                mutator.store(98, 0, 99)
                mutator.copy(99, 98)
            mutator.copy((region * 10 + i % 10) % 90, 99)
        plan.collect(YOUNG)
    for slot in range(0, 100, 2):
        mutator.clear(slot)
    plan.collect(MARK)
    regions = plan.regions()
    assert regions.live is not None
    old = np.flatnonzero(regions.kinds == 3)
    assert len(old) >= 3
    assert (regions.live[old] > 0).all()
    assert (regions.live[old] <= regions.tops[old] - regions.starts[old]).all()
    plan.collect(MIXED)
    chosen = plan.regions().chosen
    assert chosen is not None
    assert 0 < int(chosen.sum()) <= 6
    taken = [one for one in old if chosen[one]]
    left = [one for one in old if not chosen[one]]
    assert taken
    assert not left or max(regions.live[taken]) <= min(regions.live[left])
    assert watch.wrong == []
    assert wrong_of(mutator) == []


def test_ages_kinds_and_liveness_of_regions_are_told() -> None:
    plan = GarbageFirst(Heap(64 << 10, roots=24), threads=2)
    mutator, watch = over(plan)
    seen: set[str] = set()
    for turn in range(12):
        run_at_random(mutator, 150)
        plan.collect((YOUNG, MARK, MIXED, FULL)[turn % 4])
        regions = plan.regions()
        seen |= {regions.kind_names[kind] for kind in regions.kinds}
        assert regions.ages is not None
        assert regions.live is not None
        assert regions.ages.min() >= 0
        free = regions.kinds == 0
        assert not regions.live[free].any()
        assert (regions.tops[free] == regions.starts[free]).all()
    run_at_random(mutator, 20)
    seen |= {plan.regions().kind_names[kind] for kind in plan.regions().kinds}
    assert {"free", "eden", "survivor", "old", "large"} <= seen
    assert watch.wrong == []
