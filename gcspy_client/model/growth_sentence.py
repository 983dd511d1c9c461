"""`growth_sentence`: one sentence about how much memory grew, with what, and who holds it; nothing if nothing grew.

Knows numbers and names; knows neither widgets nor sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gcspy_client.model.text import duration, size_in_words

__all__ = ["Growth", "GrownPart", "growth_of_types", "growth_sentence", "least_growth"]

_LEAST_BYTES: Final = 256 << 10
_LEAST_SHARE: Final = 0.002
"""Least share of the resident set: smaller growth is noise."""

_MEMORY_HAD_BEFORE: Final = 0.5
"""If the resident set grew by less than this share of what objects grew by, most of these are in memory that it had before."""

_WORTH_NAMING: Final = 0.08
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class GrownPart:
    """A type, another part of the memory, or a holder.

    Attributes:
        name: The name; empty: it counts, and is not named.
        grew: By how many bytes.
        of_objects: Whether it is objects, and not memory beside them or of free blocks.
    """

    name: str
    grew: int
    of_objects: bool = True


@dataclass(frozen=True, slots=True)
class Growth:
    """The measured growth.

    Attributes:
        secs: Over how long.
        resident: Bytes of the resident set now.
        grew: Increase of the resident set in bytes.
        parts: Growth of types and other memory; empty: not known.
        holders: Growth of the memory that holders keep alive; empty: not known.
        unsure: Growth, in bytes, of memory whose owner is not known.
    """

    secs: float
    resident: int
    grew: int
    parts: Sequence[GrownPart] = ()
    holders: Sequence[GrownPart] = ()
    unsure: int = 0


def least_growth(resident: int) -> int:
    """Return the minimum growth of a process's memory, in bytes, to be reported."""
    return max(_LEAST_BYTES, int(_LEAST_SHARE * resident))


def growth_of_types(
    *, secs: float, resident: int, grew: int, types: Sequence[GrownPart], total: int
) -> Growth:
    """Return growth of which only is known what types grew by: the owner of the rest is not known.

    Args:
        secs: Over how long.
        resident: Bytes of the resident set now.
        grew: By how many bytes it grew.
        types: The types that grew most.
        total: By how many bytes all types together grew.
    """
    unsure = max(0, grew - total)
    others = total - sum(part.grew for part in types)
    parts = (*types, GrownPart("", others), GrownPart("", unsure, of_objects=False))
    return Growth(secs=secs, resident=resident, grew=grew, parts=parts, unsure=unsure)


def growth_sentence(growth: Growth) -> str:
    """Say it in one or two sentences; empty: nothing grew."""
    parts = growth.parts
    objects = sum(part.grew for part in parts if part.of_objects)
    least = least_growth(growth.resident)
    if growth.grew < least and objects < least:
        return ""
    if growth.grew >= least and growth.grew >= _MEMORY_HAD_BEFORE * objects:
        amount, unsure = growth.grew, growth.unsure
        head = f"The resident set grew by {size_in_words(amount)}"
    else:
        amount, unsure = objects, 0  # memory that is no object's is no part of that
        parts = [part for part in parts if part.of_objects]
        head = f"Objects grew by {size_in_words(amount)}, in memory that the process had before,"
    a_minute = int(amount * 60 / growth.secs)
    head += f" in {duration(int(growth.secs * 1e9))}, {size_in_words(a_minute)} a minute"
    whole = sum(part.grew for part in parts if part.grew > 0)
    named = _named(parts, whole)
    said = f"{head}: mostly {named}" if named else head
    held = _named(growth.holders, max(whole, sum(each.grew for each in growth.holders)))
    if held:
        said += f". Held by {held}"
    if whole and unsure >= _WORTH_NAMING * whole:
        said += f". The owner of {100 * unsure / whole:.0f} % of it is not known"
    return said + "."


def _named(parts: Sequence[GrownPart], whole: int) -> str:
    """Name the largest, with their shares."""
    ranked = sorted((part for part in parts if part.name), key=lambda part: -part.grew)
    texts = [
        f"{_without_brackets(part.name)} ({100 * part.grew / whole:.0f} %)"
        for part in ranked[:_MOST_NAMED]
        if whole and part.grew >= _WORTH_NAMING * whole
    ]
    if len(texts) > 1:
        return ", ".join(texts[:-1]) + " and " + texts[-1]
    return "".join(texts)


def _without_brackets(name: str) -> str:
    """Return the name of a row that is not a type, ``(other types)``, as a sentence has it."""
    return name[1:-1] if name.startswith("(") and name.endswith(")") else name
