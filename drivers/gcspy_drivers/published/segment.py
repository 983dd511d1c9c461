"""The segment of `gcspy.h`, decoded: its head, spaces and streams, and where their values are.

Everything in it was written by the target and is believed only as far as it is checked: each count
and each offset is compared with a limit, and with the size of the segment, before anything is read
or allocated. Knows bytes; does not know where they come from, or the server.

Source: `drivers/native/include/gcspy.h`, gcspy_segment, gcspy_space, gcspy_stream; a test compares
the offsets with those of a C compiler.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

__all__ = [
    "HEAD_BYTES",
    "MOST_BYTES",
    "UNKNOWN",
    "Head",
    "SegmentReader",
    "SpaceRecord",
    "StreamRecord",
]

VERSION: Final = 1
UNKNOWN: Final = -(1 << 63)
"""Value of a tile that is not known to the program."""

MOST_BYTES: Final = 1 << 36
"""A larger segment is refused; it is address space, most of it not used."""

_MAGIC: Final = b"gcspysgm"
_KINDS: Final = 32
_MOST_SPACES: Final = 32
_MOST_STREAMS: Final = 256
_MOST_TILES: Final = 1 << 25
_MOST_VALUES: Final = 1 << 27
"""Values of all streams of an event: 1 GiB."""

_MOST_COUNT: Final = 1 << 48
"""No program has more events of a kind: 90 years at 100,000 a second."""

_HEAD: Final = struct.Struct("<8s2I2Q4I5Q32s128s64s256s2Q328x32Q1024s")
HEAD_BYTES: Final = _HEAD.size
_SPACE: Final = struct.Struct("<64s32s32s128s160s2Q6I2Q32x")
_STREAM: Final = struct.Struct("<32s16s96s4q8I3Q16x")
_SPACES_AT: Final = HEAD_BYTES
_STREAMS_AT: Final = _SPACES_AT + _MOST_SPACES * _SPACE.size
_ENUM_NAME_BYTES: Final = 32
_TEXT_BYTES: Final = 48
_EXTENT_BYTES: Final = 16
_COLOUR_SET: Final = 1 << 24

UNIFORM, EXTENTS, TEXTS = range(3)
PERCENT, PERCENT_VAR, ENUM = 3, 4, 5
MAIN, REMOVED = 1, 2

Read = Callable[[int, int], bytes]
"""Reads some bytes of the segment: offset and size, which are inside of it."""


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of the segment.

    Attributes:
        version: Of the header.
        can_wait: Whether the program can be held in an event.
        size_bytes: Of the segment.
        spaces: How many there are, removed ones included.
        streams: How many there are.
        live: Whether the program writes into it; a child made by fork does not.
        schema: Changes when spaces or streams do.
        kind: Number of the latest event's kind.
        number: Its number among those of its kind, from 1; 0: there was none.
        time_nanos: When, by the monotonic clock.
        clock: Name and value of the program's own clock; None: none.
        cause: Why it happened.
        name: What the program calls itself.
        info: Text about the whole.
        passed: Events that were not written since another one was being written.
        let_go: The sequence at which the program went on without an answer; 0: never.
        counts: Events of each kind.
        kinds: Names of the kinds of event.
    """

    version: int
    can_wait: bool
    size_bytes: int
    spaces: int
    streams: int
    live: bool
    schema: int
    kind: int
    number: int
    time_nanos: int
    clock: tuple[str, int] | None
    cause: str
    name: str
    info: str
    passed: int
    let_go: int
    counts: tuple[int, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A stream as the program describes it.

    Attributes:
        name: Its name.
        suffix: Unit, with a space before it.
        about: A sentence.
        minimum: Least value.
        maximum: Greatest value, or that of 100 %.
        zero: The value that means "nothing here".
        default: The value of a tile without data.
        presentation: Number of the presentation.
        paint: Whether `zero` has a colour of its own.
        colour: Red, green, blue; None: any.
        enum_names: Names of the values.
        of: The stream of the same space that is 100 %, by its index in the segment; None: none.
        threshold: See `gcspy_protocol.model.Stream`.
    """

    name: str
    suffix: str
    about: str
    minimum: int
    maximum: int
    zero: int
    default: int
    presentation: int
    paint: bool
    colour: tuple[int, int, int] | None
    enum_names: tuple[str, ...]
    of: int | None
    threshold: bool


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Where the values of a stream are.

    Attributes:
        index: Number of the stream in the segment.
        record: Its definition.
        data_at: Offset of the values.
        summary_at: Offset of the summary, if the program has set one; else 0.
    """

    index: int
    record: StreamRecord
    data_at: int
    summary_at: int


@dataclass(frozen=True, slots=True)
class SpaceRecord:
    """A space as the program describes it, at one event.

    Attributes:
        index: Number of the space in the segment.
        name: Its name.
        title: Title of a tile.
        unused: Description of an unused tile.
        about: A sentence.
        info: Text for this event.
        base: Address of the first tile.
        tile_bytes: Size of a tile.
        tiles: How many there are now.
        naming: UNIFORM, EXTENTS or TEXTS.
        main: Whether it is the main space.
        row_width: Tiles in a row; 0: any.
        control_at: Offset of the flags of the tiles.
        names_at: Offset of the names of the tiles.
        streams: Its streams.
    """

    index: int
    name: str
    title: str
    unused: str
    about: str
    info: str
    base: int
    tile_bytes: int
    tiles: int
    naming: int
    main: bool
    row_width: int
    control_at: int
    names_at: int
    streams: tuple[StreamPlace, ...]

    @property
    def definition(self) -> tuple[object, ...]:
        """The part that clients get once and for all: a space with another definition is another space."""
        return (
            self.name,
            self.title,
            self.unused,
            self.about,
            self.naming,
            self.main,
            self.row_width,
            tuple((place.index, place.record) for place in self.streams),
        )


class SegmentReader:
    """Reads one segment.

    Args:
        read: Reads its bytes.
        size_bytes: Its size, as the control page says.
        where: The process, for messages.

    Raises:
        TargetError: The size is impossible.
    """

    def __init__(self, read: Read, size_bytes: int, where: str) -> None:
        if not _STREAMS_AT <= size_bytes <= MOST_BYTES:
            raise TargetError(
                f"{where}: its gcspy.h segment has {size_bytes} bytes; it has {_STREAMS_AT} to {MOST_BYTES}"
            )
        self._read = read
        self._size = size_bytes
        self._where = where
        self._names: dict[tuple[int, int], tuple[str, ...]] = {}

    def head(self) -> Head:
        """Read the head.

        Raises:
            TargetError: It is not one that we understand, or claims what cannot be.
        """
        raw = _HEAD.unpack(self._read(0, HEAD_BYTES))
        magic, version, flags, size, _, kinds, spaces, streams, live = raw[:9]
        schema, kind, number, time_nanos, clock = raw[9:14]
        clock_name, cause, name, info, passed, let_go = raw[14:20]
        counts, kind_names = raw[20:52], raw[52]
        if magic != _MAGIC:
            raise TargetError(
                f"{self._where}: its gcspy.h segment is empty: the program has closed it, or it is a child made by fork, which has to call gcspy_open"
            )
        if version != VERSION:
            raise TargetError(
                f"{self._where}: it uses gcspy.h of version {version}, this gcspy knows {VERSION}: build it with the header of this gcspy (`gcspy --include-dir`)"
            )
        self._bound("kinds of event", kinds, _KINDS, least=1)
        self._bound("spaces", spaces, _MOST_SPACES)
        self._bound("streams", streams, _MOST_STREAMS)
        self._bound("as kind of its latest event the number", kind, kinds - 1)
        self._bound("events of a kind", max(*counts, number, passed), _MOST_COUNT)
        clock_text = _text(clock_name)
        return Head(
            version, bool(flags & 1), size, spaces, streams, bool(live), schema, kind, number, time_nanos,
            (clock_text, clock) if clock_text and clock < 1 << 63 else None,
            _text(cause), _text(name), _text(info), passed, let_go, counts[:kinds],
            _distinct([_text(kind_names[at * 32 : at * 32 + 32]) for at in range(kinds)], "Event"),
        )  # fmt: skip

    def spaces(self, head: Head) -> tuple[SpaceRecord, ...]:
        """Read the spaces that are not removed, with their streams.

        Raises:
            TargetError: One of them cannot be.
        """
        raw_spaces = self._records(_SPACES_AT, _SPACE, head.spaces)
        raw_streams = self._records(_STREAMS_AT, _STREAM, head.streams)
        found = []
        values = 0
        for index, raw in enumerate(raw_spaces):
            name, title, unused, about, info, base, tile_bytes = raw[:7]
            tiles, most, naming, flags, row_width, _, control_at, names_at = raw[7:]
            if flags & REMOVED:
                continue
            text = _text(name) or f"Space {index}"
            what = f"space {text!r}: "
            self._bound(f"{what}a naming of the number", naming, TEXTS)
            self._bound(f"{what}room for tiles", most, _MOST_TILES)
            self._bound(f"{what}tiles", tiles, most)
            if naming == UNIFORM and not tile_bytes:
                raise TargetError(f"{self._where}: {what}tiles of 0 bytes")
            self._inside(f"{what}control stream", control_at, tiles)
            if naming != UNIFORM:
                width = _TEXT_BYTES if naming == TEXTS else _EXTENT_BYTES
                self._inside(f"{what}names", names_at, width * tiles)
            streams = self._streams(index, what, tiles, raw_streams)
            values += tiles * (1 + len(streams))
            self._bound("values in all", values, _MOST_VALUES)
            found.append(
                SpaceRecord(
                    index, text, _text(title), _text(unused), _text(about), _text(info), base, tile_bytes, tiles, naming,
                    bool(flags & MAIN), row_width if row_width <= _MOST_TILES else 0, control_at, names_at, streams,
                )
            )  # fmt: skip
        return tuple(found)

    def values(self, place: StreamPlace, tiles: int) -> npt.NDArray[np.int64]:
        """Read the values of a stream, (tiles,), new."""
        return np.frombuffer(self._read(place.data_at, 8 * tiles), dtype="<i8").astype(np.int64)

    def control(self, space: SpaceRecord) -> npt.NDArray[np.uint8]:
        """Read the flags of the tiles of a space, (tiles,)."""
        return np.frombuffer(self._read(space.control_at, space.tiles), dtype=np.uint8)

    def summary(self, place: StreamPlace) -> tuple[int, ...] | None:
        """Read the summary that the program has set; None: it has set none."""
        if not place.summary_at:
            return None
        count = 2 if place.record.presentation in (PERCENT, PERCENT_VAR) else 1
        pair: tuple[int, ...] = struct.unpack("<2q", self._read(place.summary_at, 16))
        return pair[:count] if place.record.presentation != PERCENT_VAR else None

    def extents(self, space: SpaceRecord) -> npt.NDArray[np.uint64]:
        """Read addresses and sizes of the tiles of a space, (tiles, 2)."""
        data = self._read(space.names_at, _EXTENT_BYTES * space.tiles)
        return np.frombuffer(data, dtype="<u8").reshape(-1, 2).astype(np.uint64)

    def texts(self, space: SpaceRecord) -> tuple[str, ...]:
        """Read the names of the tiles of a space."""
        data = self._read(space.names_at, _TEXT_BYTES * space.tiles)
        rows = np.frombuffer(data, dtype=f"S{_TEXT_BYTES}").tolist()
        return tuple(_text(row) for row in rows)

    def _streams(
        self, space: int, what: str, tiles: int, records: list[tuple[Any, ...]]
    ) -> tuple[StreamPlace, ...]:
        mine = [index for index, raw in enumerate(records) if raw[10] == space]
        raw_names = [_text(records[index][0]) for index in mine]
        return tuple(
            self._stream(index, f"{what}stream {name!r}: ", name, tiles, records[index], mine)
            for index, name in zip(mine, _distinct(raw_names, "Stream"), strict=True)
        )

    def _stream(
        self, index: int, what: str, name: str, tiles: int, raw: tuple[Any, ...], mine: list[int]
    ) -> StreamPlace:
        _, suffix, about, least, most, nothing, first = raw[:7]
        presentation, paint, colour, _, names, of, threshold, summarised = raw[7:15]
        data_at, names_at, summary_at = raw[15:]
        self._bound(f"{what}a presentation of the number", presentation, ENUM)
        self._inside(f"{what}values", data_at, 8 * tiles)
        if least > most:
            raise TargetError(f"{self._where}: {what}a minimum of {least} and a maximum of {most}")
        whole = of - 1 if presentation == PERCENT_VAR else None
        if whole is not None and whole not in mine:
            raise TargetError(
                f"{self._where}: {what}it is in percent of stream {whole}, which is not of this space"
            )
        enum_names: tuple[str, ...] = ()
        if presentation == ENUM:
            self._bound(f"{what}names", names, 256, least=1)
            self._inside(f"{what}names", names_at, _ENUM_NAME_BYTES * names)
            enum_names = self._enum_names(names_at, names)
        if summarised:
            self._inside(f"{what}summary", summary_at, 16)
        record = StreamRecord(
            name, _text(suffix), _text(about), least, most, nothing, first, presentation, bool(paint),
            (colour >> 16 & 255, colour >> 8 & 255, colour & 255) if colour & _COLOUR_SET else None,
            enum_names, whole, bool(threshold),
        )  # fmt: skip
        return StreamPlace(index, record, data_at, summary_at if summarised else 0)

    def _enum_names(self, at: int, count: int) -> tuple[str, ...]:
        """Read the names of values, once: they do not change."""
        if (at, count) not in self._names:
            data = self._read(at, _ENUM_NAME_BYTES * count)
            rows = (
                data[row : row + _ENUM_NAME_BYTES] for row in range(0, len(data), _ENUM_NAME_BYTES)
            )
            if len(self._names) >= _MOST_STREAMS:
                self._names.clear()
            self._names[at, count] = tuple(_text(row) for row in rows)
        return self._names[at, count]

    def _records(self, at: int, form: struct.Struct, count: int) -> list[tuple[Any, ...]]:
        return list(form.iter_unpack(self._read(at, form.size * count))) if count else []

    def _bound(self, what: str, number: int, most: int, *, least: int = 0) -> None:
        if not least <= number <= most:
            raise TargetError(
                f"{self._where}: its gcspy.h segment has {what} {number}; possible are {least} to {most}"
            )

    def _inside(self, what: str, at: int, size: int) -> None:
        if not HEAD_BYTES <= at <= self._size or size > self._size - at:
            raise TargetError(
                f"{self._where}: its gcspy.h segment has {what} at {at:#x} with {size} bytes; the segment ends at {self._size:#x}"
            )


def _text(raw: bytes) -> str:
    """Return the text up to the first zero; bytes that are no UTF-8 are replaced."""
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def _distinct(names: list[str], what: str) -> tuple[str, ...]:
    """Give names without a text or of an earlier one a number."""
    found: list[str] = []
    for at, name in enumerate(names):
        wanted = name or f"{what} {at}"
        number = 2
        while wanted in found:
            wanted = f"{name or what} ({number})"
            number += 1
        found.append(wanted)
    return tuple(found)
