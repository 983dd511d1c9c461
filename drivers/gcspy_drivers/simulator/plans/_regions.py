"""Loops of the region collector: evacuation of a collection set, and what follows a marking; for `regions`.

Knows the heap and `policies/slotsets.py`, whose row of a region has its live words as key. Which regions are collected is the plan's business.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.simulator.heap import (
    COLOUR_MASK,
    FORWARDED,
    FREE,
    HEADER_WORDS,
    SIZE_MASK,
    WHITE,
    age_of,
    fields_of,
    link_of,
    paint,
)
from gcspy_drivers.simulator.loops import Words, loop
from gcspy_drivers.simulator.policies.copying import move
from gcspy_drivers.simulator.policies.slotsets import HEAD, KEY, KIND, ROW, TOP, drop, note

__all__ = [
    "CELL", "CONTINUED", "COPIED", "COPIED_WORDS", "COUNT_OF", "CURSOR", "EDEN", "FAILED", "FREE_REGION", "FREE_REGIONS", "LARGE", "OLD", "OLD_REGION",
    "PROMOTED_WORDS", "QUEUE_HEAD", "REGION", "SIZE", "START", "STATES", "SURVIVOR", "SURVIVOR_REGION", "TENURING",
    "pull_from_roots", "pull_from_sets", "renote", "renote_all", "scrub", "take_region",
]  # fmt: skip

FREE_REGION, EDEN, SURVIVOR, OLD, LARGE, CONTINUED = range(6)

# Scalars that the loops share: indexes of the array `state`.
(
    START,
    SIZE,
    COUNT_OF,
    FREE_REGIONS,
    TENURING,
    SURVIVOR_REGION,
    OLD_REGION,
    QUEUE_HEAD,
    QUEUE_TAIL,
    FIELD,
) = range(10)
DONE, COPIED, COPIED_WORDS, PROMOTED_WORDS, FAILED, CURSOR, REGION, CELL = range(10, 18)
STATES: Final = 18


@loop
def region_of(state: Words, cell: int) -> int:
    """Return the region that a word lies in."""
    return int((cell - state[START]) // state[SIZE])


@loop
def renote(words: Words, links: Words, rows: Words, state: Words, slot: int) -> None:
    """Put a field into the set that it belongs into now: of the region it refers into, unless that is its own, or its own is young."""
    drop(links, rows, slot)
    target = words[slot]
    if target == 0:
        return
    holder, at = region_of(state, slot), region_of(state, target)
    kind = rows[holder * ROW + KIND]
    if holder != at and kind != EDEN and kind != SURVIVOR:
        note(links, rows, slot, at)


@loop
def take_region(rows: Words, state: Words, kind: int) -> int:
    """Start to use a free region; return it, or -1 if there is none."""
    for region in range(state[COUNT_OF]):
        if rows[region * ROW + KIND] == FREE_REGION:
            rows[region * ROW + KIND] = kind
            rows[region * ROW + KEY] = -1
            rows[region * ROW + TOP] = state[START] + region * state[SIZE]
            state[FREE_REGIONS] -= 1
            return region
    return -1


@loop
def _place(rows: Words, state: Words, which: int, kind: int, size: int) -> int:
    """Take words of the region that receives copies of this kind, or of a new one; return 0 if there is none."""
    region = state[which]
    if region < 0 or rows[region * ROW + TOP] + size > state[START] + (region + 1) * state[SIZE]:
        region = take_region(rows, state, kind)
        if region < 0:
            return 0
        state[which] = region
    cell = rows[region * ROW + TOP]
    rows[region * ROW + TOP] = cell + size
    return int(cell)


@loop
def _evacuate(
    words: Words, rows: Words, chosen: Words, queue: Words, state: Words, cell: int
) -> int:
    """Return where an object is from now on: copy it if its region is in the collection set and it was not copied."""
    if cell < state[START]:
        return cell
    region = region_of(state, cell)
    if chosen[region] == 0:
        return cell
    if words[cell] & FORWARDED:
        return link_of(words, cell)
    size = words[cell] & SIZE_MASK
    if rows[region * ROW + KIND] != OLD and age_of(words, cell) < state[TENURING]:
        new = _place(rows, state, SURVIVOR_REGION, SURVIVOR, size)
    else:
        new = _place(rows, state, OLD_REGION, OLD, size)
        if rows[region * ROW + KIND] != OLD:
            state[PROMOTED_WORDS] += size
    if new == 0:
        state[FAILED] = 1
        return cell
    move(words, cell, new)
    queue[state[QUEUE_TAIL]] = new
    state[QUEUE_TAIL] += 1
    state[DONE] += 1
    state[COPIED] += 1
    state[COPIED_WORDS] += size
    return new


@loop
def _drain(
    words: Words, links: Words, rows: Words, chosen: Words, queue: Words, state: Words, limit: int
) -> bool:
    """Evacuate the objects that copies refer to; return whether all copies were scanned and more may follow."""
    while state[QUEUE_HEAD] < state[QUEUE_TAIL]:
        cell = queue[state[QUEUE_HEAD]]
        fields = fields_of(words, cell)
        while state[FIELD] < fields:
            if state[DONE] >= limit or state[FAILED] != 0:
                return False
            slot = cell + HEADER_WORDS + state[FIELD]
            words[slot] = _evacuate(words, rows, chosen, queue, state, words[slot])
            renote(words, links, rows, state, slot)
            state[FIELD] += 1
        state[QUEUE_HEAD] += 1
        state[FIELD] = 0
    state[QUEUE_HEAD] = state[QUEUE_TAIL] = 0
    return bool(state[DONE] < limit and state[FAILED] == 0)


@loop
def pull_from_roots(
    words: Words,
    roots: Words,
    links: Words,
    rows: Words,
    chosen: Words,
    queue: Words,
    state: Words,
    limit: int,
) -> int:
    """Evacuate what roots reach in the collection set; return how many objects were copied."""
    state[DONE] = 0
    while _drain(words, links, rows, chosen, queue, state, limit) and state[CURSOR] < len(roots):
        roots[state[CURSOR]] = _evacuate(words, rows, chosen, queue, state, roots[state[CURSOR]])
        state[CURSOR] += 1
    return int(state[DONE])


@loop
def pull_from_sets(
    words: Words, links: Words, rows: Words, chosen: Words, queue: Words, state: Words, limit: int
) -> int:
    """Evacuate the objects of the collection set that other regions refer to, and all that these reach; return how many were copied.

    A field in a region of the collection set is only dropped from the remembered set: if its object is alive, the copy has the reference.
    """
    state[DONE] = 0
    while (
        _drain(words, links, rows, chosen, queue, state, limit) and state[REGION] < state[COUNT_OF]
    ):
        region = state[REGION]
        slot = rows[region * ROW + HEAD]
        if chosen[region] == 0 or slot == 0:
            state[REGION] += 1
        elif chosen[region_of(state, slot)] != 0:
            drop(links, rows, slot)
        else:
            words[slot] = _evacuate(words, rows, chosen, queue, state, words[slot])
            renote(words, links, rows, state, slot)
    return int(state[DONE])


@loop
def _next_cell(rows: Words, state: Words) -> bool:
    """Go to the next region in use when the present one is done; return whether there is a cell."""
    while state[REGION] < state[COUNT_OF]:
        kind = rows[state[REGION] * ROW + KIND]
        start = state[START] + state[REGION] * state[SIZE]
        if kind != FREE_REGION and kind != CONTINUED:
            if state[CELL] < start:
                state[CELL] = start
            if state[CELL] < rows[state[REGION] * ROW + TOP]:
                return True
        state[REGION] += 1
    return False


@loop
def scrub(words: Words, links: Words, rows: Words, state: Words, limit: int) -> int:
    """After a marking: count what lives in each region, let it be white again, and let what is dead refer to nothing; return how many cells.

    So no remembered set has an entry of an object that is known to be dead, and none refers into a region that is freed.
    """
    done = 0
    while done < limit and _next_cell(rows, state):
        region, cell = state[REGION], state[CELL]
        size = words[cell] & SIZE_MASK
        if cell == state[START] + region * state[SIZE]:
            rows[region * ROW + KEY] = 0
        if (words[cell] & FREE) == 0:
            if (words[cell] & COLOUR_MASK) != 0:
                paint(words, cell, WHITE)
                rows[region * ROW + KEY] += size
            else:
                first = cell + HEADER_WORDS
                for slot in range(first, first + fields_of(words, cell)):
                    drop(links, rows, slot)
                    words[slot] = 0
        state[CELL] = cell + size
        done += 1
    return done


@loop
def renote_all(words: Words, links: Words, rows: Words, state: Words, limit: int) -> int:
    """After a compaction: enter all fields into the remembered sets they belong to; return how many cells were read."""
    done = 0
    while done < limit and _next_cell(rows, state):
        cell = state[CELL]
        if (words[cell] & FREE) == 0:
            first = cell + HEADER_WORDS
            for slot in range(first, first + fields_of(words, cell)):
                renote(words, links, rows, state, slot)
        state[CELL] = cell + (words[cell] & SIZE_MASK)
        done += 1
    return done
