"""Remembered sets whose entries are words: each reference field is in the set of the part of the heap that it refers into, or in none.

A set is a list threaded through a table beside the heap: three entries a word (next, previous,
set). So adding and removing an entry takes constant time, no entry occurs twice, and none remains
when its field is written again or its object dies with its car. Real collectors cannot afford that
table: theirs are hash tables, buffers or coarser than words, with outdated entries, and they check
each entry before they use it.

    row of a part    key, kind, top, head of its set, entries in its set

Knows words and parts; which reference must be remembered is its collector's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.simulator.loops import Words, loop

__all__ = [
    "COUNT",
    "HEAD",
    "KEY",
    "KIND",
    "LINKS",
    "ROW",
    "TOP",
    "after",
    "drop",
    "drop_all",
    "empty",
    "entries",
    "first_run",
    "members",
    "note",
    "owner",
    "set_faults",
]

KEY, KIND, TOP, HEAD, COUNT = range(5)
ROW: Final = 5
LINKS: Final = 3
_NEXT, _PREVIOUS, _OWNER = range(3)


@loop
def owner(links: Words, slot: int) -> int:
    """Return the part in whose set a word is, or -1."""
    return int(links[slot * LINKS + _OWNER]) - 1


@loop
def drop(links: Words, parts: Words, slot: int) -> None:
    """Take a word out of the set that it is in, if any."""
    part = links[slot * LINKS + _OWNER] - 1
    if part < 0:
        return
    after, before = links[slot * LINKS + _NEXT], links[slot * LINKS + _PREVIOUS]
    if before == 0:
        parts[part * ROW + HEAD] = after
    else:
        links[before * LINKS + _NEXT] = after
    if after != 0:
        links[after * LINKS + _PREVIOUS] = before
    links[slot * LINKS + _OWNER] = 0
    parts[part * ROW + COUNT] -= 1


@loop
def note(links: Words, parts: Words, slot: int, part: int) -> None:
    """Put a word that is in no set into one."""
    head = parts[part * ROW + HEAD]
    links[slot * LINKS + _NEXT] = head
    links[slot * LINKS + _PREVIOUS] = 0
    links[slot * LINKS + _OWNER] = part + 1
    if head != 0:
        links[head * LINKS + _PREVIOUS] = slot
    parts[part * ROW + HEAD] = slot
    parts[part * ROW + COUNT] += 1


@loop
def after(links: Words, slot: int) -> int:
    """Return the entry behind this one in its set, or 0."""
    return int(links[slot * LINKS + _NEXT])


@loop
def drop_all(links: Words, parts: Words, first: int, behind: int) -> None:
    """Take all words of a range out of their sets."""
    for slot in range(first, behind):
        drop(links, parts, slot)


@loop
def empty(links: Words, parts: Words, part: int) -> None:
    """Remove all words from a set, wherever these are."""
    slot = parts[part * ROW + HEAD]
    while slot != 0:
        links[slot * LINKS + _OWNER] = 0
        slot = links[slot * LINKS + _NEXT]
    parts[part * ROW + HEAD] = parts[part * ROW + COUNT] = 0


@loop
def entries(links: Words, parts: Words, part: int, found: Words) -> int:
    """Write down the entries of a set; return how many there are."""
    count, slot = 0, parts[part * ROW + HEAD]
    while slot != 0 and count < len(found):
        found[count] = slot
        count += 1
        slot = links[slot * LINKS + _NEXT]
    return count


def members(links: Words, parts: Words, part: int) -> Words:
    """Return the entries of a set; of one whose number of entries is wrong, at most one more than that."""
    found: Words = np.empty(int(parts[part * ROW + COUNT]) + 1, dtype=np.int64)
    return found[: entries(links, parts, part, found)]


def set_faults(
    links: Words, parts: Words, count: int, what: str, expected: Mapping[int, int]
) -> list[str]:
    """Say which fields are in no set, or in a wrong one, and which sets count their entries wrongly.

    Args:
        links: The table of all sets.
        parts: The rows of all parts.
        count: How many parts there are.
        what: The name of a part.
        expected: The part in whose set each field has to be, by its word; others have to be in none.
    """
    found, missing = [], dict(expected)
    for part in range(count):
        inside = members(links, parts, part)
        said = int(parts[part * ROW + COUNT])
        if len(inside) != said:
            found.append(
                f"the remembered set of {what} {part} has {len(inside)} entries and says {said}"
            )
        strange = [slot for slot in inside.tolist() if missing.pop(slot, -1) != part]
        found.extend(
            f"the remembered set of {what} {part} has word {slot}, which does not belong there"
            for slot in strange
        )
    found.extend(
        f"word {slot} refers into {what} {at}, and is not in its remembered set"
        for slot, at in missing.items()
    )
    return found


def first_run(free: NDArray[np.bool_], needed: int) -> int:
    """Return the first part of the first sequence of this many adjacent free parts; -1: there is none."""
    edges = np.diff(np.concatenate(([0], free, [0])).astype(np.int64))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    fits = starts[ends - starts >= needed]
    return int(fits[0]) if len(fits) else -1
