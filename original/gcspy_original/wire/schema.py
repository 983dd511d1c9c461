"""Spaces and streams, as the original describes them.

A space, in the order of its bytes:

    id short, name, driver, tile title, block info: texts, tiles int, text of unused tiles,
    main bool, streams short, the streams, a text for each tile

A stream:

    id byte, type byte (0 byte, 1 short, 2 int), name text, minimum, maximum, zero, default: int,
    prefix, suffix: texts, presentation, paint style, max stream: bytes, red, green, blue,
    names byte, that many texts

Knows their bytes; does not know what a client makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gcspy_protocol.errors import LocalProtocolError

from gcspy_original.wire.fields import FieldReader, FieldWriter
from gcspy_original.wire.limits import MOST_ENUM_NAMES, MOST_SPACES, MOST_STREAMS, MOST_TILES

__all__ = ["ENUM", "PERCENT_VAR", "TYPES", "SpaceDefinition", "StreamDefinition"]

TYPES: Final = ("i1", "i2", "i4")
"""Types of values, by the number of the wire."""

PERCENT_VAR: Final = 4
ENUM: Final = 5
"""Presentations with fields of their own; the other numbers are those of `gcspy_protocol.model.Presentation`."""

_MOST_PRESENTATION: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamDefinition:
    """A stream.

    Attributes:
        id: Number in its space, 0 to 127.
        dtype: One of `TYPES`.
        name: Short name.
        minimum: Least value.
        maximum: Greatest value.
        zero: The value that paint style 1 draws empty.
        default: The value of a tile without data.
        prefix: Text before a value.
        suffix: Text after a value.
        presentation: 0 plain, 1 plus, 2 max var, 3 percent, 4 percent var, 5 enum.
        paint_style: 0 plain, 1 zero.
        max_stream: For percent var, the stream that is 100 %.
        colour: Red, green, blue; 0 to 255.
        enum_names: Names of values, for enum.
    """

    id: int
    name: str
    dtype: str = "i4"
    minimum: int = 0
    maximum: int = 0
    zero: int = 0
    default: int = 0
    prefix: str = ""
    suffix: str = ""
    presentation: int = 0
    paint_style: int = 0
    max_stream: int = 0
    colour: tuple[int, int, int] = (0, 0, 0)
    enum_names: tuple[str, ...] = ()

    def write(self, fields: FieldWriter) -> None:
        """Write it.

        Raises:
            LocalProtocolError: A number or a type does not fit the wire.
        """
        if self.dtype not in TYPES:
            raise LocalProtocolError(
                f"stream {self.name!r}: the original has no values of type {self.dtype}"
            )
        fields.byte(self.id, "the number of a stream")
        fields.byte(TYPES.index(self.dtype))
        fields.text(self.name)
        for number in (self.minimum, self.maximum, self.zero, self.default):
            fields.number(number, f"a bound of stream {self.name!r}")
        fields.text(self.prefix)
        fields.text(self.suffix)
        for number in (self.presentation, self.paint_style, self.max_stream):
            fields.byte(number)
        fields.raw(bytes(self.colour))
        fields.byte(len(self.enum_names), "the number of names")
        for name in self.enum_names:
            fields.text(name)

    @classmethod
    def read(cls, fields: FieldReader) -> StreamDefinition:
        """Read one.

        Raises:
            RemoteProtocolError: A field is impossible.
        """
        number = fields.index("the number of a stream")
        kind = fields.byte("the type of a stream")
        if not 0 <= kind < len(TYPES):
            raise fields.wrong(f"the type of a stream is {kind}; it is 0 to {len(TYPES) - 1}")
        name = fields.text("the name of a stream")
        bounds = [fields.number("a bound of a stream") for _ in range(4)]
        prefix, suffix = fields.text("a prefix"), fields.text("a suffix")
        presentation = fields.byte("a presentation")
        if not 0 <= presentation <= _MOST_PRESENTATION:
            raise fields.wrong(f"a presentation is {presentation}; it is 0 to {_MOST_PRESENTATION}")
        paint_style = fields.byte("a paint style")
        max_stream = fields.byte("a max stream")
        red, green, blue = fields.take(3, "a colour")
        names = fields.byte("the number of names")
        if not 0 <= names <= MOST_ENUM_NAMES:
            raise fields.wrong(f"the number of names is {names}; it is 0 to {MOST_ENUM_NAMES}")
        return cls(
            id=number,
            name=name,
            dtype=TYPES[kind],
            minimum=bounds[0],
            maximum=bounds[1],
            zero=bounds[2],
            default=bounds[3],
            prefix=prefix,
            suffix=suffix,
            presentation=presentation,
            paint_style=paint_style,
            max_stream=max_stream,
            colour=(red, green, blue),
            enum_names=fields.some_texts(names, "the name of a value"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceDefinition:
    """A space.

    Attributes:
        id: Number, 0 to 127.
        name: Its name.
        driver: Name of its driver.
        tile_title: Title of a tile, with a trailing space: ``Block ``.
        block_info: Text about tiles: ``Block Size: 32K`` and a line break.
        tiles: How many.
        unused_text: Text of unused tiles.
        main: Whether the client shows it first.
        streams: The streams.
        names: The names of all tiles, each with its zero byte.
    """

    id: int
    name: str
    driver: str = ""
    tile_title: str = "Block "
    block_info: str = ""
    tiles: int = 0
    unused_text: str = ""
    main: bool = False
    streams: tuple[StreamDefinition, ...] = ()
    names: bytes = b""

    @property
    def without_tiles(self) -> SpaceDefinition:
        """The definition, without what a resize changes."""
        return replace(self, tiles=0, names=b"", block_info="")

    def stream(self, number: int) -> StreamDefinition | None:
        """The stream of that number."""
        return next((one for one in self.streams if one.id == number), None)

    def write(self, fields: FieldWriter) -> None:
        """Write it.

        Raises:
            LocalProtocolError: A number does not fit, or there is not one name for each tile.
        """
        if self.names.count(b"\0") != self.tiles:
            raise LocalProtocolError(
                f"space {self.name!r}: {self.tiles} tiles, {self.names.count(0)} names"
            )
        fields.short(self.id, "the number of a space")
        for text in (self.name, self.driver, self.tile_title, self.block_info):
            fields.text(text)
        fields.number(self.tiles, "the number of tiles")
        fields.text(self.unused_text)
        fields.boolean(self.main)
        fields.short(len(self.streams))
        for stream in self.streams:
            stream.write(fields)
        fields.raw(self.names)

    @classmethod
    def read(cls, fields: FieldReader) -> SpaceDefinition:
        """Read one.

        Raises:
            RemoteProtocolError: A field is impossible.
        """
        number = fields.short("the number of a space")
        if not 0 <= number < MOST_SPACES:
            raise fields.wrong(f"the number of a space is {number}; it is 0 to {MOST_SPACES - 1}")
        name = fields.text("the name of a space")
        driver = fields.text("the name of a driver")
        tile_title = fields.text("the title of a tile")
        block_info = fields.text("the text about tiles")
        tiles = fields.count("the number of tiles", MOST_TILES)
        unused_text = fields.text("the text of unused tiles")
        main = fields.boolean("whether a space is the main one")
        count = fields.count("the number of streams", MOST_STREAMS, short=True)
        streams = tuple(StreamDefinition.read(fields) for _ in range(count))
        numbers = [one.id for one in streams]
        if len(set(numbers)) != len(numbers):
            raise fields.wrong(f"space {name!r} has two streams of the same number")
        return cls(
            id=number,
            name=name,
            driver=driver,
            tile_title=tile_title,
            block_info=block_info,
            tiles=tiles,
            unused_text=unused_text,
            main=main,
            streams=streams,
            names=fields.text_block(tiles, f"the names of the tiles of space {name!r}"),
        )
