"""The space "Process memory": a tile is a kind of memory, and resident bytes sum to the process's RSS.

Maps a `MemoryMap` to streams; knows no maps.
"""

from __future__ import annotations

import numpy as np

from gcspy_drivers.cpython.memory_map import MemoryKind, MemoryMap
from gcspy_server.api import PaintStyle, Presentation, Server, StringNames

__all__ = ["MemorySpace"]

_NAMES = {
    MemoryKind.ARENAS: "pymalloc arenas",
    MemoryKind.MALLOC: "malloc heaps",
    MemoryKind.ANONYMOUS: "other anonymous memory",
    MemoryKind.FILES: "files",
    MemoryKind.STACKS: "stacks",
    MemoryKind.SHARED: "shared memory",
    MemoryKind.KERNEL: "kernel",
}
_STREAMS = (
    ("Resident", " bytes", "Bytes in memory; the sum is the process's RSS"),
    ("Mapped", " bytes", "Bytes of address space"),
    ("Swapped", " bytes", "Bytes that were moved out to swap"),
    ("Mappings", "", "How many mappings there are; arenas are inside of others"),
)


class MemorySpace:
    """The process's memory as a space.

    Args:
        server: Where the space is added.
        main: Whether it is the space to look at first.
    """

    def __init__(self, server: Server, *, main: bool) -> None:
        self.space = server.add_space(
            "Process memory",
            names=StringNames([_NAMES[kind] for kind in MemoryKind]),
            driver="cpython",
            tile_title="Kind ",
            main=main,
            description="All memory of the process by kind: pymalloc has only blocks of up to 512 bytes",
        )
        for order, (name, suffix, description) in enumerate(_STREAMS):
            self.space.add_stream(
                name,
                dtype="i8",
                maximum=(1 << 63) - 1,
                suffix=suffix,
                presentation=Presentation.MAX_VAR,
                paint_style=PaintStyle.ZERO,
                order=order,
                description=description,
            )

    def fill(self, found: MemoryMap | None) -> None:
        """Give the space what was read; None: everything is unknown."""
        self.space.reset()
        if found is None:
            for stream in self.space.streams:
                stream.set_unknown(np.ones(len(MemoryKind), dtype=np.bool_))
            self.space.info = "the memory map could not be read"
            return
        columns = (found.rss_bytes, found.virtual_bytes, found.swapped_bytes, found.mappings)
        for stream, column in zip(self.space.streams, columns, strict=True):
            stream.data[:] = column
        self.space.info = f"RSS {found.total_rss_bytes:,} bytes"
        if not found.arenas_exact:
            self.space.info += "; the arenas' share is an estimate, because the kernel does not show the pages (pagemap)"
