"""The panel "Who holds it": a tree of holders under a line with the subject, the age, and the possible actions.

Knows its widgets; sends no questions.
"""

from __future__ import annotations

from gcspy_protocol.details import DetailTable
from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.holder_tree import HolderNode, holder_tree
from gcspy_client.view.holders.tree import HolderTree
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.check_box import CheckBox
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["HolderPanel"]


class HolderPanel(QWidget):
    """The panel.

    Signals:
        opened: It became visible.
        closed: It was hidden.
        asked: The question is to be sent again.
        chosen: The tile of a row is to be shown; its `HolderNode`.

    Args:
        theme: The theme of its colours.

    Attributes:
        tree: The answer.
    """

    opened = Signal()
    closed = Signal()
    asked = Signal()
    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: DetailTable | None = None
        self.title, self.when = ElidedLabel(), PlainLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.when.setProperty("dim", "true")
        self.held = CheckBox("Stop the process during the copy")
        set_tip(
            self.held,
            "Stop all threads while the memory is copied, 0.1 to 0.2 s for 100 MB: the answer is then exact",
        )
        self.ask, self.to_tile = PlainPushButton("Ask again"), PlainPushButton("Show tile")
        self.copy = PlainPushButton("Copy")
        set_tip(self.ask, "Copy the memory of the process again, and follow all references in it")
        set_tip(self.to_tile, "Select the tile in which the holder of this row is (Enter)")
        set_tip(self.copy, "Copy the rows with their whole paths as text; right-click for CSV")
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.title, 1)
        for widget in (self.when, self.held, self.ask, self.to_tile, self.copy):
            head.addWidget(widget)
            if widget is not self.when:
                widget.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.note = ElidedLabel()
        self.tree = HolderTree(tokens(theme))
        self.empty = PlainLabel()
        self.empty.setProperty("dim", "true")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.empty)
        self._pages.addWidget(self.tree)
        self._pages.setMinimumHeight(6 * self.fontMetrics().height())
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self.note)
        column.addWidget(self._pages, 1)
        self.ask.clicked.connect(self.asked)
        self.to_tile.clicked.connect(self._choose_current)
        self.copy.clicked.connect(self.tree.copy_text)
        self.tree.activated.connect(self._choose)

    def showEvent(self, event: QShowEvent) -> None:
        """Its content was not updated while it was closed."""
        super().showEvent(event)
        self.opened.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        """Its age need not be updated any more."""
        super().hideEvent(event)
        self.closed.emit()

    def set_theme(self, theme: Theme) -> None:
        """Use another theme."""
        self.tree.set_colours(tokens(theme))

    @property
    def said(self) -> str:
        """Why there is no tree; empty where there is one."""
        return self.empty.text() if self._pages.currentIndex() == 0 else ""

    def head(self, title: str, when: str, *, note: str = "", failed: bool = False) -> None:
        """Set the heading.

        Args:
            title: The question.
            when: How old the answer is, or how far the next one.
            note: Further remarks.
            failed: Whether that is why there is no newer answer.
        """
        self.title.setText(title)
        self.when.setText(when)
        self.note.setText(note)
        self.note.setVisible(bool(note))
        tone = "warning" if failed else None
        if self.note.property("tone") != tone:
            self.note.setProperty("tone", tone)
            self.note.setProperty("dim", None if failed else "true")
            self.note.style().unpolish(self.note)
            self.note.style().polish(self.note)

    def offer(self, *, ask: str, can_ask: bool) -> None:
        """Say what the button for asking does."""
        self.ask.setText(ask)
        self.ask.setEnabled(can_ask)

    def say(self, why: str) -> None:
        """Say why there is no tree."""
        self.empty.setText(why)
        self._pages.setCurrentIndex(0)
        self.copy.setEnabled(False)
        self.to_tile.setEnabled(False)

    def tell(self, table: DetailTable) -> None:
        """Show an answer; the same one again leaves expanded and selected rows unchanged."""
        if table is not self._shown:
            self._shown = table
            self.tree.show_tree(table.columns, holder_tree(table))
        self._pages.setCurrentIndex(1)
        self.copy.setEnabled(True)
        self.to_tile.setEnabled(True)

    def _choose(self, index: QModelIndex) -> None:
        self._choose_node(self.tree.node_of(index))

    def _choose_current(self) -> None:
        self._choose_node(self.tree.current())

    def _choose_node(self, node: HolderNode | None) -> None:
        if node is not None:
            self.chosen.emit(node)
