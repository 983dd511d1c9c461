"""The sidecar's end of the ring: whatever a program writes there is a copy, or refused."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from gcspy_drivers.cooperative import ring_buffer
from gcspy_drivers.cooperative.ring_buffer import CopyPlan, CopyRing, PoolPlan
from gcspy_protocol.errors import TargetError
from hypothesis import given
from hypothesis import strategies as st

SIZE = 1 << 16
PLAN = CopyPlan(((4096, 8), (8192, 64)), PoolPlan(1, 2, 1 << 20, 1 << 14, 48, 16, 32))


@contextmanager
def shared(size: int = SIZE, *, sealed: bool = True) -> Iterator[int]:
    memory = os.memfd_create("ring", os.MFD_ALLOW_SEALING)
    try:
        os.truncate(memory, size)
        if sealed:
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        yield memory
    finally:
        os.close(memory)


@contextmanager
def ring_of(memory: int) -> Iterator[CopyRing]:
    ring = CopyRing(memory)
    try:
        yield ring
    finally:
        ring.close()


def write(memory: int, word: int, *numbers: int) -> None:
    os.pwrite(memory, b"".join(one.to_bytes(8, "little") for one in numbers), word * 8)


def test_a_memory_that_can_shrink_or_is_too_small_is_refused() -> None:
    with shared(sealed=False) as memory, pytest.raises(TargetError, match="no ring"):
        CopyRing(memory)
    with shared(4096) as memory, pytest.raises(TargetError, match="no ring that can be used"):
        CopyRing(memory)
    with open("/proc/self/maps", "rb") as file, pytest.raises(TargetError, match="no ring"):
        CopyRing(file.fileno())


def test_a_plan_is_there_only_when_it_is_whole() -> None:
    with shared() as memory, ring_of(memory) as ring:
        ring.follow(PLAN, holds=True)
        words = os.pread(memory, 8 * 32, 0)
        numbers = [int.from_bytes(words[at : at + 8], "little") for at in range(0, len(words), 8)]
        assert numbers[0] == 1
        assert numbers[2] == 1
        assert numbers[8:17] == [1, 2, 1 << 20, 1 << 14, 48, 16, 32, 1, 2]
        assert numbers[17:21] == [4096, 8, 8192, 64]
        ring.follow(PLAN, holds=False)
        assert os.pread(memory, 8, 0) == b"\1" + bytes(7), "the same plan"
        assert os.pread(memory, 8, 16) == bytes(8)
        ring.stop()
        assert os.pread(memory, 8, 0) == bytes(8)
        ring.follow(CopyPlan(()), holds=True)
        assert os.pread(memory, 8, 0) == b"\2" + bytes(7)
        with pytest.raises(AssertionError, match="cannot be copied"):
            ring.follow(CopyPlan(((4096, 7),)), holds=True)
        assert os.pread(memory, 8, 0) == bytes(8), "no half of a plan is left"


def test_more_records_than_there_is_room_for_are_refused() -> None:
    with shared() as memory, ring_of(memory) as ring:
        ring.follow(PLAN, holds=True)
        assert ring.take() is None
        write(memory, 256, 1025)
        with pytest.raises(TargetError, match="1025 records"):
            ring.take()


@pytest.mark.parametrize("most_plain_bytes", [0, 1 << 20])
def test_records_that_are_kept_leave_room_and_keep_their_order(
    monkeypatch: pytest.MonkeyPatch, most_plain_bytes: int
) -> None:
    monkeypatch.setattr(ring_buffer, "_MOST_PLAIN_BYTES", most_plain_bytes)
    record = bytearray(4096)
    with shared() as memory, ring_of(memory) as ring:
        ring.follow(CopyPlan(()), holds=True)
        for number in range(4):
            record[0] = number
            os.pwrite(memory, bytes(record[:200]), 20480 + 200 * number)
            write(memory, 20480 // 8 + 25 * number + 10, 1)
            write(memory, 512 + 2 * number, 20480 + 200 * number, 200)
        write(memory, 256, 3)
        ring.keep(most_bytes=1)
        assert os.pread(memory, 8, 8) == b"\1" + bytes(7), "one of three was copied out"
        assert ring.pending == 3
        write(memory, 256, 4)
        first = ring.take()
        assert first is not None
        ring.keep()
        assert os.pread(memory, 8, 8) == b"\4" + bytes(7)
        assert ring.pending == 3
        rest = [ring.take() for _ in range(3)]
        assert [first.event[0], *(one.event[0] for one in rest if one is not None)] == [0, 1, 2, 3]
        assert ring.take() is None


def test_the_time_that_a_program_waited_for_room_never_decreases() -> None:
    with shared() as memory, ring_of(memory) as ring:
        write(memory, 258, 1000)
        assert ring.waited_nanos == 1000
        write(memory, 258, 10)
        assert ring.waited_nanos == 1000
        write(memory, 258, (1 << 64) - 1)
        assert ring.waited_nanos < 1 << 63, "no longer than the machine runs"


@pytest.mark.parametrize(
    ("place", "size"), [(0, 200), (20484, 200), (20480, 100), (20480, SIZE), (SIZE, 200)]
)
def test_a_record_outside_of_the_ring_is_refused(place: int, size: int) -> None:
    with shared() as memory, ring_of(memory) as ring:
        ring.follow(PLAN, holds=True)
        write(memory, 512, place, size)
        write(memory, 256, 1)
        with pytest.raises(TargetError, match="has a record of"):
            ring.take()


@given(st.binary(max_size=4096), st.integers(0, 2), st.integers(0, 1 << 20), st.integers(0, 3))
def test_any_record_is_a_copy_of_its_size_or_is_refused(
    record: bytes, number: int, count: int, flags: int
) -> None:
    with shared() as memory, ring_of(memory) as ring:
        ring.follow(PLAN, holds=True)
        os.pwrite(memory, record, 20480)
        write(memory, 20480 // 8 + 10, number, count << 32 | len(record) // 96, flags, 0)
        write(memory, 512, 20480, max(200, len(record) & ~7))
        write(memory, 256, 1)
        try:
            copy = ring.take()
        except TargetError:
            return
        assert copy is not None
        assert ring.take() is None
        assert len(copy.event) == 40
        assert {key: len(value) for key, value in copy.ranges.items()} == {
            (4096, 8): 8,
            (8192, 64): 64,
        }
        assert len(copy.table) * 4 == len(copy.carved) * 48
        assert len(copy.pools) % 4 == 0
