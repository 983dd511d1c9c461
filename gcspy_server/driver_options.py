"""`DriverOption`: an option of a driver, declared so that it can be listed, checked and shown.

Knows names, types and bounds; does not know the effect of an option. It does not import numpy,
since help lists options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError, LocalProtocolError

from gcspy_server.driver_recognition import installed_entry_points

if TYPE_CHECKING:
    from gcspy_protocol.settings import Setting

__all__ = [
    "OPTIONS_GROUP",
    "DriverOption",
    "OptionValue",
    "announced_by",
    "announced_options",
    "named_values",
    "values_for",
]

OPTIONS_GROUP = "gcspy.driver_options"
"""Entry point group for the options of drivers, so that help can list them: the driver's name to a
tuple in a module that imports nothing but this one."""

OptionValue = bool | int | float | str

_TRUE = ("yes", "true", "on", "1")
_FALSE = ("no", "false", "off", "0")


@dataclass(frozen=True, kw_only=True, slots=True)
class DriverOption:
    """One option of a driver; its type is that of the default.

    Attributes:
        name: Name for users.
        default: Its default value.
        about: One sentence about its effect.
        choices: For a text: the allowed values; none: any.
        minimum: For a number: the least value; None: no bound.
        maximum: For a number: the greatest value; None: no bound.
        live: Whether it may be changed while the process is monitored, and so is one of the
            session's settings. Its type must then be a boolean, one of some choices, or an integer
            with both bounds.
    """

    name: str
    default: OptionValue
    about: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    live: bool = False

    def setting(self, ident: int, value: OptionValue) -> Setting:
        """Make the session's setting for a live option.

        Args:
            ident: Number of the setting.
            value: The initial value.

        Raises:
            LocalProtocolError: A setting cannot represent its values.
        """
        from gcspy_protocol.settings import Setting, SettingKind  # it imports numpy

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
        """Return the option's value for a number of its setting."""
        return self.parse(self.names[number]) if self.names else number

    @property
    def default_text(self) -> str:
        """The default as a user writes it."""
        return self._name_of(self.default)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its values, if they have any."""
        if isinstance(self.default, bool):
            return ("no", "yes")
        return self.choices

    @staticmethod
    def _name_of(value: OptionValue) -> str:
        return ("yes" if value else "no") if isinstance(value, bool) else str(value)

    @property
    def bounds_text(self) -> str:
        """The allowed values, and whether it may change, as a sentence."""
        live = "; can be changed while the process is monitored" if self.live else ""
        return f"Values: {self.bounds}{live}."

    @property
    def bounds(self) -> str:
        """The allowed values, as text."""
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
        """Parse a value.

        Raises:
            CommandError: The option does not allow it.
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
        For each driver that announces any its options, or a text that says why they cannot be read.
    """
    return {
        entry.name: _options_in(entry)
        for entry in sorted(
            installed_entry_points().select(group=OPTIONS_GROUP), key=lambda one: one.name
        )
    }


def announced_by(name: str, driver: EntryPoint) -> tuple[DriverOption, ...] | None:
    """Return the options that a driver's own package announces for it; None: it announces none, or they cannot be read.

    Args:
        name: Name of the driver.
        driver: Its entry point.
    """
    for entry in installed_entry_points().select(group=OPTIONS_GROUP, name=name):
        if entry.value.partition(".")[0] == driver.value.partition(".")[0]:
            options = _options_in(entry)
            return None if isinstance(options, str) else options
    return None


def _options_in(entry: EntryPoint) -> tuple[DriverOption, ...] | str:
    """Return the options, or why they cannot be read."""
    try:
        options = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # somebody else's code: whatever it raises is its mistake
        return f"cannot be read: {type(error).__name__}: {error}"
    if isinstance(options, tuple) and all(isinstance(one, DriverOption) for one in options):
        return options
    return f"cannot be read: {entry.value} is not a tuple of DriverOption"


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
    """Return the value of each option of a driver, and the given names that it used.

    Args:
        driver: Name of the driver.
        declared: Its options.
        given: Values by ``NAME`` or ``DRIVER.NAME``; the second is more specific.

    Raises:
        CommandError: An option does not allow its value.
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
