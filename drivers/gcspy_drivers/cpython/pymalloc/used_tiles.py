"""The used tiles of one pymalloc, and the first tiles of its arenas. Knows spaces and tilings of pools."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.kit.grouped_tiling import GroupedTiling
from gcspy_server.api import Control, ServerSpace

__all__ = ["show_carved"]


def show_carved(
    space: ServerSpace, reading: HeapReading, tiling: GroupedTiling
) -> npt.NDArray[np.int64]:
    """Mark the used tiles and the starts of arenas; returns how many pools of each tile are carved, (tiles,)."""
    carved = tiling.sums(reading.pools.state != PoolState.UNCARVED)
    control = space.control
    control[:] = np.where(carved != 0, Control.USED, Control.UNUSED)
    control[tiling.begins_part] |= np.uint8(Control.SEPARATOR)
    return carved
