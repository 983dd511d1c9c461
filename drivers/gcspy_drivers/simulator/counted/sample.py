"""The function of the lesson on path counting. Its lines are numbered from that of `def`; the lesson quotes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["sort_out"]


def _sort_out(rows: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for row in rows:
        try:
            key = row % 3
            pair = (row, key)
            if key:
                found.append([pair])
            else:
                found.append({row: pair})
            if row < 50:
                found.append((pair, row))
        except TypeError:
            found.append({row})
    return found


sort_out = _sort_out
"""The function. It has no docstring, since the lesson quotes its lines."""
