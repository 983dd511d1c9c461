"""Each widget that shows a text takes any, shows it as plain text, and stays as wide as a window can be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QStringListModel, Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QLabel, QTableWidget, QWidget
from pytestqt.qtbot import QtBot

from gcspy_client.view.plain import widgets
from gcspy_client.view.plain.items import (
    PlainListItem,
    PlainListModel,
    PlainTableItem,
    PlainTableModel,
    PlainWords,
    set_headings,
)
from gcspy_client.view.plain.widgets import (
    PlainCheckBox,
    PlainComboBox,
    PlainCompleter,
    PlainLabel,
    PlainLineEdit,
    PlainMenu,
    PlainPushButton,
    PlainRadioButton,
    PlainToolButton,
    menu_action,
    say_action,
)

TAG = '<img src="file:///x">\n& more'
PLAIN = '<img src="file:///x">\\n& more'
LONG = "w" * (1 << 20)


@pytest.mark.parametrize("make", [PlainPushButton, PlainCheckBox, PlainRadioButton, PlainLabel])
def test_a_text_is_what_it_was_in_one_line(qtbot: QtBot, make: Callable[[str], QWidget]) -> None:
    made = make(TAG)
    qtbot.addWidget(made)
    assert isinstance(made, PlainPushButton | PlainCheckBox | PlainRadioButton | PlainLabel)
    assert made.text() == PLAIN
    made.setText("other\n")
    assert made.text() == "other\\n"
    made.setText(LONG)
    assert made.minimumSizeHint().width() < 2000
    assert len(made.text()) < 5000


def test_a_small_button_too(qtbot: QtBot) -> None:
    made = PlainToolButton()
    qtbot.addWidget(made)
    made.setText(TAG)
    assert made.text() == PLAIN


def test_a_label_is_plain_and_stays_so(qtbot: QtBot) -> None:
    made = PlainLabel(TAG)
    qtbot.addWidget(made)
    assert made.textFormat() is Qt.TextFormat.PlainText
    with pytest.raises(TypeError):
        made.setTextFormat(Qt.TextFormat.RichText)
    made.setText(Lines("one", "two\nforged"))
    assert made.text() == "one\\ntwo\\nforged"
    made.setWordWrap(True)
    assert made.text() == "one\ntwo\\nforged", "it was given as lines"
    made.setText("one\ntwo")
    assert made.text() == "one\\ntwo", "it was not"


def test_a_label_that_wraps_breaks_a_long_word_that_can_be_read_back(qtbot: QtBot) -> None:
    made = PlainLabel()
    qtbot.addWidget(made)
    made.setWordWrap(True)
    word = "/a/very/long/path" * 20
    made.setText(word)
    assert made.text() == word
    assert QLabel.text(made) != word
    assert made.minimumSizeHint().width() < 400


def test_a_list_tells_by_data_not_by_words(qtbot: QtBot) -> None:
    made = PlainComboBox()
    qtbot.addWidget(made)
    made.add(TAG, 7)
    made.addItems(["a\nb"])
    made.setItemText(1, "c\nd")
    made.setItemData(0, "<b>tip</b>", Qt.ItemDataRole.ToolTipRole)
    assert [made.itemText(0), made.itemText(1), made.itemData(0)] == [PLAIN, "c\\nd", 7]
    assert not GuiQt.mightBeRichText(made.itemData(0, Qt.ItemDataRole.ToolTipRole))
    with pytest.raises(TypeError, match="use add"):
        made.addItem("x")


def test_what_is_written_into_shows_what_is_hidden(qtbot: QtBot) -> None:
    made = PlainLineEdit("a\x1bb")
    qtbot.addWidget(made)
    assert made.text() == "a\\x1bb"
    made.setText(None)
    made.setPlaceholderText("p\nq")
    assert (made.text(), made.placeholderText()) == ("", "p\\nq")
    made.setText(LONG)
    assert len(made.text()) == 1 << 16
    PlainCompleter(QStringListModel(["a"]), made)


def test_menus_take_any_text_and_are_not_as_wide(qtbot: QtBot) -> None:
    menu = PlainMenu(title="a & b")
    qtbot.addWidget(menu)
    ran = []
    action = menu.add(TAG, lambda: ran.append(1))
    inner = menu.add_menu("<b>x</b>")
    assert menu.title() == "a && b"
    assert action.text() == PLAIN.replace("&", "&&")
    action.trigger()
    assert ran == [1]
    for one in (action, inner.menuAction()):
        assert not GuiQt.mightBeRichText(one.toolTip())
    assert len(menu.add(LONG).text()) < 300
    ours = menu_action("&Level <b>\n", menu)
    assert ours.text() == "&Level <b>\\n"
    assert not GuiQt.mightBeRichText(ours.toolTip())
    say_action(ours, LONG)
    assert len(ours.text()) < 300


def test_rows_and_headers_are_plain(qtbot: QtBot) -> None:
    class Rows(PlainTableModel):
        def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NONE) -> int:
            return 1

        def columnCount(self, parent: QModelIndex | QPersistentModelIndex = _NONE) -> int:
            return 1

        def cell_data(self, index: QModelIndex | QPersistentModelIndex, role: int) -> object:
            return 3 if role == Qt.ItemDataRole.UserRole else TAG

        def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
            return TAG

    class Words(PlainListModel):
        def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NONE) -> int:
            return 1

        def cell_data(self, index: QModelIndex | QPersistentModelIndex, role: int) -> object:
            return TAG

    rows, words = Rows(), Words()
    assert rows.data(rows.index(0, 0)) == words.data(words.index(0)) == PLAIN
    assert rows.data(rows.index(0, 0), Qt.ItemDataRole.UserRole) == 3
    assert rows.headerData(0, Qt.Orientation.Horizontal) == PLAIN
    for tip in (
        rows.data(rows.index(0, 0), Qt.ItemDataRole.ToolTipRole),
        rows.headerData(0, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole),
    ):
        assert isinstance(tip, str)
        assert not GuiQt.mightBeRichText(tip)


def test_items_and_headings_are_plain(qtbot: QtBot) -> None:
    table = QTableWidget(1, 1)
    qtbot.addWidget(table)
    set_headings(table, ["a\nb"])
    heading = table.horizontalHeaderItem(0)
    assert heading is not None
    assert heading.text() == "a\\nb"
    for item in (PlainTableItem(TAG), PlainListItem(TAG)):
        assert item.text() == PLAIN
        item.setText("x\n")
        assert item.text() == "x\\n"


def test_words_that_cannot_be_typed_are_not_proposed() -> None:
    words = PlainWords()
    words.setStringList(["good", "b\nad", "b\x00d", LONG])
    assert words.stringList() == ["good"]


def test_each_widget_of_the_folder_is_tried_here() -> None:
    assert set(widgets.__all__) <= set(globals())


_NONE = QModelIndex()
