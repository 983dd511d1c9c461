"""Settings: the controller's choices about how the target is monitored, such as the level (SPEC.md section 8.9).

Knows the fields of a setting; does not know its effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gcspy_protocol.model import Mode

__all__ = ["MOST_CHOICES", "MOST_SETTINGS", "SetSetting", "Setting", "SettingKind", "Settings"]

MOST_SETTINGS = 64
"""Maximum settings of a session."""

MOST_CHOICES = 256
"""Maximum values of a choice."""


class SettingKind(Enum):
    """Kind of a setting."""

    RANGE = "range"
    """Any integer within the limits."""
    CHOICE = "choice"
    """One of a few values, each with a name."""
    ACTION = "action"
    """An action: setting it performs the action once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One setting, and its current value.

    Attributes:
        id: Its number in the session.
        name: Its name.
        about: One sentence.
        kind: Its kind.
        value: The latest chosen value.
        minimum: The least value; of a choice that of its first name.
        maximum: The greatest value.
        choices: Names of the values of a choice, from the least on.
        costs: Nanoseconds of the latest gathering with each value, from the least on; 0: not
            measured. May be empty.
        applies: Sequence of the first snapshot that was gathered with this value; 0: none yet.
        modes: If the setting chooses how the target is monitored: the mode of each value, from the
            least on. Once a value applies, the session has its mode.
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
        """The mode of the value; None: the setting has no modes."""
        place = self.value - self.minimum
        return self.modes[place] if 0 <= place < len(self.modes) else None

    def allows(self, value: int) -> bool:
        """Whether a value is valid."""
        return self.minimum <= value <= self.maximum

    def name_of(self, value: int) -> str:
        """Name of a value, or the number if it has none."""
        place = value - self.minimum
        return self.choices[place] if 0 <= place < len(self.choices) else str(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Server: all settings of the session."""

    settings: tuple[Setting, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SetSetting:
    """Controller: give a setting a value, from the next gathered event on."""

    id: int
    value: int
