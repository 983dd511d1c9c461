"""`copy_heap`: all spans of a heap, copied between two collections of a JVM that keeps running.

If a collection moved objects during the copy, all is copied again. Objects that change meanwhile
are copied as they are at that moment, which is not the same for all of them.

Knows readers of heaps, and copies; knows no classes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.hotspot.heaps.archive_fillers import archive_fillers
from gcspy_drivers.hotspot.heaps.g1 import G1Reader, RegionKind
from gcspy_drivers.hotspot.heaps.generational import GenerationalReader
from gcspy_drivers.hotspot.heaps.region_tiles import RegionTiles
from gcspy_drivers.hotspot.objects.layout import (
    Epoch,
    HeapLayout,
    ObjectSpan,
    SpanKind,
    of_generations,
    of_regions,
)
from gcspy_drivers.hotspot.objects.marks import Marks
from gcspy_drivers.hotspot.objects.tlabs import ThreadBuffers
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.copier import Copier
from gcspy_drivers.kit.dump_answers import MOST_BYTES
from gcspy_drivers.kit.tiling import UniformTiling

__all__ = ["CopiedHeap", "CopiedSpan", "copy_heap"]

_PATIENCE_SECS: Final = 5.0
"""A JVM that collects faster than its heap can be copied is refused after this time."""

_WAIT_SECS: Final = 0.002
_TILE_BYTES: Final = 1 << 20
_COLLECTORS: Final = ("Serial", "Parallel", "Epsilon", "G1")

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class CopiedSpan:
    """A span and its copy.

    Attributes:
        span: The span.
        words: Its copy.
        gaps: (k, 2) addresses in it without objects, from and to, in order.
        marks: Marks of live objects; None: none are known for it.
    """

    span: ObjectSpan
    words: I64
    gaps: I64
    marks: Marks | None


@dataclass(frozen=True, eq=False, slots=True)
class CopiedHeap:
    """A copy of a heap.

    Attributes:
        spans: In order of address.
        anchors: (m,) addresses at which an object begins, sorted.
        lost_bytes: Bytes of the heap that could not be copied.
        secs: How long the copy took.
    """

    spans: tuple[CopiedSpan, ...]
    anchors: I64
    lost_bytes: int
    secs: float


class _HeapReader(Protocol):
    """Reads the ranges of one collector's heap."""

    def layout(self) -> HeapLayout | None:
        """Read the ranges to copy."""

    def epoch(self) -> Epoch | None:
        """Read how many collections there were, and whether one is under way."""

    def marks(self, layout: HeapLayout, low: int, high: int) -> Marks | None:
        """Read the marks of a range."""


class _Generations:
    """The heap of Serial, Parallel and Epsilon."""

    def __init__(self, jvm: Jvm) -> None:
        self._reader = GenerationalReader(jvm.memory, jvm.tables, jvm.heap(), jvm.collector)
        self._tiling = UniformTiling.of(*self._reader.reserved, _TILE_BYTES)

    def layout(self) -> HeapLayout | None:
        """Read the ranges to copy."""
        found = self._reader.read()
        return (
            None if found is None else of_generations(found, self._tiling, *self._reader.reserved)
        )

    def epoch(self) -> Epoch | None:
        """Read how many collections there were, and whether one is under way."""
        counted = self._reader.counted()
        return None if counted is None else Epoch(*counted)

    def marks(self, _layout: HeapLayout, _low: int, _high: int) -> Marks | None:
        """None: these collectors keep no marks."""
        return None


class _Regions:
    """The heap of G1."""

    def __init__(self, jvm: Jvm) -> None:
        self._reader = reader = G1Reader(jvm.memory, jvm.tables, jvm.heap())
        self._maps = jvm.maps
        self._tiling = RegionTiles(
            reader.reserved[0], reader.grain, reader.regions, reader.grain
        ).tiling

    def layout(self) -> HeapLayout | None:
        """Read the ranges to copy."""
        found = self._reader.read()
        if found is None:
            return None
        rows = np.flatnonzero(found.known & (found.kind == RegionKind.ARCHIVE))
        lows = found.base + rows * found.grain
        archived = zip(lows.tolist(), (lows + found.used[rows]).tolist(), strict=True)
        fillers = archive_fillers(self._maps.maps, tuple(archived))
        return of_regions(found, self._tiling, fillers)

    def epoch(self) -> Epoch | None:
        """Read how many collections there were, whether one is under way, and where the marks are."""
        counted = self._reader.counted()
        return None if counted is None else Epoch(*counted)

    def marks(self, layout: HeapLayout, low: int, high: int) -> Marks | None:
        """Read the marks of a range."""
        return self._reader.marks(layout.epoch.marks, low, high) if layout.epoch.marks else None


def copy_heap(jvm: Jvm, threads: ThreadBuffers) -> CopiedHeap:
    """Copy the heap of a running JVM.

    Args:
        jvm: The JVM.
        threads: Its threads' buffers.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
        Unsupported: Its collector moves objects while the program runs.
        TargetError: It collected during each copy, or there is no memory for one.
    """
    pid = jvm.process.pid
    if jvm.collector not in _COLLECTORS:
        raise Unsupported(
            f"process {pid}: {jvm.collector} moves objects while the program runs: add --hold, and a heap dump answers",
            found=jvm.collector,
            known=", ".join(_COLLECTORS),
        )
    heap: _HeapReader = _Regions(jvm) if jvm.collector == "G1" else _Generations(jvm)
    copier = Copier(jvm.memory)
    until = time.monotonic() + _PATIENCE_SECS
    while time.monotonic() < until:
        layout = heap.layout()
        if layout is None or layout.epoch.collecting:
            time.sleep(_WAIT_SECS)
            continue
        size = sum(span.top - span.bottom for span in layout.spans)
        if size > copier.room:
            _warm(copier, size, pid)
            # That took time, and the heap may have grown.
            until = time.monotonic() + _PATIENCE_SECS
            continue
        began = time.monotonic()
        found = _copy(heap, layout, copier, threads)
        if heap.epoch() == layout.epoch:
            spans, anchors = found
            lost = size - sum(8 * len(one.words) for one in spans)
            lost += sum(high - low for low, high in layout.unknown)
            return CopiedHeap(spans, anchors, lost, time.monotonic() - began)
    jvm.process.check()
    raise TargetError(
        f"process {pid}: it collected garbage during each copy of its heap in {_PATIENCE_SECS:g} s: add --hold, and a heap dump answers"
    )


def _warm(copier: Copier, size: int, pid: int) -> None:
    if size > MOST_BYTES:
        raise TargetError(
            f"process {pid}: a heap of {size / 1e9:,.0f} GB is not copied; the limit is {MOST_BYTES / 1e9:,.0f} GB"
        )
    try:
        copier.warm(size * 5 // 4)
    except MemoryError:
        raise TargetError(
            f"process {pid}: there is no memory for a copy of its heap of {size / 1e6:,.0f} MB"
        ) from None


def _copy(
    heap: _HeapReader, layout: HeapLayout, copier: Copier, threads: ThreadBuffers
) -> tuple[tuple[CopiedSpan, ...], I64]:
    buffers = threads.read()
    wanted = [(row, span.bottom, span.top) for row, span in enumerate(layout.spans)]
    spans: list[CopiedSpan] = []
    for piece in copier.copy(wanted):
        span = layout.spans[piece.span]
        if piece.words is None:
            continue
        gaps = layout.fillers if span.kind is SpanKind.ARCHIVE else buffers.gaps
        if span.kind not in (SpanKind.EDEN, SpanKind.ARCHIVE):
            gaps = gaps[:0]
        inside = (gaps[:, 1] > span.bottom) & (gaps[:, 0] < span.top)
        marks = (
            heap.marks(layout, span.bottom, min(span.marked_top, span.top))
            if span.marked_top > span.bottom
            else None
        )
        spans.append(CopiedSpan(span, piece.words, np.ascontiguousarray(gaps[inside]), marks))
    return tuple(spans), buffers.anchors
