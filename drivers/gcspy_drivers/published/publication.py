"""`Publication`: what a program publishes with one `gcspy` of `gcspy.h`: where its control page and its segment are.

Finds them by the name of the mapping, without changing anything in the program. Knows the process's
maps and memory; does not know spaces or the server.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.errors import TargetError

from gcspy_drivers.published.control_page import PAGE_BYTES
from gcspy_drivers.published.names import MAPPED_AS
from gcspy_drivers.published.segment import MOST_BYTES, Head, SegmentReader
from gcspy_drivers.remote.maps import Maps, read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.vectors import MAX_READ_BYTES

__all__ = ["Publication", "find_publications"]

_PAGE: Final = struct.Struct("<8s3Q")
_MAGIC: Final = b"gcspyctl"
_MOST_FOUND: Final = 64


@dataclass(frozen=True)
class Publication:
    """One memory manager that shows itself.

    Attributes:
        maps: The mappings of the process.
        row: The mapping of the control page.
        segment: Reads the segment.
        head: The head, as it was found.
    """

    maps: Maps
    row: int
    segment: SegmentReader
    head: Head


def find_publications(process: Process) -> list[Publication]:
    """Find what a process publishes.

    Returns:
        At least one.

    Raises:
        TargetError: It publishes nothing, or what it publishes cannot be understood.
    """
    maps = read_maps(process)
    memory = Memory(process)
    rows = [
        row
        for row, path in enumerate(maps.path)
        if path.startswith(MAPPED_AS) and maps.end[row] - maps.start[row] == PAGE_BYTES
    ]
    found, wrong = [], ""
    for row in rows[:_MOST_FOUND]:
        try:
            found.append(_publication(process, memory, maps, row))
        except TargetError as error:
            process.check()
            wrong = str(error)
    if not found:
        raise TargetError(
            wrong or f"process {process.pid} publishes nothing: it has no control page of gcspy.h"
        )
    return found


def _publication(process: Process, memory: Memory, maps: Maps, row: int) -> Publication:
    magic, _, base, size = _PAGE.unpack(memory.read(int(maps.start[row]), _PAGE.size))
    if magic != _MAGIC or size > MOST_BYTES or base >= 1 << 48:
        raise TargetError(
            f"process {process.pid}: its control page of gcspy.h is not one: it is being opened, or was overwritten"
        )

    def read(offset: int, size_bytes: int) -> bytes:
        if size_bytes > MAX_READ_BYTES:
            raise TargetError(f"process {process.pid}: {size_bytes} bytes of gcspy.h at once")
        out = np.empty(size_bytes, dtype=np.uint8)
        if not memory.read_into(base + offset, out):
            process.check()
            raise TargetError(
                f"process {process.pid} has no readable gcspy.h segment at {base + offset:#x} ({size_bytes} bytes): it was closed or unmapped"
            )
        return out.tobytes()

    segment = SegmentReader(read, size, f"process {process.pid}")
    return Publication(maps, row, segment, segment.head())
