"""Calls of C functions between which no other thread runs, however long they take.

CPython lets other threads run between two instructions of Python code only. So one instruction calls one C function, which calls all others. Among them may be no
Python function. Whoever searches all objects must do it so, and drop them there: a thread may be just making one of them, such as a tuple, and must be the only one that
has it.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, compress, repeat, starmap
from operator import call, is_
from typing import Any

__all__ = ["call_at_once", "later", "of_type", "search_objects"]

_ONCE: tuple[tuple[()], ...] = ((),)
"""Arguments of one call without arguments."""


def later(function: Any) -> Iterable[Any]:
    """Return an iterator of one item: the result of a C function that is called when the item is taken."""
    return starmap(function, _ONCE)


def of_type(objects: list[Any], kind: type) -> Iterable[Any]:
    """Return an iterator over the objects of a type; the list may be filled later."""
    return compress(objects, map(is_, map(type, objects), repeat(kind)))


def search_objects(objects: list[Any], steps: Sequence[Any]) -> list[Any]:
    """Return calls that fill a list with all objects, do something, and empty it.

    Args:
        objects: The list.
        steps: Calls that take what they need from it.
    """
    fill = partial(objects.extend, chain.from_iterable(later(gc.get_objects)))
    return [fill, *steps, objects.clear]


def call_at_once(steps: Sequence[Any]) -> None:
    """Make calls of C functions without arguments; the collector does not run meanwhile.

    Args:
        steps: The functions, or `functools.partial` objects of them.
    """
    collects: list[bool] = []
    calls = [
        partial(collects.extend, later(gc.isenabled)),
        gc.disable,
        *steps,
        partial(deque, starmap(gc.enable, compress(_ONCE, collects)), 0),
    ]
    deque(map(call, calls), 0)
