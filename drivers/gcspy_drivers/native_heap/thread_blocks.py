"""Finds the control block of each thread: below it are the thread's variables, malloc's cache among them.

By relations, since stripped programs have no symbols for it: the block's first and third word are its own address, as the ABI demands,
and near them is the number of the thread. Most threads wait in the kernel, which shows their stack; the block lies at the stack's upper
end. That of the first thread lies in a small mapping of the loader.

Knows blocks; does not know malloc. Source: ELF Handling For Thread-Local Storage, variant II; glibc sysdeps/x86_64/nptl/tls.h (tcbhead_t),
nptl/descr.h (struct pthread), proc_pid_syscall(5).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.native_heap.present_pages import PresentMemory
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.mapping_table import PRIVATE, READ, WRITE
from gcspy_drivers.remote.maps import Maps

__all__ = ["find_blocks"]

_SMALL_BYTES: Final = 1 << 20
"""A mapping up to this size is searched whole."""
_END_BYTES: Final = 64 << 10
"""Of larger ones the end is searched: stacks grow downwards from there."""
_MOST_BYTES: Final = 64 << 20
_BLOCK_WORDS: Final = 288
"""Words of ``struct pthread`` in which the thread's number is looked for; it is in the first third."""
_MOST_WAITING: Final = 512

U64 = npt.NDArray[np.uint64]


def find_blocks(pages: PresentMemory, maps: Maps) -> dict[int, int]:
    """Return the address of each thread's control block, by thread; those that were not found are missing.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not let us read it.
    """
    process = pages.memory.process
    threads = set(process.thread_ids())
    found: dict[int, int] = {}
    left = _MOST_BYTES
    for begin, end in _ranges(pages, maps, threads):
        if len(found) == len(threads) or left <= 0:
            break
        left -= end - begin
        found |= _blocks_in(begin, pages.words(begin, end), threads)
    return found


def _ranges(pages: PresentMemory, maps: Maps, threads: set[int]) -> list[tuple[int, int]]:
    rows = np.flatnonzero(
        (maps.inode == 0)
        & ((maps.permissions & (READ | WRITE | PRIVATE)) == READ | WRITE | PRIVATE)
    )
    whole, ends = [], []
    for row in rows.tolist():
        begin, end = int(maps.start[row]), int(maps.end[row])
        if maps.path[row] == "[heap]":  # of a program that was linked statically
            whole.append((begin, min(end, begin + _END_BYTES)))
        elif end - begin <= _SMALL_BYTES:
            whole.append((begin, end))
        else:
            ends.append((end - _END_BYTES, end))
    stacks = []
    for thread in sorted(threads)[:_MOST_WAITING]:
        pointer = _stack_pointer(pages, thread)
        of_stack = None if pointer is None else maps.row_of(pointer)
        if pointer is None or of_stack is None or maps.path[of_stack].startswith("[stack"):
            continue
        low = pointer // PAGE_BYTES * PAGE_BYTES
        stacks.append((low, min(int(maps.end[of_stack]), low + _SMALL_BYTES)))
    return [*whole, *ends, *stacks]


def _blocks_in(begin: int, words: U64, threads: set[int]) -> dict[int, int]:
    own = np.uint64(begin) + np.arange(len(words), dtype=np.uint64) * np.uint64(8)
    head = words[:-2] == own[:-2]
    head &= words[2:] == own[:-2]
    found = {}
    for at in np.flatnonzero(head).tolist():
        numbers = words[at : at + _BLOCK_WORDS].view(np.uint32)
        thread = next((number for number in numbers.tolist() if number in threads), None)
        if thread is not None:
            found[thread] = begin + 8 * at
    return found


def _stack_pointer(pages: PresentMemory, thread: int) -> int | None:
    try:
        text = pages.memory.process.read_file(f"task/{thread}/syscall")
    except TargetGone:
        raise
    except TargetError:
        return None
    fields = text.split()
    # "running", or the call's number and arguments, and at the end stack pointer and program counter.
    return int(fields[-2], 16) if len(fields) >= 3 else None
