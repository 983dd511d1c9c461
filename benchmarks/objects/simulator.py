"""The simulator's collectors: objects made and collected a second, and a heap of 1,000,000 objects that is stepped.

    python -m benchmarks.objects.simulator [--objects N] [--collector NAME]... [--written] [--step]

Of each collector: how many short-lived objects a program makes a second, its collections included; how many objects a second a full collection gets through when half of them
are live; and, stepped by 1,000 units, the longest step. By processor time: loops have no reason to wait. `--written` runs the loops as they are written, without machine code.

`--step` is what a person who steps through such a heap waits for: the collection's next 1,000 units, and then all tiles of all spaces, gathered and encoded as for a window, by the clock; at level 3 (objects) and 4 (what is live,
too). A step is interactive below 100 ms or so.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from gcspy_drivers.simulator import loops
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.simulator.driver.options import MOST_HEAP_BYTES
from gcspy_drivers.simulator.heap import HEADER_WORDS, WORD_BYTES, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import WHOLE, CollectionListener
from gcspy_drivers.simulator.plans import PLANS, make_plan

from benchmarks.harness.figures import tell
from gcspy_compiled.machine_code import VARIABLE
from gcspy_server.api import LEVEL

_FIELDS, _DATA = 2, 2
_OBJECT_BYTES = (HEADER_WORDS + _FIELDS + _DATA) * WORD_BYTES
_STEP = 1000
_LOOKS = 8
"""Steps of a phase to measure."""


def _mutator(collector: str, heap_bytes: int) -> Mutator:
    return Mutator(make_plan(collector, Heap(heap_bytes // 4096 * 4096, roots=64)))


def made_a_second(collector: str, objects: int) -> tuple[float, int]:
    """Make short-lived objects in a heap that has room for a tenth of them.

    Returns:
        Objects a second of processor time, and how many collections there were.
    """
    room = objects * _OBJECT_BYTES // (10 if PLANS[collector].kinds else 1) * 2
    mutator = _mutator(collector, room)
    began = time.process_time()
    for number in range(objects):
        mutator.new(number & 7, _FIELDS, _DATA)
    return objects / (time.process_time() - began), mutator.plan.collections


def fill(mutator: Mutator, objects: int) -> None:
    """Make this many objects, every second of them in a list that stays alive."""
    for number in range(objects):
        if number & 1:
            mutator.new(2, _FIELDS, _DATA)
        else:
            mutator.new(1, _FIELDS, _DATA)
            mutator.store(1, 0, 0)
            mutator.copy(0, 1)


def collected_a_second(collector: str, objects: int) -> tuple[float, list[float], dict[str, int]]:
    """Collect a heap of this many objects, half of them live, in steps.

    Returns:
        Objects a second of processor time; how long each step took, in seconds by the clock; and the units of each phase.
    """
    mutator = _mutator(collector, objects * _OBJECT_BYTES * 5 // 2)
    fill(mutator, objects)
    mutator.plan.finish()
    there = len(mutator.plan.objects())
    steps: list[float] = []
    began = time.process_time()
    mutator.plan.begin()
    over = False
    while not over:
        before = time.perf_counter()
        over = mutator.plan.step(_STEP)
        steps.append(time.perf_counter() - before)
    took = time.process_time() - began
    assert mutator.plan.last is not None
    return there / took, steps, mutator.plan.last.work


@dataclass(frozen=True)
class Stepped:
    """Times of stepping through the collections of a heap.

    Attributes:
        objects: In the heap, when the first collection began.
        tiles: Of all spaces.
        alone: Seconds of each step of 1,000 units, by the clock.
        seen: By level, seconds of such a step and of gathering and encoding all tiles.
    """

    objects: int
    tiles: int
    alone: list[float]
    seen: dict[int, list[float]]


def stepped(collector: str, objects: int) -> Stepped:
    """Step through collections of this many objects, at least half of them live: one without clients, and one per level."""
    # 120 MiB are the most that a simulation has; half of a copying space is idle.
    room = min(objects * _OBJECT_BYTES * 5 // 2, MOST_HEAP_BYTES) // 4096 * 4096
    session = SimulatorSession(
        SimulationOptions(collector=collector, program="queue", heap_bytes=room, pace_millis=0)
    )
    plan = session.plan
    plan.listener = CollectionListener()
    _fill_up(session, objects)
    there = len(plan.objects())
    alone = [took for took, _ in _steps(session, [], looks=0)]
    events: list[int] = []
    session.server.add_observer(lambda event: events.append(event.sequence))
    seen: dict[int, list[float]] = {}
    for level in (3, 4):
        plan.listener = CollectionListener()
        _fill_up(session, objects)
        plan.listener = session
        session.server.set_setting(LEVEL, level)
        seen[level] = [took for took, told in _steps(session, events, looks=_LOOKS) if told == 1]
    return Stepped(there, sum(space.count for space in session.server.spaces), alone, seen)


def _fill_up(session: SimulatorSession, objects: int) -> None:
    while (there := len(session.plan.objects())) < objects:
        fill(session.mutator, max(objects - there, 1000))
        session.plan.finish()


def _steps(
    session: SimulatorSession, events: list[int], *, looks: int
) -> Iterator[tuple[float, int]]:
    """Drive a collection: of each phase this many steps of 1,000 units, and then the rest of it at once; 0: all steps are of 1,000 units.

    Yields:
        Seconds by the clock, and how many events there were, of each of these steps.
    """
    plan = session.plan
    plan.begin()
    over, phase, taken = False, plan.phases_left()[:1], 0
    while not over:
        if plan.phases_left()[:1] != phase:
            phase, taken = plan.phases_left()[:1], 0
        rest = 0 < looks <= taken
        before, told = time.perf_counter(), len(events)
        over = plan.step(WHOLE if rest else _STEP)
        taken += 1
        if not rest:
            yield time.perf_counter() - before, len(events) - told


def _tell_steps(collectors: Sequence[str], objects: int) -> None:
    print(
        f"{'':22}{'':21}{'a step of 1,000 units':>30}{'and seen at level 3':>22}{'at level 4':>22}"
    )
    print(
        f"{'collector':22}{'objects':>12}{'tiles':>9}{'steps':>8}"
        + f"{'median ms':>13}{'longest':>9}" * 3
    )
    for collector in collectors:
        if not PLANS[collector].kinds:
            continue
        found = stepped(collector, objects)
        row = f"{collector:22}{found.objects:12,}{found.tiles:9,}{len(found.alone):8,}{median(found.alone) * 1e3:13.2f}{max(found.alone) * 1e3:9.2f}"
        for level, seen in found.seen.items():
            row += f"{median(seen) * 1e3:13.1f}{max(seen) * 1e3:9.1f}"
            tell(
                f"{collector}: a step of a heap of {found.objects:,} objects, seen at level {level}, median",
                median(seen) * 1e3,
                "ms",
            )
        print(row, flush=True)


def main() -> None:
    """Measure, print, and report the figures with a budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--objects",
        type=int,
        default=1_000_000,
        help="objects of the heap that is stepped (default: 1000000)",
    )
    parser.add_argument(
        "--collector",
        action="append",
        choices=list(PLANS),
        help="only this one; may be given several times",
    )
    parser.add_argument(
        "--written", action="store_true", help="loops as they are written, without machine code"
    )
    parser.add_argument(
        "--step",
        action="store_true",
        help="only: what a person waits for who steps through such a heap",
    )
    asked = parser.parse_args()
    if asked.written:
        os.environ[VARIABLE] = "no"
    began = time.perf_counter()
    compiled = loops.compile_all()
    how = (
        f"machine code, there after {time.perf_counter() - began:.1f} s"
        if compiled
        else "as written"
    )
    print(
        f"loops: {how}; load {os.getloadavg()[0]:.1f}; {asked.objects:,} objects of {_OBJECT_BYTES} bytes"
    )
    if asked.step:
        _tell_steps(asked.collector or list(PLANS), asked.objects)
        return
    print(
        f"{'collector':22}{'made/s':>12}{'collections':>13}{'collected/s':>14}{'steps':>8}{'median ms':>11}{'longest ms':>12}"
    )
    for collector in asked.collector or PLANS:
        made, collections = made_a_second(collector, asked.objects)
        row = f"{collector:22}{made:12,.0f}{collections:13}"
        tell(f"{collector}: objects made", made, "a second")
        if PLANS[collector].kinds:
            collected, steps, work = collected_a_second(collector, asked.objects)
            steps.sort()
            middle, longest = steps[len(steps) // 2] * 1e3, steps[-1] * 1e3
            row += f"{collected:14,.0f}{len(steps):8}{middle:11.2f}{longest:12.2f}   {', '.join(f'{name} {units:,}' for name, units in work.items())}"
            tell(f"{collector}: objects collected", collected, "a second")
            tell(
                f"{collector}: longest step of {_STEP} units, heap of {asked.objects:,} objects",
                longest,
                "ms",
            )
        print(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
