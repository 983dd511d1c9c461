"""`PublishedSpaces`: the spaces of a session, as the program describes them in its segment.

A space whose definition changes is removed and added again, since clients know a definition once
and for all. A value outside of its declared range is unknown. Knows records and the server's API;
does not know memory or events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import LocalProtocolError, TargetError

from gcspy_drivers.kit.streams import I8_MAX, U4_MAX, hide_all
from gcspy_drivers.published.segment import (
    ENUM,
    EXTENTS,
    TEXTS,
    UNKNOWN,
    SegmentReader,
    SpaceRecord,
    StreamRecord,
)
from gcspy_server.api import (
    Control,
    ExtentNames,
    GatherRequest,
    PaintStyle,
    Presentation,
    Server,
    ServerSpace,
    ServerStream,
    StringNames,
    TileNames,
    UniformNames,
)

__all__ = ["PublishedSpaces", "SpaceData", "copy_space"]

_FLAGS: Final = (
    Control.USED | Control.BACKGROUND | Control.UNUSED | Control.SEPARATOR | Control.LINK
)
_STATES: Final = int(Control.USED | Control.BACKGROUND | Control.UNUSED)
_ADDRESSES: Final = 1 << 64


@dataclass(frozen=True)
class SpaceData:
    """A space at one event, copied.

    Attributes:
        record: Its description.
        control: (tiles,) flags of the tiles.
        values: (tiles,) values of each stream, by its number in the segment.
        summaries: The summaries that the program has set, likewise.
        extents: (tiles, 2) addresses and sizes, of EXTENTS.
        texts: Names of the tiles, of TEXTS.
    """

    record: SpaceRecord
    control: npt.NDArray[np.uint8]
    values: Mapping[int, npt.NDArray[np.int64]]
    summaries: Mapping[int, tuple[int, ...]]
    extents: npt.NDArray[np.uint64] | None
    texts: tuple[str, ...]


def copy_space(segment: SegmentReader, record: SpaceRecord) -> SpaceData:
    """Copy the data of a space.

    Raises:
        TargetError: It cannot be read.
    """
    summaries = {place.index: segment.summary(place) for place in record.streams}
    return SpaceData(
        record,
        segment.control(record),
        {place.index: segment.values(place, record.tiles) for place in record.streams},
        {index: values for index, values in summaries.items() if values is not None},
        segment.extents(record) if record.naming == EXTENTS else None,
        segment.texts(record) if record.naming == TEXTS else (),
    )


class _Shown:
    """A space of the session."""

    def __init__(self, server: Server, record: SpaceRecord, driver: str) -> None:
        self.definition = record.definition
        self._texts: tuple[str, ...] = ()
        self.space = server.add_space(
            record.name,
            names=_first_names(record),
            driver=driver,
            tile_title=f"{record.title} " if record.title else "Tile ",
            unused_text=record.unused or "unused",
            main=record.main,
            row_width=record.row_width or None,
            description=record.about,
        )
        self.streams: dict[int, ServerStream] = {}
        try:
            self._add_streams(record)
        except LocalProtocolError as error:
            server.remove_space(self.space)
            raise TargetError(f"the program describes a space that cannot be: {error}") from error

    def _add_streams(self, record: SpaceRecord) -> None:
        # A stream in percent of another one comes after it.
        for place in sorted(record.streams, key=lambda one: one.record.of is not None):
            stream = place.record
            whole = None if stream.of is None else self.streams.get(stream.of)
            if stream.of is not None and whole is None:
                raise LocalProtocolError(
                    f"stream {stream.name!r} is in percent of one that is in percent of another"
                )
            self.streams[place.index] = _add(self.space, stream, whole, record.streams.index(place))

    def fill(self, data: SpaceData, request: GatherRequest) -> None:
        """Fill it with the data of an event."""
        record = data.record
        try:
            names = self._names(data)
            if names != self.space.names:
                self.space.resize(names)
        except LocalProtocolError as error:
            self.space.tell(
                f"not shown: the program names its tiles in a way that cannot be: {error}"
            )
            hide_all(self.streams.values())
            return
        self.space.reset()
        self.space.control[:] = _valid_flags(data.control)
        outside = 0
        for place in record.streams:
            stream = self.streams[place.index]
            if not request.wants(self.space, stream):
                continue
            outside += _set(stream, data.values[place.index])
            summary = data.summaries.get(place.index)
            if summary is not None and len(summary) == stream.schema.summary_length:
                stream.set_summary(*summary)
        said = f"{outside:,} values are outside of the range that the program declares: unknown"
        self.space.info = "; ".join(filter(None, (record.info, said if outside else "")))

    def hide(self) -> None:
        """Mark everything as unknown."""
        hide_all(self.streams.values())

    def _names(self, data: SpaceData) -> TileNames:
        record = data.record
        if data.extents is not None:
            return ExtentNames(data.extents[:, 0], data.extents[:, 1])
        if record.naming == TEXTS:
            # The same texts are the same tiles; their keys take a hash each.
            if self._texts == data.texts and isinstance(self.space.names, StringNames):
                return self.space.names
            self._texts = data.texts
            return StringNames.by_text(data.texts)
        return _uniform_names(record)


class PublishedSpaces:
    """All spaces of one program.

    Args:
        server: The session's server.
        driver: Name of the driver.
    """

    def __init__(self, server: Server, driver: str) -> None:
        self._server = server
        self._driver = driver
        self._shown: dict[int, _Shown] = {}

    def follow(self, records: tuple[SpaceRecord, ...]) -> None:
        """Add and remove spaces, between events.

        Raises:
            TargetError: The program describes a space that no client could show.
        """
        described = {record.index: record for record in records}
        for index, shown in list(self._shown.items()):
            if index not in described or described[index].definition != shown.definition:
                self._server.remove_space(shown.space)
                del self._shown[index]
        for index, record in described.items():
            if index not in self._shown:
                self._shown[index] = _Shown(self._server, record, self._driver)

    def wanted(self, request: GatherRequest) -> int:
        """Return the spaces that a request wants, a bit each by their number in the segment."""
        return sum(1 << index for index, shown in self._shown.items() if request.wants(shown.space))

    def fill(self, copied: Mapping[int, SpaceData], request: GatherRequest) -> None:
        """Fill the requested spaces; those that were not copied are of an earlier event."""
        for index, shown in self._shown.items():
            data = copied.get(index)
            if data is None or data.record.definition != shown.definition:
                continue
            if request.wants(shown.space):
                shown.fill(data, request)

    def hide(self, request: GatherRequest) -> None:
        """Mark the requested spaces as unknown."""
        for shown in self._shown.values():
            if request.wants(shown.space):
                shown.hide()


def _first_names(record: SpaceRecord) -> TileNames:
    """Return the names until the first event: those of equal tiles, if they are possible; else no tiles."""
    if record.naming == EXTENTS:
        return ExtentNames([], [])
    if record.naming == TEXTS:
        return StringNames(())
    try:
        return _uniform_names(record)
    except LocalProtocolError:
        return UniformNames(0, record.tile_bytes, 0)


def _uniform_names(record: SpaceRecord) -> UniformNames:
    if record.base + record.tile_bytes * record.tiles >= _ADDRESSES:
        raise LocalProtocolError(f"tiles from {record.base:#x} leave 64-bit addresses")
    return UniformNames(record.base, record.tile_bytes, record.tiles)


def _add(
    space: ServerSpace, stream: StreamRecord, whole: ServerStream | None, order: int
) -> ServerStream:
    presentation = Presentation(stream.presentation)
    maximum = stream.maximum
    if presentation is Presentation.ENUM:
        maximum = len(stream.enum_names) - 1
    elif presentation in (Presentation.MAX_VAR, Presentation.PERCENT_VAR) and maximum <= 0:
        maximum = I8_MAX
    return space.add_stream(
        stream.name,
        dtype=_dtype(stream, maximum),
        minimum=0 if presentation is Presentation.ENUM else stream.minimum,
        maximum=maximum,
        zero=stream.zero,
        default=stream.default,
        suffix=stream.suffix,
        presentation=presentation,
        max_stream=whole,
        paint_style=PaintStyle.ZERO if stream.paint else PaintStyle.PLAIN,
        enum_names=stream.enum_names,
        colour=stream.colour,
        order=order,
        threshold=stream.threshold,
        description=stream.about,
    )


def _dtype(stream: StreamRecord, maximum: int) -> str:
    """Choose the shortest type that holds all values; a stream that may pass its maximum gets the longest."""
    least = min(stream.minimum, stream.default, stream.zero)
    most = max(maximum, stream.default, stream.zero)
    if stream.presentation == ENUM and least >= 0 and most <= 255:
        return "u1"
    if least >= 0 and most <= U4_MAX and not stream.threshold:
        return "u4"
    return "i8"


def _set(stream: ServerStream, values: npt.NDArray[np.int64]) -> int:
    """Fill a stream; return how many values are outside of its range."""
    schema = stream.schema
    unknown = values == UNKNOWN
    least, most = schema.minimum, schema.maximum
    if schema.presentation is Presentation.PLUS:  # shown as "max+", however much it is
        most = int(np.iinfo(schema.dtype).max)
        values = np.minimum(values, most)
    # A limit of 64 bits without a sign would be one that numpy cannot compare.
    outside = ((values < max(least, -I8_MAX)) | (values > min(most, I8_MAX))) & ~unknown
    wrong = unknown | outside
    stream.data[:] = np.where(wrong, schema.default, values)
    if wrong.any():
        stream.set_unknown(wrong)
    return int(outside.sum())


def _valid_flags(flags: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return flags without unknown bits; a tile with no state, or several, is used."""
    known = flags & np.uint8(int(_FLAGS))
    state = known & np.uint8(_STATES)
    several = (state & (state - np.uint8(1))) != 0
    wrong = several | (state == 0)
    lines = known & np.uint8(int(_FLAGS) & ~_STATES)
    return np.where(wrong, lines | np.uint8(int(Control.USED)), known).astype(np.uint8)
