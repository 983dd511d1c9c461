"""What is kept of pools that were not written, against a reading of everything at the same moment."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from gcspy_drivers.cooperative.line import StubLost
from gcspy_drivers.cpython.objects import machine_code
from gcspy_drivers.cpython.pool_writes import PoolWrites
from gcspy_drivers.cpython.target import ObjectReading, Target
from gcspy_drivers.remote.pages.trial import try_pages
from gcspy_protocol.errors import TargetError

from tests.drivers.cpython.stubbed import StubbedTarget, Watching
from tests.drivers.targets import VERSIONS, find_python
from tests.matrix import matrix

pytestmark = pytest.mark.skipif(not try_pages().works, reason=try_pages().refusal)

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
                assert driver._line.stands_still
                kept = content(latest.pop())
                for name, values in content(whole).items():
                    assert np.array_equal(kept[name], values), (name, counts)
                counts[0] += 1

            driver._objects.__dict__["examine"] = examine
            watching.server.add_observer(compare)
            with pytest.raises((TargetError, StubLost)):
                watching.serve()
        return counts[0], counts[1]


@pytest.mark.parametrize("version", matrix(VERSIONS, usual=("3.11",)))
def test_at_each_event_it_is_what_a_whole_reading_finds(version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    events, kept = compared(python, seed=1, steps=30)
    assert events == 60
    assert kept >= 20


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
def test_a_thousand_events(version: str, soak_seed: int) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    chance = random.Random(soak_seed)
    compared_events = kept_events = 0
    for _ in range(5):
        events, kept = compared(python, seed=chance.randrange(1 << 30), steps=100)
        compared_events += events
        kept_events += kept
    print(f"\n{version}: {compared_events} events compared, pools kept at {kept_events}")
    assert compared_events == 1000
    assert kept_events > 300
