"""The user's preferences: applied when a window opens and whenever they change, stored at once.

    look.theme      system, dark or light
    look.scale      100 to 200 percent
    look.palettes   which colours streams are painted in
    shift.memory    MiB of memory for looking back
    shift.disk      GiB of temporary files for looking back
    layout.restore  whether panels and window stand where they stood

Knows names, limits and receivers; the dialog knows the input.
"""

from __future__ import annotations

from gcspy_client.model.palette import Ramp, Theme
from gcspy_client.model.palettes import PaletteChoice
from gcspy_client.settings import UserSettings
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.shell.preferences_dialog import PreferencesDialog

__all__ = ["DISK_GIB", "MEMORY_MIB", "SCALES", "Preferences", "scale_of"]

SCALES = (100, 200)
MEMORY_MIB = (16, 16_384, 256)
"""Least, most and usual."""

DISK_GIB = (0, 1_024, 4)
"""Least, most and usual; 0: no temporary files."""

_SCALE, _PALETTES, _MEMORY, _DISK, _RESTORE = (
    "look.scale",
    "look.palettes",
    "shift.memory",
    "shift.disk",
    "layout.restore",
)


def scale_of(settings: UserSettings) -> int:
    """Percent by which everything is to be scaled."""
    return settings.number(_SCALE, SCALES[0], low=SCALES[0], high=SCALES[1])


class Preferences(Part):
    """Applies and stores what the user prefers.

    Args:
        desk: The window's desk.
        scaled: Percent by which the application was scaled when it started.
    """

    def __init__(self, desk: Desk, scaled: int) -> None:
        super().__init__(desk)
        self._settings = desk.settings
        self._scaled = scaled
        self._dialog: PreferencesDialog | None = None
        self._use_palettes(PaletteChoice.from_dict(self._settings.mapping(_PALETTES)))
        self._use_budgets()

    # --------------------------------------------------------------------------- theme

    def use_stored_theme(self) -> None:
        """Dress the window as the user last chose."""
        theme = self._settings.choice("look.theme", Theme)
        if theme is not None:
            self._desk.appearance.choose(theme)

    @property
    def theme(self) -> Theme | None:
        """The user's choice; None follows the system."""
        return next((theme for theme in Theme if self._desk.appearance.is_chosen(theme)), None)

    def choose_theme(self, theme: Theme | None) -> None:
        """Dress the window; None follows the system."""
        self._desk.appearance.choose(theme)

    # --------------------------------------------------------------------------- scale

    @property
    def scale(self) -> int:
        """Percent, as stored."""
        return scale_of(self._settings)

    @property
    def is_scaled_wholly(self) -> bool:
        """Whether this window has that scale: Qt scales once, when the program starts."""
        return self.scale == self._scaled

    def set_scale(self, percent: int) -> None:
        """Scale every window that is opened from now on: text, distances, icons, labels of tiles."""
        self._settings.store(_SCALE, percent)

    # ------------------------------------------------------------------------- palettes

    @property
    def palettes(self) -> PaletteChoice:
        """The palettes of the streams."""
        return self._desk.session.palettes

    def choose_palette(self, ramp: Ramp | None, *, space: str = "", stream: str = "") -> None:
        """Paint one stream in other colours (None: as the others), or without names all that have none of their own."""
        self.palettes.choose(ramp, space=space, stream=stream)
        self._palettes_changed()

    def follow_hints(self, *, wanted: bool) -> None:
        """Whether a stream has the hue that its driver gave it."""
        self.palettes.hints = wanted
        self._palettes_changed()

    def _palettes_changed(self) -> None:
        self._settings.store(_PALETTES, self.palettes.to_dict())
        self._desk.appearance.renew()

    def _use_palettes(self, choice: PaletteChoice) -> None:
        mine = self.palettes  # those who paint hold on to it
        mine.ramp, mine.hints, mine.by_stream = choice.ramp, choice.hints, choice.by_stream

    # --------------------------------------------------------------------- looking back

    @property
    def memory_mib(self) -> int:
        """Memory for looking back."""
        return self._settings.number(_MEMORY, MEMORY_MIB[2], low=MEMORY_MIB[0], high=MEMORY_MIB[1])

    @property
    def disk_gib(self) -> int:
        """Temporary files for looking back."""
        return self._settings.number(_DISK, DISK_GIB[2], low=DISK_GIB[0], high=DISK_GIB[1])

    def set_budgets(self, *, memory_mib: int, disk_gib: int) -> None:
        """Keep more or less, from now on."""
        self._settings.store(_MEMORY, memory_mib)
        self._settings.store(_DISK, disk_gib)
        self._use_budgets()

    def _use_budgets(self) -> None:
        self._desk.shift.set_budgets(
            memory_bytes=self.memory_mib << 20, disk_bytes=self.disk_gib << 30
        )

    # -------------------------------------------------------------------------- layout

    @property
    def restores_layout(self) -> bool:
        """Whether panels and window stand where they stood."""
        return self._settings.flag(_RESTORE, True)

    def set_restores_layout(self, *, wanted: bool) -> None:
        """Whether panels and window of the next window stand where those of this one stand at its end."""
        self._settings.store(_RESTORE, wanted)

    # --------------------------------------------------------------------------- asking

    def reset(self) -> None:
        """Prefer what the program comes with."""
        self.choose_theme(None)
        self.set_scale(SCALES[0])
        self._use_palettes(PaletteChoice())
        self._palettes_changed()
        self.set_budgets(memory_mib=MEMORY_MIB[2], disk_gib=DISK_GIB[2])
        self.set_restores_layout(wanted=True)

    def streams(self) -> list[tuple[str, str]]:
        """Names of space and stream of all that has colours of its own, or could have."""
        spaces = self._desk.session.interpreter.spaces.values()
        there = [
            (space.space.name, stream.name)
            for space in spaces
            for stream in space.space.streams
            if not stream.enum_names
        ]
        return there + [names for names in sorted(self.palettes.by_stream) if names not in there]

    def open(self) -> PreferencesDialog:
        """Show the dialog; the window continues meanwhile, and shows each change."""
        if self._dialog is not None:
            self._dialog.close()
            self._dialog.deleteLater()
        self._dialog = PreferencesDialog(self, self._desk.frame)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog

    def stop(self) -> None:
        """The window closes."""
        if self._dialog is not None:
            self._dialog.close()

    def actions(self) -> tuple[Action, ...]:
        """The dialog of preferences."""
        return (
            Action(
                name="session.preferences",
                menu="&Session",
                text="Pre&ferences…",
                about="theme, scale, colours, limits of the stored history",
                run=self.open,
                keys=("Ctrl+,",),
                begins_group=True,
            ),
        )
