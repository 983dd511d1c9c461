"""A check box whose frame is seen on a dark ground.

The style takes the frame's colour from the window's, a little darker: on a dark one it is not seen at all. Drawn here from
the palette's colours, the box is told from its ground in both themes, and the check from an empty box without colour.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPaintEvent, QPalette, QPen, QPolygonF
from PySide6.QtWidgets import QCheckBox, QStyle, QStyleOptionButton, QStyleOptionFocusRect, QStylePainter

__all__ = ["CheckBox"]

_CHECK = ((0.22, 0.52), (0.42, 0.72), (0.79, 0.29))
"""The stroke, in shares of the box."""


class CheckBox(QCheckBox):
    """A check box with two states."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint box and words."""
        option = QStyleOptionButton()
        self.initStyleOption(option)
        painter = QStylePainter(self)
        painter.setRenderHint(QStylePainter.RenderHint.Antialiasing)
        style = self.style()
        box = QRectF(style.subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self)).adjusted(0.5, 0.5, -0.5, -0.5)
        self._draw_box(painter, box)
        words = style.subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self)
        option.rect = words
        painter.drawControl(QStyle.ControlElement.CE_CheckBoxLabel, option)
        if self.hasFocus():
            frame = QStyleOptionFocusRect()
            frame.initFrom(self)
            frame.rect = style.subElementRect(QStyle.SubElement.SE_CheckBoxFocusRect, option, self)
            painter.drawPrimitive(QStyle.PrimitiveElement.PE_FrameFocusRect, frame)

    def _draw_box(self, painter: QStylePainter, box: QRectF) -> None:
        palette, group = self.palette(), QPalette.ColorGroup.Normal if self.isEnabled() else QPalette.ColorGroup.Disabled
        frame = palette.color(group, QPalette.ColorRole.PlaceholderText)
        if not self.isChecked():
            painter.setPen(QPen(frame, 1))
            painter.setBrush(palette.color(group, QPalette.ColorRole.Base))
            painter.drawRoundedRect(box, 3, 3)
            return
        ground = palette.color(group, QPalette.ColorRole.Highlight) if self.isEnabled() else frame
        painter.setPen(QPen(ground, 1))
        painter.setBrush(ground)
        painter.drawRoundedRect(box, 3, 3)
        stroke = QPolygonF([QPointF(box.left() + x * box.width(), box.top() + y * box.height()) for x, y in _CHECK])
        painter.setPen(QPen(palette.color(QPalette.ColorRole.HighlightedText), 1.8, c=Qt.PenCapStyle.RoundCap, j=Qt.PenJoinStyle.RoundJoin))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(stroke)
