"""The kinds of event: how often each happened, and its event filter, to be changed here.

Active filters are listed below the table and are removed one by one, or all of one kind. The
server's filters are shown, not the requested ones: a change is visible when it is active.

Knows filters and counters; does not know who applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gcspy_protocol.model import EventFilter
from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QBrush, QColor, QFont, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QSpinBox,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.filters import ActiveFilter, FilterPart, parts_in_force, without
from gcspy_client.view.layout_guard import clear_layout
from gcspy_client.view.plain.items import PlainTableModel
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.time.lanes import kind_colour
from gcspy_client.view.widgets.flow import FlowLayout
from gcspy_client.view.widgets.tables import RowTable

__all__ = ["EventRow", "FilterPanel"]

_Index = QModelIndex | QPersistentModelIndex
_NAME, _HAPPENED, _ON, _PERIOD, _DELAY, _PAUSE = range(6)
_HEADER = ("Event", "Count", "On", "1 in", "Delay", "Pause")
_TIPS = (
    "Kind of event, in the colour of its timeline lane",
    "Number of occurrences, including filtered ones",
    "Whether it is sent; if off, it is not gathered either",
    "One in this many is sent; the others are not gathered",
    "Milliseconds to hold the target after each",
    "Whether to pause after each",
)
_MOST_PERIOD = 1_000_000_000
_MOST_DELAY = 3_600_000
_MOST_ROWS = 8
_MARK = 12.0
_NAME_MARGIN = 8
_CELL_MARGINS = 14


@dataclass(frozen=True, slots=True)
class EventRow:
    """A kind of event.

    Attributes:
        name: Its name.
        about: More about it.
        happened: How often it happened.
        filter: Its filter.
        latest: Whether the event that is shown is of this kind.
    """

    name: str
    about: str
    happened: int
    filter: EventFilter
    latest: bool


class _Model(PlainTableModel):
    """The table.

    Signals:
        requested: Another filter for a kind of event.
    """

    requested = Signal(object)

    def __init__(self, theme: Theme, now: Callable[[int], EventFilter | None]) -> None:
        super().__init__()
        self.theme = theme
        self.rows: list[EventRow] = []
        self.reason = ""
        self._now = now
        self._requests: dict[int, tuple[EventFilter | None, EventFilter]] = {}

    def _base(self, shown: EventFilter) -> EventFilter:
        """The base of a request: the previous request, while the server has not answered it; else the active filters."""
        now = self._now(shown.event)
        before = self._requests.get(shown.event)
        if before is not None and before[0] == now:
            return before[1]
        return shown if now is None else now

    def forget_requests(self) -> None:
        """They were refused."""
        self._requests.clear()

    def show_rows(self, rows: Sequence[EventRow], reason: str) -> None:
        """Show these; an unchanged cell is not touched, so that a user who is editing it can continue."""
        before, self.rows = self.rows, list(rows)
        if len(before) != len(rows) or reason != self.reason:
            self.reason = reason
            self.beginResetModel()
            self.endResetModel()
            return
        for place, (old, new) in enumerate(zip(before, rows, strict=True)):
            if (old.name, old.latest, old.happened) != (new.name, new.latest, new.happened):
                self.dataChanged.emit(self.index(place, _NAME), self.index(place, _HAPPENED))
            if old.filter != new.filter:
                self.dataChanged.emit(self.index(place, _ON), self.index(place, _PAUSE))

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of another theme."""
        self.theme = theme
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, _PAUSE))

    def rowCount(self, parent: _Index | None = None) -> int:
        """Kinds of event."""
        return len(self.rows)

    def columnCount(self, parent: _Index | None = None) -> int:
        """Columns."""
        return len(_HEADER)

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        """The header."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _HEADER[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _TIPS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def flags(self, index: _Index) -> Qt.ItemFlag:
        """The settings that this window may change."""
        flags = Qt.ItemFlag.ItemIsEnabled
        if self.reason:
            return flags
        if index.column() in (_ON, _PAUSE):
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        elif index.column() in (_PERIOD, _DELAY):
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def cell_data(self, index: _Index, role: int) -> object:
        """The text of a cell."""
        row, column = self.rows[index.row()], index.column()
        t = tokens(self.theme)
        answer: object = None
        if role == Qt.ItemDataRole.DisplayRole:
            answer = self.text_of(row, column)
        elif role == Qt.ItemDataRole.EditRole:
            answer = {_PERIOD: row.filter.period, _DELAY: row.filter.delay_millis}.get(column)
        elif role == Qt.ItemDataRole.CheckStateRole and column in (_ON, _PAUSE):
            on = row.filter.enabled if column == _ON else row.filter.pause
            answer = Qt.CheckState.Checked if on else Qt.CheckState.Unchecked
        elif role == Qt.ItemDataRole.ToolTipRole:
            answer = row.about or row.name if column < _ON else self.reason or _TIPS[column]
        elif role == Qt.ItemDataRole.DecorationRole and column == _NAME:
            answer = kind_colour(index.row(), len(self.rows), self.theme)
        elif role == Qt.ItemDataRole.TextAlignmentRole:
            answer = _alignment(column)
        elif role == Qt.ItemDataRole.ForegroundRole:
            answer = QBrush(QColor(self._ink(row, column, t.text, t.dim, t.accent, t.warning)))
        elif role == Qt.ItemDataRole.FontRole and row.latest and column == _NAME:
            answer = QFont()
            answer.setBold(True)
        return answer

    @staticmethod
    def text_of(row: EventRow, column: int) -> str | None:
        """Return the text of a cell; None: it has a mark."""
        one = row.filter
        return {
            _NAME: row.name,
            _HAPPENED: f"{row.happened:,}",
            _PERIOD: f"{one.period:,}",
            _DELAY: f"{one.delay_millis:,} ms" if one.delay_millis else "–",
        }.get(column)

    @staticmethod
    def _ink(row: EventRow, column: int, text: str, dim: str, accent: str, warning: str) -> str:
        if column == _NAME:
            return accent if row.latest else text
        in_force = {_PERIOD: row.filter.period > 1, _DELAY: row.filter.delay_millis > 0}
        if column in in_force:
            return warning if in_force[column] else dim
        return text

    def setData(self, index: _Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Request another filter; the display changes when the server sends it."""
        one = self._base(self.rows[index.row()].filter)
        column = index.column()
        if role == Qt.ItemDataRole.CheckStateRole:
            on = Qt.CheckState(value) is Qt.CheckState.Checked
            requested = replace(one, enabled=on) if column == _ON else replace(one, pause=on)
        elif isinstance(value, int):
            requested = (
                replace(one, period=value)
                if column == _PERIOD
                else replace(one, delay_millis=value)
            )
        else:
            return False
        if requested != one:
            self._requests[one.event] = self._now(one.event), requested
            self.requested.emit(requested)
        return True


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignLeft if column == _NAME else Qt.AlignmentFlag.AlignRight
    if column in (_ON, _PAUSE):
        side = Qt.AlignmentFlag.AlignHCenter
    return side | Qt.AlignmentFlag.AlignVCenter


class _Checks(QStyledItemDelegate):
    """Marks in the middle of their cells, which are pressed anywhere."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Draw the mark: filled for on, open for off, pale where it cannot be changed."""
        model = index.model()
        t = tokens(model.theme if isinstance(model, _Model) else Theme.DARK)
        on = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)) is Qt.CheckState.Checked
        may = bool(index.flags() & Qt.ItemFlag.ItemIsUserCheckable)
        colour = QColor((t.accent if on else t.dim) if may else t.border)
        where = QRectF(0, 0, _MARK, _MARK)
        where.moveCenter(QRectF(option.rect).center())
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colour, 1.4))
        painter.setBrush(colour if on else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(where, 3, 3)
        if on:
            painter.setPen(
                QPen(QColor(t.on_accent if may else t.dim), 1.8, c=Qt.PenCapStyle.RoundCap)
            )
            left, top = where.left(), where.top()
            painter.drawPolyline(
                [
                    QPointF(left + 3, top + 6.4),
                    QPointF(left + 5.4, top + 8.8),
                    QPointF(left + 9.2, top + 3.8),
                ]
            )
        painter.restore()

    def editorEvent(
        self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: _Index
    ) -> bool:
        """Turn it over when the cell is pressed."""
        if (
            event.type() is not QEvent.Type.MouseButtonRelease
            or not index.flags() & Qt.ItemFlag.ItemIsUserCheckable
        ):
            return False
        on = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)) is Qt.CheckState.Checked
        return model.setData(
            index,
            Qt.CheckState.Unchecked if on else Qt.CheckState.Checked,
            Qt.ItemDataRole.CheckStateRole,
        )


class _Names(QStyledItemDelegate):
    """Shortens a name where that leaves what tells it from others: names of phases begin alike, others differ at both ends."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: _Index) -> None:
        """Where there is no room, "Full: mark ends" is "Full: mark" and cut from the left; "Collection begins" is cut in the middle."""
        super().initStyleOption(option, index)
        phase = ": " in option.text
        room = option.rect.width() - option.decorationSize.width() - 3 * _NAME_MARGIN
        if phase and option.fontMetrics.horizontalAdvance(option.text) > room:
            option.text = option.text.removesuffix(" ends")  # as all phases do
        option.textElideMode = Qt.TextElideMode.ElideLeft if phase else Qt.TextElideMode.ElideMiddle


class _Numbers(QStyledItemDelegate):
    """Lets users write periods and delays."""

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        """A box with arrows."""
        box = QSpinBox(parent)
        box.setRange(*((1, _MOST_PERIOD) if index.column() == _PERIOD else (0, _MOST_DELAY)))
        box.setFrame(False)
        box.setButtonSymbols(QSpinBox.ButtonSymbols.NoButtons)
        box.setProperty("cell", "true")
        return box

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        """Begin with the active filters."""
        if isinstance(editor, QSpinBox):
            editor.setValue(int(index.data(Qt.ItemDataRole.EditRole)))
            editor.selectAll()

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: _Index) -> None:
        """Request for what was written."""
        if isinstance(editor, QSpinBox):
            editor.interpretText()
            model.setData(index, editor.value(), Qt.ItemDataRole.EditRole)


class FilterPanel(QFrame):
    """Table, and active filters.

    Signals:
        requested: Filters that the user wants for: a tuple of `EventFilter`.
        height_changed: Other filters are listed, which need more room, or less.

    Args:
        theme: The theme of its colours.
        now: The filter of a kind of event that is in force; the table follows a moment later.
    """

    requested = Signal(object)
    height_changed = Signal()

    def __init__(
        self, theme: Theme, now: Callable[[int], EventFilter | None], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._filters: dict[int, EventFilter] = {}
        self._shown: tuple[object, ...] = ()
        self.setProperty("card", "true")
        self.model = _Model(theme, now)
        self.model.requested.connect(lambda one: self.requested.emit((one,)))
        self.table = RowTable(self.model, most_rows=_MOST_ROWS, row_padding=7)
        self._numbers = _Numbers(self)
        self._checks = _Checks(self)
        for place in (_ON, _PAUSE):
            self.table.setItemDelegateForColumn(place, self._checks)
        for place in (_PERIOD, _DELAY):
            self.table.setItemDelegateForColumn(place, self._numbers)
        self._names = _Names(self.table)
        self._chips = QWidget()
        self._flow = FlowLayout()
        self._chips.setLayout(self._flow)
        self._dress_table()
        inside = QVBoxLayout(self)
        inside.setContentsMargins(12, 9, 12, 9)
        inside.setSpacing(7)
        inside.addWidget(self.table)
        inside.addWidget(self._chips)

    def _dress_table(self) -> None:
        table = self.table
        table.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        table.setEditTriggers(
            QAbstractItemView.EditTrigger.CurrentChanged
            | QAbstractItemView.EditTrigger.SelectedClicked
            | QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
        )
        table.setIconSize(QSize(8, 8))
        table.setItemDelegateForColumn(_NAME, self._names)
        table.setProperty("dense", "true")
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(_NAME, QHeaderView.ResizeMode.Stretch)
        self._widen()

    def _widen(self) -> None:
        """Give each column what its widest text needs in this font; the names get the rest."""
        measure = self.table.fontMetrics().horizontalAdvance
        texts = {column: [_HEADER[column]] for column in range(_HAPPENED, len(_HEADER))}
        if rows := self.model.rows:  # the greatest number is the longest
            for column, longest in (
                (_HAPPENED, max(rows, key=lambda row: row.happened)),
                (_PERIOD, max(rows, key=lambda row: row.filter.period)),
                (_DELAY, max(rows, key=lambda row: row.filter.delay_millis)),
            ):
                texts[column].append(self.model.text_of(longest, column) or "")
        for column, several in texts.items():
            self.table.setColumnWidth(column, max(map(measure, several)) + _CELL_MARGINS)

    def changeEvent(self, event: QEvent) -> None:
        """Measure again in another font."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._widen()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of another theme."""
        self.model.set_theme(theme)

    def show_events(self, rows: Sequence[EventRow], reason: str) -> None:
        """Update all texts.

        Args:
            rows: The kinds of event, in the order of their ids.
            reason: Why this window may not change filters; empty when it may.
        """
        self._filters = {row.filter.event: row.filter for row in rows}
        self.model.show_rows(rows, reason)
        self._widen()
        names = {row.filter.event: row.name for row in rows}
        shown = (tuple(self._filters.values()), tuple(names.values()), reason)
        if shown != self._shown:
            self._shown = shown
            self._make_chips(names, reason)

    def _make_chips(self, names: dict[int, str], reason: str) -> None:
        clear_layout(self._flow)
        in_force = parts_in_force(self._filters.values())
        for one in in_force:
            self._add_chip(
                f"{names[one.event]}: {one.words}  ✕",
                "Remove this filter",
                reason,
                partial(self._remove, one),
            )
        sorts = [part for part in FilterPart if sum(one.part is part for one in in_force) > 1]
        for part in sorts:
            self._add_chip(
                part.value,
                "Remove all filters of this sort",
                reason,
                partial(self.remove_all, part),
                plain=True,
            )
        self._chips.setVisible(bool(in_force))
        self._chips.updateGeometry()
        self.height_changed.emit()

    def _add_chip(
        self, text: str, tip: str, reason: str, press: object, *, plain: bool = False
    ) -> None:
        chip = PlainPushButton(text)
        chip.setProperty("chip", "plain" if plain else "filter")
        chip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        chip.setEnabled(not reason)
        set_tip(chip, reason or tip)
        chip.clicked.connect(press)
        self._flow.addWidget(chip)

    def _remove(self, one: ActiveFilter, _checked: bool = False) -> None:
        self.requested.emit(without(self._filters, one.part, (one.event,)))

    def remove_all(self, part: FilterPart, _checked: bool = False) -> None:
        """Request that a part of filters is in force for no kind of event."""
        requested = without(self._filters, part)
        if requested:
            self.requested.emit(requested)

    def in_force(self, part: FilterPart) -> bool:
        """Whether a part is in force for any kind of event."""
        return any(one.part is part for one in parts_in_force(self._filters.values()))
