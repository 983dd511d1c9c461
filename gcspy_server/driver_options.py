"""`DriverOption`: what a driver lets the user choose, declared so that it can be listed, checked and shown.

Knows names, types and bounds; does not know what any option does. Without numpy, as help lists options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError, LocalProtocolError

if TYPE_CHECKING:
    from gcspy_protocol.settings import Setting

__all__ = [
    "OPTIONS_GROUP",
    "DriverOption",
    "OptionValue",
    "announced_options",
    "named_values",
    "values_for",
]

OPTIONS_GROUP = "gcspy.driver_options"
"""Where an installed package announces the options of its drivers, so that help can list them: the driver's name to a tuple in a
module that imports nothing but this one."""

OptionValue = bool | int | float | str

_TRUE = ("yes", "true", "on", "1")
_FALSE = ("no", "false", "off", "0")


@dataclass(frozen=True, kw_only=True, slots=True)
class DriverOption:
    """One option of a driver; its type is that of the default.

    Attributes:
        name: How the user names it.
        default: Its value if nobody says otherwise.
        about: One sentence: what it does.
        choices: Of a text: the values that it may have; none: any.
        minimum: Of a number: the least value; None: no bound.
        maximum: Of a number: the greatest value; None: no bound.
        live: Whether it may be changed while the process is watched, and so is among the session's settings.
            It is then yes or no, one of some choices, or a whole number with both bounds.
    """

    name: str
    default: OptionValue
    about: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    live: bool = False

    def setting(self, ident: int, value: OptionValue) -> Setting:
        """Make the session's setting of a live option.

        Args:
            ident: Number of the setting.
            value: The value to begin with.

        Raises:
            LocalProtocolError: A setting cannot have its values.
        """
        from gcspy_protocol.settings import Setting, SettingKind  # numpy comes with it

        names = self.names
        if names:
            return Setting(
                id=ident,
                name=self.name,
                about=self.about,
                value=names.index(self._name_of(value)),
                minimum=0,
                maximum=len(names) - 1,
                choices=names,
            )
        if type(self.default) is not int or self.minimum is None or self.maximum is None:
            raise LocalProtocolError(
                f"option {self.name}: {self.bounds}; a live option is yes or no, one of some choices, "
                "or a whole number with both bounds"
            )
        return Setting(
            id=ident,
            name=self.name,
            about=self.about,
            kind=SettingKind.RANGE,
            value=int(value),
            minimum=int(self.minimum),
            maximum=int(self.maximum),
        )

    def of_setting(self, number: int) -> OptionValue:
        """Return the value for which a number of its setting stands."""
        return self.parse(self.names[number]) if self.names else number

    @property
    def default_text(self) -> str:
        """The default as a user writes it."""
        return self._name_of(self.default)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its values, where they have any."""
        if isinstance(self.default, bool):
            return ("no", "yes")
        return self.choices

    @staticmethod
    def _name_of(value: OptionValue) -> str:
        return ("yes" if value else "no") if isinstance(value, bool) else str(value)

    @property
    def bounds_text(self) -> str:
        """What it may be, and whether it may change, as a sentence."""
        live = "; can be changed while the process is monitored" if self.live else ""
        return f"Values: {self.bounds}{live}."

    @property
    def bounds(self) -> str:
        """What it may be, in words."""
        if isinstance(self.default, bool):
            return "yes or no"
        if isinstance(self.default, str):
            return ", ".join(one or "empty" for one in self.choices) or "any text"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        if self.minimum is not None and self.maximum is not None:
            return f"{kind} from {self.minimum:g} to {self.maximum:g}"
        if self.minimum is not None:
            return f"{kind} of at least {self.minimum:g}"
        return kind if self.maximum is None else f"{kind} of at most {self.maximum:g}"

    def parse(self, text: str) -> OptionValue:
        """Read a value.

        Raises:
            CommandError: It is not what the option may be.
        """
        value = self._read(text.strip())
        if value is None:
            raise CommandError(f"option {self.name} is {self.bounds}; got {text!r}")
        return value

    def _read(self, text: str) -> OptionValue | None:
        if isinstance(self.default, bool):
            return text.lower() in _TRUE if text.lower() in _TRUE + _FALSE else None
        if isinstance(self.default, str):
            return text if not self.choices or text in self.choices else None
        try:
            number = int(text) if isinstance(self.default, int) else float(text)
        except ValueError:
            return None
        least = self.minimum if self.minimum is not None else float("-inf")
        most = self.maximum if self.maximum is not None else float("inf")
        return number if least <= number <= most else None  # NaN is neither


def announced_options() -> dict[str, tuple[DriverOption, ...] | str]:
    """Return the options that installed packages announce, by driver; the drivers themselves are not imported.

    Returns:
        Of each driver that announces any its options, or a text that says why they cannot be read.
    """
    found: dict[str, tuple[DriverOption, ...] | str] = {}
    for entry in sorted(entry_points(group=OPTIONS_GROUP), key=lambda one: one.name):
        try:
            options = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # somebody else's code: whatever it raises is its mistake
            found[entry.name] = f"cannot be read: {type(error).__name__}: {error}"
            continue
        if isinstance(options, tuple) and all(isinstance(one, DriverOption) for one in options):
            found[entry.name] = options
        else:
            found[entry.name] = f"cannot be read: {entry.value} is not a tuple of DriverOption"
    return found


def named_values(texts: Iterable[str]) -> dict[str, str]:
    """Split ``NAME=VALUE`` and ``DRIVER.NAME=VALUE``.

    Raises:
        CommandError: A text is neither, or a name is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CommandError(f"an option is NAME=VALUE or DRIVER.NAME=VALUE; got {text!r}")
        if name in found:
            raise CommandError(f"option {name} is given twice")
        found[name] = value
    return found


def values_for(
    driver: str, declared: Iterable[DriverOption], given: Mapping[str, str]
) -> tuple[dict[str, OptionValue], set[str]]:
    """Return the value of each option of a driver, and which of the given names it took.

    Args:
        driver: Its name.
        declared: Its options.
        given: Values by ``NAME`` or ``DRIVER.NAME``; the second is more specific.

    Raises:
        CommandError: A value is not what the option may be.
    """
    values: dict[str, OptionValue] = {}
    taken: set[str] = set()
    for option in declared:
        values[option.name] = option.default
        for name in (option.name, f"{driver}.{option.name}"):
            if name in given:
                values[option.name] = option.parse(given[name])
                taken.add(name)
    return values, taken
