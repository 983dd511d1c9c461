"""The footer: control flow at the left, its state in the middle, the connection at the right (paper 6.1, area 8)."""

from __future__ import annotations

from gcspy_protocol.model import ControlState
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import (
    LinkPhase,
    LinkStatus,
    end_words,
    flow_words,
    pause_words,
)
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["Footer"]


class Footer(QWidget):
    """Buttons and state.

    Signals:
        pause_toggled: The pause button or its key.
        stepped: The step button or its key.
        connect_asked: Connect to another server.
        reconnect_asked: Connect again to the same server.
        disconnect_asked: Leave the server.

    Args:
        session: The session.
    """

    pause_toggled = Signal()
    stepped = Signal()
    connect_asked = Signal()
    reconnect_asked = Signal()
    disconnect_asked = Signal()

    def __init__(self, session: ClientSession, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.pause = PlainPushButton("Pause")
        self.pause.setProperty("primary", "true")
        self.step = PlainPushButton("Step")
        set_tip(self.step, "Continue to the next event, then pause again (.)")
        self.state = PlainLabel()
        self._link = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self._link.setProperty("dim", "true")
        self._link.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._link.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.leave = PlainPushButton("Disconnect")
        self.other = PlainPushButton("Connect…")
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(2, 0, 2, 0)
        row.setSpacing(9)
        for widget in (self.pause, self.step, self.state):
            row.addWidget(widget)
        row.addWidget(self._link, 1)
        row.addWidget(self.leave)
        row.addWidget(self.other)
        for button in (self.pause, self.step, self.leave, self.other):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.pause.setMinimumWidth(150)
        self.pause.clicked.connect(self.pause_toggled)
        self.step.clicked.connect(self.stepped)
        self.other.clicked.connect(self.connect_asked)
        self.leave.clicked.connect(self._leave_or_return)
        self._connected = False

    def add_words(self, words: QWidget) -> None:
        """Have something said between the state and the connection."""
        self._row.insertWidget(self._row.indexOf(self._link), words)

    def refresh(self, status: LinkStatus) -> None:
        """Update all texts, and enable possible actions."""
        interpreter = self._session.live  # the displayed event may be long ago
        state = interpreter.state
        what = pause_words(interpreter.pause_acts_on) if interpreter.welcome is not None else ""
        live = status.phase is LinkPhase.LIVE
        may = live and interpreter.is_controller() and state is not ControlState.ENDED
        pausing = state in (ControlState.PAUSING, ControlState.PAUSED)
        self.pause.setText(f"{'Resume' if pausing else 'Pause'} {what}".strip())
        self.pause.setEnabled(may)
        self.step.setEnabled(may and state is ControlState.PAUSED)
        reason = self._why_not(status, may=may)
        set_tip(
            self.pause,
            reason
            or f"{'Let the' if pausing else 'Hold the'} {what} {'go on' if pausing else 'after the next event'} (Space)",
        )
        known = interpreter.welcome is not None
        words, tone = "", "dim"
        if known and live:
            words = flow_words(
                state,
                interpreter.pause_acts_on,
                interpreter.state_reason,
                driver_failed=interpreter.driver_failed,
            )
            tone = {ControlState.RUNNING: "good", ControlState.ENDED: "error"}.get(state, "warning")
        elif known:
            words, tone = "Last event received", "warning"
        self._paint_state(words, tone)
        self._say_link(status)

    def _why_not(self, status: LinkStatus, *, may: bool) -> str:
        if may:
            return ""
        if status.phase is not LinkPhase.LIVE:
            return "Not connected."
        if self._session.live.state is ControlState.ENDED:
            return f"{end_words(driver_failed=self._session.live.driver_failed)}."
        return "Only the client in control may pause: Session ▸ Take control."

    def _paint_state(self, words: str, tone: str) -> None:
        self.state.setText(f"●  {words}" if words else "")
        if self.state.property("tone") != tone:
            self.state.setProperty("tone", tone)
            self.state.style().unpolish(self.state)
            self.state.style().polish(self.state)

    def _say_link(self, status: LinkStatus) -> None:
        clients = len(self._session.live.clients.clients)
        others = (
            f"  ·  {clients} watching" if clients > 1 and status.phase is LinkPhase.LIVE else ""
        )
        words = status.phase.value
        if status.phase is LinkPhase.LIVE:
            words = status.address
        elif status.address:
            words = f"{status.phase.value}  ·  {status.address}"
        self._link.setText(words + others)
        self._connected = status.phase in (
            LinkPhase.LIVE,
            LinkPhase.CONNECTING,
            LinkPhase.GREETING,
            LinkPhase.LOST,
        )
        self.leave.setText("Disconnect" if self._connected else "Reconnect")
        self.leave.setEnabled(bool(status.address))

    def _leave_or_return(self) -> None:
        if self._connected:
            self.disconnect_asked.emit()
        else:
            self.reconnect_asked.emit()
