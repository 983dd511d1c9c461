"""The panel that says what grew: types by growth since an earlier event, each with a small line of how.

By allocation site it shows a table of an answer instead.

Knows rows; does not know where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcspy_protocol.details import DetailTable
from gcspy_protocol.model import Stream
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.growth import Change, GrowthRow
from gcspy_client.model.text import short_amount
from gcspy_client.view.panels.contents import columns_of, rows_of
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.bar_table import BarCell, BarColumn, BarTable
from gcspy_client.view.widgets.check_box import CheckBox
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.table_panel import TablePanel

__all__ = ["GrowthPanel"]

_POINTS = 48


class GrowthPanel(TablePanel):
    """The growth of types.

    Signals:
        look_asked: Types are to be gathered now.
        sites_asked: Allocation sites are to be asked for now.
        turned: The user chose types, or allocation sites.

    Args:
        theme: The theme of its colours.

    Attributes:
        sites: The table of allocation sites.
        held: Whether the process is to be held while its memory is copied for them.
        note: How exact that copy is.
    """

    look_asked = Signal()
    sites_asked = Signal()
    turned = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, column=1, parent=parent)
        self.title.setText("What grew")
        self.who.show()
        self.look = PlainPushButton("Look now")
        self.look.clicked.connect(self._look)
        self.look.hide()
        self.held = CheckBox("Stop the process during the copy")
        set_tip(
            self.held,
            "Stop all threads while the memory is copied, 0.1 to 0.2 s for 100 MB, twice: the answer is then exact",
        )
        self.held.hide()
        self.view = Chooser()
        self.view.addItems(["By type", "By site", "By count"])
        set_tip(
            self.view,
            "Show the types that grew; the lines that allocated what grows; or the allocation sites that ran most, where they are counted (--count)",
        )
        self.view.currentIndexChanged.connect(self._turn)
        for widget in (self.held, self.look, self.view):
            widget.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self.head.insertWidget(self.head.indexOf(self.who), widget)
        self.sites = BarTable([BarColumn("What", right=False)], tokens(theme), column=-1)
        self.sites.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._pages.addWidget(self.sites)
        self.note = ElidedLabel()
        self.note.setProperty("dim", "true")
        self.note.hide()
        self.column.insertWidget(1, self.note)
        self._tell_look()

    @property
    def by_site(self) -> bool:
        """Whether allocation sites are shown, and not types."""
        return self.view.currentIndex() == 1

    @property
    def by_count(self) -> bool:
        """Whether allocation sites are shown by their counts, and not types."""
        return self.view.currentIndex() == 2

    def turn_to_sites(self) -> None:
        """Show allocation sites."""
        self.view.setCurrentIndex(1)

    def _turn(self) -> None:
        self.held.setVisible(self.by_site)
        self.who.setVisible(not self.by_site and not self.by_count)
        self._tell_look()
        self.turned.emit()

    def _tell_look(self) -> None:
        set_tip(
            self.look,
            "Take two samples of all memory, and name the lines that allocated what grew between them"
            if self.by_site
            else "Gather types once: the level of this session is 3 until they have come",
        )

    def _look(self) -> None:
        if self.by_site:
            self.sites_asked.emit()
        else:
            self.look_asked.emit()

    def copy_rows(self) -> None:
        """Copy the selected rows of the displayed table, or all, as text."""
        (self.sites if self.by_site else self.table).copy_text()

    def set_theme(self, theme: Theme) -> None:
        """Use another theme."""
        super().set_theme(theme)
        self.sites.set_colours(tokens(theme))

    def offer_look(self, offered: bool, *, can_ask: bool = True) -> None:
        """Have a button that gathers what is displayed, or not.

        Args:
            offered: Whether there is one.
            can_ask: Whether it can be pressed now.
        """
        self.look.setVisible(offered)
        self.look.setEnabled(can_ask)

    def show_words(self, why: str) -> None:
        """Say why there is no table."""
        self.note.hide()
        super().show_words(why)

    def say(self, why: str, title: str = "", when: str = "") -> None:
        """Say why there is no table.

        Args:
            why: The reason.
            title: Of what; empty: as before.
            when: How old that is.
        """
        if title:
            self.title.setText(title)
        self.when.setText(when)
        self.show_words(why)

    def tell_sites(self, table: DetailTable, title: str, when: str, note: str) -> None:
        """Show allocation sites.

        Args:
            table: The sites.
            title: Of what.
            when: How old they are.
            note: How exact the copy of the memory is that they are read from; empty: nothing to say.
        """
        self.title.setText(title)
        self.when.setText(when)
        self.note.setText(note)
        self.note.setVisible(bool(note))
        self.sites.show_rows(columns_of(table), rows_of(table))
        self._pages.setCurrentWidget(self.sites)
        self.copy.setEnabled(True)

    def tell(
        self, rows: Sequence[GrowthRow], measures: Sequence[Stream], title: str, when: str
    ) -> None:
        """Show what grew.

        Args:
            rows: The types.
            measures: The counts of the types.
            title: Of which space, since when.
            when: How long that is.
        """
        self.title.setText(title)
        self.when.setText(when)
        self.note.hide()
        columns = [BarColumn("Site" if self.by_count else "Type", right=False)]
        for one in measures:
            columns.append(
                BarColumn(
                    f"{one.name} grew", f"{one.description}: increase since the earlier event"
                )
            )
            columns.append(BarColumn(f"{one.name} now", one.description))
        columns.append(
            BarColumn("Over time", f"{measures[0].name} between the two events", spark=True)
        )
        tops = [
            max((abs(row.changes[i].grew or 0) for row in rows), default=0)
            for i in range(len(measures))
        ]
        self.show_rows(columns, [_row(row, measures, tops) for row in rows])


def _row(row: GrowthRow, measures: Sequence[Stream], tops: Sequence[int]) -> tuple[BarCell, ...]:
    cells = [BarCell(f"{row.name}  (new)" if row.new else row.name, row.name)]
    for change, measure, top in zip(row.changes, measures, tops, strict=True):
        cells.append(_grew(change, measure, top))
        now = change.now
        cells.append(
            BarCell("unknown", None, tone="dim")
            if now is None
            else BarCell(short_amount(measure, now).strip(), float(now))
        )
    return (*cells, BarCell("", None, line=_line(row.line)))


def _grew(change: Change, measure: Stream, top: int) -> BarCell:
    grew = change.grew
    if grew is None:
        return BarCell("unknown", None, tone="dim")
    sign, tone = ("+", "warning") if grew > 0 else ("−", "accent") if grew < 0 else ("", "dim")
    share = grew / top if top > 0 and grew > 0 else None
    return BarCell(f"{sign}{short_amount(measure, abs(grew)).strip()}", float(grew), share, tone)


def _line(values: Sequence[int | None]) -> tuple[float | None, ...]:
    """A line of a few points, from the least at 0 to the greatest at 1: how it went, where the column beside says how much."""
    last = len(values) - 1
    picked = (
        [values[round(place * last / (_POINTS - 1))] for place in range(_POINTS)]
        if last >= _POINTS
        else values
    )
    there = [value for value in picked if value is not None]
    low, high = min(there, default=0), max(there, default=0)
    return tuple(
        None if value is None else (value - low) / (high - low) if high > low else 0.5
        for value in picked
    )
