"""A pymalloc in our own memory, byte by byte as CPython lays it out, to do to it what no real one can be made to do on time."""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.layouts.structures import ARENA_OBJECT, POOL_HEADER
from gcspy_drivers.cpython.pymalloc.obmalloc import ObmallocPlace, PoolReader
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.maps import LiveMaps, read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

GEOMETRY = PoolGeometry()
_LIBC = ctypes.CDLL(None, use_errno=True)


def address_of(array: npt.NDArray[np.generic]) -> int:
    """Where an array of ours is."""
    return int(array.ctypes.data)


@dataclass
class FakeArena:
    """One arena: memory of ours, its pools and its record."""

    memory: mmap.mmap
    address: int
    slot: int
    first_pool: int
    carved: int = 0

    def pool(self, number: int) -> int:
        """Where a pool begins."""
        return self.first_pool + number * GEOMETRY.pool_bytes


@dataclass
class FakeHeap:
    """The table of arena_objects, its variables, and arenas.

    Attributes:
        table: Records of ``ARENA_OBJECT``.
        variables: Values of the static variables: ``variables[arenas_at]`` points to the table; the length is a u32.
    """

    length: int = 16
    arenas: list[FakeArena] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make an empty table, all entries in the list of unused ones."""
        self.process = Process(os.getpid())
        self.memory = Memory(self.process)
        self.table = np.zeros(self.length, dtype=ARENA_OBJECT)
        self.variables = np.zeros(64, dtype=np.uint64)
        self.arenas_at, self.length_at = 20, 19
        self.publish()

    def publish(self) -> None:
        """Let the variables say where the table is, and link the unused entries."""
        self.variables[self.arenas_at] = address_of(self.table)
        self.variables[self.length_at] = len(self.table)
        unused = np.flatnonzero(self.table["address"] == 0)
        if len(unused):
            where = address_of(self.table)
            self.table["nextarena"][unused] = np.append(
                where + unused[1:] * ARENA_OBJECT.itemsize, 0
            )

    @property
    def place(self) -> ObmallocPlace:
        """Where the variables are."""
        begin = address_of(self.variables)
        return ObmallocPlace(
            arenas=Addr(begin + 8 * self.arenas_at),
            maxarenas=Addr(begin + 8 * self.length_at),
            counters=None,
        )

    def live_maps(self) -> LiveMaps:
        """Return the present memory map."""
        return LiveMaps(self.process, read_maps(self.process))

    def reader(self) -> PoolReader:
        """A reader of this heap."""
        return PoolReader(self.memory, self.live_maps(), GEOMETRY, self.place)

    def add_arena(self, slot: int, *, carved: int) -> FakeArena:
        """Make an arena with this many carved pools, of which pool k has size class k % 32 and 2 blocks in use."""
        memory = mmap.mmap(-1, GEOMETRY.arena_bytes)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        first = (address + GEOMETRY.pool_bytes - 1) & -GEOMETRY.pool_bytes
        arena = FakeArena(memory, address, slot, first)
        self.arenas.append(arena)
        total = (address + GEOMETRY.arena_bytes - first) // GEOMETRY.pool_bytes
        self.table[slot] = (address, first, total, total, 0, 0, 0)
        for _ in range(carved):
            self.carve(arena)
        self.publish()
        return arena

    def carve(self, arena: FakeArena) -> None:
        """Carve one more pool, as allocate_from_new_pool does."""
        self.write_header(arena, arena.carved, self.header(arena, arena.carved))
        arena.carved += 1
        self.table["pool_address"][arena.slot] += GEOMETRY.pool_bytes
        self.table["nfreepools"][arena.slot] -= 1

    def header(self, arena: FakeArena, number: int) -> npt.NDArray[np.void]:
        """Make the header of a pool with 2 blocks in use and one free."""
        size = (number % 32 + 1) * 16
        record = np.zeros(1, dtype=POOL_HEADER)
        record["count"], record["arenaindex"], record["szidx"] = 2, arena.slot, number % 32
        record["nextoffset"], record["maxnextoffset"] = 48 + 3 * size, GEOMETRY.pool_bytes - size
        record["freeblock"] = arena.pool(number) + 48 + 2 * size
        return record

    def write_header(self, arena: FakeArena, number: int, record: npt.NDArray[np.void]) -> None:
        """Put a header where a pool begins."""
        ctypes.memmove(arena.pool(number), record.tobytes(), POOL_HEADER.itemsize)

    def make_unreadable(self, arena: FakeArena, number: int, pools: int) -> None:
        """Take the right to read from pages of an arena; reading them fails then as if they were not mapped."""
        done = _LIBC.mprotect(
            ctypes.c_void_p(arena.pool(number)), ctypes.c_size_t(pools * GEOMETRY.pool_bytes), 0
        )
        assert done == 0

    def close(self) -> None:
        """Let the process go."""
        self.process.close()
