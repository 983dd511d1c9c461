"""A space as a table: a row for each tile, a column for each stream, sorted by any of them.

Cells are formatted when they become visible; sorting and copying are done in threads. Values are
updated in place as events arrive; a sorted table is sorted again a few times a second, and keeps
its scroll position.

Knows tables and tiles; does not know sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gcspy_protocol.interpreter import EventChange, SpaceState
from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QBrush, QColor, QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.codes import used
from gcspy_client.model.latest_worker import LatestWorker
from gcspy_client.model.palette import Theme
from gcspy_client.model.row_text import rows_as_text
from gcspy_client.model.spaces.tile_table import SortedRows, TileTable
from gcspy_client.model.text import UNKNOWN_TEXT
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import SpaceViewState
from gcspy_client.view.plain.items import PlainTableModel
from gcspy_client.view.plain.text import copy_text
from gcspy_client.view.spaces.space_view import SpaceView
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.columns import alignment, heading
from gcspy_client.view.widgets.row_copy import RowCopy
from gcspy_client.view.widgets.table_setup import set_up_table

__all__ = ["TableModel", "TableView"]

_Index = QModelIndex | QPersistentModelIndex

_SORT_MILLIS = 250
_MOST_COPIED = 100_000
"""Rows: more is no table that anybody pastes, and would take minutes to word."""

_SETTLE_SECS = 10.0
_END_SECS = 0.02
_SAMPLE = 40
"""Rows that are examined for the width of a column."""

_WIDEST = 320


class TableModel(PlainTableModel):
    """The rows, as Qt asks for them.

    Signals:
        sorted_anew: The order of the rows changed.

    Args:
        table: The rows.
        theme: The theme of its colours.
    """

    sorted_anew = Signal()
    _worked_out = Signal()

    def __init__(self, table: TileTable, theme: Theme) -> None:
        super().__init__()
        self.table = table
        self._theme = theme
        self._sorter: LatestWorker[SortedRows] = LatestWorker(
            "gcspy table sorter", self._worked_out.emit
        )
        self._worked_out.connect(self._take)

    @property
    def sorting(self) -> bool:
        """Whether it is being sorted."""
        return not self._sorter.idle

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of another theme."""
        self._theme = theme

    def use(self, table: TileTable) -> None:
        """Show another table."""
        self.beginResetModel()
        self.table = table
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column, in a thread; -1 is the order of the space."""
        if column < 0:
            self.layoutAboutToBeChanged.emit()
            self.table.unsort()
            self.layoutChanged.emit()
            self.sorted_anew.emit()
            return
        self.table.sorted_by = column, order is Qt.SortOrder.DescendingOrder
        self.sort_again()

    def sort_again(self) -> None:
        """Sort by the values of now, where it is sorted."""
        sorting = self.table.sorting()
        if sorting is not None:
            self._sorter.submit(sorting.run)

    def _take(self) -> None:
        outcome = self._sorter.take()
        if outcome is None:
            return
        done = outcome.result()
        if self.table.space.count != done.count:
            self.sort_again()
            return
        self.layoutAboutToBeChanged.emit()
        taken = self.table.take(done)
        self.layoutChanged.emit()
        if taken:
            self.sorted_anew.emit()

    def settle(self) -> None:
        """Wait until it is sorted."""
        self._sorter.settle(_SETTLE_SECS)

    def stop(self) -> None:
        """Sort no more."""
        self._sorter.stop()
        self._sorter.join(_END_SECS)

    def rowCount(self, parent: _Index | None = None) -> int:
        """Tiles."""
        return 0 if parent is not None and parent.isValid() else len(self.table)

    def columnCount(self, parent: _Index | None = None) -> int:
        """The tile and its streams."""
        return 0 if parent is not None and parent.isValid() else 1 + len(self.table.sources)

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        """Names of the streams."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        schema = self.table.sources[section - 1].schema if section else None
        about = "" if schema is None else schema.description or schema.name
        return heading(self.table.columns[section], role, about=about, right=section > 0)

    def cell_data(self, index: _Index, role: int) -> object:
        """Return the data of a cell for one of Qt's roles."""
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self.table.text(index.row(), index.column())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=index.column() > 0)
        if role in (Qt.ItemDataRole.ForegroundRole, Qt.ItemDataRole.BackgroundRole):
            return self._brush(
                index.row(), index.column(), ground=role == Qt.ItemDataRole.BackgroundRole
            )
        return None

    def _brush(self, row: int, column: int, *, ground: bool) -> QBrush | None:
        """Unused is dim, unknown is hatched."""
        tile, space = self.table.tile(row), self.table.space
        if tile >= space.count:
            return None
        colours = tokens(self._theme)
        if not used(space.control.values[tile : tile + 1])[0]:
            return None if ground else QBrush(QColor(colours.dim))
        if column and self.table.text(row, column) == UNKNOWN_TEXT:
            return (
                QBrush(QColor(colours.border), Qt.BrushStyle.BDiagPattern)
                if ground
                else QBrush(QColor(colours.warning))
            )
        return None


class _Table(QTableView):
    """A table that says when the mouse leaves."""

    left = Signal()

    def leaveEvent(self, event: object) -> None:
        self.left.emit()


class _TileRowCopy(RowCopy):
    """Copies rows of tiles, which are worded in a thread.

    Args:
        table: The table; its menu is that of all tiles.
        rows: See `RowCopy`; texts are made on demand.
        writer: Makes them.
    """

    def __init__(
        self,
        table: QTableView,
        rows: Callable[[], Iterable[Sequence[str]]],
        writer: LatestWorker[str],
    ) -> None:
        super().__init__(table, rows, menu=False)
        self._writer = writer

    def copy(self, *, comma: bool = False) -> None:
        """Begin to word them; `TableView` puts them into the clipboard."""
        rows = self._rows()
        if rows != ():
            self._writer.submit(lambda: rows_as_text(rows, comma=comma))


class TableView(SpaceView):
    """A table of tiles × streams.

    Args:
        space: The space.
        sources: Its streams, and those that the user made of them: asked again when another state is shown.
        theme: The theme of its colours.
        look: How it looks first.

    Attributes:
        table: Qt's table.
        model: Its rows.
        rows_as_text: Copies the selected rows, by keys.
    """

    _worded = Signal()

    def __init__(
        self,
        space: SpaceState,
        sources: Callable[[], list[TileSource]],
        theme: Theme,
        look: SpaceViewState,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.look = look
        self._space, self._sources = space, sources
        self._tile_of_own: int | None = None
        self.model = TableModel(TileTable(space, sources()), theme)
        self.table = _Table()
        self.table.setModel(self.model)
        self._writer: LatestWorker[str] = LatestWorker("gcspy table copy", self._worded.emit)
        self.rows_as_text = _TileRowCopy(self.table, self._copied, self._writer)
        self._sort_timer = QTimer(self)
        self._sort_timer.setSingleShot(True)
        self._sort_timer.timeout.connect(self.model.sort_again)
        self._build()
        self.setFocusProxy(self.table)
        self._worded.connect(self._put)
        self.model.sorted_anew.connect(self._keep_selection)
        self.table.left.connect(lambda: self._point(QModelIndex()))
        self.table.entered.connect(self._point)
        self.table.pressed.connect(lambda _index: self.entered.emit())
        self.table.selectionModel().currentRowChanged.connect(self._row_changed)

    def _build(self) -> None:
        table = self.table
        table.setMouseTracking(True)
        table.setProperty("dense", "true")
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        set_up_table(table, table.fontMetrics().height() + 5)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        table.setSortingEnabled(True)
        self._set_widths()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(table)

    def _set_widths(self) -> None:
        metrics = self.table.horizontalHeader().fontMetrics()
        table = self.model.table
        tiles = range(0, len(table), max(1, len(table) // _SAMPLE))
        for column, name in enumerate(table.columns):
            texts = [table.text(row, column) for row in tiles]
            wide = max((metrics.horizontalAdvance(text) for text in texts), default=0) + 24
            self.table.setColumnWidth(
                column, min(_WIDEST, max(wide, metrics.horizontalAdvance(name) + 32))
            )

    # ------------------------------------------------------------------ what it shows

    def follow(self, change: EventChange) -> None:
        """Show the values of now; what is scrolled to and what is selected stay."""
        if len(self.model.table) != self._space.count:
            self._reset(
                self.model.table.refresh if self.model.table.sorted_by is None else self._refill
            )
        if self.model.table.sorted_by is not None and not self._sort_timer.isActive():
            self._sort_timer.start(_SORT_MILLIS)
        self.table.viewport().update()
        self.painted = True

    def _refill(self) -> None:
        """Have as many rows as tiles, in any order until they are sorted."""
        order, self.model.table.sorted_by = self.model.table.sorted_by, None
        self.model.table.refresh()
        self.model.table.sorted_by = order
        self.model.sort_again()

    def _reset(self, change: Callable[[], object]) -> None:
        """Change the number of rows; the first one that is seen stays so."""
        bar = self.table.verticalScrollBar()
        at, tile = bar.value(), self.selected
        self.model.beginResetModel()
        change()
        self.model.endResetModel()
        bar.setValue(at)
        self.selected = tile if tile is not None and tile < self._space.count else None
        self._keep_selection()

    def use_space(self, space: SpaceState) -> None:
        """Show another state of the space."""
        self._space = space
        before = self.model.table.sorted_by

        def change() -> None:
            self.model.table = TileTable(space, self._sources())
            self.model.table.sorted_by = before

        self._reset(change)
        self.model.sort_again()

    def show_source(self, source: TileSource) -> None:
        """Update the columns if the set of streams has changed; the painted stream does not matter here."""
        names = [one.schema for one in self.model.table.sources]
        if names != [one.schema for one in self._sources()]:
            before = self.model.table.sorted_by
            self.use_space(self._space)
            if before is not None and before[0] > len(self.model.table.sources):
                self.table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
            self._set_widths()

    def set_theme(self, theme: Theme) -> None:
        """Show for another ground."""
        self.model.set_theme(theme)
        self.table.viewport().update()

    def say(self) -> str:
        """Return the description of the sort order."""
        order = self.model.table.sorted_by
        if order is None:
            return ""
        name = self.model.table.columns[order[0]]
        return f"sorted by {name} {'↓' if order[1] else '↑'}"

    def refresh(self) -> None:
        """Names of tiles may have come."""
        self.table.viewport().update()

    def wants_names(self) -> list[tuple[int, int]]:
        """The tiles of the rows that are seen."""
        first = self.table.rowAt(0)
        last = self.table.rowAt(self.table.viewport().height() - 1)
        if first < 0:
            return []
        rows = range(first, (last if last >= 0 else len(self.model.table) - 1) + 1)
        return [(tile, tile + 1) for tile in map(self.model.table.tile, rows)]

    def settle(self) -> None:
        """Wait until it is sorted."""
        self._sort_timer.stop()
        self.model.sort_again()
        for _ in range(2):
            self.model.settle()
            QGuiApplication.sendPostedEvents(self.model, 0)

    def stop(self) -> None:
        """Sort and copy no more."""
        self._sort_timer.stop()
        self.model.stop()
        self._writer.stop()
        self._writer.join(_END_SECS)

    # ---------------------------------------------------------------------- selection

    def select(self, tile: int | None) -> None:
        """Select the row of a tile, and scroll to it unless it was chosen here."""
        moved = tile != self.selected
        self.selected = tile
        self._keep_selection()
        row = None if tile is None else self.model.table.row_of(tile)
        if moved and row is not None and tile != self._tile_of_own:
            self.table.scrollTo(
                self.model.index(row, 0), QAbstractItemView.ScrollHint.EnsureVisible
            )
        self._tile_of_own = None

    def _keep_selection(self) -> None:
        """Rows moved: the same tile stays selected, and nothing scrolls."""
        row = None if self.selected is None else self.model.table.row_of(self.selected)
        chosen = self.table.selectionModel()
        if row is not None and chosen.currentIndex().row() == row and chosen.isRowSelected(row):
            return
        chosen.blockSignals(True)
        if row is None:
            chosen.clear()
        else:
            whole = QItemSelection(
                self.model.index(row, 0), self.model.index(row, self.model.columnCount() - 1)
            )
            chosen.select(whole, QItemSelectionModel.SelectionFlag.ClearAndSelect)
            chosen.setCurrentIndex(
                self.model.index(row, 0), QItemSelectionModel.SelectionFlag.NoUpdate
            )
        chosen.blockSignals(False)
        self.table.viewport().update()
        self.changed.emit()

    def _row_changed(self, now: QModelIndex, _before: QModelIndex) -> None:
        if now.isValid():
            self._tile_of_own = self.model.table.tile(now.row())
            self.selected = self._tile_of_own
            self.picked.emit(self._tile_of_own)

    def _point(self, index: QModelIndex) -> None:
        tile = self.model.table.tile(index.row()) if index.isValid() else None
        if tile != self.under_mouse:
            self.under_mouse = tile
            self.hovered.emit(-1 if tile is None else tile)

    def row_at(self, position: QPoint) -> int:
        """The row at a place of the table's inside; -1 for none."""
        return self.table.rowAt(position.y())

    # ------------------------------------------------------------------------- copying

    def _copied(self) -> Iterable[Sequence[str]]:
        """The selected rows under the headings; nothing where none is selected."""
        selection = self.table.selectionModel().selection()
        parts = [selection.at(i) for i in range(selection.count())]
        tiles: list[int] = []
        for part in sorted(parts, key=lambda part: part.top()):
            last = min(part.bottom(), part.top() + _MOST_COPIED - len(tiles) - 1)
            tiles += [self.model.table.tile(row) for row in range(part.top(), last + 1)]
        # The texts are made from a copy: events arrive meanwhile.
        return TileTable(self._space.copy(), self._sources()).rows(tiles) if tiles else ()

    def _put(self) -> None:
        outcome = self._writer.take()
        if outcome is not None:
            copy_text(outcome.result())
