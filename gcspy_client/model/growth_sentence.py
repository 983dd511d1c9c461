"""`growth_sentence`: by how much memory grew, with what, and who holds it, in one sentence; nothing where nothing grew.

Knows numbers and names; knows neither widgets nor sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gcspy_client.model.text import duration, size_in_words

__all__ = ["Growth", "GrownPart", "growth_sentence", "least_growth"]

_LEAST_BYTES: Final = 256 << 10
_LEAST_SHARE: Final = 0.002
"""Of the resident set: growth by less is noise."""

_WORTH_NAMING: Final = 0.08
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class GrownPart:
    """A type, another part of the memory, or a holder.

    Attributes:
        name: What it is; empty: it counts, and is not named.
        grew: By how many bytes.
    """

    name: str
    grew: int


@dataclass(frozen=True, slots=True)
class Growth:
    """What is known of growth.

    Attributes:
        secs: Over how long.
        resident: Bytes of the resident set now.
        grew: By how many bytes it grew.
        parts: By how much types and other memory grew; empty: that is not known.
        holders: By how much what holders keep alive grew; empty: not known.
        unsure: By how many bytes memory grew of which is not known whose it is.
    """

    secs: float
    resident: int
    grew: int
    parts: Sequence[GrownPart] = ()
    holders: Sequence[GrownPart] = ()
    unsure: int = 0


def least_growth(resident: int) -> int:
    """Return by how many bytes the memory of a process must grow for it to be said."""
    return max(_LEAST_BYTES, int(_LEAST_SHARE * resident))


def growth_sentence(growth: Growth) -> str:
    """Say it in one or two sentences; empty: nothing grew."""
    net = sum(part.grew for part in growth.parts)
    least = least_growth(growth.resident)
    if growth.grew < least and (not growth.parts or net < least):
        return ""
    if growth.grew >= least:
        amount = growth.grew
        head = f"The resident set grew by {size_in_words(amount)}"
    else:
        amount = net
        head = f"Objects grew by {size_in_words(amount)}, in memory that the process had before,"
    a_minute = int(amount * 60 / growth.secs)
    head += f" in {duration(int(growth.secs * 1e9))}, {size_in_words(a_minute)} a minute"
    whole = sum(part.grew for part in growth.parts if part.grew > 0)
    named = _named(growth.parts, whole)
    said = f"{head}: mostly {named}" if named else head
    held = _named(growth.holders, max(whole, sum(each.grew for each in growth.holders)))
    if held:
        said += f". Held by {held}"
    if whole and growth.unsure >= _WORTH_NAMING * whole:
        said += f". Whose {100 * growth.unsure / whole:.0f} % of it is, is not known"
    return said + "."


def _named(parts: Sequence[GrownPart], whole: int) -> str:
    """Name the largest, with their shares."""
    ranked = sorted((part for part in parts if part.name), key=lambda part: -part.grew)
    texts = [
        f"{part.name} ({100 * part.grew / whole:.0f} %)"
        for part in ranked[:_MOST_NAMED]
        if whole and part.grew >= _WORTH_NAMING * whole
    ]
    if len(texts) > 1:
        return ", ".join(texts[:-1]) + " and " + texts[-1]
    return "".join(texts)
