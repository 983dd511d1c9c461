"""The panel of a comparison: the compared events or sessions, and the largest changes of spaces and of tiles.

Knows comparisons and texts; does not know how states are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.compare.comparison import (
    Comparison,
    SpaceComparison,
    TopChange,
    ordered_changes,
)
from gcspy_client.model.palette import Theme
from gcspy_client.model.text import summary_short
from gcspy_client.view.plain.items import PlainTableModel
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.choice_table import ChoiceTable
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.columns import alignment, heading
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["CompareFacts", "ComparePanel"]

_Index = QModelIndex | QPersistentModelIndex
_MOST_ROWS = 200
_LEAST_ROWS = 5
_MEASURED_ROWS = 12
"""Number of rows that determine the column widths: examining all of them at each event takes longer than painting the tiles."""
_NARROWEST, _LEAST_NAME, _WIDEST = 32, 90, 132
_BOTH = 1500
"""From this width on both tables are seen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareFacts:
    """The text above the tables.

    Attributes:
        left: Description of A; empty: there is none.
        right: The name of B.
        apart: How far they are apart.
        may_go: Whether one can go to A.
        can_set: Whether the displayed event can be set as A.
        note: The parts that could not be compared, and the reason.
    """

    left: str = ""
    right: str = ""
    apart: str = ""
    may_go: bool = False
    can_set: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of a table: its title, what stands in it, and what it is sorted by."""

    title: str
    text: Callable[[object], str]
    key: Callable[[object], float | str]
    right: bool = True
    tip: Callable[[object], str] | None = None


class _Rows(PlainTableModel):
    """Rows of a table that is sorted by any of its columns; the sorting stays while rows are replaced."""

    def __init__(self, columns: Sequence[_Column]) -> None:
        super().__init__()
        self._columns = columns
        self._rows: list[object] = []
        self._by: tuple[int, bool] | None = None
        self.colour: Callable[[object, int], str | None] = lambda _row, _column: None

    def set_rows(self, rows: Sequence[object]) -> None:
        """Show other rows."""
        rows = self._sorted(list(rows))
        if len(rows) == len(self._rows):
            self._rows = rows
            if rows:
                self.dataChanged.emit(
                    self.index(0, 0), self.index(len(rows) - 1, len(self._columns) - 1)
                )
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, number: int) -> object:
        """One row."""
        return self._rows[number]

    def _sorted(self, rows: list[object]) -> list[object]:
        if self._by is None:
            return rows
        column, down = self._by
        key = self._columns[column].key

        def place(row: object) -> tuple[bool, float | str]:
            value = key(row)
            unknown = isinstance(value, float) and math.isnan(value)
            return (not unknown if down else unknown), 0.0 if unknown else value

        return sorted(rows, key=place, reverse=down)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; what is not known comes last."""
        self._by = (column, order is Qt.SortOrder.DescendingOrder) if column >= 0 else None
        self.layoutAboutToBeChanged.emit()
        self._rows = self._sorted(self._rows)
        self.layoutChanged.emit()

    def rowCount(self, parent: _Index | None = None) -> int:
        """Rows."""
        return len(self._rows)

    def columnCount(self, parent: _Index | None = None) -> int:
        """Columns."""
        return len(self._columns)

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        """Titles."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        return heading(self._columns[section].title, role, right=self._columns[section].right)

    def cell_data(self, index: _Index, role: int) -> object:
        """The text of a cell."""
        row, column = self._rows[index.row()], self._columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return (column.tip or column.text)(row)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=column.right)
        if role == Qt.ItemDataRole.ForegroundRole:
            colour = self.colour(row, index.column())
            return None if colour is None else QBrush(QColor(colour))
        return None


def _tile(row: object) -> TopChange:
    assert isinstance(row, TopChange)
    return row


def _space(row: object) -> SpaceComparison:
    assert isinstance(row, SpaceComparison)
    return row


def _whole(row: object, *, left: bool) -> str:
    """The driver's summary of the whole stream, on one side."""
    source = _space(row).source
    space, numbers = (source.left, source.source) if left else (source.right, source.other)
    stream = space.streams.get(numbers.schema.id)
    return "–" if stream is None else summary_short(stream.schema, stream.summary)


def _tile_columns(names: Callable[[int], str]) -> list[_Column]:
    return [
        _Column(
            "Space",
            lambda row: names(_tile(row).space),
            lambda row: names(_tile(row).space),
            right=False,
        ),
        _Column(
            "Tile", lambda row: _tile(row).name, lambda row: float(_tile(row).key), right=False
        ),
        _Column("A", lambda row: _tile(row).left, lambda row: _tile(row).left_number),
        _Column("B", lambda row: _tile(row).right, lambda row: _tile(row).right_number),
        _Column("B − A", lambda row: _tile(row).more, lambda row: _tile(row).size),
    ]


_SPACE_COLUMNS = [
    _Column(
        "Space",
        lambda row: _space(row).space.space.name,
        lambda row: _space(row).space.space.name,
        right=False,
    ),
    _Column("Whole A", lambda row: _whole(row, left=True), lambda row: _whole(row, left=True)),
    _Column("Whole B", lambda row: _whole(row, left=False), lambda row: _whole(row, left=False)),
    _Column(
        "Tiles, net",
        lambda row: _space(row).net_short or "–",
        lambda row: float(_space(row).summary.net),
        tip=lambda row: _space(row).net or "names can only be equal or different",
    ),
    _Column(
        "More", lambda row: f"{_space(row).summary.up:,}", lambda row: float(_space(row).summary.up)
    ),
    _Column(
        "Less",
        lambda row: f"{_space(row).summary.down:,}",
        lambda row: float(_space(row).summary.down),
    ),
    _Column(
        "Came",
        lambda row: f"{_space(row).summary.only_right:,}",
        lambda row: float(_space(row).summary.only_right),
    ),
    _Column(
        "Went",
        lambda row: f"{_space(row).summary.only_left:,}",
        lambda row: float(_space(row).summary.only_left),
    ),
    _Column(
        "Unknown",
        lambda row: f"{_space(row).summary.unknown:,}",
        lambda row: float(_space(row).summary.unknown),
    ),
]


class ComparePanel(QWidget):
    """The compared sides, and the greatest changes.

    Signals:
        set_asked: Set the displayed event as A.
        go_asked: Show A.
        swap_asked: Let A and B change places.
        leave_asked: Leave the comparison.
        tile_asked: Id of a space and key of a tile that was clicked.
        space_asked: Id of a space that was clicked.

    Args:
        theme: The theme of its colours.
    """

    set_asked = Signal()
    go_asked = Signal()
    swap_asked = Signal()
    leave_asked = Signal()
    tile_asked = Signal(int, object)
    space_asked = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._names: dict[int, str] = {}
        self._comparison: Comparison | None = None
        self._active: int | None = None
        self.left, self.right, self.note = ElidedLabel(), ElidedLabel(), ElidedLabel()
        self.apart = PlainLabel()
        self.set_a = PlainPushButton("Set as A")
        self.go = PlainPushButton("Go to A")
        self.swap = PlainPushButton("Swap")
        self.leave = PlainPushButton("Leave")
        self.tiles = _Rows(_tile_columns(lambda number: self._names.get(number, "")))
        self.spaces = _Rows(_SPACE_COLUMNS)
        self.tile_table, self.space_table = self._table(self.tiles), self._table(self.spaces)
        self._pages = QStackedWidget()
        self.which = Chooser()
        self._build()
        self._wire()
        self.show_facts(CompareFacts())

    def _table(self, model: _Rows) -> ChoiceTable:
        table = ChoiceTable(model)
        table.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        header = table.horizontalHeader()
        header.setSortIndicator(-1, Qt.SortOrder.DescendingOrder)
        table.setSortingEnabled(True)
        header.setResizeContentsPrecision(_MEASURED_ROWS)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setMinimumSectionSize(_NARROWEST)
        return table

    def _fit(self) -> None:
        """Each column as wide as it needs, and one of each table takes the rest."""
        for table, stretch in ((self.tile_table, 1), (self.space_table, 0)):
            header, columns = table.horizontalHeader(), table.model().columnCount()
            widths = [
                max(min(table.sizeHintForColumn(i), _WIDEST), header.sectionSizeHint(i)) + 4
                for i in range(columns)
            ]
            room = table.width() - table.verticalScrollBar().sizeHint().width() - 2
            left = room - sum(widths) + widths[stretch]
            for column, width in enumerate(widths):
                header.resizeSection(column, max(_LEAST_NAME, left) if column == stretch else width)

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        for letter, label in (("A", self.left), ("B", self.right)):
            mark = PlainLabel(letter)
            mark.setProperty("chip", "true")
            head.addWidget(mark)
            head.addWidget(label, 1)
        self.apart.setProperty("dim", "true")
        head.addWidget(self.apart)
        self.which.addItems(["Tiles", "Spaces"])
        self.which.setMaximumWidth(96)
        set_tip(self.which, "Contents of the list; both if there is space")
        head.addWidget(self.which)
        for button in (self.set_a, self.go, self.swap, self.leave):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            head.addWidget(button)
        self.note.setProperty("tone", "warning")
        empty = PlainLabel(
            Lines(
                "No comparison.",
                "Show an event and press A to set it as A; then go to another event: the tiles show increases (orange) and decreases (blue).",
            )
        )
        empty.setProperty("dim", "true")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        empty.setWordWrap(True)
        tables = QWidget()
        row = QHBoxLayout(tables)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(16)
        row.addWidget(self.space_table, 6)
        row.addWidget(self.tile_table, 5)
        self._pages.setMinimumHeight(
            _LEAST_ROWS * self.tile_table.verticalHeader().defaultSectionSize()
        )
        self._pages.addWidget(empty)
        self._pages.addWidget(tables)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self.note)
        column.addWidget(self._pages, 1)
        set_tip(self.set_a, "Set the current event as A (A)")
        set_tip(self.go, "Show event A")
        set_tip(self.swap, "Show event A, compared with the current event")
        set_tip(self.leave, "Show plain values again (Esc)")

    def _wire(self) -> None:
        self.set_a.clicked.connect(self.set_asked)
        self.go.clicked.connect(self.go_asked)
        self.swap.clicked.connect(self.swap_asked)
        self.leave.clicked.connect(self.leave_asked)
        self.which.currentIndexChanged.connect(self._show_tables)
        self.tile_table.clicked.connect(self._tile_clicked)
        self.space_table.clicked.connect(self._space_clicked)
        self.tiles.colour = lambda row, column: self._colour(
            _tile(row).size if column == 4 else 0.0
        )
        self.spaces.colour = lambda row, column: self._colour(
            float(_space(row).summary.net) if column == 3 else 0.0
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Both tables, where there is room for both."""
        super().resizeEvent(event)
        self._show_tables()

    def _show_tables(self) -> None:
        both = self.width() >= _BOTH
        self.which.setHidden(both)
        self.tile_table.setVisible(both or self.which.currentIndex() == 0)
        self.space_table.setVisible(both or self.which.currentIndex() == 1)
        self._fit()

    def _colour(self, more: float) -> str | None:
        """More in the warm colour, less in the cool one, as on the tiles."""
        t = tokens(self._theme)
        return t.warning if more > 0 else t.accent if more < 0 else None

    def set_theme(self, theme: Theme) -> None:
        """Show for another ground."""
        self._theme = theme
        for model in (self.tiles, self.spaces):
            model.layoutChanged.emit()

    def show_facts(self, facts: CompareFacts) -> None:
        """Say what is compared with what."""
        on = bool(facts.left)
        self.left.setText(facts.left or "not set")
        self.right.setText(facts.right)
        self.apart.setText(facts.apart)
        self.note.setText(facts.note)
        self.note.setVisible(bool(facts.note))
        self.set_a.setEnabled(facts.can_set)
        self.go.setEnabled(facts.may_go)
        self.swap.setEnabled(facts.may_go)
        self.leave.setEnabled(on)
        self._pages.setCurrentIndex(int(on))
        if not on:
            self.show_comparison(None)

    def show_comparison(self, comparison: Comparison | None, active: int | None = None) -> None:
        """Say what changed; said again ten times a second, it is written once.

        Args:
            comparison: What changed; None: nothing is compared.
            active: Id of the active space: its largest change comes first.
        """
        if comparison is self._comparison and active == self._active:
            return
        self._comparison, self._active = comparison, active
        found = {} if comparison is None else comparison.spaces
        self._names = {number: one.space.space.name for number, one in found.items()}
        self.spaces.set_rows(list(found.values()))
        self.tiles.set_rows(ordered_changes(list(found.values()), active)[:_MOST_ROWS])
        self._fit()

    def _tile_clicked(self, index: QModelIndex) -> None:
        change = _tile(self.tiles.row(index.row()))
        self.tile_asked.emit(change.space, change.key)

    def _space_clicked(self, index: QModelIndex) -> None:
        self.space_asked.emit(_space(self.spaces.row(index.row())).space.space.id)
