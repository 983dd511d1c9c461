"""Small pictures on buttons, drawn here: no font has all of them everywhere, and no file need be shipped.

Knows shapes; does not know what a button does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF

__all__ = ["SHAPES", "icon"]

_SIDE = 16
_SCALES = (1, 2, 3)

Shape = Callable[[QPainter], None]


def _triangle(painter: QPainter, left: float, right: float) -> None:
    """Pointing to `right`, be it to the right or the left of `left`."""
    painter.drawPolygon(QPolygonF([QPointF(left, 3), QPointF(right, 8), QPointF(left, 13)]))


def _bar(painter: QPainter, x: float, width: float = 2.2) -> None:
    painter.drawRect(QRectF(x, 3, width, 10))


def _first(painter: QPainter) -> None:
    _bar(painter, 2.5)
    _triangle(painter, 13.5, 5.5)


def _last(painter: QPainter) -> None:
    _triangle(painter, 2.5, 10.5)
    _bar(painter, 11.3)


def _back(painter: QPainter) -> None:
    _triangle(painter, 8.5, 2.5)
    _bar(painter, 10.5)


def _forward(painter: QPainter) -> None:
    _bar(painter, 3.3)
    _triangle(painter, 7.5, 13.5)


def _play(painter: QPainter) -> None:
    _triangle(painter, 4, 13)


def _reverse(painter: QPainter) -> None:
    _triangle(painter, 12, 3)


def _pause(painter: QPainter) -> None:
    _bar(painter, 4, 3)
    _bar(painter, 9, 3)


def _outlined(painter: QPainter) -> None:
    painter.setPen(
        QPen(painter.brush().color(), 1.6, c=Qt.PenCapStyle.RoundCap, j=Qt.PenJoinStyle.RoundJoin)
    )
    painter.setBrush(Qt.BrushStyle.NoBrush)


def _loop(painter: QPainter) -> None:
    colour = painter.brush().color()
    _outlined(painter)
    painter.drawRoundedRect(QRectF(2.5, 4.5, 11, 7.5), 3.5, 3.5)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawPolygon(QPolygonF([QPointF(7, 1.2), QPointF(11, 4.5), QPointF(7, 7.8)]))


def _flag(painter: QPainter) -> None:
    painter.drawRect(QRectF(3, 2, 1.6, 12))
    painter.drawPolygon(QPolygonF([QPointF(4, 2.4), QPointF(13.5, 5.4), QPointF(4, 8.8)]))


def _cross(painter: QPainter) -> None:
    _outlined(painter)
    painter.drawLine(QPointF(4.5, 4.5), QPointF(11.5, 11.5))
    painter.drawLine(QPointF(11.5, 4.5), QPointF(4.5, 11.5))


def _float(painter: QPainter) -> None:
    _outlined(painter)
    painter.drawRect(QRectF(3.5, 6.0, 6.5, 6.5))
    painter.drawPolyline(QPolygonF([QPointF(6.0, 3.5), QPointF(12.5, 3.5), QPointF(12.5, 10.0)]))


def _up(painter: QPainter) -> None:
    _outlined(painter)
    painter.drawPolyline(QPolygonF([QPointF(3.5, 10), QPointF(8, 5.5), QPointF(12.5, 10)]))


def _down(painter: QPainter) -> None:
    _outlined(painter)
    painter.drawPolyline(QPolygonF([QPointF(3.5, 6), QPointF(8, 10.5), QPointF(12.5, 6)]))


SHAPES: dict[str, Shape] = {
    "first": _first,
    "last": _last,
    "back": _back,
    "forward": _forward,
    "play": _play,
    "reverse": _reverse,
    "pause": _pause,
    "loop": _loop,
    "flag": _flag,
    "cross": _cross,
    "float": _float,
    "up": _up,
    "down": _down,
}


@lru_cache(maxsize=64)
def icon(name: str, colour: str, dim: str) -> QIcon:
    """One of `SHAPES`, sharp at every scale of a screen.

    Args:
        name: Which.
        colour: As ``#rrggbb``.
        dim: The same for a button that cannot be pressed.
    """
    made = QIcon()
    for mode, ink in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, dim)):
        for scale in _SCALES:
            pixmap = QPixmap(_SIDE * scale, _SIDE * scale)
            pixmap.fill(Qt.GlobalColor.transparent)
            pixmap.setDevicePixelRatio(scale)
            with QPainter(pixmap) as painter:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(ink))
                SHAPES[name](painter)
            made.addPixmap(pixmap, mode)
    return made
