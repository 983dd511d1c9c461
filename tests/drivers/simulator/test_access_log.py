"""Accesses in the simulator: the log against a record of every operation, and the trace against the log."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.simulator.access_log import AccessLog
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.simulator.heap import FORWARDED, Heap, identity_of
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plans import make_plan
from gcspy_drivers.simulator.programs import make_run
from gcspy_drivers.simulator.trace_recorder import TraceRecorder
from gcspy_objects.access.recorder import access_history, access_names
from gcspy_objects.gctrace.reader import GCspyTrace
from gcspy_objects.heap import RebuiltHeap

from tests.matrix import matrix

PLANS = ("semispace", "marksweep", "markcompact", "generational", "immix", "regions", "train")


class RecordingMutator(Mutator):
    """A mutator that writes down the number of each object that an operation accesses, by interval."""

    truth: set[tuple[int, int]]

    def _note(self, *slots: int) -> None:
        for slot in slots:
            cell = int(self.heap.roots[slot])
            if cell:
                self.truth.add((identity_of(self.heap.words, cell), self.plan.collections))

    def new(
        self, slot: int, fields: int, data: int = 0, *, type_id: int = 0, thread: int = 0
    ) -> None:
        """Make an object, which is an access."""
        super().new(slot, fields, data, type_id=type_id, thread=thread)
        self._note(slot)

    def load(self, to: int, slot: int, field: int) -> bool:
        """Read a field."""
        self._note(slot)
        return super().load(to, slot, field)

    def store(self, slot: int, field: int, value: int | None) -> None:
        """Write a field."""
        self._note(slot)
        super().store(slot, field, value)

    def same(self, slot: int, other: int) -> bool:
        """Compare references."""
        self._note(slot, other)
        return super().same(slot, other)

    def fields(self, slot: int) -> int:
        """Ask for the number of fields."""
        self._note(slot)
        return super().fields(slot)


@pytest.mark.parametrize(
    "plan_name", matrix(PLANS, usual=("semispace", "marksweep", "generational"))
)
@pytest.mark.parametrize("program", ["queue", "binarytrees"])
def test_log_and_trace_have_exactly_the_accesses_that_happened(
    plan_name: str, program: str, tmp_path: Path
) -> None:
    plan = make_plan(plan_name, Heap(96 * 1024))
    mutator = RecordingMutator(plan, seed=3)
    mutator.truth = set()
    log = AccessLog(plan, keep=True)
    mutator.accesses = log
    file = io.BytesIO()
    recorder = TraceRecorder(plan, file, {"name": "made"}, log=log)
    mutator.recorder = recorder
    run = make_run(program, mutator)
    for _ in range(120):
        run.step()
    plan.finish()
    log.end()
    recorder.end()
    logged = {(int(one), interval) for interval, found in log.accessed for one in found}
    assert plan.collections
    assert logged == mutator.truth

    path = tmp_path / "made.gctrace"
    path.write_bytes(file.getvalue())
    with GCspyTrace(path) as trace, RebuiltHeap(trace, contiguous=False) as heap:
        history = access_history(heap)
        assert not heap.findings
        assert heap.ended is None
        assert "Tree" in access_names(heap).types or "Message" in access_names(heap).types
    pairs = zip(history.accessed_object.tolist(), history.accessed_in.tolist(), strict=True)
    assert {(row + 1, interval) for row, interval in pairs} == mutator.truth
    for name in ("size", "born", "died"):
        assert getattr(history, name).tolist() == getattr(log.objects, name)[1:].tolist(), name
    assert history.observed.all()


def test_idle_intervals_follow_an_object_that_moves() -> None:
    plan = make_plan("semispace", Heap(8 * 1024))
    mutator = Mutator(plan)
    log = AccessLog(plan)
    mutator.accesses = log
    mutator.new(0, 1)
    mutator.new(1, 1)
    told = []
    for turn in range(4):
        plan.collect()
        if turn == 2:
            mutator.store(0, 0, 1)
        objects = plan.objects()
        order = np.argsort(objects.identities)
        told.append(log.idle(objects)[order].tolist())
    assert told == [[0, 0], [1, 1], [0, 2], [0, 3]]


@pytest.mark.parametrize("collector", ["refcount", "incremental", "semispace"])
def test_a_session_writes_a_trace_under_every_kind_of_collector(
    collector: str, tmp_path: Path
) -> None:
    path = tmp_path / "made.gctrace"
    options = SimulationOptions(
        collector=collector, program="queue", trace=str(path), heap_bytes=64 * 1024, steps=150
    )
    session = SimulatorSession(options)
    session.run(threading.Event())
    session.server.close()
    present = session.plan.objects()
    present = present.where(~present.having(FORWARDED))
    with GCspyTrace(path) as trace, RebuiltHeap(trace, contiguous=False) as heap:
        assert not heap.findings
        assert heap.ended is None
        rebuilt = heap.at(heap.events)
        assert rebuilt.address.tolist() == session.heap.bytes_of(present.cells).tolist()
        # A bitmap cannot tell an object from the one that lay at its address before.
        told = bool(access_history(heap).observed.any())
        assert told == (collector == "semispace")
