"""CPython's collectors, simulated: each planted defect is caught, finalisers and weak references do what they do in the Python that runs this test, and the same program has the same collections in a real one."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.simulator.driver.python_companion import PythonCompanion
from gcspy_drivers.simulator.heap import HEADER_WORDS, LINK_SHIFT, Heap, identity_of
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import FULL, Collection, CollectionListener, Phase, Plan
from gcspy_drivers.simulator.plans import make_plan
from gcspy_drivers.simulator.plans.cpython import CPython
from gcspy_drivers.simulator.plans.cpython_incremental import CPythonIncremental
from gcspy_drivers.simulator.programs import make_run
from gcspy_protocol.errors import LocalProtocolError

from tests.drivers.simulator.variants import HEAP_BYTES, ROOTS, over, run_at_random, wrong_of

# ------------------------------------------------------------------------------ planted defects


class ForgetsToSubtract(CPython):
    """Takes no references from inside away: no cycle is garbage."""

    def _subtract(self, limit: int) -> int:
        return 0


class SubtractsTwice(CPython):
    """Takes each reference from inside away twice: what is in use looks like garbage."""

    def _subtract(self, limit: int) -> int:
        done = super()._subtract(limit)
        if done < limit:
            self._rewind()
            super()._subtract(1 << 30)
        return done

    def _deduce_again(self) -> None:
        self._lists.merge(4, 5)


class CollectsWithoutTheYounger(CPython):
    """Does not take the younger generations along, and says that it did."""

    def _begin(self, kind: str) -> Sequence[Phase]:
        after, before = self._lists.after.copy(), self._lists.before.copy()
        phases = super()._begin(kind)
        if kind == FULL:
            self._lists.after[:], self._lists.before[:] = after, before
        return phases


class CountsNoRoots(CPython):
    """Stores into roots without counting."""

    def write_root(self, slot: int, target: int) -> None:
        self.heap.roots[slot] = target


class LeavesWeakReferences(CPython):
    """Frees objects without clearing the weak references to them."""

    def _clear_weak(self, cell: int, alive: set[int] | None) -> int:
        return 0


class FreesTheResurrected(CPython):
    """Does not look again after finalisers were called."""

    def _deduce_again(self) -> None:
        self._lists.merge(4, 5)


class MarksNothing(CPythonIncremental):
    """Marks objects as visited without moving them to that list."""

    def _mark(self, limit: int) -> int:
        return 0


class LosesWhatIsPending(CPythonIncremental):
    """Takes the lists by the wrong name when a scavenge is over."""

    def _complete(self) -> None:
        self._lists.relabel(self._visited, 1)
        self.work_to_do = 0


def use_finalisers(mutator: Mutator) -> None:
    """Drop cycles with finalisers and weak references, one of which is resurrected."""
    mutator.finalise("Phoenix", 5)
    phoenix = mutator.heap.type_id("Phoenix")
    for turn in range(4):
        mutator.new(0, 1, type_id=phoenix if turn % 2 else 0)
        mutator.new(1, 1)
        mutator.store(0, 0, 1)
        mutator.store(1, 0, 0)
        mutator.refer_weakly(6 + turn, 0, calls_back=True)
        mutator.clear(0)
        mutator.clear(1)


def drive(plan: Plan) -> list[str]:
    mutator, watch = over(plan)
    use_finalisers(mutator)
    plan.collect()
    found = [*watch.wrong, *wrong_of(mutator, collected=True)]
    for _ in range(12):
        if found:
            break
        for slot in range(0, ROOTS, 5):  # a cycle, dropped
            mutator.new(slot, 2, 1)
            mutator.store(slot, 0, slot)
            mutator.clear(slot)
        run_at_random(mutator, 60)
        found = [*watch.wrong, *wrong_of(mutator)]
    if not found:
        plan.collect()
        found = [*watch.wrong, *wrong_of(mutator, collected=True)]
    return found


def small(kind: type[CPython]) -> Plan:
    return kind(Heap(HEAP_BYTES, roots=ROOTS), threshold0=12)


DEFECTS = (
    ForgetsToSubtract, SubtractsTwice, CollectsWithoutTheYounger, CountsNoRoots, LeavesWeakReferences, FreesTheResurrected,
    MarksNothing, LosesWhatIsPending,
)  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_caught(defect: type[CPython]) -> None:
    try:
        found = drive(small(defect))
    except LocalProtocolError as error:
        found = [str(error)]
    assert found


@pytest.mark.parametrize("plan", [CPython, CPythonIncremental])
def test_without_the_defect_nothing_is_found(plan: type[CPython]) -> None:
    assert drive(small(plan)) == []


# ---------------------------------------------------------------- finalisers and weak references


class Real:
    """Objects of this Python, whose finalisers and callbacks write down that they were called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.kept: list[Any] = []
        calls, kept = self.calls, self.kept

        class Node:
            def __init__(self, name: str, *, revive: bool = False) -> None:
                self.name, self.revive = name, revive
                self.other: Any = None
                self.weak: Any = None

            def __del__(self) -> None:
                calls.append(("finaliser", self.name))
                if self.revive:
                    kept.append(self)

        self.node = Node

    def refer(self, name: str, target: Any) -> weakref.ref[Any]:
        return weakref.ref(target, lambda _: self.calls.append(("callback", name)))


class Simulated:
    """The same, simulated."""

    def __init__(self, plan: type[CPython]) -> None:
        self.plan = plan(Heap(HEAP_BYTES, roots=ROOTS))
        self.mutator = Mutator(self.plan, shadow=True)
        self.names: dict[int, str] = {}
        self.mutator.finalise("Node")
        self.mutator.finalise("Phoenix", 20)

    def make(self, slot: int, name: str, kind: str = "Node") -> None:
        self.mutator.new(slot, 1, type_id=self.mutator.heap.type_id(kind))
        self._name(slot, name)

    def refer(self, slot: int, name: str, target: int) -> None:
        self.mutator.refer_weakly(slot, target, calls_back=True)
        self._name(slot, name)

    def _name(self, slot: int, name: str) -> None:
        heap = self.mutator.heap
        self.names[identity_of(heap.words, int(heap.roots[slot]))] = name

    def pair(self) -> None:
        """Let the objects in slots 0 and 1 refer to each other, and drop them."""
        self.mutator.store(0, 0, 1)
        self.mutator.store(1, 0, 0)
        self.mutator.clear(0)
        self.mutator.clear(1)

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(what, self.names[number]) for what, number in self.plan.calls]


def by_count_real() -> Sequence[object]:
    real = Real()
    node = real.node("a")
    weak = [real.refer("first", node), real.refer("second", node)]
    del node
    return [*real.calls, [one() is None for one in weak]]


def by_count(plan: type[CPython]) -> Sequence[object]:
    simulated = Simulated(plan)
    simulated.make(0, "a")
    simulated.refer(2, "first", 0)
    simulated.refer(3, "second", 0)
    simulated.mutator.clear(0)
    gone = [not simulated.mutator.load_weak(4, slot) for slot in (2, 3)]
    assert wrong_of(simulated.mutator) == []
    return [*simulated.calls, gone]


def cycle_real() -> Sequence[object]:
    real = Real()
    one, other = real.node("a"), real.node("b")
    one.other, other.other = other, one
    weak = real.refer("outside", one)
    one.weak = real.refer("inside", other)
    del one, other
    alive = weak() is not None
    gc.collect()
    return [alive, sorted(real.calls[1:]), real.calls[0], weak() is None]


def cycle(plan: type[CPython]) -> Sequence[object]:
    simulated = Simulated(plan)
    mutator = simulated.mutator
    mutator.new(0, 2, type_id=mutator.heap.type_id("Node"))
    simulated._name(0, "a")
    simulated.make(1, "b")
    simulated.refer(2, "outside", 0)
    simulated.refer(3, "inside", 1)
    mutator.store(0, 1, 3)
    mutator.clear(3)
    simulated.pair()
    alive = mutator.load_weak(4, 2)
    mutator.clear(4)
    simulated.plan.collect()
    assert wrong_of(mutator, collected=True) == []
    return [alive, sorted(simulated.calls[1:]), simulated.calls[0], not mutator.load_weak(4, 2)]


def resurrection_real() -> Sequence[object]:
    real = Real()
    one, other = real.node("a", revive=True), real.node("b")
    one.other, other.other = other, one
    weak = real.refer("w", one)
    del one, other
    gc.collect()
    seen = [sorted(real.calls), len(real.kept), weak() is None]
    real.kept.clear()
    gc.collect()
    return [*seen, sorted(real.calls)]


def resurrection(plan: type[CPython]) -> Sequence[object]:
    simulated = Simulated(plan)
    mutator = simulated.mutator
    simulated.make(0, "a", "Phoenix")
    simulated.make(1, "b")
    simulated.refer(2, "w", 0)
    simulated.pair()
    simulated.plan.collect()
    assert wrong_of(mutator, collected=True) == []
    seen = [sorted(simulated.calls), int(mutator.holds(20)), not mutator.load_weak(4, 2)]
    mutator.clear(20)
    simulated.plan.collect()
    assert wrong_of(mutator, collected=True) == []
    assert len(simulated.plan.objects()) == 1, "the weak reference"
    return [*seen, sorted(simulated.calls)]


@pytest.mark.parametrize("plan", [CPython, CPythonIncremental])
@pytest.mark.parametrize(
    ("real", "simulated"),
    [(by_count_real, by_count), (cycle_real, cycle), (resurrection_real, resurrection)],
    ids=["by count", "cycle", "resurrection"],
)
def test_finalisers_and_weak_references_do_what_they_do_in_this_python(
    real: Callable[[], Sequence[object]],
    simulated: Callable[[type[CPython]], Sequence[object]],
    plan: type[CPython],
) -> None:
    assert simulated(plan) == real()


def test_a_collector_without_finalisers_refuses_a_program_that_has_some() -> None:
    mutator = Mutator(make_plan("marksweep", Heap(8192, roots=256)))
    with pytest.raises(LocalProtocolError, match="marksweep has no finalisers: use cpython"):
        make_run("files", mutator).step()


# ------------------------------------------------------------------------------ generations


class Log(CollectionListener):
    """Keeps all collections."""

    def __init__(self) -> None:
        self.collections: list[Collection] = []

    def collection_starts(self, collection: Collection) -> None:
        self.collections.append(collection)


def test_a_generation_is_collected_when_its_count_is_above_its_threshold() -> None:
    plan = make_plan("cpython", Heap(1 << 20, roots=8), threshold0=100, threshold1=3)
    mutator = Mutator(plan)
    log = Log()
    plan.listener = log
    for _ in range(600):  # containers that stay
        mutator.new(1, 1)
        mutator.store(1, 0, 0)
        mutator.copy(0, 1)
    assert [(one.kind, one.cause) for one in log.collections] == [
        ("generation 0", "101 new containers"),
        ("generation 0", "101 new containers"),
        ("generation 0", "101 new containers"),
        ("generation 0", "101 new containers"),
        ("generation 1", "4 collections of the younger one"),
    ]


def test_an_increment_takes_a_part_and_one_object_may_pull_in_all_others() -> None:
    plan = CPythonIncremental(Heap(1 << 20, roots=64), threshold0=50)
    mutator = Mutator(plan, shadow=True)
    log = Log()
    plan.listener = log
    for _ in range(40):
        drop_a_ring(mutator, 10)
    sizes = [one.counts.get("increment", -1) for one in log.collections]
    assert sizes[0] == -1, "the first increment marks"
    assert any(0 < one < 200 for one in sizes)
    assert wrong_of(mutator) == []
    plan.collect()
    assert wrong_of(mutator, collected=True) == []
    log.collections.clear()
    drop_a_ring(mutator, 3000)  # more than any increment is to take
    for _ in range(40):
        drop_a_ring(mutator, 10)
    assert max(one.counts.get("increment", -1) for one in log.collections) > 1000


def drop_a_ring(mutator: Mutator, size: int) -> None:
    """Make objects that refer to each other, and let nothing else refer to them."""
    mutator.new(0, 1)
    mutator.copy(1, 0)
    for _ in range(size - 1):
        mutator.new(2, 1)
        mutator.store(2, 0, 1)
        mutator.copy(1, 2)
    mutator.store(0, 0, 1)
    for slot in range(3):
        mutator.clear(slot)


# ------------------------------------------------------------------------- beside a real Python


@pytest.mark.parametrize("program", ["rings", "lru"])
@pytest.mark.skipif(
    (3, 14) <= sys.version_info < (3, 14, 5), reason="this Python has the incremental collector"
)
def test_a_real_python_keeps_step_and_collects_as_often(program: str) -> None:
    options = SimulationOptions(
        collector="cpython", program=program, heap_bytes=1 << 20, beside="python", pace_millis=0, steps=450, plan={"threshold0": 200}
    )  # fmt: skip
    session = SimulatorSession(options)
    beside = session._beside
    assert isinstance(beside, PythonCompanion)
    seen: list[tuple[Any, Any]] = []
    stop = threading.Event()

    def look() -> None:
        if len(seen) == 449:
            beside.follow(session.heap.allocated_words)
            beside._read_state()
        seen.append((session.plan.generations(), beside._last))

    session.run(stop, on_step=look)
    assert beside.over == "closed"
    assert beside._process.poll() is not None
    simulated, real = seen[-1]
    assert real is not None
    assert simulated.thresholds == real.thresholds
    assert sum(simulated.collections) > 6
    assert abs(sum(simulated.collections) - sum(real.collections)) <= 2
    if program == "lru":  # no cycles: what lives is the same to the object
        assert sum(simulated.objects) == sum(real.objects)
    else:
        assert sum(real.collected) > 0.6 * sum(simulated.collected) > 0


def test_a_python_that_ends_is_told_and_the_simulation_goes_on() -> None:
    options = SimulationOptions(
        collector="cpython", program="rings", heap_bytes=1 << 16, beside="python", pace_millis=0, steps=6
    )  # fmt: skip
    session = SimulatorSession(options)
    beside = session._beside
    assert isinstance(beside, PythonCompanion)
    beside._process.kill()
    beside._process.wait()
    assert session.run(threading.Event()) == "the program has ended, after 6 steps"
    beside._read_state()
    assert beside._last is None
    with pytest.raises(LocalProtocolError, match="use one thread"):
        SimulatorSession(SimulationOptions(collector="cpython", beside="python", threads=2))


def test_words_of_the_header_are_where_the_counts_are() -> None:
    plan = make_plan("cpython", Heap(8192, roots=4))
    mutator = Mutator(plan)
    mutator.new(0, 1)
    mutator.store(0, 0, 0)
    cell = int(mutator.heap.roots[0])
    assert int(mutator.heap.words[cell + 1]) >> LINK_SHIFT == 2
    assert int(mutator.heap.words[cell + HEADER_WORDS]) == cell
    mutator.clear(0)
    assert len(plan.objects()) == 1
    plan.collect(FULL)
    assert len(plan.objects()) == 0
