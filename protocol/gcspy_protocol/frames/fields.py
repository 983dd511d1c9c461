"""Reading msgpack maps from a stranger: every field is checked.

Unknown keys are ignored: a newer peer may send more (SPEC.md section 3.4).
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import msgpack

from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError

__all__ = ["Fields", "pack_map"]

E = TypeVar("E", bound=Enum)

_DEPTH_ITEMS = 1 << 17
"""Most items of one array or map; a client's largest legitimate list is its filters (1,024)."""


def pack_map(fields: Mapping[str, Any]) -> bytes:
    """A map of plain values as msgpack bytes.

    A text that is not valid Unicode (a file name of another encoding) is sent with ``?`` for the
    invalid parts: it is for people to read, and must not end a session.

    Raises:
        LocalProtocolError: A number needs more than 64 bits.
    """
    try:
        return msgpack.packb(dict(fields), use_bin_type=True, unicode_errors="replace")
    except OverflowError as error:
        raise LocalProtocolError(
            f"a field does not fit 64 bits: {reprlib.repr(dict(fields))}"
        ) from error


class Fields:
    """One received map.

    Args:
        values: The map.
        what: Name for errors: ``hello``.
        text_chars: Longest accepted text.
    """

    def __init__(self, values: object, what: str, *, text_chars: int) -> None:
        if not isinstance(values, dict):
            raise RemoteProtocolError(f"{what}: expected a map, got {type(values).__name__}")
        self._values: dict[Any, Any] = values
        self._what = what
        self._text_chars = text_chars

    @classmethod
    def unpack(cls, payload: bytes | memoryview, what: str, *, text_chars: int) -> Fields:
        """Read msgpack bytes; bytes after the map are ignored.

        Keys must be texts, at any depth. Integers can be chosen so that they all collide in a hash
        table, and 100,000 of those block a process for minutes.

        Raises:
            RemoteProtocolError: The bytes are not one msgpack map within the limits.
        """
        unpacker = msgpack.Unpacker(
            raw=False,
            strict_map_key=True,
            max_buffer_size=max(len(payload), 1),
            max_str_len=4 * text_chars,
            max_array_len=_DEPTH_ITEMS,
            max_map_len=_DEPTH_ITEMS,
            max_ext_len=0,
        )
        try:
            unpacker.feed(payload)
            values = unpacker.unpack()
        except (msgpack.UnpackException, ValueError, RecursionError, TypeError) as error:
            # msgpack raises its own errors and bare ValueErrors for damaged input; both mean that
            # the peer is wrong.
            raise RemoteProtocolError(
                f"{what}: not msgpack ({type(error).__name__}: {error})"
            ) from error
        return cls(values, what, text_chars=text_chars)

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def _fail(self, key: str, expected: str) -> RemoteProtocolError:
        # Not repr(): it ends with a RecursionError for lists nested a thousand deep.
        found = reprlib.repr(self._values.get(key))
        return RemoteProtocolError(
            f"{self._what}: field {key!r} should be {expected}, got {found:.60}"
        )

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """An integer within bounds."""
        value = self._values.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._fail(key, f"an integer from {low} to {high}")
        return value

    def optional_integer(self, key: str, low: int, high: int) -> int | None:
        """An integer within bounds, or None."""
        return None if self._values.get(key) is None else self.integer(key, low, high)

    def optional_number(self, key: str, low: float, high: float) -> float | None:
        """A number within bounds, or None."""
        value = self._values.get(key)
        if value is None:
            return None
        if (
            not isinstance(value, (int, float))
            or isinstance(value, bool)
            or not low <= value <= high
        ):
            raise self._fail(key, f"a number from {low} to {high}")
        return float(value)

    def scalar(self, key: str) -> int | float | bool | str | None:
        """A truth value, a finite number, a text or None."""
        value = self._values.get(key)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, str):
            return self._text_of(key, value)
        raise self._fail(key, "a number, a text, true, false or nil")

    def flag(self, key: str, default: bool | None = None) -> bool:
        """True or False."""
        value = self._values.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, bool):
            raise self._fail(key, "true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text."""
        value = self._values.get(key)
        if value is None and default is not None:
            return default
        return self._text_of(key, value)

    def _text_of(self, key: str, value: object) -> str:
        if not isinstance(value, str) or len(value) > self._text_chars:
            raise self._fail(key, f"a text of at most {self._text_chars} characters")
        return value

    def texts(self, key: str, most: int) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._text_of(key, value) for value in self.items(key, most))

    def choices(self, key: str, most: int, kind: type[E]) -> tuple[E, ...]:
        """A list of values of an enumeration of texts."""
        try:
            return tuple(kind(self._text_of(key, value)) for value in self.items(key, most))
        except ValueError:
            raise self._fail(
                key, "a list of " + ", ".join(str(one.value) for one in kind)
            ) from None

    def text_map(self, key: str, most: int) -> dict[str, str]:
        """A map of texts to texts."""
        value = self._values.get(key, {})
        if not isinstance(value, dict) or len(value) > most:
            raise self._fail(key, f"a map of at most {most} texts")
        return {self._text_of(key, name): self._text_of(key, text) for name, text in value.items()}

    def items(self, key: str, most: int) -> list[Any]:
        """A list; its items are not checked."""
        value = self._values.get(key, [])
        if not isinstance(value, list) or len(value) > most:
            raise self._fail(key, f"a list of at most {most} items")
        return value

    def integers(self, key: str, most: int, low: int, high: int) -> tuple[int, ...]:
        """A list of integers within bounds."""
        values = self.items(key, most)
        for value in values:
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise self._fail(key, f"integers from {low} to {high}")
        return tuple(values)

    def map(self, key: str) -> Fields | None:
        """A map, or None."""
        if key not in self:
            return None
        return Fields(self._values[key], f"{self._what}.{key}", text_chars=self._text_chars)

    def maps(self, key: str, most: int) -> list[Fields]:
        """A list of maps."""
        what = f"{self._what}.{key}"
        return [Fields(value, what, text_chars=self._text_chars) for value in self.items(key, most)]

    def choice(self, key: str, kind: type[E], default: E | None = None) -> E:
        """A member of an enumeration, by its value."""
        value = self._values.get(key)
        if value is None and default is not None:
            return default
        for member in kind:
            if type(value) is type(member.value) and value == member.value:
                return member
        raise self._fail(key, "one of " + ", ".join(str(member.value) for member in kind))
