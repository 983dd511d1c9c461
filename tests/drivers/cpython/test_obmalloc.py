"""Reading arenas and pools that change at the worst moment: read again, then unknown or gone, and never made up."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.cpython.collector.interpreters import read_interpreters
from gcspy_drivers.cpython.layouts import KNOWN, ObmallocHome, layout_for
from gcspy_drivers.cpython.pymalloc.location import Locator
from gcspy_drivers.cpython.pymalloc.obmalloc import (
    HeapReading,
    judge_arenas,
    plausible_table_length,
)
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.elf.file import ElfFile
from gcspy_drivers.remote.elf.image import Image
from gcspy_drivers.remote.memory import Memory

from tests.drivers.cpython.fake_heap import GEOMETRY, FakeHeap, address_of


@pytest.fixture
def heap() -> Iterator[FakeHeap]:
    made = FakeHeap()
    yield made
    made.close()


def states(reading: HeapReading, address: int) -> list[int]:
    (row,) = np.flatnonzero(reading.arenas.address == address)
    return [int(state) for state in reading.pools.state[reading.pools.arena == row]]


def test_a_made_heap_is_read_as_it_was_made(heap: FakeHeap) -> None:
    first, second = heap.add_arena(3, carved=40), heap.add_arena(0, carved=5)
    reading = heap.reader().read()
    assert reading.complete
    assert reading.table_length == 16
    assert reading.arenas.valid.all()
    assert reading.arenas.address.tolist() == sorted([first.address, second.address])
    for arena in (first, second):
        found = states(reading, arena.address)
        assert found == [PoolState.USED] * arena.carved + [PoolState.UNCARVED] * (
            len(found) - arena.carved
        )
    used = reading.pools.state == PoolState.USED
    assert (reading.pools.blocks_used[used] == 2).all()
    assert sorted(reading.pools.size_class[used].tolist()) == sorted(
        [*[n % 32 for n in range(40)], *range(5)]
    )


def test_a_heap_without_arenas_is_empty_and_not_unknown(heap: FakeHeap) -> None:
    reading = heap.reader().read()
    assert (reading.complete, len(reading.arenas), len(reading.pools)) == (True, 0, 0)
    heap.variables[:] = 0
    reading = heap.reader().read()
    assert (reading.complete, reading.table_length) == (True, 0)


def test_a_pool_that_is_carved_between_readings_is_read(heap: FakeHeap) -> None:
    arena = heap.add_arena(0, carved=7)
    reader = heap.reader()
    assert states(reader.read(), arena.address).count(PoolState.USED) == 7
    heap.carve(arena)
    assert states(reader.read(), arena.address).count(PoolState.USED) == 8
    assert states(reader.read(), arena.address).count(PoolState.USED) == 8


def test_an_arena_that_changes_its_slot_is_judged_by_the_new_one(heap: FakeHeap) -> None:
    arena = heap.add_arena(0, carved=7)
    reader = heap.reader()
    reader.read()
    heap.table[5], heap.table[0] = heap.table[0].copy(), np.zeros(1, dtype=heap.table.dtype)[0]
    heap.publish()
    assert states(reader.read(), arena.address)[:7] == [PoolState.UNKNOWN] * 7, (
        "its pools still name the old slot"
    )
    arena.slot = 5
    for number in range(7):
        heap.write_header(arena, number, heap.header(arena, number))
    assert states(reader.read(), arena.address)[:7] == [PoolState.USED] * 7


def test_a_record_that_becomes_plausible_makes_its_pools_known(heap: FakeHeap) -> None:
    arena = heap.add_arena(0, carved=0)
    reader = heap.reader()
    heap.table["ntotalpools"][0] += 1
    assert set(states(reader.read(), arena.address)) == {PoolState.UNKNOWN}
    heap.table["ntotalpools"][0] -= 1
    assert set(states(reader.read(), arena.address)) == {PoolState.UNCARVED}


@pytest.mark.parametrize(
    ("field", "change"),
    [("pool_address", 8), ("pool_address", -16384 * 20), ("pool_address", 16384 * 80), ("nfreepools", 100), ("nfreepools", -30), ("ntotalpools", 1),
     ("freepools", 5), ("freepools", 1 << 40)],
)  # fmt: skip
def test_a_record_that_contradicts_itself_is_not_believed(
    heap: FakeHeap, field: str, change: int
) -> None:
    heap.add_arena(0, carved=10)
    heap.add_arena(1, carved=10)
    heap.table[field][0] = (int(heap.table[field][0]) + change) % (
        1 << 8 * heap.table[field].itemsize
    )
    arenas, implausible = judge_arenas(heap.table, heap.live_maps(), GEOMETRY)
    assert implausible == 0
    assert arenas.valid[arenas.slot == 0].tolist() == [False]
    assert arenas.valid[arenas.slot == 1].tolist() == [True]


def test_two_sound_records_of_one_place_are_neither_of_them_shown(heap: FakeHeap) -> None:
    heap.add_arena(0, carved=10)
    heap.add_arena(1, carved=10)
    heap.table[2] = heap.table[0]
    arenas, implausible = judge_arenas(heap.table, heap.live_maps(), GEOMETRY)
    assert (arenas.slot.tolist(), implausible) == ([1], 2)


class MeddlingMemory(Memory):
    """Does something to the heap just before doubtful headers are read again."""

    def __init__(self, heap: FakeHeap) -> None:
        super().__init__(heap.process)
        self.before_rereading: Callable[[], None] = lambda: None

    def read_many(
        self, addrs: npt.NDArray[np.uint64], size_bytes: int
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        self.before_rereading()
        return super().read_many(addrs, size_bytes)


def test_a_header_that_was_caught_in_a_step_is_read_again(heap: FakeHeap) -> None:
    arena = heap.add_arena(0, carved=10)
    heap.memory = memory = MeddlingMemory(heap)
    torn = heap.header(arena, 4)
    torn["nextoffset"] = 1
    heap.write_header(arena, 4, torn)
    whole = heap.header(arena, 4)
    whole["count"] = 1
    memory.before_rereading = lambda: heap.write_header(arena, 4, whole)
    reading = heap.reader().read()
    assert reading.pools_reread == 1
    assert states(reading, arena.address)[4] == PoolState.USED
    assert reading.pools.blocks_used[:10].tolist() == [2, 2, 2, 2, 1, 2, 2, 2, 2, 2]


def test_an_arena_that_the_table_gives_up_meanwhile_is_not_shown(heap: FakeHeap) -> None:
    arena, other = heap.add_arena(0, carved=10), heap.add_arena(1, carved=10)
    heap.memory = memory = MeddlingMemory(heap)
    heap.write_header(arena, 4, np.zeros(1, dtype=heap.header(arena, 4).dtype))

    def give_up() -> None:
        heap.table["address"][0] = 0

    memory.before_rereading = give_up
    reading = heap.reader().read()
    assert reading.arenas.address.tolist() == [other.address]
    assert set(reading.pools.arena.tolist()) == {0}
    assert reading.pools.valid.all()


def test_an_arena_whose_memory_is_gone_is_not_shown_though_the_table_still_names_it(
    heap: FakeHeap,
) -> None:
    arena, other = heap.add_arena(0, carved=10), heap.add_arena(1, carved=10)
    reader = heap.reader()
    reader.read()
    heap.make_unreadable(arena, 0, 10)
    reading = reader.read()
    assert reading.arenas.address.tolist() == [other.address]
    assert reading.pools.valid.all()


def test_pools_that_cannot_be_read_are_unknown_while_their_arena_is_there(heap: FakeHeap) -> None:
    arena = heap.add_arena(0, carved=10)
    reader = heap.reader()
    heap.make_unreadable(arena, 2, 3)
    # Memory that is unreadable in the maps is no arena; here the maps were read before.
    reader._maps.maps = replace(reader._maps.maps)
    found = states(reader.read(), arena.address)
    assert [number for number, state in enumerate(found) if state == PoolState.UNKNOWN] == [2, 3, 4]


def test_a_table_that_grew_is_read_in_its_new_place(heap: FakeHeap) -> None:
    for slot in range(3):
        heap.add_arena(slot, carved=3)
    reader = heap.reader()
    assert reader.read().table_length == 16
    bigger = np.zeros(32, dtype=heap.table.dtype)
    bigger[:16] = heap.table
    heap.table = bigger
    heap.publish()
    reading = reader.read()
    assert (reading.table_length, len(reading.arenas), reading.complete) == (32, 3, True)


def test_lengths_of_tables_are_sixteen_doubled() -> None:
    assert [length for length in range(600) if plausible_table_length(length)] == [
        16,
        32,
        64,
        128,
        256,
        512,
    ]
    assert not plausible_table_length(1 << 21)


def locator(
    heap: FakeHeap, layout_version: tuple[int, int], writable: tuple[int, int] = (0, 0)
) -> Locator:
    stripped = ElfFile(io.BytesIO(Path("/bin/cat").read_bytes()), "cat")
    image = Image(
        path="fake",
        bias=0,
        writable=((Addr(writable[0]), Addr(writable[1])),),
        file=stripped,
        from_memory=False,
    )
    return Locator(heap.memory, heap.live_maps(), layout_for(layout_version), image)


@pytest.mark.parametrize("length_at", [18, 19, 21, 24])
def test_the_search_finds_the_variables_among_decoys(heap: FakeHeap, length_at: int) -> None:
    heap.variables[heap.length_at] = 0
    heap.length_at = length_at
    for slot in range(3):
        heap.add_arena(slot, carved=4)
    zeros = np.zeros(200, dtype=heap.table.dtype)
    heap.variables[2], heap.variables[3] = (
        address_of(zeros),
        64,
    )  # a pointer to something else, with a plausible length
    heap.variables[30] = address_of(heap.table) + 48  # into the table
    heap.variables[31] = 32
    begin = address_of(heap.variables)
    found = locator(heap, (3, 11), (begin, begin + heap.variables.nbytes)).find(Addr(0))
    assert found is not None
    assert (found.arenas, found.maxarenas) == (heap.place.arenas, heap.place.maxarenas)
    assert found.guessed


def test_of_two_lengths_nearby_the_tables_own_is_taken() -> None:
    """All of the first 16 entries are arenas, so that a length of 16 has nothing against it but the longer one."""
    heap = FakeHeap(length=32)
    try:
        for slot in range(16):
            heap.add_arena(slot, carved=1)
        heap.variables[heap.arenas_at + 1] = 16
        begin = address_of(heap.variables)
        found = locator(heap, (3, 11), (begin, begin + heap.variables.nbytes)).find(Addr(0))
        assert found is not None
        assert found.maxarenas == heap.place.maxarenas
    finally:
        heap.close()


def made_state(heap: FakeHeap, *, now: int) -> npt.NDArray[np.uint8]:
    """Make a struct _obmalloc_state that has the heap's table."""
    layout = layout_for((3, 13)).obmalloc
    state = np.zeros(layout.size_bytes, dtype=np.uint8)
    words = state.view(np.uint64)
    words[layout.arenas // 8] = address_of(heap.table)
    words[layout.maxarenas // 8] = len(heap.table)
    words[layout.arenas_now // 8 : layout.arenas_now // 8 + 3] = [now, now, now]
    return state


def test_a_state_whose_numbers_do_not_agree_is_not_taken(heap: FakeHeap) -> None:
    for slot in range(3):
        heap.add_arena(slot, carved=4)
    layout = layout_for((3, 13))
    assert layout.interpreter_obmalloc is not None
    right, wrong = made_state(heap, now=3), made_state(heap, now=9)
    interpreter = np.zeros(layout.interpreter_bytes // 8, dtype=np.uint64)
    interpreter[layout.interpreter_obmalloc // 8] = address_of(wrong)
    interpreter[500] = address_of(right)
    interpreter[501] = address_of(wrong)
    found = locator(heap, (3, 13)).find(Addr(address_of(interpreter)))
    assert found is not None
    assert found.arenas == address_of(right) + layout.obmalloc.arenas


@pytest.mark.parametrize("version", sorted(KNOWN))
def test_a_list_of_interpreters_that_cannot_be_is_not_believed(
    heap: FakeHeap, version: tuple[int, int]
) -> None:
    layout = layout_for(version)
    assert layout.obmalloc_home in ObmallocHome
    runtime = np.zeros(layout.interpreters_head // 8 + 1, dtype=np.uint64)
    size = max(layout.interpreter_next, layout.interpreter_id) // 8 + 1
    first, second = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint64)

    def read() -> list[int] | None:
        found = read_interpreters(heap.memory, layout, Addr(address_of(runtime)))
        return None if found is None else [interpreter.ident for interpreter in found]

    following, ident = layout.interpreter_next // 8, layout.interpreter_id // 8
    assert read() == [], "the runtime has not started"
    runtime[-1] = address_of(first)
    first[following], first[ident] = address_of(second), 7
    assert read() == [0, 7]
    second[ident] = 3
    assert read() is None, "there is no main interpreter"
    second[ident] = 7
    assert read() is None, "two of them are the same"
    second[ident] = 0
    second[following] = address_of(first)
    assert read() is None, "they are in a ring"
    second[following] = 0x1234_5678_9ABC
    assert read() is None, "the next one is nowhere"
    second[following], first[ident] = 0, 1 << 60
    assert read() is None, "no process has made that many"


@pytest.mark.parametrize("before", [False, True])
def test_where_the_table_cannot_be_read_what_was_known_is_unknown(
    heap: FakeHeap, before: bool
) -> None:
    heap.add_arena(3, carved=5)
    reader = heap.reader()
    if before:
        assert reader.read().complete
    heap.variables[heap.arenas_at] = 1 << 46  # where nothing is mapped
    for _ in range(2):
        reading = reader.read()
        assert (reading.complete, reading.table_length) == (False, 0)
        assert len(reading.arenas) == len(reader.read_arenas()) == before
        assert set(reading.pools.state.tolist()) <= {PoolState.UNKNOWN}
        assert (len(reading.pools) > 0) == before
