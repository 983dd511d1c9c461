"""Functions that get another code object: all that a program has, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from gcspy_counting.atomic_calls import call_at_once, of_type, search_objects

__all__ = ["functions", "replace_code"]


def functions() -> list[FunctionType]:
    """Return all Python functions of the process."""
    objects: list[Any] = []
    found: list[FunctionType] = []
    take = partial(found.extend, of_type(objects, FunctionType))
    call_at_once(search_objects(objects, [take]))
    return found


def replace_code(new: Mapping[int, CodeType]) -> int:
    """Give functions new code; calls that run keep theirs to the end.

    Args:
        new: New code by the `id` of the old one, which must be kept.

    Returns:
        Number of functions that got new code.
    """
    if not new:
        return 0
    number = 0
    for each in functions():
        code = new.get(id(each.__code__))
        if code is not None:
            each.__code__ = code
            number += 1
    return number
