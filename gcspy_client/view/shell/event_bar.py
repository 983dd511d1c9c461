"""The line above the tiles: the target, the mode, and the displayed event.

While the past is shown a coloured field in it says so, and goes live when it is pressed. It is a part of this line so
that nothing moves when it comes or goes: tiles keep their size.
"""

from __future__ import annotations

from datetime import UTC, datetime

from gcspy_protocol.messages import Playback, Welcome
from gcspy_protocol.model import Mode
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from gcspy_client.model.panels.cost import mode_of
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import mode_words
from gcspy_client.model.text import duration
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["EventBar", "recorded_words"]


class EventBar(QWidget):
    """Server, mode and role at the left; the event at the right.

    Signals:
        live_asked: Show the live state.

    Args:
        session: The session.
    """

    live_asked = Signal()

    def __init__(self, session: ClientSession, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._server = ElidedLabel()
        font = self._server.font()
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * 1.15)
        self._server.setFont(font)
        self.past = PlainPushButton()
        self.past.setProperty("badge", "past")
        self.past.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        set_tip(self.past, "Go live (End)")
        self.past.clicked.connect(self.live_asked)
        self.past.hide()
        self._mode = _chip()
        self._recorded = _chip()
        self._role = _chip()
        self._missed = _chip()
        self._missed.setProperty("tone", "warning")
        self._event = PlainLabel()
        self._event.setFont(font)
        self._facts = ElidedLabel()
        self._facts.setProperty("dim", "true")
        self._facts.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._facts.setAlignment(Qt.AlignmentFlag.AlignRight)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 0, 2, 0)
        row.setSpacing(9)
        for widget in (
            self._server,
            self._mode,
            self._recorded,
            self._role,
            self._missed,
            self.past,
        ):
            row.addWidget(widget)
        row.addWidget(self._facts, 1)
        row.addWidget(self._event)
        self.setMinimumHeight(self.past.sizeHint().height())

    def refresh(self, past: str = "") -> None:
        """Update all texts.

        Args:
            past: The text about the past while it is displayed; otherwise empty.
        """
        live = self._session.live  # the displayed event may be long ago
        welcome = live.welcome
        self.past.setVisible(bool(past))
        self.past.setText(f"{past}   Go live (End)")
        for chip in (self._mode, self._role, self._event):
            chip.setVisible(welcome is not None)
        self._recorded.setVisible(welcome is not None and self._session.is_playback)
        self._missed.setVisible(live.missed_total > 0)
        if welcome is None:
            self._server.setText("GCspy")
            self._facts.setText("")
            return
        self._server.setText(welcome.server)
        facts = [f"{key}: {value}" for key, value in welcome.target.items()]
        info = [Lines.of(welcome.general_info)] if welcome.general_info else []
        set_tip(self._server, Lines(welcome.server, *facts, *info))
        mode = live.mode or welcome.mode
        self._mode.setText(mode.value)
        set_tip(self._mode, mode_words(mode))
        self._say_recorded(welcome)
        self._say_role()
        if live.missed_total:
            self._missed.setText(f"{live.missed_total:,} events missed")
            set_tip(
                self._missed,
                "This window could not keep up, so the server dropped events; the values shown are complete all the same.",
            )
        self._say_event()

    def _say_recorded(self, welcome: Welcome) -> None:
        """The mode at the time of the recording, and the events left out."""
        if not self._session.is_playback:
            return
        then = recorded_words(welcome, self._session.live.playback, mode_of(self._session.live))
        self._recorded.setText(then[0])
        set_tip(self._recorded, Lines(*then[1:]))
        hidden = len(then) > 2
        if self._recorded.property("tone") != ("warning" if hidden else ""):
            self._recorded.setProperty("tone", "warning" if hidden else "")
            self._recorded.style().unpolish(self._recorded)
            self._recorded.style().polish(self._recorded)

    def _say_role(self) -> None:
        live = self._session.live
        clients = {client.id: client.name for client in live.clients.clients}
        controller = live.clients.controller
        if self._session.is_playback:
            self._role.setText("own playback" if live.is_controller() else "following")
            whose = (
                clients.get(controller, "another client")
                if controller is not None
                else "another client"
            )
            set_tip(
                self._role,
                "This window has its own playback position; it does not affect others."
                if live.is_controller()
                else f"This window follows the playback of {whose}: Session ▸ Stop following for its own position.",
            )
        elif live.is_controller():
            self._role.setText("in control")
            set_tip(self._role, "This window can pause, step and set filters.")
        elif controller is None:
            self._role.setText("viewer")
            set_tip(self._role, "This session has no controller: Session ▸ Take control.")
        else:
            self._role.setText("viewer")
            set_tip(
                self._role, f"{clients.get(controller, 'Another client')} controls this session."
            )

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


def recorded_words(
    welcome: Welcome, playback: Playback | None, shown_mode: Mode | None = None
) -> list[str]:
    """The texts about the recorded session: for the chip, the mode, then the filters.

    Args:
        welcome: The player's welcome.
        playback: How it plays.
        shown_mode: How it was watched at the event that is shown, where that was something to choose.
    """
    mode = welcome.target.get("recorded mode", "") if shown_mode is None else shown_mode.value
    pause = welcome.target.get("recorded pause", "")
    names = {kind.id: kind.name for kind in welcome.events}
    hidden = []
    for one in () if playback is None else playback.filters:
        name = names.get(one.event, f"event {one.event}")
        if not one.enabled:
            hidden.append(f"Recorded no {name}: its events are not recorded.")
        elif one.period > 1:
            hidden.append(f"Recorded 1 in {one.period:,} of {name}: the others are not recorded.")
    about = f"Attach mode of the recording: {mode}" if mode else "The attach mode was not recorded"
    about += f"; a pause held the {pause}." if pause else "."
    chip = f"recorded {mode}" if mode else "recorded"
    return [f"{chip}, with filters" if hidden else chip, about, *hidden]


def _chip() -> PlainLabel:
    chip = PlainLabel()
    chip.setProperty("chip", "true")
    chip.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
    chip.hide()
    return chip
