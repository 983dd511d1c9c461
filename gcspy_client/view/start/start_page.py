"""The start page: the page of a window without a session, which lists what can be opened.

Processes to attach to, a recording to open, recently opened items, samples, the demonstration.
Errors are shown at the top, with their remedy, and everything can be tried again.

Knows the items that it offers; does not know how they are opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListWidget,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import Offer
from gcspy_client.model.shell.recent import Recent
from gcspy_client.view.plain.items import PlainListItem
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.start.process_list import ProcessList
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["StartPage"]

_WIDEST = 1760


class StartPage(QWidget):
    """The page.

    Signals:
        recording_asked: Open a recording: ask which.
        connect_asked: Connect to a server: ask which.
        demo_asked: Start the demonstration.
        recent_asked: A recently opened item: its `Recent`.
        offer_asked: A sample: its `Offer`.
        forget_asked: Forget recently opened items.
        cancel_asked: Cancel the start.
        back_asked: Back to the current session.

    Args:
        theme: The theme of its colours.
        processes: Whether processes can be listed and attached to here.
    """

    recording_asked = Signal()
    connect_asked = Signal()
    demo_asked = Signal()
    recent_asked = Signal(object)
    offer_asked = Signal(object)
    forget_asked = Signal()
    cancel_asked = Signal()
    back_asked = Signal()

    def __init__(self, theme: Theme, *, processes: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plays = processes
        self.processes = ProcessList(theme)
        self.processes.setVisible(processes)
        self.said = ElidedLabel()
        self.cancel = PlainPushButton("Cancel")
        self.back = PlainPushButton("Back to the session")
        self.open = PlainPushButton("Open recording…")
        self.connect_to = PlainPushButton("Connect…")
        self.demo = PlainPushButton("Demo")
        self.forget = PlainPushButton("Clear")
        self.recent = _List()
        self.samples = _List()
        self._none = PlainLabel("Recordings and servers that you open are listed here.")
        self._build()
        self._wire()
        self.say("")

    def _build(self) -> None:
        title = PlainLabel("GCspy")
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 1.7)
        font.setBold(True)
        title.setFont(font)
        about = ElidedLabel("See the heap of a running process, live.")
        about.setProperty("dim", "true")
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(title)
        head.addWidget(about, 1)
        head.addWidget(self.back)
        self._strip = QFrame()
        self._strip.setProperty("banner", "warning")
        strip = QHBoxLayout(self._strip)
        strip.setContentsMargins(12, 5, 6, 5)
        self.said.setWordWrap(True)
        strip.addWidget(self.said, 1)
        strip.addWidget(self.cancel)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(self.processes, 11)
        row.addWidget(self._side(), 5)
        inside = QWidget()
        inside.setMaximumWidth(_WIDEST)
        column = QVBoxLayout(inside)
        column.setContentsMargins(2, 4, 2, 4)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._strip)
        column.addLayout(row, 1)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addStretch(1)
        whole.addWidget(inside, 100)
        whole.addStretch(1)

    def _side(self) -> QScrollArea:
        """Make the column of all that can be opened except processes; it scrolls if the screen is too low for it."""
        set_tip(
            self.open,
            "Play a recording, or an object trace of a Java VM; files can also be dropped on the window",
        )
        set_tip(self.connect_to, "Join a served session")
        set_tip(self.demo, "Start a small web service with a leaking cache, and monitor it")
        self.open.setProperty("primary", "true")
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.connect_to, self.demo):
            buttons.addWidget(button, 1)
        recent_head = QHBoxLayout()
        recent_caption = PlainLabel("Recent")
        recent_caption.setProperty("caption", "true")
        recent_head.addWidget(recent_caption, 1)
        recent_head.addWidget(self.forget)
        self._none.setProperty("dim", "true")
        self._none.setWordWrap(True)
        self._sample_card = _card(_caption("Samples"), self.samples)
        drop = ElidedLabel("Files can be dropped anywhere on this window.")
        drop.setProperty("dim", "true")
        drop.setVisible(self._plays)
        inside = QWidget()
        side = QVBoxLayout(inside)
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(8)
        side.addWidget(_card(self.open, buttons, drop))
        side.addWidget(_card(recent_head, self._none, self.recent, stretches=True), 3)
        side.addWidget(self._sample_card, 2)
        area = _Side()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidgetResizable(True)
        area.setWidget(inside)
        return area

    def _wire(self) -> None:
        self.open.clicked.connect(self.recording_asked)
        self.connect_to.clicked.connect(self.connect_asked)
        self.demo.clicked.connect(self.demo_asked)
        self.forget.clicked.connect(self.forget_asked)
        self.cancel.clicked.connect(self.cancel_asked)
        self.back.clicked.connect(self.back_asked)
        self.recent.chosen.connect(self.recent_asked)
        self.samples.chosen.connect(self.offer_asked)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.processes.set_theme(theme)

    # --------------------------------------------------------------------- what it says

    def say(self, text: str, kind: str = "error", *, busy: bool = False) -> None:
        """Say something at the top: an ``error``, a ``warning``; an empty text says nothing.

        Args:
            busy: Whether something is being started, which can be left.
        """
        self.said.setText(text)
        self._strip.setVisible(bool(text))
        self.cancel.setVisible(busy)
        if self._strip.property("banner") != kind:
            self._strip.setProperty("banner", kind)
            self._strip.style().unpolish(self._strip)
            self._strip.style().polish(self._strip)

    def show_recent(self, recent: Sequence[Recent], pictures: Sequence[QImage | None] = ()) -> None:
        """List recently opened items; missing ones are grey.

        Args:
            recent: The items.
            pictures: A picture of each; None: there is none.
        """
        self.recent.clear()
        for one, picture in zip_longest(recent, pictures[: len(recent)]):
            gone = one.missing()
            where = "a server" if one.address else _folder_words(one.files[0].parent)
            tip = Lines(*(str(path) for path in one.files)) or one.address
            self.recent.add(
                one.name,
                "gone: it was moved or deleted" if gone else where,
                tip,
                one,
                usable=not gone,
                picture=picture,
                pictured=True,
            )
        self._none.setVisible(not recent)
        self.recent.setVisible(bool(recent))
        self.forget.setVisible(bool(recent))

    def show_samples(self, samples: Sequence[Offer]) -> None:
        """List the samples."""
        self.samples.clear()
        for one in samples:
            self.samples.add(one.title, one.about, Lines(one.about, str(one.path)), one)
        self._sample_card.setVisible(bool(samples))


class _Side(QScrollArea):
    """Scrolls upwards and downwards only: it is as wide as its content needs."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the content when it needs more or less."""
        content = self.widget()
        if event.type() is QEvent.Type.LayoutRequest and watched is content:
            self.setMinimumWidth(content.minimumSizeHint().width())
        return super().eventFilter(watched, event)


class _List(QListWidget):
    """Two lines an entry.

    Signals:
        chosen: The object behind an entry that was clicked, or on which Enter was pressed.
    """

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setMinimumHeight(self.fontMetrics().height() * 4 + 20)
        self.itemClicked.connect(self._ask)
        self.itemActivated.connect(self._ask)
        self._asked = False

    def add(
        self,
        title: str,
        about: str,
        tip: str,
        what: object,
        *,
        usable: bool = True,
        picture: QImage | None = None,
        pictured: bool = False,
    ) -> None:
        """Add an entry; `pictured`: with room for a picture, also where there is none."""
        item = PlainListItem("")
        self.addItem(item)
        item.setData(Qt.ItemDataRole.UserRole, what)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{title}: {about}")
        set_tip(item, tip)
        if not usable:
            item.setFlags(Qt.ItemFlag.NoItemFlags)
        entry = QWidget()
        entry.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        row = QHBoxLayout(entry)
        row.setContentsMargins(6, 3, 6, 3)
        row.setSpacing(10)
        if pictured:
            row.addWidget(_Picture(picture))
        column = QVBoxLayout()
        column.setSpacing(0)
        row.addLayout(column, 1)
        for text, dim in ((title, not usable), (about, True)):
            label = ElidedLabel(text)
            if dim:
                label.setProperty("dim", "true")
            column.addWidget(label)
        item.setSizeHint(QSize(0, entry.sizeHint().height()))
        self.setItemWidget(item, entry)

    def titles(self) -> list[str]:
        """Accessible texts of the listed items."""
        texts = (
            self.item(row).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(self.count())
        )
        return [str(text) for text in texts]

    def _ask(self, item: PlainListItem) -> None:
        # A click activates as well where the desktop opens things with one click: it is one request.
        if item.flags() & Qt.ItemFlag.ItemIsEnabled and not self._asked:
            self._asked = True
            try:
                self.chosen.emit(item.data(Qt.ItemDataRole.UserRole))
            finally:
                self._asked = False


class _Picture(QWidget):
    """A picture in a place of a fixed size; a frame where there is none."""

    def __init__(self, picture: QImage | None) -> None:
        super().__init__()
        self._picture = picture
        height = 3 * self.fontMetrics().height()
        self.setFixedSize(height * 16 // 9, height)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it, sharp on every screen."""
        with QPainter(self) as painter:
            if self._picture is not None:
                # Scaled here: a painter that scales to a quarter leaves out most pixels.
                sharp = self._picture.scaled(
                    self.size() * self.devicePixelRatioF(),
                    Qt.AspectRatioMode.IgnoreAspectRatio,
                    Qt.TransformationMode.SmoothTransformation,
                )
                painter.drawImage(self.rect(), sharp)
            else:
                painter.setPen(self.palette().mid().color())
                painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


def _folder_words(folder: Path) -> str:
    """A folder, shortened where it is in the user's own."""
    try:
        return str(Path("~") / folder.relative_to(Path.home()))
    except (ValueError, RuntimeError):  # it is elsewhere, or there is no home
        return str(folder)


def _caption(text: str) -> PlainLabel:
    label = PlainLabel(text)
    label.setProperty("caption", "true")
    return label


def _card(*parts: QWidget | QHBoxLayout, stretches: bool = False) -> QFrame:
    card = QFrame()
    card.setProperty("card", "true")
    column = QVBoxLayout(card)
    column.setContentsMargins(12, 10, 12, 10)
    column.setSpacing(8)
    for part in parts:
        if isinstance(part, QWidget):
            column.addWidget(part)
        else:
            column.addLayout(part)
    if stretches:
        column.addStretch(0)
    return card
