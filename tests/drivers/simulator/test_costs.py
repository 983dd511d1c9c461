"""The costs of simulated collectors: pauses and utilisation are those of a simple count, and a second collector in a session does what it does alone."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.simulator.driver.companion import Companion
from gcspy_drivers.simulator.driver.cost_meter import CostMeter
from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import OutOfHeap
from gcspy_drivers.simulator.plans import make_plan
from gcspy_drivers.simulator.programs import make_run
from gcspy_protocol.errors import LocalProtocolError


def metered(collector: str, steps: int = 60) -> CostMeter:
    plan = make_plan(collector, Heap(32 << 10, roots=256))
    run = make_run("gcold", Mutator(plan, seed=3))
    meter = CostMeter(plan)
    plan.listener = meter
    for _ in range(steps):
        try:
            run.step()
        except OutOfHeap:
            break
    run.close()
    return meter


@pytest.mark.parametrize("collector", ["marksweep", "incremental", "semispace", "relocation"])
def test_utilisation_is_the_worst_window_of_all(collector: str) -> None:
    meter = metered(collector)
    total = meter.total_tenths
    paused = np.zeros(total + 1, dtype=np.int64)
    for start, length in zip(meter.starts, meter.lengths, strict=True):
        paused[start + 1 : start + length + 1] = 1
    assert paused.sum() == meter.collector_tenths == sum(meter.lengths) > 0
    until = np.cumsum(paused)
    windows = np.array([1, 50, 300, 1000, total // 10 + 1], dtype=np.int64)
    found = meter.utilisation_percent(windows)
    assert np.isnan(found[-1])
    for window, share in zip((windows[:-1] * 10).tolist(), found[:-1].tolist(), strict=True):
        worst = int((until[window:] - until[:-window]).max())
        assert share == pytest.approx(100 * (1 - worst / window))
    assert meter.throughput_percent == pytest.approx(100 * (1 - paused.sum() / total))


def test_a_program_that_is_stopped_waits_once_and_longer() -> None:
    stopped, beside = metered("marksweep"), metered("incremental")
    assert len(stopped.lengths) == stopped.collections > 0
    assert len(beside.lengths) > 20 * beside.collections
    assert beside.longest_words * 20 < stopped.longest_words


def test_a_second_collector_in_a_session_does_what_it_does_alone() -> None:
    fields: dict[str, Any] = {
        "program": "gcold",
        "heap_bytes": 32 << 10,
        "pace_millis": 0,
        "steps": 60,
        "seed": 3,
    }
    both = SimulatorSession(SimulationOptions(collector="marksweep", beside="semispace", **fields))
    both.run(threading.Event())
    companion = both._beside
    assert isinstance(companion, Companion)
    alone = SimulatorSession(SimulationOptions(collector="semispace", **fields))
    alone.run(threading.Event())
    assert companion.plan.heap.allocated_words == alone.heap.allocated_words
    assert (companion.plan.heap.words == alone.heap.words).all()
    names = {space.name for space in both.server.spaces}
    assert {"Heap", "semispace: Semi-spaces", "Costs", "semispace: Utilisation"} <= names


def test_the_same_collector_twice_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="choose two that differ"):
        SimulatorSession(SimulationOptions(collector="nogc", beside="nogc"))
