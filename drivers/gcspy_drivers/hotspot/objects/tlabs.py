"""Threads' allocation buffers: the range between a buffer's top and its end has no objects yet, and cannot be walked.

They are read before the heap is copied: objects that a thread adds meanwhile are left out, which is
correct for the moment before. An object begins where a buffer begins or ends, so that a walk that
lost its way finds it again there.

Knows threads and their buffers; knows no objects. Source: OpenJDK src/hotspot/share/gc/shared/threadLocalAllocBuffer.hpp
(``end_reserve``), runtime/threadSMR.hpp, JDK 8 and 11 runtime/thread.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.objects.form import ObjectForm
from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory

__all__ = ["Tlabs", "ThreadBuffers"]

_MOST_THREADS: Final = 1 << 16
_WORD: Final = 8
_LEAST_RESERVE_WORDS: Final = 2
_MOST_RESERVE_WORDS: Final = 1 << 12

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Tlabs:
    """The buffers of a moment.

    Attributes:
        gaps: (n, 2) first address without an object and the one behind the buffer, in order of address, none over another.
        anchors: (m,) addresses at which an object begins, sorted.
    """

    gaps: I64
    anchors: I64


class ThreadBuffers:
    """Reads the buffers of one JVM's threads.

    Args:
        memory: The target's memory.
        tables: Its exports.
        form: Layout of objects.
    """

    def __init__(self, memory: Memory, tables: VmTables, form: ObjectForm) -> None:
        self._memory = memory
        self._list = tables.static("ThreadsSMRSupport", "_java_thread_list")
        self._threads = (
            tables.offset("ThreadsList", "_threads"),
            tables.offset("ThreadsList", "_length"),
        )
        self._first = tables.static("Threads", "_thread_list")
        self._next = tables.offset("JavaThread", "_next")
        buffer = tables.offset("Thread", "_tlab")
        kind = "ThreadLocalAllocBuffer"
        fields = [tables.offset(kind, name) for name in ("_start", "_top", "_end")]
        self._fields = (
            None if buffer is None or None in fields else [buffer + (one or 0) for one in fields]
        )
        aligning = self._number(tables.static("CollectedHeap", "_lab_alignment_reserve"), 8)  # 25
        ahead = self._number(tables.static(kind, "_reserve_for_allocation_prefetch"), 4)
        # There is always room for what fills the rest: an array of int without elements.
        least = max(-(-(form.length_offset + 4) // _WORD), _LEAST_RESERVE_WORDS)
        words = min(max(aligning, ahead, least), _MOST_RESERVE_WORDS)
        self._reserve = -(-words * _WORD // form.alignment) * form.alignment

    def read(self) -> Tlabs:
        """Read all buffers; one that contradicts itself is left out.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        none = np.zeros((0, 2), dtype=np.int64)
        threads = self._all_threads()
        if self._fields is None or not len(threads):
            return Tlabs(none, none[:, 0])
        low = min(self._fields)
        span = max(self._fields) - low + _WORD
        data, ok = self._memory.read_many(threads + np.uint64(low), span)
        start, top, end = (
            data[ok][:, at - low : at - low + _WORD].copy().view("<i8")[:, 0] for at in self._fields
        )
        good = (start > 0) & (start <= top) & (top <= end) & ((start | top | end) % _WORD == 0)
        start, top, end = start[good], top[good], end[good] + self._reserve
        order = np.argsort(top, kind="stable")
        gaps = np.stack((top[order], end[order]), axis=1)
        apart = np.ones(len(gaps), dtype=np.bool_)
        apart[1:] = gaps[1:, 0] >= np.maximum.accumulate(gaps[:, 1])[:-1]
        return Tlabs(np.ascontiguousarray(gaps[apart]), np.unique(np.concatenate((start, end))))

    def _all_threads(self) -> npt.NDArray[np.uint64]:
        if self._list is not None and None not in self._threads:
            threads_at, length_at = (one or 0 for one in self._threads)
            found = self._number(self._list, _WORD)
            length = self._number(found + length_at, 4) if found else 0
            place = self._number(found + threads_at, _WORD) if found else 0
            if place and 0 < length <= _MOST_THREADS:
                data = self._memory.try_read(place, length * _WORD)
                return np.frombuffer(data or b"", dtype="<u8")
            return np.zeros(0, dtype=np.uint64)
        threads: list[int] = []
        if self._first is not None and self._next is not None:
            thread = self._number(self._first, _WORD)
            while thread and len(threads) < _MOST_THREADS:
                threads.append(thread)
                thread = self._number(thread + self._next, _WORD)
        return np.array(threads, dtype=np.uint64)

    def _number(self, place: int | None, size_bytes: int) -> int:
        found = None if place is None else self._memory.try_read(place & (2**64 - 1), size_bytes)
        return int.from_bytes(found or b"", "little")
