"""What all tables and trees say of their columns: `alignment` and `heading`.

Knows Qt's roles; does not know rows.
"""

from __future__ import annotations

from PySide6.QtCore import Qt

__all__ = ["alignment", "heading"]


def alignment(*, right: bool) -> Qt.AlignmentFlag:
    """Where the texts of a column stand: numbers on the right."""
    side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def heading(name: str, role: int, *, about: str = "", right: bool) -> object:
    """What the heading of a column answers; None: nothing in this role.

    Args:
        name: What it says.
        role: What Qt asks for.
        about: Its tip; empty: it has none.
        right: See `alignment`.
    """
    if role == Qt.ItemDataRole.DisplayRole:
        return name
    if role == Qt.ItemDataRole.ToolTipRole:
        return about or None
    return alignment(right=right) if role == Qt.ItemDataRole.TextAlignmentRole else None
