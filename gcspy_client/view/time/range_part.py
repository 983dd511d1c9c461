"""A chosen range of events: the difference between its ends, its statistics, and the buttons for them.

Saving is `time.save`, which saves the chosen range.

Knows the range, memory and the comparison; does not know how a range is chosen.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gcspy_client.model.playback.range_statistics import range_facts, range_headline
from gcspy_client.view.actions import Action, Actions, Gesture
from gcspy_client.view.compare.part import ComparePart
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.facts import FactPanel
from gcspy_client.view.part import Part
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.time.memory_loader import MemoryLoader
from gcspy_client.view.time.panel import TimePanel
from gcspy_client.view.time.range_bar import RANGE_ACTIONS, RangeBar
from gcspy_client.view.widgets.flow import FlowLayout

__all__ = ["RangePanel", "RangePart"]

_TIME = "&Time"
_NO_RANGE = "no range is selected"
_HOW = (
    "No range. Drag over the memory in the timeline, or select the timeline and press Shift with "
    "arrows, page keys, Home or End."
)
_PANEL = "range"

_SCALE = 62
"""Room for the scale of memory at the left edge, in logical pixels."""

_BUTTONS = (
    ("time.compare-range", "Difference"),
    ("time.save", "Save…"),
    ("time.zoom-range", "Zoom"),
    ("time.forget-range", "No range"),
)


class RangePanel(QWidget):
    """Statistics of a range, with what can be done with it.

    Attributes:
        facts: The statistics.
        buttons: By the names of their actions.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.facts = FactPanel(_HOW)
        self.buttons = {name: PlainPushButton(text) for name, text in _BUTTONS}
        line = QWidget()
        row = FlowLayout(parent=line)
        for button in self.buttons.values():
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(line)
        column.addWidget(self.facts, 1)

    def allow(self, there: bool) -> None:
        """Say whether there is a range."""
        for button in self.buttons.values():
            button.setVisible(there)


class RangePart(Part):
    """The chosen range of a window.

    Args:
        desk: The services of the window.
        panel: Transport and timeline.
        compare: Shows the difference of two events.

    Attributes:
        panel: The statistics.
        bar: The buttons beside the range.
        feed: The memory of the session.
    """

    def __init__(self, desk: Desk, panel: TimePanel, compare: ComparePart) -> None:
        super().__init__(desk)
        self._strip, self._compare = panel.strip, compare
        self._difference: tuple[int, int] | None = None  # its first event is being fetched
        self.feed = MemoryLoader(desk.session, lambda: desk.bookmarks.recording, self)
        self.panel = RangePanel()
        self.bar = RangeBar(self._strip)
        desk.docks.add(
            _PANEL,
            "Range",
            self.panel,
            Qt.DockWidgetArea.RightDockWidgetArea,
            keys=("R",),
            about="selected range: growth of memory, collections, events",
        )
        desk.updater.applied.connect(self.feed.follow)
        self.feed.changed.connect(self._show_memory)
        self._strip.laid_out.connect(self._place)
        self._strip.range_forgotten.connect(desk.navigator.forget_range)
        desk.navigator.moved.connect(self._go_on)
        desk.navigator.refused.connect(self._give_up)

    def use_actions(self, actions: Actions) -> None:
        """Let the buttons do what actions do, and show their keys."""
        self.bar.pressed.connect(actions.run)
        self.bar.set_tips((name, actions.tip(name)) for name, _ in RANGE_ACTIONS)
        for name, button in self.panel.buttons.items():
            button.clicked.connect(partial(self._run, actions, name))

    @staticmethod
    def _run(actions: Actions, name: str, _checked: bool = False) -> None:
        actions.run(name)

    @property
    def chosen(self) -> tuple[int, int] | None:
        """First and last event of the range; None: there is none."""
        return self._desk.navigator.chosen

    # ------------------------------------------------------------------- actions of users

    @property
    def may_compare(self) -> bool:
        """Whether there are two ends to compare."""
        chosen = self.chosen
        return chosen is not None and chosen[0] < chosen[1] and self._compare.can_set

    def compare_ends(self) -> None:
        """Show the difference between both ends of the range: the first becomes A, the last is displayed."""
        if self.may_compare and self._desk.navigator.usable:
            self._difference = self.chosen
            if not self._go_on():
                assert self._difference is not None
                self._desk.navigator.go_to(self._difference[0])

    def _go_on(self) -> bool:
        """Set A once the first event of the range is displayed; whether that was so."""
        wanted = self._difference
        if wanted is None or self._desk.session.number != wanted[0]:
            return False
        self._difference = None
        self._compare.set_a()
        self._desk.navigator.go_to(wanted[1])
        return True

    def _give_up(self, _why: str) -> None:
        self._difference = None

    def show_statistics(self) -> None:
        """Open the panel."""
        self._desk.docks.show(_PANEL)
        self.refresh()

    def zoom(self) -> None:
        """Let the timeline show the range."""
        if self.chosen is not None:
            self._strip.show_events(*self.chosen)

    # ------------------------------------------------------------------- how it stands

    def refresh(self) -> None:
        """Update all texts."""
        self.feed.refresh()
        chosen = self.chosen
        self.panel.allow(chosen is not None)
        timeline, track = self._desk.session.timeline, self.feed.track
        if chosen is None or not len(timeline):
            self.panel.facts.show_facts(())
            self.bar.hide()
            return
        self.bar.say(range_headline(track, timeline, *chosen))
        self._place()
        if self.panel.isVisible():
            welcome = self._desk.session.live.welcome
            kinds = () if welcome is None else tuple(kind.name for kind in welcome.events)
            self.panel.facts.show_facts(range_facts(track, timeline, kinds, *chosen))

    def _place(self) -> None:
        """Put the bar beside the range; not while one draws it."""
        chosen = self.chosen
        drawing = bool(QGuiApplication.mouseButtons() & Qt.MouseButton.LeftButton)
        ends = None if chosen is None or drawing else self._strip.range_in_view(*chosen)
        if ends is None:
            self.bar.hide()
        else:
            self.bar.put_beside(*ends, self._strip.body.adjusted(_SCALE, 0, 0, 0))
            self.bar.show()

    def _show_memory(self) -> None:
        self._strip.show_memory(self.feed.track)

    def stop(self) -> None:
        """Stop, since the window closes; no thread is left."""
        self.feed.stop()

    def gestures(self) -> tuple[Gesture, ...]:
        """Mouse and key gestures on the timeline."""
        return (
            Gesture(_TIME, "Drag over the memory in the timeline", "choose a range"),
            Gesture(
                _TIME,
                "Shift + arrows, page keys, Home, End on the timeline",
                "choose a range from the event on display",
            ),
            Gesture(_TIME, "Delete on the timeline", "no range"),
            Gesture(_TIME, "+ − 0, pinch on the timeline", "zoom in, zoom out, whole session"),
        )

    def actions(self) -> tuple[Action, ...]:
        """Actions about the range."""
        return (
            Action(
                name="time.compare-range",
                menu=_TIME,
                text="&Difference of the range",
                about="difference between the first and the last event of the range",
                run=self.compare_ends,
                keys=("Shift+R",),
                enabled=lambda: self.may_compare,
                why_not=_NO_RANGE,
                begins_group=True,
            ),
            Action(
                name="time.range-statistics",
                menu=_TIME,
                text="S&tatistics of the range",
                about="statistics of the range: growth of memory, collections, events",
                run=self.show_statistics,
                enabled=lambda: self.chosen is not None,
                why_not=_NO_RANGE,
            ),
            Action(
                name="time.zoom-range",
                menu=_TIME,
                text="&Zoom to the range",
                about="show only the range in the timeline",
                run=self.zoom,
                keys=("Z",),
                enabled=lambda: self.chosen is not None,
                why_not=_NO_RANGE,
            ),
        )
