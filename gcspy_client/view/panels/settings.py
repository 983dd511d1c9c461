"""The session's settings in a panel: a slider for a range, a choice, a button for an action; for those that no other panel shows.

The settings of a simulation are here: heap, nursery, tile size, pace and the like. A change takes effect when the program continues: until then the row shows the value that is still in effect. In a
recording the recorded values are shown and cannot be changed.

Knows the settings of the messages; does not know their effects.
"""

from __future__ import annotations

from functools import partial

from gcspy_protocol.settings import SetSetting, Setting, SettingKind
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QSlider, QSpinBox, QWidget

from gcspy_client.model.panels import cost
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.cost import CostPart
from gcspy_client.view.part import Part
from gcspy_client.view.plain.text import set_accessible_name, set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.widgets.chooser import Chooser

__all__ = ["SettingPart", "SettingsPanel"]

_MOST = (1 << 31) - 1
_STEPS = 200
"""Steps of a slider; values between two steps are entered in the field beside it."""


class _Row(QObject):
    """One setting."""

    requested = Signal(int, int)

    def __init__(self, setting: Setting, parent: QWidget) -> None:
        super().__init__(parent)
        self._id = setting.id
        self.setting = setting
        self._holds: int | None = None
        self.label = PlainLabel(setting.name, parent)
        self.widgets: list[QWidget] = []
        self.slider: QSlider | None = None
        self.field: QSpinBox | None = None
        self.chooser: Chooser | None = None
        self.button: PlainPushButton | None = None
        if setting.kind is SettingKind.ACTION:
            self.label.hide()  # the button says it
            self.button = PlainPushButton(setting.name)
            self.button.clicked.connect(self._act)
            self.widgets.append(self.button)
        elif setting.kind is SettingKind.CHOICE:
            self.chooser = Chooser()
            for number, name in enumerate(setting.choices):
                self.chooser.add(name, setting.minimum + number)
            self.chooser.activated.connect(
                lambda place: self.requested.emit(self._id, setting.minimum + place)
            )
            self.widgets.append(self.chooser)
        else:
            self._make_range(setting)
        for widget in self.widgets:
            set_tip(widget, setting.about)
            set_accessible_name(widget, setting.name)

    def _make_range(self, setting: Setting) -> None:
        low, high = max(setting.minimum, -_MOST), min(setting.maximum, _MOST)
        self.slider, self.field = QSlider(Qt.Orientation.Horizontal), QSpinBox()
        self.slider.setRange(low, high)
        self.slider.setPageStep(max(1, (high - low) // 10))
        self.slider.setSingleStep(max(1, (high - low) // _STEPS))
        self.field.setRange(low, high)
        self.field.setSingleStep(max(1, (high - low) // _STEPS))
        self.field.setKeyboardTracking(False)
        self.field.setGroupSeparatorShown(True)
        # Dragging sends nothing before the button is released: the program would run with each
        # value.
        self.slider.setTracking(False)
        self.slider.valueChanged.connect(self._slid)
        self.slider.sliderMoved.connect(self._moved)
        self.field.valueChanged.connect(self._slid)
        self.widgets += [self.slider, self.field]

    def _act(self) -> None:
        after = self.setting.value + 1
        self.requested.emit(self._id, after if self.setting.allows(after) else self.setting.minimum)

    def _moved(self, value: int) -> None:
        if self.field is not None:
            self.field.blockSignals(True)
            self.field.setValue(value)
            self.field.blockSignals(False)

    @property
    def waits(self) -> bool:
        """Whether the chosen value does not apply yet."""
        return (
            self.setting.kind is not SettingKind.ACTION
            and self._holds is not None
            and self.setting.value != self._holds
        )

    def _slid(self, value: int) -> None:
        self.requested.emit(self._id, value)

    def show_setting(self, setting: Setting, why_not: str) -> None:
        """Show its value, unless the user is about to choose another; and the value that still applies if that differs."""
        self.setting = setting
        if setting.applies or self._holds is None:
            self._holds = setting.value
        tip = why_not or setting.about
        if self.waits:
            tip = f"{setting.name_of(setting.value)} from the next event on; until then {setting.name_of(self._holds)}."
        for widget in (self.label, *self.widgets):
            set_tip(widget, tip)
        for widget in self.widgets:
            widget.setEnabled(not why_not)
        self.label.setText(
            f"{setting.name} ({_short(setting, self._holds)} →)" if self.waits else setting.name
        )
        if self.label.property("tone") != (tone := "warning" if self.waits else ""):
            self.label.setProperty("tone", tone)
            self.label.style().unpolish(self.label)
            self.label.style().polish(self.label)
        if self.chooser is not None and not self.chooser.view().isVisible():
            self.chooser.setCurrentIndex(setting.value - setting.minimum)
        if (
            self.slider is not None
            and self.field is not None
            and not self.slider.isSliderDown()
            and not self.field.hasFocus()
        ):
            for part in (self.slider, self.field):
                part.blockSignals(True)
                part.setValue(max(-_MOST, min(_MOST, setting.value)))
                part.blockSignals(False)


def _short(setting: Setting, value: int) -> str:
    name = setting.name_of(value)
    return f"{value:,}" if name == str(value) else name


class SettingsPanel(QFrame):
    """All of them, a row each.

    Signals:
        requested: A setting is to have another value; its number and the value.
    """

    requested = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(10, 7, 10, 9)
        self._grid.setHorizontalSpacing(9)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)
        self.nothing = PlainLabel("This target has no settings.")
        self.nothing.setWordWrap(True)
        self.nothing.setProperty("dim", "true")
        self._grid.addWidget(self.nothing, 0, 0, 1, 3)
        self.soon = PlainLabel("→  takes effect when the program continues: Resume, or Step.", self)
        self.soon.setWordWrap(True)
        self.soon.setProperty("tone", "warning")
        self.soon.hide()
        self.rows: dict[int, _Row] = {}
        self._made_of: tuple[object, ...] = ()

    def show_settings(self, settings: tuple[Setting, ...], why_not: str) -> None:
        """Show these."""
        shape = tuple(
            (one.id, one.name, one.kind, one.minimum, one.maximum, one.choices) for one in settings
        )
        if shape != self._made_of:
            self._made_of = shape
            self._make(settings)
        self.nothing.setVisible(not settings)
        for one in settings:
            self.rows[one.id].show_setting(one, why_not)
        self.soon.setVisible(any(self.rows[one.id].waits for one in settings))

    def _make(self, settings: tuple[Setting, ...]) -> None:
        for row in self.rows.values():
            for widget in (row.label, *row.widgets):
                self._grid.removeWidget(widget)
                widget.hide()
                widget.deleteLater()
            row.deleteLater()
        self.rows = {}
        for place, setting in enumerate(settings, start=1):
            row = _Row(setting, self)
            row.requested.connect(self.requested)
            self.rows[setting.id] = row
            if row.button is not None:
                self._grid.addWidget(row.button, place, 1, 1, 2)
                continue
            self._grid.addWidget(row.label, place, 0)
            spans = 2 if len(row.widgets) == 1 else 1
            for column, widget in enumerate(row.widgets, start=1):
                self._grid.addWidget(widget, place, column, 1, spans)
        self._grid.addWidget(self.soon, len(settings) + 1, 0, 1, 3)


class SettingPart(Part):
    """Settings in a window.

    Attributes:
        panel: The panel.
    """

    def __init__(self, desk: Desk, cost_part: CostPart) -> None:
        super().__init__(desk)
        self._cost = cost_part
        self.panel = SettingsPanel()
        self.panel.requested.connect(self.set)
        about = "settings of the target; of a simulation: heap, nursery, pace, slow motion"
        self._dock = desk.docks.add(
            "settings",
            "Settings",
            self.panel,
            Qt.DockWidgetArea.RightDockWidgetArea,
            keys=("Shift+S",),
            about=about,
        )
        self._dock.seen.connect(partial(self.refresh))

    @property
    def why_not(self) -> str:
        """Why nothing can be set now; empty: it can."""
        session = self._desk.session
        if session.is_playback:
            return "The settings of a recording cannot be changed."
        return self._cost.why_not

    def set(self, setting: int, value: int) -> None:
        """Ask the server to give a setting a value."""
        if not self.why_not:
            self._desk.link.send(SetSetting(id=setting, value=value))

    def refresh(self, *_seen: object) -> None:
        """Update all visible texts."""
        if self._dock.in_sight:
            live = self._desk.session.live
            others = {
                one.id
                for one in (cost.level_setting(live), cost.budget_setting(live))
                if one is not None
            }
            shown = tuple(one for one in live.settings.settings if one.id not in others)
            self.panel.show_settings(shown, self.why_not)
