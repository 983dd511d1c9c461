"""How several tiles and events share a pixel of a history graph: it shows the greatest, the mean or the least of them.

All of them count; none is left out by sampling. Codes that are not values (unknown, unused, no
tile) are never summed, and never count as zero: for the least and the mean they are shown only if
there is no value at all under the pixel, and for the greatest in the order of the paint codes.

So that rows can be stored and pooled in the same way, the codes of the least are stored inverted
(`stored`, `shown`).

Knows paint codes; does not know rows or pixels.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes
from gcspy_client.model.palette import BACKGROUND, CANVAS, LOW, OVERFLOW, UNKNOWN, UNUSED, ZERO

__all__ = ["COUNTED", "LEVEL", "Pooling", "mean_codes", "mean_of"]


class Pooling(StrEnum):
    """Value that a pixel shows of the tiles and events under it."""

    GREATEST = "greatest"
    MEAN = "mean"
    LEAST = "least"

    def stored(self, codes: Codes) -> Codes:
        """Codes as stored in rows; those of the least are inverted, so that the greatest is taken."""
        return _UPSIDE_DOWN[codes] if self is Pooling.LEAST else codes

    def shown(self, stored: Codes) -> Codes:
        """Paint codes of what rows keep."""
        return _UPRIGHT[stored] if self is Pooling.LEAST else stored


def _upside_down() -> Codes:
    table: Codes = np.zeros(256, dtype=np.uint8)
    for place, code in enumerate(
        (CANVAS, BACKGROUND, UNUSED, UNKNOWN, *range(OVERFLOW, LOW - 1, -1), ZERO)
    ):
        table[code] = place
    return table


_UPSIDE_DOWN = _upside_down()
_UPRIGHT: Codes = np.argsort(_UPSIDE_DOWN).astype(np.uint8)

COUNTED: Codes = np.zeros(256, dtype=np.uint8)
"""Weight of each code in a mean: 1 for a value, 0 for others."""
COUNTED[LOW:] = COUNTED[ZERO] = 1

LEVEL: Codes = np.zeros(256, dtype=np.uint8)
"""Contribution of each code to a mean; the value zero is at the low end of the scale."""
LEVEL[LOW:] = np.arange(LOW, 256)
LEVEL[ZERO] = LOW


def mean_codes(total: NDArray[np.uint32], counted: NDArray[np.uint32], greatest: Codes) -> Codes:
    """Codes of means.

    Args:
        total: Sums of `LEVEL`.
        counted: Sums of `COUNTED`, the same shape.
        greatest: The greatest code, the same shape: shown where nothing was counted.
    """
    mean = ((total + counted // 2) // np.maximum(counted, 1)).astype(np.uint8)
    # Zero has a colour of its own, as long as nothing else was found.
    return np.where(
        (counted > 0) & (greatest >= LOW), mean, np.where(counted > 0, np.uint8(ZERO), greatest)
    )


def mean_of(codes: Codes, axis: int = 0) -> Codes:
    """The mean along an axis of an array of codes."""
    total = LEVEL[codes].sum(axis=axis, dtype=np.uint32)
    return mean_codes(total, COUNTED[codes].sum(axis=axis, dtype=np.uint32), codes.max(axis=axis))
