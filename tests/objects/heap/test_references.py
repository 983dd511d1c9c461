"""Who refers to whom in a real trace with pointers: complete, in the order of the fields, and with the dominators of networkx."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.graph.references import NO_NODE
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.heap.fields import reference_fields, weak_slot
from gcspy_objects.heap.references import NOT_IN_TRACE, TracedReferences, references_at
from gcspy_objects.names import TypeKind
from gcspy_objects.records import PointerKind, PointerSource, RecordKind
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import CommandError

from tests.objects.samples import path_of


@pytest.fixture(scope="module", name="heap")
def _heap() -> Iterator[RebuiltHeap]:
    with open_trace(path_of("pointers")) as trace, RebuiltHeap(trace) as heap:
        yield heap


def after(heap: RebuiltHeap, number: int) -> TracedReferences:
    event = heap.collections[number - 1].end_event + 1
    return references_at(heap, event, heap.at(event))


def births(heap: RebuiltHeap, found: TracedReferences) -> list[int]:
    now = heap.at(found.collection.end_event + 1)
    return [int(each) for each in now.birth[found.objects]]


def independently(heap: RebuiltHeap, number: int) -> tuple[set[tuple[int, int]], set[int]]:
    """References of a full collection by addresses after it, and what its roots hold; read record by record."""
    one = heap.collections[number - 1]
    (step,) = heap.steps(number, number)
    moved = dict(zip(step.before.address.tolist(), step.to.tolist(), strict=True))
    types = dict(zip(step.after.address.tolist(), step.after.type.tolist(), strict=True))
    edges, roots = set(), set()
    slots: dict[int, int] = defaultdict(int)
    for batch in heap.trace.batches():
        for row, how, value in zip(
            batch.pointer_record.tolist(),
            batch.pointer_kind.tolist(),
            batch.pointer_value.tolist(),
            strict=True,
        ):
            if not one.start_event <= batch.place.event + row < one.end_event:
                continue
            source = int(batch.address[row])
            if batch.kind[row] == RecordKind.POINTERS:
                if batch.detail[row] == PointerSource.ROOT:
                    if how != PointerKind.NULL:
                        roots.add(value)
                    continue
            else:
                source = moved[source]
            slot = slots[source]
            slots[source] += 1
            if how != PointerKind.NULL and slot != weak_slot(heap.trace.types, types[source]):
                edges.add((source, value + (source if how == PointerKind.RELATIVE else 0)))
    return edges, roots


@pytest.mark.parametrize("number", [2, 4, 6])
def test_after_a_full_collection_all_references_are_there_and_dominators_are_those_of_networkx(
    heap: RebuiltHeap, number: int
) -> None:
    found = after(heap, number)
    assert found.collection.number == found.complete.number == number
    now = heap.at(found.collection.end_event + 1)
    address = now.address[found.objects]
    graph = found.graph
    source = address[np.repeat(np.arange(graph.nodes), np.diff(graph.starts))]
    edges, roots = independently(heap, number)
    assert set(zip(source.tolist(), address[graph.targets].tolist(), strict=True)) == edges
    reported = found.root_kind != NOT_IN_TRACE
    assert set(address[graph.roots[reported]].tolist()) == roots
    tree = dominators(graph)
    assert tree.reached.all(), "a full collection leaves only what is reached"
    expected = nx.DiGraph()
    expected.add_edges_from(edges)
    expected.add_edges_from((0, int(root)) for root in address[graph.roots])
    above = nx.immediate_dominators(expected, 0)
    told = np.where(tree.dominator == NO_NODE, 0, address[tree.dominator])
    assert [above[each] for each in address.tolist()] == told.tolist()


def test_each_pointer_is_of_a_field_of_its_type(heap: RebuiltHeap) -> None:
    """All instances have as many pointers as fields, and arrays and texts are where fields of exactly these types are."""
    types = heap.trace.types
    looked_at = 0
    for number in (1, 2, 5, 6):
        found = after(heap, number)
        now = heap.at(found.collection.end_event + 1)
        of = now.type[found.objects]
        if number in (2, 6):
            instances = types.kind[of] == TypeKind.INSTANCE
            with_fields = np.array(
                [bool(reference_fields(types, int(row))) for row in of[instances]]
            )
            assert (found.named[instances] == with_fields).all()
        graph = found.graph
        holder = np.repeat(np.arange(graph.nodes), np.diff(graph.starts))
        for edge in np.flatnonzero(found.named[holder]).tolist():
            fields = reference_fields(types, int(of[holder[edge]]))
            assert fields is not None
            declared = fields[int(found.slot[edge])].type
            if declared.endswith("[]") or declared in ("java.lang.String", "java.lang.Class"):
                name = str(types.names[of[graph.targets[edge]]])
                looked_at += 1
                assert name == declared or declared == "java.lang.Object[]", (declared, name)
    assert looked_at > 4_000


def test_what_a_minor_collection_reports_is_what_the_next_full_one_does(heap: RebuiltHeap) -> None:
    """Nothing but the collection's own start runs between the two; all objects were young before the first."""
    minor, full = after(heap, 1), after(heap, 2)
    assert minor.complete.number == 1

    def edges(found: TracedReferences) -> set[tuple[int, int, int]]:
        names, graph = births(heap, found), found.graph
        return {
            (names[holder], int(found.slot[edge]), names[graph.targets[edge]])
            for holder in range(graph.nodes)
            if found.named[holder]
            for edge in range(graph.starts[holder], graph.starts[holder + 1])
        }

    one, other = edges(minor), edges(full)
    assert len(one) > 14_000
    assert len(one - other) < 20, "a few objects ran between"


def test_between_full_collections_older_references_are_kept(heap: RebuiltHeap) -> None:
    found = after(heap, 5)
    assert (found.collection.number, found.complete.number) == (5, 4)
    promoted = set(births(heap, found)) - set(births(heap, after(heap, 4)))
    assert promoted, "what the minor collection kept is there"
    names = births(heap, found)
    holders = {
        names[holder]
        for holder in range(found.graph.nodes)
        if found.graph.starts[holder] < found.graph.starts[holder + 1]
    }
    assert holders & promoted
    assert holders - promoted


def test_a_weak_reference_does_not_hold(heap: RebuiltHeap) -> None:
    types = heap.trace.types
    (soft,) = types.rows_named("java.lang.ref.SoftReference")
    assert weak_slot(types, soft) is None
    (weak,) = types.rows_named("java.lang.ref.WeakReference")
    slot = weak_slot(types, weak)
    fields = reference_fields(types, weak)
    assert fields is not None
    assert slot is not None
    assert fields[slot].name == "referent"


def test_where_the_trace_cannot_say_it_is_told_why(heap: RebuiltHeap) -> None:
    with pytest.raises(CommandError, match="no collection has ended yet"):
        references_at(heap, 100, heap.at(100))
    with (
        open_trace(path_of("promote")) as trace,
        RebuiltHeap(trace) as other,
        pytest.raises(CommandError, match="has no pointers"),
    ):
        references_at(other, other.events, other.at(other.events))
