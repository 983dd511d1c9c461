"""Check boxes and radio buttons whose frames are seen on a dark ground.

The style takes the frame's colour from the window's, a little darker: on a dark one it is
invisible. Drawn here from the palette's colours, a mark is distinct from its background in both
themes, and a chosen one from an empty one without colour.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPaintEvent, QPalette, QPen, QPolygonF
from PySide6.QtWidgets import (
    QStyle,
    QStyleOptionButton,
    QStyleOptionFocusRect,
    QStylePainter,
)

from gcspy_client.view.plain.widgets import PlainCheckBox, PlainRadioButton

__all__ = ["CheckBox", "RadioButton"]

_CHECK = ((0.22, 0.52), (0.42, 0.72), (0.79, 0.29))
"""The stroke, in shares of the box."""

_DOT = 0.4
"""Diameter of the dot, as a share of the circle's."""


class CheckBox(PlainCheckBox):
    """A check box with two states."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint box and words."""
        option = QStyleOptionButton()
        self.initStyleOption(option)
        painter, box = _painter_of(self, option, QStyle.SubElement.SE_CheckBoxIndicator)
        _paint_frame(painter, self, box, 3)
        if self.isChecked():
            stroke = QPolygonF(
                [
                    QPointF(box.left() + x * box.width(), box.top() + y * box.height())
                    for x, y in _CHECK
                ]
            )
            colour = self.palette().color(QPalette.ColorRole.HighlightedText)
            painter.setPen(
                QPen(colour, 1.8, c=Qt.PenCapStyle.RoundCap, j=Qt.PenJoinStyle.RoundJoin)
            )
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(stroke)
        option.rect = self.style().subElementRect(
            QStyle.SubElement.SE_CheckBoxContents, option, self
        )
        painter.drawControl(QStyle.ControlElement.CE_CheckBoxLabel, option)
        _paint_focus(painter, self, option, QStyle.SubElement.SE_CheckBoxFocusRect)


class RadioButton(PlainRadioButton):
    """A radio button."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint circle and words."""
        option = QStyleOptionButton()
        self.initStyleOption(option)
        painter, box = _painter_of(self, option, QStyle.SubElement.SE_RadioButtonIndicator)
        _paint_frame(painter, self, box, box.width() / 2)
        if self.isChecked():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.palette().color(QPalette.ColorRole.HighlightedText))
            painter.drawEllipse(box.center(), box.width() * _DOT / 2, box.height() * _DOT / 2)
        option.rect = self.style().subElementRect(
            QStyle.SubElement.SE_RadioButtonContents, option, self
        )
        painter.drawControl(QStyle.ControlElement.CE_RadioButtonLabel, option)
        _paint_focus(painter, self, option, QStyle.SubElement.SE_RadioButtonFocusRect)


def _painter_of(
    button: CheckBox | RadioButton, option: QStyleOptionButton, place: QStyle.SubElement
) -> tuple[QStylePainter, QRectF]:
    painter = QStylePainter(button)
    painter.setRenderHint(QStylePainter.RenderHint.Antialiasing)
    return painter, QRectF(button.style().subElementRect(place, option, button)).adjusted(
        0.5, 0.5, -0.5, -0.5
    )


def _paint_frame(
    painter: QStylePainter, button: CheckBox | RadioButton, box: QRectF, radius: float
) -> None:
    """Paint the frame of the mark; it is filled if the button is checked."""
    palette = button.palette()
    group = QPalette.ColorGroup.Normal if button.isEnabled() else QPalette.ColorGroup.Disabled
    frame = palette.color(group, QPalette.ColorRole.PlaceholderText)
    ground = palette.color(group, QPalette.ColorRole.Base)
    if button.isChecked():
        frame = ground = (
            palette.color(group, QPalette.ColorRole.Highlight) if button.isEnabled() else frame
        )
    painter.setPen(QPen(frame, 1))
    painter.setBrush(ground)
    painter.drawRoundedRect(box, radius, radius)


def _paint_focus(
    painter: QStylePainter,
    button: CheckBox | RadioButton,
    option: QStyleOptionButton,
    place: QStyle.SubElement,
) -> None:
    if button.hasFocus():
        frame = QStyleOptionFocusRect()
        frame.initFrom(button)
        frame.rect = button.style().subElementRect(place, option, button)
        painter.drawPrimitive(QStyle.PrimitiveElement.PE_FrameFocusRect, frame)
