"""Checks and converts the values that a driver sets in a stream.

An impossible number is not replaced by a possible one: not-a-number and None are unknown, and a
value outside of the declared range is refused with its tile. Knows numbers and the definition of a
stream.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.model import Presentation, Stream
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_range", "whole_values"]


def whole_values(
    given: ArrayLike, schema: Stream, count: int, where: str
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Convert a driver's values to integers, and determine which of them are unknown.

    Args:
        given: A number for each tile, or one number for all. NaN, None and masked values are
            unknown. Fractions are rounded.
        schema: Definition of the stream.
        count: Number of tiles.
        where: The space and the stream, for messages.

    Returns:
        Shape (tiles,), in the stream's dtype, new; and shape (tiles,), True where unknown, or None.

    Raises:
        LocalProtocolError: It is not a number per tile, or one is outside of the declared range.
    """
    unknown: NDArray[np.bool_] | None = None
    # Only who has loaded numpy.ma can have made a masked array; to load it takes longer than a gathering.
    if "numpy.ma" in sys.modules and isinstance(given, np.ma.MaskedArray):
        unknown = np.ma.getmaskarray(given).copy()
        given = given.filled(schema.default)
    array = np.asarray(given)
    if array.dtype == object:
        empty = np.array([one is None for one in array.reshape(-1)], dtype=np.bool_)
        unknown = _either(unknown, empty.reshape(array.shape))
        array = np.array(
            [schema.default if one is None else one for one in array.reshape(-1)]
        ).reshape(array.shape)
    if array.dtype.kind not in "iufb":
        raise LocalProtocolError(f"{where}: values of type {array.dtype}; a stream has numbers")
    if array.ndim == 0:
        array = np.full(count, array)
        unknown = None if unknown is None else np.full(count, unknown)
    if array.shape != (count,):
        raise LocalProtocolError(
            f"{where}: values of shape {array.shape} for {count} tiles; give one per tile, or fill with the names too"
        )
    if array.dtype.kind == "f":
        unknown = _either(unknown, np.isnan(array))
        array = np.rint(np.where(np.isnan(array), schema.default, array))
    _refuse_outside(array, schema, unknown, where)
    return array.astype(schema.dtype), unknown if unknown is not None and unknown.any() else None


def check_range(
    values: NDArray[Any], known: NDArray[np.bool_] | None, schema: Stream, where: str
) -> None:
    """Refuse values that were filled directly and are outside of the declared range.

    Args:
        values: Shape (tiles,).
        known: Shape (tiles,), False where the value is unknown; None: all are known.
        schema: Definition of the stream.
        where: The space and the stream, for messages.

    Raises:
        LocalProtocolError: A known value is outside of the declared range.
    """
    if len(values) and (int(values.min()) < schema.minimum or int(values.max()) > _most(schema)):
        _refuse_outside(values, schema, None if known is None else ~known, where)


def _refuse_outside(
    values: NDArray[Any], schema: Stream, unknown: NDArray[np.bool_] | None, where: str
) -> None:
    most = _most(schema)
    outside = (values < schema.minimum) | (values > most)
    if unknown is not None:
        outside &= ~unknown
    if outside.any():
        tile = int(np.flatnonzero(outside)[0])
        value = values[tile].item()
        bound = (
            f"its least value is {schema.minimum:,}"
            if value < schema.minimum
            else f"its greatest value is {most:,}"
        )
        raise LocalProtocolError(
            f"{where}, tile {tile}: {value:,.15g} in {int(outside.sum()):,} tiles or more is outside of what it declares; {bound}"
            if outside.sum() > 1
            else f"{where}, tile {tile}: {value:,.15g} is outside of what it declares; {bound}"
        )


def _most(schema: Stream) -> int:
    """The greatest value: for a stream that shows "max+", the limit of its type."""
    if schema.presentation is Presentation.PLUS:
        return int(np.iinfo(schema.dtype).max)
    return schema.maximum


def _either(one: NDArray[np.bool_] | None, other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return other if one is None else one | other
