"""Spaces and streams as msgpack maps (SPEC.md section 5)."""

from __future__ import annotations

from typing import Any

from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.fields import Fields
from gcspy_protocol.limits import Limits
from gcspy_protocol.model import Naming, PaintStyle, Presentation, Space, Stream

__all__ = ["MAX_ENUM_NAMES", "pack_space", "read_space"]

MAX_ENUM_NAMES = 4096
"""Most names of an ENUM stream, and so most numbers of a summary."""

_MOST_DETAILS = 64

_I64 = (1 << 63) - 1
_U64 = (1 << 64) - 1


def pack_space(space: Space) -> dict[str, Any]:
    """A space as a map; its id travels in the frame's header."""
    return {
        "name": space.name,
        "driver": space.driver,
        "tile": space.tile_title,
        "unused": space.unused_text,
        "naming": space.naming.value,
        "main": space.main,
        "row": space.row_width,
        "about": space.description,
        "streams": [_pack_stream(stream) for stream in space.streams],
        **({"details": list(space.details)} if space.details else {}),
    }


def _pack_stream(stream: Stream) -> dict[str, Any]:
    return {
        "id": stream.id,
        "name": stream.name,
        "type": stream.dtype,
        "min": stream.minimum,
        "max": stream.maximum,
        "zero": stream.zero,
        "default": stream.default,
        "prefix": stream.prefix,
        "suffix": stream.suffix,
        "presentation": int(stream.presentation),
        "paint": int(stream.paint_style),
        "max_stream": stream.max_stream,
        "enum": list(stream.enum_names),
        "colour": None if stream.colour is None else list(stream.colour),
        "order": stream.order,
        "accumulates": stream.accumulates,
        "about": stream.description,
        # Left out if there is none, as for most streams.
        **({} if stream.names_from is None else {"names_from": stream.names_from}),
        **({"threshold": True} if stream.threshold else {}),
    }


def read_space(space_id: int, fields: Fields, limits: Limits) -> Space:
    """A space from a received map.

    Raises:
        RemoteProtocolError: A field is missing or of the wrong kind, or the streams contradict each
            other.
    """
    streams = tuple(_read_stream(stream) for stream in fields.maps("streams", limits.streams))
    ids = {stream.id for stream in streams}
    if len(ids) != len(streams):
        raise RemoteProtocolError(f"space {space_id}: two streams with one id")
    for stream in streams:
        if stream.max_stream is not None and stream.max_stream not in ids:
            raise RemoteProtocolError(
                f"space {space_id}: stream {stream.id} names max stream {stream.max_stream}, which does not exist"
            )
    return Space(
        id=space_id,
        name=fields.text("name"),
        driver=fields.text("driver", ""),
        tile_title=fields.text("tile", "Tile "),
        unused_text=fields.text("unused", "unused"),
        naming=fields.choice("naming", Naming),
        main=fields.flag("main", False),
        row_width=fields.optional_integer("row", 1, limits.tiles),
        description=fields.text("about", ""),
        details=fields.texts("details", _MOST_DETAILS),
        streams=streams,
    )


def _read_stream(fields: Fields) -> Stream:
    colour = fields.integers("colour", 3, 0, 255) if "colour" in fields else None
    if colour is not None and len(colour) != 3:
        raise RemoteProtocolError(f"stream: a colour is three numbers, got {len(colour)}")
    try:
        return Stream(
            id=fields.integer("id", 0, 0xFFFE),
            name=fields.text("name"),
            dtype=fields.text("type"),
            minimum=fields.integer("min", -_I64 - 1, _U64, 0),
            maximum=fields.integer("max", -_I64 - 1, _U64),
            zero=fields.integer("zero", -_I64 - 1, _U64, 0),
            default=fields.integer("default", -_I64 - 1, _U64, 0),
            prefix=fields.text("prefix", ""),
            suffix=fields.text("suffix", ""),
            presentation=fields.choice("presentation", Presentation, Presentation.PLAIN),
            paint_style=fields.choice("paint", PaintStyle, PaintStyle.PLAIN),
            max_stream=fields.optional_integer("max_stream", 0, 0xFFFE),
            enum_names=fields.texts("enum", MAX_ENUM_NAMES),
            colour=None if colour is None else (colour[0], colour[1], colour[2]),
            order=fields.integer("order", -_I64, _I64, 0),
            accumulates=fields.flag("accumulates", False),
            names_from=fields.optional_integer("names_from", 0, 0xFFFF),
            threshold=fields.flag("threshold", False),
            description=fields.text("about", ""),
        )
    except LocalProtocolError as error:
        # The model refuses what cannot be shown; here the peer is to blame.
        raise RemoteProtocolError(f"{error}") from error
