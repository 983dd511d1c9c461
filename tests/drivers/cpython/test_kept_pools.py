"""What is kept of pools that were not written, against a reading of everything at the same moment."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_drivers.cooperative.line import StubEvent, StubLost
from gcspy_drivers.cpython.cooperation import stub
from gcspy_drivers.cpython.objects import kernels, machine_code
from gcspy_drivers.cpython.objects.kept_pools import Merge
from gcspy_drivers.cpython.pool_writes import PoolWrites
from gcspy_drivers.cpython.target import ObjectReading, Target
from gcspy_drivers.remote.pages.trial import try_pages
from gcspy_protocol.errors import TargetError
from hypothesis import given
from hypothesis import strategies as st

from gcspy_compiled.libraries import hash_of_sources
from tests.drivers.cpython.stubbed import StubbedTarget, Watching
from tests.drivers.targets import VERSIONS, find_python
from tests.matrix import matrix

FOLDER = Path(stub.__file__).parent / "compiled"
# The tests run without machine code; these are about it.
LIBRARY = str(next(FOLDER.glob(f"gcspy-collect-{hash_of_sources(FOLDER)}-*.so"), ""))
needs_pages = pytest.mark.skipif(not try_pages().works, reason=try_pages().refusal)

CHANGES = """
import collections, random
seed, steps = int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
class Node:
    def __init__(self): self.next = None; self.items = []
kept = {"nodes": [Node() for _ in range(5000)], "texts": [str(number) * 3 for number in range(5000)]}
gc.collect()
gc.disable()
stub = begin()
def change_nodes():
    for node in chance.sample(kept["nodes"], chance.choice((1, 10, 1000))):
        node.next, node.items = chance.choice(kept["nodes"]), [None] * chance.choice((1, 50, 200))
def make_arenas():
    kept["much"] = [(number,) for number in range(chance.choice((1000, 60_000)))]
def drop_arenas():
    kept.pop("much", None)
def make_class():
    made = type("Made%d" % chance.randrange(10), (Node,), {})
    kept["class"] = made, [made() for _ in range(chance.choice((1, 300)))]
def drop_class():
    kept.pop("class", None)
def make_garbage():
    for _ in range(chance.choice((10, 2000))):
        one, other = Node(), Node()
        one.next, other.next = other, one
def make_large():
    kept["large"] = collections.deque(range(chance.choice((10, 5000)))), {n: n for n in range(2000)}, set(range(3000))
def drop_texts():
    kept["texts"] = kept["texts"][::2] + [str(number) for number in range(100)]
for _ in range(steps):
    for _ in range(chance.choice((0, 1, 3))):
        chance.choice((change_nodes, make_arenas, drop_arenas, make_class, drop_class, make_garbage, make_large, drop_texts))()
    gc.collect(chance.choice((0, 0, 0, 0, 1, 1, 2)))
"""


def _python(version: str) -> str:
    found = find_python(version)
    if found is None:
        pytest.skip(f"Python {version} is not installed")
    return found


def _of_five_programs(
    compare: Callable[[str, int, int], tuple[int, ...]], version: str, seed: int
) -> tuple[int, ...]:
    """Return the sums of what was counted in five programs of 100 steps."""
    python, chance = _python(version), random.Random(seed)
    counts = [compare(python, chance.randrange(1 << 30), 100) for _ in range(5)]
    return tuple(map(sum, zip(*counts, strict=True)))


def content(found: ObjectReading) -> dict[str, Any]:
    """Return what was found, with the addresses of types instead of their numbers."""
    kinds = np.append(found.types.address, np.uint64(0))
    one = found.heaps[0].objects
    pools = found.heaps[0].heap.reading.pools.address
    assert found.lists is not None
    assert found.large is not None
    nodes = found.lists.nodes
    holders = one.holders.copy()
    holders[:, 1] = kinds[holders[:, 1]].view(np.int64)
    entries = np.stack(
        (pools[one.pool], kinds[one.type], one.count.astype("u8"), one.block_bytes.astype("u8"))
    )
    return {
        "known": one.known,
        "sums": np.stack((one.objects, one.trackable, one.tracked, one.blocks)),
        "entries": entries[:, np.lexsort(entries)],
        "nodes": np.stack((nodes.address, nodes.following, nodes.before, kinds[nodes.type])),
        "nodes of pools": np.stack((nodes.pool, nodes.block_bytes)),
        "lists": found.lists.of_node,
        "holders": holders,
        "holders of pools": one.holder_pool,
        "large": np.stack((found.large.address, found.large.size.view("u8"), found.large.owner)),
        "large types": kinds[found.large.type],
        "large roles": np.stack((found.large.kind, found.large.of_list)),
        "by pool": found.nodes_by_pool,
        "by list": found.nodes_by_list,
    }


def compared(python: str, seed: int, steps: int) -> tuple[int, int]:
    """Return how many events were compared, and in how many of them pools were kept."""
    with StubbedTarget(python, CHANGES, str(seed), str(steps)) as target:
        counts = [0, 0]
        with Watching(target, level=3) as watching, Target(target.pid) as second:
            driver = watching.driver
            inner, latest = driver._objects.examine, []

            def examine(*args: Any, **options: Any) -> ObjectReading:
                writes = driver._writes
                assert isinstance(writes, PoolWrites)
                writes._pool_nanos = 1 << 40  # always worth it
                latest.append(inner(*args, **options))
                pools = latest[-1].heaps[0].heap.reading.pools
                counts[1] += bool((~writes.among(pools.address)).any())
                return latest[-1]

            def compare(_event: object) -> None:
                if not latest:
                    return
                interpreters = second.interpreters() or ()
                whole = second.objects(
                    second.heaps(interpreters),
                    interpreters,
                    code=machine_code.compiled(),
                    large=True,
                )
                kept = content(latest.pop())
                if not driver._line.stands_still:  # a machine that was busy for two seconds
                    return
                for name, values in content(whole).items():
                    assert np.array_equal(kept[name], values), (name, counts)
                counts[0] += 1

            driver._objects.__dict__["examine"] = examine
            watching.server.add_observer(compare)
            with pytest.raises((TargetError, StubLost)):
                watching.serve()
        return counts[0], counts[1]


@needs_pages
@pytest.mark.parametrize("version", matrix(VERSIONS, usual=("3.11",)))
def test_at_each_event_it_is_what_a_whole_reading_finds(version: str) -> None:
    events, kept = compared(_python(version), seed=1, steps=30)
    assert events >= 40  # of 60, on any machine
    assert kept >= 15


@needs_pages
@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
def test_a_thousand_events(version: str, soak_seed: int) -> None:
    compared_events, kept_events = _of_five_programs(compared, version, soak_seed)
    print(f"\n{version}: {compared_events} events compared, pools kept at {kept_events}")
    assert compared_events > 900
    assert kept_events > 300


# Right before an event is recorded, in the same instruction, the program stops itself, until it was read as a whole.
RECORDED = """
import ctypes, functools, signal
def stop_first(stub):
    line = stub._line
    line._begin = (line._record, *line._begin)
    # With an argument of the same kind as the call that records has, which makes one object more.
    line._record = functools.partial(ctypes.pythonapi["raise"], ctypes.c_void_p(int(signal.SIGSTOP)))
    say(ctypes.addressof(line._pinned) + stub_module._EVENT_AT)
""" + CHANGES.replace("stub = begin()", "stub = begin(); stop_first(stub)")


class Recorded:
    """Events that a program records while it runs, and whole readings of it at the same moments."""

    def __init__(self, target: StubbedTarget, watching: Watching, second: Target) -> None:
        self.target = target
        self.second = second
        self.driver = driver = watching.driver
        self.found: dict[tuple[int, int], dict[str, Any]] = {}
        self.whole: dict[tuple[int, int], dict[str, Any]] = {}
        self.copied = self.kept = 0
        self.event: tuple[int, int] = (-1, -1)
        examine, gather_copy, gather_still = (
            driver._objects.examine,
            driver.gather_copy,
            driver.gather_still,
        )

        def noted(*arguments: Any, **options: Any) -> ObjectReading:
            reading = examine(*arguments, **options)
            self.found[self.event] = content(reading)
            assert driver._mirror is not None
            pools = reading.heaps[0].heap.reading.pools.address
            self.kept += bool((~driver._mirror.writes.among(pools)).any())
            return reading

        def copy(request: Any, event: StubEvent, copies: Any) -> None:
            self.event = event.kind, event.number
            self.copied += 1
            gather_copy(request, event, copies)

        def still(request: Any, event: StubEvent) -> None:
            self.event = event.kind, event.number
            gather_still(request, event)

        vars(driver._objects)["examine"] = noted
        vars(driver).update(gather_copy=copy, gather_still=still)

    def read_whole(self) -> None:
        """Read the program whenever it has stopped itself."""
        place = int(self.target.read_line() or 0)
        pid = self.target.pid
        while True:
            changed = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if changed is None or changed.si_code != os.CLD_STOPPED:
                return
            os.waitid(os.P_PID, pid, os.WSTOPPED)
            event = self.second.memory.read(place, 16)
            interpreters = self.second.interpreters() or ()
            heaps = self.second.heaps(interpreters)
            code = machine_code.compiled()
            whole = self.second.objects(heaps, interpreters, code=code, large=True)
            self.whole[event[0], int.from_bytes(event[8:], "little")] = content(whole)
            os.kill(pid, signal.SIGCONT)


def recorded(python: str, seed: int, steps: int) -> tuple[int, int, int]:
    """Compare; return how many events were compared, how many were recorded, and at how many pools were kept."""
    with (
        StubbedTarget(python, RECORDED, str(seed), str(steps), library=LIBRARY) as target,
        Watching(target, level=3, may_hold=False, values={"accesses": "off"}) as watching,
        Target(target.pid) as second,
    ):
        events = Recorded(target, watching, second)
        answering = threading.Thread(target=events.read_whole)
        answering.start()
        try:
            with pytest.raises((TargetError, StubLost)):
                watching.serve()
        finally:
            target.process.kill()
            answering.join()
        both = events.whole.keys() & events.found.keys()
        for event in sorted(both):
            for name, values in events.whole[event].items():
                assert np.array_equal(events.found[event][name], values), (event, name)
        return len(both), events.copied, events.kept


needs_records = pytest.mark.skipif(not LIBRARY, reason="there is no C compiler")


@needs_pages
@needs_records
@pytest.mark.parametrize("version", matrix(VERSIONS, usual=("3.11",)))
def test_a_recorded_event_is_what_a_whole_reading_finds_at_its_moment(version: str) -> None:
    compared_events, copied, kept = recorded(_python(version), seed=1, steps=20)
    assert compared_events >= 30  # of 40, without the first
    assert copied >= 25
    assert kept >= 20


@needs_pages
@needs_records
@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
def test_a_thousand_events_that_are_recorded(version: str, soak_seed: int) -> None:
    compared_events, copied_events, kept_events = _of_five_programs(recorded, version, soak_seed)
    print(
        f"\n{version}: {compared_events} events compared, {copied_events} of them recorded, pools kept at {kept_events}"
    )
    assert compared_events > 900
    assert copied_events > 800


PLAIN = machine_code.Kernels(
    **{name: getattr(kernels, name) for name in machine_code.Kernels._fields}
)
POOLS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3)), min_size=0, max_size=12
)


@given(POOLS)
def test_tables_are_merged_alike_by_numpy_c_and_plain_python(
    pools: list[tuple[bool, int, int]],
) -> None:
    # Each pool: whether it is kept, its rows before and its rows now. Every third one is new.
    before = [number for number in range(len(pools)) if number % 3 != 2]
    rows = np.array(
        [before.index(n) if kept and n in before else -1 for n, (kept, _, _) in enumerate(pools)],
        dtype=np.int64,
    )
    then = np.repeat(np.arange(len(before)), [pools[n][1] for n in before]).astype(np.int32)
    now = np.repeat(
        np.arange(len(pools)),
        [0 if row >= 0 else pool[2] for row, pool in zip(rows, pools, strict=True)],
    ).astype(np.int32)
    old = np.stack((then + 100, np.arange(len(then))), axis=1).astype(np.int64)
    new = np.stack((now + 200, np.arange(len(now))), axis=1).astype(np.int64)
    expected = []
    for number, row in enumerate(rows):
        expected += (old[then == row] if row >= 0 else new[now == number]).tolist()
    ways = [None, machine_code.compiled(), PLAIN]
    for code in ways:
        merge = Merge(rows, then, now, len(before), code)
        assert merge.of(old, new).tolist() == expected
        assert merge.of(then.astype(np.uint16), now.astype(np.uint16)).tolist() == [
            one[0] % 100 for one in expected
        ]
        assert len(merge.pool) == len(expected)
