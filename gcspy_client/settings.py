"""The settings that are kept between two windows: choices, layout, recently opened items.

Each value is stored as JSON under a name, so that numbers stay numbers on every system, and is checked when it is read: a
value that is damaged, of an older program or of another type is as if it had never been stored. Reading never fails.

Where it is kept: Qt's usual place for the organisation and application *gcspy*. The environment variable `GCSPY_SETTINGS` names
a file instead, or `none`: then nothing is read and nothing outlives the process (tests, pictures).

Knows names, types and defaults; does not know what any of them is for.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import zlib
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QSettings, QStandardPaths

__all__ = ["VARIABLE", "UserSettings"]

VARIABLE = "GCSPY_SETTINGS"
"""Environment variable: a file, or `none`."""

_LONGEST = 1 << 20
"""Characters of a value; the layout of a window has some thousand."""

_E = TypeVar("_E", bound=Enum)


class UserSettings:
    """Values by name.

    Args:
        path: The file that stores them; None: they are stored in memory only. Programs use `of_user`.

    Attributes:
        cache: Folder for data that may be lost, such as pictures; None: such data is not stored.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.cache = None if path is None else path.with_name(f"{path.name}.cache")
        self._memory: dict[str, str] = {}
        self._kept = None if path is None else QSettings(str(path), QSettings.Format.IniFormat)

    @classmethod
    def of_user(cls) -> UserSettings:
        """Return the settings of the user, or those that `GCSPY_SETTINGS` names."""
        named = os.environ.get(VARIABLE, "")
        if named == "none":
            return cls()
        if named:
            return cls(Path(named))
        made = cls()
        made._kept = QSettings("gcspy", "gcspy")
        cache = QStandardPaths.writableLocation(
            QStandardPaths.StandardLocation.GenericCacheLocation
        )
        made.cache = Path(cache) / "gcspy" if cache else None
        return made

    # ------------------------------------------------------------------------- reading

    def value(self, name: str) -> object:
        """The value stored under a name, as JSON has it; None where there is nothing, or nothing that can be read."""
        text = self._memory.get(name) if self._kept is None else self._kept.value(name)
        if not isinstance(text, str) or len(text) > _LONGEST:
            return None
        try:
            found: object = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return found

    def flag(self, name: str, default: bool) -> bool:
        """Yes or no."""
        found = self.value(name)
        return found if isinstance(found, bool) else default

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number; one that is not from `low` to `high` is the default."""
        found = self.value(name)
        return (
            found
            if isinstance(found, int) and not isinstance(found, bool) and low <= found <= high
            else default
        )

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        found = self.value(name)
        return found if isinstance(found, str) else default

    def texts(self, name: str) -> tuple[str, ...]:
        """Texts, in their order; other values among them are left out."""
        found = self.value(name)
        return (
            tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()
        )

    def choice(self, name: str, kind: type[_E]) -> _E | None:
        """A member of an enumeration of texts; None where none of them is stored."""
        found = self.value(name)
        return next((member for member in kind if member.value == found), None)

    def mapping(self, name: str) -> dict[str, object]:
        """A dictionary with texts as keys."""
        found = self.value(name)
        return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}

    def data(self, name: str) -> bytes:
        """Bytes that Qt made, such as a layout; none where they are not exactly those that were stored.

        Qt reads its own layouts without much doubt, so a checksum goes before them.
        """
        found = self.value(name)
        if not isinstance(found, str):
            return b""
        try:
            stored = base64.b64decode(found, validate=True)
        except (binascii.Error, ValueError):
            return b""
        body = stored[4:]
        return (
            body
            if len(stored) > 4 and zlib.crc32(body).to_bytes(4, "little") == stored[:4]
            else b""
        )

    # ------------------------------------------------------------------------- writing

    def store(
        self, name: str, value: bool | int | float | str | Sequence[str] | dict[str, object] | Enum
    ) -> None:
        """Remember a value; where that cannot be (a folder that may not be written to) it is forgotten with the process."""
        if isinstance(value, Enum):
            value = value.value
        text = json.dumps(value)
        if self._kept is None:
            self._memory[name] = text
        else:
            self._kept.setValue(name, text)

    def store_data(self, name: str, data: bytes) -> None:
        """Remember bytes."""
        self.store(
            name, base64.b64encode(zlib.crc32(data).to_bytes(4, "little") + data).decode("ascii")
        )

    def forget(self, name: str) -> None:
        """Remember a value no more: the default counts again."""
        self._memory.pop(name, None)
        if self._kept is not None:
            self._kept.remove(name)

    def write(self) -> None:
        """Write now what Qt would write in a moment."""
        if self._kept is not None:
            self._kept.sync()
