"""A simulation of what many hosts need: their recordings of a night, a trace in ranges, and the series of their processes.

    python -m benchmarks.fleet.capacity [--hosts N] [--seed N] [--events N]

Workers take one task after the other from a queue. A task takes a measured time, times a random factor (log-normal: some workers are slower for
a while), and the time to hand it out, which is the scheduler's and happens one task at a time. Workers die at a rate; what one had in hand is
done again by others, and another worker replaces it after a while. Nothing is measured here: the constants are, by the commands beside
them, on a busy machine of two cores. So the makespans are those of workers that are as slow as that machine's processor.

A trace is first indexed by one process, which nothing can share; ranges follow. So its time has a bound that no number of workers gets below.
"""

from __future__ import annotations

import argparse
import heapq
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from benchmarks.harness.figures import tell

__all__ = ["Costs", "Outcome", "Pool", "main", "simulated", "trace_secs"]

_NANO: Final = 1e-9
_PROCESSES: Final = 15
_SERIES: Final = 18
_RECORDINGS: Final = 24
"""Of a process in a day: one an hour."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Measured costs.

    Attributes:
        features_secs: A recording of 50 events to one row (`make soak`: tests/soak/test_fleet.py).
        index_nanos: An event, read once in order (`benchmarks.objects.long_traces`).
        pass_nanos: An event of one pass that indexes and writes the lives ("gathered in", the same).
        range_nanos: An event of a range, its lives written ("gathered in" without the index, and "lives of one pass").
        handing_secs: A task of Dask that does nothing (`submit` and `result`, one after the other).
        exporter_share: Of a core, for the processes of a host (docs/fleets.md).
    """

    features_secs: float = 0.020
    index_nanos: float = 160.0
    pass_nanos: float = 530.0
    range_nanos: float = 520.0
    handing_secs: float = 0.0025
    exporter_share: float = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Workers.

    Attributes:
        workers: How many.
        slowness: Standard deviation of the logarithm of a task's factor; 0: all take the same time.
        deaths_an_hour: Of each worker.
        replaced_secs: After which another one takes its place.
    """

    workers: int
    slowness: float = 0.3
    deaths_an_hour: float = 1.0
    replaced_secs: float = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How tasks went.

    Attributes:
        secs: Until the last one was done.
        busy_secs: Of all workers.
        deaths: Of workers.
        again: Tasks that were begun more than once.
    """

    secs: float
    busy_secs: float
    deaths: int
    again: int


def simulated(
    count: int, task_secs: float, pool: Pool, *, handing_secs: float = 0.0, seed: int = 1
) -> Outcome:
    """Simulate tasks of equal size on workers."""
    dice = np.random.default_rng(seed)
    # Each worker as the time at which it is free, and that of its death.
    free = [(0.0, number) for number in range(pool.workers)]
    mean_life = 3600.0 / pool.deaths_an_hour if pool.deaths_an_hour else np.inf
    lives = dice.exponential(1.0, pool.workers) * mean_life if pool.deaths_an_hour else np.full(pool.workers, np.inf)  # fmt: skip
    factors = np.exp(dice.normal(-(pool.slowness**2) / 2, pool.slowness, count))
    left = [(0.0, number) for number in range(count)]  # by the time from which it can be begun
    heapq.heapify(free)
    heapq.heapify(left)
    handed = last = busy = 0.0
    deaths = again = 0
    while left:
        ready, task = heapq.heappop(left)
        at, worker = heapq.heappop(free)
        begin = max(at, handed + handing_secs, ready)
        handed = max(handed + handing_secs, ready)
        end = begin + task_secs * float(factors[task])
        if end <= lives[worker]:
            heapq.heappush(free, (end, worker))
            busy += end - begin
            last = max(last, end)
            continue
        died = max(begin, float(lives[worker]))
        deaths, again = deaths + 1, again + 1
        busy += died - begin
        reborn = died + pool.replaced_secs
        lives[worker] = reborn + float(dice.exponential(1.0)) * mean_life
        heapq.heappush(free, (reborn, worker))
        heapq.heappush(left, (died, task))
    return Outcome(last, busy, deaths, again)


def trace_secs(
    events: int, costs: Costs, pool: Pool, *, ranges_a_worker: int = 4, seed: int = 1
) -> tuple[float, float]:
    """Simulate gathering a trace.

    Returns:
        Seconds with one worker, in one pass; and with the pool, in ranges after the index.
    """
    alone = events * costs.pass_nanos * _NANO
    index = events * costs.index_nanos * _NANO
    count = pool.workers * ranges_a_worker
    each = events * costs.range_nanos * _NANO / count
    ranges = simulated(count, each, pool, handing_secs=costs.handing_secs, seed=seed)
    return alone, index + ranges.secs


def main() -> None:
    """Print what the hosts need."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=1000, metavar="N")
    parser.add_argument("--events", type=int, default=10**10, metavar="N", help="of the trace")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    given = parser.parse_args()
    costs, hosts = Costs(), given.hosts
    series = hosts * _PROCESSES * _SERIES
    recordings = hosts * _PROCESSES * _RECORDINGS
    print(
        f"{hosts:,} hosts of {_PROCESSES} processes: {series:,} series, {series / 15:,.0f} values a second at one scrape each 15 s;"
        f" the exporters take {hosts * costs.exporter_share:,.0f} cores in all, {costs.exporter_share:.0%} of one on each host"
    )
    print(f"features of a day, {recordings:,} recordings of an hour, in tasks of 8:")
    for workers in (1, 2, 8, 32, 128):
        pool = Pool(workers=workers)
        went = simulated(
            recordings // 8, 8 * costs.features_secs, pool, handing_secs=costs.handing_secs, seed=given.seed
        )  # fmt: skip
        ideal = recordings * costs.features_secs / workers
        print(
            f"  {workers:>4} workers: {went.secs / 60:,.1f} min, {ideal / went.secs:.0%} of the ideal; {went.deaths} died, {went.again} tasks begun again"
        )
        tell(f"features of {recordings:,} recordings, {workers} workers", went.secs / 60, "min")
    bound = given.events * costs.index_nanos * _NANO
    print(
        f"a trace of {given.events:,} events: the index alone {bound / 60:,.1f} min, whatever the number of workers"
    )
    for workers in (2, 8, 32, 128):
        for name, pool in (
            ("nobody dies", Pool(workers=workers, slowness=0.0, deaths_an_hour=0.0)),
            ("stragglers and deaths", Pool(workers=workers)),
        ):
            alone, shared = trace_secs(given.events, costs, pool, seed=given.seed)
            print(
                f"  {workers:>4} workers, {name}: {shared / 60:,.1f} min, {alone / shared:.1f} times faster than one pass ({alone / 60:,.1f} min); at most {alone / bound:.1f} times"
            )
        tell(f"trace of {given.events:,} events, {workers} workers", shared / 60, "min")
    worse = replace(costs, handing_secs=costs.handing_secs * 4)
    went = simulated(
        recordings // 8, 8 * costs.features_secs, Pool(workers=128), handing_secs=worse.handing_secs, seed=given.seed
    )  # fmt: skip
    print(
        f"a scheduler that takes four times as long for a task: {went.secs / 60:,.1f} min with 128 workers"
    )


if __name__ == "__main__":
    main()
