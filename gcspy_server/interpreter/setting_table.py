"""The settings for the controller: the chosen values, when they applied, and the cost of each value.

The session's thread sets, the driver's thread takes and reports: each call holds one lock briefly.
A value is chosen at any time and *taken* between events, so that an event is gathered with one
value from beginning to end. Knows numbers and nanoseconds; does not know the effect of a setting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.model import Mode
from gcspy_protocol.settings import MOST_CHOICES, MOST_SETTINGS, Setting, SettingKind, Settings

__all__ = ["SettingTable"]

_MOVED = 5
"""A cost that moved by one part in this many since it was sent is sent again; less is noise."""

_COSTS_APART_NANOS = 1_000_000_000
"""Time between two messages for nothing but costs, which people read."""


class SettingTable:
    """The settings of one server. May be used from two threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settings: dict[int, Setting] = {}
        self._taken: dict[int, int] = {}
        self._refusals: dict[int, Callable[[int], str]] = {}
        self._told_costs: dict[tuple[int, int], int] = {}
        self._told_nanos: int | None = None

    def add(self, setting: Setting, *, refusal: Callable[[int], str] | None = None) -> None:
        """Add a setting.

        Args:
            setting: The setting, with the initial value.
            refusal: Called, without the lock and in the thread that chooses, for the reason why a
                value is impossible now; empty: it is possible.

        Raises:
            LocalProtocolError: There are too many, its number is taken, or it contradicts itself.
        """
        what = f"setting {setting.id} ({setting.name!r})"
        values = setting.maximum - setting.minimum + 1
        with self._lock:
            if setting.id in self._settings:
                raise LocalProtocolError(f"{what}: the number is already used")
            if len(self._settings) >= MOST_SETTINGS:
                raise LocalProtocolError(f"{what}: there are {MOST_SETTINGS} already")
            if values < 1 or not setting.allows(setting.value):
                raise LocalProtocolError(
                    f"{what}: {setting.value} is not between {setting.minimum} and {setting.maximum}"
                )
            if (
                setting.kind is SettingKind.CHOICE
                and not len(setting.choices) == values <= MOST_CHOICES
            ):
                raise LocalProtocolError(
                    f"{what}: {len(setting.choices)} names for {values} values"
                )
            costs = (
                (0,) * values
                if values <= MOST_CHOICES and setting.kind is not SettingKind.ACTION
                else ()
            )
            self._settings[setting.id] = replace(setting, costs=costs, applies=0)
            if refusal is not None:
                self._refusals[setting.id] = refusal

    def set(self, ident: int, value: int) -> None:
        """Choose a value.

        Raises:
            LocalProtocolError: There is no such setting, or the value is invalid, or impossible
                now.
        """
        with self._lock:
            setting = self._settings.get(ident)
        if setting is None:
            raise LocalProtocolError(f"setting {ident}: it does not exist")
        if not setting.allows(value):
            raise LocalProtocolError(
                f"setting {setting.name!r} to {value}: it goes from {setting.minimum} to {setting.maximum}"
            )
        refusal = self._refusals.get(ident)
        why = "" if refusal is None else refusal(value)
        if why:
            raise LocalProtocolError(
                f"setting {setting.name!r} to {setting.name_of(value)!r}: {why}"
            )
        with self._lock:
            self._settings[ident] = replace(self._settings[ident], value=value, applies=0)

    @property
    def mode(self) -> Mode | None:
        """Mode of monitoring, if it is a setting: the value that was last in effect."""
        with self._lock:
            modes = [
                replace(one, value=self._taken.get(one.id, one.value)).mode
                for one in self._settings.values()
                if one.modes
            ]
        return modes[0] if modes else None

    def value(self, ident: int) -> int | None:
        """Return the current value for gathering: the one taken last, or chosen if none was taken; None: there is no such setting."""
        with self._lock:
            setting = self._settings.get(ident)
            return None if setting is None else self._taken.get(ident, setting.value)

    def take(self, ident: int) -> int:
        """Return the chosen value; what is gathered from now on is gathered with it.

        Raises:
            LocalProtocolError: There is no such setting.
        """
        with self._lock:
            if ident not in self._settings:
                raise LocalProtocolError(f"setting {ident}: it does not exist")
            self._taken[ident] = self._settings[ident].value
            return self._taken[ident]

    def gathered(
        self,
        sequence: int,
        gather_nanos: int,
        now_nanos: int,
        most: Mapping[int, int] | None = None,
    ) -> bool:
        """Note that a snapshot was gathered with the taken values.

        Args:
            sequence: Its number.
            gather_nanos: Its cost.
            now_nanos: The time, monotonic.
            most: By setting, the greatest value that it was gathered with, if that was limited.

        Returns:
            Whether to inform clients: a value applied for the first time or has a cost for the
            first time, or a cost moved by a fifth, and none was sent within the last second.
        """
        news = moved = False
        with self._lock:
            for ident, taken in self._taken.items():
                value = taken if most is None else min(taken, most.get(ident, taken))
                setting = self._settings[ident]
                place = value - setting.minimum
                if place < len(setting.costs):
                    before = self._told_costs.get((ident, place), 0)
                    news = news or (not before and gather_nanos > 0)
                    moved = moved or _MOVED * abs(gather_nanos - before) >= before > 0
                    costs = (*setting.costs[:place], gather_nanos, *setting.costs[place + 1 :])
                    setting = replace(setting, costs=costs)
                if not setting.applies and setting.value == value:
                    setting = replace(setting, applies=sequence)
                    news = True
                self._settings[ident] = setting
            since = None if self._told_nanos is None else now_nanos - self._told_nanos
            if not news and not (moved and (since is None or since >= _COSTS_APART_NANOS)):
                return False
            self._told_nanos = now_nanos
            self._told_costs = {
                (ident, place): cost
                for ident, setting in self._settings.items()
                for place, cost in enumerate(setting.costs)
            }
            return True

    def announcement(self) -> Settings:
        """The message for clients."""
        with self._lock:
            return Settings(settings=tuple(self._settings.values()))
