"""The panel that says what grew: types by growth since an earlier event, each with a small line of how.

Knows rows; does not know where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcspy_protocol.model import Stream
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.growth import Change, GrowthRow
from gcspy_client.model.text import short_amount
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.widgets.bar_table import BarCell, BarColumn
from gcspy_client.view.widgets.table_panel import TablePanel

__all__ = ["GrowthPanel"]

_POINTS = 48


class GrowthPanel(TablePanel):
    """The growth of types.

    Signals:
        look_asked: Types are to be gathered now.

    Args:
        theme: The theme of its colours.
    """

    look_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, column=1, parent=parent)
        self.title.setText("What grew")
        self.who.show()
        self.look = PlainPushButton("Look now")
        set_tip(self.look, "Gather types once: the level of this session is 3 until they have come")
        self.look.clicked.connect(self.look_asked)
        self.look.hide()
        self.head.insertWidget(self.head.indexOf(self.who), self.look)

    def offer_look(self, offered: bool) -> None:
        """Have a button for gathering types, or not."""
        self.look.setVisible(offered)

    def say(self, why: str) -> None:
        """Say why there is no table."""
        self.when.setText("")
        self.show_words(why)

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
        columns = [BarColumn("Type", right=False)]
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
