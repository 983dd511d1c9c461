"""Copying: how an object is moved elsewhere.

An old copy says where the new one is: FORWARDED, and the new address in its link. Its size and its other words stay as they are.

Knows the heap. Where an object goes to is its collector's business.
"""

from __future__ import annotations

from gcspy_drivers.simulator.heap import SIZE_MASK, age_of, copy_words, forward, set_age
from gcspy_drivers.simulator.loops import Words, loop

__all__ = ["move"]


@loop
def move(words: Words, cell: int, new: int) -> None:
    """Copy an object to where nothing is, a collection older, and leave its new address in the old copy."""
    copy_words(words, cell, new, words[cell] & SIZE_MASK)
    set_age(words, new, age_of(words, new) + 1)
    forward(words, cell, new)
