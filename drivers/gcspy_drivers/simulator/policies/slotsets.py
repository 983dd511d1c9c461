"""Remembered sets whose entries are words: each reference field is in the set of the part of the heap that it refers into, or in none.

A set is a list that is threaded through a table beside the heap: three entries a word (next, previous, whose). So an entry is added and taken away
at once, none is there twice, and none is left behind when its field is written again or its object dies with its car. Real collectors cannot
afford that table: theirs are hash tables, buffers or coarser than words, with entries that are out of date, and they look at each before they believe it.

    row of a part    key, kind, top, head of its set, entries in its set

Knows words and parts; which reference must be remembered is its collector's business.
"""

from __future__ import annotations

from typing import Final

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
    "note",
    "owner",
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
    """Take all words out of a set, wherever these are."""
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
