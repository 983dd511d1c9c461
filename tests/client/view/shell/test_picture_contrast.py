"""Texts on the screen can be read: their contrast is measured on pictures of the window, in all themes.

Of each text the most frequent colour in its rectangle is the ground, and the colour that differs
most from it the ink: letters are drawn with smooth edges, whose colours lie between the two.
Disabled texts are exempt, as WCAG 2.2 has it (success criterion 1.4.3).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from gcspy_protocol.model import Presentation, Space, Stream
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QListView,
    QTableView,
    QTextBrowser,
    QToolTip,
    QWidget,
)

from gcspy_client.model.palette import HIGH, LOW, OVERFLOW, UNKNOWN, UNUSED, ZERO, Theme
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.feeding import Feed
from tests.matrix import matrix

HEAP, FEW, COUNTS = 1, 2, {1: 40_000, 2: 12}
LEAST = 4.5
_SMALLEST = 6
"""Pixels of the width and height of a rectangle in which a letter can be read."""


def luminance(colours: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Relative luminance of colours of shape (n, 3). Source: WCAG 2.2."""
    share = colours / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    found: NDArray[np.float64] = linear @ np.array([0.2126, 0.7152, 0.0722])
    return found


def contrast_in(image: QImage, place: QRect) -> float:
    """The contrast between the ground of a rectangle and the ink on it; 1 if it is of one colour."""
    part = image.copy(place).convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(part.constBits(), dtype="<u4") & 0xFFFFFF
    packed, counts = np.unique(pixels, return_counts=True)
    colours = np.stack([packed >> shift & 255 for shift in (16, 8, 0)], axis=1).astype(np.uint8)
    light = luminance(colours)
    ground = light[int(np.argmax(counts))]
    ratios = (np.maximum(light, ground) + 0.05) / (np.minimum(light, ground) + 0.05)
    return float(ratios.max())


def seen(widget: QWidget, place: QRect, top: QWidget) -> QRect:
    """The part of a rectangle of a widget that is seen, in the window."""
    there = widget.visibleRegion().boundingRect().intersected(place)
    return QRect(widget.mapTo(top, there.topLeft()), there.size())


def words(window: QWidget) -> Iterator[tuple[str, QRect]]:
    """Each text of a window that is seen, and its rectangle in the window."""
    for widget in window.findChildren(QWidget):
        if widget.isVisible() and widget.isEnabled():
            for text, place in words_of(widget):
                if text.strip():
                    within = (
                        widget.viewport() if isinstance(widget, QAbstractScrollArea) else widget
                    )
                    yield text, seen(within, place, window)


def words_of(widget: QWidget) -> Iterator[tuple[str, QRect]]:
    """The texts of one widget, and their rectangles in it."""
    inside = widget.rect()
    match widget:
        case QLabel():
            yield widget.text(), widget.contentsRect()
        case QAbstractButton():
            yield widget.text(), inside.adjusted(4, 3, -4, -3)
        case QLineEdit():
            yield widget.text() or widget.placeholderText(), inside.adjusted(6, 4, -24, -4)
        case QComboBox():
            yield widget.currentText(), inside.adjusted(6, 4, -26, -4)
        case QTextBrowser():
            yield widget.toPlainText(), widget.viewport().rect()
        case QTableView() | QListView():
            yield from cells_of(widget)


def cells_of(table: QTableView | QListView) -> Iterator[tuple[str, QRect]]:
    """The texts of the cells that are enabled, and their rectangles in the viewport."""
    model, top = table.model(), QModelIndex()
    is_list = isinstance(table, QListView)
    for row in range(min(model.rowCount(top), 60)):
        for column in range(1 if is_list else model.columnCount(top)):
            index = model.index(row, column, top)
            hidden = isinstance(table, QTableView) and table.isIndexHidden(index)
            # A list may draw its rows from more than one text.
            text = str(index.data() or (f"row {row}" if is_list else ""))
            if model.flags(index) & Qt.ItemFlag.ItemIsEnabled and not hidden:
                yield text, table.visualRect(index).adjusted(2, 1, -2, -1)


def show(window: MainWindow) -> None:
    used = Stream(id=1, name="Used", maximum=200, presentation=Presentation.PLUS)
    spaces = (
        Space(id=HEAP, name="Heap", main=True, description="All memory.", streams=(used,)),
        Space(id=FEW, name="Few", streams=(used,)),
    )
    random = np.random.default_rng(3)
    feed = Feed(spaces=spaces, counts=COUNTS)
    window.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/test.sock")
    window.take(feed.bootstrap())
    for _ in range(2):
        window.take(feed.event({(one, 1): random.integers(0, 255, n) for one, n in COUNTS.items()}))
    window.selection.turn_to(HEAP)
    window.selection.select(HEAP, 3)
    window.settle()
    QApplication.processEvents()


@pytest.mark.parametrize("theme", matrix(Theme, usual=[Theme.DARK, Theme.LIGHT]))
def test_every_text_of_a_window_can_be_read(theme: Theme, make_window: MakeWindow) -> None:
    window = make_window(theme=theme)
    show(window)
    read: dict[str, float] = {}
    for panel in ("", "events", "cost", "growth", "compare", "bookmarks", "contents"):
        if panel:
            window.docks.show(panel)
        window.settle()
        QApplication.processEvents()
        image = window.grab().toImage()
        for text, place in words(window):
            if min(place.width(), place.height()) >= _SMALLEST:
                read[text] = min(read.get(text, 99.0), contrast_in(image, place))
    assert len(read) > 40, "the texts are found"
    assert {"Heap", "Few"} <= set(read)
    hard = {text: round(ratio, 1) for text, ratio in read.items() if ratio < LEAST}
    assert not hard


def hard_to_read(top: QWidget) -> tuple[int, dict[str, float]]:
    """How many texts a window has, and those of too little contrast."""
    QApplication.processEvents()
    image = top.grab().toImage()
    ratios = {
        text: contrast_in(image, place)
        for text, place in words(top)
        if min(place.width(), place.height()) >= _SMALLEST
    }
    return len(ratios), {text: round(one, 1) for text, one in ratios.items() if one < LEAST}


@pytest.mark.parametrize("theme", matrix(Theme, usual=[Theme.LIGHT]))
def test_words_upon_tiles_can_be_read(theme: Theme, make_window: MakeWindow) -> None:
    window = make_window(theme=theme)
    show(window)
    window.selection.select(HEAP, None)
    canvas = window.spaces.panels[HEAP].canvas
    for _ in range(40):
        window.spaces_part.zoom(1)
        if canvas.picture.layout.labelled:
            break
    # Each second row of tiles shows what is not a value.
    codes, layout = canvas.picture.codes, canvas.picture.layout
    for place, code in enumerate((UNKNOWN, UNUSED, ZERO, OVERFLOW, LOW, HIGH)):
        codes[layout.first + layout.columns + place] = code
    canvas.picture._lay_out()
    canvas.repaint()
    image = canvas.grab().toImage()
    tiles = range(layout.first, min(layout.last, layout.first + 60))
    ratios = {}
    for tile in tiles:
        cell = canvas.rectangle_of(tile).toRect().adjusted(3, 3, -3, -3)
        if image.rect().contains(cell):
            ratios[canvas.picture.codes[tile].item()] = contrast_in(image, cell)
    assert len(ratios) > 15, "of many colours"
    assert {UNKNOWN, UNUSED, ZERO, OVERFLOW, LOW, HIGH} <= set(ratios)
    assert {code: round(ratio, 1) for code, ratio in ratios.items() if ratio < LEAST} == {}


@pytest.mark.parametrize("theme", matrix(Theme, usual=[Theme.DARK]))
def test_a_tooltip_can_be_read(theme: Theme, make_window: MakeWindow) -> None:
    window = make_window(theme=theme)
    show(window)
    canvas = window.spaces.panels[HEAP].canvas
    set_tip(canvas, "Tile [0x10000, 0x11000)")
    QToolTip.showText(canvas.mapToGlobal(QPoint(30, 30)), canvas.toolTip(), canvas)
    QTest.qWait(50)
    tips = [one for one in QApplication.topLevelWidgets() if one.inherits("QTipLabel")]
    shown = [tip for tip in tips if tip.isVisible()]
    assert shown
    image = shown[0].grab().toImage()
    assert contrast_in(image, image.rect().adjusted(3, 3, -3, -3)) >= LEAST


def test_a_text_that_cannot_be_read_is_found(make_window: MakeWindow) -> None:
    """The measurement itself: a grey text on a grey ground."""
    window = make_window()
    show(window)
    label = window.spaces.panels[HEAP]._name
    label.setStyleSheet("color: #666666; background: #555555")
    image = window.grab().toImage()
    assert contrast_in(image, seen(label, label.contentsRect(), window)) < LEAST
