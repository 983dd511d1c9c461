"""The heap of ZGC as a view: a tile is a page, whatever its size.

Pages come and go; a tile's name is where its page begins in the heap's own addresses, so that what stays keeps its history. Knows a reading
and a space; knows no structures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.heaps.heap_view import UnwalkedHeap
from gcspy_drivers.hotspot.heaps.zgc import OLD_AGE, PAGE_KINDS, ZReader, ZReading
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.streams import add_bytes, add_count, add_enumeration
from gcspy_server.api import (
    ExtentNames,
    GatherRequest,
    PaintStyle,
    Server,
    ServerStream,
)

__all__ = ["ZView"]

_I8_MAX = (1 << 63) - 1


class ZView(UnwalkedHeap):
    """The heap of one JVM with ZGC.

    Args:
        jvm: The JVM.
        server: The server to add the space to.

    Raises:
        TargetError: It does not export the required fields, or cannot be read now.
    """

    def __init__(self, jvm: Jvm, server: Server) -> None:
        generational = jvm.collector == "Generational ZGC"
        most = jvm.flags.number("MaxHeapSize") or 0
        self._most = most
        self._reader = ZReader(
            jvm.memory, jvm.tables, jvm.heap(), most_bytes=most, generational=generational
        )
        first = self._reading = self._reader.read()
        if first is None:
            raise TargetError(
                f"process {jvm.process.pid}: its table of pages could not be read: try again"
            )
        missing = (
            ["live bytes"]
            if self._reader.tells_used
            else ["live bytes", "used bytes", "the collection of a page"]
        )
        if generational and first.age is None:
            missing.append("generation and age")
        self._names = ExtentNames(first.base, first.size)
        self._space = server.add_space(
            "Heap",
            names=self._names,
            driver="hotspot",
            tile_title="Page ",
            main=True,
            description="Pages of ZGC in order of their offset in the heap. "
            f"Not available, as this version does not export them: {', '.join(missing)}. No card table is exported"
            + (
                ""
                if self._reader.tells_used
                else ". Freed pages may still be included: this version does not mark them"
            ),
        )
        self._size = self._bytes("Size", 3, "Bytes of the page")
        self._kind = self._enum(
            "Type", 1, PAGE_KINDS, "Small pages hold small objects; a large page holds one object"
        )
        self._used = (
            self._bytes(
                "Used", 0, "Bytes below the page's top, in percent of its size", of=self._size
            )
            if self._reader.tells_used
            else None
        )
        self._sequence = (
            self._number(
                "Made in collection", 4, "Number of the collection in which the page was allocated"
            )
            if self._reader.tells_sequence
            else None
        )
        self._generation = self._age = None
        if first.age is not None:
            self._generation = self._enum(
                "Generation", 2, ("young", "old"), "The page's generation"
            )
            self._age = self._number(
                "Age", 5, f"Collections survived by its objects; {OLD_AGE}: old generation"
            )

    @property
    def extent(self) -> tuple[int, int]:
        """Start and end of the heap, by its own offsets."""
        return 0, self._most

    @property
    def tile_bytes(self) -> int | None:
        """None: a tile is a page."""
        return None

    @property
    def pool_names(self) -> Sequence[str]:
        """Pools of pages by their kind."""
        return tuple(f"{kind} pages" for kind in PAGE_KINDS)

    def cut(self, tile_bytes: int) -> None:
        """Nothing: a tile is a page."""

    def read(self, request: GatherRequest, level: int, *, still: bool = False) -> None:
        """Read the pages; all levels read the same, and collector threads run at a safepoint, too."""
        del request, level, still
        self._reading = self._reader.read()

    def fill(self, request: GatherRequest) -> Sequence[Pool]:
        """Fill the space, and return the pools."""
        if request.wants(self._space):
            self._fill(self._reading)
        return self._pools(self._reading)

    def _fill(self, reading: ZReading | None) -> None:
        space = self._space
        if reading is None:
            space.reset()
            for each in space.streams:
                each.set_unknown(np.ones(space.count, dtype=np.bool_))
            space.info = "the table of pages could not be read: everything is unknown"
            return
        names = ExtentNames(reading.base, reading.size)
        if names != self._names:
            self._names = names
            space.resize(names)
        space.reset()
        self._size.data[:] = reading.size.astype(np.int64)
        self._kind.data[:] = reading.kind
        generation = None if reading.age is None else (reading.age == OLD_AGE).astype(np.uint8)
        for stream, values in (
            (self._used, reading.used),
            (self._sequence, reading.sequence),
            (self._age, reading.age),
            (self._generation, generation),
        ):
            if stream is None:
                continue
            if values is None:
                stream.set_unknown(np.ones(space.count, dtype=np.bool_))
            else:
                stream.data[:] = values
        counts = np.bincount(reading.kind, minlength=len(PAGE_KINDS)).tolist()
        said = ", ".join(f"{count} {name}" for count, name in zip(counts, PAGE_KINDS, strict=True))
        space.info = f"{len(reading.base)} pages of {int(reading.size.sum()):,} bytes: {said}"
        if reading.unsure:
            space.info += f"; {reading.unsure} more changed during each read and are not shown"

    def _pools(self, reading: ZReading | None) -> list[Pool]:
        pools = []
        for kind, name in enumerate(self.pool_names):
            if reading is None or reading.unsure:
                pools.append(Pool(name, None, None, None))
                continue
            mine = reading.kind == kind
            used = None if reading.used is None else int(reading.used[mine].sum())
            pools.append(Pool(name, used, int(reading.size[mine].sum()), None))
        return pools

    def _bytes(
        self, name: str, order: int, description: str, of: ServerStream | None = None
    ) -> ServerStream:
        return add_bytes(self._space, name, description, order=order, of=of)

    def _number(self, name: str, order: int, description: str) -> ServerStream:
        return add_count(self._space, name, description, order=order, paint_style=PaintStyle.PLAIN)

    def _enum(
        self, name: str, order: int, names: tuple[str, ...], description: str
    ) -> ServerStream:
        return add_enumeration(self._space, name, names, description, order=order)
