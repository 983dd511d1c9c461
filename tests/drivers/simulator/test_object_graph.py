"""The graph of a small heap is that of the program, in every phase of every collector; where references cannot be followed it is unknown."""

from __future__ import annotations

from collections import Counter

import pytest
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.simulator.driver.object_graph import MOST_OBJECTS, object_graph
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import Collection, CollectionListener

from tests.drivers.simulator.variants import COLLECTING, Variant, make, run_at_random


class Comparison(CollectionListener):
    """Compares the graph with the program's shadow at each step of a collection."""

    def __init__(self, mutator: Mutator) -> None:
        self._mutator = mutator
        self.wrong: list[str] = []
        self.looks: Counter[str] = Counter()

    def collection_starts(self, collection: Collection) -> None:
        self.look("start")

    def progress(self, collection: Collection, phase: str, done: int) -> None:
        self.look(phase)

    def collection_ends(self, collection: Collection) -> None:
        self.look("end")

    def look(self, when: str) -> None:
        graph, shadow = object_graph(self._mutator.plan), self._mutator.shadow
        assert shadow is not None
        self.looks["torn" if graph.torn else "many" if graph.many else "whole"] += 1
        reachable = shadow.reachable()
        if graph.many:
            return
        if not reachable <= set(graph.numbers) and not graph.torn:
            self.wrong.append(f"{when}: an object of the program is missing")
        if graph.torn:
            assert all(target == -1 for _, _, target in graph.edges)
            return
        live = {number for number, one in zip(graph.numbers, graph.live, strict=True) if one}
        if live != reachable:
            self.wrong.append(f"{when}: {live ^ reachable} are reachable on one side only")
        found = {
            (graph.numbers[a], field): graph.numbers[b] for a, field, b in graph.edges if b >= 0
        }
        wanted = {
            (number, field): target
            for number in reachable
            for field, target in enumerate(shadow.objects[number].fields)
            if target
        }
        if not wanted.items() <= found.items():
            self.wrong.append(f"{when}: a reference is missing or leads elsewhere")


@pytest.mark.parametrize("variant", COLLECTING, ids=str)
def test_the_graph_is_the_programs(variant: Variant) -> None:
    mutator, _ = make(variant, heap_bytes=16 << 10, watched=False)
    comparison = Comparison(mutator)
    mutator.plan.listener = comparison
    mutator.plan.stride = 5
    run_at_random(mutator, 150)
    for kind in mutator.plan.kinds:
        mutator.plan.collect(kind)
    assert comparison.wrong == []
    assert comparison.looks["whole"] > 3


def test_a_large_heap_has_no_graph() -> None:
    mutator, _ = make(Variant("marksweep", {}), heap_bytes=64 << 10, watched=False)
    mutator.new(0, MOST_OBJECTS + 1)
    for field in range(MOST_OBJECTS + 1):
        mutator.new(1, 0)
        mutator.store(0, field, 1)
    assert object_graph(mutator.plan).many


def test_a_session_has_the_spaces_when_they_are_asked_for() -> None:
    names = []
    for graph in (False, True):
        session = SimulatorSession(SimulationOptions(heap_bytes=4096, steps=3, graph=graph))
        names.append([one.space.name for one in session._others])
    assert names[0] == ["Free lists"]
    assert names[1] == ["Free lists", "Objects", "References", "Parts of the heap"]
