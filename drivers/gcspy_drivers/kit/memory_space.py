"""The space "Process memory": a tile is a kind of memory, and resident bytes sum to the process's RSS.

Maps a `MemoryMap` to streams; does not know mappings.
"""

from __future__ import annotations

from gcspy_drivers.kit.memory_map import MemoryKind, MemoryMap
from gcspy_drivers.kit.streams import add_amount, hide_all
from gcspy_server.api import Server, StringNames

__all__ = ["MemorySpace"]

_NAMES = {
    MemoryKind.MALLOC: "malloc heaps",
    MemoryKind.ANONYMOUS: "other anonymous memory",
    MemoryKind.FILES: "files",
    MemoryKind.STACKS: "stacks",
    MemoryKind.SHARED: "shared memory",
    MemoryKind.KERNEL: "kernel",
}
_STREAMS = (
    ("Resident", " bytes", "Resident bytes; the sum is the process's RSS"),
    ("Mapped", " bytes", "Bytes of address space"),
    ("Swapped", " bytes", "Bytes in swap"),
    ("Mappings", "", "Number of mappings; arenas are inside other mappings"),
)


class MemorySpace:
    """The process's memory as a space.

    Args:
        server: The server to add the space to.
        main: Whether it is the main space.
        driver: The driver that adds it.
        arenas: Name of the ranges that `MemoryMapper.read` gets: ``pymalloc arenas``.
        description: A sentence about the space.
    """

    def __init__(
        self,
        server: Server,
        *,
        main: bool,
        driver: str,
        arenas: str = "arenas",
        description: str = "All memory of the process by kind",
    ) -> None:
        names = {MemoryKind.ARENAS: arenas, **_NAMES}
        self.space = server.add_space(
            "Process memory",
            names=StringNames([names[kind] for kind in MemoryKind]),
            driver=driver,
            tile_title="Kind ",
            main=main,
            description=description,
        )
        for order, (name, suffix, about) in enumerate(_STREAMS):
            add_amount(self.space, name, about, order=order, suffix=suffix)

    def fill(self, found: MemoryMap | None, note: str = "") -> None:
        """Fill the space.

        Args:
            found: The memory map; None: everything is unknown.
            note: When it was read, if not at this event.
        """
        self.space.reset()
        if found is None:
            hide_all(self.space.streams)
            self.space.info = "the memory map could not be read"
            return
        columns = (found.rss_bytes, found.virtual_bytes, found.swapped_bytes, found.mappings)
        for stream, column in zip(self.space.streams, columns, strict=True):
            stream.data[:] = column
        self.space.info = f"RSS {found.total_rss_bytes:,} bytes" + (f"; {note}" if note else "")
        if not found.arenas_exact:
            self.space.info += "; the arenas' share is an estimate, because the kernel does not show the pages (pagemap)"
