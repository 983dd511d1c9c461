"""Words for the rows that a table leaves out.

Knows words; does not know tables.
"""

from __future__ import annotations

__all__ = ["rest_heading", "rest_words"]


def rest_words(rows: int) -> str:
    """Return ``1 other``, or ``12,345 others``, for a number of rows that are left out."""
    return f"{rows:,} other{'' if rows == 1 else 's'}"


def rest_heading(rows: int) -> str:
    """Return the same as the heading of a row that sums them up: ``(1 other)``."""
    return f"({rest_words(rows)})"
