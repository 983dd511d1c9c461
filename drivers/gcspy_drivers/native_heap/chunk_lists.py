"""`ListReader`: follows the lists of free chunks: bins, fast bins, and thread caches.

A list of 100,000 chunks lies in some thousand pages, so pages are copied, each once, and the list is followed in the copies, by
``lists.c`` or in Python. While the program runs a list may change between two pages; it then ends where it contradicts itself, and what was found is kept.

Knows links; does not know what a list is for. Source: glibc malloc/malloc.c, "Free chunks", PROTECT_PTR.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.malloc_library import malloc_library
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.memory import Memory

__all__ = ["ChunkList", "ListReader", "ListState", "join_lists", "sorted_chunks"]

_SLOTS: Final = 2048
_FIRST_ROOM: Final = 1 << 10
_SLICE_CHUNKS: Final = 1 << 10
"""Chunks of a list that are followed before another one's turn: seven lists of one heap then stay within the copied pages."""
_USER_SPACE: Final = 1 << 47

U64 = npt.NDArray[np.uint64]


class ListState(IntEnum):
    """How following a list ended; as in ``lists.c``."""

    WHOLE = 0
    DAMAGED = 1
    UNREADABLE = 2
    TOO_LONG = 3
    REFUSED = 4


class ChunkList(NamedTuple):
    """The chunks of a list.

    Attributes:
        chunks: (n,) their addresses, in order of the list.
        sizes: (n,) their bytes, 0 to 2**47.
        state: Whether these are all.
    """

    chunks: U64
    sizes: U64
    state: ListState

    @property
    def is_whole(self) -> bool:
        """Whether these are all."""
        return self.state is ListState.WHOLE


class _Pages(ctypes.Structure):
    """``struct pages``."""

    _fields_ = (
        ("pid", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("slots", ctypes.c_uint64),
        ("tags", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    )


class ListReader:
    """Follows lists in one process.

    Args:
        memory: Its memory.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._library = malloc_library()
        self._copies: dict[int, bytes | None] = {}
        if self._library is not None:
            self._tags = np.zeros(_SLOTS, dtype=np.uint64)
            self._data = np.empty((_SLOTS, PAGE_BYTES), dtype=np.uint8)
            self._pages = _Pages(
                memory.process.pid, 0, _SLOTS, self._tags.ctypes.data, self._data.ctypes.data
            )
        self._out = np.empty((_FIRST_ROOM, 2), dtype=np.uint64)

    def begin(self) -> None:
        """Forget the copies of pages: what is read from now on is new."""
        self._copies.clear()
        if self._library is not None:
            self._tags.fill(np.uint64((1 << 64) - 1))

    def bin(self, head: int, first: int, last: int, most: int) -> ChunkList:
        """Follow a bin, whose chunks are linked both ways.

        Args:
            head: The address that its first and last chunk lead to.
            first: The bin's first chunk; `head`: it is empty.
            last: Its last chunk.
            most: Chunks that it can have at most.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        if self._library is None:
            return self._bin_in_python(head, first, last, most)
        return self._call("gcspy_follow_bin", (head, first, last), most)

    def list(self, first: int, most: int, *, mangled: bool, contents: bool) -> ChunkList:
        """Follow a list that is linked one way.

        Args:
            first: Its first chunk; 0: it is empty.
            most: Chunks that it can have at most.
            mangled: Whether links are combined with their addresses.
            contents: Whether links lead to the contents of chunks, as in thread caches.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        if self._library is None:
            return self._list_in_python(first, most, mangled, contents)
        return self._call("gcspy_follow_list", (first, int(mangled), int(contents)), most)

    def lists(
        self, firsts: Sequence[int], most: int, *, mangled: bool, contents: bool
    ) -> Sequence[ChunkList]:
        """Follow lists that are linked one way side by side: each page is copied once where they lead the same way through memory.

        Args:
            firsts: The first chunk of each; 0: it is empty.
            most: Chunks that each can have at most.
            mangled: Whether links are combined with their addresses.
            contents: Whether links lead to the contents of chunks, as in thread caches.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        parts: list[list[ChunkList]] = [[] for _ in firsts]
        counts, at = [0] * len(firsts), list(firsts)
        left, down = set(range(len(firsts))), 0
        while left:
            # The one that is behind, if most lists lead the same way.
            index = max(left, key=at.__getitem__) if down >= 0 else min(left, key=at.__getitem__)
            room = min(_SLICE_CHUNKS, most - counts[index])
            found = self.list(at[index], room, mangled=mangled, contents=contents)
            if found.state is ListState.TOO_LONG and room == _SLICE_CHUNKS:
                following = int(found.chunks[-1])
                down += 1 if following < at[index] else -1
                at[index] = following
                found = ChunkList(found.chunks[:-1], found.sizes[:-1], found.state)
            else:
                left.remove(index)
            parts[index].append(found)
            counts[index] += len(found.chunks)
        return [
            ChunkList(
                np.concatenate([part.chunks for part in each]),
                np.concatenate([part.sizes for part in each]),
                each[-1].state,
            )
            for each in parts
        ]

    def _call(self, name: str, numbers: tuple[int, int, int], most: int) -> ChunkList:
        assert self._library is not None
        count = ctypes.c_uint64()
        while True:
            room = min(len(self._out), max(most, 1))
            state = ListState(
                getattr(self._library.released, name)(
                    ctypes.byref(self._pages),
                    *map(ctypes.c_uint64, numbers),
                    ctypes.c_void_p(self._out.ctypes.data),
                    ctypes.c_uint64(room),
                    ctypes.byref(count),
                )
            )
            if state is not ListState.TOO_LONG or room == most:
                break
            self._out = np.empty((4 * len(self._out), 2), dtype=np.uint64)
        if state is ListState.REFUSED:
            self._memory.process.refuse(
                OSError(self._pages.error, "process_vm_readv"), "its memory"
            )
        return _list_of(self._out[: count.value], state)

    def _bin_in_python(self, head: int, first: int, last: int, most: int) -> ChunkList:
        rows: list[tuple[int, int]] = []
        before, chunk = head, first
        state = ListState.WHOLE
        while chunk != head:
            words = self._words(chunk, 4)
            if _is_misplaced(chunk):
                state = ListState.DAMAGED
            elif len(rows) == most:
                state = ListState.TOO_LONG
            elif words is None:
                state = ListState.UNREADABLE
            elif words[3] != before:
                state = ListState.DAMAGED
            if state is not ListState.WHOLE or words is None:
                break
            rows.append((chunk, words[1]))
            before, chunk = chunk, words[2]
        if state is ListState.WHOLE and before != last:
            state = ListState.DAMAGED
        return _list_of(np.array(rows, dtype=np.uint64).reshape(-1, 2), state)

    def _list_in_python(self, first: int, most: int, mangled: bool, contents: bool) -> ChunkList:
        rows: list[tuple[int, int]] = []
        chunk = first
        state = ListState.WHOLE
        while chunk:
            words = self._words(chunk, 3)
            if _is_misplaced(chunk):
                state = ListState.DAMAGED
            elif len(rows) == most:
                state = ListState.TOO_LONG
            elif words is None:
                state = ListState.UNREADABLE
            if state is not ListState.WHOLE or words is None:
                break
            rows.append((chunk, words[1]))
            link = words[2] ^ (chunk + 16) >> 12 if mangled else words[2]
            chunk = link - 16 if link and contents else link
            chunk &= (1 << 64) - 1
        return _list_of(np.array(rows, dtype=np.uint64).reshape(-1, 2), state)

    def _words(self, address: int, count: int) -> tuple[int, ...] | None:
        """Read words at an address; None: they are not readable."""
        raw = b""
        for number in range(address // PAGE_BYTES, (address + 8 * count - 1) // PAGE_BYTES + 1):
            if number not in self._copies:
                place = number * PAGE_BYTES
                readable = place < _USER_SPACE
                self._copies[number] = (
                    self._memory.try_read(place, PAGE_BYTES) if readable else None
                )
            page = self._copies[number]
            if page is None:
                return None
            raw += page
        return struct.unpack_from(f"<{count}Q", raw, address % PAGE_BYTES)


def join_lists(lists: list[ChunkList]) -> tuple[U64, U64]:
    """Return the chunks of some lists sorted by address, each once, and their sizes."""
    if not lists:
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    chunks, first = np.unique(np.concatenate([one.chunks for one in lists]), return_index=True)
    return chunks, np.concatenate([one.sizes for one in lists])[first]


def sorted_chunks(lists: Sequence[ChunkList]) -> U64:
    """Return the chunks of some lists sorted by address, each once: `join_lists` without sizes, which costs a third."""
    if not lists:
        return np.zeros(0, dtype=np.uint64)
    chunks = np.sort(np.concatenate([one.chunks for one in lists]))
    return chunks[np.concatenate(([True], chunks[1:] != chunks[:-1]))[: len(chunks)]]


def _is_misplaced(chunk: int) -> bool:
    return bool(chunk & 15) or not PAGE_BYTES <= chunk < _USER_SPACE


def _list_of(rows: U64, state: ListState) -> ChunkList:
    sizes = np.minimum(rows[:, 1] & ~np.uint64(7), np.uint64(_USER_SPACE))
    return ChunkList(rows[:, 0].copy(), sizes, state)
