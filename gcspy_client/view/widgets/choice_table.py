"""`ChoiceTable`: a table of which one row is chosen, and whose rows are copied.

Knows Qt's tables; does not know rows.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QTableView

from gcspy_client.view.plain.items import PlainTableModel
from gcspy_client.view.widgets.table_copy import TableCopy
from gcspy_client.view.widgets.table_setup import set_up_table

__all__ = ["ChoiceTable"]

_PADDING = 6


class ChoiceTable(QTableView):
    """The table: dense rows, one of which can be chosen, and no cell that can be edited.

    Args:
        model: Its rows.

    Attributes:
        rows_as_text: Copies rows, by keys and menu.
    """

    def __init__(self, model: PlainTableModel) -> None:
        super().__init__()
        self.setModel(model)
        self.setProperty("dense", "true")
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        set_up_table(self, self.fontMetrics().height() + _PADDING)
        self.rows_as_text = TableCopy(self)
