"""Notices for a window without data, or whose data is no longer live."""

from __future__ import annotations

from gcspy_protocol.model import ControlState
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus, end_words
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["Banner", "StatePage", "banner_words", "page_words"]


_WHAT_NEXT = "Ctrl+S saves the session, Ctrl+Shift+O opens another one."


def page_words(status: LinkStatus, session: ClientSession) -> tuple[str, str, bool, bool]:
    """The text of the empty window.

    Returns:
        Title, text, whether connecting again is offered, whether connecting elsewhere is offered.
    """
    match status.phase:
        case LinkPhase.IDLE:
            text = "Ctrl+Shift+O lists processes, recordings and samples to open; Ctrl+J connects to a served session."
            return "Not connected", text, bool(status.address), True
        case LinkPhase.CONNECTING:
            return "Connecting…", status.address, False, False
        case LinkPhase.GREETING:
            return "Connected", f"Waiting for {status.address} to identify itself", False, False
        case LinkPhase.FAILED | LinkPhase.ENDED | LinkPhase.LOST:
            title = (
                "The session has ended" if status.phase is LinkPhase.ENDED else "Could not connect"
            )
            parts = [status.address, _sentence(status.message), _sentence(status.remedy)]
            return title, Lines(*(part for part in parts if part)), True, True
        case LinkPhase.LIVE:
            if session.live.state is ControlState.ENDED:
                title = end_words(driver_failed=session.live.driver_failed)
                return title, _sentence(session.live.state_reason), False, True
            name = session.live.welcome.server if session.live.welcome is not None else "the server"
            text = f"{name} is connected; tiles appear at its next event. If none arrives, check whether it is paused or whether event filters are active (Session ▸ Event filters: enable all)."
            if session.live.state_reason:
                text = _sentence(session.live.state_reason)
            return "Waiting for the first event", text, False, False


def banner_words(status: LinkStatus, session: ClientSession) -> tuple[str, str]:
    """The notice above tiles that are no longer live: a text, and ``warning``, ``error`` or nothing."""
    if session.live.state is ControlState.ENDED and status.phase in (
        LinkPhase.LIVE,
        LinkPhase.ENDED,
    ):
        reason = session.live.state_reason
        what = end_words(driver_failed=session.live.driver_failed)
        return (
            f"{what}{f': {reason}' if reason else ''}. The last event received stays visible. {_WHAT_NEXT}",
            "warning",
        )
    if status.phase is LinkPhase.LIVE:
        return "", ""
    again = f"reconnecting, attempt {status.attempt + 1}" if status.attempt else "reconnecting"
    texts = {
        LinkPhase.IDLE: (
            f"Disconnected. The last event received stays visible. {_WHAT_NEXT}",
            "warning",
        ),
        LinkPhase.CONNECTING: (f"Connecting to {status.address}…", "warning"),
        LinkPhase.GREETING: (
            f"Connected to {status.address}, waiting for its greeting…",
            "warning",
        ),
        LinkPhase.LOST: (
            f"Connection lost: {status.message}; {again}. The last event received stays visible.",
            "error",
        ),
        LinkPhase.ENDED: (
            f"Session over: {status.message}. The last event received stays visible. {_WHAT_NEXT}",
            "warning",
        ),
        LinkPhase.FAILED: (
            _sentence(f"{status.message}{': ' if status.remedy else ''}{status.remedy}"),
            "error",
        ),
    }
    return texts[status.phase]


def _sentence(text: str) -> str:
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


class StatePage(QWidget):
    """The whole area of the spaces while there are none.

    Signals:
        connect_asked: Connect to another server.
        reconnect_asked: Try the same one again.
        start_asked: See what else could be opened.
    """

    connect_asked = Signal()
    reconnect_asked = Signal()
    start_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = PlainLabel()
        font = self.title.font()
        font.setPointSizeF(font.pointSizeF() * 1.9)
        font.setBold(True)
        self.title.setFont(font)
        self.text = PlainLabel()
        self.text.setProperty("dim", "true")
        self.text.setWordWrap(True)
        self.text.setMaximumWidth(640)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.again = PlainPushButton("Try again")
        self.again.setProperty("primary", "true")
        self.other = PlainPushButton("Connect…")
        self.start = PlainPushButton("Start page")
        self.start.clicked.connect(self.start_asked)
        self.again.clicked.connect(self.reconnect_asked)
        self.other.clicked.connect(self.connect_asked)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.again)
        buttons.addWidget(self.other)
        buttons.addWidget(self.start)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setSpacing(14)
        column.addStretch(2)
        for label in (self.title, self.text):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            row = QHBoxLayout()
            row.addStretch(1)
            row.addWidget(label, 4)
            row.addStretch(1)
            column.addLayout(row)
        column.addLayout(buttons)
        column.addStretch(3)

    def refresh(self, status: LinkStatus, session: ClientSession) -> None:
        """Say what the state of things is and what can be done."""
        title, text, again, other = page_words(status, session)
        self.title.setText(title)
        self.text.setText(text)
        self.again.setVisible(again)
        self.other.setVisible(other)
        self.start.setVisible(other)


class Banner(QFrame):
    """One line above the tiles; hidden while everything is as it should be."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = ElidedLabel()
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.addWidget(self.text, 1)
        self.hide()

    def say(self, text: str, kind: str) -> None:
        """Show a text as a ``warning`` or an ``error``; an empty one hides the banner."""
        self.setVisible(bool(text))
        self.text.setText(text)
        if text and self.property("banner") != kind:
            self.setProperty("banner", kind)
            self.style().unpolish(self)
            self.style().polish(self)
