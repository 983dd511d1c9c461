"""Stream factories: amounts, bytes, percent, counts, enumerations, categories; and tiles that could not be read.

The presentation of a stream determines how every client paints and sums it, so streams of one
meaning should have one presentation in all drivers. Knows spaces; does not know their data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from gcspy_server.api import PaintStyle, Presentation, ServerSpace, ServerStream, TileNames

__all__ = [
    "I4_MAX",
    "I8_MAX",
    "U4_MAX",
    "Colour",
    "add_amount",
    "add_bytes",
    "add_category",
    "add_count",
    "add_enumeration",
    "add_percent",
    "hide",
    "hide_all",
    "show_names",
]

I8_MAX: Final = (1 << 63) - 1
U4_MAX: Final = (1 << 32) - 1
I4_MAX: Final = (1 << 31) - 1

_MOST_CATEGORIES: Final = (1 << 16) - 1

Colour: TypeAlias = tuple[int, int, int]


def add_amount(
    space: ServerSpace,
    name: str,
    description: str = "",
    *,
    order: int,
    most: int = I8_MAX,
    suffix: str = "",
    of: ServerStream | None = None,
    presentation: Presentation = Presentation.MAX_VAR,
    paint_style: PaintStyle = PaintStyle.ZERO,
    colour: Colour | None = None,
    dtype: str = "",
    threshold: bool = False,
) -> ServerStream:
    """Add a stream of amounts; zero has a colour of its own.

    Args:
        space: The space to add to.
        name: Its name.
        description: A sentence about it.
        order: Its importance, 0 first.
        most: The largest value of a tile.
        suffix: Unit, with a space before it.
        of: The stream of this space that defines 100 %; None: it is not shown in percent.
        presentation: How it is shown if not in percent of another stream.
        paint_style: How zero is painted.
        colour: Red, green and blue, 0 to 255 each.
        dtype: Type on the wire; empty: 32 bits if `most` fits, otherwise 64.
        threshold: Whether `most`, or 100 %, is a threshold that values pass in normal operation.
    """
    return space.add_stream(
        name,
        dtype=dtype or ("u4" if most <= U4_MAX else "i8"),
        maximum=most,
        suffix=suffix,
        presentation=presentation if of is None else Presentation.PERCENT_VAR,
        max_stream=of,
        paint_style=paint_style,
        colour=colour,
        order=order,
        threshold=threshold,
        description=description,
    )


def add_bytes(
    space: ServerSpace,
    name: str,
    description: str = "",
    *,
    order: int,
    most: int = I8_MAX,
    of: ServerStream | None = None,
    presentation: Presentation = Presentation.MAX_VAR,
    colour: Colour | None = None,
    dtype: str = "",
) -> ServerStream:
    """Add a stream of bytes; the arguments are those of `add_amount`."""
    return add_amount(
        space,
        name,
        description,
        order=order,
        most=most,
        suffix=" bytes",
        of=of,
        presentation=presentation,
        colour=colour,
        dtype=dtype,
    )


def add_percent(
    space: ServerSpace,
    name: str,
    description: str = "",
    *,
    order: int,
    most: int,
    suffix: str = " bytes",
    colour: Colour | None = None,
    dtype: str = "",
) -> ServerStream:
    """Add a stream that is shown in percent of one amount, the same for all tiles; see `add_amount`.

    Args:
        space: The space to add to.
        name: Its name.
        description: A sentence about it.
        order: Its importance, 0 first.
        most: The value of 100 %, such as the size of a tile.
        suffix: Unit of the amounts.
        colour: See `add_amount`.
        dtype: See `add_amount`.
    """
    return add_amount(
        space,
        name,
        description,
        order=order,
        most=most,
        suffix=suffix,
        presentation=Presentation.PERCENT,
        colour=colour,
        dtype=dtype,
    )


def add_count(
    space: ServerSpace,
    name: str,
    description: str = "",
    *,
    order: int,
    most: int = I8_MAX,
    of: ServerStream | None = None,
    presentation: Presentation = Presentation.MAX_VAR,
    paint_style: PaintStyle = PaintStyle.ZERO,
    colour: Colour | None = None,
    dtype: str = "",
) -> ServerStream:
    """Add a stream of numbers without a unit; the arguments are those of `add_amount`.

    With `Presentation.PLUS` values above `most` are shown as "max+".
    """
    return add_amount(
        space,
        name,
        description,
        order=order,
        most=max(1, most),
        of=of,
        presentation=presentation,
        paint_style=paint_style,
        colour=colour,
        dtype=dtype,
    )


def add_enumeration(
    space: ServerSpace,
    name: str,
    names: tuple[str, ...],
    description: str = "",
    *,
    order: int,
    zero: int = 0,
    paint_style: PaintStyle = PaintStyle.PLAIN,
    most: int | None = None,
) -> ServerStream:
    """Add a stream whose values are indices into a tuple of names.

    Args:
        space: The space to add to.
        name: Its name.
        names: Meaning of the values 0, 1, …; at most 256.
        description: A sentence about it.
        order: Its importance, 0 first.
        zero: The value that means "nothing here".
        paint_style: `PaintStyle.ZERO` gives that value a colour of its own.
        most: The largest value, if it is not that of the last name.
    """
    return space.add_stream(
        name,
        dtype="u1",
        maximum=len(names) - 1 if most is None else most,
        presentation=Presentation.ENUM,
        enum_names=names,
        zero=zero,
        paint_style=paint_style,
        order=order,
        description=description,
    )


def add_category(
    space: ServerSpace, name: str, named: ServerSpace, description: str = "", *, order: int
) -> ServerStream:
    """Add a stream whose values are tiles of another space, which has their names; 0: none.

    Args:
        space: The space to add to.
        name: Its name.
        named: The space whose tiles the values are.
        description: A sentence about it.
        order: Its importance, 0 first.
    """
    return space.add_stream(
        name,
        dtype="u2",
        maximum=_MOST_CATEGORIES,
        paint_style=PaintStyle.ZERO,
        names_from=named.id,
        order=order,
        description=description,
    )


def hide(streams: Iterable[ServerStream], unknown: npt.NDArray[np.bool_]) -> None:
    """Mark tiles that could not be read as unknown, (tiles,), and clear their values."""
    if not unknown.any():
        return
    for stream in streams:
        stream.data[unknown] = stream.schema.default
        stream.set_unknown(unknown)


def hide_all(streams: Iterable[ServerStream | None]) -> None:
    """Mark all tiles of some streams as unknown; None stands for a missing stream."""
    for stream in streams:
        if stream is not None:
            stream.set_unknown(np.ones(len(stream.data), dtype=np.bool_))


def show_names(space: ServerSpace, names: TileNames) -> None:
    """Resize a space if its tiles changed: the same object means the same tiles."""
    if space.names is not names:
        space.resize(names)
