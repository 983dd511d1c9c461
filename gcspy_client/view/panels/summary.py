"""The summary of a space: the driver's totals of each stream, in full; of names one line each.

Knows summaries; does not know tiles.
"""

from __future__ import annotations

from gcspy_protocol.interpreter import SpaceState, StreamState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Presentation
from gcspy_protocol.streams.named_stream import NamedStream
from gcspy_protocol.text.visible import Lines
from PySide6.QtWidgets import QFrame, QHeaderView, QVBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.session import ordered_streams, summary_is_stale
from gcspy_client.model.text import counted_names, summary_text
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.tables import Cell, RowsModel, RowTable

__all__ = ["SummaryPanel"]

_MOST_ROWS = 16


class SummaryPanel(QFrame):
    """A table of a space's summaries.

    Args:
        theme: The theme of its colours.

    Attributes:
        rows: The rows of the table.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self._name = ElidedLabel("No space yet")
        font = self._name.font()
        font.setBold(True)
        self._name.setFont(font)
        self.rows = RowsModel(("Stream", "Whole space", "Tiles"), (1, 2), tokens(theme))
        table = RowTable(self.rows, most_rows=_MOST_ROWS)
        header = table.horizontalHeader()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 7, 10, 7)
        column.setSpacing(6)
        column.addWidget(self._name)
        column.addWidget(table)
        column.addStretch(1)

    def set_theme(self, theme: Theme) -> None:
        """Use another theme."""
        self.rows.set_colours(tokens(theme))

    def show_space(self, space: SpaceState | None, event: Event | None) -> None:
        """Show the summaries of a space.

        Args:
            space: The space; None if there is none.
            event: The event that is shown: what was gathered before is stale.
        """
        if not self.isVisible():
            return
        self._name.setText("No space yet" if space is None else space.space.name)
        rows: list[tuple[Cell, ...]] = []
        if space is not None:
            for stream in ordered_streams(space):
                rows += _rows_of(space.streams[stream.id], space.count, event)
        self.rows.set_rows(rows)


def _rows_of(state: StreamState, count: int, event: Event | None) -> list[tuple[Cell, ...]]:
    """The text about one stream; for names one row for each that occurs."""
    schema, summary = state.schema, state.summary
    name = Cell(schema.name, schema.description, bold=True)
    if summary is None or not count:
        return [(name, Cell("–", tone="dim"), Cell(""))]
    old = event is not None and summary_is_stale(state, event)
    tone = "warning" if old or not summary.covered else "text"
    whole = summary_text(schema, summary)
    covers = (
        f"{summary.covered:,}" if summary.covered == count else f"{summary.covered:,} of {count:,}"
    )
    tiles = Cell(
        covers,
        "number of tiles that the summary covers",
        tone="text" if summary.covered == count else "warning",
    )
    tip = Lines(whole, "stale: from an earlier event") if old else whole
    if schema.presentation is not Presentation.ENUM or not summary.covered:
        return [(name, Cell(f"{whole} (stale)" if old else whole, tip, tone=tone), tiles)]
    lines: list[tuple[Cell, ...]] = [(name, Cell("stale" if old else "", tip, tone=tone), tiles)]
    grows = isinstance(schema, NamedStream)
    named = (
        counted_names(schema, summary, _MOST_ROWS)
        if grows
        else list(zip(schema.enum_names, summary.values, strict=False))
    )
    for one, amount in named:
        share = f"{amount:,}  ({100 * amount / summary.covered:.1f} %)"
        lines.append((Cell(f"    {one}", tone="dim"), Cell(share, share, tone=tone), Cell("")))
    return lines
