"""Bounded reads: existing memory is read exactly, missing memory is reported, and nothing is invented. Read from ourselves."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Gather, Neighbours, Pieces
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.vectors import MAX_READ_BYTES
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone
from hypothesis import given
from hypothesis import strategies as st

PAGE = mmap.PAGESIZE
PAGES = 8192
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Room:
    """Memory of ours: each page says its number, and some pages cannot be read."""

    memory: Memory
    base: int
    content: npt.NDArray[np.uint8]

    def protect(self, page: int, *, readable: bool) -> None:
        wanted = mmap.PROT_READ | mmap.PROT_WRITE if readable else 0
        done = _LIBC.mprotect(
            ctypes.c_void_p(self.base + page * PAGE), ctypes.c_size_t(PAGE), ctypes.c_int(wanted)
        )
        assert done == 0


@pytest.fixture(scope="module")
def room() -> Iterator[Room]:
    content = np.arange(PAGES * PAGE, dtype=np.uint32).astype(np.uint8)
    content.reshape(PAGES, PAGE)[:, :4] = (
        np.arange(PAGES, dtype="<u4").view(np.uint8).reshape(PAGES, 4)
    )
    area = mmap.mmap(-1, PAGES * PAGE)
    area.write(content.tobytes())
    holder = (ctypes.c_char * len(area)).from_buffer(area)
    with Process(os.getpid()) as process:
        yield Room(Memory(process), ctypes.addressof(holder), content)
    del holder
    area.close()


def test_a_piece_is_read_exactly(room: Room) -> None:
    assert room.memory.read(room.base + 5, 10_000) == room.content[5:10_005].tobytes()
    assert room.memory.read(room.base, 0) == b""
    out = np.zeros(PAGE, dtype=np.uint8)
    assert room.memory.read_into(room.base + 3 * PAGE, out)
    assert np.array_equal(out, room.content[3 * PAGE : 4 * PAGE])


def test_what_is_not_mapped_is_an_error_with_its_address(room: Room) -> None:
    for addr in (0, 16, 1 << 47, (1 << 64) - 8, 1 << 63):
        assert room.memory.try_read(addr, 8) is None
        with pytest.raises(TargetError, match=f"no readable memory at {addr:#x} \\(8 bytes\\)"):
            room.memory.read(addr, 8)


def test_a_piece_that_is_readable_in_part_is_not_read(room: Room) -> None:
    room.protect(11, readable=False)
    try:
        out = np.ones(3 * PAGE, dtype=np.uint8)
        assert not room.memory.read_into(room.base + 10 * PAGE, out)
        assert not out.any(), "half of it was left for somebody to believe"
    finally:
        room.protect(11, readable=True)


@pytest.mark.parametrize("count", [1, 2, 1023, 1024, 1025, 2048, 5000])
def test_many_pieces_come_back_in_their_order(room: Room, count: int) -> None:
    pages = np.random.default_rng(count).integers(0, PAGES, count)
    data, ok = room.memory.read_many(
        np.uint64(room.base) + pages.astype(np.uint64) * np.uint64(PAGE), 48
    )
    assert ok.all()
    assert data[:, :4].copy().view("<u4")[:, 0].tolist() == pages.tolist()
    assert data.shape == (count, 48)


broken = st.sets(st.integers(0, 2500), max_size=30)


@given(holes=broken, first=st.integers(0, 3), count=st.integers(0, 2500))
def test_only_the_pieces_that_fail_are_not_ok(
    room: Room, holes: set[int], first: int, count: int
) -> None:
    addrs = np.uint64(room.base) + np.arange(first, first + count, dtype=np.uint64) * np.uint64(
        PAGE
    )
    for hole in holes:
        room.protect(hole, readable=False)
    try:
        data, ok = room.memory.read_many(addrs, 64)
    finally:
        for hole in holes:
            room.protect(hole, readable=True)
    expected = [page not in holes for page in range(first, first + count)]
    assert ok.tolist() == expected
    assert (
        data[ok].tobytes()
        == room.content.reshape(PAGES, PAGE)[first : first + count, :64][ok].tobytes()
    )
    assert not data[~ok].any()


def test_a_piece_across_two_pages_fails_alone(room: Room) -> None:
    addrs = np.array(
        [room.base, room.base + PAGE - 8, room.base + 2 * PAGE, room.base + 3 * PAGE - 8],
        dtype=np.uint64,
    )
    room.protect(1, readable=False)
    try:
        data, ok = room.memory.read_many(addrs, 16)
    finally:
        room.protect(1, readable=True)
    assert ok.tolist() == [True, False, True, True]
    assert data[3].tobytes() == room.content[3 * PAGE - 8 : 3 * PAGE + 8].tobytes()


def test_a_gather_reads_again_into_the_same_room_and_forgets_what_failed(room: Room) -> None:
    addrs = np.uint64(room.base) + np.arange(100, dtype=np.uint64) * np.uint64(PAGE)
    gather = Gather(room.memory.process, addrs, 48)
    buffer = gather.data
    room.protect(7, readable=False)
    try:
        gather.read()
        assert np.flatnonzero(~gather.ok).tolist() == [7]
    finally:
        room.protect(7, readable=True)
    gather.read()
    assert gather.ok.all()
    assert gather.data is buffer
    assert buffer[7].tobytes() == room.content[7 * PAGE : 7 * PAGE + 48].tobytes()


def test_sizes_that_cannot_be_true_are_refused_before_memory_is_taken(room: Room) -> None:
    for size in (MAX_READ_BYTES + 1, 1 << 60, -1):
        with pytest.raises(TargetError, match=f"refused to read {size} bytes"):
            room.memory.try_read(room.base, size)
    with pytest.raises(TargetError, match="refused to read"):
        room.memory.read_many(np.zeros(10, dtype=np.uint64), MAX_READ_BYTES // 9)
    with pytest.raises(TargetError, match="must be contiguous"):
        Gather(
            room.memory.process,
            np.zeros(4, dtype=np.uint64),
            8,
            out=np.zeros((8, 8), dtype=np.uint8)[::2],
        )


def test_a_process_that_has_ended_is_gone() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    with Process(child.pid) as process:
        child.communicate()
        with pytest.raises(TargetGone):
            Memory(process).try_read(0x1000, 8)


def test_a_refusal_is_not_taken_for_memory_that_is_not_mapped(room: Room) -> None:
    with pytest.raises(NotPermitted, match="not permitted") as refused:
        room.memory.process.refuse(PermissionError(1, "Operation not permitted"), "its memory")
    assert refused.value.remedy
    with pytest.raises(TargetError, match=r"errno 12"):
        room.memory.process.refuse(OSError(12, "Cannot allocate memory"), "its memory")


@given(
    places=st.lists(st.integers(0, 4 * PAGE // 8), min_size=1, max_size=40, unique=True),
    far=st.lists(st.integers(20, 4000), max_size=5, unique=True),
)
def test_neighbours_are_read_as_each_by_itself(
    room: Room, places: list[int], far: list[int]
) -> None:
    offsets = np.array([place * 8 for place in places] + [page * PAGE for page in far])
    pieces = Neighbours(room.memory.process, (room.base + offsets).astype(np.uint64), 24)
    pieces.read()
    assert pieces.ok.all()
    for at, kind in ((0, "<u8"), (8, "<u4"), (20, "<u4"), (23, "u1")):
        size = np.dtype(kind).itemsize
        alone = [room.content[start + at : start + at + size].view(kind)[0] for start in offsets]
        assert pieces.column(at, kind).tolist() == alone
        assert pieces.column(at, kind, first=1, count=3).tolist() == alone[1:4]


def test_neighbours_with_a_hole_between_are_read_where_there_is_memory(room: Room) -> None:
    offsets = np.arange(PAGE * 4900, PAGE * 4904, 512)
    pieces = Neighbours(room.memory.process, (room.base + offsets).astype(np.uint64), 16)
    pieces.read()
    assert pieces.ok.all()
    room.protect(4902, readable=False)
    try:
        for _ in range(2):
            pieces.read()
            hidden = offsets // PAGE == 4902
            assert (pieces.ok == ~hidden).all()
            alone = room.content[: 5000 * PAGE].view("<u8")[offsets // 8]
            assert (pieces.column(0)[~hidden] == alone[~hidden]).all()
            assert not pieces.column(0)[hidden].any()
    finally:
        room.protect(4902, readable=True)


def test_structures_between_words_are_refused(room: Room) -> None:
    with pytest.raises(TargetError):
        Neighbours(room.memory.process, np.array([room.base + 4], dtype=np.uint64), 16)
    with pytest.raises(TargetError):
        Neighbours(room.memory.process, np.array([room.base], dtype=np.uint64), 12)


def test_a_few_pieces_of_any_size_come_in_their_order_or_not_at_all(room: Room) -> None:
    pieces = [(room.base + 3 * PAGE, 8), (room.base + 5, PAGE + 1), (room.base + 3 * PAGE, 4)]
    some = Pieces(room.memory.process, pieces)
    expected = b"".join(
        room.content[at - room.base : at - room.base + size].tobytes() for at, size in pieces
    )
    assert some.read() == expected
    room.protect(1, readable=False)
    try:
        assert some.read() is None
    finally:
        room.protect(1, readable=True)
    assert some.read() == expected
    with pytest.raises(TargetError, match="not plausible"):
        Pieces(room.memory.process, [(room.base, MAX_READ_BYTES), (room.base, 1)])
