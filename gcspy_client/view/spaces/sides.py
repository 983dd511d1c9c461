"""The middle of the window: the spaces of its session and, where another is compared with it, those of that one beside them.

Knows where things stand; does not know which events belong together.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QHBoxLayout,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.compare.pairs import Alignment, EventMatching
from gcspy_client.model.palette import Theme
from gcspy_client.model.session import ClientSession
from gcspy_client.view.compare.difference_legend import DifferenceLegend
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.spaces.spaces import Spaces
from gcspy_client.view.widgets.check_box import CheckBox
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["AlignmentBar", "OtherPane", "Sides"]

_MOST = 1e9


class _Head(QWidget):
    """Heading of a side: its letter, its target, and the displayed event."""

    def __init__(self, letter: str) -> None:
        super().__init__()
        mark = PlainLabel(letter)
        mark.setProperty("chip", "true")
        self.title, self.moment = ElidedLabel(), ElidedLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.moment.setProperty("dim", "true")
        self.moment.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(2, 0, 2, 4)
        self.row.setSpacing(8)
        self.row.addWidget(mark)
        self.row.addWidget(self.title, 3)
        self.row.addWidget(self.moment, 2)

    def say(self, title: str, event: str) -> None:
        self.title.setText(title)
        self.moment.setText(event)


class AlignmentBar(QWidget):
    """How the events of two sessions are matched, and how both are displayed.

    Signals:
        aligned: Another `Alignment` was chosen.
        paired: Tiles are to be paired otherwise: whether by place.
        difference_wanted: Whether differences are to be shown.
        closed: The other session is to be left.
    """

    aligned = Signal(object)
    paired = Signal(bool)
    difference_wanted = Signal(bool)
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.by, self.pairs = Chooser(), Chooser()
        self.offset = QDoubleSpinBox()
        self.difference = CheckBox("Difference B − A")
        self.close_button = PlainPushButton("Close B")
        for matching in EventMatching:
            self.by.add(matching.value, matching)
        set_tip(self.by, "How events of A and B are matched")
        self.by.setMinimumContentsLength(16)
        self.pairs.setMinimumContentsLength(12)
        self.pairs.add("tiles by address", False)
        self.pairs.add("tiles by place", True)
        set_tip(
            self.pairs,
            "How tiles are matched; addresses of two processes are usually unrelated",
        )
        self.offset.setRange(-_MOST, _MOST)
        set_tip(self.offset, "Offset added to A's event to find B's")
        self.offset.setKeyboardTracking(False)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 0, 2, 6)
        row.setSpacing(8)
        for widget in (self.by, self.offset, self.pairs, self.difference):
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(self.close_button)
        self.by.currentIndexChanged.connect(self._chosen)
        self.offset.valueChanged.connect(self._tell)
        self.pairs.currentIndexChanged.connect(
            lambda: self.paired.emit(bool(self.pairs.currentData()))
        )
        self.difference.toggled.connect(self.difference_wanted)
        self.close_button.clicked.connect(self.closed)
        self._dress()

    @property
    def alignment(self) -> Alignment:
        """The choice."""
        matching = EventMatching(self.by.currentData())
        plain = Alignment(matching)
        return Alignment(matching, round(self.offset.value() * (1e9 if plain.by_time else 1)))

    def _dress(self) -> None:
        """The offset in seconds or events."""
        by_time = Alignment(EventMatching(self.by.currentData())).by_time
        self.offset.setDecimals(3 if by_time else 0)
        self.offset.setSingleStep(0.1 if by_time else 1)
        self.offset.setPrefix("offset ")
        by_program = self.by.currentData() == EventMatching.PROGRAM
        self.offset.setSuffix(" s" if by_time else "" if by_program else " events")

    def _chosen(self) -> None:
        self.offset.blockSignals(True)
        self.offset.setValue(0)
        self.offset.blockSignals(False)
        self._dress()
        self._tell()

    def _tell(self) -> None:
        self.aligned.emit(self.alignment)

    def choose_pairing(self, *, by_place: bool) -> None:
        """Choose how tiles are paired, without a signal."""
        self.pairs.blockSignals(True)
        self.pairs.setCurrentIndex(int(by_place))
        self.pairs.blockSignals(False)


class OtherPane(QWidget):
    """The other session's side.

    Args:
        session: The other one.
        theme: The theme of its colours.
    """

    def __init__(self, session: ClientSession, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.head = _Head("B")
        self.spaces = Spaces(session, theme)
        self.legend = DifferenceLegend(brief=True)
        policy = self.legend.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # both maps keep their places when it comes
        self.legend.setSizePolicy(policy)
        self.legend.hide()
        self.words = PlainLabel("opening…")
        self.words.setProperty("dim", "true")
        self.words.setWordWrap(True)
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.words)
        self._stack.addWidget(self.spaces)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.legend)
        column.addWidget(self._stack, 1)

    def say(self, why_not: str) -> None:
        """Show the spaces, or why there is nothing to see."""
        self.words.setText(why_not)
        self._stack.setCurrentIndex(0 if why_not else 1)

    @property
    def why_not(self) -> str:
        """Why there is nothing to see; empty where there is."""
        return self.words.text() if self._stack.currentIndex() == 0 else ""


class Sides(QWidget):
    """Both sides, or the one.

    Args:
        spaces: Those of the window's session.
    """

    def __init__(self, spaces: Spaces, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar = AlignmentBar()
        self.head = _Head("A")
        self.other: OtherPane | None = None
        self._spaces = spaces
        self._least = 0
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setChildrenCollapsible(False)
        self._level = QWidget()  # as high as the legend at the other side: the maps stand level
        self._level.hide()
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self._level)
        column.addWidget(spaces, 1)
        self._splitter.addWidget(left)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.bar)
        whole.addWidget(self._splitter, 1)
        self.bar.hide()
        self.head.hide()

    def use_whole_height(self, pixels: int) -> None:
        """Give the active space half of the height that tiles and panels below them have together."""
        self._least = pixels // 2
        self._share()

    def _share(self) -> None:
        for spaces in (self._spaces, *(() if self.other is None else (self.other.spaces,))):
            spaces.use_least(self._least)

    def show_other(self, pane: OtherPane | None) -> None:
        """Put a session beside the other, or take it away."""
        if self.other is not None:
            self.other.setParent(None)
            self.other.deleteLater()
        self.other = pane
        self.bar.setVisible(pane is not None)
        self.head.setVisible(pane is not None)
        self._level.setVisible(pane is not None)
        if pane is not None:
            self._splitter.addWidget(pane)
            self._level.setFixedHeight(pane.legend.sizeHint().height())
            half = self._splitter.width() // 2
            self._splitter.setSizes([half, half])
            self._share()
