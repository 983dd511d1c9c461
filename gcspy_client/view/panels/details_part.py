"""The panels about the active space and the kinds of event, joined to the window.

Knows panels and the parts that obey them; `details` determines their texts.
"""

from __future__ import annotations

from functools import partial

from gcspy_protocol.messages import Error, SetFilters
from gcspy_protocol.model import EventFilter
from PySide6.QtCore import Qt

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.filters import FilterPart
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.details import Details
from gcspy_client.view.part import Part

__all__ = ["DetailsPart"]

_REMOVALS = (
    (FilterPart.OFF, "Event filters: &enable all"),
    (FilterPart.PERIOD, "Event filters: reset periods"),
    (FilterPart.DELAY, "Event filters: clear delays"),
    (FilterPart.PAUSE, "Event filters: clear pauses"),
)


class DetailsPart(Part):
    """View and legend, tile information, summary over time, events and filters.

    Args:
        desk: The window's desk.
        details: The panels.
    """

    def __init__(self, desk: Desk, details: Details) -> None:
        super().__init__(desk)
        self._details = details
        side = Qt.DockWidgetArea.RightDockWidgetArea
        for name, title, widget in (
            ("view", "View and legend", details.view),
            ("tile", "Tile information", details.tile),
            ("trend", "Summary over time", details.trend),
            ("events", "Events and filters", details.filters),
        ):
            desk.docks.add(name, title, widget, side, shown=True)
        details.stream_chosen.connect(desk.selection.choose_stream)
        details.filters.requested.connect(self.set_filters)
        # When Qt has laid out what came or went; not if the user gave the panels their heights.
        details.filters.height_changed.connect(desk.docks.fit, Qt.ConnectionType.QueuedConnection)
        desk.link.refused.connect(self._refused)

    def set_filters(self, filters: tuple[EventFilter, ...]) -> None:
        """Ask for event filters; of a recording they are this window's own."""
        self._desk.link.send(SetFilters(filters=filters))

    def _refused(self, _error: Error) -> None:
        self._details.filters.model.forget_requests()

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self._details.set_theme(theme)

    def stop(self) -> None:
        """The window closes: no timer is left."""
        self._details.graph.stop()

    def actions(self) -> tuple[Action, ...]:
        """Removing event filters."""
        filters = self._details.filters
        return tuple(
            Action(
                name=f"session.filters-{part.name.lower()}",
                menu="&Session",
                text=text,
                run=partial(filters.remove_all, part),
                enabled=partial(filters.in_force, part),
                why_not="no such filter is active, or this client does not control the session",
                begins_group=part is FilterPart.OFF,
            )
            for part, text in _REMOVALS
        )
