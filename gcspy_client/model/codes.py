"""Values of a stream into paint codes, one byte a tile, again only where something changed.

    control BACKGROUND → background     control UNUSED, or not USED → unused
    not known → unknown                 above the maximum → overflow
    zero, in style ZERO → zero          anything else → LOW … HIGH, evenly by value

Only the maximum itself has the code HIGH: so a changed maximum (MAX_VAR) is detected by checking
the tiles that changed, not all of them.

Knows presentations; does not know colours or places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import SpaceState, StreamState
from gcspy_protocol.model import Control, PaintStyle, Presentation, Stream
from gcspy_protocol.streams.named_stream import NamedStream
from numpy.typing import NDArray

from gcspy_client.model.palette import (
    BACKGROUND,
    CATEGORIES,
    HIGH,
    LEVELS,
    LOW,
    OVERFLOW,
    UNKNOWN,
    UNUSED,
    ZERO,
)

__all__ = [
    "Codes",
    "Indices",
    "TileArrays",
    "TileCodes",
    "maximum_of_used",
    "names_by_code",
    "tiles_of",
]

Indices = NDArray[np.int64]
Codes = NDArray[np.uint8]

_CHUNK = 1 << 18
"""Tiles encoded at a time when all are: the temporaries stay in the processor's cache."""

_USED = np.uint8(Control.USED)
_UNUSED = np.uint8(Control.UNUSED)
_BACKGROUND = np.uint8(Control.BACKGROUND)


@dataclass(frozen=True, slots=True)
class TileArrays:
    """The arrays that determine the appearance of one stream's tiles; views, never written to.

    Attributes:
        values: Shape (tiles,), the stream's integers.
        known: Shape (tiles,), bool; None when all are known.
        control: Shape (tiles,), u8 flags.
        tops: For PERCENT_VAR shape (tiles,), what 100 % is in each tile.
        tops_known: Shape (tiles,), bool, or None.
    """

    values: NDArray[Any]
    known: NDArray[np.bool_] | None
    control: NDArray[Any]
    tops: NDArray[Any] | None = None
    tops_known: NDArray[np.bool_] | None = None

    def part(self, where: slice | Indices) -> TileArrays:
        """The same for some of the tiles."""
        return TileArrays(
            _part(self.values, where),
            None if self.known is None else _part(self.known, where),
            _part(self.control, where),
            None if self.tops is None else _part(self.tops, where),
            None if self.tops_known is None else _part(self.tops_known, where),
        )


def _part(array: NDArray[Any], where: slice | Indices) -> NDArray[Any]:
    # `take` gathers by number a quarter faster than square brackets do.
    return array[where] if isinstance(where, slice) else array.take(where)


def names_by_code(stream: Stream) -> list[tuple[int, str]]:
    """Names of the paint codes of an enum, in order of the codes; for growing names the frequent ones first, then all others.

    The zero value comes last if it has a colour of its own and a growing name. For an enum with
    more names than codes only the first.
    """
    names = stream.enum_names
    if not isinstance(stream, NamedStream):
        return [(LOW + value, name) for value, name in enumerate(names[:LEVELS])]
    found = [(LOW + place, names[value]) for place, value in enumerate(stream.frequent)]
    zero = stream.paint_style is PaintStyle.ZERO and 0 <= stream.zero < len(names)
    others = (
        len(names)
        - len(stream.frequent)
        - (1 if zero and stream.zero not in stream.frequent else 0)
    )
    if others:
        found.append((LOW + CATEGORIES, f"{others:,} others"))
    return [*found, (ZERO, names[stream.zero])] if zero else found


def tiles_of(space: SpaceState, stream_id: int) -> TileArrays:
    """The current arrays of one stream of a space."""
    stream = space.stream(stream_id)
    tops: StreamState | None = None
    if (
        stream.schema.presentation is Presentation.PERCENT_VAR
        and stream.schema.max_stream in space.streams
    ):
        tops = space.streams[stream.schema.max_stream]
    return TileArrays(
        stream.values,
        stream.known,
        space.control.values,
        None if tops is None else tops.values,
        None if tops is None else tops.known,
    )


def used(control: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which tiles have a value: used, and neither background nor unused."""
    flags: NDArray[np.bool_] = (control & (_USED | _UNUSED | _BACKGROUND)) == _USED
    return flags


def maximum_of_used(tiles: TileArrays) -> int | None:
    """Greatest known value of the used tiles, or None if there is none; unknown values do not count."""
    best: int | None = None
    for start in range(0, len(tiles.values), _CHUNK):
        part = tiles.part(slice(start, start + _CHUNK))
        counts = used(part.control)
        if part.known is not None:
            counts &= part.known
        if counts.all():
            top = int(part.values.max())
        elif counts.any():
            top = int(part.values[counts].max())
        else:
            continue
        best = top if best is None else max(best, top)
    return best


class TileCodes:
    """The paint codes of all tiles of one space under one stream.

    Args:
        stream: The stream's schema.

    Attributes:
        codes: Shape (tiles,), u8, see `palette`.
        maximum: The value that is painted HIGH now.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.codes: Codes = np.empty(0, dtype=np.uint8)
        self.maximum = stream.maximum
        self._table: Codes | None = None

    def refresh(self, tiles: TileArrays) -> None:
        """Encode every tile."""
        count = len(tiles.values)
        if self.stream.presentation is Presentation.MAX_VAR:
            self._set_maximum(maximum_of_used(tiles))
        self._make_table(tiles.values.dtype)
        if len(self.codes) != count:
            self.codes = np.empty(count, dtype=np.uint8)
        for start in range(0, count, _CHUNK):
            where = slice(start, start + _CHUNK)
            self.codes[where] = self._encode(tiles.part(where))

    def encode(self, tiles: TileArrays, maximum: int | None) -> Codes:
        """Paint codes of some tiles only; nothing is stored.

        Args:
            tiles: Their arrays.
            maximum: Value painted as HIGH, if that varies.
        """
        if self.stream.presentation is Presentation.MAX_VAR:
            self._set_maximum(maximum)
        self._table = None
        return self._encode(tiles)

    def update(self, tiles: TileArrays, changed: Indices) -> Indices | None:
        """Encode the tiles that changed.

        Args:
            tiles: All tiles, now; the number is unchanged.
            changed: Numbers of those whose value, knownness, control or top changed.

        Returns:
            `changed`, or None if every tile had to be encoded.
        """
        if len(tiles.values) != len(self.codes):
            self.refresh(tiles)
            return None
        some = tiles.part(changed)
        if self.stream.presentation is Presentation.MAX_VAR and self._maximum_moved(
            tiles, some, changed
        ):
            self.refresh(tiles)
            return None
        self.codes[changed] = self._encode(some)
        return changed

    def _maximum_moved(self, tiles: TileArrays, some: TileArrays, changed: Indices) -> bool:
        """Whether the maximum changed; examines all tiles only when the greatest changed."""
        top = maximum_of_used(some)
        if top is not None and top > self.maximum:
            return True
        if top == self.maximum or not (self.codes[changed] == HIGH).any():
            return False  # a greatest tile is still there, or none was touched
        before = self.maximum
        self._set_maximum(maximum_of_used(tiles))
        return self.maximum != before

    def _set_maximum(self, top: int | None) -> None:
        self.maximum = self.stream.minimum if top is None else max(top, self.stream.minimum)

    def _make_table(self, dtype: np.dtype[Any]) -> None:
        """Make the table of the codes of all one- or two-byte values: one look-up per tile."""
        if dtype.itemsize > 2 or self.stream.presentation is Presentation.PERCENT_VAR:
            self._table = None
            return
        unsigned = np.dtype(f"u{dtype.itemsize}")
        every = np.arange(1 << (8 * dtype.itemsize), dtype=unsigned).view(dtype.newbyteorder("="))
        self._table = self._scale(every, None, None)

    def _encode(self, tiles: TileArrays) -> Codes:
        if self._table is not None:
            codes: Codes = self._table[tiles.values.view(f"u{tiles.values.dtype.itemsize}")]
        else:
            codes = self._scale(tiles.values, tiles.tops, tiles.tops_known)
        if tiles.known is not None:
            codes[~tiles.known] = UNKNOWN
        flags = tiles.control & (_USED | _UNUSED | _BACKGROUND)
        if (flags != _USED).any():
            codes[(flags & _USED) == 0] = UNUSED
            codes[(flags & _UNUSED) != 0] = UNUSED
            codes[(flags & _BACKGROUND) != 0] = BACKGROUND
        return codes

    def _scale(
        self, values: NDArray[Any], tops: NDArray[Any] | None, tops_known: NDArray[np.bool_] | None
    ) -> Codes:
        """Codes of known values of used tiles."""
        if self.stream.presentation is Presentation.ENUM:
            codes = self._categories(values)
        elif tops is not None:
            codes = self._shares(values, tops, tops_known)
        else:
            codes = self._levels(values)
        if self.stream.paint_style is PaintStyle.ZERO:
            codes[values == self.stream.zero] = ZERO
        return codes

    def _levels(self, values: NDArray[Any]) -> Codes:
        low, high = self.stream.minimum, self.maximum
        span = max(high - low, 1)
        place = (values.astype(np.float64) - float(low)) * ((LEVELS - 1) / float(span))
        np.clip(place, 0, LEVELS - 2, out=place)
        codes: Codes = place.astype(np.uint8)
        codes += np.uint8(LOW)
        if low < high:
            codes[values == high] = HIGH
        codes[values > high] = OVERFLOW
        return codes

    def _shares(
        self, values: NDArray[Any], tops: NDArray[Any], tops_known: NDArray[np.bool_] | None
    ) -> Codes:
        """PERCENT_VAR: if the whole is zero, zero is the minimum and any other value an overflow."""
        share = values.astype(np.float64) / np.maximum(tops, 1).astype(np.float64)
        place = np.clip(share * (LEVELS - 1), 0, LEVELS - 2)
        codes: Codes = place.astype(np.uint8)
        codes += np.uint8(LOW)
        codes[(values == tops) & (tops > 0)] = HIGH
        codes[values > tops] = OVERFLOW
        if tops_known is not None:
            codes[~tops_known] = UNKNOWN
        return codes

    def _categories(self, values: NDArray[Any]) -> Codes:
        """ENUM: a colour per name; a value without a name is an overflow, and gets no other name's colour.

        For growing names: the most frequent have colours, the others share one, and a number
        without a name is unknown.
        """
        if isinstance(self.stream, NamedStream):
            return self._named_categories(self.stream, values)
        named = (values >= 0) & (values < len(self.stream.enum_names))
        codes: Codes = np.full(len(values), OVERFLOW, dtype=np.uint8)
        codes[named] = (LOW + values[named].astype(np.int64) % LEVELS).astype(np.uint8)
        return codes

    @staticmethod
    def _named_categories(stream: NamedStream, values: NDArray[Any]) -> Codes:
        count = len(stream.enum_names)
        table: Codes = np.full(count + 1, LOW + CATEGORIES, dtype=np.uint8)
        table[count] = UNKNOWN
        for place, value in enumerate(stream.frequent):
            table[value] = LOW + place
        inside = values if values.dtype.kind == "u" else np.where(values < 0, count, values)
        codes: Codes = table[np.minimum(inside, count).astype(np.intp)]
        return codes
