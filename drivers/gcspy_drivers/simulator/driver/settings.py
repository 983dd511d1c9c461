"""The settings of a running simulation: level, pace, slow motion, size of tiles, and the knobs of collector and program.

They are settings of the driver API: the window shows sliders and choices for them. The simulation
applies changes between two steps of the program, so a run with the same changes at the same steps
is the same run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gcspy_drivers.simulator.driver.options import LEVELS, SimulationOptions
from gcspy_drivers.simulator.plan import WHOLE, Choice, Knob, Plan
from gcspy_drivers.simulator.programs.program import Program
from gcspy_server.api import LEVEL, Server, Setting, SettingKind

__all__ = ["PACES_MILLIS", "SLOW_UNITS", "TILE_BYTES", "LiveSettings"]

PACES_MILLIS: Final = (0, 10, 50, 100, 250, 1000)
SLOW_UNITS: Final = (0, 1000, 100, 10, 1)
TILE_BYTES: Final = tuple(1 << bits for bits in range(5, 21))

_PACE, _SLOW, _TILE, _COLLECT = 10, 11, 12, 13
_FIRST_KNOB = 20


@dataclass
class _Turned:
    """A knob as a setting: which it is, what it was turned to last, and whose it is."""

    ident: int
    knob: Knob
    value: int
    turn: Callable[[str, int | str], None]

    def chosen(self, value: int) -> int | str:
        """The value as the knob wants it."""
        return self.knob.values.names[value] if isinstance(self.knob.values, Choice) else value


class LiveSettings:
    """The settings of one session.

    Args:
        server: Whose settings they become.
        options: Initial values.

    Attributes:
        pace_millis: Between two events.
        tile_bytes: Of a tile of the heap.
    """

    def __init__(
        self, server: Server, options: SimulationOptions, plan: Plan, program: Program
    ) -> None:
        self._server, self._plan = server, plan
        self.pace_millis = options.pace_millis
        self.tile_bytes = options.tile_size
        paces, slows = (
            sorted({*PACES_MILLIS, options.pace_millis}),
            sorted({*SLOW_UNITS, options.slow}, reverse=True),
        )
        slows = [0, *(one for one in slows if one)]
        tiles = sorted({*TILE_BYTES, options.tile_size})
        least = next(
            place for place, size in enumerate(tiles) if plan.heap.end * 8 // size <= 1 << 20
        )
        self._paces, self._slows, self._tiles = tuple(paces), tuple(slows), tuple(tiles[least:])
        self._add(
            LEVEL, "Level", "How much is gathered at each event.", options.level, LEVELS, first=1
        )
        self._add(
            _PACE,
            "Pace",
            "How long to wait between two events.",
            paces.index(options.pace_millis),
            tuple(map(_pace_words, paces)),
        )
        if plan.kinds:
            self._add(
                _SLOW,
                "Slow motion",
                "Events within a collection.",
                slows.index(options.slow),
                tuple(map(_slow_words, slows)),
            )
        self._add(
            _TILE,
            "Tile size",
            "Bytes of heap a tile.",
            self._tiles.index(options.tile_size),
            tuple(map(_size_words, self._tiles)),
        )
        if plan.kinds:
            about = "Collect now, before the program's next step."
            server.add_setting(
                Setting(
                    id=_COLLECT,
                    name="Collect now",
                    about=about,
                    kind=SettingKind.ACTION,
                    value=0,
                    minimum=0,
                    maximum=(1 << 31) - 1,
                )
            )
        self._collected = 0
        self._told: dict[str, int] = {}
        self._knobs: list[_Turned] = []
        for turn, knobs in ((plan.turn, plan.knobs()), (program.turn, program.knobs())):
            for knob in knobs:
                self._add_knob(knob, turn)

    def _add(
        self,
        ident: int,
        name: str,
        about: str,
        value: int,
        choices: tuple[str, ...],
        *,
        first: int = 0,
    ) -> None:
        self._server.add_setting(
            Setting(
                id=ident,
                name=name,
                about=about,
                value=value,
                minimum=first,
                maximum=first + len(choices) - 1,
                choices=choices,
            )
        )

    def _add_knob(self, knob: Knob, turn: Callable[[str, int | str], None]) -> None:
        ident = _FIRST_KNOB + len(self._knobs)
        if isinstance(knob.values, Choice):
            value = knob.values.names.index(str(knob.value))
            self._add(ident, knob.title, "", value, knob.values.names)
        else:
            low, high = knob.values
            value = min(max(int(knob.value), low), high)
            about = f"In {knob.unit}." if knob.unit else ""
            self._server.add_setting(
                Setting(
                    id=ident,
                    name=knob.title,
                    about=about,
                    kind=SettingKind.RANGE,
                    value=value,
                    minimum=low,
                    maximum=high,
                )
            )
        self._knobs.append(_Turned(ident, knob, value, turn))

    def take_view(self) -> int:
        """Apply the settings of observation: before each event.

        Returns:
            The level.
        """
        self.pace_millis = self._paces[self._server.take_setting(_PACE)]
        self.tile_bytes = self._tiles[self._server.take_setting(_TILE)]
        if self._plan.kinds:
            self._plan.stride = self._slows[self._server.take_setting(_SLOW)] or WHOLE
        return self._server.take_setting(LEVEL)

    def news(self) -> list[tuple[str, int]]:
        """Return the values that changed since the last call, by name, without one-time actions and the pace."""
        now = {
            one.name: one.value
            for one in self._server.settings
            if one.kind is not SettingKind.ACTION and one.id != _PACE
        }
        found = [
            (name, value)
            for name, value in now.items()
            if self._told.get(name) not in (None, value)
        ]
        self._told = now
        return found

    def choose(self, name: str, value: int) -> None:
        """Choose a value by the setting's name; what there is not here, or cannot be it, is left out."""
        for one in self._server.settings:
            if one.name == name and one.allows(value):
                self._server.set_setting(one.id, value)

    def take_knobs(self) -> None:
        """Take what changes the run: between two steps of the program."""
        self.take_view()
        for one in self._knobs:
            value = self._server.take_setting(one.ident)
            if value != one.value:
                one.value = value
                one.turn(one.knob.name, one.chosen(value))
        if self._plan.kinds:
            asked = self._server.take_setting(_COLLECT)
            if asked != self._collected:
                self._collected = asked
                self._plan.collect()


def _pace_words(millis: int) -> str:
    return "as fast as it can" if millis == 0 else f"{1000 / millis:g} events a second"


def _slow_words(units: int) -> str:
    return "off" if units == 0 else "each object" if units == 1 else f"every {units:,} objects"


def _size_words(size: int) -> str:
    return f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} bytes"
