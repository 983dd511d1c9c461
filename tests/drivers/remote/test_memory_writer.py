"""It writes the requested bytes and nothing else; it reports bytes it cannot write. Written into ourselves."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
from collections.abc import Iterator

import pytest
from gcspy_drivers.remote.memory_writer import write
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, TargetGone

PAGE = mmap.PAGESIZE
Room = ctypes.Array[ctypes.c_char]
_LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture(name="process")
def _process() -> Iterator[Process]:
    with Process(os.getpid()) as process:
        yield process


@pytest.fixture(name="room")
def _room() -> Room:
    """Two pages of ours, of which the second can only be read."""
    area = mmap.mmap(-1, 2 * PAGE)
    holder = (ctypes.c_char * len(area)).from_buffer(area)
    second = ctypes.c_void_p(ctypes.addressof(holder) + PAGE)
    assert _LIBC.mprotect(second, ctypes.c_size_t(PAGE), ctypes.c_int(mmap.PROT_READ)) == 0
    return holder  # which keeps them, and releases them


def test_what_is_asked_for_is_written_and_nothing_beside_it(process: Process, room: Room) -> None:
    write(process, ctypes.addressof(room) + 7, b"a\0b")
    assert room.raw == bytes(7) + b"a\0b" + bytes(2 * PAGE - 10)


def test_nothing_is_written_where_nothing_is_asked_for(process: Process, room: Room) -> None:
    write(process, ctypes.addressof(room), b"")
    assert room.raw == bytes(2 * PAGE)


def test_4096_bytes_are_the_most(process: Process) -> None:
    buffer = ctypes.create_string_buffer(4097)
    write(process, ctypes.addressof(buffer), b"x" * 4096)
    assert buffer.raw == b"x" * 4096 + b"\0"
    with pytest.raises(TargetError, match="refused to write 4097 bytes"):
        write(process, ctypes.addressof(buffer), b"y" * 4097)
    assert buffer.raw == b"x" * 4096 + b"\0"


def test_what_cannot_be_written_is_said_with_its_address(process: Process, room: Room) -> None:
    second = ctypes.addressof(room) + PAGE
    with pytest.raises(TargetError, match=f"writing at {second:#x}"):
        write(process, second, b"x")
    with pytest.raises(TargetError, match=f"only 3 of 8 bytes .* at {second - 3:#x}"):
        write(process, second - 3, b"x" * 8)
    assert room.raw[PAGE:] == bytes(PAGE)


def test_a_process_that_has_ended_is_gone() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    with Process(child.pid) as process:
        child.kill()
        child.communicate()
        with pytest.raises(TargetGone):
            write(process, PAGE, b"x")
