"""A trace of any length that is made while it is read: records of a generational heap with a known number of live objects.

Four threads fill an eden with objects of 16, 24, 40 and 48 bytes. Each minor collection copies every twentieth into a survivor space, and those of the one before it into
the old space; when that has as many as wanted, a full collection drops the older half and slides the rest down. Nothing of it is kept: any
place is worked out from its number, so that a heap can be sought in it as in a file.

Knows records; knows no heap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import numpy as np
from gcspy_objects.names import Causes, Flaw, Sites, Threads, TypeKind, Types
from gcspy_objects.records import (
    COLUMNS,
    CollectionKind,
    ReadPosition,
    RecordBatch,
    RecordKind,
    SpaceKind,
)
from numpy.typing import NDArray

__all__ = ["MadeTrace"]

_Rows: TypeAlias = dict[str, NDArray[Any]]

_SIZES: Final = np.array([16, 24, 40, 48], np.int64)
_BUFFER_OBJECTS: Final = 2048
_BUFFER_BYTES: Final = int(_SIZES.sum()) * _BUFFER_OBJECTS // 4
_THREADS: Final = 4
_STRIDE: Final = 20
_OLD: Final = 1 << 40
_OLD_BYTES: Final = 1 << 38
_EDEN: Final = _OLD + _OLD_BYTES
_RUN: Final = 500


class MadeTrace:
    """A trace that is made: see the top of this module. It is a `gcspy_objects.trace.Trace`.

    Args:
        events: At least this many.
        live: At most about this many objects are in the old space; at least half as many, once it
            was full.
        buffers: Buffers that are filled between two collections: 2,048 objects each.
    """

    def __init__(self, events: int, live: int, buffers: int = 96) -> None:
        self.name = "made"
        self.types = Types(
            ["(unknown)", "Small", "Pair", "Node", "Entry"], ["(unknown)", "Small", "Pair", "Node", "Entry"], np.full(5, TypeKind.INSTANCE, np.uint8),
            np.concatenate(([0], _SIZES)), np.zeros(5, np.int64), np.zeros(5, np.int64),
        )  # fmt: skip
        self.sites = Sites(
            np.zeros(2, np.int32),
            ["(unknown)", "made"],
            [],
            np.zeros(3, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
        )
        self.causes: Causes = {1: "eden is full"}
        self.threads = Threads()
        self.has_pointers = False
        self.contiguous = True
        self._buffers = buffers
        objects = buffers * _BUFFER_OBJECTS
        sizes = np.tile(_SIZES, objects // 4)
        # The addresses in eden are the same each time; so are those that survive, in whichever order the collector comes to them.
        eden = _EDEN + np.cumsum(sizes) - sizes
        chosen = np.arange(0, objects, _STRIDE)
        chosen = np.random.default_rng(1).permutation(chosen + np.arange(len(chosen)) % 4)
        self._survivors, kept = eden[chosen], sizes[chosen]
        self._offsets, self._kept_bytes = np.cumsum(kept) - kept, int(kept.sum())
        self._bounds = [
            (_OLD, _OLD_BYTES), (_EDEN, buffers * _BUFFER_BYTES),
            *((_EDEN + buffers * _BUFFER_BYTES + side * self._kept_bytes, self._kept_bytes) for side in (0, 1)),
        ]  # fmt: skip
        self._mutator = self._allocations()
        most = max(live // len(chosen), 4)
        self._kept_blocks = most // 2
        self._begins: list[int] = [0]
        self._blocks: list[tuple[int, bool]] = []
        blocks = 0
        while self._begins[-1] < events:
            cycle = len(self._blocks)
            after = blocks + (cycle > 0)
            full = after >= most
            self._blocks.append((blocks, full))
            self._begins.append(self._begins[-1] + self._length(cycle))
            blocks = self._kept_blocks if full else after
        self.events = self._begins[-1]
        self.size_bytes = self.events * 4

    def find_flaws(self) -> list[Flaw]:
        """None: nothing is read."""
        return []

    def batches(self, place: ReadPosition | None = None) -> Iterator[RecordBatch]:
        """Yield the records, a cycle of allocation and collection each."""
        first = bisect_right(self._begins, place.event) - 1 if place else 0
        for cycle in range(first, len(self._blocks)):
            begin, end = self._begins[cycle], self._begins[cycle + 1]
            yield RecordBatch.of(
                ReadPosition(0, begin * 4, cycle, begin),
                ReadPosition(0, end * 4, cycle + 1, end),
                "made",
                **self._records(cycle),
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

    # Records of a cycle

    def _allocations(self) -> _Rows:
        """Return the records of what the program does between two collections."""
        one = _BUFFER_OBJECTS + 1
        kind = np.full(self._buffers * one, RecordKind.ALLOCATE_NEXT, np.uint8)
        kind[::one] = RecordKind.BUFFER
        number = np.arange(self._buffers)
        rows: _Rows = {
            "kind": kind,
            "thread": np.repeat(number % _THREADS, one),
            "address": np.zeros(len(kind), np.int64),
            "size": np.tile(
                np.concatenate(([_BUFFER_BYTES], np.tile(_SIZES, _BUFFER_OBJECTS // 4))),
                self._buffers,
            ),
            "type": np.tile(
                np.concatenate(([0], np.tile(np.arange(1, 5), _BUFFER_OBJECTS // 4))), self._buffers
            ),
            "site": np.ones(len(kind), np.int32),
        }
        rows["address"][::one] = _EDEN + number * _BUFFER_BYTES
        return rows

    def _length(self, cycle: int) -> int:
        return sum(len(part["kind"]) for part in self._parts(cycle))

    def _records(self, cycle: int) -> _Rows:
        """Return all records of a cycle."""
        parts = self._parts(cycle)
        counts = [len(part["kind"]) for part in parts]
        found: _Rows = {}
        for name, dtype in COLUMNS.items():
            if any(name in part for part in parts):
                column = [
                    part.get(name, np.zeros(count, dtype))
                    for part, count in zip(parts, counts, strict=True)
                ]
                found[name] = np.concatenate(column).astype(dtype)
        return found

    def _parts(self, cycle: int) -> list[_Rows]:
        blocks, full = self._blocks[cycle]
        parts = [] if cycle else [self._spaces()]
        target, source = self._bounds[2 + cycle % 2][0], self._bounds[3 - cycle % 2][0]
        parts += [
            self._mutator,
            self._marks(RecordKind.COLLECTION_START, CollectionKind.MINOR, cycle),
        ]
        parts += [
            _one(kind=RecordKind.COLLECTS, length=1),
            _one(kind=RecordKind.COLLECTS, length=3 - cycle % 2),
        ]
        parts += self._copied(self._survivors, target, SpaceKind.SURVIVOR)
        if cycle:
            parts += self._copied(
                source + self._offsets, _OLD + blocks * self._kept_bytes, SpaceKind.OLD
            )
        parts.append(self._marks(RecordKind.COLLECTION_END, CollectionKind.MINOR, cycle))
        if full:
            parts += [
                self._marks(RecordKind.COLLECTION_START, CollectionKind.FULL, cycle),
                *self._slid(blocks + (cycle > 0), target),
            ]
            parts.append(self._marks(RecordKind.COLLECTION_END, CollectionKind.FULL, cycle))
        return parts

    def _spaces(self) -> _Rows:
        kinds = (SpaceKind.OLD, SpaceKind.EDEN, SpaceKind.SURVIVOR, SpaceKind.SURVIVOR)
        columns = zip(*self._bounds, strict=True)
        addresses, sizes = (np.repeat(np.array(one, np.int64), 2) for one in columns)
        return {
            "kind": np.tile([RecordKind.SPACE_DEFINE, RecordKind.SPACE_KIND], 4), "length": np.repeat(np.arange(4), 2), "detail": np.repeat(kinds, 2),
            "address": addresses, "size": sizes,
        }  # fmt: skip

    @staticmethod
    def _marks(kind: RecordKind, collection: CollectionKind, cycle: int) -> _Rows:
        return _one(
            kind=kind,
            length=2 * cycle + (collection == CollectionKind.FULL) + 1,
            detail=collection,
            type=1,
        )

    def _copied(self, source: NDArray[np.int64], target: int, kind: SpaceKind) -> list[_Rows]:
        thread = _THREADS + (kind == SpaceKind.OLD)
        count = len(source)
        moves: _Rows = {
            "kind": np.full(count, RecordKind.MOVE_NEXT, np.uint8), "address": source, "detail": np.full(count, kind, np.uint8),
            "thread": np.full(count, thread, np.int32),
        }  # fmt: skip
        return [
            _one(kind=RecordKind.GC_BUFFER, address=target, size=self._kept_bytes, thread=thread),
            moves,
        ]

    def _slid(self, blocks: int, survivors: int) -> list[_Rows]:
        """Return the moves of the newer blocks to the bottom of the old space, in runs; young objects stay."""
        dropped = (blocks - self._kept_blocks) * self._kept_bytes
        starts = (
            _OLD
            + dropped
            + np.arange(self._kept_blocks)[:, None] * self._kept_bytes
            + self._offsets[None, ::_RUN]
        ).ravel()
        each = np.minimum(_RUN, len(self._offsets) - np.arange(0, len(self._offsets), _RUN))
        runs: _Rows = {
            "kind": np.full(len(starts), RecordKind.MOVE_RUN, np.uint8), "address": starts, "to": starts - dropped,
            "length": np.tile(each, self._kept_blocks),
        }  # fmt: skip
        return [
            runs,
            _one(
                kind=RecordKind.MOVE_RUN, address=survivors, to=survivors, length=len(self._offsets)
            ),
        ]


def _one(**columns: int) -> _Rows:
    return {name: np.array([value]) for name, value in columns.items()}
