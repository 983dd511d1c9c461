"""The simulator's collectors: objects made and collected a second, and a heap of 1,000,000 objects that is stepped.

    python -m benchmarks.simulator [--objects N] [--collector NAME]... [--written]

Of each collector: how many short-lived objects a program makes a second, its collections included; how many objects a second a full collection gets through when half of them
are live; and, stepped by 1,000 units, the longest step. By processor time: loops have no reason to wait. `--written` runs the loops as they are written, without machine code.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from gcspy_drivers.simulator import loops
from gcspy_drivers.simulator.heap import HEADER_WORDS, WORD_BYTES, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plans import PLANS, make_plan
from gcspy_objects.machine_code import VARIABLE

from benchmarks.figures import tell

_FIELDS, _DATA = 2, 2
_OBJECT_BYTES = (HEADER_WORDS + _FIELDS + _DATA) * WORD_BYTES
_STEP = 1000


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
    """Make so many objects, every second of them in a list that lives."""
    for number in range(objects):
        if number & 1:
            mutator.new(2, _FIELDS, _DATA)
        else:
            mutator.new(1, _FIELDS, _DATA)
            mutator.store(1, 0, 0)
            mutator.copy(0, 1)


def collected_a_second(collector: str, objects: int) -> tuple[float, list[float], dict[str, int]]:
    """Collect a heap of so many objects, half of them live, in steps.

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


def main() -> None:
    """Measure, print, and tell what has a budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1_000_000, help="objects of the heap that is stepped (default: 1000000)")
    parser.add_argument("--collector", action="append", choices=list(PLANS), help="only this one; may be given several times")
    parser.add_argument("--written", action="store_true", help="loops as they are written, without machine code")
    asked = parser.parse_args()
    if asked.written:
        os.environ[VARIABLE] = "no"
    began = time.perf_counter()
    compiled = loops.compile_all()
    how = f"machine code, there after {time.perf_counter() - began:.1f} s" if compiled else "as written"
    print(f"loops: {how}; load {os.getloadavg()[0]:.1f}; {asked.objects:,} objects of {_OBJECT_BYTES} bytes")
    print(f"{'collector':22}{'made/s':>12}{'collections':>13}{'collected/s':>14}{'steps':>8}{'median ms':>11}{'longest ms':>12}")
    for collector in asked.collector or PLANS:
        made, collections = made_a_second(collector, asked.objects)
        row = f"{collector:22}{made:12,.0f}{collections:13}"
        tell(f"{collector}: objects made", made, "a second")
        if PLANS[collector].kinds:
            collected, steps, work = collected_a_second(collector, asked.objects)
            steps.sort()
            median, longest = steps[len(steps) // 2] * 1e3, steps[-1] * 1e3
            row += f"{collected:14,.0f}{len(steps):8}{median:11.2f}{longest:12.2f}   {', '.join(f'{name} {units:,}' for name, units in work.items())}"
            tell(f"{collector}: objects collected", collected, "a second")
            tell(f"{collector}: longest step of {_STEP} units, heap of {asked.objects:,} objects", longest, "ms")
        print(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
