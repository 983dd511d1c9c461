"""The space "Process memory" of a Python: all memory by kind, pymalloc's arenas among it.

Knows the kit's space; knows no maps.
"""

from __future__ import annotations

from gcspy_drivers.kit.memory_space import MemorySpace
from gcspy_server.api import Server

__all__ = ["open_memory_space"]


def open_memory_space(server: Server, *, main: bool) -> MemorySpace:
    """Add the space.

    Args:
        server: The server to add the space to.
        main: Whether it is the main space.
    """
    return MemorySpace(
        server,
        main=main,
        driver="cpython",
        arenas="pymalloc arenas",
        description="All memory of the process by kind. pymalloc serves only blocks of up to 512 bytes",
    )
