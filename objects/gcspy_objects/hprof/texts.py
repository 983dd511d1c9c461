"""`TextTable`: names of a dump by their identifiers, decoded on demand."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["TextTable"]

_MOST_BYTES: Final = 4096


class TextTable:
    """Texts of a dump.

    Args:
        data: (b,) the dump.
        rows: (t, 3) identifier, place, bytes of each.
    """

    def __init__(self, data: NDArray[np.uint8], rows: NDArray[np.int64]) -> None:
        self._data = data
        self._rows = rows[np.argsort(rows[:, 0], kind="stable")]
        self._known: dict[int, str] = {}

    def text(self, identifier: int) -> str:
        """Return a text, cut at 4,096 bytes; empty: there is none."""
        known = self._known.get(identifier)
        if known is not None:
            return known
        at = int(np.searchsorted(self._rows[:, 0], identifier))
        found = ""
        if at < len(self._rows) and self._rows[at, 0] == identifier:
            place, size = self._rows[at, 1:].tolist()
            found = (
                self._data[place : place + min(size, _MOST_BYTES)]
                .tobytes()
                .decode("utf-8", "replace")
            )
        self._known[identifier] = found
        return found
