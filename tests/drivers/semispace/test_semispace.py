from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.semispace.collector import WORD_BYTES, HeapFull, SemispaceHeap
from gcspy_drivers.semispace.driver import (
    COLLECTION_ENDS,
    COLLECTION_STARTS,
    SemispaceDriver,
    make_server,
)
from gcspy_protocol.errors import LocalProtocolError
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.api import Control, Event

ROOM = 1 << 12


def graph(heap: SemispaceHeap) -> list[object]:
    """Return the graph that the roots reach, with addresses replaced by the order of a depth-first walk: another algorithm than Cheney's."""
    numbers: dict[int, int] = {}
    shape: list[object] = []

    def visit(address: int) -> int:
        if address == 0:
            return -1
        if address not in numbers:
            numbers[address] = len(numbers)
            fields = [visit(heap.field(address, i)) for i in range(heap.fields_of(address))]
            shape.append((numbers[address], heap.size_of(address), fields))
        return numbers[address]

    shape.append([visit(root) for root in heap.roots])
    return shape


steps = st.lists(
    st.tuples(
        st.sampled_from(["root", "link", "drop", "collect"]),
        st.integers(0, 3),
        st.integers(0, 6),
        st.integers(0, 1 << 16),
        st.integers(0, 1 << 16),
    ),
    max_size=60,
)


@given(steps)
def test_a_collection_keeps_what_is_reachable_and_only_that(
    program: list[tuple[str, int, int, int, int]],
) -> None:
    heap = SemispaceHeap(ROOM)
    for what, fields, data, a, b in program:
        if what == "root":
            heap.roots.append(heap.allocate(fields, data))
        elif what == "link" and heap.roots:
            one, other = heap.roots[a % len(heap.roots)], heap.roots[b % len(heap.roots)]
            if one and heap.fields_of(one):
                heap.set_field(one, b % heap.fields_of(one), other)
        elif what == "drop" and heap.roots:
            heap.roots[a % len(heap.roots)] = 0
        elif what == "collect":
            before = graph(heap)
            heap.collect()
            assert graph(heap) == before
            live = sum(1 for entry in before if isinstance(entry, tuple))
            assert len(list(heap.objects())) == live
    start, free = heap.in_use
    assert sum(size for _, size in heap.objects()) == free - start


def test_a_full_heap_says_so() -> None:
    heap = SemispaceHeap(20 * WORD_BYTES)
    heap.roots.append(heap.allocate(0, 9))
    heap.allocate(0, 9)
    heap.allocate(0, 9)  # the second was garbage: a collection made room
    with pytest.raises(HeapFull, match="80 of 160 are live"):
        heap.allocate(0, 14)


def test_impossible_heaps_and_fields_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match="multiple of 8"):
        SemispaceHeap(13)
    heap = SemispaceHeap(ROOM)
    with pytest.raises(LocalProtocolError, match="1 fields, none is 1"):
        heap.field(heap.allocate(1), 1)


def watched(tile_bytes: int = 256) -> tuple[SemispaceHeap, SemispaceDriver, list[Event]]:
    server, heap = make_server(), SemispaceHeap(ROOM)
    driver = SemispaceDriver(server, heap, tile_bytes=tile_bytes)
    events: list[Event] = []
    server.add_observer(events.append)
    return heap, driver, events


@pytest.mark.parametrize("tile_bytes", [64, 256, 1000])
def test_every_byte_and_object_of_the_heap_is_in_its_tile(tile_bytes: int) -> None:
    heap, driver, events = watched(tile_bytes)
    random = np.random.default_rng(7)
    for _ in range(400):
        address = heap.allocate(int(random.integers(0, 4)), int(random.integers(0, 9)))
        if random.random() < 0.1:
            heap.roots.append(address)
        if len(heap.roots) > 12:
            heap.roots.pop(0)
    heap.collect()
    assert [event.event for event in events[-2:]] == [COLLECTION_STARTS, COLLECTION_ENDS]
    assert events[-1].cause == "asked for"
    assert events[-1].program_clock == ("allocated bytes", heap.allocated_bytes)
    expected_bytes = np.zeros(driver._space.count, dtype=np.int64)
    expected_objects = np.zeros(driver._space.count, dtype=np.int64)
    for address, size in heap.objects():
        expected_objects[(address - heap.base) // tile_bytes] += 1
        for byte in range(address, address + size):
            expected_bytes[(byte - heap.base) // tile_bytes] += 1
    assert driver._used._values.tolist() == expected_bytes.tolist()
    assert driver._objects._values.tolist() == expected_objects.tolist()
    assert int(driver._roots._values.sum()) == sum(1 for root in heap.roots if root)


def test_the_idle_half_is_unused_and_a_line_parts_the_two() -> None:
    heap, driver, _ = watched()
    heap.roots.append(heap.allocate(1, 3))
    heap.collect()
    control = driver._space._control
    middle = driver._space.count // 2
    assert set(control[:middle].tolist()) == {Control.UNUSED}
    assert control[middle] == Control.USED | Control.SEPARATOR
    heap.collect()
    assert set(control[:middle].tolist()) == {Control.USED}
    assert control[middle] == Control.UNUSED | Control.SEPARATOR


def test_without_a_client_nothing_is_gathered_and_collections_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, heap = make_server(), SemispaceHeap(ROOM)
    SemispaceDriver(server, heap)

    def walked() -> None:
        raise AssertionError("the heap was walked for nobody")

    monkeypatch.setattr(heap, "objects", walked)
    heap.collect()
    assert server.counts() == (1, 1)


def test_the_driver_is_as_small_as_the_papers() -> None:
    import gcspy_drivers.semispace.driver as driver

    assert len(Path(driver.__file__).read_text().splitlines()) < 150
