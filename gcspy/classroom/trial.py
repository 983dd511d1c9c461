"""Tries a collector or a program of a student: runs it beside a second copy of the program's graph, and compares the heap with it at every step.

Knows the simulator; does not know reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import CommandError, GCspyError

__all__ = ["PROGRAMS_TO_TRY", "Trial", "try_collector", "try_program"]

PROGRAMS_TO_TRY: Final = ("reptile", "binarytrees", "gcold", "rings", "queue")
"""Programs that lists, trees, cycles, and changing references make difficult in different ways."""

_STEPS: Final = 120
_ROOTS: Final = 256
_MOST_TOLD: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One run of a collector with a program.

    Attributes:
        collector: Its name.
        program: The program's.
        right: Whether the heap was right at every step.
        problem: What was wrong; empty: nothing.
        collections: Collections that ended.
        freed: Objects that they freed.
        allocated: Bytes that the program allocated.
    """

    collector: str
    program: str
    right: bool
    problem: str = ""
    collections: int = 0
    freed: int = 0
    allocated: int = 0


def try_collector(
    path: Path,
    programs: tuple[str, ...] = PROGRAMS_TO_TRY,
    *,
    heap_bytes: int = 32768,
    seed: int = 1,
) -> list[Trial]:
    """Try a student's collector with each of these programs.

    Raises:
        CommandError: The file has an error that shows before it runs; with the line.
    """
    return [_try(str(path), program, heap_bytes, seed) for program in programs]


def try_program(path: Path, *, heap_bytes: int = 16384, seed: int = 1) -> list[Trial]:
    """Try a student's program with mark-sweep.

    Raises:
        CommandError: See `try_collector`.
    """
    return [_try("marksweep", str(path), heap_bytes, seed)]


def _try(collector: str, program: str, heap_bytes: int, seed: int) -> Trial:
    from gcspy_drivers.simulator.heap import Heap
    from gcspy_drivers.simulator.mutator import Mutator
    from gcspy_drivers.simulator.plan import Collection as PlanCollection
    from gcspy_drivers.simulator.plan import CollectionListener, OutOfHeap
    from gcspy_drivers.simulator.plans import make_plan
    from gcspy_drivers.simulator.programs import make_run
    from gcspy_drivers.simulator.verify import verify

    freed: list[int] = []

    class Counter(CollectionListener):
        def collection_ends(self, collection: PlanCollection) -> None:
            freed.append(collection.counts.get("freed objects", 0))

    heap = Heap(heap_bytes, roots=_ROOTS)
    plan = make_plan(collector, heap)
    plan.listener = Counter()
    mutator = Mutator(plan, seed=seed, shadow=True)
    run = make_run(program, mutator)
    assert mutator.shadow is not None
    problem = ""
    try:
        for _ in range(_STEPS):
            going_on = run.step()
            found = verify(plan, mutator.shadow)
            if found:
                problem = "; ".join(found[:_MOST_TOLD])
                break
            if not going_on:
                break
        if not problem and plan.exact:
            plan.collect()
            problem = "; ".join(verify(plan, mutator.shadow, collected=True)[:_MOST_TOLD])
        if not problem and plan.kinds and not freed:
            problem = "no collection has ended: use a smaller heap"
    except OutOfHeap as error:
        problem = str(error)
    except GCspyError as error:
        problem = str(error)
        if not isinstance(error, CommandError):
            raise
    finally:
        plan.abandon()
    return Trial(
        collector=collector,
        program=program,
        right=not problem,
        problem=problem,
        collections=len(freed),
        freed=sum(freed),
        allocated=heap.allocated_words * 8,
    )
