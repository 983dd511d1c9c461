"""The driver's interface to a kind of heap, for all collectors.

A view has the spaces of one kind of heap and their readers. Knows the interface; knows no collector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from gcspy_drivers.hotspot.objects.layout import Epoch, HeapLayout
from gcspy_drivers.hotspot.objects.marks import Marks
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_server.api import GatherRequest, Setting, SettingKind

__all__ = [
    "CARDS",
    "OBJECTS",
    "REFERENCES",
    "TILE_SIZE",
    "HeapView",
    "UnwalkedHeap",
    "tile_size_setting",
]

CARDS: Final = 2
"""The level at which card tables, and what is beside the heap, are read; below it only bounds, regions and counters."""

OBJECTS: Final = 3
"""The level at which objects are walked."""

REFERENCES: Final = 4
"""The level at which their references are followed."""

TILE_SIZE: Final = 16
"""Number of the setting for the size of a tile."""

_SMALLEST_SHIFT: Final = 9
_GREATEST_SHIFT: Final = 30
_MOST_TILES: Final = 1 << 22
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB")


class HeapView(Protocol):
    """The spaces of a heap, and the methods that fill them."""

    @property
    def extent(self) -> tuple[int, int]:
        """First address of the heap and the one behind its last byte."""
        ...

    @property
    def tile_bytes(self) -> int | None:
        """Current size of a tile; None where the VM determines the tiles, such as regions."""
        ...

    @property
    def pool_names(self) -> Sequence[str]:
        """Names of the pools that `fill` returns."""
        ...

    def cut(self, tile_bytes: int) -> None:
        """Give the spaces tiles of another size, between events."""
        ...

    def read(self, request: GatherRequest, level: int, *, still: bool = False) -> None:
        """Read the requested data: the only part of gathering for which a JVM must be held.

        Args:
            request: The request.
            level: The level to read at.
            still: Whether the JVM stands still at a safepoint meanwhile.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        ...

    def fill(self, request: GatherRequest) -> Sequence[Pool]:
        """Fill the spaces with what was read, and return the pools."""
        ...

    def layout(self) -> HeapLayout | None:
        """Return the walkable parts of the heap, as of the latest reading; None: there are none, or they could not be read."""
        ...

    def look(self) -> HeapLayout | None:
        """As `layout`, read now; raises as `gather` does."""
        ...

    def marks(self, low: int, high: int) -> Marks | None:
        """Read the marks of a range, if the collector has any; raises as `gather` does."""
        ...

    def epoch(self) -> Epoch | None:
        """Read how many collections there were, and whether one is under way; raises as `gather` does."""
        ...


class UnwalkedHeap:
    """The part of a `HeapView` about objects, for a collector that moves them while the program runs: they are not walked."""

    def layout(self) -> HeapLayout | None:
        """Return None."""
        return None

    def look(self) -> HeapLayout | None:
        """Return None."""
        return None

    def marks(self, low: int, high: int) -> Marks | None:
        """Return None: no objects are asked for."""
        del low, high
        return None

    def epoch(self) -> Epoch | None:
        """Return None."""
        return None


def tile_size_setting(extent_bytes: int, tile_bytes: int) -> tuple[Setting, tuple[int, ...]]:
    """Make the setting for the size of a tile.

    Returns:
        The setting, whose value is a place in the sizes, and the sizes.
    """
    sizes = tuple(
        1 << shift
        for shift in range(_SMALLEST_SHIFT, _GREATEST_SHIFT + 1)
        if extent_bytes >> shift <= _MOST_TILES
        and (1 << shift <= extent_bytes or 1 << shift == tile_bytes)
    )
    setting = Setting(
        id=TILE_SIZE,
        name="Tile size",
        about="Bytes of the heap per tile; a new size gives all tiles new names without history",
        kind=SettingKind.CHOICE,
        value=sizes.index(tile_bytes),
        minimum=0,
        maximum=len(sizes) - 1,
        choices=tuple(map(_size_text, sizes)),
    )
    return setting, sizes


def _size_text(size_bytes: int) -> str:
    unit = (size_bytes.bit_length() - 1) // 10
    return f"{size_bytes >> 10 * unit} {_UNITS[unit]}"
