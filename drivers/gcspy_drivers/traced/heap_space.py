"""The spaces of a traced heap: all spaces of the VM of one kind, side by side, with a fixed number of bytes per tile.

Used bytes and fillers are spread over all the tiles that an object overlaps; objects are counted
where they begin. Survivors and deaths of a collection are reported at its start and at its end: at
its start all at their old places, at its end survivors at their new places and the dead at their
old ones. So the sums are the same.

Maps columns of objects to streams; does not know where the objects come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_objects.heap import CollectionStep, Fate, HeapSnapshot, TraceSpace
from gcspy_objects.heap.growing_heap import CollectionMoment
from gcspy_objects.heap.sums.tile_sums import BIG_LENGTH, MOST_AGE, TileSums
from gcspy_objects.names import TypeKind, Types
from gcspy_objects.records import SpaceKind
from numpy.typing import NDArray

from gcspy_drivers.kit.stream_sequence import StreamSequence
from gcspy_drivers.traced.categories import dominant
from gcspy_drivers.traced.name_space import NameSpace
from gcspy_drivers.traced.trace_states import GC_END, GC_START, TraceState
from gcspy_server.api import Control, ExtentNames, Server, ServerStream

__all__ = ["TITLES", "TracedHeapSpace", "extents_of"]

TITLES: Final = ("Eden", "Survivors", "Old", "Heap")
"""Names of spaces of each kind (`gcspy_objects.records.SpaceKind`)."""

_SMALLEST_OBJECT = 16
_COLOURS: Final = {
    "Used": (200, 60, 50),
    "Objects": (60, 110, 190),
    "Survived": (70, 150, 70),
    "Died": (120, 80, 180),
    "Promoted": (40, 150, 150),
}

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


def extents_of(spaces: tuple[TraceSpace, ...], tile_bytes: int) -> ExtentNames:
    """The tiles of spaces: each space has its own, the last of which may be smaller."""
    bases = [np.arange(one.start, one.end, tile_bytes, dtype=np.int64) for one in spaces]
    ends = [
        np.full(len(base), one.end, dtype=np.int64) for base, one in zip(bases, spaces, strict=True)
    ]
    if not bases:
        return ExtentNames((), ())
    base, end = np.concatenate(bases), np.concatenate(ends)
    return ExtentNames(base, np.minimum(tile_bytes, end - base))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Objects that lie in one kind of space.

    Attributes:
        address: Of each.
        size: Of each, in bytes.
        tile: In which each begins.
    """

    address: I64
    size: I64
    tile: I64


class TracedHeapSpace:
    """All spaces of a kind.

    Args:
        server: The server to add the space to.
        kind: `gcspy_objects.records.SpaceKind`.
        spaces: All spaces of the heap at first.
        types: Of the trace.
        tile_bytes: Bytes of a tile.
        details: Kinds of questions that it supports.

    Attributes:
        types: Of the trace; replaced when there are more.
    """

    def __init__(
        self,
        server: Server,
        kind: int,
        spaces: tuple[TraceSpace, ...],
        *,
        types: Types,
        tile_bytes: int,
        details: tuple[str, ...],
    ) -> None:
        self.kind, self.types, self._tile_bytes = kind, types, tile_bytes
        self._spaces = self._mine(spaces)
        self.space = server.add_space(
            TITLES[kind],
            names=extents_of(self._spaces, tile_bytes),
            driver="traced",
            unused_text="not in use",
            main=kind in (SpaceKind.EDEN, SpaceKind.HEAP),
            description=f"The heap, {tile_bytes:,} bytes a tile"
            if kind == SpaceKind.HEAP
            else f"All {TITLES[kind].lower()} spaces of the heap, {tile_bytes:,} bytes a tile",
            details=details,
        )
        self._gathered: tuple[int, int, tuple[TraceSpace, ...]] | None = None
        self._sums: dict[str, tuple[int, ...]] = {}

    def _mine(self, spaces: tuple[TraceSpace, ...]) -> tuple[TraceSpace, ...]:
        return tuple(one for one in spaces if one.kind == self.kind)

    def add_streams(self, types: NameSpace, threads: NameSpace) -> None:
        """Add the streams, when the spaces are there that those of categories name."""
        self._top_type, self._top_thread = types, threads
        most = max(1, self._tile_bytes // _SMALLEST_OBJECT)
        add = StreamSequence(self.space, self._tile_bytes, colours=_COLOURS)
        self.used = add.bytes(
            "Used",
            "Bytes of all that lies in the tile, the fillers of buffers among it, dead or alive.",
        )
        self.objects = add.count("Objects", most, "Objects of the program that begin in the tile.")
        self.survived = add.bytes(
            "Survived",
            "Bytes of the program's objects that this collection, or the latest, found alive.",
        )
        self.died = add.bytes(
            "Died",
            "Bytes of the program's objects that this collection, or the latest, found dead.",
        )
        self.promoted = add.bytes(
            "Promoted",
            "Bytes of those that this collection, or the latest, moved from young to old.",
        )
        self.new = add.bytes(
            "New", "Bytes of the program's objects that were allocated since the event before."
        )
        self.age = add.count(
            "Age", MOST_AGE, "Collections that the oldest object of the tile survived."
        )
        self.instances = add.count("Instances", most, "Objects of the program that are not arrays.")
        self.small = add.count("Small arrays", most, f"Arrays of fewer than {BIG_LENGTH} elements.")
        self.big = add.count("Big arrays", most, f"Arrays of {BIG_LENGTH} elements or more.")
        self.fillers = add.bytes(
            "Fillers",
            "Bytes that do not belong to objects of the program: the rest of a thread's buffer, and what a failed promotion left behind.",
        )
        self.top_type = add.category(
            "Top type", self._top_type.space, "The type that has most bytes of the tile."
        )
        self.top_thread = add.category(
            "Allocated by",
            self._top_thread.space,
            "The thread that allocated most bytes of the tile.",
        )

    # ------------------------------------------------------------------------- gathering

    def gather(self, moment: TraceState, since: int) -> None:
        """Fill all streams.

        Args:
            moment: The moment.
            since: Event of the trace at the previous moment: objects born later are new.
        """
        heap = moment.heap
        self._fit(heap.spaces)
        told = [self.survived, self.died, self.promoted]
        collects = moment.kind in (GC_START, GC_END)
        here = self._rows_here(heap)
        same = None if moment.frees else (len(here), heap.collections, self._spaces)
        if not collects and same is not None and self._gathered == same:
            self._repeat(told)
            return
        self._gathered = same if moment.kind != GC_START else None
        self.space.reset(*(one for one in self.space.streams if collects or one not in told))
        self._mark_spaces()
        rows = self._rows(heap.address[here], heap.size[here])
        filler = heap.filler[here]
        ours = _Rows(rows.address[~filler], rows.size[~filler], rows.tile[~filler])
        columns = here[~filler]
        self._spread(self.used, rows, None)
        self._spread(self.fillers, rows, filler)
        self._spread(self.new, ours, heap.birth[columns] >= since)
        self._count_kinds(ours, heap.type[columns], heap.length[columns])
        np.maximum.at(
            self.age.data,
            ours.tile,
            np.minimum(heap.age[columns], MOST_AGE).astype(self.age.data.dtype),
        )
        self._summarise(self.age, int(heap.age[columns].max(initial=0)))
        for stream, named, category in (
            (self.top_type, self._top_type, heap.type[columns]),
            (self.top_thread, self._top_thread, heap.thread[columns]),
        ):
            stream.data[:] = dominant(
                ours.tile, named.tiles_of(category), ours.size, self.space.count
            )
        if collects and moment.step is not None:
            self._tell_collection(moment.step, ended=moment.kind == GC_END)
        self.space.info = self._info(rows, ours)

    def fill(self, sums: TileSums, moment: CollectionMoment | None) -> None:
        """Fill all streams from sums that are kept; with the results of a collection at its start and its end.

        Args:
            sums: Of all spaces.
            moment: The start or end of a collection that is shown.
        """
        self._fit(sums.spaces)
        rows = sums.rows_of_kind(self.kind)
        told = [self.survived, self.died, self.promoted]
        self.space.reset(*(one for one in self.space.streams if moment or one not in told))
        self._mark_spaces()
        results: list[tuple[ServerStream, I64]] = [
            (self.used, sums.used), (self.fillers, sums.fillers), (self.new, sums.new),
        ]  # fmt: skip
        if moment is not None:
            results += zip(told, (moment.survived, moment.died, moment.promoted), strict=True)
        for stream, values in results:
            self._put(stream, values[rows], self._capacity)
        for stream, values in (
            (self.objects, sums.objects),
            (self.instances, sums.instances),
            (self.small, sums.small),
            (self.big, sums.big),
        ):
            self._put(stream, values[rows])
        ages, objects = sums.ages.last()[rows], sums.objects[rows]
        self.age.data[:] = ages
        self._summarise(self.age, int(ages.max(initial=0)))
        for stream, named, category in (
            (self.top_type, self._top_type, sums.types.largest()[rows]),
            (self.top_thread, self._top_thread, sums.threads.largest()[rows]),
        ):
            stream.data[:] = np.where(objects > 0, named.tiles_of(category.astype(np.int32)), 0)
        self.space.info = self._words(int(sums.used[rows].sum()), int(objects.sum()))

    def _put(self, stream: ServerStream, values: I64, *more: int) -> None:
        stream.data[:] = np.clip(values, 0, np.iinfo(stream.data.dtype).max)
        self._summarise(stream, int(values.sum()), *more)

    def _fit(self, spaces: tuple[TraceSpace, ...]) -> None:
        """Follow spaces that come, go, grow and move."""
        mine = self._mine(spaces)
        if mine != self._spaces:
            self._spaces = mine
            self.space.resize(extents_of(mine, self._tile_bytes))

    def _rows_here(self, heap: HeapSnapshot) -> I64:
        """Rows of the objects in this space: they are consecutive for each space."""
        bounds = np.searchsorted(
            heap.address,
            np.array([(one.start, one.end) for one in self._spaces], dtype=np.int64).reshape(-1, 2),
        )
        return np.concatenate(
            [np.arange(first, last) for first, last in bounds.tolist()]
            or [np.zeros(0, dtype=np.int64)]
        )

    def _repeat(self, told: list[ServerStream]) -> None:
        """Repeat the values: between two collections nothing is removed, so that an equal number of objects means the same objects."""
        for stream in self.space.streams:
            if stream in told:
                continue
            if stream is self.new:
                stream.data[:] = 0
                self._sums[stream.name] = (0, self._capacity)
            else:
                _ = stream.data  # gathered, and unchanged
            if stream.name in self._sums:
                stream.set_summary(*self._sums[stream.name])

    def _summarise(self, stream: ServerStream, *values: int) -> None:
        self._sums[stream.name] = values
        stream.set_summary(*values)

    def _rows(self, address: I64, size: I64) -> _Rows:
        return _Rows(address, size, self.space.tiles_of(address))

    def _count_kinds(
        self, ours: _Rows, types: NDArray[np.int32], length: NDArray[np.int32]
    ) -> None:
        array = np.asarray(self.types.kind)[types] == TypeKind.ARRAY
        for stream, which in (
            (self.objects, None),
            (self.instances, ~array),
            (self.small, array & (length < BIG_LENGTH)),
            (self.big, array & (length >= BIG_LENGTH)),
        ):
            tiles = ours.tile if which is None else ours.tile[which]
            stream.data[:] = np.minimum(
                np.bincount(tiles, minlength=self.space.count), np.iinfo(stream.data.dtype).max
            )
            self._summarise(stream, len(tiles))

    def _spread(self, stream: ServerStream, rows: _Rows, which: Mask | None) -> None:
        address, size = (
            (rows.address, rows.size) if which is None else (rows.address[which], rows.size[which])
        )
        self.space.spread(stream, address, size)
        self._summarise(stream, int(size.sum()), self._capacity)

    @property
    def _capacity(self) -> int:
        return sum(one.end - one.start for one in self._spaces)

    def _tell_collection(self, step: CollectionStep, *, ended: bool) -> None:
        """The results of a collection, at its start or at its end."""
        before, fate = step.before, step.fate
        program = ~before.filler
        for stream, fates in (
            (self.survived, (Fate.KEPT, Fate.MOVED, Fate.PROMOTED)),
            (self.died, (Fate.DIED,)),
            (self.promoted, (Fate.PROMOTED,)),
        ):
            which = program & np.isin(fate, fates)
            moved = ended and stream is not self.died
            address, size = (step.to if moved else before.address)[which], before.size[which]
            inside = self.space.tiles_of(address) >= 0
            self._spread(stream, _Rows(address[inside], size[inside], address[inside]), None)

    def _mark_spaces(self) -> None:
        """Draw a line where another space begins."""
        starts = self.space.tiles_of(
            np.array([one.start for one in self._spaces[1:]], dtype=np.int64)
        )
        self.space.control[starts[starts >= 0]] |= np.uint8(Control.SEPARATOR)

    def _info(self, rows: _Rows, ours: _Rows) -> str:
        return self._words(int(rows.size.sum()), len(ours.size))

    def _words(self, used: int, objects: int) -> str:
        return f"{used:,} of {self._capacity:,} bytes in use, {objects:,} objects of the program"
