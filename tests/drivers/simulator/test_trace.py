"""A trace of a simulation rebuilt is the simulated heap, object by object, at random moments, under every collector."""

from __future__ import annotations

import io
import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_drivers.simulator.heap import FORWARDED, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plans import make_plan
from gcspy_drivers.simulator.programs.stack import Stack
from gcspy_drivers.simulator.trace_recorder import TraceRecorder
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.records import RecordKind
from gcspy_objects.trace import open_trace

from gcspy.cli import main
from tests.drivers.simulator.variants import HEAP_BYTES, ROOTS, VARIANTS, Variant, run_at_random

MOMENTS = 10_000
"""At so many moments of all collectors together, under soak."""

SOME = [
    variant
    for number, variant in enumerate(VARIANTS)
    if variant.plan != (VARIANTS[number - 1].plan if number else "")
]
"""One variant of each collector."""


def columns(plan: Any) -> list[tuple[int, int, int, int]]:
    """Return address, bytes, type and identity of each object of the simulated heap, by address."""
    objects = plan.objects()
    objects = objects.where(~objects.having(FORWARDED))
    addresses = plan.heap.bytes_of(objects.cells).astype(np.int64).tolist()
    found = zip(
        addresses,
        (objects.sizes * 8).tolist(),
        objects.types.tolist(),
        objects.identities.tolist(),
        strict=True,
    )
    return sorted(found)


def compare(variant: Variant, steps: int, moments: int, path: Path, seed: int) -> int:
    """Run a random program, note its heap at random moments, and compare; returns how many were compared."""
    random = np.random.default_rng(seed)
    plan = make_plan(variant.plan, Heap(HEAP_BYTES, roots=ROOTS), **variant.options)
    file = io.BytesIO()
    recorder = TraceRecorder(plan, file)
    mutator = Mutator(plan, seed=seed)
    mutator.recorder = recorder
    seen: list[tuple[int, list[tuple[int, int, int, int]]]] = []
    done = 0
    while done < steps:
        more = int(random.integers(1, max(2, 2 * steps // moments)))
        if run_at_random(mutator, more) < more:
            break
        done += more
        if not (plan.moves and plan.collection is not None):
            seen.append((recorder.events, columns(plan)))
    recorder.end()
    path.write_bytes(file.getvalue())
    with open_trace(path) as trace, RebuiltHeap(trace) as heap:
        assert heap.findings.first is None
        assert heap.ended is None
        births = np.concatenate(
            [
                np.flatnonzero(batch.kind == RecordKind.ALLOCATE) + batch.place.event
                for batch in trace.batches()
            ]
        )
        for event, wanted in seen:
            snapshot = heap.at(event)
            identity = np.searchsorted(births, snapshot.birth) + 1
            names = [trace.types.names[row] for row in snapshot.type.tolist()]
            found = list(
                zip(
                    snapshot.address.tolist(),
                    snapshot.size.tolist(),
                    names,
                    identity.tolist(),
                    strict=True,
                )
            )
            assert found == [
                (place, size, plan.heap.types[kind], number) for place, size, kind, number in wanted
            ], event
    return len(seen)


@pytest.mark.parametrize("variant", SOME, ids=str)
def test_a_rebuilt_trace_is_the_heap(variant: Variant, tmp_path: Path) -> None:
    assert compare(variant, 900, 30, tmp_path / "s.gctrace", 5) > 5


@pytest.mark.soak
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_rebuilt_trace_is_the_heap_at_many_moments(variant: Variant, tmp_path: Path) -> None:
    compared, seeds = 0, count()
    while compared < MOMENTS // len(VARIANTS) + 1:
        seed = next(seeds)
        compared += compare(variant, 2000, 200, tmp_path / f"{seed}.gctrace", seed)


def test_sites_of_a_trace_count_what_the_lines_of_the_program_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = make_plan("semispace", Heap(HEAP_BYTES, roots=ROOTS))
    path = tmp_path / "sites.gctrace"
    mutator = Mutator(plan)
    stack = Stack(mutator)
    with path.open("wb") as file:
        mutator.recorder = TraceRecorder(plan, file)
        for number in range(60):
            with stack.scope() as here:
                here.new("Pair", fields=2)
                if number % 3:
                    here.empty().new("List", fields=1)
                else:
                    here.new("Dict", data=4)
        mutator.recorder.end()
    assert main(["objects", "sites", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["type_name"], row["allocated_objects"]) for row in rows] == [
        ("Pair", 60),
        ("List", 40),
        ("Dict", 20),
    ]
    assert all("(test_trace.py) @ " in row["site_name"] for row in rows)
    assert len({row["site_name"] for row in rows}) == 3
