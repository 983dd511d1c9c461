"""The default summary of a stream, over the tiles that are used and known.

Knows arrays; does not know the wire.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol.compiled.space_encoder import SummaryKind, SummaryPlan
from gcspy_protocol.model import Control, Presentation, Stream
from numpy.typing import NDArray

__all__ = ["counted_tiles", "exact_sum", "plan_of", "summary_of"]

_I64_MAX = (1 << 63) - 1
_MANY = 4096
_FEW = 512


def counted_tiles(
    control: NDArray[np.uint8], known: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return which tiles a summary covers: used and known ones.

    Returns:
        Shape (tiles,), or None: all of them.
    """
    # One pass without an array covers the usual case: every tile is used.
    if known is None and (not len(control) or int(np.bitwise_and.reduce(control)) & Control.USED):
        return None
    counted: NDArray[np.bool_] = (control & np.uint8(Control.USED)) != 0
    if known is not None:
        counted &= known
    return counted


def exact_sum(values: NDArray[Any]) -> int:
    """Sum without overflow, limited to 64 signed bits."""
    if values.dtype.itemsize == 4 and len(values) >= _MANY:
        return _sum_in_pairs(values)
    if values.dtype.itemsize < 8:
        return int(values.sum(dtype=np.int64))
    low = int((values & values.dtype.type(0xFFFFFFFF)).sum(dtype=np.int64))
    high = int((values >> values.dtype.type(32)).astype(np.int64).sum())
    return max(-_I64_MAX, min(_I64_MAX, (high << 32) + low))


def _sum_in_pairs(values: NDArray[Any]) -> int:
    """Sum of 32-bit values, two at a time as one 64-bit number: 0.09 ms per million where numpy's widening sum takes 0.22.

    Only as many pairs are added at once as cannot carry from the low into the high halves.
    """
    paired = len(values) & ~1
    pairs = values[:paired].view(np.uint64)
    bits = int(np.bitwise_or.reduce(pairs))
    largest = (bits | bits >> 32) & 0xFFFFFFFF
    at_once = (1 << 32) // (largest + 1)
    if at_once < _FEW or (values.dtype.kind == "i" and largest >> 31):
        return int(values.sum(dtype=np.int64))
    whole = len(pairs) - len(pairs) % at_once
    sums: list[int] = [
        *pairs[:whole].reshape(-1, at_once).sum(axis=1).tolist(),
        int(pairs[whole:].sum()),
    ]
    return sum((one & 0xFFFFFFFF) + (one >> 32) for one in sums) + int(
        values[paired:].sum(dtype=np.int64)
    )


def plan_of(
    stream: Stream, maxima: NDArray[Any] | None, maxima_known: NDArray[np.bool_] | None = None
) -> SummaryPlan:
    """How `summary_of` makes the summary of a stream, for code that makes it itself.

    Args:
        stream: Definition of the stream.
        maxima: As in `summary_of`.
        maxima_known: For PERCENT_VAR, shape (tiles,), or None: all are known.
    """
    if stream.presentation is Presentation.ENUM:
        return SummaryPlan(SummaryKind.NAMES, len(stream.enum_names))
    if stream.presentation is Presentation.PERCENT:
        return SummaryPlan(SummaryKind.PERCENT, 2, maximum=stream.maximum)
    if maxima is not None:
        return SummaryPlan(SummaryKind.PERCENT_VAR, 2, maxima=maxima, maxima_known=maxima_known)
    return SummaryPlan(SummaryKind.SUM)


def summary_of(
    stream: Stream,
    values: NDArray[Any],
    counted: NDArray[np.bool_] | None,
    maxima: NDArray[Any] | None,
) -> tuple[tuple[int, ...], int]:
    """The numbers of a summary, and how many tiles it covers.

    Args:
        stream: Definition of the stream.
        values: Shape (tiles,).
        counted: Shape (tiles,), which tiles count; None: all.
        maxima: For PERCENT_VAR, shape (tiles,), the value of 100 % in each tile.
    """
    if counted is not None:
        values = values[counted]
        maxima = None if maxima is None else maxima[counted]
    covered = len(values)
    if stream.presentation is Presentation.ENUM:
        names = len(stream.enum_names)
        named = values[(values >= 0) & (values < names)]
        return tuple(np.bincount(named.astype(np.int64), minlength=names).tolist()), covered
    total = exact_sum(values)
    if stream.presentation is Presentation.PERCENT:
        return (total, min(_I64_MAX, stream.maximum * covered)), covered
    if maxima is not None:
        return (total, exact_sum(maxima)), covered
    return (total,), covered
