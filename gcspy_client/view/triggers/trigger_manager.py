"""Triggers in the window: their settings, their firings, and the consequences; their panel and their notice show it.

A trigger is evaluated where the events are made, by the server or the player. The window sets
triggers, shows at which event one fired, marks it in the timeline, and adds a bookmark if
requested.

Knows session, link and bookmarks; does not know widgets, or how one gets to another event.
"""

from __future__ import annotations

from dataclasses import replace

from gcspy_protocol.messages import Fired, Message, Triggers
from gcspy_protocol.model import ControlState
from gcspy_protocol.trigger_notices import TriggerNotices
from gcspy_protocol.triggers import Trigger, TriggerAction, TriggerStatus
from PySide6.QtCore import QObject, QTimer, Signal

from gcspy_client.link import WindowLink
from gcspy_client.model.panels.trigger_list import (
    FiredLog,
    TriggerFiring,
    event_number,
    free_id,
    operand_words,
)
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import LinkPhase, end_words
from gcspy_client.view.time.bookmarks import BookmarkStore
from gcspy_client.view.time.timeline import TimelineFlag

__all__ = ["TriggerManager"]

_BOOKMARK_MILLIS = 200
"""Bookmarks requested in this time are written at once: each write rewrites a file."""


class TriggerManager(QObject):
    """The triggers of the session or the playback.

    Attributes:
        log: The firings.

    Signals:
        changed: The triggers, their states or the firings have changed.
        fired: Triggers fired; a list of `TriggerFiring`, the earliest first.
        stalled: A trigger waits for a name or has failed; a sentence with the reason.

    Args:
        session: The displayed and the live state.
        link: Connection to the server or player.
        bookmarking: The bookmarks.
    """

    changed = Signal()
    fired = Signal(object)
    stalled = Signal(str)

    def __init__(
        self,
        session: ClientSession,
        link: WindowLink,
        bookmarking: BookmarkStore,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._link, self._bookmarking = session, link, bookmarking
        self.log = FiredLog()
        self._notices = TriggerNotices()
        self._identity = ""
        self._wanted: dict[int, tuple[str, str]] = {}
        self._writing = QTimer(self)
        self._writing.setSingleShot(True)
        self._writing.timeout.connect(self.write_bookmarks)
        link.status_changed.connect(self._status_changed)

    # -------------------------------------------------------------------- what there is

    @property
    def triggers(self) -> tuple[TriggerStatus, ...]:
        """All triggers and their state, as last received."""
        return self._session.live.triggers.triggers

    def status_of(self, number: int | None) -> TriggerStatus | None:
        """One of them, by its number."""
        return next((one for one in self.triggers if one.trigger.id == number), None)

    @property
    def reason(self) -> str:
        """Why triggers cannot be changed now; empty when they can."""
        if self._link.status.phase is not LinkPhase.LIVE:
            return "Not connected."
        live = self._session.live
        if live.state is ControlState.ENDED:
            return f"{end_words(driver_failed=live.driver_failed)}."
        if live.is_controller():
            return ""
        if self._session.is_playback:
            return "This window follows another playback: Session ▸ Stop following, to set triggers in this window."
        return "Only the client in control may change triggers: Session ▸ Take control."

    def number_of(self, status: TriggerStatus) -> int:
        """The event at which a trigger fired last, as a number of the timeline; 0 where it is not in it."""
        if not status.sequence:
            return 0
        seen = self.log.latest_of(status.trigger.id)
        if seen is not None and seen.fired.sequence == status.sequence:
            return seen.number
        return event_number(self._session.timeline, status.event, status.occurrence) or 0

    def flags(self) -> tuple[TimelineFlag, ...]:
        """Return the firings' marks in the timeline."""
        return tuple(
            TimelineFlag(
                number=one.number,
                title=f"trigger {one.fired.trigger.id} fired: {_words(one.fired.trigger)}",
                fired=True,
            )
            for one in self.log.all
            if one.number
        )

    # ------------------------------------------------------------------- what users do

    def set(self, trigger: Trigger) -> None:
        """Ask for a trigger, in place of the one of its number."""
        self._link.send(trigger)

    def add(self, trigger: Trigger) -> int:
        """Ask for a trigger under a number that is free.

        Returns:
            The number.
        """
        number = free_id(self.triggers)
        self.set(replace(trigger, id=number))
        return number

    def enable(self, number: int, *, enabled: bool) -> None:
        """Request that a trigger is enabled, or not."""
        status = self.status_of(number)
        if status is not None:
            self.set(replace(status.trigger, enabled=enabled))

    def remove(self, number: int) -> None:
        """Ask that a trigger is no more."""
        self.set(Trigger(id=number))

    # ---------------------------------------------------------------------- what comes

    def take(self, messages: list[Message]) -> None:
        """Follow messages that the session has followed already."""
        self._follow_session()
        firings = [self._take(message) for message in messages if isinstance(message, Fired)]
        if firings:
            self.fired.emit(firings)
        told = [message for message in messages if isinstance(message, Triggers)]
        for line in (line for message in told for line in self._notices.lines(message)):
            self.stalled.emit(line)
        if firings or told:
            self.changed.emit()

    def _take(self, fired: Fired) -> TriggerFiring:
        firing = self.log.add(fired, self._session.timeline)
        if fired.trigger.action is TriggerAction.BOOKMARK and firing.number:
            self._wanted.setdefault(
                firing.number, (_words(fired.trigger), operand_words(fired.operands))
            )
            if not self._writing.isActive():
                self._writing.start(_BOOKMARK_MILLIS)
        return firing

    def write_bookmarks(self) -> None:
        """Add the requested bookmarks; an existing one stays."""
        wanted, self._wanted = self._wanted, {}
        self._writing.stop()
        self._bookmarking.add_all(wanted)

    def _follow_session(self) -> None:
        """Forget what fired in another session."""
        welcome = self._session.live.welcome
        if welcome is not None and welcome.session != self._identity:
            self._identity = welcome.session
            self._wanted.clear()
            self._notices = TriggerNotices()
            self.log.clear()
            self.changed.emit()

    def _status_changed(self, _status: object) -> None:
        self.changed.emit()

    def stop(self) -> None:
        """Follow nothing any more; no timer is left, and no bookmark unwritten."""
        self.write_bookmarks()
        self.blockSignals(True)


def _words(trigger: Trigger) -> str:
    return trigger.note or trigger.expression
