"""`distinct_names`: short names of tiles that stay different from each other when there is little room.

Knows names; does not know fonts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from gcspy_protocol.text.short_places import short_place

__all__ = ["distinct_names"]

_RANGE: Final = re.compile(r"\[0x([0-9a-f]+), 0x[0-9a-f]+\)")
_LEAST: Final = 4
"""A common beginning that is shorter is not left out."""


def distinct_names(
    names: Sequence[str], fits: Callable[[str], bool] = lambda _name: False
) -> list[str]:
    """Leave out what all names have in common, unless there is room for it.

    Of ranges of memory only the first addresses remain.

    Args:
        names: The names.
        fits: Whether there is room for a name.
    """
    ranges = [_RANGE.fullmatch(name) for name in names]
    if all(ranges):
        starts = [found[1] for found in ranges if found is not None]
        width = max(map(len, starts), default=0)
        return _shortened([start.rjust(width, "0") for start in starts], fits, whole="0x")
    # Sites are told apart by their functions and files, and rarely by the folders of these.
    places = [short_place(name) for name in names]
    return _shortened(places if len(set(places)) == len(set(names)) else list(names), fits)


def _shortened(names: list[str], fits: Callable[[str], bool], *, whole: str = "") -> list[str]:
    """Replace a common beginning with an ellipsis; without one, `whole` stands before each name."""
    common = _common_beginning(min(names), max(names)) if len(names) > 1 else 0
    # A last digit or letter is left to each, and a number is not cut in two.
    common = min(common, min(map(len, names), default=0) - 1)
    if not whole:
        while common > 0 and any(name[common - 1].isalnum() for name in names):
            common -= 1
    if common < _LEAST or all(fits(whole + name) for name in names):
        return [whole + name for name in names]
    return ["…" + name[common:] for name in names]


def _common_beginning(first: str, last: str) -> int:
    """Characters that the first and the last of sorted names, and so all, begin with."""
    pairs = enumerate(zip(first, last, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(last)))
