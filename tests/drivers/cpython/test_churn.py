"""A target that never rests: nothing impossible is shown, whatever moved while it was read."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_drivers.cpython.driver import COLLECTIONS, CPythonDriver
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.cpython.target import Target

from gcspy_server.api import AttachOptions, Control, Event, Presentation, Server
from tests.drivers.conftest import Start

# Two threads that make and drop objects of all sizes, in waves, so that pools change their class and arenas come and go.
CHURN = """
import threading
print("ready", flush=True)
def churn(seed):
    rng = random.Random(seed)
    while True:
        wave = []
        for _ in range(rng.randrange(1, 40)):
            size = rng.randrange(0, 480)
            wave.append([bytes(size) for _ in range(rng.randrange(1, 3000))])
            if rng.random() < 0.3:
                cycles = [[number] for number in range(1000)]
                for cycle in cycles:
                    cycle.append(cycle)
                wave.append(cycles)
            if rng.random() < 0.3:
                wave.pop(rng.randrange(len(wave)))
import random
threading.Thread(target=churn, args=(1,), daemon=True).start()
churn(2)
"""


def assert_possible(server: Server, pool_bytes: int) -> None:
    """No value that a heap cannot have, in any space."""
    spaces = {space.name: space for space in server.spaces}
    arenas = spaces["pymalloc arenas"]
    streams = {stream.name: stream for stream in arenas.streams}
    known = streams["Used"].known
    known = np.ones(arenas.count, dtype=np.bool_) if known is None else known
    control = arenas.control
    for stream in arenas.streams:
        assert len(stream.data) == len(control) == arenas.count
        assert not stream.data[~known].any(), "an unknown tile looks like a value"
    used, blocks, free = (
        streams[name].data[known].astype(np.int64)
        for name in ("Used", "Blocks in use", "Free blocks")
    )
    assert (used <= streams["Carved"].data[known]).all()
    classes = streams["Size class"].data[known].astype(np.int64)
    assert (classes <= 32).all()
    size = np.maximum(classes, 1) * 16
    assert (used == np.where(classes > 0, blocks * size, 0)).all()
    assert ((blocks + free) == np.where(classes > 0, (pool_bytes - 48) // size, 0)).all()
    assert (blocks[classes > 0] > 0).all()
    assert (blocks[classes == 0] == 0).all()
    unused = (control & Control.UNUSED) != 0
    assert not streams["Blocks in use"].data[unused].any()
    per_class = {stream.name: stream.data for stream in spaces["Size classes"].streams}
    assert int(per_class["Blocks in use"].sum()) == int(blocks.sum()), (
        "two spaces of one event disagree"
    )
    assert all((column >= 0).all() for column in per_class.values())
    for stream in spaces["GC generations"].streams:
        assert stream.known is not None or (stream.data >= 0).all()
    memory = spaces["Process memory"]
    assert all((stream.data >= 0).all() for stream in memory.streams)
    assert memory.info == f"RSS {int(memory.streams[0].data.sum()):,} bytes"
    for space in server.spaces:
        for stream in space.streams:
            if stream.schema.presentation is Presentation.ENUM:
                assert int(stream.data.max(initial=0)) < len(stream.schema.enum_names)


def watch(pid: int, snapshots: int) -> tuple[int, int]:
    """Take snapshots of a churning target; returns unknown tiles and events of collections."""
    events: list[Event] = []
    unknown = 0
    driver = CPythonDriver.attach(pid, AttachOptions())
    try:
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(events.append)
        collections = np.zeros(3, dtype=np.int64)
        for number in range(snapshots):
            driver.tick()
            assert len(events) == number + 1, "each tick is one transmission"
            assert_possible(server, driver._target.geometry.pool_bytes)
            known = server.spaces[0].streams[0].known
            unknown += 0 if known is None else int(np.count_nonzero(~known))
            generations = next(space for space in server.spaces if space.name == "GC generations")
            now = {stream.name: stream for stream in generations.streams}["Collections"]
            if now.known is None:
                assert (now.data >= collections).all(), "collections are only ever counted up"
                collections = now.data.copy()
    finally:
        driver.close()
    return unknown, sum(event.event == COLLECTIONS for event in events)


def test_sixty_snapshots_of_a_churning_target_show_nothing_impossible(
    python: str, start: Start
) -> None:
    child = start(python, CHURN)
    child.read_line()
    unknown, collections = watch(child.pid, 60)
    assert collections > 0
    assert child.process.poll() is None
    print(f"unknown tiles in 60 snapshots: {unknown}")


@pytest.mark.soak
def test_a_thousand_snapshots_of_a_churning_target_show_nothing_impossible(
    python: str, start: Start
) -> None:
    child = start(python, CHURN)
    child.read_line()
    unknown, collections = watch(child.pid, 1000)
    assert collections > 0
    assert child.process.poll() is None
    print(f"unknown tiles in 1,000 snapshots: {unknown}")


def test_headers_that_moved_are_read_again_before_they_are_unknown(
    own_python: str, start: Start
) -> None:
    child = start(own_python, CHURN)
    child.read_line()
    with Target(child.pid) as target:
        interpreters = target.interpreters() or ()
        for _ in range(40):
            for heap in target.heaps(interpreters):
                unknown = int(np.count_nonzero(heap.reading.pools.state == PoolState.UNKNOWN))
                of_invalid = int(heap.reading.arenas.total_pools[~heap.reading.arenas.valid].sum())
                assert unknown <= heap.reading.pools_reread + of_invalid
