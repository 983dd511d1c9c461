"""The difference of two spaces as a space of its own, so that every renderer can draw it: tiles, rows, a curve, a table.

Its tiles are those of either side, in the order of the right one; its one stream is their
difference. Tiles keep their names and keys, so that a tile can be found in the session.

Knows two spaces and their difference; does not know where they came from, or widgets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState, StreamState
from gcspy_protocol.messages import Event, StreamKey
from gcspy_protocol.model import CONTROL_STREAM, Control, Naming, PaintStyle, Presentation, Stream
from gcspy_protocol.streams.names import TileNameTable
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices, TileArrays
from gcspy_client.model.compare.difference import Difference, codes_of
from gcspy_client.model.palette import LEVELS, LOW, UNKNOWN, UNUSED, ZERO, Palette, Theme, diverging
from gcspy_client.model.text import (
    UNKNOWN_TEXT,
    control_words,
    is_bytes,
    short_amount,
    short_number,
)
from gcspy_client.model.tile_keys import Keys
from gcspy_client.model.tile_source import TileSource

__all__ = [
    "DIFFERENCE_STREAM",
    "DifferenceSource",
    "MergedNames",
    "difference_space",
    "signed_words",
]

DIFFERENCE_STREAM = -1_000_000
"""Id of the stream of differences; no stream that is sent has it."""

_EQUAL = LEVELS
"""The value of tiles that are equal; the others are their paint codes less `LOW`."""


class MergedNames(TileNameTable):
    """The names of tiles of two sides.

    Args:
        left: Of the one side.
        right: Of the other.
        compared: Which tile is which.
    """

    def __init__(self, left: TileNameTable, right: TileNameTable, compared: Difference) -> None:
        super().__init__(Naming.EXTENTS)
        self._left, self._right = left, right
        self._at_left, self._at_right = compared.left, compared.right
        self._keys: Keys = compared.keys
        self._count = len(compared)
        self._order: Indices | None = None

    def copy(self) -> MergedNames:
        """The same object: it is never changed."""
        return self

    def missing(self, tile: int) -> bool:  # noqa: ARG002  # the signature of its base
        """A missing text cannot be requested: it may be of an earlier event."""
        return False

    def name(self, tile: int) -> str:
        """The name that the right side has for it, else that of the left."""
        at = int(self._at_right[tile])
        return self._right.name(at) if at >= 0 else self._left.name(int(self._at_left[tile]))

    def extent(self, tile: int) -> tuple[int, int] | None:
        """Address and size in bytes, where it has some."""
        at = int(self._at_right[tile])
        return self._right.extent(at) if at >= 0 else self._left.extent(int(self._at_left[tile]))

    def key(self, tile: int) -> int:
        """Stable key of a tile."""
        return int(self._keys[tile])

    def keys(self) -> Keys:
        """Shape (tiles,): the stable keys; a copy."""
        return self._keys.copy()

    def progression(self) -> tuple[int, int, int] | None:
        """There is no rule for them."""
        return None

    def extents(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
        """Not as arrays."""
        return None

    def index_of(self, key: int) -> int | None:
        """The tile with this key, or None."""
        if not 0 <= key < 1 << 64:
            return None
        if self._order is None:
            self._order = np.argsort(self._keys, kind="stable")
        place = int(np.searchsorted(self._keys, np.uint64(key), sorter=self._order))
        if place == len(self._keys):
            return None
        tile = int(self._order[place])
        return tile if int(self._keys[tile]) == key else None


def difference_space(
    left: SpaceState, right: SpaceState, compared: Difference, scale: float, event: Event | None
) -> SpaceState:
    """The difference as a space.

    Args:
        left: The values of A.
        right: The values of B.
        compared: Their difference.
        scale: The value at the end of the scale.
        event: The event of the right side: that of the difference.
    """
    schema = _schema("Difference")
    made = SpaceState(replace(right.space, streams=(schema,)))
    made.count, made.info = len(compared), right.info
    in_place = len(compared) == right.count and bool(
        (compared.right == np.arange(right.count)).all()
    )
    made.names = right.names.copy() if in_place else MergedNames(left.names, right.names, compared)
    codes = codes_of(compared, scale)
    control = np.full(len(compared), Control.USED, dtype=np.uint8)
    control[codes == UNUSED] = Control.UNUSED
    there = compared.right >= 0
    marks = np.uint8(Control.SEPARATOR | Control.LINK)
    control[there] |= right.control.values[compared.right[there]] & marks
    known = codes != UNKNOWN
    values = codes - np.uint8(LOW)
    values[codes == ZERO] = _EQUAL
    values[(codes == UNUSED) | ~known] = 0
    made.streams[DIFFERENCE_STREAM] = _filled(schema, values, None if known.all() else known, event)
    made.control = _filled(right.control.schema, control, None, event)
    return made


def _filled(
    schema: Stream, values: NDArray[np.uint8], known: NDArray[np.bool_] | None, event: Event | None
) -> StreamState:
    state = StreamState(schema, len(values))
    state.replace(
        StreamKey(
            space=0,
            stream=CONTROL_STREAM,
            sequence=0 if event is None else event.sequence,
            time_nanos=0 if event is None else event.time_nanos,
            event=0 if event is None else event.event,
            occurrence=0 if event is None else event.occurrence,
            values=values,
            known=known,
        )
    )
    return state


def _schema(name: str) -> Stream:
    """A stream whose values are paint codes, but for what equal tiles have."""
    return Stream(
        id=DIFFERENCE_STREAM,
        name=name,
        dtype="u1",
        maximum=255,
        zero=_EQUAL,
        presentation=Presentation.ENUM,
        enum_names=tuple(str(level) for level in range(LEVELS)),
        paint_style=PaintStyle.ZERO,
    )


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceSource:
    """The numbers of such a space.

    Attributes:
        left: The values of A.
        right: The values of B.
        source: The numbers of the left side.
        other: Of the right side.
        compared: Their difference.
        scale: The value at the end of the scale.
    """

    left: SpaceState
    right: SpaceState
    source: TileSource
    other: TileSource
    compared: Difference
    scale: float

    @property
    def schema(self) -> Stream:
        """Named after the stream that is compared."""
        return _schema(f"Difference of {self.other.schema.name}")

    def palette(self, theme: Theme) -> Palette:
        """The scale from less to more."""
        return diverging(theme)

    def tiles(self, space: SpaceState) -> TileArrays:
        """Levels to be painted."""
        state = space.stream(DIFFERENCE_STREAM)
        return TileArrays(state.values, state.known, space.control.values)

    def numbers(self, space: SpaceState) -> TileArrays:
        """The increase on the right side; exact up to 2**53, as it is only sorted and binned."""
        signed = self.compared.size.astype(np.float64) * self.compared.direction
        return TileArrays(signed, self.compared.compared, space.control.values)

    def changed(self, change: EventChange, space: SpaceState) -> Indices | None:  # noqa: ARG002  # the protocol's signature
        """Any: each difference is made again."""
        return None

    def is_fresh(self, space: SpaceState, event: Event) -> bool:
        """Whether it is of this event."""
        return space.stream(DIFFERENCE_STREAM).is_fresh(event)

    def is_stale(self, space: SpaceState, event: Event) -> bool:
        """Whether it is of an earlier event."""
        return not self.is_fresh(space, event)

    def text(self, space: SpaceState, tile: int) -> str:  # noqa: ARG002  # as above
        """The difference of a tile in words."""
        return self.difference_words(tile)

    def short(self, space: SpaceState, tile: int) -> str:  # noqa: ARG002  # as above
        """The same in a few characters, to fit on a tile."""
        return self.difference_words(tile, short=True)

    def scale_text(self, share: float, maximum: int) -> str:  # noqa: ARG002  # as above
        """From the largest decrease to the largest increase."""
        return (
            ""
            if self.compared.named
            else signed_words(self.other.schema, (2 * share - 1) * self.scale, short=True)
        )

    # ----------------------------------------------------------------------- of one tile

    def difference_words(self, tile: int, *, short: bool = False) -> str:
        """The increase of one tile on the right, as text."""
        compared = self.compared
        if compared.unused[tile]:
            return self.right.space.unused_text or "unused"
        if compared.came[tile]:
            return "appeared"
        if compared.went[tile]:
            return "disappeared"
        if not compared.compared[tile]:
            return "?" if short else UNKNOWN_TEXT
        if compared.named:
            return "changed" if compared.direction[tile] else "the same"
        size = compared.size[tile].item()
        return signed_words(self.other.schema, size * int(compared.direction[tile]), short=short)

    def side_words(self, tile: int, *, left: bool, short: bool = False) -> str:
        """One side's value of a tile, as text."""
        at = int((self.compared.left if left else self.compared.right)[tile])
        space, source = (self.left, self.source) if left else (self.right, self.other)
        if at < 0:
            return "not there"
        words = control_words(int(space.control.values[at]) & 7, space.space.unused_text)
        return words or (source.short(space, at) if short else source.text(space, at))

    def side_amount(self, tile: int, *, left: bool) -> str:
        """The same in a few characters, in the unit of the difference: an amount, and not a share of the most that there can be."""
        at = int((self.compared.left if left else self.compared.right)[tile])
        space, source = (self.left, self.source) if left else (self.right, self.other)
        words = self.side_words(tile, left=left, short=True)
        if (
            at < 0
            or self.compared.named
            or control_words(int(space.control.values[at]) & 7, space.space.unused_text)
        ):
            return words
        there = source.numbers(space)
        if there.known is not None and not there.known[at]:
            return words
        return signed_words(self.other.schema, there.values[at].item(), short=True).removeprefix(
            "+"
        )


def signed_words(stream: Stream, more: int | float, *, short: bool = False) -> str:
    """How much more, with its sign and unit: ``+1,024 bytes``, ``−3``, ``0``."""
    sign = "+" if more > 0 else "−" if more < 0 else ""
    whole = int(abs(more))
    if whole != abs(more):
        return f"{sign}{abs(more):.4g}"
    if short:
        return sign + (short_amount(stream, whole) if is_bytes(stream) else short_number(whole))
    return f"{sign}{stream.prefix}{whole:,}{stream.suffix}"
