"""Walks a heap: spans are copied a chunk at a time and walked, classes are read when their first object is met, lost ranges are unknown.

If a walk meets something that is not an object, the rest of the span is unknown up to the next
known start of one. Data that was read while a collection moved objects is discarded: it is read
again after it, with the new bounds.

Old spans that only grew, with no collection since that could have moved anything in them, are gone on with where they ended the last time.

Knows layouts, copies and walks; knows neither streams nor collectors.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.objects import arrays, machine_code
from gcspy_drivers.hotspot.objects.heap_objects import REFERENCE, HeapObjects, SpanObjects
from gcspy_drivers.hotspot.objects.layout import Epoch, HeapLayout, ObjectSpan, SpanKind
from gcspy_drivers.hotspot.objects.marks import Marks
from gcspy_drivers.hotspot.objects.tlabs import ThreadBuffers, Tlabs
from gcspy_drivers.hotspot.vm.klasses import Klasses
from gcspy_drivers.kit.copier import CHUNK_BYTES, Copier, Piece
from gcspy_drivers.remote.vectors import MAX_READ_BYTES

__all__ = ["JavaHeapCopy", "WalkStop", "Walker"]

_TRIES: Final = 3
_WAIT_SECS: Final = 0.002
_LOOKS: Final = 10
"""How often, and with which interval, the end of a collection is waited for."""
_ENTRIES: Final = 1 << 16
_LEAST_PIECE: Final = 1 << 16
"""A rest of a chunk of this size or less is not worth a piece; and each header fits into it."""
_MOST_HELD_BYTES: Final = 4 << 30

I64 = npt.NDArray[np.int64]
Key = tuple[int, ...]
"""Stays the same as long as no old object was moved."""


class WalkStop(IntEnum):
    """Why a walk stopped."""

    DONE = 0
    UNKNOWN = 1
    """It met a class that is not known."""
    BAD = 2
    """It met something that is not an object."""
    MORE = 3
    """The copy ends within an object that has to be seen further."""
    ROOM = 4
    """There is no room for more entries."""


class STATE(IntEnum):
    """State from which a walk continues."""

    AT = 0
    FILLED = 1
    WORD = 2


class PLACE(IntEnum):
    """Position of a walk."""

    ADDRESS = 0
    STOP = 1
    TILES = 2
    SHIFT = 3
    SURVIVES = 4
    REFERS = 5
    YOUNG = 6
    LOW = 7
    GRAIN = 8
    BASE = 9
    MARKED_TOP = 10
    MARKS = 11
    MARK_SHIFT = 12
    ALONE = 13


class Readable(Protocol):
    """A heap that is read again; see `gcspy_drivers.hotspot.heaps.heap_view.HeapView`."""

    def look(self) -> HeapLayout | None:
        """Read the ranges to walk."""
        ...

    def epoch(self) -> Epoch | None:
        """Read how many collections there were, and whether one is under way."""
        ...

    def marks(self, low: int, high: int) -> Marks | None:
        """Read the marks of a range."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class JavaHeapCopy:
    """A heap that was copied while it was held.

    Attributes:
        layout: The ranges to copy.
        buffers: Threads' buffers.
        pieces: The copies; missing spans have none.
        marks: Marks of each piece; None: there are none for it.
        kept: Earlier results of old spans, by their first address, which are not copied again.
    """

    layout: HeapLayout
    buffers: Tlabs
    pieces: Sequence[Piece]
    marks: Sequence[Marks | None]
    kept: Mapping[int, SpanObjects]


@dataclass(eq=False)
class _Pass:
    """One walk through the heap.

    Attributes:
        layout: The ranges to walk, now.
        buffers: Threads' buffers, now.
        references: (tiles, 5), or no rows.
        found: The results so far, by the first address of the span.
        untold: The ranges that could not be walked.
        kept: Bytes that were not read again.
        first: How many collections there were when it began.
        chunk: How much is copied at a time.
    """

    layout: HeapLayout
    buffers: Tlabs
    references: I64
    first: int
    found: dict[int, SpanObjects] = field(default_factory=dict)
    untold: list[tuple[int, int]] = field(default_factory=list)
    kept: int = 0
    chunk: int = CHUNK_BYTES

    def __post_init__(self) -> None:
        self.follow(self.layout)

    def follow(self, layout: HeapLayout) -> None:
        """Continue with a layout."""
        self.layout = layout
        self.tops = [span.top for span in layout.spans]
        self.generations = (
            layout.generations() if len(self.references) else np.zeros(0, dtype=np.int8)
        )

    def rest(self, position: int) -> Iterator[tuple[int, int, int]]:
        """Return the rest of the spans from an address on: number, first address and end address."""
        for number in range(bisect_right(self.tops, position), len(self.tops)):
            span = self.layout.spans[number]
            yield number, max(span.bottom, position), span.top


class Walker:
    """Walks the heap of one JVM.

    Args:
        klasses: Its classes.
        copier: Copies its memory.
        threads: Its threads' buffers.
        heap: Source of the layout, the epoch and marks.
    """

    def __init__(
        self,
        klasses: Klasses,
        copier: Copier,
        threads: ThreadBuffers,
        heap: Readable,
    ) -> None:
        self._klasses = klasses
        self._copier = copier
        self._threads = threads
        self._heap = heap
        self._accounting: I64 = np.zeros((0, 2), dtype=np.int64)
        self._touched: I64 = np.zeros(0, dtype=np.int64)
        self._entries: I64 = np.zeros((_ENTRIES, 4), dtype=np.int64)
        self._state: I64 = np.zeros(len(STATE), dtype=np.int64)
        self._kept: dict[int, SpanObjects] = {}
        self._kept_key: tuple[object, ...] = ()

    def walk(
        self, layout: HeapLayout, *, references: bool, moved: Callable[[], Key | None] | None = None
    ) -> HeapObjects | None:
        """Copy and walk a heap of a running JVM.

        Args:
            layout: The ranges to walk.
            references: Whether to search for references too.
            moved: Returns a value that stays the same as long as no old object was moved; None, or
                if it returns None: not known, and everything is read.

        Returns:
            The objects; None if a collection was in progress all the time.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        settled = self._settled(layout)
        if settled is None:
            return None
        self._copier.warm(CHUNK_BYTES)
        run = _Pass(
            settled,
            self._threads.read(),
            self._no_references(settled, references=references),
            settled.epoch.collections,
        )
        key = None if moved is None or references else moved()
        self._use_kept(key, settled)
        position, tries = settled.low, 0
        while wanted := self._next(run, position):
            pieces = self._copier.copy(wanted)
            marks = self._marks_of(run.layout, pieces)
            # Old objects that were not moved are unchanged, whatever was collected of the young
            # ones.
            if self._heap.epoch() == run.layout.epoch or (
                key is not None
                and self._all_old(run, wanted)
                and moved is not None
                and moved() == key
            ):
                for piece, mark in zip(pieces, marks, strict=True):
                    position = self._take(run, piece, mark)
                tries = 0
                continue
            tries += 1
            fresh = self._settled(None) if tries <= _TRIES else None
            if fresh is None:
                run.untold += [(low, high) for _, low, high in wanted]
                position, tries = wanted[-1][2], 0
                continue
            run.follow(fresh)
            run.buffers = self._threads.read()
            run.found = {low: one for low, one in run.found.items() if low < position}
        self._keep(run, key if moved is not None and moved() == key else None)
        return self._together(run, references=references)

    def warm(self, layout: HeapLayout) -> None:
        """Have room for a copy of a heap, before it is held."""
        self._copier.warm(
            min(sum(span.top - span.bottom for span in layout.spans) * 5 // 4, _MOST_HELD_BYTES)
        )

    def copy(self, layout: HeapLayout, *, key: Key | None = None) -> JavaHeapCopy:
        """Copy a heap that is held; nothing else is to be done while it is. It is quicker where `warm` was called before.

        Args:
            layout: The ranges to copy.
            key: The current value of `moved` for `walk`: stored old spans are not copied again.
                None: everything is copied.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        self.warm(layout)
        buffers = self._threads.read()
        same = key is not None and _whole(key, layout) == self._kept_key
        kept = {
            span.bottom: self._kept[span.bottom]
            for span in layout.spans
            if same and self._goes_on(span)
        }
        wanted = [
            (number, kept[span.bottom].reached if span.bottom in kept else span.bottom, span.top)
            for number, span in enumerate(layout.spans)
        ]
        pieces = self._copier.copy(wanted)
        return JavaHeapCopy(layout, buffers, pieces, self._marks_of(layout, pieces), kept)

    def walk_copy(
        self, copy: JavaHeapCopy, *, references: bool, key: Key | None = None
    ) -> HeapObjects:
        """Walk the copied ranges; others are unknown.

        Args:
            copy: The copy; without stored spans, if references are searched for.
            references: Whether to search for references too.
            key: Likewise, at the time of the copy, for the next time; None: nothing is to be
                stored.
        """
        same = self._klasses.check()
        layout = copy.layout
        run = _Pass(
            layout,
            copy.buffers,
            self._no_references(layout, references=references),
            layout.epoch.collections,
        )
        there = {
            piece.span: (piece, mark) for piece, mark in zip(copy.pieces, copy.marks, strict=True)
        }
        for number, span in enumerate(layout.spans):
            old = copy.kept.get(span.bottom)
            if number not in there or (old is not None and not same):
                run.untold.append((span.bottom, span.top))
                continue
            if old is not None:
                run.found[span.bottom] = old.grown(span, layout.tiling)
                run.kept += old.reached - span.bottom
            self._take(run, *there[number])
        if key is not None:
            self._kept_key = _whole(key, layout)
            self._keep(run, key)
        return self._together(run, references=references)

    def _goes_on(self, span: ObjectSpan) -> bool:
        """Return whether a span is one of which something is kept that still holds."""
        old = self._kept.get(span.bottom)
        return old is not None and old.span.kind is span.kind and old.reached <= span.top

    def _marks_of(self, layout: HeapLayout, pieces: Sequence[Piece]) -> list[Marks | None]:
        """Read the marks of pieces; None for those without marks, or with unreadable ones."""
        found: list[Marks | None] = []
        for piece in pieces:
            told = layout.spans[piece.span].marked_top
            high = piece.address + 8 * (0 if piece.words is None else len(piece.words))
            found.append(
                self._heap.marks(piece.address, min(told, high))
                if layout.epoch.marks and told > piece.address
                else None
            )
        return found

    def _no_references(self, layout: HeapLayout, *, references: bool) -> I64:
        return np.zeros((layout.tiling.count if references else 0, len(REFERENCE)), dtype=np.int64)

    def _all_old(self, run: _Pass, wanted: Sequence[tuple[int, int, int]]) -> bool:
        return not any(run.layout.spans[number].kind.young for number, _, _ in wanted)

    def _settled(self, layout: HeapLayout | None) -> HeapLayout | None:
        """Return a layout of a moment without a collection in progress; None if there is none for a while."""
        for _ in range(_LOOKS):
            if layout is None:
                layout = self._heap.look()
            if layout is not None and not layout.epoch.collecting:
                return layout
            time.sleep(_WAIT_SECS)
            layout = None
        return None

    def _use_kept(self, key: Key | None, layout: HeapLayout) -> None:
        same = self._klasses.check()
        whole = None if key is None else _whole(key, layout)
        if whole is None or whole != self._kept_key or not same:
            self._kept = {}
        self._kept_key = whole or ()

    def _next(self, run: _Pass, position: int) -> list[tuple[int, int, int]]:
        """Return the pieces to copy next, from an address on; stored old spans are added on the way."""
        wanted: list[tuple[int, int, int]] = []
        room = run.chunk
        for number, first, high in run.rest(position):
            span = run.layout.spans[number]
            if span.bottom not in run.found and self._goes_on(span):
                old = self._kept[span.bottom]
                run.found[span.bottom] = old.grown(span, run.layout.tiling)
                run.kept += old.reached - span.bottom
            low = max(first, run.found[span.bottom].reached) if span.bottom in run.found else first
            if low >= high:
                continue
            # Only the beginning of one large object is needed, except for its references.
            most = min(room, high - low)
            if span.kind is SpanKind.HUMONGOUS and not len(run.references):
                most = min(most, run.layout.grain)
            if wanted and span.kind.young != run.layout.spans[wanted[0][0]].kind.young:
                break  # they are accepted for different reasons
            wanted.append((number, low, low + most))
            room -= most
            if low + most < high or room < _LEAST_PIECE:
                break
        return wanted

    def _take(self, run: _Pass, piece: Piece, marks: Marks | None) -> int:
        """Walk a piece; returns the address up to which it is done with."""
        span = run.layout.spans[piece.span]
        found = run.found.get(span.bottom)
        if found is None:
            found = SpanObjects.begin(span, run.layout.tiling)
        elif found.span != span:  # its top moved meanwhile
            found = found.grown(span, run.layout.tiling)
        run.found[span.bottom] = found
        if piece.words is None:
            found.unknown.append((piece.address, span.top))
            found.reached = span.top
            return span.top
        found.reached = max(found.reached, piece.address)
        if marks is None and span.marked_top > piece.address:
            found.unmarked.append((piece.address, span.marked_top))
        _Step(self, run, found, piece, piece.words, marks).walk()
        if (
            found.reached == piece.address
        ):  # one object that is larger than the piece, all of which has to be seen
            if run.chunk >= MAX_READ_BYTES:
                found.unknown.append((piece.address, span.top))
                found.reached = span.top
            else:
                run.chunk *= 2
                self._copier.warm(run.chunk)
        return found.reached

    def _keep(self, run: _Pass, key: Key | None) -> None:
        """Store the results of old spans for the next time, if nothing was moved meanwhile."""
        if key is None or len(run.references):
            self._kept = {}
            return
        self._kept = {
            one.span.bottom: one
            for one in run.found.values()
            if not one.span.kind.young and not one.unknown and one.reached == one.span.top
        }

    def _together(self, run: _Pass, *, references: bool) -> HeapObjects:
        return HeapObjects.of(
            run.layout,
            [run.found[low] for low in sorted(run.found)],
            self._klasses.names,
            references=run.references if references else None,
            untold=[*run.untold, *run.layout.unknown],
            kept=run.kept,
            collections=run.layout.epoch.collections - run.first,
        )


class _Step:
    """The walk through one piece.

    Args:
        walker: Owner of the room.
        run: The pass.
        found: Results of the span; added to.
        piece: The piece.
        words: Its copy.
        marks: Marks of its live objects; None: not known.
    """

    def __init__(
        self,
        walker: Walker,
        run: _Pass,
        found: SpanObjects,
        piece: Piece,
        words: I64,
        marks: Marks | None,
    ) -> None:
        self._walker, self._run, self._found = walker, run, found
        self._piece, self._words = piece, words
        self._code = machine_code.compiled()
        layout, span = run.layout, found.span
        self._place: I64 = np.array(
            [
                piece.address,
                span.top,
                found.base,
                layout.tiling.tile_bytes.bit_length() - 1,
                span.kind is SpanKind.SURVIVOR,
                len(run.references) != 0,
                span.kind.young,
                layout.low,
                layout.shift,
                layout.tiling.base,
                span.marked_top if marks is not None else 0,
                marks.base if marks is not None else 0,
                marks.shift if marks is not None else 0,
                # Behind the object of a humongous series there is at most what fills its last region.
                span.bottom + 8 if span.kind is SpanKind.HUMONGOUS else span.top,
            ],
            dtype=np.int64,
        )
        self._marks = marks.words if marks is not None else np.zeros(0, dtype=np.int64)
        gaps = layout.fillers if span.kind is SpanKind.ARCHIVE else run.buffers.gaps
        first = int(np.searchsorted(gaps[:, 1], piece.address, side="right"))
        last = int(np.searchsorted(gaps[:, 0], span.top, side="left"))
        has_gaps = span.kind in (SpanKind.EDEN, SpanKind.ARCHIVE)
        self._gaps = gaps[first:last] if has_gaps else gaps[:0]

    def walk(self) -> None:
        """Walk from where the span is on, as far as the piece goes."""
        found, state = self._found, self._walker._state
        piece, top = self._piece, self._found.span.top
        end = piece.address + 8 * len(self._words)
        new: list[I64] = []
        at = found.reached
        while at < min(end, top):
            state[STATE.AT], state[STATE.FILLED] = (at - piece.address) >> 3, 0
            why = self._run_once()
            new.append(self._walker._entries[: state[STATE.FILLED]].copy())
            at = piece.address + 8 * int(state[STATE.AT])
            if why == WalkStop.UNKNOWN:
                self._walker._klasses.add(int(state[STATE.WORD]))
            elif why == WalkStop.ROOM:
                self._more_room()
            elif why == WalkStop.MORE and end < top:
                break  # the next piece begins here
            elif why != WalkStop.DONE:
                at = self._lost(at)
        found.reached = min(at, top)
        found.entries = np.concatenate((found.entries, *new))

    def _run_once(self) -> int:
        walker, klasses = self._walker, self._walker._klasses
        if len(walker._accounting) < len(klasses.classes):
            walker._accounting = np.zeros((len(klasses.classes), 2), dtype=np.int64)
            walker._touched = np.zeros(len(klasses.classes), dtype=np.int64)
        function = arrays.walk if self._code is None else self._code.walk
        found = self._found
        return function(
            self._words,
            len(self._words),
            walker._state,
            self._place,
            klasses.numbers_of_form,
            klasses.keys,
            klasses.numbers,
            klasses.classes,
            klasses.maps,
            self._gaps,
            self._marks,
            walker._accounting,
            walker._touched,
            found.sums,
            walker._entries,
            found.ages,
            self._run.references,
            self._run.generations,
        )

    def _more_room(self) -> None:
        self._walker._entries = np.zeros((2 * len(self._walker._entries), 4), dtype=np.int64)

    def _lost(self, at: int) -> int:
        """Note that the range from an address on is unknown; returns the next known start of an object."""
        anchors = self._run.buffers.anchors
        row = int(np.searchsorted(anchors, at, side="right"))
        top = self._found.span.top
        following = min(int(anchors[row]), top) if row < len(anchors) else top
        self._found.unknown.append((at, following))
        return following


def _whole(key: Key, layout: HeapLayout) -> tuple[object, ...]:
    """Return a value that stays the same as long as results of old spans are valid: a completed marking changes it."""
    return (*key, layout.tiling, layout.epoch.marks)
