"""Ranges without objects in regions of archived objects: those that were not mapped from the archive's file.

Up to JDK 20 the archive of class data is mapped at the end of G1's heap, where it seldom begins at
a region boundary. The VM fills the space before it with arrays of int, of the same class as the
program's: up to a region each, 30 MB if regions have 32. Only the mappings distinguish them. If
there is no file mapping, because the VM read the archive instead, they cannot be distinguished, and
all count as objects.

Knows mappings and ranges of addresses; knows no objects. Source: OpenJDK 17 src/hotspot/share/gc/g1/g1CollectedHeap.cpp
(``fill_archive_regions``), cds/filemap.cpp (``map_heap_data``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.maps import Maps

__all__ = ["archive_fillers"]


def archive_fillers(maps: Maps, ranges: Sequence[tuple[int, int]]) -> npt.NDArray[np.int64]:
    """Return the ranges of archived regions that contain only fillers.

    Args:
        maps: The process's mappings.
        ranges: Addresses in use in each of these regions, from and to, in order.

    Returns:
        (n, 2) addresses, from and to, in order.
    """
    found: list[tuple[int, int]] = []
    rows = np.flatnonzero(maps.inode).tolist()
    mapped = [(int(maps.start[row]), int(maps.end[row])) for row in rows]
    for low, high in ranges:
        at, of_file = low, [(start, end) for start, end in mapped if start < high and end > low]
        for start, end in of_file:
            if start > at:
                found.append((at, start))
            at = max(at, end)
        if of_file and at < high:
            found.append((at, high))
    return np.array(found, dtype=np.int64).reshape(-1, 2)
