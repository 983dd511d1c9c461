"""The legend of the active space: low, middle, high, and the looks of what is not a value.

The swatches are stamped from the same atlas as the tiles, so a legend cannot
disagree with the picture it explains.
"""

from __future__ import annotations

from gcspy_protocol.model import PaintStyle, Presentation, Stream
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from gcspy_client.model.palette import HIGH, LEVELS, LOW, OVERFLOW, UNKNOWN, UNUSED, ZERO, Palette
from gcspy_client.model.raster import atlas
from gcspy_client.model.text import short_amount
from gcspy_client.view.elided import ElidedLabel
from gcspy_client.view.theme import small_font

__all__ = ["Legend", "Swatch"]

_SWATCH = 14
_NAMES_SHOWN = 12


class Swatch(QWidget):
    """One drawn cell.

    Args:
        parent: Its parent.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette: Palette | None = None
        self._code = 0
        self.setFixedSize(QSize(_SWATCH, _SWATCH))

    def show_code(self, palette: Palette, code: int) -> None:
        """Show the look of a paint code."""
        self._palette, self._code = palette, code
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the cell as the canvas would."""
        if self._palette is None:
            return
        side = round(_SWATCH * self.devicePixelRatioF())
        stamp = atlas(self._palette, side, side, 0)[self._code].copy()
        image = QImage(stamp.data, side, side, side * 4, QImage.Format.Format_RGB32)
        with QPainter(self) as painter:
            painter.drawImage(self.rect(), image)
            rim = self.palette().color(self.foregroundRole())
            rim.setAlpha(70)
            painter.setPen(rim)
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


class _Ramp(QWidget):
    """The strip of colours from low to high."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette: Palette | None = None
        self.setFixedHeight(_SWATCH)

    def show_palette(self, palette: Palette) -> None:
        self._palette = palette
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._palette is None:
            return
        row = self._palette.lut[LOW : HIGH + 1].copy()
        image = QImage(row.data, LEVELS, 1, LEVELS * 4, QImage.Format.Format_RGB32)
        with QPainter(self) as painter:
            painter.drawImage(QRect(0, 0, self.width(), self.height()), image)
            painter.setPen(QColor.fromRgb(self._palette.line))
            middle = self.width() // 2
            painter.drawLine(middle, self.height() - 4, middle, self.height())


class Legend(QWidget):
    """What the colours of one stream mean."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[object, ...] = ()
        self._ramp = _Ramp()
        self._ends = [ElidedLabel(), ElidedLabel(), ElidedLabel()]
        self._ramp_box = QWidget()
        self._grid_box = QWidget()
        self._grid = QGridLayout(self._grid_box)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(6)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnStretch(3, 1)
        ends = QHBoxLayout()
        for label, place in zip(
            self._ends,
            (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight),
            strict=True,
        ):
            label.setProperty("dim", "true")
            label.setFont(small_font(self.font()))
            label.setAlignment(place)
            ends.addWidget(label, 1)
        ramp = QVBoxLayout(self._ramp_box)
        ramp.setContentsMargins(0, 0, 0, 0)
        ramp.setSpacing(2)
        ramp.addWidget(self._ramp)
        ramp.addLayout(ends)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(7)
        column.addWidget(self._ramp_box)
        column.addWidget(self._grid_box)

    def show_stream(self, stream: Stream, palette: Palette, maximum: int, unused_text: str) -> None:
        """Explain a stream.

        Args:
            stream: Its schema.
            palette: Its colours.
            maximum: What is painted as the highest now.
            unused_text: What an unused tile is.
        """
        wanted = (stream, palette.theme, maximum, unused_text)
        if wanted == self._shown:
            return
        self._shown = wanted
        is_enum = stream.presentation is Presentation.ENUM
        self._ramp_box.setVisible(not is_enum)
        if not is_enum:
            self._ramp.show_palette(palette)
            for label, text in zip(self._ends, _scale_texts(stream, maximum), strict=True):
                label.setText(text)
        self._fill(self._entries(stream, unused_text), palette)

    @staticmethod
    def _entries(stream: Stream, unused_text: str) -> list[tuple[int, str]]:
        entries: list[tuple[int, str]] = []
        if stream.presentation is Presentation.ENUM:
            names = stream.enum_names
            zero = stream.zero if stream.paint_style is PaintStyle.ZERO else None
            entries += [
                (ZERO if i == zero else LOW + i % LEVELS, name) for i, name in enumerate(names[:_NAMES_SHOWN])
            ]
            if len(names) > _NAMES_SHOWN:
                entries.append(
                    (LOW + _NAMES_SHOWN % LEVELS, f"{len(names) - _NAMES_SHOWN} more; repeating")
                )
            entries.append((OVERFLOW, "value without a name"))
        else:
            if stream.paint_style is PaintStyle.ZERO:
                entries.append((ZERO, "zero" if stream.zero == 0 else f"zero ({stream.zero:,})"))
            if stream.presentation is not Presentation.MAX_VAR:
                entries.append((OVERFLOW, "above the highest"))
        entries.append((UNKNOWN, "unknown"))
        entries.append((UNUSED, unused_text or "unused"))
        return entries

    def _fill(self, entries: list[tuple[int, str]], palette: Palette) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.setParent(None)  # out of sight now; Qt deletes it when it comes to it
                widget.deleteLater()
        for number, (code, text) in enumerate(entries):
            swatch, label = Swatch(), ElidedLabel(text)
            swatch.show_code(palette, code)
            row, column = divmod(number, 2)
            self._grid.addWidget(swatch, row, 2 * column)
            self._grid.addWidget(label, row, 2 * column + 1)


def _scale_texts(stream: Stream, maximum: int) -> tuple[str, str, str]:
    """Low, middle and high in words."""
    if stream.presentation in (Presentation.PERCENT, Presentation.PERCENT_VAR):
        return "0 %", "50 %", "100 %"
    low = stream.minimum
    texts = [short_amount(stream, value) for value in (low, (low + maximum) // 2, maximum)]
    if stream.presentation is Presentation.MAX_VAR:
        texts[2] = f"{texts[2]} (now)"
    return texts[0], texts[1], texts[2]
