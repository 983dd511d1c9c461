"""Who holds simulated objects: planted holders by name, what the roots reach on every collector, and answers while the program runs."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.simulator.driver.heap_answers import SimulatedGraph, simulated_namer
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plans import PLANS
from gcspy_drivers.simulator.programs import make_run
from gcspy_objects.graph.dominators import dominators
from gcspy_protocol.errors import TargetError

from gcspy_server.api import DetailTable, Event, HeapQuestion, HeapQuestionKind

HOLDERS, DOMINATORS = HeapQuestionKind.HOLDERS, HeapQuestionKind.DOMINATORS


def session(collector: str, *, pace_millis: int = 50) -> SimulatorSession:
    return SimulatorSession(
        SimulationOptions(
            collector=collector, heap_bytes=32 << 10, steps=60, pace_millis=pace_millis
        )
    )


def ask(
    one: SimulatorSession, kind: HeapQuestionKind = HOLDERS, type_name: str = "", most: int = 20
) -> DetailTable:
    return one.investigate(HeapQuestion(kind=kind, type_name=type_name, most=most), lambda *_: None)


def test_planted_holders_are_named() -> None:
    one = session("semispace")
    order, heap = one.heap.type_id("order"), one.mutator
    heap.new(3, 4)
    for field in range(3):
        heap.new(9, 1, type_id=order)
        heap.store(3, field, 9)
    heap.new(7, 0, 5, type_id=order)
    heap.copy(8, 7)
    heap.new(9, 2, type_id=order)  # root 4 and an order of root 3 have it
    heap.load(5, 3, 2)
    heap.store(5, 0, 9)
    heap.copy(4, 9)
    for slot in (5, 9):
        heap.clear(slot)
    table = ask(one, type_name="order")
    rows = {row[0]: row[1:5] for row in table.rows}
    # Two words each, and their fields; root 7 and root 8 hold the same one.
    assert rows == {
        "root 3": ("object", 3, 72, 1),
        "root 7": ("order", 1, 56, 1),
        "root 3 and root 4": ("object", 1, 32, 2),
    }
    whole = ask(one, DOMINATORS)
    assert [row[:4] for row in whole.rows] == [
        ("root 3", "object", 4, 120),
        ("root 7", "order", 1, 56),
        ("root 4", "order", 1, 32),
    ]
    with pytest.raises(TargetError, match="no object of a type 'bill'"):
        ask(one, type_name="bill")


def test_a_path_names_fields_and_is_cut_short_in_its_middle() -> None:
    one = session("marksweep")
    heap = one.mutator
    heap.new(0, 3)
    heap.copy(1, 0)
    for number in range(40):
        heap.new(2, 3, type_id=one.heap.type_id("last") if number == 39 else 0)
        heap.store(1, number % 3, 2)
        heap.copy(1, 2)
    for slot in (1, 2):
        heap.clear(slot)
    last = ask(one, DOMINATORS, most=1)
    assert last.rows[0][:3] == ("root 0", "object", 41)
    graph = SimulatedGraph(one.plan)
    (number,) = graph.of_type("last").tolist()
    way = simulated_namer(graph, slots=256, threads=1).way_to(number)
    assert way == "root 0[0][1][2][0][1][2][… 28 more …][1][2][0][1][2][0]"
    assert (
        simulated_namer(graph, slots=256, threads=2)
        .way_to(number)
        .startswith("root 0 of thread 0[0]")
    )


@pytest.mark.parametrize("collector", sorted(PLANS))
def test_what_the_roots_reach_is_what_the_program_can_reach(collector: str) -> None:
    one = session(collector)
    one.mutator = Mutator(one.plan, seed=3, shadow=True)
    run = make_run("lru", one.mutator)
    for _ in range(40):
        run.step()
    assert one.mutator.shadow is not None
    if one.plan.program_waits:
        pytest.fail("a step ends between collections")
    graph = SimulatedGraph(one.plan)
    objects = one.plan.objects()
    reached = dominators(graph.graph).order
    cells = graph.address[reached]
    identity = dict(
        zip(one.heap.bytes_of(objects.cells).tolist(), objects.identities.tolist(), strict=True)
    )
    assert {identity[cell] for cell in cells.tolist()} == one.mutator.shadow.reachable()
    assert len(graph.own) == len(np.unique(graph.address))
    run.close()


def test_it_is_answered_while_the_program_runs_and_at_a_pause() -> None:
    one = SimulatorSession(
        SimulationOptions(collector="generational", heap_bytes=64 << 10, pace_millis=0)
    )
    seen, go_on = threading.Event(), threading.Event()

    def hold(event: Event) -> None:
        """Hold the program at an event, as a pause does."""
        if event.sequence > 40 and one.plan.collection is None and not seen.is_set():
            seen.set()
            go_on.wait(60)

    one.server.add_observer(hold)
    stop = threading.Event()
    running = threading.Thread(target=one.run, args=(stop,))
    running.start()
    try:
        answered = 0
        while not seen.is_set():
            try:
                answered += len(ask(one, DOMINATORS).rows)
            except TargetError:
                pass  # in the middle of a collection, or before the first object
        assert answered
        first, second = ask(one, DOMINATORS), ask(one, DOMINATORS)
        assert first == second, "the program stands still"
    finally:
        stop.set()
        go_on.set()
        running.join(60)
    assert not running.is_alive()
    assert not ask(one, DOMINATORS).rows, "it is over, and its roots are gone"


def test_in_the_middle_of_a_collection_it_is_refused() -> None:
    one = session("semispace", pace_millis=0)
    refused: list[str] = []

    def look(event: Event) -> None:
        if one.plan.collection is not None:
            try:
                ask(one)
            except TargetError as error:
                refused.append(str(error))

    one.server.add_observer(look)
    one.run(threading.Event())
    assert refused
    assert all("a collection is under way" in each for each in refused)
