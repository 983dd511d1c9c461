"""The driver of the semi-space collector (paper, appendix C), at each start and end of a collection.

It maps the heap to one space, both halves side by side, and counts objects,
bytes and roots a tile. `drivers/adding-a-driver.md` walks through it.
"""

from __future__ import annotations

import numpy as np

from gcspy_drivers.semispace.collector import SemispaceHeap
from gcspy_server.api import Control, GatherRequest, PaintStyle, Presentation, Server, UniformNames

__all__ = ["COLLECTION_ENDS", "COLLECTION_STARTS", "SemispaceDriver", "make_server"]

COLLECTION_STARTS, COLLECTION_ENDS = 0, 1


def make_server() -> Server:
    """Make a server with the kinds of event of this collector; all its drivers share it."""
    return Server(
        "Semi-space collector",
        events=["Semispace GC Start", "Semispace GC End"],
        general_info="A small semi-space copying collector, after appendix C of the GCspy paper.",
    )


class SemispaceDriver:
    """Shows a semi-space heap.

    Args:
        server: From `make_server`.
        heap: Shown from now on, at each of its collections.
        tile_bytes: Bytes of heap a tile.
    """

    def __init__(self, server: Server, heap: SemispaceHeap, *, tile_bytes: int = 256) -> None:
        self._server = server
        self._heap = heap
        tiles = -(-(heap.end - heap.base) // tile_bytes)
        self._space = server.add_space(
            "Semispaces",
            names=UniformNames(heap.base, tile_bytes, tiles),
            driver="semispace",
            unused_text="in the idle half",
            main=True,
            description="Both halves of the heap; objects are in one of them.",
        )
        self._used = self._space.add_stream(
            "Used space",
            maximum=tile_bytes,
            suffix=" bytes",
            presentation=Presentation.PERCENT,
            paint_style=PaintStyle.ZERO,
            colour=(200, 60, 50),
        )
        self._objects = self._space.add_stream(
            "Objects",
            maximum=tile_bytes // 32,
            presentation=Presentation.PLUS,
            paint_style=PaintStyle.ZERO,
            order=1,
            description="Objects that begin in the tile.",
        )
        self._roots = self._space.add_stream(
            "Roots",
            maximum=8,
            presentation=Presentation.PLUS,
            paint_style=PaintStyle.ZERO,
            order=2,
            description="References from the program to objects in the tile.",
        )
        heap.listener = self

    def collection_starts(self, cause: str) -> None:
        """The collector calls this before it moves anything."""
        self._event(COLLECTION_STARTS, cause)

    def collection_ends(self, cause: str) -> None:
        """The collector calls this after everything has moved."""
        self._event(COLLECTION_ENDS, cause)

    def _event(self, event: int, cause: str) -> None:
        request = self._server.should_transmit(event)
        if request and request.wants(self._space):
            self._gather(request)
        self._server.finish(event, cause, ("allocated bytes", self._heap.allocated_bytes))

    def _gather(self, request: GatherRequest) -> None:
        self._space.reset()
        objects = np.array(list(self._heap.objects()), dtype=np.uint64).reshape(-1, 2)
        addresses, sizes = objects[:, 0], objects[:, 1]
        if request.wants(self._space, self._used):
            self._space.spread(self._used, addresses, sizes)
        if request.wants(self._space, self._objects):
            self._space.count_at(self._objects, addresses)
        if request.wants(self._space, self._roots):
            self._space.count_at(
                self._roots, np.array([root for root in self._heap.roots if root], dtype=np.uint64)
            )
        self._mark_halves()
        start, free = self._heap.in_use
        self._space.info = (
            f"{len(objects)} objects, {free - start} of {self._heap.semispace_bytes} bytes used"
        )
        # A sum over tiles would be right for bytes, but objects are better counted once.
        self._objects.set_summary(len(objects))

    def _mark_halves(self) -> None:
        """Mark the idle half, and draw a line between the two."""
        start, _ = self._heap.in_use
        middle = int(self._space.tiles_of([self._heap.base + self._heap.semispace_bytes])[0])
        control = self._space.control
        idle = slice(middle, None) if start == self._heap.base else slice(0, middle)
        control[idle] = Control.UNUSED
        control[middle] |= Control.SEPARATOR
