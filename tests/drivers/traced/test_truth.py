"""Tiles of a traced session, compared with the VM's own reports while it was traced: tops of its spaces, and class histograms."""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.traced import TracedOptions, TracedSession, TraceQueryService
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace

from gcspy_server.api import Event, ExtentNames

SAMPLES = Path(__file__).parents[3] / "objects" / "samples" / "anttracks"
TRACES = ("churn", "compressed", "list", "pointers", "promote", "threads")

FILLERS = ("[I", "java.lang.Object")
"""Of what classes the VM makes fillers."""

_SPACE = re.compile(r"(eden|from|to|object) +space .*\[0x([0-9a-f]+),0x([0-9a-f]+),0x([0-9a-f]+)\)")
_ROW = re.compile(r" *\d+: +(\d+) +(\d+) +(\S+)$")


@dataclass
class Told:
    """The VM's log of one collection.

    Attributes:
        used: At its start and its end: bytes of eden, of both survivors together, of old.
        histogram: After it: objects and bytes by class; empty where it was no full one.
    """

    used: tuple[tuple[int, ...], tuple[int, ...]]
    histogram: dict[str, tuple[int, int]]


@cache
def told(name: str) -> list[Told]:
    """Return the log of a sample, collection by collection."""
    with tarfile.open(SAMPLES / f"{name}.tar.xz") as archive:
        log = next(archive.extractfile(one) for one in archive if one.name.endswith("gc.log"))
        assert log is not None
        text = log.read().decode()
    found = []
    for section in text.split("{Heap before GC")[1:]:
        before, after = section.split("Heap after GC", 1)
        used = (_used(before), _used(after))
        rows = [match for line in section.splitlines() if (match := _ROW.match(line))]
        found.append(Told(used, {match[3]: (int(match[1]), int(match[2])) for match in rows}))
    return found


def _used(text: str) -> tuple[int, ...]:
    sums: Counter[str] = Counter()
    for name, start, top, _end in _SPACE.findall(text.split("\n}", 1)[0]):
        sums[{"eden": "eden", "object": "old"}.get(name, "survivors")] += int(top, 16) - int(
            start, 16
        )
    return sums["eden"], sums["survivors"], sums["old"]


@dataclass
class Went:
    """A session that went through all its events, and what its tiles had at each.

    Attributes:
        session: The session.
        events: All its events.
        sums: At each event, by space and stream: the sum over tiles, of one that was gathered then.
        summaries: The same as reported by the driver.
    """

    session: TracedSession
    events: list[Event]
    sums: list[dict[tuple[str, str], int]]
    summaries: list[dict[tuple[str, str], int]]

    def at(self, kind: str) -> list[int]:
        """Places of the events of a kind."""
        return [
            place
            for place, event in enumerate(self.events)
            if self.session.server.events[event.event].name == kind
        ]


@pytest.fixture(scope="module", params=TRACES)
def went(request: pytest.FixtureRequest) -> Iterator[Went]:
    """Each sample, in large tiles."""
    with open_trace(SAMPLES / f"{request.param}.tar.xz") as trace:
        heap = RebuiltHeap(trace)
        session = TracedSession(heap, TracedOptions(tile_bytes=30_000, clock_bytes=1 << 20))
        made = Went(session, [], [], [])

        def look(event: Event) -> None:
            made.events.append(event)
            gathered = [
                (space, stream)
                for space in session.server.spaces
                for stream in space.streams
                if stream.gathered
            ]
            made.sums.append(
                {
                    (space.name, stream.name): int(stream._values.astype(np.int64).sum())
                    for space, stream in gathered
                }
            )
            made.summaries.append(
                {
                    (space.name, stream.name): stream._summary[0][0]
                    for space, stream in gathered
                    if stream._summary
                }
            )

        session.server.add_observer(look)
        session.run()
        yield made
        heap.close()


def name_of(went: Went) -> str:
    return next(name for name in TRACES if name in went.session.heap.trace.name)


def test_used_bytes_over_all_tiles_are_the_tops_in_the_vms_own_log(went: Went) -> None:
    log = told(name_of(went))
    starts, ends = went.at("GC start"), went.at("GC end")
    assert len(starts) == len(ends) == len(log) > 1
    for start, end, one in zip(starts, ends, log, strict=True):
        for place, used in zip((start, end), one.used, strict=True):
            assert (
                tuple(went.sums[place][space, "Used"] for space in ("Eden", "Survivors", "Old"))
                == used
            )


def test_objects_by_type_after_a_full_collection_are_the_vms_class_histogram(went: Went) -> None:
    query_service, types = TraceQueryService(went.session), went.session.heap.trace.types
    internal = dict(zip(types.names, types.internal, strict=True))
    compared = 0
    for place, one in zip(went.at("GC end"), told(name_of(went)), strict=True):
        if not one.histogram:
            continue
        table = query_service.tell(
            "types", "", 100_000, number=place + 1, space="Types", tile=None, extent=None
        )
        assert table is not None
        found: Counter[str] = Counter()
        size: Counter[str] = Counter()
        for name, objects, number in table.rows:
            found[internal[str(name)]] += int(objects or 0)
            size[internal[str(name)]] += int(number or 0)
        fillers = 0
        for name in one.histogram.keys() | found.keys():
            objects, number = one.histogram.get(name, (0, 0))
            if name in FILLERS:
                fillers += number - size[name]
            else:
                assert (found[name], size[name]) == (objects, number), name
        # The VM counts what fills holes as objects; what we call fillers are exactly those.
        assert fillers == sum(
            went.sums[place][space, "Fillers"] for space in ("Eden", "Survivors", "Old")
        )
        compared += 1
    assert compared


def test_what_a_collection_finds_is_the_same_at_its_start_and_its_end(went: Went) -> None:
    for start, end, one in zip(
        went.at("GC start"), went.at("GC end"), went.session.heap.collections, strict=True
    ):
        for stream, size in (
            ("Survived", None),
            ("Died", one.bytes_died),
            ("Promoted", one.bytes_promoted),
        ):
            sums = [
                sum(went.sums[place][space, stream] for space in ("Eden", "Survivors", "Old"))
                for place in (start, end)
            ]
            assert sums[0] == sums[1]
            assert size is None or sums[0] == size


def test_every_event_adds_up_whichever_way_its_objects_are_counted(went: Went) -> None:
    for sums, summaries in zip(went.sums, went.summaries, strict=True):
        heap = [
            {stream: value for (space, stream), value in sums.items() if space == one}
            for one in ("Eden", "Survivors", "Old")
        ]
        for one in heap:
            assert one["Instances"] + one["Small arrays"] + one["Big arrays"] == one["Objects"]
        objects, used = (sum(one[stream] for one in heap) for stream in ("Objects", "Used"))
        fillers = sum(one["Fillers"] for one in heap)
        for space in ("Types", "Allocation sites", "Threads"):
            assert (sums[space, "Objects"], sums[space, "Bytes"]) == (objects, used - fillers)
            assert sums[space, "New"] == sum(one["New"] for one in heap)
        assert all(summaries[key] == sums[key] for key in summaries if key[1] not in ("Age",))


def test_the_clock_goes_on_by_what_is_allocated_and_time_never_goes_back(went: Went) -> None:
    clocks = [event.program_clock[1] for event in went.events if event.program_clock]
    assert clocks == sorted(clocks)
    times = [event.time_nanos for event in went.events]
    assert all(before < after for before, after in pairwise(times))
    new = [sums["Types", "New"] for sums in went.sums]
    assert sum(new) == clocks[-1], (
        "what is new at each event is what was allocated since the one before"
    )
    ticks = [went.events[place].program_clock for place in went.at("Allocation")]
    assert len(ticks) >= clocks[-1] // (1 << 20) - len(went.session.heap.collections) - 2


def test_what_is_told_of_tiles_is_what_their_streams_have(went: Went) -> None:
    query_service = TraceQueryService(went.session)
    last = len(went.events)
    for space in went.session.server.spaces:
        if space.name not in ("Eden", "Survivors", "Old"):
            continue
        used = {stream.name: stream._values for stream in space.streams}
        for tile in np.flatnonzero(used["Objects"])[:: max(1, space.count // 20)].tolist():
            assert isinstance(space.names, ExtentNames)
            extent = (int(space.names.bases[tile]), int(space.names.sizes[tile]))
            for kind in ("types", "sites", "threads"):
                table = query_service.tell(
                    kind, "", 1000, number=last, space=space.name, tile=tile, extent=extent
                )
                assert table is not None
                assert sum(int(row[1] or 0) for row in table.rows) == int(used["Objects"][tile])
