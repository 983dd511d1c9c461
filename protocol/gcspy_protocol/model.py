"""The model that both ends share: spaces, streams, events, filters, states.

Source: Printezis and Jones, OOPSLA 2002, sections 3 and 5. SPEC.md lists the differences: 64-bit
values, unknown tiles, stable keys, epochs.

Knows the meaning of the terms; does not know their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
"""Stream id of a space's control stream (u8 flags) on the wire."""

DTYPES: dict[str, int] = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "i8": 7, "u8": 8}
"""Integer types of a stream and their numbers on the wire; all little-endian."""


class Presentation(IntEnum):
    """How a stream's values are displayed (paper section 3.6; the numbers are the original's)."""

    PLAIN = 0
    PLUS = 1
    """A value above the maximum is shown as ``max+``."""
    MAX_VAR = 2
    """The maximum is that of the event's used tiles."""
    PERCENT = 3
    """Percent of the stream's maximum; summary is (sum, total)."""
    PERCENT_VAR = 4
    """Percent of the value of the stream's max stream in the same tile."""
    ENUM = 5
    """The value indexes the stream's names; summary is a count per name."""


class PaintStyle(IntEnum):
    """Whether the stream's zero value has a colour of its own (paper section 6.1)."""

    PLAIN = 0
    ZERO = 1


class Control(IntFlag):
    """Flags of a tile in the control stream (paper section 3.5; the original's numbers)."""

    USED = 1
    BACKGROUND = 2
    UNUSED = 4
    SEPARATOR = 8
    """A separator is drawn before the tile."""
    LINK = 16
    """A link is drawn after the tile."""


class Naming(StrEnum):
    """Kind of a tile's name."""

    UNIFORM = "uniform"
    """Base address and tile size: tile i is ``[base + i*size, base + (i+1)*size)``."""
    EXTENTS = "extents"
    """A base address and a size for each tile."""
    STRINGS = "strings"
    """Texts, fetched a page at a time."""


class Role(Enum):
    """End of a connection."""

    CLIENT = "client"
    SERVER = "server"


class Mode(StrEnum):
    """Mode of monitoring the target (DESIGN section 7)."""

    PASSIVE = "passive"
    STOPPED = "stopped"
    COOPERATIVE = "cooperative"
    EMBEDDED = "embedded"
    PLAYBACK = "playback"


class PauseActsOn(StrEnum):
    """Activity that a pause of the session stops."""

    PROGRAM = "program"
    SAMPLING = "sampling"
    PLAYBACK = "playback"


class ControlState(StrEnum):
    """State of the control flow (paper section 5.2)."""

    RUNNING = "running"
    PAUSING = "pausing"
    """A pause was requested, and takes effect after the next transmission."""
    PAUSED = "paused"
    ENDED = "ended"
    """The target is gone; received data stays."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """One integer attribute of every tile of a space.

    Attributes:
        id: Number, unique in its space, never reused.
        name: Short name, as in the view chooser.
        dtype: A key of `DTYPES`.
        minimum: Least valid value.
        maximum: Greatest valid value; for PERCENT the value of 100 %.
        zero: The value that PaintStyle.ZERO draws empty.
        default: The value of a tile without data.
        prefix: Text before a value.
        suffix: Text after a value, with its leading space: `` bytes``.
        presentation: How values are shown.
        paint_style: Whether `zero` has a colour of its own.
        max_stream: For PERCENT_VAR the id of the stream that is 100 %.
        enum_names: For ENUM the names, by value.
        colour: Hint, red, green and blue from 0 to 255; None leaves it to the client.
        order: Importance: the client lists lower numbers first.
        accumulates: Values accumulate over events instead of being gathered again.
        names_from: Id of a space with text names: the value v means its tile v; None: a value is a number.
        threshold: Whether the maximum, or 100 %, is a threshold that values pass in normal operation, not a limit. Streams that
            differ in it alone are equal: their values mean the same.
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
    threshold: bool = field(default=False, compare=False)
    description: str = ""

    def __post_init__(self) -> None:
        """Refuse a stream that no client could show.

        Raises:
            LocalProtocolError: A type, range or reference is impossible.
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
    def is_exceeded_normally(self) -> bool:
        """Whether a value above the maximum is nothing to be alarmed about: it is declared so, or shown as ``max+``."""
        return self.threshold or self.presentation is Presentation.PLUS

    @property
    def summary_length(self) -> int:
        """Number of numbers in the stream's summary: 1, 2 (sum, total) or one per name."""
        if self.presentation is Presentation.ENUM:
            return len(self.enum_names)
        return 2 if self.presentation in (Presentation.PERCENT, Presentation.PERCENT_VAR) else 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """A named component of the target, divided into a row of tiles.

    Attributes:
        id: Number, never reused in a session.
        name: Name, as in the window's title of the space.
        driver: The driver that made it.
        tile_title: Title of a tile, with a trailing space: ``Pool ``.
        unused_text: Meaning of an unused tile: ``not carved yet``.
        naming: Kind of the names of tiles.
        main: Whether the client should make it the active space at first.
        row_width: Tiles in a row for a 2-D space, else None.
        description: One sentence.
        details: Kinds of questions about a tile and the whole space (SPEC.md section 8.11):
            ``types``.
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
    """The server's treatment of events of one kind (paper section 5.3).

    Attributes:
        event: The kind's id.
        enabled: Whether such events are transmitted at all.
        delay_millis: How long the server waits after the transmission.
        pause: Whether the server pauses after the transmission.
        period: Every n-th event is transmitted, counted by the occurrence number.
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
"""Shape (tiles,): one integer per tile, in the stream's dtype."""
