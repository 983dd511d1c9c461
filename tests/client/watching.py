"""A window on a program that is watched live, with what its heap was at each event."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QApplication

from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.view.panels.filters import FilterPanel
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.window import MainWindow
from tests.client.program import Program

__all__ = ["EVENTS", "Wait", "Watched", "chips_of"]

Wait = Callable[[Callable[[], bool]], None]
EVENTS = 12
"""Have happened when a test begins."""


class Watched:
    """A window on a program of which some events have happened.

    Attributes:
        heaps: The heap at each event, by its number.
    """

    def __init__(self, window: MainWindow, program: Program, wait: Wait) -> None:
        self.window, self.program, self._wait = window, program, wait
        self.heaps: dict[int, NDArray[np.uint8]] = {}

    def happen(self, events: int) -> None:
        """Let events happen, and wait until each is received, kept and drawn."""
        self.come(events)
        self.window.settle()

    def come(self, events: int) -> None:
        """Let events happen, and wait until each is received and kept; not until it is drawn."""
        for _ in range(events):
            before = self.window.session.events_seen
            self.program.let_happen()
            self._wait(partial(self._has_seen, before + 1))
            self.heaps[self.window.session.timeline.last] = self.program.values.copy()
        assert self.window.shift.settle(60)

    def _has_seen(self, events: int) -> bool:
        return self.window.session.events_seen >= events

    def lay_out(self) -> None:
        """Wait until every panel has its place: the timeline grows when memory and costs of collections were read."""
        self._wait(lambda: self.window.ranges.feed.settled)
        QApplication.sendPostedEvents()
        self.window.settle()

    def shown(self) -> NDArray[np.uint8]:
        """The heap that is painted."""
        picture = self.window.spaces.panels[1].canvas.picture
        values: NDArray[np.uint8] = picture.space.streams[0].values
        return values

    def shows(self, number: int) -> bool:
        """Whether the window shows an event, tiles and all."""
        picture = self.window.spaces.panels[1].canvas.picture
        painted = SpacePicture(picture.space, picture.stream_id, picture.theme).codes
        return (
            self.window.session.number == number
            and bool(np.array_equal(self.shown(), self.heaps[number]))
            and bool(np.array_equal(picture.codes, painted))
        )


def chips_of(panel: FilterPanel) -> list[PlainPushButton]:
    """Return the buttons that say which filters are in force, and remove them."""
    items = [panel._flow.itemAt(place) for place in range(panel._flow.count())]
    widgets = [item.widget() for item in items if item is not None]
    return [one for one in widgets if isinstance(one, PlainPushButton)]
