"""The frame around a tile that is selected, pointed at or marked: the same in every view."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

__all__ = ["paint_frame"]

_LEAST = 7.0


def paint_frame(painter: QPainter, cell: QRectF, ground: str, colour: str, width: float) -> None:
    """Draw a frame around a cell, on a seam of the ground so that it shows on any colour.

    A small tile gets a ring around it, not on it.
    """
    across, down = (max(0.0, (_LEAST - side) / 2) for side in (cell.width(), cell.height()))
    half = width / 2
    outer = cell.adjusted(-across - half, -down - half, across + half, down + half)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(ground), width + 2))
    painter.drawRect(outer)
    painter.setPen(QPen(QColor(colour), width))
    painter.drawRect(outer)
