"""The server's side of spaces and streams: the arrays that a driver fills.

A stream counts as *gathered* in an event when it was touched between `Server.should_transmit` and
`Server.finish`: by `ServerSpace.reset`, by reading `ServerStream.data`, by counting or spreading
into it. Other streams are not sent, so that a client sees that they are stale. An accumulating
stream is always up to date. Knows arrays and names; does not know events or the wire.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
from gcspy_protocol.details import DetailTable
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.model import Control, PaintStyle, Presentation, Space, Stream
from numpy.typing import ArrayLike, NDArray

from gcspy_server import binning
from gcspy_server.names import (
    ExtentNames,
    StringNames,
    TileNames,
    UniformNames,
    runs_between,
)
from gcspy_server.stream_values import check_range, whole_values

__all__ = ["DetailFunction", "ServerSpace", "ServerStream", "SpaceOptions", "StreamOptions"]


DetailFunction = Callable[[int | None, int], DetailTable | None]
"""Returns a table of the content of a tile, or of the whole space (None), with this many rows; None: not known."""


class StreamOptions(TypedDict, total=False):
    """Keyword arguments of `ServerSpace.add_stream`: those of `gcspy_protocol.model.Stream`."""

    minimum: int
    maximum: int
    zero: int
    default: int
    prefix: str
    suffix: str
    presentation: Presentation
    paint_style: PaintStyle
    enum_names: tuple[str, ...]
    colour: tuple[int, int, int] | None
    order: int
    accumulates: bool
    names_from: int | None
    threshold: bool
    description: str


class SpaceOptions(TypedDict, total=False):
    """Keyword arguments of `Server.add_space`; see there."""

    names: TileNames
    driver: str
    tile_title: str
    unused_text: str
    main: bool
    row_width: int | None
    description: str
    details: tuple[str, ...]


class ServerStream:
    """One integer per tile, filled by the driver in place.

    Made by `ServerSpace.add_stream`.

    Attributes:
        schema: Definition of the stream.
    """

    def __init__(self, schema: Stream, count: int, space: str = "") -> None:
        self.schema = schema
        self._space = space
        self._values: NDArray[Any] = np.full(count, schema.default, dtype=schema.dtype)
        self._known: NDArray[np.bool_] | None = None
        self._summary: tuple[tuple[int, ...], int | None] | None = None
        self._latest_summary: tuple[tuple[int, ...], int | None] | None = None
        self._touched = self._ever_touched = False

    @property
    def name(self) -> str:
        """Short name."""
        return self.schema.name

    @property
    def gathered(self) -> bool:
        """Whether it was gathered for the next event; an accumulating stream always is."""
        return self._touched or self.schema.accumulates

    @property
    def was_gathered(self) -> bool:
        """Whether it has ever been gathered, so that `values` are not the defaults alone."""
        return self.gathered or self._ever_touched

    @property
    def data(self) -> NDArray[Any]:
        """The array itself, shape (tiles,), in the stream's dtype, for the driver to fill in place.

        Reading this property marks the stream as gathered in the next event. `ServerSpace.resize`
        replaces the array.
        """
        self._touched = True
        return self._values

    @property
    def values(self) -> NDArray[Any]:
        """The values as filled last, shape (tiles,), in the stream's dtype: a view that cannot be written; reading it gathers nothing."""
        view = self._values.view()
        view.flags.writeable = False
        return view

    @property
    def where(self) -> str:
        """The space and the stream, as named in messages."""
        return f"space {self._space!r}, stream {self.name!r}"

    def set(self, values: ArrayLike) -> None:
        """Fill the stream, with checks.

        Args:
            values: A number for each tile, or one for all. NaN, None and masked values are unknown;
                fractions are rounded.

        Raises:
            LocalProtocolError: It is not one number per tile, or one is outside of the declared
                range.
        """
        found, unknown = whole_values(values, self.schema, len(self._values), self.where)
        self._values[:] = found
        self._known = None
        self._touched = True
        if unknown is not None:
            self._values[unknown] = self.schema.default
            self.set_unknown(unknown)

    def check(self) -> None:
        """Refuse values outside of the declared range, if it was gathered.

        Raises:
            LocalProtocolError: It has such a value; the message names space, stream and tile.
        """
        if self.gathered:
            check_range(self._values, self._known, self.schema, self.where)

    @property
    def known(self) -> NDArray[np.bool_] | None:
        """Shape (tiles,), False where the value could not be read; None: all are known. The array itself."""
        return self._known

    def set_unknown(self, tiles: ArrayLike) -> None:
        """Mark the tiles whose value could not be read.

        Args:
            tiles: A mask of shape (tiles,), bool, or tile numbers; added to those marked since the
                reset.
        """
        which = np.asarray(tiles)
        if which.dtype != np.bool_:
            which = which.astype(np.int64)
        if self._known is None:
            self._known = np.ones(len(self._values), dtype=np.bool_)
        self._known[which] = False
        self._touched = True

    def set_summary(self, *values: int, covered: int | None = None) -> None:
        """Set the summary of the next event, if a sum over tiles would be wrong.

        Args:
            values: One number; for percent streams sum and total; for enums one per name.
            covered: How many tiles it covers; None: all that are used and known.

        Raises:
            LocalProtocolError: The number of values does not fit the presentation.
        """
        if self.schema.names_from is not None:
            raise LocalProtocolError(
                f"{self.where}: a stream of names has no summary; viewers count its tiles"
            )
        if len(values) != self.schema.summary_length:
            raise LocalProtocolError(
                f"{self.where}: a summary of {len(values)} numbers; "
                f"its presentation ({self.schema.presentation.name}) has {self.schema.summary_length}"
            )
        self._summary = (tuple(int(value) for value in values), covered)
        self._touched = True

    def _copy(self) -> ServerStream:
        twin = copy.copy(self)
        twin._values = self._values.copy()
        twin._known = None if self._known is None else self._known.copy()
        return twin

    def _begin(self) -> None:
        """Begin an event, or discard the current one: it is not gathered."""
        if self._touched:
            self._latest_summary, self._ever_touched = self._summary, True
        self._touched = False
        self._summary = None

    def _repeat(self) -> None:
        self._touched = True
        self._summary = self._latest_summary

    def _reset(self) -> None:
        if not self.schema.accumulates:
            self._values.fill(self.schema.default)
            self._known = None
        self._touched = True

    def _add(self, amounts: NDArray[np.int64]) -> None:
        binning.add_saturating(self.data, amounts)


class ServerSpace:
    """A named component of the target, divided into a row of tiles.

    Made by `Server.add_space`.

    Attributes:
        info: Text about the space, for the next event.
    """

    def __init__(self, schema: Space, names: TileNames) -> None:
        self.info = ""
        self._schema = schema
        self._names = names
        self._streams: list[ServerStream] = []
        self._control: NDArray[np.uint8] = np.full(names.count, Control.USED, dtype=np.uint8)
        self._control_touched = True
        self._published = False
        self._details: dict[str, DetailFunction] = {}
        self._details_touched = False
        self._discarded = False
        self._notice = ""

    def tell(self, notice: str) -> None:
        """Set the text for clients on why the space was not gathered, shown instead of `info` until it is gathered again; empty: it was."""
        self._notice = notice

    @property
    def told_info(self) -> str:
        """The current text about the space for clients."""
        return self._notice if self._notice and not self._filled else self.info

    @property
    def withheld(self) -> bool:
        """Whether the filled data is not to be sent: it was discarded, and not filled again since."""
        return self._discarded and not self._filled

    @property
    def _filled(self) -> bool:
        """Whether a stream was filled since the event was requested."""
        return any(stream._touched for stream in self._streams)

    @property
    def schema(self) -> Space:
        """Definition of the space, with its streams."""
        return self._schema

    @property
    def id(self) -> int:
        """Number, never reused in a session."""
        return self._schema.id

    @property
    def name(self) -> str:
        """Name of the space."""
        return self._schema.name

    @property
    def names(self) -> TileNames:
        """The current names of the tiles."""
        return self._names

    @property
    def count(self) -> int:
        """The current number of tiles."""
        return self._names.count

    @property
    def streams(self) -> tuple[ServerStream, ...]:
        """The streams, in order of their ids."""
        return tuple(self._streams)

    @property
    def control(self) -> NDArray[np.uint8]:
        """The control stream itself, shape (tiles,), `Control` flags, for the driver to fill in place."""
        self._control_touched = True
        return self._control

    def _copy(self) -> ServerSpace:
        """Make a space with the same values, for a session whose driver may change this one at any time."""
        twin = copy.copy(self)
        twin._control = self._control.copy()
        twin._streams = [stream._copy() for stream in self._streams]
        twin._details = dict(self._details)
        return twin

    def _begin_event(self) -> None:
        """Begin an event: streams that are touched from now on are gathered for it."""
        if self._filled:
            self._notice = ""
        if not self.withheld:
            self._discarded = False
            self._control_touched = False
        self._details_touched = False
        for stream in self._streams:
            stream._begin()

    def _discard(self) -> None:
        """Discard the data of the current event, including names, text and control stream, until the space is filled again."""
        self._discarded = (
            self._discarded or self._control_touched or any(one._touched for one in self._streams)
        )
        self._details_touched = False
        for stream in self._streams:
            stream._begin()

    def add_stream(
        self,
        name: str,
        *,
        dtype: str = "i4",
        max_stream: ServerStream | None = None,
        **options: Unpack[StreamOptions],
    ) -> ServerStream:
        """Add a stream, before the space's first event.

        Args:
            name: Short name, as in the client's view chooser.
            dtype: One of ``i1 u1 i2 u2 i4 u4 i8 u8``.
            max_stream: For PERCENT_VAR, the stream of this space that defines 100 %.
            options: The other attributes of `gcspy_protocol.model.Stream`.

        Raises:
            LocalProtocolError: A client could not show it, or clients already know the space.
        """
        if self._published:
            raise LocalProtocolError(
                f"space {self.name!r}: stream {name!r} comes after its first event; add all streams first, or remove the space and add a new one"
            )
        if len(self._streams) >= CLIENT_LIMITS.streams:
            raise LocalProtocolError(
                f"space {self.name!r}: more than {CLIENT_LIMITS.streams} streams"
            )
        if any(one.name == name for one in self._streams):
            raise LocalProtocolError(
                f"space {self.name!r}: it has a stream {name!r} already; give this one another name"
            )
        schema = Stream(
            id=len(self._streams),
            name=name,
            dtype=dtype,
            max_stream=None if max_stream is None else max_stream.schema.id,
            **options,
        )
        stream = ServerStream(schema, self.count, self.name)
        self._streams.append(stream)
        self._schema = replace(self._schema, streams=(*self._schema.streams, schema))
        return stream

    def reset(self, *streams: ServerStream) -> None:
        """Reset streams and the control stream to their defaults and mark them as gathered.

        Accumulating streams keep their values. If a stream cannot be gathered at this event, such
        as marked objects before the marking, name the others only.

        Args:
            streams: The streams to reset; none named: all.
        """
        for stream in streams or self._streams:
            stream._reset()
        self.control.fill(Control.USED)

    def repeat(self) -> None:
        """Mark all streams as gathered with the values, the unknown tiles and the summaries of the last time: they were read again, and are the same."""
        for stream in self._streams:
            stream._repeat()

    def answer_with(self, kind: str, function: DetailFunction | None) -> None:
        """Set how questions about the next event are answered, until the next call.

        Args:
            kind: One of the space's `details`.
            function: Takes a tile number, or None for the whole space, and the maximum number of
                rows, and returns a table, or None if there is no data. It is called in another
                thread, so its data must not change any more; and it must be quick: it uses gathered
                data and reads nothing. None: there is no data now.

        Raises:
            LocalProtocolError: The space was not added with this kind.
        """
        if kind not in self._schema.details:
            raise LocalProtocolError(
                f"space {self.name!r}: it does not answer queries of kind {kind!r}; name it in `details` when the space is added"
            )
        if function is None:
            self._details.pop(kind, None)
        else:
            self._details[kind] = function
        self._details_touched = True

    def fill(
        self, columns: Mapping[str, ArrayLike], names: TileNames | Sequence[str] | None = None
    ) -> None:
        """Fill streams by name, with checks, and set the tiles of the space.

        Args:
            columns: Values by the name of their stream; see `ServerStream.set`. A stream that is not named is not gathered.
            names: The new tiles; texts are their own keys (`StringNames.by_text`). None: the tiles
                stay.

        Raises:
            LocalProtocolError: There is no such stream, or the values do not fit the stream's
                definition.
        """
        streams = {stream.name: stream for stream in self._streams}
        for name in columns:
            if name not in streams:
                raise LocalProtocolError(
                    f"space {self.name!r}: it has no stream {name!r}; it has {', '.join(streams) or 'none'}"
                )
        if names is not None:
            tiles = (
                names
                if isinstance(names, (UniformNames, ExtentNames, StringNames))
                else StringNames.by_text(names)
            )
            if tiles != self._names:
                self.resize(tiles)
        if columns:
            self.reset(*(streams[name] for name in columns))
        for name, values in columns.items():
            streams[name].set(values)

    def resize(self, names: TileNames) -> None:
        """Replace the tiles of the space; those with the same stable key keep their data.

        Args:
            names: The new tiles, of the same kind as before.

        Raises:
            LocalProtocolError: The names are of another kind.
        """
        runs = runs_between(self._names, names)
        self._names = names
        for stream in self._streams:
            values = np.full(names.count, stream.schema.default, dtype=stream.schema.dtype)
            runs.move(stream._values, values)
            stream._values = values
            if stream._known is not None:
                known = np.ones(names.count, dtype=np.bool_)
                runs.move(stream._known, known)
                stream._known = known
        control = np.full(names.count, Control.USED, dtype=np.uint8)
        runs.move(self._control, control)
        self._control = control
        self._control_touched = True

    def tiles_of(self, addresses: ArrayLike) -> NDArray[np.int64]:
        """Tile in which each address lies.

        Args:
            addresses: Shape (n,), addresses.

        Returns:
            Shape (n,), tile numbers, -1 outside of every tile.
        """
        return binning.tiles_of(self._names, addresses)

    def count_at(
        self, stream: ServerStream, addresses: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Count objects in the tiles in which they begin; those outside of every tile are not counted.

        Args:
            stream: The stream to count in; a value that does not fit its dtype stays at the largest
                value.
            addresses: Shape (n,), addresses.
            weights: Shape (n,), the amount for each object; None: 1.
        """
        tiles = self.tiles_of(addresses)
        inside = tiles >= 0
        if weights is None:
            amounts = np.bincount(tiles[inside], minlength=self.count).astype(np.int64, copy=False)
        else:
            amounts = np.zeros(self.count, dtype=np.int64)
            # Not bincount with weights: that adds in floating point.
            np.add.at(amounts, tiles[inside], np.asarray(weights, dtype=np.int64)[inside])
        stream._add(amounts)

    def spread(self, stream: ServerStream, addresses: ArrayLike, sizes: ArrayLike) -> None:
        """Add the bytes of objects to all the tiles that they overlap, exactly.

        Args:
            stream: The stream to add to; a value that does not fit its dtype stays at the largest
                value.
            addresses: Shape (n,), first byte of each object.
            sizes: Shape (n,), bytes of each object.
        """
        stream._add(binning.bytes_per_tile(self._names, addresses, sizes))
