"""The simulation of many hosts: where nothing is random it is what can be worked out, and deaths and stragglers only cost."""

from __future__ import annotations

import pytest

from benchmarks.fleet.capacity import Costs, Pool, simulated, trace_secs

CALM = Pool(workers=4, slowness=0.0, deaths_an_hour=0.0)


def test_equal_tasks_take_as_many_rounds_as_they_need() -> None:
    assert simulated(12, 2.0, CALM).secs == pytest.approx(6.0)
    assert simulated(13, 2.0, CALM).secs == pytest.approx(8.0)
    assert simulated(12, 2.0, CALM).busy_secs == pytest.approx(24.0)


def test_a_scheduler_that_is_slower_than_its_workers_is_the_bound() -> None:
    assert simulated(1000, 0.001, CALM, handing_secs=0.01).secs == pytest.approx(10.0, rel=0.01)


def test_what_dead_workers_had_is_done_again_and_costs_time() -> None:
    calm = simulated(200, 30.0, Pool(workers=4, slowness=0.3, deaths_an_hour=0.0))
    dying = simulated(200, 30.0, Pool(workers=4, slowness=0.3, deaths_an_hour=10.0))
    assert dying.deaths == dying.again > 0
    assert dying.secs > calm.secs
    assert dying == simulated(200, 30.0, Pool(workers=4, slowness=0.3, deaths_an_hour=10.0))


def test_no_number_of_workers_takes_less_than_the_index() -> None:
    costs = Costs()
    times = [
        trace_secs(10**9, costs, Pool(workers=workers, slowness=0.0, deaths_an_hour=0.0))[1]
        for workers in (1, 2, 8, 512)
    ]
    assert times == sorted(times, reverse=True)
    assert times[-1] > 10**9 * costs.index_nanos * 1e-9
