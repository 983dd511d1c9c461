"""Columns of all tables and trees: `alignment` and `heading`.

Knows Qt's roles; does not know rows.
"""

from __future__ import annotations

from PySide6.QtCore import Qt

__all__ = ["alignment", "heading"]


def alignment(*, right: bool) -> Qt.AlignmentFlag:
    """Return the alignment of a column's texts: numbers are on the right."""
    side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def heading(name: str, role: int, *, about: str = "", right: bool) -> object:
    """Return the data of a column's heading for one of Qt's roles; None: it has none.

    Args:
        name: Its text.
        role: The role that Qt asks for.
        about: Its tip; empty: it has none.
        right: See `alignment`.
    """
    if role == Qt.ItemDataRole.DisplayRole:
        return name
    if role == Qt.ItemDataRole.ToolTipRole:
        return about or None
    return alignment(right=right) if role == Qt.ItemDataRole.TextAlignmentRole else None
