"""Common set-up of all tables of the window: no frame, no grid, one line a row, rows without a header.

Knows Qt's tables; does not know rows.
"""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QHeaderView, QTableView

__all__ = ["set_up_table"]


def set_up_table(table: QTableView, row_height: int, *, wraps: bool = False) -> None:
    """Give a table the common look.

    Args:
        table: The table.
        row_height: Height of every row in pixels.
        wraps: Whether long texts continue in a second line.
    """
    table.setFrameShape(QFrame.Shape.NoFrame)
    table.setShowGrid(False)
    table.setWordWrap(wraps)
    rows = table.verticalHeader()
    rows.hide()
    rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    rows.setDefaultSectionSize(row_height)
    table.horizontalHeader().setHighlightSections(False)
