"""A followed object: its place at each event, from the table of its life.

Knows a table by the names of its columns (``Event``, ``Address``, ``Space``); does not know its
source.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from gcspy_protocol.details import DetailTable
from gcspy_protocol.interpreter import SpaceState

__all__ = ["FollowedObject", "ObjectPlace", "address_of", "tile_at"]


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """The place of an object.

    Attributes:
        space: Name of the space.
        address: Its first byte.
    """

    space: str
    address: int


def address_of(text: object) -> int | None:
    """An address that is written as ``0x…``; None: it is not one."""
    try:
        return int(str(text), 16) if str(text).startswith("0x") else None
    except ValueError:
        return None


class FollowedObject:
    """The life of one object.

    Args:
        table: Its life.

    Attributes:
        table: The same.
        events: The events at which something happens to it, in order.
    """

    def __init__(self, table: DetailTable) -> None:
        self.table = table
        names = [column.name for column in table.columns]
        event, address, space = (
            names.index(name) if name in names else None for name in ("Event", "Address", "Space")
        )
        self.events: list[int] = []
        self._places: list[ObjectPlace | None] = []
        for row in table.rows:
            number = None if event is None else row[event]
            if not isinstance(number, int):
                continue
            found = None if address is None else address_of(row[address])
            self.events.append(number)
            self._places.append(
                None if found is None or space is None else ObjectPlace(str(row[space]), found)
            )

    def place_at(self, number: int) -> ObjectPlace | None:
        """Its place at an event; None: it is not born yet, or is dead."""
        row = bisect_right(self.events, number) - 1
        return self._places[row] if row >= 0 else None

    def event_beside(self, number: int, step: int) -> int | None:
        """The next (1) or previous (-1) event that affects it; None: there is none."""
        later = [one for one in self.events if (one > number if step > 0 else one < number)]
        return None if not later else min(later) if step > 0 else max(later)


def tile_at(space: SpaceState, address: int) -> int | None:
    """The tile of a space in which an address is; None: it is in none."""
    extents = space.names.extents()
    if extents is None:
        base, size = space.names.uniform
        tile = (address - base) // size if size and address >= base else -1
        return tile if 0 <= tile < space.count else None
    bases, sizes = extents
    found = ((bases <= address) & (bases + sizes > address)).nonzero()[0]
    return int(found[0]) if len(found) else None
