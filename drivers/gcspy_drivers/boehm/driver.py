"""The driver for the Boehm collector: blocks, marks and free lists of its heap, from outside while the program runs.

Level 1 reads the size of the heap and the number of the collection, level 2 the headers of all
blocks, level 3 also their mark bytes and the free lists. A header that does not belong to its
block, or a block that overlaps another one, was read while it changed: it is left out, and the text
of the space says how many bytes that are. Where the blocks add up to the size of the heap that the
collector counts, nothing is missing.

Knows the collector's structures and spaces; does not know any program.
"""

from __future__ import annotations

from collections.abc import Mapping

from gcspy_protocol.errors import TargetError

from gcspy_drivers.boehm.collector import Collector
from gcspy_drivers.boehm.recognition import find
from gcspy_drivers.boehm.spaces import FreeBlockSpace, HeapSpace, KindSpace
from gcspy_drivers.kit.memory_history_space import HeapBytes
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_drivers.remote.process import Process
from gcspy_server.api import AttachOptions, GatherRequest, Recognition

__all__ = ["BoehmDriver"]

_COLLECTIONS = 1
_BLOCKS, _MARKS = 2, 3
_MANAGER = "Boehm GC"


class BoehmDriver(SampledDriver):
    """Shows the heap of one process with libgc.

    Args:
        process: The process; closed here.
        options: The user's choices.
    """

    name = "boehm"
    runtime = "Boehm GC"
    levels = (
        "1: size of the heap, number of the collection",
        "2: blocks, by their headers",
        "3: mark bytes and free lists",
    )
    noticed = _COLLECTIONS

    def __init__(self, process: Process, options: AttachOptions) -> None:
        super().__init__(process, options)
        self._collector = Collector(process)
        self._number = self._collector.number()
        self._heap_bytes: HeapBytes | None = None

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        """Check quickly whether a process has the Boehm collector."""
        return find(pid)

    @property
    def events(self) -> tuple[str, ...]:
        """The clock, and the collections that were noticed at it."""
        return ("Clock", "Collections")

    @property
    def version(self) -> str:
        """Name of the library; see `Collector.version`."""
        return self._collector.version

    @property
    def facts(self) -> Mapping[str, str]:
        """Where the library is."""
        return {"library": self._collector.path}

    @property
    def managers(self) -> tuple[str, ...]:
        """The collector."""
        return (_MANAGER,)

    def heap_bytes(self) -> Mapping[str, HeapBytes]:
        """Return bytes in blocks with objects, and the size of the heap."""
        return {} if self._heap_bytes is None else {_MANAGER: self._heap_bytes}

    def start(self) -> None:
        """Add the spaces."""
        self._heap = HeapSpace(self.server, self.options.tiles)
        self._kinds = KindSpace(self.server)
        self._free = FreeBlockSpace(self.server)

    def changes(self) -> str:
        """Return how many collections there were since the last tick."""
        try:
            number = self._collector.number()
        except TargetError:
            self.process.check()
            return ""
        happened, self._number = number - self._number, number
        if happened <= 0:
            return ""
        return f"collection {number}" if happened == 1 else f"collections {number - happened + 1} to {number}"  # fmt: skip

    def gather(self, request: GatherRequest) -> None:
        """Read the blocks, and fill the requested spaces."""
        level = min(self.level, request.level)
        self._heap_bytes = None
        wanted = [one for one in (self._heap, self._kinds, self._free) if request.wants(one.space)]
        try:
            size = self._collector.heap_bytes()
        except TargetError:
            self.process.check()
            size = None
        self._heap_bytes = HeapBytes(used=None, committed=size)
        if level < _BLOCKS:
            return
        self.server.lighten(level)
        try:
            table = self._collector.blocks(marks=level >= _MARKS)
            lists = self._collector.free_lists() if level >= _MARKS else None
        except TargetError:
            self.process.check()
            for one in wanted:
                one.hide()
            return
        sound = ~table.overlaps
        seen = int(table.span_bytes[sound].sum())
        used = int(table.span_bytes[sound & ~table.free].sum())
        whole = size is not None and seen == size and not table.unknown
        self._heap_bytes = HeapBytes(used=used if whole else None, committed=size)
        if self._heap in wanted:
            self._heap.fill(table)
            self._heap.space.info = _sum_text(seen, size, whole=whole)
        note = "" if whole else "; blocks that could not be read are unknown, and not counted"
        if self._kinds in wanted:
            self._kinds.fill(table, lists, note)
        if self._free in wanted:
            self._free.fill(table, note)


def _sum_text(seen: int, size: int | None, *, whole: bool) -> str:
    if whole:
        return f"all {seen:,} bytes of the heap, as the collector counts them"
    if size is None:
        return f"{seen:,} bytes were read; the size of the heap is unknown"
    return f"{seen:,} of {size:,} bytes were read; the others changed meanwhile: unknown"
