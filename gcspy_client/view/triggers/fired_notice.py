"""The notice that a trigger fired: which, at what event, with what numbers; and what can be done then.

Knows what fired; does not know the target, or how one gets to an event.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcspy_protocol.triggers import TriggerAction
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from gcspy_client.model.panels.trigger_list import TriggerFiring, operand_words
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["FiredNotice"]

_MILLIS = 10_000
"""How long a notice stays that nothing waits for."""


class FiredNotice(QFrame):
    """One line above the tiles; hidden while there is no notice.

    Signals:
        event_asked: Show the event of this number.
        resume_asked: Release the target that a trigger holds.

    Attributes:
        firing: The displayed firing; None: none is displayed.
    """

    event_asked = Signal(int)
    resume_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.firing: TriggerFiring | None = None
        self._holds = self._stood = False
        self._kind = ""
        self.setProperty("banner", "fired")
        self.what = ElidedLabel()
        font = self.what.font()
        font.setBold(True)
        self.what.setFont(font)
        self.where = ElidedLabel()
        self.where.setProperty("dim", "true")
        self.go = PlainPushButton("Go to event")
        self.resume = PlainPushButton("Resume")
        self.resume.setProperty("primary", "true")
        self.dismiss = PlainPushButton("Dismiss")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 8, 4)
        row.setSpacing(8)
        row.addWidget(self.what, 3)
        row.addWidget(self.where, 4)
        for button in (self.go, self.resume, self.dismiss):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            row.addWidget(button)
        self.go.clicked.connect(self._go)
        self.resume.clicked.connect(self.resume_asked)
        self.dismiss.clicked.connect(self.forget)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.forget)
        self.hide()

    def tell(self, firings: Sequence[TriggerFiring], *, event: str, paused: str) -> None:
        """Show a notice of the triggers that fired.

        Args:
            firings: The earliest first. One that holds the target is shown before those that do
                not.
            event: Kind and occurrence of the event, as text; of the displayed one.
            paused: Name of the paused activity; empty: nothing is paused.
        """
        told = chief(firings)
        trigger, fired = told.fired.trigger, told.fired
        self.firing, self._kind = told, paused
        self._holds, self._stood = fired.pauses, False
        more = f"  (and {len(firings) - 1:,} more)" if len(firings) > 1 else ""
        self.what.setText(f"Trigger {trigger.id} fired: {trigger.note or trigger.expression}{more}")
        place = f"event {told.number:,}, {event}" if told.number else event
        parts = [f"at {place}"]
        if fired.operands:
            parts.append(operand_words(fired.operands))
        if fired.pauses:
            parts.append(f"the {paused} is paused at this event")
        elif trigger.action is TriggerAction.PAUSE:
            parts.append("not paused: no client is in control")
        elif trigger.action is TriggerAction.BOOKMARK:
            parts.append("bookmarked" if told.number else "not bookmarked: the event is not stored")
        self.where.setText("  ·  ".join(parts))
        self.go.setEnabled(told.number > 0)
        self.resume.setText(f"Resume {paused}")
        self.show()
        if self._holds:
            self._timer.stop()
        else:
            self._timer.start(_MILLIS)

    def follow(self, *, stands: bool, may: bool, reason: str) -> None:
        """Follow the state of what is watched.

        Args:
            stands: Whether it stands still.
            may: Whether it may be released from here.
            reason: Why not.
        """
        if self.firing is None:
            return
        if self._holds and self._stood and not stands:
            self.forget()
            return
        self._stood |= stands  # that it is held is written behind what fired
        self.resume.setVisible(self._holds)
        self.resume.setEnabled(may)
        set_tip(self.resume, reason or f"Resume the {self._kind}")

    def forget(self) -> None:
        """Hide the notice."""
        self._timer.stop()
        self.firing, self._holds, self._stood = None, False, False
        self.hide()

    def _go(self) -> None:
        if self.firing is not None and self.firing.number:
            self.event_asked.emit(self.firing.number)

    def stop(self) -> None:
        """No timer is left."""
        self._timer.stop()


def chief(firings: Sequence[TriggerFiring]) -> TriggerFiring:
    """The displayed one of several: the last that holds the target, else the last."""
    return next((one for one in reversed(firings) if one.fired.pauses), firings[-1])
