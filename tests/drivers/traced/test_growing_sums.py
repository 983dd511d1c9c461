"""A session that goes forwards: its sums, kept while objects come, move and go, are those of the heap rebuilt at each of its events."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.traced import GrowingSession, TracedOptions
from gcspy_drivers.traced.heap_space import TracedHeapSpace
from gcspy_objects.heap import CollectionStep, Fate, HeapSnapshot, RebuiltHeap
from gcspy_objects.heap.sums.category_sums import CategorySums
from gcspy_objects.names import Sites, Threads, TypeKind, Types
from gcspy_objects.trace import Trace, open_trace
from numpy.typing import NDArray

from gcspy_server.api import Event
from gcspy_server.binning import bytes_per_tile
from tests.objects.heap.copying_world import Told, World
from tests.objects.heap.test_frees import moving_program, opened, program

SAMPLES = Path(__file__).parents[3] / "objects" / "samples" / "anttracks"


class Expected:
    """The streams of one space, counted from all objects of a heap."""

    def __init__(self, own: TracedHeapSpace, now: HeapSnapshot, since: int) -> None:
        space = own.space
        tile = space.tiles_of(now.address)
        ours = ~now.filler & (tile >= 0)
        array = np.asarray(own.types.kind)[now.type] == TypeKind.ARRAY
        size = now.size.astype(np.int64)

        def spread(which: NDArray[np.bool_]) -> list[int]:
            held: list[int] = bytes_per_tile(space.names, now.address[which], size[which]).tolist()
            return held

        def count(which: NDArray[np.bool_]) -> list[int]:
            counted: list[int] = np.bincount(tile[which], minlength=space.count).tolist()
            return counted

        age = np.zeros(space.count, np.int64)
        np.maximum.at(age, tile[ours], np.minimum(now.age[ours], 255).astype(np.int64))
        big = now.length >= 255
        self.streams = {
            "Used": spread(np.ones(len(now), bool)), "Fillers": spread(now.filler), "New": spread(~now.filler & (now.birth >= since)),
            "Objects": count(ours), "Instances": count(ours & ~array), "Small arrays": count(ours & array & ~big),
            "Big arrays": count(ours & array & big), "Age": age.tolist(),
        }  # fmt: skip
        width = len(own.types)
        cells = np.zeros((space.count, width), np.int64)
        np.add.at(cells, (tile[ours], now.type[ours]), size[ours])
        self.by_type = cells


def compare(trace: Trace, again: Trace, events: int, tile_bytes: int) -> Counter[str]:
    """Compare each event of a growing session with the heap rebuilt there; return how many there were of each kind."""
    counts: Counter[str] = Counter()
    with RebuiltHeap(again) as heap:
        steps = {one.collection.start_event: one for one in heap.steps()}
        session = GrowingSession(
            trace, heap, TracedOptions(tile_bytes=tile_bytes), refresh=lambda: None
        )
        since = 0

        def look(event: Event) -> None:
            nonlocal since
            name = session.server.events[event.event].name
            counts[name] += 1
            place = session.events[-1]
            now = heap.at(place)
            for own in session._heaps:
                found = {one.name: one._values.tolist() for one in own.space.streams}
                expected = Expected(own, now, since)
                assert {key: found[key] for key in expected.streams} == expected.streams, place
                top = np.array(session.names["Types"].rows)[found["Top type"]]
                most, cells = expected.by_type.max(axis=1, initial=0), expected.by_type
                has = most > 0
                assert (cells[has, top[has]] == most[has]).all(), place
                assert (top[~has] == -1).all(), place
            assert session.clock_value == now.allocated_bytes
            (types,) = [one for one in session.server.spaces if one.name == "Types"]
            objects = next(one for one in types.streams if one.name == "Objects")
            assert int(objects._values.sum()) == int((~now.filler).sum())
            if name.startswith("GC"):
                self_start = place if name == "GC start" else ends[place]
                check_fates(session, steps[self_start], ended=name == "GC end")
            since = place

        ends = {one.end_event + 1: one.start_event for one in heap.collections}
        session.server.add_observer(look)
        session.grow(events, more=lambda: False)
    return counts


def check_fates(session: GrowingSession, step: CollectionStep, *, ended: bool) -> None:
    """Compare what a collection did."""
    before, fate, to = step.before, step.fate, step.to
    for name, fates in (
        ("Survived", (Fate.KEPT, Fate.MOVED, Fate.PROMOTED)),
        ("Died", (Fate.DIED,)),
        ("Promoted", (Fate.PROMOTED,)),
    ):
        which = ~before.filler & np.isin(fate, fates)
        at = to if ended and name != "Died" else before.address
        for own in session._heaps:
            (stream,) = [one for one in own.space.streams if one.name == name]
            expected = bytes_per_tile(own.space.names, at[which], before.size[which])
            assert stream._values.tolist() == expected.tolist(), (name, ended)


@pytest.mark.parametrize("collections", [False, True])
def test_sums_are_those_of_the_heap_where_objects_are_freed(
    tmp_path: Path, *, collections: bool
) -> None:
    events = program(3000, 8, collections=collections)
    with (
        opened(events, tmp_path / "f.gctrace", 500) as trace,
        opened(events, tmp_path / "again.gctrace", 500) as again,
    ):
        counts = compare(trace, again, 170, 2048)
    assert counts["Allocation"] > 10
    assert bool(counts["GC end"]) == collections
    assert counts["GC end"] == counts["GC start"]


def test_sums_are_those_of_the_heap_where_such_collections_move_objects(tmp_path: Path) -> None:
    events, _ = moving_program(2500, 3)
    with (
        opened(events, tmp_path / "f.gctrace", 500) as trace,
        opened(events, tmp_path / "again.gctrace", 500) as again,
    ):
        counts = compare(trace, again, 170, 4096)
    assert counts["GC end"] == counts["GC start"] > 5


@pytest.mark.parametrize("name", [pytest.param("promote", marks=pytest.mark.soak), "threads"])
def test_sums_are_those_of_the_heap_where_objects_move(name: str) -> None:
    path = SAMPLES / f"{name}.tar.xz"
    with open_trace(path) as trace, open_trace(path) as again:
        counts = compare(trace, again, 200_000, 60_000)
        assert counts["GC start"] == counts["GC end"] > 1


def test_sums_are_those_of_a_made_heap_with_failed_evacuations() -> None:
    world = World(2, failing=(3, 6), full=(4,), snapshots=(2,))
    traces = Told(world.rows), Told(world.rows)
    for one in traces:
        some = np.zeros(64, np.int64)
        one.types = Types(
            ["a"] * 64, ["a"] * 64, np.arange(64, dtype=np.uint8) % 3, some, some, some
        )
        none = np.zeros(0, np.int32)
        one.sites = Sites(
            np.zeros(64, np.int32), ["a"] * 64, [], np.zeros(65, np.int64), none, none
        )
        one.threads = one.threads if len(one.threads) else Threads([0] * 8, [[]] * 8)
    counts = compare(*traces, 300, 1 << 14)
    assert counts["GC end"] >= 8


def test_sums_of_many_categories_are_those_of_a_table() -> None:
    chance = np.random.default_rng(3)
    table, sparse = CategorySums(50), CategorySums(50, most_cells=600)
    tiles, kinds = chance.integers(0, 50, (2, 4000))
    sizes = chance.integers(1, 9, 4000)
    for low in range(0, 4000, 100):
        part = slice(low, low + 100)
        for sums in (table, sparse):
            sums.add(tiles[part], kinds[part], sizes[part])
            if low >= 300:
                gone = slice(low - 300, low - 200)
                sums.add(tiles[gone], kinds[gone], -sizes[gone])
        assert table.largest().tolist() == sparse.largest().tolist()
        assert table.last().tolist() == sparse.last().tolist()
    to = np.where(np.arange(50) % 7, np.arange(50) + 3, -1)
    moved = table.moved(to, 60)
    assert moved.last()[to[to >= 0]].tolist() == table.last()[to >= 0].tolist()
    assert sparse.moved(to, 60).largest().tolist() == moved.largest().tolist()
