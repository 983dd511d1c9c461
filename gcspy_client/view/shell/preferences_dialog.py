"""The dialog of preferences: each change is seen at once, so there is nothing to apply.

Knows what can be preferred and its words; does not know who obeys, nor where it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gcspy_protocol.model import Stream
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import OVERFLOW, UNKNOWN, UNUSED, ZERO, Palette, Ramp, Theme
from gcspy_client.model.palettes import PaletteChoice
from gcspy_client.view.plain.text import set_tip, set_window_title
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.spaces.legend import RampStrip, Swatch
from gcspy_client.view.widgets.check_box import CheckBox
from gcspy_client.view.widgets.chooser import Chooser

__all__ = ["Preference", "PreferencesDialog"]

_RAMPS = {
    Ramp.VIOLET: "Violet to yellow",
    Ramp.EMBER: "Ember",
    Ramp.ICE: "Ice: few hues",
    Ramp.GREY: "Grey",
    Ramp.PROJECTOR: "Projector: strong grey",
}
_THEMES: dict[Theme | None, str] = {
    None: "Same as system",
    Theme.DARK: "Dark",
    Theme.LIGHT: "Light",
    Theme.CONTRAST_DARK: "High contrast, dark",
    Theme.CONTRAST_LIGHT: "High contrast, light",
}
_STEP = 25


class Preference(Protocol):
    """The preferences, and controls to change them; see `gcspy_client.view.shell.preferences`."""

    def choose_theme(self, theme: Theme | None) -> None:
        """Dress the window."""

    def set_scale(self, percent: int) -> None:
        """Scale everything."""

    def choose_palette(self, ramp: Ramp | None, *, space: str = "", stream: str = "") -> None:
        """Choose colours."""

    def follow_hints(self, *, wanted: bool) -> None:
        """Set whether drivers choose hues."""

    def set_budgets(self, *, memory_mib: int, disk_gib: int) -> None:
        """Set the memory and the disk budget of the time shift."""

    def set_restores_layout(self, *, wanted: bool) -> None:
        """Whether the layout is restored."""

    def reset(self) -> None:
        """Prefer what the program comes with."""

    def streams(self) -> Sequence[tuple[str, str]]:
        """Names of spaces and streams."""

    @property
    def theme(self) -> Theme | None:
        """The theme; None: the system's."""

    @property
    def scale(self) -> int:
        """Percent."""

    @property
    def is_scaled_wholly(self) -> bool:
        """Whether nothing waits for the next start."""

    @property
    def palettes(self) -> PaletteChoice:
        """The colours."""

    @property
    def memory_mib(self) -> int:
        """Memory."""

    @property
    def disk_gib(self) -> int:
        """Disk."""

    @property
    def restores_layout(self) -> bool:
        """Whether the layout is restored."""


class _Preview(QWidget):
    """A sample of a palette: nothing, little to much, too much, unknown."""

    def __init__(self) -> None:
        super().__init__()
        self.ramp = RampStrip()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        self._swatches = []
        for code, words in (
            (UNUSED, "unused"),
            (ZERO, "zero"),
            (OVERFLOW, "above the maximum"),
            (UNKNOWN, "unknown"),
        ):
            swatch = Swatch()
            set_tip(swatch, words)
            self._swatches.append((swatch, code))
        for swatch, _code in self._swatches[:2]:
            row.addWidget(swatch)
        row.addWidget(self.ramp, 1)
        for swatch, _code in self._swatches[2:]:
            row.addWidget(swatch)

    def show_palette(self, palette: Palette) -> None:
        """Preview a palette."""
        self.ramp.show_palette(palette)
        for swatch, code in self._swatches:
            swatch.show_code(palette, code)


class _Amounts(Chooser):
    """Usual amounts, and whichever is preferred besides.

    Args:
        usual: Those that are always offered.
        words: Returns the name of one.
    """

    def __init__(self, usual: Sequence[int], words: Callable[[int], str]) -> None:
        super().__init__()
        self._amounts, self._words = list(usual), words

    def choose(self, amount: int) -> None:
        """Choose an amount."""
        self._amounts = sorted({*self._amounts, amount})
        self.clear()
        self.addItems([self._words(one) for one in self._amounts])
        self.setCurrentIndex(self._amounts.index(amount))

    def amount(self) -> int:
        """The amount that is chosen."""
        return self._amounts[max(0, self.currentIndex())]


class PreferencesDialog(QDialog):
    """The dialog.

    Args:
        preferred: The preferences, which apply the changes.
    """

    def __init__(self, preferred: Preference, parent: QWidget) -> None:
        super().__init__(parent)
        self._preferred = preferred
        self._filling = False
        set_window_title(self, "Preferences")
        self.setMinimumWidth(520)
        self.theme, self.palette_of_all, self.stream, self.palette_of_one = (
            Chooser() for _ in range(4)
        )
        self.scale = QSlider(Qt.Orientation.Horizontal)
        self.percent, self.scale_words = PlainLabel(), PlainLabel()
        self.hints = CheckBox("Streams keep the colours of their drivers")
        self.preview, self.preview_of_one = _Preview(), _Preview()
        self.memory = _Amounts(
            (64, 128, 256, 512, 1024, 2048, 4096),
            lambda mib: f"{mib} MiB" if mib < 1024 else f"{mib // 1024} GiB",
        )
        self.disk = _Amounts(
            (0, 1, 2, 4, 8, 16, 32, 64), lambda gib: f"{gib} GiB" if gib else "none"
        )
        self.layouts = CheckBox("Restore panels and window")
        self.defaults = PlainPushButton("Defaults")
        self._build()
        self._fill()
        self._wire()

    def _build(self) -> None:
        self.scale.setRange(100 // _STEP, 200 // _STEP)
        self.scale.setPageStep(1)
        self.scale.setTickPosition(QSlider.TickPosition.TicksBelow)
        self.scale_words.setProperty("dim", "true")
        self.scale_words.setWordWrap(True)
        self.percent.setMinimumWidth(self.percent.fontMetrics().horizontalAdvance("200 %"))
        scale = QHBoxLayout()
        scale.addWidget(self.scale, 1)
        scale.addWidget(self.percent)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(10)
        column.addWidget(
            _section("Appearance", ("Theme", self.theme), ("Scale", scale), ("", self.scale_words))
        )
        column.addWidget(
            _section(
                "Colours of tiles",
                ("Palette", self.palette_of_all),
                ("", self.preview),
                ("", self.hints),
                ("One stream", self.stream),
                ("Palette of this stream", self.palette_of_one),
                ("", self.preview_of_one),
            )
        )
        column.addWidget(
            _section("Stored history", ("Memory", self.memory), ("Temporary files", self.disk))
        )
        column.addWidget(_section("Window", ("", self.layouts)))
        close = PlainPushButton("Close")
        close.setProperty("primary", "true")
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addWidget(self.defaults)
        buttons.addStretch(1)
        buttons.addWidget(close)
        column.addLayout(buttons)

    def _fill(self) -> None:
        """Show what is preferred."""
        self._filling = True
        wanted = self._preferred
        for chooser in (self.theme, self.palette_of_all, self.palette_of_one):
            chooser.clear()
        for theme, words in _THEMES.items():
            self.theme.add(words, theme)
        self.theme.setCurrentIndex(list(_THEMES).index(wanted.theme))
        self.scale.setValue(wanted.scale // _STEP)
        self.palette_of_one.add("Default", None)
        for ramp, words in _RAMPS.items():
            self.palette_of_all.add(words, ramp)
            self.palette_of_one.add(words, ramp)
        self.palette_of_all.setCurrentIndex(list(_RAMPS).index(wanted.palettes.ramp))
        self.hints.setChecked(wanted.palettes.hints)
        chosen = self.stream.currentIndex()
        self.stream.clear()
        for names in wanted.streams():
            self.stream.add(" · ".join(names), names)
        self.stream.setCurrentIndex(max(0, chosen) if self.stream.count() else -1)
        self.memory.choose(wanted.memory_mib)
        self.disk.choose(wanted.disk_gib)
        self.layouts.setChecked(wanted.restores_layout)
        self._filling = False
        self._show()

    def _wire(self) -> None:
        self.theme.currentIndexChanged.connect(self._choose_theme)
        self.scale.valueChanged.connect(self._choose_scale)
        self.palette_of_all.currentIndexChanged.connect(self._choose_palette)
        self.palette_of_one.currentIndexChanged.connect(self._choose_own_palette)
        self.stream.currentIndexChanged.connect(self._show)
        self.hints.toggled.connect(self._choose_hints)
        for amounts in (self.memory, self.disk):
            amounts.currentIndexChanged.connect(self._choose_budgets)
        self.layouts.toggled.connect(self._choose_layout)
        self.defaults.clicked.connect(self._reset)

    def _show(self, _changed: int = 0) -> None:
        """Texts and previews that depend on the choice."""
        wanted = self._preferred
        self.percent.setText(f"{wanted.scale} %")
        self.scale_words.setText(
            "For projectors and small print on large screens."
            if wanted.is_scaled_wholly
            else "Takes effect at the next start, or in a new window (Session ▸ New window, Ctrl+Shift+N)."
        )
        theme = self._shown_theme()
        plain = Stream(id=1, name="")
        self.preview.show_palette(wanted.palettes.palette("", plain, theme))
        names = self.stream.currentData()
        for part in (self.stream, self.palette_of_one, self.preview_of_one):
            part.setEnabled(names is not None)
        if names is None:
            set_tip(self.stream, "Open a session to list its streams")
            return
        own = wanted.palettes.by_stream.get(tuple(names))
        filling, self._filling = self._filling, True
        self.palette_of_one.setCurrentIndex(0 if own is None else 1 + list(_RAMPS).index(own))
        self._filling = filling
        self.preview_of_one.show_palette(
            wanted.palettes.palette(names[0], Stream(id=1, name=names[1]), theme)
        )

    def _shown_theme(self) -> Theme:
        dark = self.palette().window().color().lightness() < 128
        return Theme.DARK if dark else Theme.LIGHT

    # ------------------------------------------------------------------------- choosing

    def _choose_theme(self, index: int) -> None:
        if not self._filling:
            self._preferred.choose_theme(
                list(_THEMES)[index]
            )  # Qt makes plain texts of enumerations of texts
            self._show()

    def _choose_scale(self, step: int) -> None:
        if not self._filling:
            self._preferred.set_scale(step * _STEP)
            self._show()
            self.adjustSize()

    def _choose_palette(self, index: int) -> None:
        if not self._filling:
            self._preferred.choose_palette(list(_RAMPS)[index])
            self._show()

    def _choose_own_palette(self, index: int) -> None:
        names = self.stream.currentData()
        if not self._filling and names is not None:
            self._preferred.choose_palette((None, *_RAMPS)[index], space=names[0], stream=names[1])
            self._show()

    def _choose_hints(self, wanted: bool) -> None:
        if not self._filling:
            self._preferred.follow_hints(wanted=wanted)
            self._show()

    def _choose_budgets(self, _index: int) -> None:
        if not self._filling:
            self._preferred.set_budgets(
                memory_mib=self.memory.amount(), disk_gib=self.disk.amount()
            )

    def _choose_layout(self, wanted: bool) -> None:
        if not self._filling:
            self._preferred.set_restores_layout(wanted=wanted)

    def _reset(self) -> None:
        self._preferred.reset()
        self._fill()


def _section(title: str, *rows: tuple[str, QWidget | QHBoxLayout]) -> QFrame:
    card = QFrame()
    card.setProperty("card", "true")
    grid = QGridLayout(card)
    grid.setContentsMargins(12, 10, 12, 12)
    grid.setHorizontalSpacing(12)
    grid.setVerticalSpacing(8)
    grid.setColumnStretch(1, 1)
    caption = PlainLabel(title)
    caption.setProperty("caption", "true")
    grid.addWidget(caption, 0, 0, 1, 2)
    for number, (words, part) in enumerate(rows, 1):
        label = PlainLabel(words)
        label.setMinimumWidth(104)
        grid.addWidget(label, number, 0)
        if isinstance(part, QWidget):
            grid.addWidget(part, number, 1)
        else:
            grid.addLayout(part, number, 1)
    return card
