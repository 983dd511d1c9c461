"""Everything that can be done, found by typing: actions, panels, spaces, streams, bookmarks (Ctrl+K).

It overlays the window and is operated with the keyboard alone. Unavailable actions are listed too, with the reason.

Knows entries; their sources are called each time it is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.shell.fuzzy import Match, match
from gcspy_client.view.plain.items import PlainListModel
from gcspy_client.view.plain.text import draw_text, elided
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit
from gcspy_client.view.theme import Tokens, small_font

__all__ = ["CommandPalette", "PaletteEntry"]

_WIDTH, _ROWS, _TOP = 620, 10, 64
_KEPT = 5
"""This many recently used entries come first while nothing is typed."""

_Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """Something that can be done.

    Attributes:
        group: Of what sort it is: *View*, *Space*, *Bookmark*.
        text: Its name.
        run: Does it.
        keys: Its first shortcut, as the system writes it.
        why_not: Why it cannot be done now; empty: it can.
    """

    group: str
    text: str
    run: Callable[[], object]
    keys: str = ""
    why_not: str = ""


class _Found(PlainListModel):
    """The matching entries, the best first."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.rows: list[tuple[PaletteEntry, Match]] = []

    def show(self, rows: list[tuple[PaletteEntry, Match]]) -> None:
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: _Index | None = None) -> int:
        return len(self.rows)

    def cell_data(self, index: _Index, role: int) -> object:
        if not index.isValid():
            return None
        entry = self.rows[index.row()][0]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return f"{entry.group}: {entry.text}"
        return entry.why_not or None if role == Qt.ItemDataRole.ToolTipRole else None


class _Rows(QStyledItemDelegate):
    """Draws an entry: its sort, its words with what was typed in bold, why not, its keys."""

    def __init__(self, colours: Tokens, parent: QObject) -> None:
        super().__init__(parent)
        self.colours = colours

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(0, option.fontMetrics.height() + 12)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        model = index.model()
        assert isinstance(model, _Found)
        entry, found = model.rows[index.row()]
        t = self.colours
        chosen = bool(option.state.value & _SELECTED)
        inside = option.rect.adjusted(10, 0, -10, 0)
        painter.save()
        if chosen:
            painter.fillRect(option.rect, QColor(t.raised))
            painter.fillRect(
                QRect(option.rect.left(), option.rect.top(), 3, option.rect.height()),
                QColor(t.accent),
            )
        small = small_font(option.font)
        painter.setFont(small)
        painter.setPen(QColor(t.dim))
        group = inside.adjusted(0, 0, 0, 0)
        group.setWidth(84)
        draw_text(
            painter,
            group,
            _LEFT,
            elided(painter.fontMetrics(), entry.group, Qt.TextElideMode.ElideRight, 80),
        )
        keys = painter.fontMetrics().horizontalAdvance(entry.keys)
        draw_text(painter, inside, _RIGHT, entry.keys)
        words = inside.adjusted(88, 0, -keys - 12, 0)
        used = self._words(painter, words, option.font, entry, found)
        if entry.why_not:
            painter.setFont(small)
            painter.setPen(QColor(t.warning if chosen else t.dim))
            rest = words.adjusted(used + 12, 0, 0, 0)
            why = elided(
                painter.fontMetrics(),
                entry.why_not,
                Qt.TextElideMode.ElideRight,
                max(0, rest.width()),
            )
            draw_text(painter, rest, _LEFT, why)
        painter.restore()

    def _words(
        self, painter: QPainter, where: QRect, font: QFont, entry: PaletteEntry, found: Match
    ) -> int:
        """Draw the words; returns their width in pixels."""
        bold = QFont(font)
        bold.setBold(True)
        plain = QColor(self.colours.dim if entry.why_not else self.colours.text)
        places, x = set(found.places), 0
        painter.setFont(bold)
        room = where.width() - painter.fontMetrics().horizontalAdvance("…")
        for place, letter in enumerate(entry.text):
            hit = place in places
            painter.setFont(bold if hit else font)
            painter.setPen(QColor(self.colours.accent) if hit else plain)
            width = painter.fontMetrics().horizontalAdvance(letter)
            cut = x + width > room
            draw_text(painter, where.adjusted(x, 0, 0, 0), _LEFT, "…" if cut else letter)
            x += width
            if cut:
                break
        return x


_SELECTED = 0x8000  # QStyle.State_Selected; the enum's member costs a conversion for each row
_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)


class CommandPalette(QFrame):
    """A text field, and the matching entries below it.

    Args:
        entries: Returns the present entries, called each time it is opened.
        colours: Colours of the theme.
        window: The window that it overlays.
    """

    def __init__(
        self, entries: Callable[[], Sequence[PaletteEntry]], colours: Tokens, window: QWidget
    ) -> None:
        super().__init__(window)
        self._window = window
        self._ask = entries
        self._entries: Sequence[PaletteEntry] = ()
        self._used: list[str] = []
        self.setProperty("sheet", "true")
        self.field = PlainLineEdit()
        self.field.setPlaceholderText("Search for an action, panel, space, stream or bookmark")
        self.field.setClearButtonEnabled(True)
        self.field.installEventFilter(self)
        self.field.textChanged.connect(self._find)
        self._found = _Found(self)
        self._rows = _Rows(colours, self)
        self.list = QListView()
        self.list.setModel(self._found)
        self.list.setItemDelegate(self._rows)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setUniformItemSizes(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.clicked.connect(self._clicked)
        self._said = PlainLabel()
        self._said.setProperty("dim", "true")
        self._said.setFont(small_font(self.font()))
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 6)
        column.setSpacing(6)
        column.addWidget(self.field)
        column.addWidget(self.list, 1)
        column.addWidget(self._said)
        self.hide()

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self._rows.colours = colours
        self.list.viewport().update()

    def open(self) -> None:
        """Ask what there is, and let the user type."""
        self._entries = self._ask()
        self.field.clear()
        self._find("")
        parent = self._window
        width = min(_WIDTH, parent.width() - 40)
        row = self.fontMetrics().height() + 12
        height = min(
            self.field.sizeHint().height() + _ROWS * row + self._said.sizeHint().height() + 30,
            parent.height() - 80,
        )
        self.setGeometry(
            (parent.width() - width) // 2, min(_TOP, (parent.height() - height) // 2), width, height
        )
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)

    def texts(self) -> list[str]:
        """The listed entries, the best first."""
        return [entry.text for entry, _match in self._found.rows]

    # ------------------------------------------------------------------------- finding

    def _find(self, wanted: str) -> None:
        rows = []
        for number, entry in enumerate(self._entries):
            found = match(wanted, entry.text)
            if found is None:  # the sort counts as a word: "space heap"
                whole = match(wanted, f"{entry.text} {entry.group}")
                found = (
                    None
                    if whole is None
                    else Match(
                        whole.score - 30, tuple(p for p in whole.places if p < len(entry.text))
                    )
                )
            if found is not None:
                rows.append((self._rank(entry, found, wanted), number, entry, found))
        rows.sort(key=lambda row: row[:2])
        self._found.show([(entry, found) for _rank, _number, entry, found in rows])
        self.list.setCurrentIndex(self._found.index(0))
        many = f"{len(rows):,} of {len(self._entries):,}" if rows else "no match"
        self._said.setText(f"{many}  ·  ↑ ↓ select, Enter runs it, Esc closes")

    def _rank(self, entry: PaletteEntry, found: Match, wanted: str) -> tuple[int, int]:
        if not wanted:
            return (
                self._used.index(entry.text) if entry.text in self._used else len(self._used),
                0,
            )
        return (-found.score, 1 if entry.why_not else 0)

    # -------------------------------------------------------------------------- events

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keys that choose; the field has all others. None of them is heard as a shortcut of the window."""
        if event.type() is QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.type() is QEvent.Type.FocusOut:
            self.hide()
        elif isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            return self._key(Qt.Key(event.key()))
        return super().eventFilter(watched, event)

    def _key(self, key: Qt.Key) -> bool:
        page = max(1, self.list.viewport().height() // max(1, self.list.sizeHintForRow(0)) - 1)
        steps = {
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
        }
        if key in steps:
            self._move(steps[key])
        elif key is Qt.Key.Key_Escape:
            self._leave()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._run(self.list.currentIndex())
        else:
            return False
        return True

    def _move(self, step: int) -> None:
        rows = len(self._found.rows)
        if rows:
            now = self.list.currentIndex().row()
            row = (now + step) % rows if abs(step) == 1 else min(max(now + step, 0), rows - 1)
            self.list.setCurrentIndex(self._found.index(row))

    def _clicked(self, index: QModelIndex) -> None:
        self._run(index)

    def _run(self, index: QModelIndex) -> None:
        if not index.isValid():
            return
        entry = self._found.rows[index.row()][0]
        if entry.why_not:
            self._said.setText(f"Not now: {entry.why_not}")
            return
        self._used = [entry.text, *(text for text in self._used if text != entry.text)][:_KEPT]
        self._leave()
        entry.run()

    def _leave(self) -> None:
        self.hide()
        self._window.setFocus(Qt.FocusReason.PopupFocusReason)
