"""Allocation sites in the panel "What grew": sends the question on request, and shows progress, sites and age.

Connects the parts of the window; the model knows the question, the panel its widgets.
"""

from __future__ import annotations

from time import monotonic

from gcspy_protocol.details import Answer
from gcspy_protocol.messages import Message, Welcome
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import QTimer

from gcspy_client.model.panels.site_inquiry import OVER_SECS, SiteInquiry, with_short_paths
from gcspy_client.model.text import age_words
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.growth import GrowthPanel
from gcspy_client.view.part import Part

__all__ = ["GrowthSites"]

_AGE_MILLIS = 1000

_NEW, _ALL = "Allocation sites of new objects", "Allocation sites of all objects"

_HOW = Lines(
    f"Look now: two samples of all memory, {OVER_SECS} s apart, name the lines that allocated the growth.",
    "Only the client that controls the session may ask.",
)


class GrowthSites(Part):
    """Allocation sites of one window.

    Args:
        desk: The window's desk.
        panel: The panel "What grew".

    Attributes:
        asking: The question and the answer.
    """

    def __init__(self, desk: Desk, panel: GrowthPanel) -> None:
        super().__init__(desk)
        self._panel = panel
        self.asking = SiteInquiry(desk.link.send, monotonic)
        self._identity = ""
        self._stopped = False
        self._age = QTimer(self)
        self._age.setInterval(_AGE_MILLIS)
        self._age.timeout.connect(self.refresh)
        panel.opened.connect(self.refresh)
        panel.turned.connect(self.refresh)
        panel.sites_asked.connect(self.look_now)
        desk.link.welcomed.connect(self._begin)
        desk.link.received.connect(self._take)

    def stop(self) -> None:
        """Ask nothing any more; no timer is left."""
        self._stopped = True
        self._age.stop()

    def _begin(self) -> None:
        self.asking.forget()
        self.refresh()

    def _take(self, messages: list[Message]) -> None:
        for welcome in (one for one in messages if isinstance(one, Welcome)):
            if welcome.session != self._identity:
                self._identity = welcome.session
                self.asking.clear()
        taken = [self.asking.take(one) for one in messages if isinstance(one, Answer)]
        if any(taken):
            self.refresh()

    def look_now(self) -> None:
        """Ask for the sites of what grows from now on; earlier ones stay until they have come."""
        if not self.asking.waits:
            self.asking.ask(held=self._panel.held.isChecked())
        self.refresh()

    def show_sites(self) -> None:
        """Open the panel with allocation sites, and ask for them if none are known."""
        self._desk.docks.show("growth")
        self._panel.turn_to_sites()
        if self.asking.known is None:
            self.look_now()

    def refresh(self) -> None:
        """Update all visible texts."""
        panel, asking = self._panel, self.asking
        if self._stopped or not panel.by_site or not panel.isVisible():
            self._age.stop()
            return
        if not self._age.isActive():
            self._age.start()
        connected = self._desk.link.status.phase.connected
        panel.offer_look(True, can_ask=connected and not asking.waits)
        known, age = asking.known, asking.age_secs
        if known is None or age is None:
            why = self._progress() if asking.waits else asking.failure and _sentence(asking.failure)
            panel.say(why or _HOW, _NEW)
            return
        table = known.table
        title = _NEW if known.over_secs else _ALL
        when = f"grew in {known.over_secs:.0f} s, {age_words(age)}" if known.over_secs else ""
        if asking.waits:
            when = self._progress()
        elif asking.failure:
            when = f"asked again, but: {asking.failure}"
        if table.rows:
            panel.tell_sites(with_short_paths(table, own=True), title, when)
        else:
            panel.say(
                f"Allocation sites are not known: {_sentence(table.note, first=False)}", title, when
            )

    def _progress(self) -> str:
        if self.asking.step is None:
            return "Asking…"
        what, done, total = self.asking.step
        if total > 0:
            return f"Asking: {what}, {min(1.0, done / total):.0%}"
        return f"Asking: {what}, {done:,}" if done else f"Asking: {what}"

    def actions(self) -> tuple[Action, ...]:
        """The action of allocation sites."""
        return (
            Action(
                name="growth.sites",
                menu="&View",
                text="&Allocation sites of what grows",
                about="name the lines of the program that allocate what grows, from two samples of all memory",
                run=self.show_sites,
                enabled=lambda: self._desk.link.status.phase.connected,
                why_not="there is no connection",
            ),
        )


def _sentence(words: str, *, first: bool = True) -> str:
    begin = words[:1].upper() if first else words[:1]
    return f"{begin}{words[1:]}{'' if words.endswith('.') else '.'}"
