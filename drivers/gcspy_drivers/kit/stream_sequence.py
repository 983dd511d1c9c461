"""`StreamSequence`: the streams of a space of equal tiles, each less important than the one before it.

Knows spaces and factories of streams; does not know their data.
"""

from __future__ import annotations

from collections.abc import Mapping

from gcspy_drivers.kit.streams import Colour, add_category, add_count, add_percent
from gcspy_server.api import Presentation, ServerSpace, ServerStream

__all__ = ["StreamSequence"]


class StreamSequence:
    """Adds streams of 32 bits to one space, in the order of their importance.

    Args:
        space: The space to add to.
        tile_bytes: Size of a tile, which is 100 % of its bytes.
        colours: Red, green and blue of each stream with a colour of its own, by name.
        presentation: How counts are shown.
    """

    def __init__(
        self,
        space: ServerSpace,
        tile_bytes: int,
        *,
        colours: Mapping[str, Colour],
        presentation: Presentation = Presentation.MAX_VAR,
    ) -> None:
        self._space = space
        self._tile_bytes = tile_bytes
        self._colours = colours
        self._presentation = presentation
        self._order = 0

    def bytes(self, name: str, about: str) -> ServerStream:
        """Add a stream of bytes of the tile."""
        return add_percent(
            self._space,
            name,
            about,
            order=self._next(),
            most=self._tile_bytes,
            colour=self._colours.get(name),
            dtype="i4",
        )

    def count(self, name: str, most: int, about: str) -> ServerStream:
        """Add a stream of numbers of at most `most`."""
        return add_count(
            self._space,
            name,
            about,
            order=self._next(),
            most=most,
            presentation=self._presentation,
            colour=self._colours.get(name),
            dtype="i4",
        )

    def category(self, name: str, named: ServerSpace, about: str) -> ServerStream:
        """Add a stream whose values are tiles of another space."""
        return add_category(self._space, name, named, about, order=self._next())

    def _next(self) -> int:
        self._order += 1
        return self._order
