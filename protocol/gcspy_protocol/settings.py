"""Settings: what the controller may choose of how the target is watched, such as the level (SPEC.md section 8.9).

Knows what a setting is; does not know what any of them does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gcspy_protocol.model import Mode

__all__ = ["MOST_CHOICES", "MOST_SETTINGS", "SetSetting", "Setting", "SettingKind", "Settings"]

MOST_SETTINGS = 64
"""Settings of a session."""

MOST_CHOICES = 256
"""Values of a choice."""


class SettingKind(Enum):
    """How a setting is chosen."""

    RANGE = "range"
    """Any integer from the least to the greatest."""
    CHOICE = "choice"
    """One of a few, each with a name."""
    ACTION = "action"
    """Nothing is chosen: setting it does something once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One setting, and what it is now.

    Attributes:
        id: Its number in the session.
        name: What it is called.
        about: One sentence.
        kind: How it is chosen.
        value: What was chosen last.
        minimum: The least value; of a choice that of its first name.
        maximum: The greatest value.
        choices: Names of the values of a choice, from the least on.
        costs: Nanoseconds that gathering took at the latest event with each value, from the least on; 0: not measured. May be empty.
        applies: Sequence of the first snapshot that was gathered with this value; 0: none yet.
        modes: Where the choice is how the target is watched: the mode of each value, from the least on. Once a value applies, the session is of its
            mode.
    """

    id: int
    name: str
    about: str = ""
    kind: SettingKind = SettingKind.CHOICE
    value: int
    minimum: int
    maximum: int
    choices: tuple[str, ...] = ()
    costs: tuple[int, ...] = ()
    applies: int = 0
    modes: tuple[Mode, ...] = ()

    @property
    def mode(self) -> Mode | None:
        """The mode of the value; None: it has nothing to do with that."""
        place = self.value - self.minimum
        return self.modes[place] if 0 <= place < len(self.modes) else None

    def allows(self, value: int) -> bool:
        """Whether it can have the value."""
        return self.minimum <= value <= self.maximum

    def name_of(self, value: int) -> str:
        """What a value is called: its name, or the number where it has none."""
        place = value - self.minimum
        return self.choices[place] if 0 <= place < len(self.choices) else str(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Server: all settings of the session."""

    settings: tuple[Setting, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SetSetting:
    """Controller: give a setting a value, from the next event that is gathered on."""

    id: int
    value: int
