"""The row of buttons that moves through time: where one is, which way and how fast it goes.

Knows the buttons and their texts; does not know which part obeys them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gcspy_protocol.playback import Direction, Pace, SetPlayback
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QSpinBox, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.strip import moment_text
from gcspy_client.view.icons import icon
from gcspy_client.view.plain.text import set_accessible_name, set_tip
from gcspy_client.view.plain.widgets import PlainPushButton, PlainToolButton
from gcspy_client.view.theme import numbers_font, tokens
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["PlaybackBar", "TransportFacts", "position_words", "speed_text"]

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)
_PACES = (
    (Pace.ORIGINAL, "as recorded", "Time between events as recorded"),
    (
        Pace.PROGRAM,
        "program's time",
        "Time between events without gathering and holding: the program's own time",
    ),
    (Pace.FIXED, "fixed delay", "Constant time between events"),
)
_MOST_MILLIS = 3_600_000
_NARROWEST = 420


@dataclass(frozen=True, kw_only=True, slots=True)
class TransportFacts:
    """Facts that the transport row displays.

    Attributes:
        usable: Whether one can move through time at all.
        reason: Why not.
        number: Number of the event on display; 0: none.
        first: Number of the first event that can be gone to.
        last: Of the last.
        since_nanos: From the first event to the one on display; None where it is unknown.
        running: Whether the playback runs.
        live_view: Whether this is a live session, and not a recording.
        live: Whether the display is live.
        behind: Events that came after it.
        manner: How it is played.
        chosen: Whether there is a range to loop over.
        may_save: Whether there is anything that can be saved.
    """

    usable: bool = False
    reason: str = "no event received yet"
    number: int = 0
    first: int = 0
    last: int = 0
    since_nanos: int | None = None
    running: bool = False
    live_view: bool = True
    live: bool = False
    ended: bool = False
    behind: int = 0
    manner: SetPlayback = field(default_factory=SetPlayback)
    chosen: bool = False
    may_save: bool = False


def speed_text(speed: float) -> str:
    """A speed as it is chosen: ``0.25×``, ``10×``."""
    return f"{speed:g}×"


def position_words(facts: TransportFacts) -> str:
    """Return the position as text: ``event 1,234 of 10,000 · 12.3 s``."""
    if not facts.number:
        return "no event yet"
    since = "" if facts.since_nanos is None else f"  ·  {moment_text(facts.since_nanos)}"
    return f"event {facts.number:,} of {facts.last:,}{since}"


class PlaybackBar(QWidget):
    """Buttons and choosers.

    Signals:
        pressed: A button was pressed: the name of its action.
        manner_chosen: Play in this manner; a `SetPlayback`.
        axis_chosen: Whether the axis of the timeline is time.

    Args:
        theme: The theme of its colours.
    """

    pressed = Signal(str)
    manner_chosen = Signal(object)
    axis_chosen = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._facts = TransportFacts()
        self._filling = False
        self._icons: dict[PlainToolButton, str] = {}
        self.first = self._button("first", "time.first")
        self.back = self._button("back", "time.back")
        self.reverse = self._button("reverse", "time.reverse")
        self.play = self._button("play", "time.play")
        self.forward = self._button("forward", "time.forward")
        self.last = self._button("last", "time.last")
        self.loop = self._button("loop", "time.loop")
        self.loop.setCheckable(True)
        self.mark = self._button("flag", "time.bookmark")
        self.position = ElidedLabel()
        self.position.setFont(numbers_font(self.font()))
        self.position.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.badge = PlainPushButton("LIVE")
        self.badge.setProperty("badge", "live")
        self.badge.clicked.connect(lambda: self.pressed.emit("time.last"))
        self.speed = Chooser()
        self.speed.setMinimumContentsLength(5)
        set_tip(self.speed, "Playback speed")
        self.pace = Chooser()
        self.pace.setMinimumContentsLength(12)
        self.interval = QSpinBox()
        self.axis = Chooser()
        self.axis.setMinimumContentsLength(9)
        self.save = PlainPushButton("Save session…")
        self.save.clicked.connect(lambda: self.pressed.emit("time.save"))
        self._giving_way = (self.axis, self.save, self.pace)
        self._fill()
        self._build()
        self._wire()

    def _button(self, shape: str, action: str) -> PlainToolButton:
        button = PlainToolButton()
        button.setIconSize(QSize(16, 16))
        button.setFixedSize(28, 26)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setObjectName(action)
        set_accessible_name(button, action.removeprefix("time."))
        button.clicked.connect(lambda _checked=False: self.pressed.emit(action))
        self._icons[button] = shape
        return button

    def _fill(self) -> None:
        for speed in SPEEDS:
            self.speed.add(speed_text(speed), speed)
        for pace, words, about in _PACES:
            self.pace.add(words, pace)
            self.pace.setItemData(self.pace.count() - 1, about, Qt.ItemDataRole.ToolTipRole)
        self.interval.setRange(0, _MOST_MILLIS)
        self.interval.setSuffix(" ms")
        set_tip(self.interval, "Time between events")
        self.interval.setKeyboardTracking(False)
        self.axis.add("by time", True)
        self.axis.add("by event", False)
        set_tip(self.axis, "Unit of the timeline: time or events")

    def _build(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(3)
        for button in (self.first, self.back, self.reverse, self.play, self.forward, self.last):
            row.addWidget(button)
        row.addSpacing(8)
        row.addWidget(self.badge)
        row.addSpacing(8)
        row.addWidget(self.position, 1)
        row.addSpacing(8)
        for widget in (
            self.pace,
            self.speed,
            self.interval,
            self.loop,
            self.axis,
            self.mark,
            self.save,
        ):
            row.addWidget(widget)
        for widget in (self.badge, self.speed, self.pace, self.axis, self.save):
            widget.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.interval.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.set_theme(self._theme)

    def _wire(self) -> None:
        self.speed.activated.connect(self._choose_manner)
        self.pace.activated.connect(self._choose_manner)
        self.interval.valueChanged.connect(self._choose_manner)
        self.axis.activated.connect(
            lambda _index: self.axis_chosen.emit(bool(self.axis.currentData()))
        )

    # --------------------------------------------------------------------------- room

    def minimumSizeHint(self) -> QSize:
        """Least size: that of the buttons, since the choosers are hidden in a narrow window."""
        return QSize(_NARROWEST, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the widgets for which there is no room, the least important first."""
        super().resizeEvent(event)
        for widget in self._giving_way:
            widget.setVisible(True)
        for widget in self._giving_way:
            if super().minimumSizeHint().width() <= self.width():
                return
            widget.setVisible(False)

    # ---------------------------------------------------------------------- refreshing

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        for button in self._icons:
            self._dress(button)

    def set_tips(self, tips: Iterable[tuple[str, str]]) -> None:
        """Set the tips of the buttons, by the names of their actions."""
        by_name = dict(tips)
        for button in self._icons:
            set_tip(button, by_name.get(button.objectName(), ""))
        set_tip(self.save, by_name.get("time.save", ""))
        set_tip(self.badge, by_name.get("time.last", ""))

    def _dress(self, button: PlainToolButton) -> None:
        t = tokens(self._theme)
        lit = button.isCheckable() and button.isChecked()
        button.setIcon(icon(self._icons[button], t.on_accent if lit else t.text, t.border))

    def show_facts(self, facts: TransportFacts) -> None:
        """Update all texts, and enable possible buttons."""
        self._facts = facts
        backwards = facts.manner.direction is Direction.BACKWARDS
        for button in (self.first, self.back, self.reverse, self.play, self.forward, self.last):
            button.setEnabled(facts.usable)
        self.forward.setEnabled(facts.usable and not facts.live)
        self.last.setEnabled(facts.usable and not facts.live)
        # A live session plays forwards: the button pauses the display.
        forwards = facts.live or (facts.running and not backwards)
        self._set_shape(self.play, "pause" if forwards else "play")
        self._set_shape(
            self.reverse, "pause" if facts.running and backwards and not facts.live else "reverse"
        )
        self.loop.setEnabled(facts.usable)
        if self.loop.isChecked() != (facts.manner.loop is not None):
            self.loop.setChecked(facts.manner.loop is not None)
        self._dress(self.loop)
        self.mark.setEnabled(facts.number > 0)
        self.save.setEnabled(facts.may_save)
        self.save.setText("Save session…" if facts.live_view else "Save part…")
        self.position.setText(
            position_words(facts) if facts.usable or facts.number else facts.reason
        )
        self._say_badge(facts)
        self._say_manner(facts.manner)
        for chooser in (self.speed, self.pace, self.interval):
            chooser.setEnabled(facts.usable)

    def _set_shape(self, button: PlainToolButton, shape: str) -> None:
        if self._icons[button] != shape:
            self._icons[button] = shape
            self._dress(button)

    def _say_badge(self, facts: TransportFacts) -> None:
        self.badge.setVisible(facts.live_view)
        self.badge.setEnabled(facts.usable and not facts.live)
        if facts.live and facts.ended:
            text, kind = "ENDED", "none"  # nothing lives there any more
        elif facts.live:
            text, kind = "●  LIVE", "live"
        elif facts.ended:
            text, kind = f"{facts.behind:,} before the end  ·  go there", "behind"
        else:
            text, kind = f"{facts.behind:,} behind  ·  go live", "behind"
        if not facts.number:
            text, kind = "LIVE", "none"
        self.badge.setText(text)
        if self.badge.property("badge") != kind:
            self.badge.setProperty("badge", kind)
            self.badge.style().unpolish(self.badge)
            self.badge.style().polish(self.badge)

    def _say_manner(self, manner: SetPlayback) -> None:
        self._filling = True
        fixed = manner.pace is Pace.FIXED
        self.speed.setVisible(not fixed)
        self.interval.setVisible(fixed)
        self.pace.setCurrentIndex(self.pace.findData(manner.pace))
        if not self.interval.hasFocus():
            self.interval.setValue(manner.interval_millis)
        speeds = [self.speed.itemData(i) for i in range(self.speed.count())]
        if manner.speed not in speeds:
            self.speed.add(speed_text(manner.speed), manner.speed)  # another viewer's choice
            speeds.append(manner.speed)
        self.speed.setCurrentIndex(speeds.index(manner.speed))
        self._filling = False

    def _choose_manner(self) -> None:
        if not self._filling:
            self.manner_chosen.emit(
                replace(
                    self._facts.manner,
                    pace=Pace(self.pace.currentData()),  # Qt keeps its text only
                    speed=self.speed.currentData(),
                    interval_millis=self.interval.value(),
                )
            )
