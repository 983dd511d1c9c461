"""Inconsistent values are unknown and never shown: structures of a JVM laid out in our own memory, and damaged there."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.hotspot.heaps.generational import GenerationalReader, PartKind
from gcspy_drivers.hotspot.heaps.generational_space import GenerationalSpace
from gcspy_drivers.hotspot.vm.counters import PerfCounters, find_counters
from gcspy_drivers.hotspot.vm.tables import VmField, VmTables, VMType, read_texts
from gcspy_drivers.kit.tiling import UniformTiling
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.api import Server

_MEGABYTE = 1 << 20
_BASE = 0x7000_0000
_HEAP, _YOUNG, _OLD, _SPACES = 0, 10, 20, 30
_OFFSETS = {
    ("CollectedHeap", "_total_collections"): 0,
    ("CollectedHeap", "_is_gc_active"): 8,
    ("CollectedHeap", "_reserved"): 16,
    ("MemRegion", "_start"): 0,
    ("MemRegion", "_word_size"): 8,
    ("SerialHeap", "_young_gen"): 32,
    ("SerialHeap", "_old_gen"): 40,
    ("DefNewGeneration", "_eden_space"): 0,
    ("DefNewGeneration", "_from_space"): 8,
    ("DefNewGeneration", "_to_space"): 16,
    ("TenuredGeneration", "_the_space"): 0,
    ("Generation", "_virtual_space"): 32,
    ("VirtualSpace", "_low_boundary"): 0,
    ("VirtualSpace", "_low"): 8,
    ("VirtualSpace", "_high"): 16,
    ("VirtualSpace", "_high_boundary"): 24,
    ("ContiguousSpace", "_bottom"): 0,
    ("ContiguousSpace", "_top"): 8,
    ("ContiguousSpace", "_end"): 16,
}


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """Return our own memory, to be read as a target's."""
    with Process(os.getpid()) as process:
        yield Memory(process)


def _tables() -> VmTables:
    fields = {key: VmField(*key, "", False, offset, Addr(0)) for key, offset in _OFFSETS.items()}
    return VmTables(fields, {"SerialHeap": VMType("CollectedHeap", 64)}, {})


def _heap() -> npt.NDArray[np.uint64]:
    """Lay out a Serial heap of 4 MB: young 1 MB of eden, half of one each from and to; old 2 MB, of which 1 is committed."""
    words = np.zeros(60, dtype=np.uint64)
    address = words.ctypes.data
    words[_HEAP : _HEAP + 6] = [
        7,
        0,
        _BASE,
        4 * _MEGABYTE // 8,
        address + 8 * _YOUNG,
        address + 8 * _OLD,
    ]
    spaces = [address + 8 * (_SPACES + 4 * number) for number in range(4)]
    words[_YOUNG : _YOUNG + 3] = spaces[:3]
    words[_YOUNG + 4 : _YOUNG + 8] = [_BASE, _BASE, _BASE + 2 * _MEGABYTE, _BASE + 2 * _MEGABYTE]
    words[_OLD] = spaces[3]
    old = _BASE + 2 * _MEGABYTE
    words[_OLD + 4 : _OLD + 8] = [old, old, old + _MEGABYTE, old + 2 * _MEGABYTE]
    half = _MEGABYTE // 2
    bounds = [
        (_BASE, 800, _MEGABYTE),
        (_BASE + 2 * half, 16, half),
        (_BASE + 3 * half, 0, half),
        (old, 4096, 2 * half),
    ]
    for number, (bottom, used, size) in enumerate(bounds):
        words[_SPACES + 4 * number : _SPACES + 4 * number + 3] = [
            bottom,
            bottom + used,
            bottom + size,
        ]
    return words


def test_bounds_that_contradict_each_other_are_unknown_in_every_tile(memory: Memory) -> None:
    words = _heap()
    reader = GenerationalReader(memory, _tables(), words.ctypes.data, "Serial")
    found = reader.read()
    assert found is not None
    assert [part.top - part.bottom for part in found.parts] == [800, 16, 0, 4096]
    assert found.collections == 7
    assert [part.kind for part in found.parts] == list(PartKind)
    space = GenerationalSpace(
        Server("x", events=["Clock"]),
        UniformTiling.of(_BASE, _BASE + 4 * _MEGABYTE, 4096),
        cards=False,
    )
    space.fill(found)
    assert space.used.data.sum() == 4912
    assert space.used.known is None
    covered = 3 * _MEGABYTE // 4096
    assert space.used._summary == ((4912, 3 * _MEGABYTE), covered), "of what is committed"
    for word, value in (
        (_SPACES + 1, _BASE + 2 * _MEGABYTE),  # a top beyond its end
        (_SPACES + 1, _BASE - 8),  # below its bottom
        (_SPACES + 1, _BASE + 801),  # between words
        (_SPACES + 14, _BASE + 4 * _MEGABYTE),  # an end beyond what is committed
        (_OLD + 6, _BASE + 5 * _MEGABYTE),  # committed beyond the heap
        (_YOUNG + 1, 8),  # a pointer to nowhere
    ):
        before, words[word] = words[word], value
        assert reader.read() is None, (word, hex(value))
        words[word] = before
        assert reader.read() == found
    space.fill(None)
    for stream in space.space.streams:
        assert stream.known is not None
        assert not stream.known.any()


def _counters(name: bytes = b"sun.gc.cause", value: int = 42) -> bytearray:
    entry_at, name_at = 32, 20
    data_at = (name_at + len(name) + 8) & ~7
    length = data_at + 8
    body = struct.pack("<iiiBBBBi", length, name_at, 0, ord("J"), 0, 1, 1, data_at)
    body += name.ljust(data_at - name_at, b"\0") + struct.pack("<q", value)
    head = struct.pack("<IBBBBiiqii", 0xC0C0FECA, 1, 2, 0, 1, entry_at + length, 0, 0, entry_at, 1)
    return bytearray(head + body)


def _found_in(data: bytes) -> dict[str, int | None]:
    """The numbers of the counters that are found in a VM's memory; texts are read, too."""
    buffer = np.frombuffer(data, dtype=np.uint8).copy()
    return _between(buffer.ctypes.data, buffer.ctypes.data + len(buffer))


def _between(first: int, end: int) -> dict[str, int | None]:
    """The numbers of the counters that a VM says to be between two addresses."""
    with Process(os.getpid()) as process:
        counters = _counters_between(process, first, end)
        for name in counters.names("", ""):
            counters.text(name)
        return {name: counters.number(name) for name in counters.names("", "")}


def _counters_between(process: Process, first: int, end: int) -> PerfCounters:
    pointers = np.array([first, end], dtype=np.uint64)
    names = ("_start", "_end")
    fields = {
        ("PerfMemory", name): VmField(
            "PerfMemory", name, "char*", True, 0, Addr(pointers.ctypes.data + 8 * place)
        )
        for place, name in enumerate(names)
    }
    return find_counters(Memory(process), VmTables(fields, {}, {}))


@given(damage=st.lists(st.tuples(st.integers(0, 79), st.integers(0, 255)), max_size=4))
def test_damaged_counters_are_none_or_those_that_are_whole(damage: list[tuple[int, int]]) -> None:
    found = _counters()
    for place, value in damage:
        found[place % len(found)] = value
    counters = _found_in(bytes(found))
    if not damage:
        assert counters == {"sun.gc.cause": 42}


def test_a_counter_that_claims_more_than_there_is_does_not_exist() -> None:
    """Else its text would be read from, and take, as much memory as it claims."""
    found = _counters()
    whole = bytes(found)
    assert "sun.gc.cause" in _found_in(whole)
    found[32:36] = (1 << 30).to_bytes(4, "little")  # the entry's length
    found[40:44] = (1 << 29).to_bytes(4, "little")  # elements of its vector
    found[44] = ord("B")
    assert not _found_in(bytes(found))


@pytest.mark.parametrize(
    ("size_bytes", "there"),
    [(-1, False), (0, False), (31, False), (None, True), (1 << 22, True), ((1 << 22) + 1, False)],
)
def test_counters_are_read_where_their_memory_is_neither_too_small_nor_too_large(
    size_bytes: int | None, there: bool
) -> None:
    data = bytes(_counters())
    room = mmap.mmap(-1, (1 << 22) + mmap.PAGESIZE)
    room[: len(data)] = data
    first = np.frombuffer(room, dtype=np.uint8).ctypes.data
    end = first + (len(data) if size_bytes is None else size_bytes)
    assert _between(first, end) == ({"sun.gc.cause": 42} if there else {})


def test_what_is_no_text_has_an_empty_one_and_what_is_no_number_none() -> None:
    text = _counters()
    text[40:44] = (8).to_bytes(4, "little")  # a vector of eight characters
    text[44] = ord("B")
    text[-8:] = b"System\0\0"
    for data, number, words in ((_counters(), 42, ""), (text, None, "System")):
        room = np.frombuffer(bytes(data), dtype=np.uint8).copy()
        with Process(os.getpid()) as process:
            counters = _counters_between(process, room.ctypes.data, room.ctypes.data + len(room))
            assert counters.number("sun.gc.cause") == number
            assert counters.text("sun.gc.cause") == words
            assert counters.text("sun.gc.lastCause") == ""


def test_a_vm_that_keeps_no_counters_has_none() -> None:
    assert _between(0, 4096) == {}
    with Process(os.getpid()) as process:
        counters = find_counters(Memory(process), VmTables({}, {}, {}))
    assert counters.names("", "") == []
    assert counters.numbers("sun.gc.cause", "other") == (None, None)


def test_texts_that_do_not_end_are_not_read(memory: Memory) -> None:
    buffer = np.full(4096, ord("x"), dtype=np.uint8)
    buffer[2000:2004] = [ord("a"), ord("b"), 0, 0]
    address = buffer.ctypes.data
    found = read_texts(memory, np.array([address, address + 2000, 8], dtype=np.uint64))
    assert found == {address + 2000: "ab"}
