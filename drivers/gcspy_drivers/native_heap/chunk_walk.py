"""`ChunkWalker`: walks the chunks of a span, window by window, and sums them by kind, place and size.

While the program runs, chunks are divided and joined during the read. A walk that meets a contradiction reads once more from there;
then everything is unknown up to the next free chunk that its bin links both ways, which is certainly a chunk. Other places that look like
chunks are mostly not: freed memory is full of old headers.

Knows chunks; does not know arenas. Source: glibc malloc/malloc.c, "Chunk overview".
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.arenas import Span
from gcspy_drivers.native_heap.layout import HEADER_BYTES
from gcspy_drivers.native_heap.malloc_library import malloc_library
from gcspy_drivers.native_heap.present_pages import PresentMemory
from gcspy_drivers.native_heap.walk_state import (
    CLASSES,
    ChunkKind,
    Damage,
    Outcome,
    WalkState,
    WalkSums,
)
from gcspy_drivers.native_heap.walk_twin import walk_chunks
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.memory_ages import MemoryAges

__all__ = ["ChunkWalker", "KnownChunks", "SpanWalk"]

WINDOW_BYTES: Final = 4 << 20
_MOST_RUNS: Final = WINDOW_BYTES // PAGE_BYTES + 2
MOST_PINS: Final = 64
"""Chunks in use that are listed for a span; a span with more is not kept by a few."""

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
_NO_AGES: Final = np.zeros(0, dtype=np.uint8)


@dataclass(frozen=True, eq=False, slots=True)
class KnownChunks:
    """Chunks that lists of malloc name, each (n,), sorted.

    Attributes:
        cached: In caches of threads.
        fast: In fast bins.
        free: In bins, linked both ways.
    """

    cached: U64
    fast: U64
    free: U64

    def within(self, begin: int, end: int) -> KnownChunks:
        """Return those of a range of addresses."""

        def part(chunks: U64) -> U64:
            first, last = np.searchsorted(chunks, np.array([begin, end], dtype=np.uint64))
            return np.ascontiguousarray(chunks[first:last])

        return KnownChunks(part(self.cached), part(self.fast), part(self.free))


@dataclass(frozen=True, eq=False, slots=True)
class SpanWalk:
    """The result of a walk over a span.

    Attributes:
        span: The span.
        first_cell: Address of cell 0.
        cell_bytes: Size of a cell.
        bytes: (kinds, cells) bytes of each `ChunkKind`.
        begins: (cells,) chunks in use that begin in the cell.
        holes: (cells,) the largest run of free chunks that begins in the cell.
        counts: (kinds, classes) chunks by size class.
        sums: (kinds, classes) their bytes.
        runs: (n, 2) address and pages of whole free pages, without those at the top.
        pins: (n, 2) address and bytes of the first chunks in use.
        used: Number of chunks in use.
        last_used: Address and bytes of the last chunk in use; zeros: none.
        top_begin: Where the free memory at the top begins: the top chunk, or free chunks before it.
        unknown: (n, 2) first and end address of what contradicted itself.
        found: (n, 3) chunk, size and kind of each wanted address; zeros: none.
        aged: (ages, classes) bytes of chunks in use by the age of their pages; zeros: not asked for.
    """

    span: Span
    first_cell: int
    cell_bytes: int
    bytes: U32
    begins: U32
    holes: U32
    counts: U64
    sums: U64
    runs: U64
    pins: U64
    used: int
    last_used: tuple[int, int]
    top_begin: int
    unknown: U64
    found: U64
    aged: U64

    @property
    def unknown_bytes(self) -> int:
        """Bytes that contradicted themselves."""
        return int((self.unknown[:, 1] - self.unknown[:, 0]).sum())

    @property
    def largest_hole(self) -> int:
        """The largest run of free chunks, bytes, without the top."""
        return int(self.holes.max(initial=0))


class ChunkWalker:
    """Walks spans of one process.

    Args:
        pages: Its memory.
        window_bytes: How much is copied at a time.
    """

    def __init__(self, pages: PresentMemory, *, window_bytes: int = WINDOW_BYTES) -> None:
        self._pages = pages
        self._library = malloc_library()
        self._buffer = np.zeros(window_bytes + HEADER_BYTES, dtype=np.uint8)
        self._window = window_bytes
        self._runs = np.zeros((_MOST_RUNS, 2), dtype=np.uint64)

    def walk(
        self,
        span: Span,
        known: KnownChunks,
        *,
        main: bool,
        cell_bytes: int,
        wanted: U64 | None = None,
        linked: Callable[[], U64] | None = None,
        ages: MemoryAges | None = None,
    ) -> SpanWalk:
        """Walk one span.

        Args:
            span: The span.
            known: Chunks that lists name.
            main: Whether it belongs to the main arena.
            linked: Returns the sorted chunks of bins, if a walk needs them to go on; None: those of `known`.
            ages: The ages of memory; None: chunks are not summed by age.
            cell_bytes: Size of the cells, a power of two.
            wanted: (n,) sorted addresses whose chunk is asked for; None: none.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        known = known.within(span.begin, span.end)
        first_cell = span.heap // cell_bytes * cell_bytes
        cells = max(1, -(-(span.end + HEADER_BYTES - first_cell) // cell_bytes))
        sums = WalkSums(
            bytes=np.zeros((len(ChunkKind), cells), dtype=np.uint32),
            begins=np.zeros(cells, dtype=np.uint32),
            holes=np.zeros(cells, dtype=np.uint32),
            counts=np.zeros((len(ChunkKind), CLASSES), dtype=np.uint64),
            sums=np.zeros((len(ChunkKind), CLASSES), dtype=np.uint64),
            runs=self._runs,
            pins=np.zeros((MOST_PINS, 2), dtype=np.uint64),
            cached=known.cached,
            fast=known.fast,
            wanted=np.zeros(0, dtype=np.uint64) if wanted is None else wanted,
            ages=_NO_AGES if ages is None else ages.steps(span.begin, span.end + HEADER_BYTES),
        )
        walk = _Walk(self._pages, sums, span, linked or (lambda: known.free), self._step)
        walk.state.first_cell, walk.state.cell_shift = first_cell, cell_bytes.bit_length() - 1
        walk.state.non_main = int(not main)
        unit_bytes = PAGE_BYTES if ages is None else ages.unit_bytes
        walk.state.first_unit = span.begin // unit_bytes * unit_bytes
        walk.state.unit_shift = unit_bytes.bit_length() - 1
        walk.go(self._buffer, self._window)
        state = walk.state
        return SpanWalk(
            span=span,
            first_cell=first_cell,
            cell_bytes=cell_bytes,
            bytes=sums.bytes,
            begins=sums.begins,
            holes=sums.holes,
            counts=sums.counts,
            sums=sums.sums,
            runs=np.concatenate([*walk.runs, np.zeros((0, 2), dtype=np.uint64)]),
            pins=sums.pins[: min(state.pin_at, MOST_PINS)],
            used=state.pin_at,
            last_used=(state.last_used, state.last_used_size),
            top_begin=(state.hole or span.end) if span.has_top else span.end,
            unknown=np.array(walk.unknown, dtype=np.uint64).reshape(-1, 2),
            found=sums.found,
            aged=sums.aged,
        )

    def _step(self, state: WalkState, sums: WalkSums, words: U64, base: int) -> Outcome:
        if self._library is None:
            return walk_chunks(state, sums, words, base)
        return Outcome(
            self._library.released.gcspy_walk_chunks(
                ctypes.byref(state),
                ctypes.c_void_p(words.ctypes.data),
                ctypes.c_uint64(base),
                ctypes.c_uint64(len(words)),
            )
        )


_Step = Callable[[WalkState, WalkSums, U64, int], Outcome]


class _Walk:
    """One walk over one span."""

    def __init__(
        self,
        pages: PresentMemory,
        sums: WalkSums,
        span: Span,
        linked: Callable[[], U64],
        step: _Step,
    ) -> None:
        self._pages, self._sums, self._span, self._step = pages, sums, span, step
        self._linked = linked
        self._retried = -1
        self.runs: list[U64] = []
        self.unknown: list[tuple[int, int]] = []
        self.state = sums.state()
        self.state.position, self.state.end = span.begin, span.end

    def go(self, buffer: npt.NDArray[np.uint8], window: int) -> None:
        """Walk until the end of the span."""
        state, span = self.state, self._span
        behind = span.end + (HEADER_BYTES if span.has_top else 0)
        while state.position < span.end:
            base = state.position
            out = buffer[: min(window, behind - base)]
            if not self._pages.read_into(base, out):
                self._pages.memory.process.check()
                self._skip(min(base + len(out), span.end))
                continue
            if not self._through(out.view(np.uint64), base):
                break

    def _through(self, words: U64, base: int) -> bool:
        """Walk through a window; return whether the span goes on."""
        state = self.state
        while True:
            outcome = self._step(state, self._sums, words, base)
            if state.run_at:
                self.runs.append(self._sums.runs[: state.run_at].copy())
                state.run_at = 0
            if outcome is Outcome.ROOM_ENDS:
                continue
            if outcome is Outcome.SPAN_ENDS:
                return False
            if outcome is Outcome.WINDOW_ENDS and state.position == base:
                # One chunk is longer than the window: only what stands behind it is read.
                if self._read_ahead(words, base):
                    continue
                outcome = Outcome.BROKEN
            if outcome is Outcome.BROKEN:
                self._go_on_after_damage()
            return True

    def _read_ahead(self, words: U64, base: int) -> bool:
        state = self.state
        size = int(words[1]) & ~7 if len(words) > 1 else 0
        ahead = base + size
        if ahead == state.ahead_at or not size or ahead > state.end:
            return False
        raw = self._pages.memory.try_read(ahead, HEADER_BYTES)
        if raw is None:
            return False
        state.ahead_at = ahead
        state.ahead[0], state.ahead[1] = (int(word) for word in np.frombuffer(raw, dtype=np.uint64))
        return True

    def _go_on_after_damage(self) -> None:
        state = self.state
        if self._retried != state.position and state.damage != Damage.FENCE:
            self._retried = state.position
            return  # it may have changed between two windows: read it once more
        free = self._linked()
        following = int(np.searchsorted(free, np.uint64(state.position), side="right"))
        inside = following < len(free) and int(free[following]) < state.end
        self._skip(int(free[following]) if inside else state.end)

    def _skip(self, position: int) -> None:
        """Go on at another chunk; what is before it is unknown."""
        state = self.state
        self.unknown.append((state.position, position))
        state.position, state.hole, state.after_free = position, 0, 0
