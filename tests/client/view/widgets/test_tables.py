"""Cells of small tables: what has no room is displayed in its shorter form, and not cut off."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.tables import Cell, RowsModel, RowTable


@pytest.mark.parametrize(("width", "shown"), [(300, "1,234,567,890 bytes"), (76, "1.15 GiB")])
def test_a_cell_without_room_displays_its_shorter_text(
    qtbot: QtBot, width: int, shown: str
) -> None:
    model = RowsModel(("Stream", "Selected"), (1,), tokens(Theme.DARK))
    table = RowTable(model, most_rows=4)
    qtbot.addWidget(table)
    full = "1,234,567,890 bytes"
    model.set_rows([(Cell("Used"), Cell(full, full, brief="1.15 GiB"))])
    option = QStyleOptionViewItem()
    option.rect = QRect(0, 0, width, 20)
    option.fontMetrics = table.fontMetrics()
    delegate = table.itemDelegate()
    assert isinstance(delegate, QStyledItemDelegate)
    delegate.initStyleOption(option, model.index(0, 1))
    assert option.text == shown
