"""The legend of the active space: low, middle, high, and the appearances of tiles without a value.

The swatches are stamped from the same atlas as the tiles, so a legend cannot
disagree with the picture it explains.
"""

from __future__ import annotations

import numpy as np
from gcspy_protocol.model import PaintStyle, Presentation, Stream
from gcspy_protocol.streams.named_stream import NamedStream
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from gcspy_client.model.codes import names_by_code
from gcspy_client.model.palette import (
    HIGH,
    LEVELS,
    LOW,
    OVERFLOW,
    UNKNOWN,
    UNUSED,
    ZERO,
    Palette,
    Theme,
)
from gcspy_client.model.raster import draw_stamps
from gcspy_client.model.renderers.bivariate import STEPS, bivariate
from gcspy_client.model.renderers.bivariate import legend as square
from gcspy_client.model.tile_source import StreamSource, TileSource
from gcspy_client.view.layout_guard import clear_layout
from gcspy_client.view.plain.text import draw_text, elided
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.theme import small_font
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["Legend", "RampStrip", "Swatch"]

_SWATCH = 14
_STEP = 5
_NAMES_SHOWN = 12
_ROOMY_FACTOR = 1.2
"""Beyond it two entries do not fit beside each other."""


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

    def enlarge(self, factor: float) -> None:
        """Be larger than usual; 1: as usual."""
        self.setFixedSize(QSize(round(_SWATCH * factor), round(_SWATCH * factor)))

    def show_code(self, palette: Palette, code: int) -> None:
        """Show the look of a paint code."""
        self._palette, self._code = palette, code
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the cell as the canvas would."""
        if self._palette is None:
            return
        side = round(self.width() * self.devicePixelRatioF())
        stamp = np.empty((1, side, side), dtype=np.uint32)
        draw_stamps(stamp, np.array([self._code]), self._palette, 0)
        image = QImage(stamp.data, side, side, side * 4, QImage.Format.Format_RGB32)
        with QPainter(self) as painter:
            painter.drawImage(self.rect(), image)
            rim = self.palette().color(self.foregroundRole())
            rim.setAlpha(70)
            painter.setPen(rim)
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


class RampStrip(QWidget):
    """The strip of colours from low to high."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette: Palette | None = None
        self.setFixedHeight(_SWATCH)

    def show_palette(self, palette: Palette) -> None:
        """Show the colours of a palette."""
        self._palette = palette
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the ramp, and a mark in its middle."""
        if self._palette is None:
            return
        row = self._palette.lut[LOW : HIGH + 1].copy()
        image = QImage(row.data, LEVELS, 1, LEVELS * 4, QImage.Format.Format_RGB32)
        with QPainter(self) as painter:
            painter.drawImage(QRect(0, 0, self.width(), self.height()), image)
            painter.setPen(QColor.fromRgb(self._palette.line))
            middle = self.width() // 2
            painter.drawLine(middle, self.height() - 4, middle, self.height())


class _Square(QWidget):
    """The colours of two streams together: the first grows upwards, the second to the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = Theme.DARK
        self._words = ("", "", "", "", "", "")
        self.setFixedHeight(STEPS * _STEP)

    def show_two(self, theme: Theme, words: tuple[str, str, str, str, str, str]) -> None:
        """Show the square.

        Args:
            theme: Of the palette.
            words: Name, least and greatest of the first stream, and of the second.
        """
        self._theme, self._words = theme, words
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        first, low, high, second, left, right = self._words
        scale = max(1, round(self.devicePixelRatioF()))
        pixels = square(self._theme, _STEP * scale)
        side = STEPS * _STEP
        high_px, wide_px = pixels.shape
        image = QImage(pixels.data, wide_px, high_px, wide_px * 4, QImage.Format.Format_RGB32)
        with QPainter(self) as painter:
            painter.drawImage(QRect(0, 0, side, side), image)
            painter.setFont(small_font(self.font()))
            metrics = painter.fontMetrics()
            painter.setPen(self.palette().color(self.foregroundRole()))
            line, room = metrics.height(), self.width() - side - 12
            lines = (
                f"↑  {first}",
                f"     {low} to {high}",
                f"→  {second}",
                f"     {left} to {right}",
            )
            for number, text in enumerate(lines):
                y = number * (side - line) // (len(lines) - 1)
                words = elided(metrics, text, Qt.TextElideMode.ElideRight, room)
                place = QRect(side + 12, y, room, line)
                draw_text(
                    painter,
                    place,
                    int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter),
                    words,
                )


class Legend(QWidget):
    """The meaning of the colours of one stream, or of two."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[object, ...] = ()
        self._factor = 1.0
        self._filled: tuple[object, ...] = ()
        self._ramp = RampStrip()
        self._ends = [ElidedLabel(), ElidedLabel(), ElidedLabel()]
        self._ramp_box = QWidget()
        self._square = _Square()
        self._square.hide()
        self._said = PlainLabel()
        self._said.setProperty("dim", "true")
        self._said.setFont(small_font(self.font()))
        self._said.setWordWrap(True)
        self._said.hide()
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
            (
                Qt.AlignmentFlag.AlignLeft,
                Qt.AlignmentFlag.AlignHCenter,
                Qt.AlignmentFlag.AlignRight,
            ),
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
        column.addWidget(self._square)
        column.addWidget(self._grid_box)
        column.addWidget(self._said)

    def show_stream(self, stream: Stream, palette: Palette, maximum: int, unused_text: str) -> None:
        """Explain a stream.

        Args:
            stream: Its schema.
            palette: Its colours.
            maximum: The value painted as the highest at present.
            unused_text: The name of an unused tile.
        """
        self.show_source(StreamSource(stream), palette, maximum, unused_text)

    def show_source(
        self, source: TileSource, palette: Palette, maximum: int, unused_text: str, said: str = ""
    ) -> None:
        """Explain any numbers.

        Args:
            source: The numbers.
            palette: Their colours.
            maximum: The value painted as the highest at present.
            unused_text: The name of an unused tile.
            said: Remarks about the view.
        """
        stream = source.schema
        wanted = (stream, palette, maximum, unused_text, said)
        if wanted == self._shown:
            return
        self._shown = wanted
        is_enum = stream.presentation is Presentation.ENUM
        self._square.hide()
        self._ramp_box.setVisible(not is_enum)
        if not is_enum:
            self._ramp.show_palette(palette)
            for label, text in zip(self._ends, _scale_texts(source, maximum), strict=True):
                label.setText(text)
        self._say(said)
        self._fill(self._entries(stream, unused_text), palette)

    def show_two(
        self, first: TileSource, second: TileSource, theme: Theme, unused_text: str
    ) -> None:
        """Explain the colours of two streams together."""
        wanted = (first.schema, second.schema, theme, unused_text)
        if wanted == self._shown:
            return
        self._shown = wanted
        self._ramp_box.hide()
        self._square.show()
        ends = [text for one in (first, second) for text in (one.schema.name, *_ends_of(one))]
        self._square.show_two(theme, (ends[0], ends[1], ends[2], ends[3], ends[4], ends[5]))
        self._say("")
        entries = [
            (ZERO, "both zero"),
            (UNKNOWN, "either unknown"),
            (UNUSED, unused_text or "unused"),
        ]
        self._fill(entries, bivariate(theme))

    def enlarge(self, factor: float) -> None:
        """Draw swatches and strip larger than usual; 1: as usual."""
        self._factor = factor
        self._shown = ()  # large texts are one below the other: entries are placed again
        self._ramp.setFixedHeight(round(_SWATCH * factor))
        self._grid.setColumnStretch(3, 0 if factor > _ROOMY_FACTOR else 1)

    def _say(self, text: str) -> None:
        self._said.setText(text)
        self._said.setVisible(bool(text))

    @staticmethod
    def _entries(stream: Stream, unused_text: str) -> list[tuple[int, str]]:
        entries: list[tuple[int, str]] = []
        if isinstance(stream, NamedStream):
            entries += names_by_code(stream)
        elif stream.presentation is Presentation.ENUM:
            names = stream.enum_names
            zero = stream.zero if stream.paint_style is PaintStyle.ZERO else None
            entries += [
                (ZERO if i == zero else LOW + i % LEVELS, name)
                for i, name in enumerate(names[:_NAMES_SHOWN])
                if name != unused_text  # that is shown below, as it is painted
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
                entries.append((OVERFLOW, _above_words(stream)))
        entries.append((UNKNOWN, "unknown"))
        entries.append((UNUSED, unused_text or "unused"))
        return entries

    def _fill(self, entries: list[tuple[int, str]], palette: Palette) -> None:
        wanted = tuple(entries), palette, self._factor
        if wanted == self._filled:
            return  # to make them again takes longer than a picture of the tiles
        self._filled = wanted
        clear_layout(self._grid)
        for number, (code, text) in enumerate(entries):
            swatch, label = Swatch(), ElidedLabel(text)
            swatch.enlarge(self._factor)
            swatch.show_code(palette, code)
            row, column = divmod(number, 1 if self._factor > _ROOMY_FACTOR else 2)
            self._grid.addWidget(swatch, row, 2 * column)
            self._grid.addWidget(label, row, 2 * column + 1)


def _above_words(stream: Stream) -> str:
    """Return the meaning of a value that is painted as one above the maximum."""
    if stream.threshold:
        return "above the threshold"
    return "above: shown as +" if stream.is_exceeded_normally else "above the maximum"


def _scale_texts(source: TileSource, maximum: int) -> tuple[str, str, str]:
    """Low, middle and high in words."""
    low, middle, high = (source.scale_text(share, maximum) for share in (0.0, 0.5, 1.0))
    if source.schema.presentation is Presentation.MAX_VAR:
        high = f"{high} (now)"
    return low, middle, high


def _ends_of(source: TileSource) -> tuple[str, str]:
    """Low and high in words; a maximum that varies has no number here."""
    schema = source.schema
    match schema.presentation:
        case Presentation.ENUM:
            return schema.enum_names[0], schema.enum_names[-1]
        case Presentation.MAX_VAR:
            return source.scale_text(0.0, schema.maximum), "current maximum"
        case _:
            return source.scale_text(0.0, schema.maximum), source.scale_text(1.0, schema.maximum)
