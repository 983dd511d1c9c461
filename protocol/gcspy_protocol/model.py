"""The model that both ends share: spaces, streams, events, filters, states.

Source: Printezis and Jones, OOPSLA 2002, sections 3 and 5. How we differ is
said in SPEC.md: 64-bit values, unknown tiles, stable keys, epochs.

Knows what the words mean; does not know how they are put into bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, IntFlag, StrEnum

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.errors import LocalProtocolError

__all__ = [
    "CONTROL_STREAM",
    "Control",
    "ControlState",
    "DTYPES",
    "EventFilter",
    "EventKind",
    "Mode",
    "Naming",
    "PaintStyle",
    "PauseActsOn",
    "Presentation",
    "Role",
    "Space",
    "Stream",
]

CONTROL_STREAM = 0xFFFF
"""Stream id under which a space's control stream (u8 flags) travels."""

DTYPES: dict[str, int] = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "i8": 7, "u8": 8}
"""Integer types of a stream and their numbers on the wire; all little-endian."""


class Presentation(IntEnum):
    """How a stream's values are shown (paper section 3.6; the numbers are the original's)."""

    PLAIN = 0
    PLUS = 1
    """A value above the maximum is shown as ``max+``."""
    MAX_VAR = 2
    """The maximum is that of the current event's used tiles."""
    PERCENT = 3
    """Percent of the stream's maximum; summary is (sum, total)."""
    PERCENT_VAR = 4
    """Percent of the value of the stream's max stream in the same tile."""
    ENUM = 5
    """The value indexes the stream's names; summary is a count per name."""


class PaintStyle(IntEnum):
    """Whether the stream's zero value has a look of its own (paper section 6.1)."""

    PLAIN = 0
    ZERO = 1


class Control(IntFlag):
    """Flags of a tile in the control stream (paper section 3.5; the original's numbers)."""

    USED = 1
    BACKGROUND = 2
    UNUSED = 4
    SEPARATOR = 8
    """A separator stands before the tile."""
    LINK = 16
    """A link stands after the tile."""


class Naming(StrEnum):
    """What a tile's name is made of."""

    UNIFORM = "uniform"
    """Base address and tile size: tile i is ``[base + i*size, base + (i+1)*size)``."""
    EXTENTS = "extents"
    """A base address and a size for each tile."""
    STRINGS = "strings"
    """Texts, fetched a page at a time."""


class Role(Enum):
    """Which end of a connection."""

    CLIENT = "client"
    SERVER = "server"


class Mode(StrEnum):
    """How the target is watched (DESIGN section 7)."""

    PASSIVE = "passive"
    STOPPED = "stopped"
    COOPERATIVE = "cooperative"
    EMBEDDED = "embedded"
    PLAYBACK = "playback"


class PauseActsOn(StrEnum):
    """What stands still when the session is paused."""

    PROGRAM = "program"
    SAMPLING = "sampling"
    PLAYBACK = "playback"


class ControlState(StrEnum):
    """State of the control flow (paper section 5.2)."""

    RUNNING = "running"
    PAUSING = "pausing"
    """About to pause: asked for, takes effect after the next transmission."""
    PAUSED = "paused"
    ENDED = "ended"
    """The target is gone; what was received stays."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """One integer attribute of every tile of a space.

    Attributes:
        id: Number, unique in its space, never used again.
        name: Short name, as in the view chooser.
        dtype: A key of `DTYPES`.
        minimum: Least meaningful value.
        maximum: Greatest meaningful value; for PERCENT what 100 % is.
        zero: The value that PaintStyle.ZERO draws empty.
        default: The value of a tile of which nothing is said.
        prefix: Text before a value.
        suffix: Text after a value, with its leading space: `` bytes``.
        presentation: How values are shown.
        paint_style: Whether `zero` has its own look.
        max_stream: For PERCENT_VAR the id of the stream that is 100 %.
        enum_names: For ENUM the names, by value.
        colour: Hint, red, green and blue from 0 to 255; None leaves it to the client.
        order: Importance: the client offers lower numbers first.
        accumulates: Values add up over events instead of being gathered afresh.
        names_from: Id of a space with text names: the value v means its tile v; None: a value is a number.
        description: One sentence for a tooltip.
    """

    id: int
    name: str
    dtype: str = "i4"
    minimum: int = 0
    maximum: int = 100
    zero: int = 0
    default: int = 0
    prefix: str = ""
    suffix: str = ""
    presentation: Presentation = Presentation.PLAIN
    paint_style: PaintStyle = PaintStyle.PLAIN
    max_stream: int | None = None
    enum_names: tuple[str, ...] = ()
    colour: tuple[int, int, int] | None = None
    order: int = 0
    accumulates: bool = False
    names_from: int | None = None
    description: str = ""

    def __post_init__(self) -> None:
        """Refuse a stream that no client could show.

        Raises:
            LocalProtocolError: A type, range or reference is not possible.
        """
        if self.dtype not in DTYPES:
            raise LocalProtocolError(
                f"stream {self.name!r}: type {self.dtype!r} is none of {', '.join(DTYPES)}"
            )
        for what, number in (
            ("minimum", self.minimum),
            ("maximum", self.maximum),
            ("zero", self.zero),
        ):
            if not -(1 << 63) <= number < 1 << 64:
                raise LocalProtocolError(
                    f"stream {self.name!r}: {what} {number} does not fit 64 bits"
                )
        info = np.iinfo(self.dtype)
        if not info.min <= self.default <= info.max:
            raise LocalProtocolError(
                f"stream {self.name!r}: default {self.default} does not fit {self.dtype}"
            )
        if self.minimum > self.maximum:
            raise LocalProtocolError(
                f"stream {self.name!r}: minimum {self.minimum} > maximum {self.maximum}"
            )
        if (self.presentation is Presentation.ENUM) != bool(self.enum_names):
            raise LocalProtocolError(
                f"stream {self.name!r}: names belong to ENUM streams, and those need them"
            )
        if (self.presentation is Presentation.PERCENT_VAR) != (self.max_stream is not None):
            raise LocalProtocolError(
                f"stream {self.name!r}: a max stream belongs to PERCENT_VAR, and that needs one"
            )

    @property
    def summary_length(self) -> int:
        """How many numbers the stream's summary has: 1, 2 (sum, total) or one a name."""
        if self.presentation is Presentation.ENUM:
            return len(self.enum_names)
        return 2 if self.presentation in (Presentation.PERCENT, Presentation.PERCENT_VAR) else 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """A named component of the target, cut into a row of tiles.

    Attributes:
        id: Number, never used again in a session.
        name: Name, as in the window's title of the space.
        driver: The driver that made it.
        tile_title: What a tile is called, with a trailing space: ``Pool ``.
        unused_text: What an unused tile is: ``not carved yet``.
        naming: What names of tiles are made of.
        main: Whether the client should make it the active space at first.
        row_width: Tiles in a row for a 2-D space, else None.
        description: One sentence.
        details: What can be asked of a tile and of the whole space (SPEC.md section 8.11): ``types``.
        streams: Its streams.
    """

    id: int
    name: str
    driver: str = ""
    tile_title: str = "Tile "
    unused_text: str = "unused"
    naming: Naming = Naming.UNIFORM
    main: bool = False
    row_width: int | None = None
    description: str = ""
    details: tuple[str, ...] = ()
    streams: tuple[Stream, ...] = ()

    def stream(self, stream_id: int) -> Stream:
        """The stream with that id.

        Raises:
            LocalProtocolError: The space has no such stream.
        """
        for stream in self.streams:
            if stream.id == stream_id:
                return stream
        raise LocalProtocolError(f"space {self.name!r} has no stream {stream_id}")


@dataclass(frozen=True, kw_only=True, slots=True)
class EventKind:
    """A kind of event: its number and name."""

    id: int
    name: str
    description: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFilter:
    """What the server does at events of one kind (paper section 5.3).

    Attributes:
        event: The kind's id.
        enabled: Whether such events are transmitted at all.
        delay_millis: How long the server waits after the transmission.
        pause: Whether the server pauses after the transmission.
        period: One in so many is transmitted, counted by the occurrence number.
    """

    event: int
    enabled: bool = True
    delay_millis: int = 0
    pause: bool = False
    period: int = 1

    def wants(self, occurrence: int) -> bool:
        """Whether the event with this occurrence number (from 1) is to be transmitted."""
        return self.enabled and occurrence % self.period == 0


Values = NDArray[np.signedinteger | np.unsignedinteger]
"""Shape (tiles,): one integer a tile, in the stream's dtype."""
