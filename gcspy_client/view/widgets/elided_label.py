"""A label that shortens its text with an ellipsis instead of pushing its neighbours away."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.view.plain.text import draw_text, elided, set_tip
from gcspy_client.view.plain.widgets import PlainLabel

__all__ = ["ElidedLabel"]


class ElidedLabel(PlainLabel):
    """Shows as much of a text as fits; the whole is the tooltip.

    Args:
        mode: Where the ellipsis goes.
        parent: Its parent.
    """

    def __init__(
        self,
        text: str = "",
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, parent)
        self._mode = mode
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def setText(self, text: str) -> None:
        """Show another text."""
        if text != self.text():
            super().setText(text)
            self._tell_whole()

    def minimumSizeHint(self) -> QSize:
        """It can become as narrow as an ellipsis."""
        return QSize(
            self.fontMetrics().horizontalAdvance("…") * 2, super().minimumSizeHint().height()
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Say the whole text in the tooltip when it does not fit."""
        super().resizeEvent(event)
        self._tell_whole()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what fits."""
        inside = self.contentsRect()
        text = elided(self.fontMetrics(), self.text(), self._mode, inside.width())
        with QPainter(self) as painter:
            painter.setPen(self.palette().color(self.foregroundRole()))
            draw_text(painter, inside, int(self.alignment() | Qt.AlignmentFlag.AlignVCenter), text)

    def _tell_whole(self) -> None:
        fits = self.fontMetrics().horizontalAdvance(self.text()) <= self.contentsRect().width()
        set_tip(self, "" if fits else self.text())
