"""The legend of differences: less, equal, more, and the looks of tiles that cannot be compared.

Knows the palette of differences and the words of a source; does not know tiles.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from gcspy_client.model.compare.difference_source import DifferenceSource
from gcspy_client.model.palette import (
    LOW,
    ONLY_LEFT,
    ONLY_RIGHT,
    SIDES,
    UNKNOWN,
    UNUSED,
    ZERO,
    Palette,
    Theme,
    diverging,
)
from gcspy_client.view.spaces.legend import Swatch
from gcspy_client.view.theme import small_font
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["DifferenceLegend"]

_HEIGHT = 14
_GAP = 4
"""Gap between the two sides, for the colour of equal tiles."""


class _Scale(QWidget):
    """The scale of colours, from the largest decrease over equal to the largest increase."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette: Palette | None = None
        self.setFixedHeight(_HEIGHT)

    def show_palette(self, palette: Palette) -> None:
        self._palette = palette
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._palette is None:
            return
        levels = LOW + 2 * np.arange(SIDES)
        less, more = self._palette.lut[levels[::-1]].copy(), self._palette.lut[levels + 1].copy()
        half = (self.width() - _GAP) // 2
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor.fromRgb(int(self._palette.lut[ZERO])))
            for row, left in ((less, 0), (more, self.width() - half)):
                image = QImage(row.data, SIDES, 1, SIDES * 4, QImage.Format.Format_RGB32)
                painter.drawImage(QRect(left, 0, half, self.height()), image)


class DifferenceLegend(QWidget):
    """The meaning of the colours of a difference.

    Args:
        brief: Only the scale.
    """

    def __init__(self, parent: QWidget | None = None, *, brief: bool = False) -> None:
        super().__init__(parent)
        self._shown: tuple[object, ...] = ()
        self.scale = _Scale()
        self.ends = [ElidedLabel(), ElidedLabel(), ElidedLabel()]
        sides = (
            Qt.AlignmentFlag.AlignLeft,
            Qt.AlignmentFlag.AlignHCenter,
            Qt.AlignmentFlag.AlignRight,
        )
        words = QHBoxLayout()
        for label, side in zip(self.ends, sides, strict=True):
            label.setProperty("dim", "true")
            label.setFont(small_font(self.font()))
            label.setAlignment(side)
            words.addWidget(label, 1)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(6)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnStretch(3, 1)
        self._swatches: list[tuple[Swatch, int]] = []
        entries = (
            (ONLY_RIGHT, "appeared: only in B"),
            (ONLY_LEFT, "disappeared: only in A"),
            (ZERO, "equal"),
            (UNKNOWN, "unknown in A or B"),
            (UNUSED, "unused in both"),
        )
        for number, (code, text) in enumerate(() if brief else entries):
            swatch = Swatch()
            row, column = divmod(number, 2)
            self._grid.addWidget(swatch, row, 2 * column)
            self._grid.addWidget(ElidedLabel(text), row, 2 * column + 1)
            self._swatches.append((swatch, code))
        column_layout = QVBoxLayout(self)
        column_layout.setContentsMargins(0, 0, 0, 0)
        column_layout.setSpacing(2)
        column_layout.addWidget(self.scale)
        column_layout.addLayout(words)
        column_layout.addSpacing(0 if brief else 4)
        column_layout.addLayout(self._grid)

    def show_difference(self, source: DifferenceSource, theme: Theme) -> None:
        """Explain the colours of a difference."""
        texts = tuple(source.scale_text(share, 0) for share in (0.0, 0.5, 1.0))
        if source.compared.named:
            texts = ("", "names: same or different", "another")
        wanted = (texts, theme)
        if wanted == self._shown:
            return
        self._shown = wanted
        palette = diverging(theme)
        self.scale.show_palette(palette)
        for label, text in zip(self.ends, texts, strict=True):
            label.setText(text)
        for swatch, code in self._swatches:
            swatch.show_code(palette, code)
