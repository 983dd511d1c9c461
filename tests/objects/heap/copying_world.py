"""A synthetic heap with thread-local buffers and a generational copying collector, which emits records as it goes and knows where each object is.

It is the second source of records: no format, no file, and its own truth, kept by plain Python in dictionaries.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

import numpy as np
from gcspy_objects.names import Causes, Flaw, Sites, Threads, Types
from gcspy_objects.records import (
    CollectionKind,
    ReadPosition,
    RecordBatch,
    RecordFlag,
    RecordKind,
    SpaceKind,
)

OLD, EDEN, LEFT, RIGHT = 0, 1, 2, 3
VM, COLLECTORS, MUTATORS = 0, (1, 2), (3, 4, 5)
KINDS = (SpaceKind.OLD, SpaceKind.EDEN, SpaceKind.SURVIVOR, SpaceKind.SURVIVOR)
TENURED = 2
CAUSES = {7: "Allocation Failure", 8: "asked for"}


@dataclass(frozen=True)
class Thing:
    """An object as the truth has it."""

    birth: int
    size: int
    type: int
    thread: int
    length: int
    filler: bool
    moves: int = 0
    age: int = 0
    promoted_in: int = 0
    remnant: bool = False


Heap = dict[int, Thing]
Row = dict[str, int]


@dataclass
class World:
    """A program on a heap.

    Attributes:
        seed: Seed of its random actions.
        collections: How often it collects.
        failing: Numbers of collections whose evacuation fails; a full one follows.
        full: Numbers of full collections.
        snapshots: Numbers of minor collections that report every object.
    """

    seed: int
    collections: int = 8
    failing: tuple[int, ...] = ()
    full: tuple[int, ...] = (4,)
    snapshots: tuple[int, ...] = ()
    eden_bytes: int = 24_000
    rows: list[Row] = field(default_factory=list)
    heap: Heap = field(default_factory=dict)
    phases: list[tuple[int, Heap, bool]] = field(default_factory=list)
    deaths: dict[int, int] = field(default_factory=dict)
    allocated_bytes: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        base, size = 0x10000, 1 << 20
        self.bounds = {OLD: (base, base + size)}
        begin = base + size
        for index, length in ((EDEN, self.eden_bytes), (LEFT, 16_000), (RIGHT, 16_000)):
            self.bounds[index] = (begin, begin + length)
            begin += length
        self.top = {index: bounds[0] for index, bounds in self.bounds.items()}
        self.survivors = (LEFT, RIGHT)
        self._run()

    # Events of the program

    def _run(self) -> None:
        for index, (start, end) in self.bounds.items():
            self.rows.append(
                row(RecordKind.SPACE_DEFINE, length=index, address=start, size=end - start)
            )
            self.rows.append(row(RecordKind.SPACE_KIND, length=index, detail=KINDS[index]))
        number = 0
        while number < self.collections:
            self._mutate()
            number += 1
            if number in self.full:
                self._collect_all(number)
            else:
                failed = self._collect_young(number)
                if failed:
                    number += 1
                    self._collect_all(number)
        self._mutate()

    def _mutate(self) -> None:
        """Allocate until eden is full, each thread for itself; then mix their records, keeping each one's order."""
        told: dict[int, list[tuple[Row, int]]] = {thread: [] for thread in (VM, *MUTATORS)}
        buffers: dict[int, list[int]] = {}
        while self._allocate(self.random.choice(MUTATORS), buffers, told):
            pass
        for cursor, end in buffers.values():
            if end > cursor:
                told[VM].append(
                    (
                        row(
                            RecordKind.ALLOCATE,
                            thread=VM,
                            address=cursor,
                            size=end - cursor,
                            type=1,
                            length=(end - cursor - 16) // 4,
                            flags=RecordFlag.FILLER | RecordFlag.VM,
                        ),
                        cursor,
                    )
                )
        # The program's threads first wrote to the trace when their buffers were full, the VM's fillers may stand anywhere between.
        queues = {thread: list(rows) for thread, rows in told.items() if rows}
        self.phases.append((len(self.rows), dict(self.heap), False))
        while queues:
            thread = self.random.choice(list(queues))
            one, address = queues[thread].pop(0)
            if not queues[thread]:
                del queues[thread]
            if one["kind"] != RecordKind.BUFFER:
                filler = bool(one["flags"] & RecordFlag.FILLER)
                self.heap[address] = Thing(
                    len(self.rows), one["size"], one["type"], thread, one["length"], filler
                )
                self.allocated_bytes += 0 if filler else one["size"]
            self.rows.append({**one, "_address": address})

    def _allocate(
        self, thread: int, buffers: dict[int, list[int]], told: dict[int, list[tuple[Row, int]]]
    ) -> bool:
        size = 16 * self.random.randint(2, 20)
        plain = {
            "thread": thread,
            "size": size,
            "type": self.random.randint(2, 9),
            "site": self.random.randint(1, 5),
            "length": size // 16 - 1,
        }
        if self.random.random() < 0.02:
            place = self._take(OLD if self.random.random() < 0.3 else EDEN, size)
            if place is None:
                return False
            told[thread].append((row(RecordKind.ALLOCATE, address=place, **plain), place))
            return True
        cursor, end = buffers.get(thread, [0, 0])
        if cursor + size > end:
            if end > cursor:
                tail = row(
                    RecordKind.ALLOCATE,
                    thread=thread,
                    address=cursor,
                    size=end - cursor,
                    type=1,
                    length=(end - cursor - 16) // 4,
                    flags=RecordFlag.FILLER | RecordFlag.VM,
                )
                told[thread].append((tail, cursor))
            buffers.pop(thread, None)
            length = 16 * self.random.randint(30, 100)
            place = self._take(EDEN, length)
            if place is None:
                return False
            told[thread].append(
                (row(RecordKind.BUFFER, thread=thread, address=place, size=length), place)
            )
            cursor, end = place, place + length
        buffers[thread] = [cursor + size, end]
        explicit = self.random.random() < 0.1
        kind, address = (RecordKind.ALLOCATE, cursor) if explicit else (RecordKind.ALLOCATE_NEXT, 0)
        told[thread].append((row(kind, address=address, **plain), cursor))
        return True

    def _take(self, space: int, size: int) -> int | None:
        place = self.top[space]
        if place + size > self.bounds[space][1]:
            return None
        self.top[space] = place + size
        return place

    def _within(self, *spaces: int) -> list[int]:
        """Return the addresses of what lies in spaces, in order."""
        return sorted(
            one
            for one in self.heap
            if any(self.bounds[index][0] <= one < self.bounds[index][1] for index in spaces)
        )

    def _begin(self, kind: CollectionKind, number: int) -> None:
        self.phases.append((len(self.rows), dict(self.heap), True))
        self.rows.append(
            row(RecordKind.COLLECTION_START, length=number, detail=kind, type=7, size=number * 10)
        )

    def _end(self, kind: CollectionKind, number: int, heap: Heap, flags: int = 0) -> None:
        before, self.heap = self.heap, heap
        alive = {one.birth for one in heap.values()}
        for one in before.values():
            if one.birth not in alive:
                self.deaths[one.birth] = number
        self.rows.append(
            row(
                RecordKind.COLLECTION_END,
                length=number,
                detail=kind,
                type=7,
                size=number * 10 + 3,
                flags=flags,
            )
        )
        self.phases.append((len(self.rows), dict(heap), False))

    def _collect_young(self, number: int) -> bool:
        """Copy what lives out of eden and one survivor space; returns whether that failed."""
        snapshot, failing = number in self.snapshots, number in self.failing
        source, target = self.survivors
        self._begin(CollectionKind.MINOR_SNAPSHOT if snapshot else CollectionKind.MINOR, number)
        for index in (EDEN, source):
            self.rows.append(row(RecordKind.COLLECTS, length=index, size=number))
        self.rows.append(row(RecordKind.BARRIER))
        new = {address: self.heap[address] for address in self._within(OLD, target)}
        if snapshot:
            for address, one in new.items():
                self.rows.append(
                    row(
                        RecordKind.SNAPSHOT_KEEP,
                        thread=VM,
                        address=address,
                        to=address,
                        size=one.size,
                        type=one.type,
                        length=one.length,
                    )
                )
                new[address] = replace(one, age=one.age + 1)
        buffers: dict[tuple[int, int], list[int]] = {}
        young = self._within(EDEN, source)
        self.random.shuffle(young)
        moved: set[int] = set()
        living = [
            address
            for address in young
            if not self.heap[address].filler and self.random.random() < 0.35
        ]
        for count, address in enumerate(living):
            if failing and count > len(living) // 2:
                break
            one, thread = self.heap[address], self.random.choice(COLLECTORS)
            space = OLD if one.age >= TENURED else target
            to = self._copy(new, one, address, thread, space, buffers, snapshot=snapshot)
            moved.add(address)
            promoted = one.promoted_in or (number if space == OLD else 0)
            new[to] = replace(one, moves=one.moves + 1, age=one.age + 1, promoted_in=promoted)
        for (thread, _), (cursor, end) in buffers.items():
            self._fill(new, thread, cursor, end)
        if failing:
            self.rows.append(row(RecordKind.BARRIER))
            for index in (EDEN, source):
                self.rows.append(row(RecordKind.FAILED, length=index))
            new.update(
                {
                    address: replace(self.heap[address], remnant=address in moved)
                    for address in young
                }
            )
        else:
            self.top[EDEN], self.top[source] = self.bounds[EDEN][0], self.bounds[source][0]
            self.survivors = (target, source)
        self._end(CollectionKind.MINOR, number, new, RecordFlag.FAILED if failing else 0)
        return failing

    def _copy(
        self,
        new: Heap,
        one: Thing,
        address: int,
        thread: int,
        space: int,
        buffers: dict[tuple[int, int], list[int]],
        *,
        snapshot: bool,
    ) -> int:
        """Report one object that is copied; returns where to."""
        told = {"size": one.size, "type": one.type, "length": one.length} if snapshot else {}
        if one.size > 200:
            to = self._take(space, one.size)
            assert to is not None, "the made spaces are too small"
            self.rows.append(
                row(
                    RecordKind.SNAPSHOT_MOVE if snapshot else RecordKind.MOVE,
                    thread=thread,
                    address=address,
                    to=to,
                    **told,
                )
            )
            return to
        cursor, end = buffers.get((thread, space), [0, 0])
        if cursor + one.size > end:
            self._fill(new, thread, cursor, end)
            place = self._take(space, 400)
            assert place is not None, "the made spaces are too small"
            self.rows.append(row(RecordKind.GC_BUFFER, thread=thread, address=place, size=400))
            cursor, end = place, place + 400
        buffers[thread, space] = [cursor + one.size, end]
        if snapshot:
            self.rows.append(
                row(RecordKind.SNAPSHOT_MOVE, thread=thread, address=address, to=cursor, **told)
            )
        else:
            self.rows.append(
                row(
                    RecordKind.MOVE_NEXT,
                    thread=thread,
                    address=address,
                    detail=SpaceKind.OLD if space == OLD else SpaceKind.SURVIVOR,
                )
            )
        return cursor

    def _fill(self, new: Heap, thread: int, cursor: int, end: int) -> None:
        if end > cursor:
            new[cursor] = Thing(
                len(self.rows), end - cursor, 1, thread, (end - cursor - 16) // 4, filler=True
            )
            flags = RecordFlag.FILLER | RecordFlag.VM | RecordFlag.BY_COLLECTOR
            self.rows.append(
                row(
                    RecordKind.ALLOCATE,
                    thread=thread,
                    address=cursor,
                    size=end - cursor,
                    type=1,
                    length=(end - cursor - 16) // 4,
                    flags=flags,
                )
            )

    def _collect_all(self, number: int) -> None:
        """Slide what lives to the bottom of the old space, neighbours together."""
        self._begin(CollectionKind.FULL, number)
        self.rows.append(row(RecordKind.BARRIER))
        places = self._within(OLD, EDEN, LEFT, RIGHT)
        objects = [
            one for one in places if not self.heap[one].filler and not self.heap[one].remnant
        ]
        living = [one for one in objects if self.random.random() < 0.7]
        new: Heap = {}
        told: list[Row] = []
        to, index = self.bounds[OLD][0], 0
        while index < len(living):
            begin = index
            first_to = to
            while index < len(living) and (
                index == begin
                or living[index] == living[index - 1] + self.heap[living[index - 1]].size
            ):
                address = living[index]
                if index > begin and self._space_of(address) != self._space_of(living[begin]):
                    break
                one = self.heap[address]
                promoted = one.promoted_in or (number if address >= self.bounds[EDEN][0] else 0)
                new[to] = replace(
                    one, moves=one.moves + (to != address), age=one.age + 1, promoted_in=promoted
                )
                to += one.size
                index += 1
            thread, start = self.random.choice(COLLECTORS), living[begin]
            if index - begin == 1 and self.random.random() < 0.5:
                told.append(
                    row(
                        RecordKind.KEEP if first_to == start else RecordKind.MOVE,
                        thread=thread,
                        address=start,
                        to=first_to if first_to != start else 0,
                    )
                )
            else:
                told.append(
                    row(
                        RecordKind.MOVE_RUN,
                        thread=thread,
                        address=start,
                        to=first_to,
                        length=index - begin,
                    )
                )
        self.random.shuffle(told)
        self.rows += told
        self.top = {space: bounds[0] for space, bounds in self.bounds.items()} | {OLD: to}
        self._end(CollectionKind.FULL, number, new)

    def _space_of(self, address: int) -> int:
        return next(index for index, (start, end) in self.bounds.items() if start <= address < end)

    # The known facts about it

    def truth(self, event: int) -> Heap:
        """Return the heap before an event; in a collection, that at its start."""
        start, heap, collecting = next(
            (one for one in reversed(self.phases) if one[0] <= event), (0, {}, False)
        )
        heap = dict(heap)
        for number in range(start, start if collecting else event):
            one = self.rows[number]
            if one["kind"] in (RecordKind.ALLOCATE, RecordKind.ALLOCATE_NEXT):
                filler = bool(one["flags"] & RecordFlag.FILLER)
                heap[one["_address"]] = Thing(
                    number, one["size"], one["type"], one["thread"], one["length"], filler
                )
        return heap


def row(kind: RecordKind, **columns: int) -> Row:
    """Return one record."""
    return {
        "kind": kind,
        "thread": 0,
        "address": 0,
        "to": 0,
        "size": 0,
        "type": 0,
        "site": 0,
        "length": 0,
        "flags": 0,
        "detail": 0,
    } | columns


class Told:
    """A `gcspy_objects.trace.Trace` of rows, in batches of a size of one's own."""

    def __init__(self, rows: list[Row], batch: int = 100) -> None:
        self.name = "made"
        self.rows, self._batch = rows, batch
        nothing = np.zeros(1, np.int64)
        self.types = Types(
            ["(unknown)"], ["(unknown)"], np.zeros(1, np.uint8), nothing, nothing, nothing
        )
        self.sites = Sites(
            np.zeros(1, np.int32),
            ["(unknown)"],
            [],
            np.zeros(2, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
        )
        self.causes: Causes = CAUSES
        self.threads = Threads()
        self.size_bytes = len(rows) * 4
        self.has_pointers = False
        self.contiguous = True
        self.read = 0

    def find_flaws(self) -> list[Flaw]:
        """None: nothing is read."""
        return []

    def batches(self, place: ReadPosition | None = None) -> Iterator[RecordBatch]:
        """Yield the rows."""
        begin = place.event if place else 0
        for low in range(begin, len(self.rows), self._batch):
            part = self.rows[low : low + self._batch]
            columns = {
                name: [one[name] for one in part] for name in part[0] if not name.startswith("_")
            }
            self.read += len(part)
            after = low + len(part)
            yield RecordBatch.of(
                ReadPosition(0, low * 4, low, low),
                ReadPosition(0, after * 4, after, after),
                "made",
                **columns,
            )

    def position_bytes(self, place: ReadPosition) -> int:
        """Return how much lies before a place."""
        return place.position

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
