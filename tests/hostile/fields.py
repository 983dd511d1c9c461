"""Which fields of which messages hold texts, found in the messages themselves: a new one cannot be forgotten."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from gcspy_protocol.connection import may_send
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import Role

__all__ = ["TextField", "poisoned", "text_fields"]


@dataclass(frozen=True, slots=True)
class TextField:
    """A field of a message, or of one of its parts, that holds one text or several."""

    owner: type
    name: str

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"


def _parts(hint: Any) -> Iterator[type]:
    """The types that a hint is made of."""
    if get_origin(hint) in (Union, types.UnionType, tuple, dict, list):
        for one in get_args(hint):
            yield from _parts(one)
    elif isinstance(hint, type):
        yield hint


def _walk(owner: type, found: dict[type, list[str]]) -> None:
    if owner in found:
        return
    texts = found[owner] = []
    hints = get_type_hints(owner)
    for field in fields(owner):
        for part in _parts(hints[field.name]):
            if issubclass(part, str) and not issubclass(part, Enum):
                if field.name not in texts:
                    texts.append(field.name)
            elif is_dataclass(part):
                _walk(part, found)


def _frame_type(message: type) -> FrameType | None:
    name = "".join("_" + c if c.isupper() and i else c for i, c in enumerate(message.__name__))
    return FrameType.__members__.get(name.upper())


def text_fields(role: Role) -> list[TextField]:
    """All fields with texts of what one end may send."""
    found: dict[type, list[str]] = {}
    for message in get_args(Message):
        number = _frame_type(message)
        if number is not None and may_send(role, number):
            _walk(message, found)
    return [TextField(owner, name) for owner, names in found.items() for name in names]


def poisoned(value: Any, text_of: Callable[[TextField], str | None]) -> Any:
    """A message with other texts in it.

    Args:
        value: The message, or one of its parts.
        text_of: The text for a field; None keeps the existing one. Where there are several, each
            ends with its number.
    """
    if isinstance(value, tuple):
        return tuple(poisoned(one, text_of) for one in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    own = set(_own_texts(type(value)))
    changed: dict[str, Any] = {}
    for field in fields(value):
        before = getattr(value, field.name)
        after = poisoned(before, text_of)
        if field.name in own:
            text = text_of(TextField(type(value), field.name))
            if text is not None:
                after = _with_text(after, text)
        if after is not before:
            changed[field.name] = after
    return replace(value, **changed) if changed else value


def _own_texts(owner: type) -> list[str]:
    found: dict[type, list[str]] = {}
    _walk(owner, found)
    return found[owner]


def _with_text(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return text
    if isinstance(value, tuple):
        return tuple(
            _with_text(one, text[: len(text) - 2] + str(place) if place else text)
            for place, one in enumerate(value)
        )
    if isinstance(value, dict):
        return {**dict.fromkeys(value, text), text: text}  # some keys mean something
    return value
