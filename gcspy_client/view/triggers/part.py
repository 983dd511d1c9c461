"""Triggers in the window: connects panel, notice, marks in the timeline and actions with the rest of it.

Knows the parts of the window that it connects; does not know how they work.
"""

from __future__ import annotations

from gcspy_protocol.messages import Resume
from gcspy_protocol.model import ControlState
from PySide6.QtCore import Qt

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.trigger_list import TriggerFiring
from gcspy_client.model.shell.link_status import LinkPhase, pause_words
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.triggers.fired_notice import FiredNotice, chief
from gcspy_client.view.triggers.panel import TriggerPanel
from gcspy_client.view.triggers.trigger_manager import TriggerManager

__all__ = ["TriggerPart"]

_SESSION = "&Session"


class TriggerPart(Part):
    """Triggers in a window.

    Attributes:
        triggering: The triggers and the firings.
        panel: The list.
        notice: The line above the tiles.
        quiet: Numbers of triggers of other parts, such as a lesson's: they cause no notice when
            they fire.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.manager = TriggerManager(desk.session, desk.link, desk.bookmarks, self)
        self.panel = TriggerPanel(self.manager, desk.session, desk.theme)
        self.notice = FiredNotice()
        self.quiet: set[int] = set()
        self.manager.fired.connect(self._fired)
        self.manager.changed.connect(desk.navigator.refresh)
        self.manager.stalled.connect(desk.say)
        self.panel.event_asked.connect(self.go_to)
        self.notice.event_asked.connect(self.go_to)
        self.notice.resume_asked.connect(lambda: desk.link.send(Resume()))
        desk.navigator.more_flags.append(self.manager.flags)
        about = "triggers: pause, or bookmark, when a condition becomes true"
        desk.docks.add(
            "triggers",
            "Triggers",
            self.panel,
            Qt.DockWidgetArea.BottomDockWidgetArea,
            keys=("Shift+T",),
            about=about,
        )

    def _fired(self, firings: list[TriggerFiring]) -> None:
        firings = [one for one in firings if one.fired.trigger.id not in self.quiet]
        if not firings:
            return
        live = self._desk.session.live
        fired = chief(firings).fired
        event = f"{live.event_name(fired.event)} #{fired.occurrence:,}"
        self.notice.tell(firings, event=event, paused=pause_words(live.pause_acts_on))
        self.refresh()

    def refresh(self) -> None:
        """Update all texts."""
        live = self._desk.session.live
        connected = self._desk.link.status.phase is LinkPhase.LIVE
        self.notice.follow(
            stands=live.state in (ControlState.PAUSING, ControlState.PAUSED),
            may=connected and live.is_controller(),
            reason=""
            if live.is_controller()
            else "Only the client in control may do that: Session ▸ Take control.",
        )
        self.panel.refresh()

    def go_to(self, number: int) -> None:
        """Show an event; a live session that stands at it is shown live."""
        session, timing = self._desk.session, self._desk.navigator
        if session.number == number:
            return
        if (
            not session.is_playback
            and number == session.timeline.last
            and session.live.state is ControlState.PAUSED
        ):
            timing.last()
        else:
            timing.go_to(number)

    def write_new(self) -> None:
        """Open the panel, and let the user write a trigger."""
        self._desk.docks.show("triggers")
        self.panel.write_new()

    def fill_form(self) -> None:
        """Open the panel, and let the user write a trigger by its form."""
        self._desk.docks.show("triggers")
        self.panel.fill_form()

    def go_to_latest(self) -> None:
        """Show the event at which a trigger fired last."""
        number = self._latest()
        if number:
            self.go_to(number)

    def _latest(self) -> int:
        return next((one.number for one in reversed(self.manager.log.all) if one.number), 0)

    @property
    def has_fired(self) -> bool:
        """Whether there is an event to go to at which a trigger fired."""
        return self._latest() > 0

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.panel.set_theme(theme)

    def stop(self) -> None:
        """Follow nothing any more; no timer is left."""
        self.manager.stop()
        self.notice.stop()

    def actions(self) -> tuple[Action, ...]:
        """Actions about triggers."""
        return (
            Action(
                name="trigger.new",
                menu=_SESSION,
                text="&New trigger…",
                about="write a trigger: pause, or bookmark, when a condition becomes true",
                run=self.write_new,
                keys=("T",),
                enabled=lambda: not self.manager.reason,
                begins_group=True,
            ),
            Action(
                name="trigger.form",
                menu=_SESSION,
                text="New trigger by &form…",
                about="choose what to wait for: a total above an amount, growth, free memory, a new type",
                run=self.fill_form,
                keys=("Ctrl+Shift+T",),
                enabled=lambda: not self.manager.reason,
            ),
            Action(
                name="trigger.go",
                menu=_SESSION,
                text="Go to the last firing of a trigger",
                run=self.go_to_latest,
                enabled=lambda: self.has_fired,
            ),
        )
