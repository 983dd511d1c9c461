"""`AccessStreams`: the streams "Accessed" and "Idle" of a space whose tiles are pools or arenas.

Knows accesses to pools, and spaces; does not know how accesses are seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.kit.grouped_tiling import GroupedTiling
from gcspy_drivers.kit.streams import add_amount, hide
from gcspy_drivers.remote.pages.accesses import CellAccesses
from gcspy_server.api import PaintStyle, ServerSpace, ServerStream

__all__ = ["AccessStreams", "PoolAccesses", "idle_text"]

PoolAccesses = Callable[[npt.NDArray[np.uint64]], CellAccesses]
"""Takes the addresses of pools, (n,), and returns the accesses to them."""

_MOST_IDLE: Final = (1 << 16) - 1


class AccessStreams:
    """The two streams of one space.

    Args:
        space: The space.
        most: Bytes of an arena.
        of: The stream that is 100 % of "Accessed".
        order: Order of the first stream.
    """

    def __init__(self, space: ServerSpace, *, most: int, of: ServerStream, order: int) -> None:
        self.accessed = add_amount(
            space,
            "Accessed",
            "Bytes of pages that the program accessed since the last full collection",
            order=order,
            most=most,
            suffix=" bytes",
            of=of,
        )
        self.idle = add_amount(
            space,
            "Idle",
            "Observed intervals between full collections, before this one and without a gap, in which no page of it was accessed",
            order=order + 1,
            most=_MOST_IDLE,
            suffix=" collections",
            paint_style=PaintStyle.ZERO,
        )

    def fill(
        self, reading: HeapReading, tiling: GroupedTiling, accesses: CellAccesses | None
    ) -> None:
        """Fill the streams.

        Args:
            reading: The pools.
            tiling: Which of them a tile has.
            accesses: The accesses to these pools; None: they are not known.
        """
        streams = (self.accessed, self.idle)
        if accesses is None:
            hide(streams, np.ones(len(tiling), dtype=np.bool_))
            return
        state = reading.pools.state
        carved = (state != PoolState.UNCARVED) & (state != PoolState.UNKNOWN)
        self.accessed.data[:] = tiling.sums(np.where(carved, accesses.accessed_bytes, 0))
        idle = np.where(carved, accesses.idle, np.uint16(_MOST_IDLE))
        if tiling.group > 1 and len(tiling):
            idle = np.minimum.reduceat(idle, tiling.starts)
        empty = tiling.sums(carved) == 0
        self.idle.data[:] = np.where(empty, 0, idle)
        hide(streams, tiling.sums(carved & ~accesses.known) != 0)


def idle_text(reading: HeapReading, accesses: CellAccesses) -> str:
    """Say how much memory in use was not accessed; empty: nothing is known."""
    pools = reading.pools
    used = (pools.state == PoolState.USED) & accesses.known
    if not used.any():
        return ""
    in_use = pools.blocks_used * (
        (pools.size_class.astype(np.int64) + 1) * reading.geometry.alignment_bytes
    )
    idle = used & (accesses.accessed_bytes == 0)
    long = idle & (accesses.idle > 0)
    text = f"pools without any access have {int(in_use[idle].sum()):,} of {int(in_use[used].sum()):,} bytes in use"
    if long.any():
        most = int(accesses.idle[long].max())
        text += f", {int(in_use[long].sum()):,} of them also in earlier intervals (up to {most})"
    return text
