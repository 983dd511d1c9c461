"""All texts that a window shows or would show: labels, tips, menus, tables, titles; and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gcspy_protocol.text.visible import visible
from PySide6 import QtGui
from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QHelpEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QGroupBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QTabBar,
    QTextEdit,
    QToolTip,
    QWidget,
)

from gcspy_client.view.plain.markdown import MarkdownParagraph, MarkdownText
from tests.hostile.corpus import FORGED

__all__ = ["Shown", "fault_of", "shown_texts", "tips_at"]

_MOST_CHARS = 20_000
"""A label of 4,000 characters may be broken after each eighth."""

_MOST_ROWS = 40
_OUR_OWN = str.maketrans("", "", "\u200b\u2060")
"""Invisible characters that labels and tips insert; those of a hostile text are escaped by then."""

_TIP_ROLES = (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.WhatsThisRole)


@dataclass(frozen=True, slots=True)
class Shown:
    """A text and where it stands.

    Attributes:
        where: The widget, and the part of it.
        text: The text.
        is_tip: Whether Qt renders it as HTML if it looks like HTML.
        rendered: Whether it is rendered as HTML or Markdown.
    """

    where: str
    text: str
    is_tip: bool = False
    rendered: bool = False


def fault_of(shown: Shown) -> str:
    """Return the fault of a text; empty: it has none."""
    text = shown.text.translate(_OUR_OWN)
    if shown.rendered:
        return "it is rendered"
    if shown.is_tip and QtGui.Qt.mightBeRichText(shown.text):
        return "it is a tooltip that Qt takes for HTML"
    for line in text.split("\n"):
        if line.startswith(FORGED):
            return "a stranger's text has forged a line"
        if visible(line) != line:
            return "something in it is hidden or misleads"
    if len(text) > _MOST_CHARS:
        return f"it has {len(text):,} characters"
    return ""


def _name(widget: QWidget) -> str:
    names: list[str] = []
    one: QWidget | None = widget
    while one is not None and len(names) < 4:
        names.append(f"{type(one).__name__}{f'({one.objectName()})' if one.objectName() else ''}")
        one = one.parentWidget()
    return " < ".join(names)


def shown_texts() -> Iterator[Shown]:
    """The texts of all widgets of the application, also of those that are not to be seen now."""
    for widget in QApplication.allWidgets():
        where = _name(widget)
        yield Shown(f"tip of {where}", widget.toolTip(), is_tip=True)
        yield Shown(f"what's this of {where}", widget.whatsThis(), is_tip=True)
        yield Shown(f"status tip of {where}", widget.statusTip(), is_tip=True)
        yield Shown(f"title of {where}", widget.windowTitle())
        yield Shown(f"accessible name of {where}", widget.accessibleName())
        for action in widget.actions():
            yield from _of_action(action, where)
        yield from _of_kind(widget, where)


def _of_action(action: QAction, where: str) -> Iterator[Shown]:
    words, _, _key = action.text().partition("\t")
    yield Shown(f"action of {where}", words)
    yield Shown(f"tip of action of {where}", action.toolTip(), is_tip=True)
    yield Shown(f"status tip of action of {where}", action.statusTip(), is_tip=True)


def _of_kind(widget: QWidget, where: str) -> Iterator[Shown]:
    match widget:
        case QLabel():
            if isinstance(widget, MarkdownParagraph):
                return
            # Qt's own tooltip, and what the plotting library has in its menu, look for themselves.
            foreign = type(widget) is QLabel and widget.textFormat() is Qt.TextFormat.AutoText
            plain = foreign or widget.textFormat() is Qt.TextFormat.PlainText
            yield Shown(where, QLabel.text(widget), is_tip=foreign, rendered=not plain)
        case QAbstractButton() | QLineEdit():
            yield Shown(where, widget.text())
        case QGroupBox():
            yield Shown(where, widget.title())
        case QMenu():
            yield Shown(where, widget.title())
        case QPlainTextEdit():
            yield Shown(where, widget.toPlainText())
        case QTextEdit():
            yield Shown(where, "", rendered=not isinstance(widget, MarkdownText))
        case QComboBox():
            yield Shown(where, widget.currentText())
            for place in range(min(widget.count(), _MOST_ROWS)):
                yield Shown(where, widget.itemText(place))
                tip = widget.itemData(place, Qt.ItemDataRole.ToolTipRole)
                yield Shown(f"tip of {where}", str(tip or ""), is_tip=True)
        case QTabBar():
            for place in range(widget.count()):
                yield Shown(where, widget.tabText(place))
                yield Shown(f"tip of {where}", widget.tabToolTip(place), is_tip=True)
        case QAbstractItemView():
            model = widget.model()
            if model is not None:
                yield from _of_model(model, where)


def _of_model(model: QAbstractItemModel, where: str) -> Iterator[Shown]:
    rows = min(model.rowCount(), _MOST_ROWS)
    # PySide calls it private in lists, which have one.
    columns = 1 if isinstance(model, QAbstractListModel) else min(model.columnCount(), _MOST_ROWS)
    for orientation, count in (
        (Qt.Orientation.Horizontal, columns),
        (Qt.Orientation.Vertical, rows),
    ):
        for place in range(count):
            for role in (Qt.ItemDataRole.DisplayRole, *_TIP_ROLES):
                data = model.headerData(place, orientation, role)
                yield Shown(f"header of {where}", str(data or ""), is_tip=role in _TIP_ROLES)
    for row in range(rows):
        for column in range(columns):
            index = model.index(row, column)
            for role in (Qt.ItemDataRole.DisplayRole, *_TIP_ROLES):
                data = model.data(index, role)
                yield Shown(f"cell of {where}", str(data or ""), is_tip=role in _TIP_ROLES)


def tips_at(window: QWidget) -> Iterator[Shown]:
    """Return the tooltips of each visible widget: in its middle and at its left."""
    last = QToolTip.text()
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or widget.width() < 2 or widget.height() < 2:
            continue
        for where in (widget.rect().center(), QPoint(6, widget.height() // 2)):
            place = widget.mapToGlobal(where)
            QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, where, place))
            if QToolTip.text() != last:  # one is not hidden at once
                last = QToolTip.text()
                yield Shown(f"tip over {_name(widget)}", QToolTip.text(), is_tip=True)
    QToolTip.hideText()
