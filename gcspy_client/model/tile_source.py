"""Where the numbers come from that a picture, a graph or a table shows: one stream, or something made of several.

A source is asked about a space each time, and keeps nothing of it: so the same
one serves the live session, a recording that is read beside it, and the other side
of a comparison.

Knows streams; does not know how they are shown.
"""

from __future__ import annotations

from typing import Protocol

from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Stream

from gcspy_client.model.codes import Indices, Tiles, tiles_of
from gcspy_client.model.picture import changed_tiles
from gcspy_client.model.session import top_of
from gcspy_client.model.text import long_value

__all__ = ["StreamSource", "TileSource"]


class TileSource(Protocol):
    """One number a tile."""

    @property
    def schema(self) -> Stream:
        """How the numbers are shown: name, range, unit."""

    def tiles(self, space: SpaceState) -> Tiles:
        """The numbers to be painted, as the schema has them; views, or fresh arrays."""

    def numbers(self, space: SpaceState) -> Tiles:
        """The numbers to be sorted, summed up and compared: those that are told, where others are painted."""

    def changed(self, change: EventChange, space: SpaceState) -> Indices | None:
        """Tiles that an event may have changed; None: any."""

    def is_fresh(self, space: SpaceState, event: Event) -> bool:
        """Whether all that the numbers are made of was gathered at this event."""

    def text(self, space: SpaceState, tile: int) -> str:
        """The number of a tile in words."""


class StreamSource:
    """A stream as it was sent.

    Args:
        schema: The stream.
    """

    def __init__(self, schema: Stream) -> None:
        self._schema = schema

    @property
    def schema(self) -> Stream:
        """The stream's own."""
        return self._schema

    def tiles(self, space: SpaceState) -> Tiles:
        """Views of the stream's arrays."""
        return tiles_of(space, self._schema.id)

    def numbers(self, space: SpaceState) -> Tiles:
        """The same."""
        return tiles_of(space, self._schema.id)

    def changed(self, change: EventChange, space: SpaceState) -> Indices | None:
        """What the event brought of the stream, its control stream and its maximum."""
        return changed_tiles(change, space, self._schema.id)

    def is_fresh(self, space: SpaceState, event: Event) -> bool:
        """Whether the stream was gathered at this event."""
        return space.stream(self._schema.id).is_fresh(event)

    def text(self, space: SpaceState, tile: int) -> str:
        """The value as the stream wants it presented."""
        state = space.stream(self._schema.id)
        return long_value(
            self._schema,
            int(state.values[tile]),
            known=state.is_known(tile),
            top=top_of(space, self._schema, tile),
        )
