"""Reading a G1 heap: the table of its regions, and each region's bounds and kind.

A region is accepted if its kind and bounds were the same at two reads and do not contradict each
other: at the previous event and at this one, or else at two reads of this one; after some tries it
is unknown. If the JVM stands still, one read is enough. Data that the VM does not export (live bytes, remembered sets) is read through a private
layout, if that passed its checks.

Knows addresses; knows neither tiles nor streams. Source: OpenJDK src/hotspot/share/gc/g1/heapRegion.hpp, heapRegionType.hpp,
g1HeapRegionManager.hpp; JDK 8 heapRegion.hpp, whose first region of a humongous series ends where the series ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.heaps.generational import read_reserved
from gcspy_drivers.hotspot.layouts.g1_private import G1Private, layout_of
from gcspy_drivers.hotspot.objects.marks import MarkBitmap, Marks
from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Gather, Neighbours, Pieces

__all__ = ["G1Reader", "G1Reading", "RegionKind"]

_WORD: Final = 8
_TRIES: Final = 4
_MOST_REGIONS: Final = 1 << 20  # a heap of 32 TiB in regions of 32 MiB
_MOST_GRAIN: Final = 1 << 30
_REM_SET_BYTES: Final = 320
_UNTOLD: Final = 255
_MOVED_BYTES: Final = 64

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]


class RegionKind(IntEnum):
    """Kind of a region."""

    UNCOMMITTED = 0
    FREE = 1
    EDEN = 2
    SURVIVOR = 3
    OLD = 4
    HUMONGOUS = 5
    HUMONGOUS_REST = 6
    ARCHIVE = 7


@dataclass(frozen=True, eq=False)
class G1Reading:
    """One reading of all regions, in order of address.

    Attributes:
        base: Address of the first region.
        grain: Bytes of a region.
        known: (regions,) whether it could be read consistently; the values of others have no
            meaning.
        kind: (regions,) `RegionKind`; free ones may be uncommitted, which is not known here.
        used: (regions,) bytes up to its top.
        live: (regions,) bytes that the last completed marking did not find dead; -1: not known, as
            everywhere before the first one. None: not available.
        remembered: (regions,) remembered cards; None: not available.
        state: (regions,) whether references into it are remembered: 0 not, 1 being made, 2
            complete; None: not available.
        pinned: (regions,) objects that must not be moved; None: not available.
        marked_top: (regions,) end of the last completed marking's range; 0: none. None: not
            available.
        marks: Address of the structure that has its marks; 0: not known.
        collections: How many collections there were so far.
        collecting: Whether one was under way.
    """

    base: int
    grain: int
    known: Bool
    kind: U8
    used: I64
    live: I64 | None
    remembered: I64 | None
    state: U8 | None
    pinned: I64 | None
    marked_top: I64 | None
    marks: int
    collections: int
    collecting: bool


@dataclass(frozen=True, slots=True)
class _Frame:
    """Data read before and after the structures.

    Attributes:
        heads: Number of collections, whether one is under way, address and length of the table, and
            where the marks are.
        table: Addresses of the structures, as bytes.
    """

    heads: tuple[int, int, int, int, int]
    table: bytes


@dataclass(frozen=True, eq=False, slots=True)
class _Look:
    """One read of the structures, (existing regions,) each.

    Attributes:
        table: Addresses of the structures; the same array as long as that does not change.
        ok: Whether it could be read.
        bottom: First address of the region.
        end: End address.
        top: End of the used part.
        kind: `RegionKind`, or `_UNTOLD`.
    """

    table: U64
    ok: Bool
    bottom: U64
    end: U64
    top: U64
    kind: U8


class G1Reader:
    """Reads the regions of one JVM.

    Args:
        memory: The target's memory.
        tables: Its exports.
        heap: Address of its CollectedHeap.
        marked: Number of markings or full collections completed so far, by the VM's own counters;
            None: not available.

    Raises:
        TargetError: A required field is not exported, or it is invalid.
    """

    def __init__(
        self,
        memory: Memory,
        tables: VmTables,
        heap: int,
        *,
        marked: Callable[[], bool | None] = lambda: None,
    ) -> None:
        self._memory = memory
        self._marked = marked
        region = "G1HeapRegion" if "G1HeapRegion" in tables.types else "HeapRegion"
        manager = f"{region}Manager"
        self._size = tables.size_of(region) or 0
        self._bottom, self._end = (
            tables.need_offset(region, "_bottom"),
            tables.need_offset(region, "_end"),
        )
        self._top = _top_offset(tables, region)
        self._pinned = tables.offset(region, "_pinned_object_count")
        self._kinds = _kinds(tables, f"{region}Type")
        type_offset = tables.offset(region, "_type")
        self._tag = (
            None
            if type_offset is None
            else type_offset + (tables.offset(f"{region}Type", "_tag") or 0)
        )
        table = (
            heap
            + tables.need_offset("G1CollectedHeap", "_hrm")
            + tables.need_offset(manager, "_regions")
        )
        heads = (
            heap + tables.need_offset("CollectedHeap", "_total_collections"),
            heap + tables.need_offset("CollectedHeap", "_is_gc_active", "_is_stw_gc_active"),
            table + tables.need_offset("G1HeapRegionTable", "_base"),
            table + tables.need_offset("G1HeapRegionTable", "_length"),
        )
        self._places: tuple[int, ...] = heads
        self._heads = Gather(memory.process, np.array(heads, dtype=np.uint64), _WORD)
        self._frame: Pieces | None = None
        self._framed = 0  # address of the table in it
        self.grain = int.from_bytes(
            memory.read(tables.need_static(region, "GrainBytes"), _WORD), "little"
        )
        self._low, high = read_reserved(memory, tables, heap)
        self.regions = (high - self._low) // self.grain if 0 < self.grain <= _MOST_GRAIN else 0
        fields = (self._bottom, self._end, self._top, self._pinned or 0)
        if not 0 < self.regions <= _MOST_REGIONS or max(fields) + _WORD > self._size > 4096:
            raise TargetError(
                f"process {memory.process.pid}: {self.regions} regions of {self.grain} bytes, each described in {self._size}: it is starting, or its G1 is not supported"
            )
        self._table = b""
        self._pointers: U64 = np.zeros(0, dtype=np.uint64)
        self._expected: U64 = np.zeros(0, dtype=np.uint64)
        self._there: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._structures: Neighbours | None = None
        self._before: _Look | None = None
        self._private: G1Private | None = None
        self._private, self.why_no_private = self._prove(layout_of(self._size, type_offset))
        self._structures = None  # with remembered sets from now on
        if self._tag is None:
            if self._private is None or self._private.tag is None:
                raise TargetError(
                    f"process {memory.process.pid}: this JVM does not export the kind of a region: {self.why_no_private}"
                )
            self._tag = self._private.tag
        self._bitmap = MarkBitmap(memory, *self.reserved)
        place = self._find_marks(heap)
        if place is not None:
            self._places = (*heads, place)
            self._heads = Gather(memory.process, np.array(self._places, dtype=np.uint64), _WORD)
            self._frame = None

    @property
    def reserved(self) -> tuple[int, int]:
        """First and end address of the heap."""
        return self._low, self._low + self.regions * self.grain

    @property
    def private(self) -> G1Private | None:
        """The private layout that proved itself; None: none did."""
        return self._private

    def counted(self) -> tuple[int, bool, int] | None:
        """Read how many collections there were, whether one is under way, and where the marks are; None: that is not readable.

        Raises as `read` does.
        """
        heads = self._read_heads()
        return None if heads is None else (heads[0], bool(heads[1]), heads[4])

    def read(self, *, still: bool = False) -> G1Reading | None:
        """Read all regions; None when even their table changed under each try.

        Args:
            still: Whether the JVM stands still meanwhile, so that one read is enough.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        found: G1Reading | None = None
        for _ in range(_TRIES):
            frame = self._read_frame()
            if frame is None or (look := self._look(frame)) is None:
                continue
            settled = look.ok if still else self._settled(look)
            self._before = look
            again = frame if still else self._read_frame()
            if again is None or again.table != frame.table:
                continue
            now = self._judge(look, settled, frame.heads)
            # A collection in between: old and new data do not fit together.
            found = (
                now
                if found is None or (found.collections, found.marks) != (now.collections, now.marks)
                else _completed(found, now)
            )
            if found.known.all() and again.heads == frame.heads:
                return found
        return found

    def marks(self, structure: int, low: int, high: int) -> Marks | None:
        """Read the marks of a range, as `MarkBitmap.read` does."""
        return self._bitmap.read(structure, low, high)

    def _find_marks(self, heap: int) -> int | None:
        """Return where the pointer to the marks is; None where the layout that is known does not prove itself.

        Updates of a release move it a little: it is where there are two bitmaps of this heap, of
        the last marking and of the one in progress.
        """
        private = self._private
        if private is None or private.marking is None or private.bitmap is None:
            return None
        for offset in sorted(range(-_MOVED_BYTES, _MOVED_BYTES + 1, _WORD), key=abs):
            found = self._memory.try_read(heap + private.marking + offset, _WORD)
            place = int.from_bytes(found or b"", "little") + private.bitmap
            both = self._memory.try_read(place, 2 * _WORD) if found and place % _WORD == 0 else None
            if both is None:
                continue
            last, following = np.frombuffer(both, dtype="<u8").tolist()
            if (
                last != following
                and self._bitmap.believes(following)
                and self._bitmap.believes(last)
            ):
                return place
        return None

    def _read_heads(self) -> tuple[int, int, int, int, int] | None:
        self._heads.read()
        if not self._heads.ok.all():
            return None
        return _heads_of(self._heads.data.view("<u8")[:, 0].tolist())

    def _read_frame(self) -> _Frame | None:
        """Read heads and table by one call; None if there is no such table, or it was replaced."""
        if self._frame is None:
            heads = self._read_heads()
            if heads is None or heads[3] != self.regions:
                return None
            self._framed = heads[2]
            words = [(place, _WORD) for place in self._places]
            table = self._framed, self.regions * _WORD
            self._frame = Pieces(self._memory.process, [*words, table])
        found = self._frame.read()
        if found is not None:
            size = len(self._places) * _WORD
            frame = _Frame(_heads_of(memoryview(found)[:size].cast("Q").tolist()), found[size:])
            if frame.heads[2:4] == (self._framed, self.regions):
                return frame
        self._frame = None
        return None

    def _look(self, frame: _Frame) -> _Look | None:
        """Read the structure of each region, and its remembered set; None if they cannot be where the table says."""
        if self._structures is None or frame.table != self._table:
            self._find_structures(np.frombuffer(frame.table, dtype="<u8"))
            self._table = frame.table
        structures = self._structures
        if structures is None:
            raise AssertionError("they were found above")
        structures.read()
        return _Look(
            table=self._pointers,
            ok=structures.ok[: len(self._there)],
            bottom=self._column(self._bottom),
            end=self._column(self._end),
            top=self._column(self._top),
            kind=self._kinds[self._column(self._tag or 0, np.uint8)],
        )

    def _find_structures(self, pointers: U64) -> None:
        """Note which regions have a structure, and where it and its remembered set are, which the VM makes one behind the other."""
        there = np.flatnonzero(pointers)
        process, places = self._memory.process, pointers[there]
        self._structures = Neighbours(process, places, self._size)
        self._pointers, self._there = pointers, there
        self._expected = np.uint64(self._low) + there.astype(np.uint64) * np.uint64(self.grain)
        if self._private is not None and self._private.kept:
            self._structures.read()
            # They live and die with their regions.
            sets = self._structures.column(self._private.rem_set)
            self._structures = Neighbours(process, np.concatenate([places, sets]), self._size)

    def _column(self, offset: int, dtype: npt.DTypeLike = "<u8") -> npt.NDArray[Any]:
        """Return a field of each region that is there, as read last."""
        if self._structures is None:
            raise AssertionError("regions are read before")
        return self._structures.column(offset, dtype, count=len(self._there))

    def _settled(self, look: _Look) -> Bool:
        """Return for which regions kind and bounds were the same at an earlier read, (existing regions,).

        If the previous read differs, it is read again, now.
        """
        settled: Bool = np.zeros(len(look.ok), dtype=np.bool_)
        before = self._before
        if before is not None and before.table is look.table:
            settled = (
                look.ok & before.ok & (look.bottom == before.bottom) & (look.end == before.end)
            )
            settled &= look.kind == before.kind
        rows = np.flatnonzero(~settled)
        if len(rows):
            places = look.table[self._there[rows]]
            again = Gather(self._memory.process, places, self._size)
            again.read()
            words = again.data.view("<u8")
            same = look.ok[rows] & again.ok
            same &= words[:, self._bottom // _WORD] == look.bottom[rows]
            same &= words[:, self._end // _WORD] == look.end[rows]
            same &= self._kinds[again.data[:, self._tag or 0]] == look.kind[rows]
            settled[rows] = same
        return settled

    def _judge(
        self, look: _Look, settled: Bool, heads: tuple[int, int, int, int, int]
    ) -> G1Reading:
        """Make a reading from the reads, unless they contradict each other."""
        there, bottom, end, top, kind = self._there, look.bottom, look.end, look.top, look.kind
        expected = self._expected
        # In JDK 8 the end of the first region of a humongous series is the end of the series.
        whole = expected + np.uint64(self.grain)
        good = look.ok & settled & (kind != _UNTOLD)
        good &= (bottom == expected) & (end >= whole) & (bottom <= top) & (top <= end)
        remembered, state, readable = self._kept()
        good &= readable
        used = np.where(good, np.minimum(top, whole) - bottom, 0).astype(np.int64)
        used[kind == RegionKind.FREE] = 0
        everything = len(there) == self.regions and bool(good.all())

        def spread(values: npt.NDArray[Any] | None, fill: int) -> npt.NDArray[Any] | None:
            if values is None or everything:
                return values
            out = np.full(self.regions, fill, dtype=values.dtype)
            out[there] = np.where(good, values, fill)
            return out

        known = np.ones(self.regions, dtype=np.bool_)
        known[there] = good
        marked_top = None
        if self._private is not None and self._private.marked_top is not None:
            marked_top = self._column(self._private.marked_top).astype(np.int64)
            marked_top[
                (marked_top < bottom.astype(np.int64)) | (marked_top > top.astype(np.int64))
            ] = 0
        pinned = None if self._pinned is None else self._column(self._pinned).astype(np.int64)
        whole_kind, whole_used = spread(kind, RegionKind.UNCOMMITTED), spread(used, 0)
        if whole_kind is None or whole_used is None:
            raise AssertionError("a region has a kind and bounds")
        return G1Reading(
            base=self._low,
            grain=self.grain,
            known=known,
            kind=whole_kind,
            used=whole_used,
            live=spread(self._live(used, kind, top), -1),
            remembered=spread(remembered, 0),
            state=spread(state, 0),
            pinned=spread(pinned, 0),
            marked_top=spread(marked_top, 0),
            marks=heads[4],
            collections=heads[0],
            collecting=bool(heads[1]),
        )

    def _live(self, used: I64, kind: U8, top: U64) -> I64 | None:
        """Return live bytes, (regions that are there,); -1: not known.

        Objects allocated since the last completed marking count as live. Before the first one the
        fields say for each region that all of it is, and have no meaning.
        """
        private = self._private
        if private is None:
            return None
        old = kind >= RegionKind.OLD
        if private.marked_bytes is not None and private.marked_top is not None:
            above = top.astype(np.int64) - self._column(private.marked_top).astype(np.int64)
            live = self._column(private.marked_bytes).astype(np.int64) + above
            # In regions that were old then it examined more than the bottom.
            marked = bool((old & (above < used)).any())
        elif private.garbage_bytes is not None:
            garbage = self._column(private.garbage_bytes).astype(np.int64)
            live = used - garbage
            said = self._marked()
            marked = bool((garbage[old] > 0).any()) if said is None else said
        else:
            return None
        counted = old & (live >= 0) & (live <= used) & marked
        return np.where(counted, live, np.where((kind == RegionKind.FREE) & marked, 0, -1))

    def _kept(self) -> tuple[I64 | None, U8 | None, Bool]:
        """Return remembered cards, their state, and whether they could be read, (regions that are there,) each."""
        private, structures, count = self._private, self._structures, len(self._there)
        if private is None or structures is None or not private.kept or len(structures.ok) == count:
            return None, None, np.ones(count, dtype=np.bool_)
        remembered = state = None
        if private.remembered is not None:
            remembered = structures.column(private.remembered, first=count).astype(np.int64)
        if private.state is not None:
            state = np.minimum(structures.column(private.state, np.uint8, first=count), 2)
        return remembered, state, structures.ok[count:]

    def _prove(self, private: G1Private | None) -> tuple[G1Private | None, str]:
        """Believe a layout only where each region has its own number, and its remembered set points back to it."""
        if private is None:
            return None, f"no layout is known for regions described in {self._size} bytes"
        frame = self._read_frame()
        look = None if frame is None else self._look(frame)
        if look is None or not look.ok.all():
            return None, "the regions could not be read"
        there = self._there
        if not np.array_equal(self._column(private.number, "<u4"), there.astype(np.uint32)):
            return None, "its regions do not have the known layout"
        sets, ok = self._memory.read_many(self._column(private.rem_set), _REM_SET_BYTES)
        back = sets.view("<u8") == self._pointers[there][:, np.newaxis]
        if not ok.all() or not back.all(axis=0).any():
            return None, "its remembered sets do not have the known layout"
        return private, ""


def _heads_of(words: list[int]) -> tuple[int, int, int, int, int]:
    """Take apart the words of a frame: counts are 32 bits, the flag is 8, and the last may be missing."""
    count, active, base, length, *marks = words
    return count & 0xFFFFFFFF, active & 0xFF, base, length, marks[0] if marks else 0


def _completed(first: G1Reading, then: G1Reading) -> G1Reading:
    """Return a reading whose unknown regions are taken from a later one."""

    def both(old: npt.NDArray[Any] | None, new: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
        return None if old is None or new is None else np.where(first.known, old, new)

    return replace(
        then,
        known=first.known | then.known,
        kind=np.where(first.known, first.kind, then.kind),
        used=np.where(first.known, first.used, then.used),
        live=both(first.live, then.live),
        remembered=both(first.remembered, then.remembered),
        state=both(first.state, then.state),
        pinned=both(first.pinned, then.pinned),
        marked_top=both(first.marked_top, then.marked_top),
    )


def _top_offset(tables: VmTables, region: str) -> int:
    """Return where a region's top is: in 8 and 11 it belongs to a type between, which is not always named as its superclass."""
    for holder in (region, "G1ContiguousSpace", "G1OffsetTableContigSpace", "ContiguousSpace"):
        found = tables.offset(holder, "_top")
        if found is not None:
            return found
    raise TargetError("this JVM does not export the top of a region")


def _kinds(tables: VmTables, tag_type: str) -> U8:
    """Return the kind of each tag, (256,)."""
    constants = tables.constants
    kinds = np.full(256, _UNTOLD, dtype=np.uint8)
    old, archive = (
        constants.get(f"{tag_type}::OldMask", 8),
        constants.get(f"{tag_type}::ArchiveMask"),
    )
    for tag in range(256):
        if tag & old:
            kinds[tag] = RegionKind.OLD
        if archive is not None and tag & archive:
            kinds[tag] = RegionKind.ARCHIVE
    # JDK 8 exports none: these are its values, and they are used only with its private layout.
    usual = {
        "FreeTag": 0,
        "EdenTag": 2,
        "SurvTag": 3,
        "StartsHumongousTag": 4,
        "ContinuesHumongousTag": 5,
    }
    meaning = {
        "FreeTag": RegionKind.FREE,
        "EdenTag": RegionKind.EDEN,
        "SurvTag": RegionKind.SURVIVOR,
        "StartsHumongousTag": RegionKind.HUMONGOUS,
        "ContinuesHumongousTag": RegionKind.HUMONGOUS_REST,
    }
    for name, kind in meaning.items():
        kinds[constants.get(f"{tag_type}::{name}", usual[name]) & 0xFF] = kind
    return kinds
