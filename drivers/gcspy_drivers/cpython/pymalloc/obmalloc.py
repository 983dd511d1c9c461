"""pymalloc's arenas and pools, read from outside while the target runs.

The table of arena_objects has the arenas and how far each is carved into pools; the header of each
carved pool describes its content. 88,000 headers are read in one `Gather`, whose vectors stay as
long as the table stays the same. Then everything is checked (`pools.judge`). Headers that fail are
read once more together with the table; those that fail again are unknown.

Knows arenas and pools, and nothing of interpreters, tiles or where the table's address comes from (`locate`).

Source: CPython 3.11 Objects/obmalloc.c (new_arena, allocate_from_new_pool, insert_to_freepool), 3.12 pycore_obmalloc.h.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.layouts.structures import ARENA_OBJECT, POOL_HEADER
from gcspy_drivers.cpython.pymalloc.pools import PoolState, block_bytes, capacities, judge
from gcspy_drivers.remote.address import PAGE_BYTES, Addr
from gcspy_drivers.remote.maps import LiveMaps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Gather

__all__ = [
    "MAX_ARENAS",
    "Arenas",
    "HeapReading",
    "ObmallocPlace",
    "Mapped",
    "PoolReader",
    "PoolRows",
    "Pools",
    "SizeClasses",
    "judge_arenas",
    "plausible_table_length",
    "pools_of",
    "size_classes",
    "unused_entries_are_linked",
    "used_bytes",
]

MAX_ARENAS: Final = 1 << 20
"""The longest valid table of arena_objects: 1 TiB of arenas."""

_FEWEST_ARENAS = 16  # INITIAL_ARENA_OBJECTS; the table only ever doubles
_TRIES = 3

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]
Records = npt.NDArray[np.void]


@dataclass(frozen=True, kw_only=True)
class ObmallocPlace:
    """Place of one state of pymalloc in the target.

    Attributes:
        arenas: Address of the variable that points to the table of arena_objects.
        maxarenas: Address of the table's length, u32.
        counters: Address of the three numbers arenas now, ever and at most; None if they were not
            found.
        guessed: Whether it was found by the search, so that each reading has to confirm the table's
            length.
    """

    arenas: Addr
    maxarenas: Addr
    counters: Addr | None
    guessed: bool = False


@dataclass(frozen=True, eq=False)
class Arenas:
    """The arenas of one state of pymalloc, in order of address.

    Attributes:
        slot: (n,) index of its arena_object.
        address: (n,) first byte of the arena as the system gave it.
        first_pool: (n,) first pool: ``address`` aligned up to a pool.
        carved_end: (n,) address of the next pool that was never carved; memory from here on was
            never touched.
        total_pools: (n,) pools that it has room for.
        free_pools: (n,) pools without a class now, carved or not, as the target counts them.
        valid: (n,) whether the arena_object passed its checks; if not, all pools are unknown.
    """

    slot: U32
    address: U64
    first_pool: U64
    carved_end: U64
    total_pools: U32
    free_pools: U32
    valid: Mask

    def __len__(self) -> int:
        return len(self.address)

    def rows(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Arenas:
        """Return some of the rows, copied."""
        return Arenas(
            slot=self.slot[which],
            address=self.address[which],
            first_pool=self.first_pool[which],
            carved_end=self.carved_end[which],
            total_pools=self.total_pools[which],
            free_pools=self.free_pools[which],
            valid=self.valid[which],
        )


@dataclass(frozen=True, eq=False)
class Pools:
    """All pools of all arenas, in order of address. If the state is UNKNOWN, all numbers are 0 or -1 and have no meaning.

    Attributes:
        address: (n,) where it begins.
        arena: (n,) row of its arena in `Arenas`.
        state: (n,) a `PoolState`.
        size_class: (n,) 0 to 31 in used pools, -1 otherwise.
        blocks_used: (n,) blocks in use.
        capacity: (n,) blocks that it can hold in its size class; 0 without one.
    """

    address: U64
    arena: npt.NDArray[np.int32]
    state: npt.NDArray[np.uint8]
    size_class: npt.NDArray[np.int16]
    blocks_used: npt.NDArray[np.int32]
    capacity: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.address)

    @property
    def blocks_free(self) -> npt.NDArray[np.int32]:
        """(n,) blocks of used pools that are not in use; new."""
        return self.capacity - self.blocks_used

    @property
    def valid(self) -> Mask:
        """(n,) whether the pool is known at all; new."""
        return np.asarray(self.state != PoolState.UNKNOWN)


@dataclass(frozen=True, eq=False)
class HeapReading:
    """One state of pymalloc at one reading.

    Attributes:
        geometry: Sizes that it was built with.
        arenas: Its arenas.
        pools: Their pools.
        table_length: How many arena_objects its table has; 0 when pymalloc is not in use.
        complete: Whether the table could be read. If not, the arenas are those known before, with every pool unknown.
        arenas_implausible: Entries of the table that name no arena that can exist.
        arenas_ever: How many arenas it ever had; None when not known.
        arenas_most: How many it had at most; None when not known.
        pools_reread: Headers that did not pass at first and were read again.
    """

    geometry: PoolGeometry
    arenas: Arenas
    pools: Pools
    table_length: int
    complete: bool
    arenas_implausible: int = 0
    arenas_ever: int | None = None
    arenas_most: int | None = None
    pools_reread: int = 0

    def is_same(self, other: HeapReading) -> bool:
        """Return whether another reading of the same pymalloc has the same arenas, with the same pools."""
        mine, theirs = self.pools, other.pools
        return (
            self.geometry == other.geometry
            and self.complete == other.complete
            and (self.arenas_implausible, self.arenas_ever, self.arenas_most)
            == (other.arenas_implausible, other.arenas_ever, other.arenas_most)
            and np.array_equal(self.arenas.address, other.arenas.address)
            and np.array_equal(self.arenas.total_pools, other.arenas.total_pools)
            and np.array_equal(mine.blocks_used, theirs.blocks_used)
            and np.array_equal(mine.state, theirs.state)
            and np.array_equal(mine.size_class, theirs.size_class)
            and np.array_equal(mine.capacity, theirs.capacity)
        )


@dataclass(frozen=True, eq=False)
class SizeClasses:
    """Content of each size class; no number includes unknown pools.

    Attributes:
        block_bytes: (classes,) size of its blocks.
        pools: (classes,) pools with at least one block in use.
        blocks_used: (classes,) blocks in use.
        blocks_free: (classes,) other blocks of these pools.
        wasted_bytes: (classes,) bytes of these pools that can never be a block: headers and the
            rest at the end.
    """

    block_bytes: U32
    pools: npt.NDArray[np.int64]
    blocks_used: npt.NDArray[np.int64]
    blocks_free: npt.NDArray[np.int64]
    wasted_bytes: npt.NDArray[np.int64]


def used_bytes(reading: HeapReading) -> int | None:
    """Return the bytes of all blocks in use; None if a pool is not known."""
    pools = reading.pools
    if (pools.state == PoolState.UNKNOWN).any():
        return None
    block = (pools.size_class.astype(np.int64) + 1) * reading.geometry.alignment_bytes
    return int((pools.blocks_used * block).sum())


def size_classes(reading: HeapReading) -> SizeClasses:
    """Sum the used pools of a reading by size class."""
    geometry, pools = reading.geometry, reading.pools
    used = pools.state == PoolState.USED
    which = pools.size_class[used]
    count = geometry.size_classes
    in_class = np.bincount(which, minlength=count).astype(np.int64)
    blocks_used = np.bincount(which, weights=pools.blocks_used[used], minlength=count).astype(
        np.int64
    )
    block = block_bytes(geometry)
    capacity = capacities(geometry).astype(np.int64)
    return SizeClasses(
        block_bytes=block,
        pools=in_class,
        blocks_used=blocks_used,
        blocks_free=in_class * capacity - blocks_used,
        wasted_bytes=in_class * (geometry.pool_bytes - capacity * block.astype(np.int64)),
    )


def plausible_table_length(length: int) -> bool:
    """Return whether pymalloc can have a table of this length: it begins with 16 entries and only ever doubles."""
    return _FEWEST_ARENAS <= length <= MAX_ARENAS and length & (length - 1) == 0


class Mapped(Protocol):
    """Which memory of the target is mapped."""

    def covers(self, addrs: U64, size_bytes: int, /) -> Mask:
        """Return which ranges are mapped, (n,)."""
        ...


def judge_arenas(table: Records, maps: Mapped, geometry: PoolGeometry) -> tuple[Arenas, int]:
    """Determine which entries of a table of arena_objects are arenas.

    Args:
        table: (length,) records of ``ARENA_OBJECT`` as read.
        maps: Mappings of the target.
        geometry: Sizes that pymalloc was built with.

    Returns:
        The arenas, in order of address, and how many entries name none that can exist (not mapped, or over another).
    """
    pool, arena = np.uint64(geometry.pool_bytes), np.uint64(geometry.arena_bytes)
    filled = np.flatnonzero(table["address"])
    slot: U32 = filled[np.argsort(table["address"][filled], kind="stable")].astype(np.uint32)
    entries = table[slot]
    address = entries["address"]
    first = (address + (pool - np.uint64(1))) & ~(pool - np.uint64(1))
    total = ((address + arena - first) // pool).astype(np.uint32)
    end = entries["pool_address"]
    with np.errstate(over="ignore"):
        carved = (end - first) // pool
    free, list_head = entries["nfreepools"], entries["freepools"]
    valid = (
        (entries["ntotalpools"] == total)
        & (free <= total)
        & (carved <= total)
        & (first + carved * pool == end)
    )
    valid &= free + carved >= total  # those never carved are free
    valid &= (list_head == 0) | ((list_head >= first) & (list_head < end) & (list_head % pool == 0))

    possible = (address % np.uint64(PAGE_BYTES) == 0) & maps.covers(address, geometry.arena_bytes)
    # Two arenas cannot overlap. One that also fails its other checks is the wrong one; otherwise
    # both are unknown.
    possible &= ~(_overlapping(address, possible, geometry) & ~valid)
    possible &= ~_overlapping(address, possible, geometry)
    arenas = Arenas(
        slot=slot,
        address=address,
        first_pool=first,
        carved_end=np.where(valid, end, first),
        total_pools=total,
        free_pools=np.where(valid, free, 0).astype(np.uint32),
        valid=np.asarray(valid),
    )
    return arenas.rows(possible), int(len(slot) - np.count_nonzero(possible))


def _overlapping(address: U64, which: Mask, geometry: PoolGeometry) -> Mask:
    rows = np.flatnonzero(which)
    near = np.diff(address[rows]) < np.uint64(geometry.arena_bytes)
    overlapping = np.zeros(len(address), dtype=np.bool_)
    overlapping[rows[:-1][near]] = True
    overlapping[rows[1:][near]] = True
    return overlapping


class PoolRows:
    """The rows of `Pools` for some arenas, without their content.

    They hold as long as the arenas and how far they are carved stay the same, which is most events.

    Args:
        arenas: The arenas.
        geometry: Sizes that pymalloc was built with.

    Attributes:
        arenas: The arenas.
        arena: (n,) row of each pool's arena.
        address: (n,) where each pool begins.
        carved: (m,) which of them have a header.
        carved_address: (m,) where these begin.
        carved_slot: (m,) index of the arena_object of their arena.
        state: (n,) a `PoolState` of those without a header.
    """

    def __init__(self, arenas: Arenas, geometry: PoolGeometry) -> None:
        self.arenas = arenas
        total = arenas.total_pools.astype(np.int64)
        self.arena = np.repeat(np.arange(len(arenas), dtype=np.int32), total)
        begins = np.cumsum(total) - total
        within = np.arange(len(self.arena), dtype=np.int64) - begins[self.arena]
        self.address = arenas.first_pool[self.arena] + within.astype(np.uint64) * np.uint64(
            geometry.pool_bytes
        )
        carved = self.address < arenas.carved_end[self.arena]
        self.carved = np.flatnonzero(carved)
        self.carved_address = self.address[self.carved]
        self.carved_slot = arenas.slot[self.arena[self.carved]]
        self.state = np.where(
            arenas.valid[self.arena], PoolState.UNCARVED, PoolState.UNKNOWN
        ).astype(np.uint8)

    def holds_for(self, arenas: Arenas) -> bool:
        """Return whether these arenas have the same pools."""
        mine = self.arenas
        return all(
            np.array_equal(ours, theirs)
            for ours, theirs in (
                (mine.address, arenas.address),
                (mine.carved_end, arenas.carved_end),
                (mine.slot, arenas.slot),
                (mine.valid, arenas.valid),
            )
        )


class _Plan(PoolRows):
    """The pools, and the vectors that read the headers of carved ones."""

    def __init__(self, memory: Memory, arenas: Arenas, geometry: PoolGeometry) -> None:
        super().__init__(arenas, geometry)
        self.gather = Gather(memory.process, self.carved_address, POOL_HEADER.itemsize)


def pools_of(
    plan: PoolRows,
    good: Mask,
    used: Mask,
    size_class: npt.NDArray[np.integer[Any]],
    count: npt.NDArray[np.integer[Any]],
    block_capacity: npt.NDArray[np.int32],
) -> Pools:
    """Return the pools of some rows with their content.

    Args:
        plan: The rows.
        good: (m,) which headers are valid.
        used: (m,) which of them have a block in use.
        size_class: (m,) size class of each; of used ones only.
        count: (m,) blocks in use.
        block_capacity: (classes,) how many blocks a pool of each size class holds.
    """
    number = len(plan.address)
    state = plan.state.copy()
    state[plan.carved] = np.where(
        good, np.where(used, PoolState.USED, PoolState.FREE), PoolState.UNKNOWN
    )
    classes = np.full(number, -1, dtype=np.int16)
    blocks_used = np.zeros(number, dtype=np.int32)
    capacity = np.zeros(number, dtype=np.int32)
    rows = plan.carved[used]
    of_used = size_class[used]
    classes[rows] = of_used
    blocks_used[rows] = count[used]
    capacity[rows] = block_capacity[of_used]
    return Pools(
        address=plan.address,
        arena=plan.arena,
        state=state,
        size_class=classes,
        blocks_used=blocks_used,
        capacity=capacity,
    )


class PoolReader:
    """Reads one state of pymalloc, again and again.

    Args:
        memory: The target's memory.
        maps: The target's maps, which are read again when arenas appear that they do not have.
        geometry: Sizes that pymalloc was built with.
        place: Place of the state.
    """

    def __init__(
        self, memory: Memory, maps: LiveMaps, geometry: PoolGeometry, place: ObmallocPlace
    ) -> None:
        self._memory = memory
        self._maps = maps
        self._geometry = geometry
        self._place = place
        self._block_capacity = capacities(geometry).astype(np.int32)
        self._table_bytes = np.zeros(0, dtype=np.uint8)
        self._plan: _Plan | None = None

    @property
    def place(self) -> ObmallocPlace:
        """Place of the state."""
        return self._place

    def read(self) -> HeapReading:
        """Read the table, all headers, and once more those that failed their checks.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        table = self._read_table()
        if table is None:
            return self._unreadable()
        arenas, implausible = judge_arenas(table, self._maps, self._geometry)
        if not arenas.valid.all() or implausible:
            # An arena that was just allocated or freed looks like this; a moment later it does not.
            table = self._read_table()
            if table is None:
                return self._unreadable()
            arenas, implausible = judge_arenas(table, self._maps, self._geometry)
        if self._plan is None or not self._plan.holds_for(arenas):
            self._plan = _Plan(self._memory, arenas, self._geometry)
        reading = self._read_pools(self._plan, arenas)
        counters = self._counters()
        return replace(
            reading,
            table_length=len(table),
            arenas_implausible=implausible,
            arenas_ever=None if counters is None else counters[1],
            arenas_most=None if counters is None else counters[2],
        )

    def read_arenas(self) -> Arenas:
        """Read the table alone; those known before when it cannot be read.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        table = self._read_table()
        return (
            self._unreadable().arenas
            if table is None
            else judge_arenas(table, self._maps, self._geometry)[0]
        )

    def _read_pools(self, plan: _Plan, arenas: Arenas) -> HeapReading:
        plan.gather.read()
        headers = plan.gather.data.view(POOL_HEADER)[:, 0]
        good = (
            judge(headers, plan.carved_address, plan.carved_slot, self._geometry) & plan.gather.ok
        )
        doubtful = np.flatnonzero(~good)
        still_there = np.ones(len(arenas), dtype=np.bool_)
        if len(doubtful):
            again, ok = self._memory.read_many(plan.carved_address[doubtful], POOL_HEADER.itemsize)
            records = again.view(POOL_HEADER)[:, 0]
            passed = ok & judge(
                records, plan.carved_address[doubtful], plan.carved_slot[doubtful], self._geometry
            )
            headers[doubtful[passed]] = records[passed]
            good[doubtful[passed]] = True
            if not passed.all():
                still_there = self._still_there(arenas) & ~_unmapped(plan, doubtful[~ok])
        pools = self._pools(plan, headers, good)
        reading = HeapReading(
            geometry=self._geometry,
            arenas=arenas,
            pools=pools,
            table_length=0,
            complete=True,
            pools_reread=len(doubtful),
        )
        return reading if still_there.all() else _without_arenas(reading, still_there)

    def _pools(self, plan: _Plan, headers: Records, good: Mask) -> Pools:
        used = good & (headers["count"] != 0)
        return pools_of(plan, good, used, headers["szidx"], headers["count"], self._block_capacity)

    def _still_there(self, arenas: Arenas) -> Mask:
        """Determine which arenas the table still has: unreadable headers may belong to one that was freed."""
        table = self._read_table()
        if table is None:
            return np.ones(len(arenas), dtype=np.bool_)  # unknown; their pools are unknown already
        inside = arenas.slot < len(table)
        return np.asarray(
            inside & (table["address"][np.where(inside, arenas.slot, 0)] == arenas.address)
        )

    def _read_table(self) -> Records | None:
        """Read the table of arena_objects; None when it moved at each try, or is not plausible.

        The target may move the table to a larger one while it is read; then its address has changed afterwards.
        """
        for _ in range(_TRIES):
            head = self._head()
            if head is None:
                continue
            where, length = head
            if where == 0 and length == 0:
                return np.zeros(0, dtype=ARENA_OBJECT)
            if not plausible_table_length(length):
                continue
            size_bytes = length * ARENA_OBJECT.itemsize
            if len(self._table_bytes) != size_bytes:
                self._table_bytes = np.zeros(size_bytes, dtype=np.uint8)
            if not self._maps.covers(np.array([where], dtype=np.uint64), size_bytes).all():
                continue
            if self._memory.read_into(where, self._table_bytes) and self._head() == head:
                table: Records = self._table_bytes.view(ARENA_OBJECT)
                if not self._place.guessed or unused_entries_are_linked(table, where):
                    return table
        return None

    def _head(self) -> tuple[int, int] | None:
        where = self._memory.try_read(self._place.arenas, 8)
        length = self._memory.try_read(self._place.maxarenas, 4)
        return (
            None
            if where is None or length is None
            else (int.from_bytes(where, "little"), int.from_bytes(length, "little"))
        )

    def _counters(self) -> npt.NDArray[np.uint64] | None:
        found = (
            None
            if self._place.counters is None
            else self._memory.try_read(self._place.counters, 24)
        )
        return None if found is None else np.frombuffer(found, dtype="<u8")

    def _unreadable(self) -> HeapReading:
        """Return the previous data, with everything unknown."""
        if self._plan is None:
            self._plan = _Plan(
                self._memory,
                judge_arenas(np.zeros(0, dtype=ARENA_OBJECT), self._maps, self._geometry)[0],
                self._geometry,
            )
        plan = self._plan
        pools = self._pools(
            plan,
            plan.gather.data.view(POOL_HEADER)[:, 0],
            np.zeros(len(plan.carved), dtype=np.bool_),
        )
        pools = replace(pools, state=np.full(len(pools), PoolState.UNKNOWN, dtype=np.uint8))
        return HeapReading(
            geometry=self._geometry, arenas=plan.arenas, pools=pools, table_length=0, complete=False
        )


def unused_entries_are_linked(table: Records, where: int) -> bool:
    """Return whether the entries without an arena form the list that pymalloc keeps of them, all inside of the table.

    It fails if the length is not this table's. In a longer table the list leads outside; behind a
    shorter one there is other data.

    Args:
        table: (length,) records of ``ARENA_OBJECT``.
        where: Address of the table in the target.
    """
    following = table["nextarena"][table["address"] == 0]
    last = following == 0
    with np.errstate(over="ignore"):
        place = following - np.uint64(where)
    inside = (place < np.uint64(table.nbytes)) & (place % np.uint64(ARENA_OBJECT.itemsize) == 0)
    return bool((last | inside).all()) and np.count_nonzero(last) == min(len(following), 1)


def _unmapped(plan: _Plan, unreadable: npt.NDArray[np.intp]) -> Mask:
    """Determine which arenas have no readable pool: their memory was freed, though the table still names them.

    pymalloc clears the entry only when the system has taken the memory, which for a megabyte is a while.

    Args:
        plan: The pools that were read.
        unreadable: Which of its carved pools could not be read at all.
    """
    arenas = len(plan.arenas)
    carved = np.bincount(plan.arena[plan.carved], minlength=arenas)
    return np.asarray(
        (carved > 0)
        & (np.bincount(plan.arena[plan.carved[unreadable]], minlength=arenas) == carved)
    )


def _without_arenas(reading: HeapReading, keep: Mask) -> HeapReading:
    """Return a reading without arenas that were given back while it was made."""
    pools = reading.pools
    rows = keep[pools.arena]
    number = (np.cumsum(keep) - 1).astype(np.int32)
    return replace(
        reading,
        arenas=reading.arenas.rows(keep),
        pools=Pools(
            address=pools.address[rows],
            arena=number[pools.arena[rows]],
            state=pools.state[rows],
            size_class=pools.size_class[rows],
            blocks_used=pools.blocks_used[rows],
            capacity=pools.capacity[rows],
        ),
    )
