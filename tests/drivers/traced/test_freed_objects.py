"""A session of a trace whose objects are freed one by one: tiles add up to the heap at each event, collections to what they freed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.traced import TracedOptions, TracedSession
from gcspy_drivers.traced.lives import life_table
from gcspy_objects.heap import RebuiltHeap

from gcspy_server.api import Event
from tests.objects.heap.test_frees import opened, program


@pytest.mark.parametrize("collections", [False, True])
def test_tiles_add_up_to_the_heap_at_each_event(tmp_path: Path, *, collections: bool) -> None:
    events = program(3000, 8, collections=collections)
    with opened(events, tmp_path / "f.gctrace", 500) as trace, RebuiltHeap(trace) as heap:
        session = TracedSession(heap, TracedOptions(tile_bytes=2048, clock_bytes=2000))
        (space,) = [one for one in session.server.spaces if one.name == "Heap"]
        seen: list[tuple[str, dict[str, int]]] = []

        def look(event: Event) -> None:
            sums = {
                one.name: int(one._values.astype(np.int64).sum())
                for one in space.streams
                if one.gathered
            }
            seen.append((session.server.events[event.event].name, sums))

        session.server.add_observer(look)
        session.run()
        assert len(seen) == len(session.events) > 10
        for (_, sums), place in zip(seen, session.events, strict=True):
            wanted = heap.at(place)
            assert (sums["Used"], sums["Objects"]) == (int(wanted.size.sum()), len(wanted)), place
        ends = [sums for name, sums in seen if name == "GC end"]
        assert len(ends) == len(heap.collections)
        assert [sums["Died"] for sums in ends] == [one.bytes_died for one in heap.collections]


def test_the_life_of_a_freed_object_ends_at_its_free(tmp_path: Path) -> None:
    events = program(600, 4, collections=False)
    with opened(events, tmp_path / "l.gctrace") as trace, RebuiltHeap(trace) as heap:
        freed = next(
            one for lives in heap.lives() for one in lives.birth[lives.freed_event >= 0].tolist()
        )
        table = life_table(heap, heap.follow(freed), 0, int)
        assert [str(row[0]) for row in table.rows] == ["born", "freed"]
