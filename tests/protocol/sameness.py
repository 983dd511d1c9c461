"""Whether two messages say the same: dataclass equality cannot compare arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from gcspy_protocol.messages import Message


def same(a: Message, b: Message) -> bool:
    """Whether both are of one type, with equal fields; arrays with equal dtype, shape and content."""
    return type(a) is type(b) and all(
        _same_field(getattr(a, field.name), getattr(b, field.name))
        for field in fields(a)
        if field.compare
    )


def _same_field(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


def all_same(these: Sequence[Message], those: Sequence[Message]) -> bool:
    """Whether two lists of messages say the same in the same order."""
    return len(these) == len(those) and all(same(a, b) for a, b in zip(these, those, strict=True))
