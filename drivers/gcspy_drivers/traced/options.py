"""The options of a session that is made from a trace.

Knows numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol.errors import LocalProtocolError

__all__ = ["TracedOptions"]

_TILES = 4096
_CLOCKS = 256
_SMALLEST_TILE = 64
_MOST_TILES = 1 << 22
_MOST_EVENTS = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedOptions:
    """The options.

    Attributes:
        tile_bytes: Size of a tile; None: so that the heap has about 4,096.
        clock_bytes: Allocated bytes between two events of the clock; None: so that there are about
            256.
    """

    tile_bytes: int | None = None
    clock_bytes: int | None = None

    def tile_of(self, heap_bytes: int) -> int:
        """Bytes of a tile of a heap that is so large at most.

        Raises:
            LocalProtocolError: There would be too many tiles.
        """
        tile = self.tile_bytes or max(_SMALLEST_TILE, _power_above(heap_bytes / _TILES))
        if tile < 1 or heap_bytes // tile > _MOST_TILES:
            raise LocalProtocolError(
                f"tiles of {tile:,} bytes: a heap of {heap_bytes:,} bytes takes {_power_above(heap_bytes / _MOST_TILES):,} or more"
            )
        return tile

    def clock_of(self, allocated_bytes: int) -> int:
        """Bytes between two events of the clock for a program with this much allocation.

        Raises:
            LocalProtocolError: There would be too many events.
        """
        clock = self.clock_bytes or _power_above(allocated_bytes / _CLOCKS)
        if clock < 1 or allocated_bytes // clock > _MOST_EVENTS:
            raise LocalProtocolError(
                f"a clock of {clock:,} bytes: the program allocates {allocated_bytes:,}, which are more than {_MOST_EVENTS:,} events"
            )
        return clock


def _power_above(number: float) -> int:
    """The least power of two that is no less."""
    return 1 << max(0, int(number) - 1).bit_length() if number > 1 else 1
