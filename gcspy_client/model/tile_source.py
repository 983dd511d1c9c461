"""The numbers that a picture, a graph or a table shows: one stream, or a derived one.

A source gets the space with each call, and stores nothing of it: so the same one serves the live
session, a recording that is read beside it, and the other side of a comparison.

Knows streams; does not know how they are shown.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import CONTROL_STREAM, Presentation, Stream

from gcspy_client.model.codes import Indices, TileArrays, tiles_of
from gcspy_client.model.text import long_value, short_amount, short_value

__all__ = ["StreamSource", "TileSource", "changed_tiles", "top_of"]

_NONE: Indices = np.empty(0, dtype=np.int64)


def top_of(space: SpaceState, stream: Stream, tile: int) -> int | None:
    """Return the value that is 100 % in this tile, for PERCENT_VAR; None if there is none, or it is unknown."""
    if (
        stream.presentation is not Presentation.PERCENT_VAR
        or stream.max_stream not in space.streams
    ):
        return None
    top = space.streams[stream.max_stream]
    return int(top.values[tile]) if top.is_known(tile) else None


def changed_tiles(change: EventChange, space: SpaceState, stream_id: int) -> Indices | None:
    """The tiles of a space whose appearance under a stream may have changed after an event; None: any of them."""
    stream = space.stream(stream_id).schema
    ids = [stream_id, CONTROL_STREAM]
    if stream.presentation is Presentation.PERCENT_VAR and stream.max_stream is not None:
        ids.append(stream.max_stream)
    parts: list[Indices] = []
    for each in ids:
        changed = change.changed.get((space.space.id, each), _NONE)
        if changed is None:
            return None
        if len(changed):
            parts.append(changed)
    if not parts:
        return _NONE
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


class TileSource(Protocol):
    """One number a tile."""

    @property
    def schema(self) -> Stream:
        """How the numbers are shown: name, range, unit."""

    def tiles(self, space: SpaceState) -> TileArrays:
        """The numbers to be painted, as the schema has them; views, or fresh arrays."""

    def numbers(self, space: SpaceState) -> TileArrays:
        """The numbers to be sorted, summed and compared: those in texts, if others are painted."""

    def changed(self, change: EventChange, space: SpaceState) -> Indices | None:
        """Tiles that an event may have changed; None: any."""

    def is_fresh(self, space: SpaceState, event: Event) -> bool:
        """Whether all that the numbers are made of was gathered at this event."""

    def is_stale(self, space: SpaceState, event: Event) -> bool:
        """Whether any of it is older than is usual for it."""

    def text(self, space: SpaceState, tile: int) -> str:
        """The number of a tile in words."""

    def short(self, space: SpaceState, tile: int) -> str:
        """The same in a few characters, to fit on a tile."""

    def scale_text(self, share: float, maximum: int) -> str:
        """The text at a place of the scale, in a few characters.

        Args:
            share: From 0, the least, to 1, the greatest.
            maximum: The value painted as the greatest now, as in `TileCodes.maximum`.
        """


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

    def tiles(self, space: SpaceState) -> TileArrays:
        """Views of the stream's arrays."""
        return tiles_of(space, self._schema.id)

    def numbers(self, space: SpaceState) -> TileArrays:
        """The same."""
        return tiles_of(space, self._schema.id)

    def changed(self, change: EventChange, space: SpaceState) -> Indices | None:
        """The event's changes of the stream, its control stream and its maximum."""
        return changed_tiles(change, space, self._schema.id)

    def is_fresh(self, space: SpaceState, event: Event) -> bool:
        """Whether the stream was gathered at this event."""
        return space.stream(self._schema.id).is_fresh(event)

    def is_stale(self, space: SpaceState, event: Event) -> bool:
        """Whether the values are older than is usual for them."""
        return space.stream(self._schema.id).is_stale(event)

    def text(self, space: SpaceState, tile: int) -> str:
        """The value in the presentation of the stream."""
        state = space.stream(self._schema.id)
        return long_value(
            self._schema,
            int(state.values[tile]),
            known=state.is_known(tile),
            top=top_of(space, self._schema, tile),
        )

    def short(self, space: SpaceState, tile: int) -> str:
        """The value, rounded."""
        state = space.stream(self._schema.id)
        return short_value(
            self._schema,
            int(state.values[tile]),
            known=state.is_known(tile),
            top=top_of(space, self._schema, tile),
        )

    def scale_text(self, share: float, maximum: int) -> str:
        """A percentage, or a value with its unit; names have no scale."""
        schema = self._schema
        match schema.presentation:
            case Presentation.ENUM:
                return ""
            case Presentation.PERCENT | Presentation.PERCENT_VAR:
                return f"{100 * share:.0f} %"
            case _:
                return short_amount(
                    schema, round(schema.minimum + share * (maximum - schema.minimum))
                )
