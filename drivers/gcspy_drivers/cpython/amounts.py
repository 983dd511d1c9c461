"""What the spaces of one pymalloc have in common: streams of amounts, tiles that were not read, tiles that are not carved yet.

Knows spaces and tilings; does not know what the amounts are of.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.obmalloc import HeapReading
from gcspy_drivers.cpython.pools import PoolState
from gcspy_drivers.cpython.tiling import Tiling
from gcspy_server.api import Control, PaintStyle, Presentation, ServerSpace, ServerStream

__all__ = ["I8_MAX", "U4_MAX", "add_amount", "hide", "show_carved", "show_tiles"]

I8_MAX = (1 << 63) - 1
U4_MAX = (1 << 32) - 1


def add_amount(
    space: ServerSpace,
    name: str,
    description: str,
    *,
    order: int,
    most: int = I8_MAX,
    suffix: str = "",
    of: ServerStream | None = None,
) -> ServerStream:
    """Add a stream of amounts, of which zero is painted as nothing.

    Args:
        space: Where it is added.
        name: Its name.
        description: A sentence about it.
        order: Its importance, 0 first.
        most: The largest value of a tile; what fits 32 bits is sent in 32.
        suffix: Unit, with a space before it.
        of: The stream of this space that is 100 %, if it is told in percent.
    """
    return space.add_stream(
        name,
        dtype="u4" if most <= U4_MAX else "i8",
        maximum=most,
        suffix=suffix,
        presentation=Presentation.MAX_VAR if of is None else Presentation.PERCENT_VAR,
        max_stream=of,
        paint_style=PaintStyle.ZERO,
        order=order,
        description=description,
    )


def show_tiles(space: ServerSpace, tiling: Tiling) -> None:
    """Give a space the tiles of a tiling, if it has others."""
    if space.names is not tiling.names:
        space.resize(tiling.names)


def hide(streams: Iterable[ServerStream], unknown: npt.NDArray[np.bool_]) -> None:
    """Say of tiles that were not read that they are unknown, (tiles,); and have nothing in them that looks as if they had been."""
    if not unknown.any():
        return
    for stream in streams:
        stream.data[unknown] = stream.schema.default
        stream.set_unknown(unknown)


def show_carved(space: ServerSpace, reading: HeapReading, tiling: Tiling) -> npt.NDArray[np.int64]:
    """Say which tiles are used and where arenas begin; returns how many pools of each tile are carved, (tiles,)."""
    carved = tiling.sums(reading.pools.state != PoolState.UNCARVED)
    control = space.control
    control[:] = np.where(carved != 0, Control.USED, Control.UNUSED)
    control[tiling.begins_arena] |= np.uint8(Control.SEPARATOR)
    return carved
