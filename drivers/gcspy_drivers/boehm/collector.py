"""`Collector`: the structures of a Boehm collector in a process, found by relations and proven before use.

GC_arrays is exported. Somewhere in it is the table of headers: 2,048 pointers to *bottom indices*,
each of which knows which place of the table is its own. Where all that do agree, it is found,
whatever stands before it in this build. A header knows its block, which proves the rest.

Knows libgc's exported names and these relations; does not know spaces.

Source: bdwgc 8.2, ``include/private/gc_hdrs.h`` (bottom_index, HASH_TL), ``gc_priv.h``
(_GC_arrays, hblkhdr). Seen with 8.2.2 of Debian 12.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.boehm.block_table import (
    BLOCK_BYTES,
    HEADER_BYTES,
    MARKED_HEADER_BYTES,
    BlockTable,
)
from gcspy_drivers.remote.elf.image import open_image
from gcspy_drivers.remote.mapping_table import EXECUTE
from gcspy_drivers.remote.maps import Maps, read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

__all__ = ["Collector", "FreeLists"]

_LIBRARY: Final = re.compile(r"/libgc\.so(?:\.[\d.]+)?$")
_MOST_ARRAYS_BYTES: Final = 16 << 20
_TABLE: Final = 2048
_BOTTOM: Final = 1024
_BOTTOM_BYTES: Final = 8224
_KEY_AT, _HASH_LINK_AT = 8208, 8216
_COVERED_BITS: Final = 22  # of addresses: 1,024 blocks of 4 KB a bottom index
_MOST_BOTTOMS: Final = 1 << 18
_MOST_HEADERS: Final = 1 << 24
_LEAST_SHARE: Final = 0.95
"""Share of the headers that have to belong to their block."""

_LISTS: Final = (
    ("pointer-free", "GC_aobjfreelist_ptr", 0),
    ("normal", "GC_objfreelist_ptr", 1),
    ("uncollectable", "GC_uobjfreelist_ptr", 2),
    ("pointer-free uncollectable", "GC_auobjfreelist_ptr", 3),
)
"""The collector's own kinds: name, exported pointer to their free lists, number."""

_LIST_SIZES: Final = 129  # from 0 to half a page, by granules of 16 bytes
_MOST_FOLLOWED: Final = 20_000
"""Longest free list that is followed: its length is then known to be at least this."""

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class FreeLists:
    """Free objects by kind and size; those that a thread keeps for itself are not in them.

    Attributes:
        lengths: (4 kinds, 129 sizes) objects; the size is in granules of 16 bytes.
        complete: Whether every list was followed to its end.
    """

    lengths: npt.NDArray[np.int64]
    complete: bool


class Collector:
    """The collector of one process.

    Args:
        process: The process; borrowed.

    Raises:
        Unsupported: Its structures are not those that we know.
        TargetError: It cannot be read.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self.memory = Memory(process)
        maps = read_maps(process)
        self.path = _library_of(maps)
        image = open_image(process, self.memory, maps, self.path)
        try:
            arrays = image.file.exported("GC_arrays")
            address = image.exported("GC_arrays")
            number = image.exported("GC_gc_no")
            self._lists = [image.exported(name) for _, name, _ in _LISTS]
        finally:
            image.close()
        if arrays is None or address is None or number is None or not arrays.size_bytes:
            raise Unsupported(
                f"process {process.pid}: its libgc exports no GC_arrays",
                found=self.path,
                known="libgc 8 as distributions build it",
            )
        if arrays.size_bytes > _MOST_ARRAYS_BYTES or arrays.size_bytes < 8 * _TABLE:
            raise self._refused(f"GC_arrays of {arrays.size_bytes} bytes")
        self._arrays, self._size = int(address), arrays.size_bytes
        self._number_at = int(number)
        self._table_at = self._nil = 0
        self.find_table()
        table = self.blocks(marks=False)
        seen = len(table) + table.unknown
        if seen and len(table) < _LEAST_SHARE * seen:
            raise self._refused(
                f"{table.unknown} of {seen} headers that do not belong to their block"
            )

    @property
    def version(self) -> str:
        """Name of the library with the version of its interface; that of the collector is not in it."""
        return self.path.rpartition("/")[2]

    def number(self) -> int:
        """Number of the current collection: how many have happened.

        Raises:
            TargetError: It cannot be read.
        """
        return int(struct.unpack("<Q", self.memory.read(self._number_at, 8))[0])

    def heap_bytes(self) -> int:
        """Size of the heap, as the collector counts it; with what was given back to the system.

        Raises:
            TargetError: It cannot be read.
        """
        return int(struct.unpack("<Q", self.memory.read(self._arrays, 8))[0])

    def find_table(self) -> None:
        """Find the table of headers in GC_arrays.

        Raises:
            Unsupported: There is none where all relations hold, or the heap is empty.
        """
        words = np.frombuffer(self.memory.read(self._arrays, self._size & ~7), dtype="<u8")
        values, counts = np.unique(words, return_counts=True)
        for nil in values[np.argsort(counts)[::-1][:8]].tolist():
            # Nil is an empty bottom index: nearly all of the table.
            if nil < BLOCK_BYTES or nil >= 1 << 47:
                continue
            at = self._table_with(words, nil)
            if at is not None:
                self._table_at, self._nil = self._arrays + 8 * at, nil
                return
        raise self._refused("no table of headers in GC_arrays (or an empty heap)")

    def _table_with(self, words: U64, nil: int) -> int | None:
        places = np.flatnonzero(words == nil)
        if len(places) < _TABLE // 2:
            return None
        begin, end = max(0, int(places[0]) - _TABLE), min(len(words), int(places[-1]) + _TABLE)
        others = [
            place for place in range(begin, end) if BLOCK_BYTES <= words[place] < 1 << 47 and words[place] != nil
        ]  # fmt: skip
        keys, could = self.memory.read_many(words[others].astype(np.uint64) + np.uint64(_KEY_AT), 8)
        claimed = keys.copy().view("<u8")[:, 0] % np.uint64(_TABLE)
        starts = np.array(others, dtype=np.int64) - claimed.astype(np.int64)
        starts = starts[could & (starts >= 0) & (starts + _TABLE <= len(words))]
        for start in np.unique(starts).tolist():
            table = words[start : start + _TABLE]
            inside = [place for place in others if start <= place < start + _TABLE]
            known = {
                place: int(key) for place, key, ok in zip(others, claimed, could, strict=True) if ok
            }
            if (
                np.count_nonzero(table == nil) + len(inside) == _TABLE
                and inside
                and all(known.get(place) == place - start for place in inside)
            ):
                return int(start)
        return None

    def blocks(self, *, marks: bool) -> BlockTable:
        """Read the headers of all blocks.

        Args:
            marks: Whether with their mark bytes.

        Raises:
            TargetError: The table cannot be read, or is larger than any heap.
        """
        expected, headers = self._headers()
        size = MARKED_HEADER_BYTES if marks else HEADER_BYTES
        data, could = self.memory.read_many(headers, size)
        return BlockTable.of(expected, data, could)

    def _headers(self) -> tuple[U64, U64]:
        """Return the address of each block, and of its header, both (blocks,)."""
        table = np.frombuffer(self.memory.read(self._table_at, 8 * _TABLE), dtype="<u8")
        todo = np.unique(table[table != self._nil]).astype(np.uint64)
        seen: set[int] = set()
        blocks, headers = [], []
        while len(todo):
            seen.update(todo.tolist())
            if len(seen) > _MOST_BOTTOMS:
                raise self._refused(f"more than {_MOST_BOTTOMS} bottom indices")
            data, could = self.memory.read_many(todo, _BOTTOM_BYTES)
            words = data[could].view("<u8")
            index, key = words[:, :_BOTTOM], words[:, _KEY_AT // 8]
            # Below a page: so many blocks back to the header of a large object.
            row, place = np.nonzero(index >= BLOCK_BYTES)
            blocks.append((key[row] << np.uint64(_COVERED_BITS)) + place.astype(np.uint64) * np.uint64(BLOCK_BYTES))  # fmt: skip
            headers.append(index[row, place])
            links = words[:, _HASH_LINK_AT // 8]
            linked = np.unique(links[(links != self._nil) & (links >= BLOCK_BYTES)])
            todo = np.array([one for one in linked.tolist() if one not in seen], dtype=np.uint64)
        if sum(map(len, headers)) > _MOST_HEADERS:
            raise self._refused(f"more than {_MOST_HEADERS} headers")
        empty = np.zeros(0, dtype=np.uint64)
        return (
            np.concatenate([empty, *blocks]).astype(np.uint64),
            np.concatenate([empty, *headers]).astype(np.uint64),
        )

    def free_lists(self) -> FreeLists | None:
        """Follow the free lists of the collector's own kinds, all at the same time; None: the library does not export them.

        Raises:
            TargetError: They cannot be read.
        """
        if any(one is None for one in self._lists):
            return None
        pointers = [struct.unpack("<Q", self.memory.read(int(one or 0), 8))[0] for one in self._lists]  # fmt: skip
        heads = [self.memory.read(int(one), 8 * _LIST_SIZES) for one in pointers]
        current = np.frombuffer(b"".join(heads), dtype="<u8").astype(np.uint64)
        lengths = np.zeros(len(current), dtype=np.int64)
        alive = np.flatnonzero(current >= BLOCK_BYTES)
        complete = True
        for _ in range(_MOST_FOLLOWED):
            if not len(alive):
                break
            data, could = self.memory.read_many(current[alive], 8)
            complete = complete and bool(could.all())
            alive = alive[could]
            lengths[alive] += 1
            current[alive] = data[could].copy().view("<u8")[:, 0]
            alive = alive[current[alive] >= BLOCK_BYTES]
        return FreeLists(lengths.reshape(len(_LISTS), _LIST_SIZES), complete and not len(alive))

    def _refused(self, what: str) -> TargetError:
        return Unsupported(
            f"process {self._process.pid}: its libgc is not as expected: {what}",
            found=self.path,
            known="libgc 8.2 of 64-bit Linux",
        )


def _library_of(maps: Maps) -> str:
    for row, path in enumerate(maps.path):
        if maps.permissions[row] & EXECUTE and _LIBRARY.search(maps.file_of(row)):
            return path
    raise Unsupported("there is no libgc in this process", found="none", known="libgc.so")
