"""Values read from outside equal the target's own report, with difference zero."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading, size_classes
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.cpython.target import Target

from tests.drivers.conftest import Start
from tests.drivers.targets import Truth

# Objects of every size class, some pools full, some with holes, some empty again, and a few cycles collected.
BUSY = """
import random
random.seed(7)
keep = [bytes(n) for n in range(480) for _ in range(40)]
keep += [(i, str(i), {i: i}) for i in range(30_000)]
class Node:
    pass
for _ in range(5_000):
    node = Node()
    node.me = node
del node
gc.collect()
empty = [bytes(300) for _ in range(3_000)]
empty.clear()
for i in sorted(random.sample(range(len(keep)), len(keep) // 3), reverse=True):
    keep[i] = None
tell()
keep.append([bytes(n) for n in range(480)])
more = [[i] for i in range(5_000)]
tell()
"""


def assert_heap_is(truth: Truth, reading: HeapReading) -> None:
    assert reading.complete
    assert reading.arenas_implausible == 0
    assert reading.pools.valid.all()
    sums = size_classes(reading)
    found = {
        number: (
            int(sums.pools[number]),
            int(sums.blocks_used[number]),
            int(sums.blocks_free[number]),
        )
        for number in range(32)
        if sums.pools[number]
    }
    assert found == truth.classes
    assert len(reading.arenas) == truth.arenas
    without_class = (reading.pools.state == PoolState.FREE) | (
        reading.pools.state == PoolState.UNCARVED
    )
    assert int(without_class.sum()) == truth.unused_pools
    # The same by another way: what each arena's own record says.
    per_arena = np.bincount(reading.pools.arena[without_class], minlength=len(reading.arenas))
    assert per_arena.tolist() == reading.arenas.free_pools.tolist()


@pytest.mark.parametrize("setting", ["", "debug"])
def test_blocks_and_generations_equal_what_the_target_says(
    python: str, start: Start, setting: str
) -> None:
    child = start(python, BUSY, {"PYTHONMALLOC": setting} if setting else {})
    truth = child.wait_still()
    assert truth.classes, "the target reports no pools, so that nothing would be compared"
    with Target(child.pid) as target:
        for step in range(2):
            interpreters = target.interpreters()
            assert interpreters is not None
            assert [one.ident for one in interpreters] == [0]
            (heap,) = target.heaps(interpreters)
            assert_heap_is(truth, heap.reading)
            (main,) = target.generations(interpreters)
            found = main.generations
            assert found is not None
            assert tuple(found.count.tolist()) == truth.count
            assert tuple(found.threshold.tolist()) == truth.threshold
            assert (
                tuple(
                    zip(
                        found.collections.tolist(),
                        found.collected.tolist(),
                        found.uncollectable.tolist(),
                        strict=True,
                    )
                )
                == truth.stats
            )
            assert found.enabled
            assert not found.collecting
            if step == 0:
                child.go_on()
                truth = child.wait_still()
    assert truth.stats[2][1] > 0, "no collection has found anything, so that zeros were compared"


def test_a_disabled_collector_and_other_thresholds_are_read(python: str, start: Start) -> None:
    child = start(python, "gc.disable(); gc.set_threshold(123, 45, 6); tell()")
    child.wait_still()
    with Target(child.pid) as target:
        (main,) = target.generations(target.interpreters() or ())
        assert main.generations is not None
        assert not main.generations.enabled
        assert main.generations.threshold.tolist() == [123, 45, 6]


def test_arenas_that_are_given_back_disappear_and_the_others_stay(
    python: str, start: Start
) -> None:
    child = start(
        python,
        """
chunks = [[bytes(200) for _ in range(20_000)] for _ in range(6)]
tell()
del chunks[1:4]
gc.collect()
tell()
chunks += [[bytes(200) for _ in range(20_000)] for _ in range(6)]
tell()
""",
    )
    counts = []
    target: Target | None = None
    try:
        for step in range(3):
            truth = child.wait_still()
            if target is None:
                target = Target(child.pid)
            (heap,) = target.heaps(target.interpreters() or ())
            assert_heap_is(truth, heap.reading)
            counts.append(len(heap.reading.arenas))
            if step < 2:
                child.go_on()
    finally:
        if target is not None:
            target.close()
    assert counts[1] < counts[0] < counts[2]
