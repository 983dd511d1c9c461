"""Panels of facts: general information, timers, the connection. They are updated twice a second while they are visible, never otherwise.

Knows facts and their sources; does not know their meaning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtWidgets import QFrame, QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from gcspy_client.model.panels.facts import (
    PanelFact,
    connection_facts,
    facts_text,
    general_facts,
    timer_facts,
)
from gcspy_client.model.playback.timers import timers_of
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.text import copy_text, set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainMenu
from gcspy_client.view.shell.docks import Dock

__all__ = ["FactPanel", "FactPanels"]

_MILLIS = 500


class FactPanel(QFrame):
    """Names and values, in two columns; can be copied.

    Args:
        nothing: The text while there are no facts.
    """

    def __init__(self, nothing: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self._facts: list[PanelFact] = []
        self._rows: list[tuple[PlainLabel, PlainLabel]] = []
        self._nothing = PlainLabel(nothing)
        self._nothing.setProperty("dim", "true")
        self._nothing.setWordWrap(True)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(1, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 7, 10, 9)
        column.addWidget(self._nothing)
        column.addLayout(self._grid)
        column.addStretch(1)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._menu)

    def show_facts(self, facts: Sequence[PanelFact]) -> None:
        """Say these; only what differs is touched."""
        facts = list(facts)
        if facts == self._facts:
            return
        self._facts = facts
        self._nothing.setVisible(not facts)
        while len(self._rows) < len(facts):
            self._add_row()
        for number, (name, value) in enumerate(self._rows):
            there = number < len(facts)
            name.setVisible(there)
            value.setVisible(there and facts[number].text is not None)
            if there:
                self._say(number, facts[number], name, value)

    def texts(self) -> dict[str, str]:
        """The values, by name; of several of one name the first."""
        said: dict[str, str] = {}
        for fact in self._facts:
            if fact.text is not None:
                said.setdefault(fact.name.strip(), fact.text)
        return said

    def copy(self) -> None:
        """Copy the facts as text."""
        copy_text(facts_text(self._facts))

    def _add_row(self) -> None:
        row = len(self._rows)
        name, value = PlainLabel(), PlainLabel()
        name.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        value.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        value.setWordWrap(True)
        value.setMinimumWidth(40)
        value.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        value.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self._grid.addWidget(name, row, 0)
        self._grid.addWidget(value, row, 1)
        self._rows.append((name, value))

    def _say(self, number: int, fact: PanelFact, name: PlainLabel, value: PlainLabel) -> None:
        heading = fact.text is None
        if name.property("caption") != heading:
            name.setProperty("caption", heading)
            name.setProperty("dim", not heading)
            name.style().unpolish(name)
            name.style().polish(name)
            self._grid.removeWidget(name)
            self._grid.addWidget(name, number, 0, 1, 2 if heading else 1)
            name.setContentsMargins(0, 6 if heading and number else 0, 0, 0)
        name.setText(fact.name)
        value.setText(fact.text or "")
        for label in (name, value):
            set_tip(label, fact.tip)

    def _menu(self, place: QPoint) -> None:
        menu = PlainMenu(self)
        menu.add("Copy as text", self.copy)
        menu.exec(self.mapToGlobal(place))
        menu.deleteLater()


@dataclass(frozen=True, slots=True)
class _Panel:
    """A panel, its dock, and what it says."""

    panel: FactPanel
    dock: Dock
    ask: Callable[[], list[PanelFact]]


class FactPanels(Part):
    """The three panels of a window, and the timer that has them speak.

    Args:
        desk: The window's desk.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._timer = QTimer(self)
        self._timer.setInterval(_MILLIS)
        self._timer.timeout.connect(self.tell)
        self._stopped = False
        nothing = "No session yet: attach to a process, open a recording, or connect to a server."
        self.general, self.timers, self.connection = (FactPanel(nothing) for _ in range(3))
        self._panels = tuple(
            _Panel(panel, self._dock(name, title, panel), ask)
            for name, title, panel, ask in (
                (
                    "general",
                    "General information",
                    self.general,
                    lambda: general_facts(desk.session),
                ),
                ("timers", "Timers", self.timers, self._timer_facts),
                ("connection", "Connection", self.connection, self._connection_facts),
            )
        )

    def _dock(self, name: str, title: str, panel: FactPanel) -> Dock:
        dock = self._desk.docks.add(name, title, panel, Qt.DockWidgetArea.RightDockWidgetArea)
        dock.seen.connect(self._seen)
        return dock

    @property
    def running(self) -> bool:
        """Whether panels are updated periodically."""
        return self._timer.isActive()

    def tell(self) -> None:
        """Update visible panels."""
        for one in self._panels:
            if one.dock.in_sight:
                one.panel.show_facts(one.ask())

    def _seen(self, _seen: bool) -> None:
        wanted = not self._stopped and any(one.dock.in_sight for one in self._panels)
        if wanted:
            self.tell()
            self._timer.start()
        else:
            self._timer.stop()

    def _timer_facts(self) -> list[PanelFact]:
        session = self._desk.session
        return timer_facts(timers_of(session.timeline, session.number))

    def _connection_facts(self) -> list[PanelFact]:
        desk = self._desk
        link = desk.link
        rates = link.meter.rates(time.monotonic())
        return connection_facts(
            desk.session,
            link.status,
            link.meter,
            rates,
            desk.shift.status,
            held=link.is_held,
            version=link.version,
        )

    def stop(self) -> None:
        """Say nothing more; no timer is left."""
        self._stopped = True
        self._timer.stop()
