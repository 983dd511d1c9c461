"""The line above the tiles: who is watched, in which mode, and the event that is shown."""

from __future__ import annotations

from datetime import UTC, datetime

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from gcspy_client.model.session import Session
from gcspy_client.model.status import mode_words
from gcspy_client.model.text import duration
from gcspy_client.view.elided import ElidedLabel

__all__ = ["EventBar"]


class EventBar(QWidget):
    """Server, mode and role at the left; the event at the right.

    Args:
        session: What it speaks of.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._server = ElidedLabel()
        font = self._server.font()
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * 1.15)
        self._server.setFont(font)
        self._mode = _chip()
        self._role = _chip()
        self._missed = _chip()
        self._missed.setProperty("tone", "warning")
        self._event = QLabel()
        self._event.setFont(font)
        self._facts = ElidedLabel()
        self._facts.setProperty("dim", "true")
        self._facts.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._facts.setAlignment(Qt.AlignmentFlag.AlignRight)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 0, 2, 0)
        row.setSpacing(9)
        for widget in (self._server, self._mode, self._role, self._missed):
            row.addWidget(widget)
        row.addWidget(self._facts, 1)
        row.addWidget(self._event)

    def refresh(self) -> None:
        """Say everything anew."""
        interpreter = self._session.interpreter
        welcome = interpreter.welcome
        for chip in (self._mode, self._role, self._event):
            chip.setVisible(welcome is not None)
        self._missed.setVisible(interpreter.missed_total > 0)
        if welcome is None:
            self._server.setText("GCspy")
            self._facts.setText("")
            return
        self._server.setText(welcome.server)
        facts = "\n".join(f"{key}: {value}" for key, value in welcome.target.items())
        self._server.setToolTip(
            "\n".join(part for part in (welcome.server, welcome.general_info, facts) if part)
        )
        self._mode.setText(welcome.mode.value)
        self._mode.setToolTip(mode_words(welcome.mode))
        self._say_role()
        if interpreter.missed_total:
            self._missed.setText(f"{interpreter.missed_total:,} events missed")
            self._missed.setToolTip(
                "This window was too slow for so many events; what it shows is whole all the same."
            )
        self._say_event()

    def _say_role(self) -> None:
        interpreter = self._session.interpreter
        clients = {client.id: client.name for client in interpreter.clients.clients}
        controller = interpreter.clients.controller
        if interpreter.is_controller():
            self._role.setText("in control")
            self._role.setToolTip("This window may pause, step and filter.")
        elif controller is None:
            self._role.setText("viewer")
            self._role.setToolTip("Nobody controls this session: Session ▸ Take control.")
        else:
            self._role.setText("viewer")
            self._role.setToolTip(f"{clients.get(controller, 'Another client')} controls this session.")

    def _say_event(self) -> None:
        interpreter = self._session.interpreter
        event = interpreter.last_event
        if event is None or interpreter.welcome is None:
            self._event.setText("no event yet")
            self._facts.setText("")
            return
        self._event.setText(f"{interpreter.event_name(event.event)}  #{event.occurrence:,}")
        wall = datetime.fromtimestamp(
            (event.time_nanos + interpreter.welcome.wall_offset_nanos) / 1e9, tz=UTC
        )
        moment = wall.astimezone()
        parts = [event.cause] if event.cause else []
        if event.program_clock is not None:
            name, value = event.program_clock
            parts.append(f"{name} {value:,}")
        if event.held_nanos:
            parts.append(f"held {duration(event.held_nanos)}")
        parts.append(f"gathered in {duration(event.gather_nanos)}")
        parts.append(f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}")
        self._facts.setText("  ·  ".join(parts))


def _chip() -> QLabel:
    chip = QLabel()
    chip.setProperty("chip", "true")
    chip.hide()
    return chip
