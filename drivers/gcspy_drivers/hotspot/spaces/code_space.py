"""The space "Code cache": blocks of compiled methods and stubs, by address.

Maps code heaps to streams. Knows readings and spaces; does not know memory.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gcspy_drivers.hotspot.heaps.tile_streams import add_bytes
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.hotspot.vm.code_cache import CodeHeapReading
from gcspy_drivers.kit.tiling import UniformTiling, choose_tile_bytes
from gcspy_server.api import Control, Server

__all__ = ["CODE_POOL", "CodeSpace", "code_pool"]

CODE_POOL: Final = "code cache"
_SMALLEST_TILE: Final = 4096
_MOST_TILES: Final = 16384
_NOTICEABLE_SECS: Final = 0.05


class CodeSpace:
    """The code cache as a space.

    Args:
        server: The server to add the space to.
        heaps: A first reading, for its size.
        tiles: About how many tiles it may have at most.
    """

    def __init__(self, server: Server, heaps: list[CodeHeapReading], *, tiles: int) -> None:
        low, high = heaps[0].low, max(heap.high for heap in heaps)
        tile_bytes = choose_tile_bytes(high - low, min(tiles, _MOST_TILES), smallest=_SMALLEST_TILE)
        self._tiling = UniformTiling.of(low, high, tile_bytes)
        self.space = server.add_space(
            "Code cache",
            names=self._tiling.names,
            driver="hotspot",
            tile_title="Tile ",
            unused_text="reserved, not committed",
            description="Compiled methods and stubs by address; a line marks the start of each code heap",
        )
        self.committed = add_bytes(self.space, "Committed", 2, "Committed bytes of the tile")
        self.used = add_bytes(
            self.space,
            "Used",
            0,
            "Bytes of blocks in use, in percent of those committed",
            of=self.committed,
        )
        self.returned = add_bytes(
            self.space,
            "Given back",
            1,
            "Bytes of freed blocks between used ones",
        )

    def fill(self, heaps: list[CodeHeapReading], *, age_secs: float = 0.0) -> None:
        """Fill the space.

        Args:
            heaps: A reading.
            age_secs: Time since it was read; told where it is noticeable.
        """
        space, tiling = self.space, self._tiling
        space.reset()
        committed = np.zeros(tiling.count, dtype=np.int64)
        unknown = np.zeros(tiling.count, dtype=np.bool_)
        for heap in heaps:
            tiling.add_held(committed, heap.low, heap.committed)
            if heap.begins is None:
                unknown |= tiling.held(heap.low, heap.high) != 0
                continue
            space.spread(self.used, heap.begins[heap.used], heap.size[heap.used])
            space.spread(self.returned, heap.begins[~heap.used], heap.size[~heap.used])
        self.committed.data[:] = committed
        if unknown.any():
            for stream in (self.used, self.returned):
                stream.data[unknown] = stream.schema.default
                stream.set_unknown(unknown)
        control = space.control
        control[:] = np.where(committed != 0, Control.USED, Control.UNUSED)
        for heap in heaps[1:]:
            tile = tiling.tile_at(heap.low)
            if tile:
                control[tile] |= np.uint8(Control.SEPARATOR)
        blocks = sum(len(heap.size) for heap in heaps)
        space.info = (
            f"{len(heaps)} code heaps with {blocks:,} blocks; {_used(heaps):,} bytes in use"
        )
        if age_secs >= _NOTICEABLE_SECS:
            space.info += f"; read {age_secs:.1f} s before"
        if unknown.any():
            space.info += "; values that changed during each read are unknown"


def code_pool(heaps: list[CodeHeapReading]) -> Pool:
    """Return the code cache as a pool."""
    whole = all(heap.begins is not None for heap in heaps)
    return Pool(
        CODE_POOL,
        _used(heaps) if whole else None,
        sum(heap.committed - heap.low for heap in heaps),
        sum(heap.high - heap.low for heap in heaps),
    )


def _used(heaps: list[CodeHeapReading]) -> int:
    return sum(int(heap.size[heap.used].sum()) for heap in heaps)
