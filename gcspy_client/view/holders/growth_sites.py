"""Allocation sites in the panel "What grew": sends the question on request, and shows progress, sites and age.

Connects the parts of the window; the model knows the question, the panel its widgets.
"""

from __future__ import annotations

from time import monotonic

from gcspy_protocol.text.visible import Lines

from gcspy_client.model.panels.site_inquiry import OVER_SECS, SiteInquiry, with_short_paths
from gcspy_client.model.text import age_words
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.holders.inquiry_part import InquiryPart, as_sentence
from gcspy_client.view.panels.growth import GrowthPanel

__all__ = ["GrowthSites"]

_NEW, _ALL = "Allocation sites of new objects", "Allocation sites of all objects"

_HOW = Lines(
    f"Look now: two samples of all memory, {OVER_SECS} s apart, name the lines that allocated the growth.",
    "Only the client that controls the session may ask.",
)


class GrowthSites(InquiryPart):
    """Allocation sites of one window.

    Args:
        desk: The window's desk.
        panel: The panel "What grew".

    Attributes:
        asking: The question and the answer.
    """

    def __init__(self, desk: Desk, panel: GrowthPanel) -> None:
        self.asking = SiteInquiry(desk.link.send, monotonic)
        super().__init__(desk, self.asking)
        self._panel = panel
        panel.opened.connect(self.refresh)
        panel.turned.connect(self.refresh)
        panel.sites_asked.connect(self.look_now)

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
            why = (
                self._progress() if asking.waits else asking.failure and as_sentence(asking.failure)
            )
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
            panel.tell_sites(
                with_short_paths(table, own=True), title, when, as_sentence(known.note)
            )
        else:
            panel.say(
                f"Allocation sites are not known: {as_sentence(table.note, first=False)}",
                title,
                when,
            )

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
