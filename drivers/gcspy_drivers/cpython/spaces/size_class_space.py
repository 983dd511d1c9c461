"""The space "Size classes": pymalloc's pools by the size of their blocks, and how much is lost to fragmentation.

Free blocks of a pool in use are available to its own size class only, and the pool is given to
another only when all its blocks are free. So the loss of a size class is the part of its pools that
it does not use. Maps a `HeapReading` to streams; does not know memory.
"""

from __future__ import annotations

import numpy as np

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading, size_classes
from gcspy_drivers.cpython.pymalloc.pools import PoolState, block_bytes
from gcspy_drivers.kit.streams import add_amount
from gcspy_server.api import Server, ServerStream, StringNames

__all__ = ["SizeClassSpace"]


class SizeClassSpace:
    """The size classes of one pymalloc as a space.

    Args:
        server: The server to add the space to.
        title: Name of the space.
        geometry: Sizes that this pymalloc was built with.
    """

    def __init__(self, server: Server, title: str, geometry: PoolGeometry) -> None:
        self._filled_with: HeapReading | None = None
        self.space = server.add_space(
            title,
            names=StringNames([f"{size} bytes" for size in block_bytes(geometry)]),
            driver="cpython",
            tile_title="Size class ",
            description="Totals of the pools of each block size",
        )

        def stream(
            name: str,
            order: int,
            description: str,
            suffix: str = "",
            of: ServerStream | None = None,
        ) -> ServerStream:
            return add_amount(self.space, name, description, order=order, suffix=suffix, of=of)

        stream("Pools", 0, "Pools with at least one block in use")
        stream("Blocks in use", 1, "Blocks allocated and not freed")
        stream("Free blocks", 2, "Other blocks of these pools: only this size class can use them")
        stream(
            "Wasted",
            3,
            "Bytes of these pools that cannot be a block: headers and the remainder",
            " bytes",
        )
        stream(
            "Partly used",
            6,
            "Pools with both used and free blocks, such as after a burst of allocation",
        )
        held = stream("Held", 7, "Bytes of the pools, reserved for this size class", " bytes")
        stream(
            "Used", 4, "Bytes of blocks in use, in percent of what the pools hold", " bytes", held
        )
        stream(
            "Lost",
            5,
            "Bytes of the pools that the program does not use: free blocks and waste",
            " bytes",
            held,
        )

    def fill(self, reading: HeapReading) -> None:
        """Fill the space from a reading; the same object as before has the same content."""
        if reading is self._filled_with:
            self.space.repeat()
            return
        self._filled_with = reading
        sums = size_classes(reading)
        self.space.reset()
        pools = reading.pools
        partly = (pools.state == PoolState.USED) & (pools.blocks_free > 0)
        held = sums.pools * reading.geometry.pool_bytes
        used = sums.blocks_used * sums.block_bytes
        columns = (
            sums.pools,
            sums.blocks_used,
            sums.blocks_free,
            sums.wasted_bytes,
            np.bincount(pools.size_class[partly], minlength=len(held)),
            held,
            used,
            held - used,
        )
        for stream, column in zip(self.space.streams, columns, strict=True):
            stream.data[:] = column
            if not reading.complete:
                stream.data[:] = stream.schema.default
                stream.set_unknown(np.ones(len(column), dtype=np.bool_))
        unknown = int(np.count_nonzero(~pools.valid))
        parts = [
            f"{unknown} pools are unknown and not counted" if unknown else "all pools are known"
        ]
        if reading.complete and held.any():
            lost = held - used
            worst = int(lost.argmax())
            parts.append(
                f"{int(used.sum()):,} of {int(held.sum()):,} bytes are in use ({used.sum() / held.sum():.1%}); most is lost by "
                f"blocks of {sums.block_bytes[worst]} bytes: {int(lost[worst]):,} bytes in {int(sums.pools[worst])} pools"
            )
        self.space.info = "; ".join(parts)
