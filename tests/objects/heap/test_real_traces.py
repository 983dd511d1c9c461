"""The heaps of the six sample traces are those of the VM that wrote them: by its log, and by what the programs say of themselves."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gcspy_objects.consistency import ConsistencyReport, check
from gcspy_objects.heap import COLUMNS, Fate, HeapSnapshot, Keep, Lives, RebuiltHeap
from gcspy_objects.hotspot_log import read_log
from gcspy_objects.trace import open_trace
from numpy.typing import NDArray

from gcspy_compiled import machine_code
from tests.objects.anttracks.samples import FOLDER, SAMPLES, sample

COLLECTIONS = {"churn": 9, "compressed": 2, "list": 2, "pointers": 6, "promote": 8, "threads": 6}
FULL = {"churn": 1, "compressed": 1, "list": 1, "pointers": 3, "promote": 3, "threads": 1}


@dataclass
class Sample:
    name: str
    heap: RebuiltHeap
    report: ConsistencyReport
    lives: dict[str, NDArray[Any]]


@pytest.fixture(params=SAMPLES, scope="module", name="traced")
def _sample(request: pytest.FixtureRequest) -> Iterator[Sample]:
    with (
        open_trace(FOLDER / f"{request.param}.tar.xz") as trace,
        RebuiltHeap(trace, keep=Keep(events=10_000)) as heap,
    ):
        report = check(heap, read_log((sample(request.param) / "gc.log").read_text().splitlines()))
        yield Sample(request.param, heap, report, joined(list(heap.lives())))


def joined(batches: list[Lives]) -> dict[str, NDArray[Any]]:
    return {
        name: np.concatenate([getattr(one, name) for one in batches])
        for name in Lives.__dataclass_fields__
    }


def test_no_space_has_a_hole_and_tops_and_class_histograms_are_those_of_the_vms_log(
    traced: Sample,
) -> None:
    report = traced.report
    assert report.consistent, report.findings.first or report.ended
    assert report.collections == COLLECTIONS[traced.name]
    assert report.spaces_tiled == report.tops_compared == 8 * report.collections
    assert report.histograms_compared == FULL[traced.name]


def test_every_line_of_the_programs_truth_holds(traced: Sample) -> None:
    lines = [
        line
        for line in (sample(traced.name) / "truth.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert lines
    for line in lines:
        held(traced, line.split())


def held(traced: Sample, words: list[str]) -> None:
    """Hold one line such as ``live@end Promote$Tree 22980 Promote$Pay 11505`` against the heap."""
    what, heap = words[0], traced.heap
    if what == "allocated_at_site":
        rows = at_site(traced, words[1], words[2]) & ~traced.lives["filler"].astype(bool)
        assert_counts(traced.lives["length"][rows], words[3:])
    elif what == "allocated":
        rows = of_type(heap, traced.lives["type"], words[1])
        lengths = traced.lives["length"][rows]
        assert_counts(lengths, words[2:])
        if "withlen>=255" in words:
            assert np.count_nonzero(lengths >= 255) == int(words[words.index("withlen>=255") + 1])
    elif what == "live_at_site":
        rows = at_site(traced, words[1], words[2]) & (traced.lives["died_in"] == 0)
        assert_counts(traced.lives["length"][rows], words[3:])
    else:
        full = [one.number for one in heap.collections if one.full]
        number = full[{"live@before1": 0, "live@drop": 1, "live@gc2": 1}.get(what, -1)]
        snapshot = heap.at_collection(number, end=True)
        names = re.findall(r"(\S*[$;]\S*) (\d+)(?: elements (\d+))?", " ".join(words[1:]))
        assert names
        for name, count, elements in names:
            lengths = snapshot.length[of_type(heap, snapshot.type, name)]
            assert len(lengths) == int(count), name
            assert not elements or lengths.sum() == int(elements), name
        if "bytearrays" in words:
            rows = (np.isin(snapshot.site, sites(heap, words[1] + ".<init>"))) & of_type(
                heap, snapshot.type, "byte[]"
            )
            assert_counts(snapshot.length[rows], words[words.index("bytearrays") + 1 :])


def assert_counts(lengths: NDArray[Any], words: list[str]) -> None:
    assert len(lengths) == int(words[0])
    if words[1:2] == ["elements"]:
        assert lengths.astype(np.int64).sum() == int(words[2])


def of_type(heap: RebuiltHeap, types: NDArray[Any], name: str) -> NDArray[np.bool_]:
    wanted = re.sub(r"^\[+L(.*);$", lambda found: found[1] + "[]" * found[0].count("["), name)
    rows = heap.trace.types.rows_named(wanted)
    assert rows, name
    return np.isin(types, rows)


def sites(heap: RebuiltHeap, method: str) -> list[int]:
    names = [heap.trace.sites.name(row).partition("(")[0] for row in range(len(heap.trace.sites))]
    return [row for row, name in enumerate(names) if name == method]


def at_site(traced: Sample, method: str, type_name: str) -> NDArray[np.bool_]:
    rows = sites(traced.heap, method)
    assert rows, method
    return np.isin(traced.lives["site"], rows) & of_type(
        traced.heap, traced.lives["type"], type_name
    )


def same(one: HeapSnapshot, other: HeapSnapshot) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS) and (
        (one.event, one.collections, one.allocated_bytes, one.spaces)
        == (other.event, other.collections, other.allocated_bytes, other.spaces)
    )


def compare_with_straight_replays(name: str, count: int) -> None:
    with (
        open_trace(FOLDER / f"{name}.tar.xz") as trace,
        RebuiltHeap(trace, keep=Keep(events=5_000)) as heap,
        RebuiltHeap(trace, keep=Keep(count=0)) as straight,
    ):
        numbers = random.Random(8)
        assert len(heap.checkpoints)
        assert not len(straight.checkpoints)
        events = [numbers.randrange(heap.events + 1) for _ in range(count)]
        # Upwards, the straight one never goes back to the beginning: it is one replay, read here
        # and there.
        expected = {event: straight.at(event) for event in sorted(events)}
        for event in events:
            assert same(heap.at(event), expected[event]), event


@pytest.mark.parametrize("name", ["pointers", "list"])
def test_the_heap_at_ten_random_events_of_a_trace_is_that_of_a_straight_replay(name: str) -> None:
    compare_with_straight_replays(name, 10)


@pytest.mark.soak
@pytest.mark.parametrize("name", SAMPLES)
def test_the_heap_at_200_random_events_is_that_of_a_straight_replay(name: str) -> None:
    machine_code.compile_all()
    compare_with_straight_replays(name, 200)
    machine_code.forget()


def test_every_object_is_born_once_and_what_its_collections_say_adds_up(traced: Sample) -> None:
    lives, own = traced.lives, ~traced.lives["filler"].astype(bool)
    assert len(np.unique(lives["birth"])) == len(lives["birth"])
    assert (lives["died_in"] == 0).sum() == len(traced.heap.at(traced.heap.events))
    for one in traced.heap.collections:
        assert np.count_nonzero(own & (lives["died_in"] == one.number)) == one.objects_died
        assert (
            lives["size"][own & (lives["died_in"] == one.number)].astype(np.int64).sum()
            == one.bytes_died
        )


@pytest.mark.parametrize("traced", ["churn", "pointers"], indirect=True)
def test_a_step_says_of_every_object_what_the_collection_did_to_it(traced: Sample) -> None:
    for step in traced.heap.steps():
        one = step.collection
        assert same(step.before, traced.heap.at_collection(one.number))
        assert same(step.after, traced.heap.at_collection(one.number, end=True))
        own = ~step.before.filler
        counts = [
            np.count_nonzero(own & (step.fate == fate))
            for fate in (Fate.MOVED, Fate.PROMOTED, Fate.DIED)
        ]
        assert counts == [one.objects_moved, one.objects_promoted, one.objects_died]
        survived = step.fate != Fate.DIED
        assert np.array_equal(
            np.sort(step.to[survived]), step.after.address[step.after.birth <= one.start_event]
        )
        assert tuple(step.before.tops().values()) == one.tops_before


def test_a_life_goes_from_birth_through_every_move_to_death() -> None:
    with open_trace(FOLDER / "pointers.tar.xz") as trace, RebuiltHeap(trace) as heap:
        lives = joined(list(heap.lives()))
        steps = list(heap.steps())
        for died_in, at_least in ((0, 3), (4, 2), (1, 0)):
            births = lives["birth"][(lives["died_in"] == died_in) & (lives["moves"] >= at_least)]
            life = heap.follow(int(births[len(births) // 2]))
            assert life.died_in == died_in
            stays = iter(life.stays)
            stay = next(stays)
            assert stay.event == life.birth
            for step in steps:
                row = step.before.row_of(life.birth)
                if row is None:
                    continue
                assert step.before.address[row] == stay.address
                if step.fate[row] == Fate.DIED:
                    assert step.collection.number == life.died_in
                elif step.fate[row] != Fate.UNTOUCHED:
                    stay = next(stays)
                    assert (stay.collection, stay.fate, stay.address) == (
                        step.collection.number,
                        step.fate[row],
                        step.to[row],
                    )
            assert next(stays, None) is None
