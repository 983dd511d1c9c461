"""Popular objects, section 7's case: in the simulator's Train with coarse and exact remembered sets, and in the heap of a Java compiler.

Knows the simulator's plans and heap dumps; draws nothing.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import Collection, CollectionListener
from gcspy_drivers.simulator.plans.train import Train
from gcspy_drivers.simulator.programs.long_lifetimes import Paraffins
from gcspy_drivers.simulator.programs.program import ProgramRun
from gcspy_objects.hprof import machine_code
from gcspy_objects.hprof.heap_dump import HeapDump, load, parse
from numpy.typing import NDArray

from benchmarks.harness.environment import Unavailable
from benchmarks.paper.sessions import running_java

__all__ = ["in_a_compiler", "in_the_train"]

_HEAP_BYTES: Final = 1 << 20
_TURNS: Final = 20_000
_LIMIT: Final = 8
"""References from other cars that make an object popular."""

_CLASSES: Final = 400
_REGION_BYTES: Final = 1 << 20
_MOST_DUMP_BYTES: Final = 2 << 30
_MOST_NAMED: Final = 3
_COLUMNS: Final = 100


@dataclass
class _Sets(CollectionListener):
    """Remembered sets at the end of each collection.

    Attributes:
        plan: The collector.
        rows: For each collection: popular objects; entries for them; entries for other cars, in all and the most of one; the same where an
            entry is a whole car.
    """

    plan: Train
    rows: list[tuple[int, int, int, int, int, int]]

    def collection_ends(self, _collection: Collection) -> None:
        """Count."""
        regions = self.plan.regions()
        alone = regions.kinds == regions.kind_names.index("popular")
        car_of = {int(start): row for row, start in enumerate(regions.starts)}
        car_bytes = int(regions.starts[1] - regions.starts[0])
        own, others, coarse = 0, [], []
        for one in self.plan.remembered_sets():
            if one.start not in car_of:
                continue  # the nursery's
            if alone[car_of[one.start]]:
                own += len(one.holders)
                continue
            others.append(len(one.holders))
            coarse.append(len(np.unique((one.holders - regions.starts[0]) // car_bytes)))
        if others:
            row = (int(alone.sum()), own, sum(others), max(others), sum(coarse), max(coarse))
            self.rows.append(row)


def in_the_train() -> str:
    """Return a table: remembered sets of the Train under paraffins, with and without cars for popular objects; means of the later half."""
    lines = [
        "| popular objects | have a car of their own | entries for them | for all other cars | most of one car | one entry a referring car: all | most of one car |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for limit, name in ((0, "not isolated"), (_LIMIT, f"{_LIMIT} references from other cars")):
        plan = Train(Heap(_HEAP_BYTES, roots=256), popular=limit)
        sets = _Sets(plan, [])
        plan.listener = sets
        program = ProgramRun(Paraffins(Mutator(plan, seed=1)))
        while program.turns < _TURNS and program.step():
            pass
        program.close()
        later = np.array(sets.rows[len(sets.rows) // 2 :]).mean(axis=0)
        lines.append(f"| {name} | {' | '.join(f'{one:,.0f}' for one in later)} |")
    return "\n".join(lines)


def in_a_compiler(folder: Path) -> str:
    """Return a table: how few objects have how many of the references between regions of a JVM's heap.

    Raises:
        Unavailable: There is no JDK, or it makes no heap dump.
    """
    dump = _dumped(folder)
    region = dump.address // _REGION_BYTES
    source = np.repeat(np.arange(dump.objects), np.diff(dump.graph.starts))
    target = dump.graph.targets.astype(np.int64)
    # A JVM's objects have a pointer to their class that is no reference; the dump's graph has it as one.
    data = dump.kind != len(dump.classes)
    across = (region[source] != region[target]) & data[target]
    source, target = source[across], target[across]
    places = _regions_of(target, region[source], dump.objects)
    count = len(np.unique(region))
    lines = [
        textwrap.fill(
            f"{dump.objects:,} objects in {count} regions of 1 MB; {len(target):,} of their {int(data[dump.graph.targets].sum()):,} references "
            "lead to another region.",
            _COLUMNS,
        ),
        "",
        "| referred to from at least | objects | of all | references between regions that lead to them | such as |",
        "|--:|--:|--:|--:|---|",
    ]
    for least in (2, 4, 8, 16, count // 2):
        chosen = places >= least
        share = float(chosen[target].mean())
        lines.append(
            f"| {least} regions | {int(chosen.sum()):,} | {chosen.mean():.2%} | {share:.0%} | {_names(dump, chosen)} |"
        )
    return "\n".join(lines)


def _regions_of(
    target: NDArray[np.int64], region: NDArray[np.int64], objects: int
) -> NDArray[np.int64]:
    """How many regions refer to each object, (objects,)."""
    pairs = np.unique(np.stack((target, region)), axis=1)
    return np.bincount(pairs[0], minlength=objects)


def _names(dump: HeapDump, chosen: NDArray[np.bool_]) -> str:
    kinds, counts = np.unique(dump.kind[chosen], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_NAMED]
    return ", ".join(
        f"{int(counts[one]):,} of {dump.kind_name(int(kinds[one])).rpartition('.')[2]}"
        for one in order
    )


def _dumped(folder: Path) -> HeapDump:
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        raise Unavailable("there is no jcmd on PATH: apt-get install openjdk-17-jdk-headless")
    made = folder / "symbols.hprof"
    made.unlink(missing_ok=True)
    flags = ("-XX:+UseG1GC", f"-XX:G1HeapRegionSize={_REGION_BYTES}", "-Xmx1g")
    with running_java("Symbols", folder, flags=flags, arguments=(str(_CLASSES),)) as pid:
        command = [jcmd, str(pid), "GC.heap_dump", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not made.exists():
        raise Unavailable(f"no heap dump was made: {done.stdout.strip()[-200:]}")
    with io.FileIO(made) as file:
        data = load(file, made.name, _MOST_DUMP_BYTES, lambda _done, _whole: None)
    made.unlink()
    return parse(data, made.name, machine_code.load())
