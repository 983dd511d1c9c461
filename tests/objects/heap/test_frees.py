"""Heaps whose objects are freed one by one: equal to a straight replay with a dictionary, at any event, in pieces or at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.reader import GCspyTrace
from gcspy_objects.heap import Fate, Keep, RebuiltHeap, Rule
from gcspy_objects.records import CollectionKind, RecordKind

from tests.objects.gctrace.made import MadeTrace, event_columns

Truth = dict[int, tuple[int, int, int]]
"""Address to birth, size and site."""


def program(count: int, seed: int, *, collections: bool) -> EventColumns:
    """Return the events of a program that allocates and frees, and collects now and then."""
    random = np.random.default_rng(seed)
    live: list[int] = []
    rows: list[tuple[int, int, int, int, int, int]] = []
    number = 0
    while len(rows) < count:
        if collections and random.random() < 0.02:
            number += 1
            rows.append(
                (RecordKind.COLLECTION_START, 0, number, 0, number, CollectionKind.FULL_TOLD)
            )
            for _ in range(min(len(live), int(random.integers(0, 6)))):
                freed = live.pop(int(random.integers(len(live))))
                rows.append((RecordKind.FREE, freed, 0, 0, 0, 1))
            rows.append((RecordKind.COLLECTION_END, 0, number, 0, number, CollectionKind.FULL_TOLD))
        elif live and random.random() < 0.48:
            rows.append((RecordKind.FREE, live.pop(int(random.integers(len(live)))), 0, 0, 0, 0))
        else:
            address = 0x10000 + 64 * int(random.integers(400))
            while address in live:
                address = 0x10000 + 64 * int(random.integers(400))
            live.append(address)
            rows.append(
                (
                    RecordKind.ALLOCATE,
                    address,
                    int(random.integers(1, 64)),
                    int(random.integers(5)),
                    0,
                    0,
                )
            )
    columns = np.array(rows, np.int64).T.tolist()
    kind, address, size, site, length, detail = columns
    return event_columns(kind, address=address, size=size, site=site, length=length, detail=detail)


def replayed(events: EventColumns, until: int) -> Truth:
    """Return the heap before an event, by a dictionary."""
    heap: Truth = {}
    for event in range(until):
        if events.kind[event] == RecordKind.ALLOCATE:
            heap[int(events.address[event])] = event, int(events.size[event]), 0
        elif events.kind[event] == RecordKind.FREE:
            del heap[int(events.address[event])]
    return heap


def opened(events: EventColumns, path: Path, block: int = 97) -> GCspyTrace:
    """Write events in small blocks, and open the trace."""
    made = MadeTrace()
    for low in range(0, len(events), block):
        names = ("detail", "address", "to", "size", "site", "length")
        part = slice(low, low + block)
        made.writer.write(
            event_columns(
                events.kind[part].tolist(), **{name: getattr(events, name)[part] for name in names}
            ),
            thread=1,
        )
    return made.opened(path)


@pytest.mark.parametrize("collections", [False, True])
def test_the_heap_at_any_event_is_that_of_a_replay(tmp_path: Path, *, collections: bool) -> None:
    events = program(4000, 11, collections=collections)
    with (
        opened(events, tmp_path / "p.gctrace") as trace,
        RebuiltHeap(trace, keep=Keep(events=500)) as heap,
    ):
        assert heap.findings.first is None
        assert heap.ended is None
        for event in [
            0,
            1,
            len(events),
            *np.random.default_rng(1).integers(0, len(events), 25).tolist(),
        ]:
            snapshot = heap.at(event)
            found = dict(
                zip(
                    snapshot.address.tolist(),
                    zip(
                        snapshot.birth.tolist(),
                        snapshot.size.tolist(),
                        [0] * len(snapshot),
                        strict=True,
                    ),
                    strict=True,
                )
            )
            assert found == replayed(events, event), event
            assert (snapshot.space >= 0).all()


def test_collections_count_what_is_freed_in_them(tmp_path: Path) -> None:
    events = program(3000, 3, collections=True)
    starts = np.flatnonzero(events.kind == RecordKind.COLLECTION_START)
    ends = np.flatnonzero(events.kind == RecordKind.COLLECTION_END)
    with opened(events, tmp_path / "c.gctrace") as trace, RebuiltHeap(trace) as heap:
        assert len(heap.collections) == len(ends) > 10
        for one, start, end in zip(heap.collections, starts.tolist(), ends.tolist(), strict=True):
            assert (one.start_event, one.end_event) == (start, end)
            before = replayed(events, start)
            assert (one.objects_before, one.bytes_before) == (
                len(before),
                sum(size for _, size, _ in before.values()),
            )
            assert one.objects_died == int((events.kind[start:end] == RecordKind.FREE).sum())
        for step in heap.steps(3, 5):
            died = step.before.birth[step.fate == Fate.DIED]
            assert len(died) == step.collection.objects_died
            assert not np.isin(died, step.after.birth).any()


def test_every_life_is_told_once_with_its_death(tmp_path: Path) -> None:
    events = program(3000, 5, collections=True)
    allocated = np.where(events.kind == RecordKind.ALLOCATE, events.size, 0)
    clock = np.concatenate(([0], np.cumsum(allocated)))
    ended = np.concatenate(([0], np.cumsum(events.kind == RecordKind.COLLECTION_END)))
    deaths: dict[int, int] = {}
    births: dict[int, int] = {}
    for event in range(len(events)):
        if events.kind[event] == RecordKind.ALLOCATE:
            births[int(events.address[event])] = event
        elif events.kind[event] == RecordKind.FREE:
            deaths[births[int(events.address[event])]] = event
    with opened(events, tmp_path / "l.gctrace") as trace, RebuiltHeap(trace) as heap:
        found = {}
        for lives in heap.lives():
            for birth, freed, at, after in zip(
                lives.birth.tolist(),
                lives.freed_event.tolist(),
                lives.freed_bytes.tolist(),
                lives.freed_after.tolist(),
                strict=True,
            ):
                assert birth not in found
                found[birth] = freed
                if freed >= 0:
                    assert at == clock[freed]
                    assert after == ended[freed]
        wanted = {
            int(birth): deaths.get(int(birth), -1)
            for birth in np.flatnonzero(events.kind == RecordKind.ALLOCATE)
        }
        assert found == wanted
        some = next(birth for birth, freed in found.items() if freed > birth + 50)
        life = heap.follow(some)
        assert life.died_event == found[some]


def test_a_free_without_an_object_and_an_object_on_another_are_found(tmp_path: Path) -> None:
    events = event_columns([24, 1, 1, 1], address=[0x100, 0x200, 0x300, 0x200], size=[0, 8, 8, 16])
    with opened(events, tmp_path / "f.gctrace") as trace, RebuiltHeap(trace) as heap:
        assert {one.rule for one in heap.findings.kept} == {Rule.UNKNOWN_OBJECT, Rule.TWICE}
        snapshot = heap.at(4)
        assert snapshot.address.tolist() == [0x200, 0x300]
        assert snapshot.size.tolist() == [16, 8]


def test_objects_that_lived_before_are_marked(tmp_path: Path) -> None:
    events = event_columns([1, 1], address=[0x100, 0x200], size=[8, 8], detail=[1, 0])
    with opened(events, tmp_path / "e.gctrace") as trace, RebuiltHeap(trace) as heap:
        assert heap.at(2).allocated_bytes == 8
        assert heap.at(2).flags.tolist() == [8, 0]


def moving_program(count: int, seed: int) -> tuple[EventColumns, list[tuple[int, dict[int, int]]]]:
    """Return a program whose collections free and move objects, and after each the birth of what lies at each address."""
    random = np.random.default_rng(seed)
    live: dict[int, int] = {}
    rows: list[tuple[int, int, int, int, int, int]] = []
    truth: list[tuple[int, dict[int, int]]] = []
    while len(rows) < count:
        number = len(truth) + 1
        for _ in range(int(random.integers(1, 40))):
            address = 0x10000 + 64 * int(random.integers(4000))
            if address not in live:
                live[address] = len(rows)
                rows.append((RecordKind.ALLOCATE, address, int(random.integers(1, 64)), 0, 0, 0))
        rows.append((RecordKind.COLLECTION_START, 0, number, 0, number, CollectionKind.MINOR_TOLD))
        after: dict[int, int] = {}
        places = random.permutation(4000).tolist()
        for address, birth in list(live.items()):
            fate = random.random()
            if fate < 0.3:
                rows.append((RecordKind.FREE, address, 0, 0, 0, 1))
            elif fate < 0.4:
                after[address] = birth
            else:  # to where another one is, or was: all move at once
                rows.append((RecordKind.MOVE, address, 0, 0, 0, 0))
                after[-len(rows)] = birth
        taken = set(after)
        for key in [one for one in after if one < 0]:
            while (place := 0x10000 + 64 * places.pop()) in taken:
                pass
            birth = after.pop(key)
            rows[-key - 1] = (*rows[-key - 1][:4], place, 0)
            after[place] = birth
        live = after
        rows.append((RecordKind.COLLECTION_END, 0, number, 0, number, CollectionKind.MINOR_TOLD))
        truth.append((len(rows), dict(live)))
    kind, address, size, site, other, detail = np.array(rows, np.int64).T.tolist()
    to = [one if what == RecordKind.MOVE else 0 for what, one in zip(kind, other, strict=True)]
    length = [0 if what == RecordKind.MOVE else one for what, one in zip(kind, other, strict=True)]
    columns = event_columns(
        kind, address=address, to=to, size=size, site=site, length=length, detail=detail
    )
    return columns, truth


@pytest.mark.parametrize("block", [7, 5000])
def test_collections_whose_deaths_are_told_may_move_objects(tmp_path: Path, block: int) -> None:
    events, truth = moving_program(2500, 3)
    with (
        opened(events, tmp_path / "m.gctrace", block) as trace,
        RebuiltHeap(trace, keep=Keep(events=300)) as heap,
    ):
        assert heap.findings.first is None
        for event, there in [truth[-1], *truth[::9], truth[0]]:
            now = heap.at(event)
            assert dict(zip(now.address.tolist(), now.birth.tolist(), strict=True)) == there
        steps = [*heap.steps()]
        assert [one.collection.objects_moved for one in steps] == [
            int((one.fate == Fate.MOVED).sum()) for one in steps
        ]
        assert sum(one.collection.objects_moved for one in steps) == int(
            (events.kind == RecordKind.MOVE).sum()
        )
        event, there = truth[-1]
        address, birth = next(iter(there.items()))
        life = heap.follow(birth)
        assert [one.address for one in life.stays][-1] == address
        assert len(life.stays) == 1 + int(now_moves(heap, event, birth))


def now_moves(heap: RebuiltHeap, event: int, birth: int) -> int:
    """Return how often an object has moved."""
    now = heap.at(event)
    return int(now.moves[now.birth == birth][0])


def test_moves_that_cannot_be_are_found(tmp_path: Path) -> None:
    made = [
        (RecordKind.ALLOCATE, 64, 0, 0), (RecordKind.ALLOCATE, 128, 0, 0), (RecordKind.MOVE, 64, 256, 0),
        (RecordKind.COLLECTION_START, 0, 0, 4), (RecordKind.MOVE, 512, 576, 0), (RecordKind.MOVE, 64, 128, 0), (RecordKind.COLLECTION_END, 0, 0, 4),
    ]  # fmt: skip
    kind, address, to, detail = (list(one) for one in zip(*made, strict=True))
    size = [16, 16, 0, 0, 0, 0, 0]
    events = event_columns(kind, address=address, to=to, size=size, detail=detail, length=[0] * 7)
    with opened(events, tmp_path / "w.gctrace") as trace, RebuiltHeap(trace) as heap:
        rules = [one.rule for one in heap.findings.kept]
        assert rules == [Rule.PHASE, Rule.UNKNOWN_OBJECT, Rule.TWICE]
        assert heap.at(len(events)).address.tolist() == [128]
