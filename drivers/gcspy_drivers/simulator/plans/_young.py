"""Loops of a collection of the young generation: for `generational`.

The collection copies the objects that the roots and the entries of the write barrier reach: into
the other half of the young generation, or into the old one for objects that are old enough.
Copies with unscanned fields are in a queue, since they are not contiguous as Cheney's are.

Knows the heap and the records of `policies/cards.py` and `policies/freelist.py`.
"""

from __future__ import annotations

from gcspy_drivers.simulator.facts import CLEAN, DIRTY
from gcspy_drivers.simulator.heap import (
    FORWARDED,
    FREE,
    HEADER_WORDS,
    NOTED,
    SIZE_MASK,
    age_of,
    fields_of,
    link_of,
)
from gcspy_drivers.simulator.loops import Bytes, Words, loop
from gcspy_drivers.simulator.policies.cards import begins, first_on_card, record
from gcspy_drivers.simulator.policies.copying import move
from gcspy_drivers.simulator.policies.freelist import take

__all__ = [
    "BUMP_OLD", "CARD", "COPIED", "COPIED_WORDS", "FIELD", "FROM_END", "FROM_START", "NOTE", "OLD_END", "OLD_TOP", "PROMOTED", "PROMOTED_WORDS",
    "QUEUE_HEAD", "QUEUE_TAIL", "REFUSED", "STATES", "TENURING", "TO_TOP", "YOUNG_END", "YOUNG_START",
    "copy_from_cards", "copy_from_noted", "copy_from_queue", "copy_from_roots",
]  # fmt: skip

# Scalars that the loops share: indexes of the array `state`.
FROM_START, FROM_END, TO_TOP, TENURING, BUMP_OLD, OLD_TOP, OLD_END, YOUNG_START, YOUNG_END = range(
    9
)
(
    QUEUE_HEAD,
    QUEUE_TAIL,
    FIELD,
    COPIED,
    COPIED_WORDS,
    PROMOTED,
    PROMOTED_WORDS,
    REFUSED,
    CARD,
    NOTE,
) = range(9, 19)
STATES = 19
_NOT_NOTED = ~NOTED
_START, _CARD_WORDS, _COUNT = 1, 2, 3


@loop
def _old_place(
    words: Words, heads: Words, tails: Words, free: Words, state: Words, size: int
) -> int:
    """Take words of the old generation; return 0 if there are none."""
    if state[BUMP_OLD] == 0:
        return take(words, heads, tails, free, size)
    cell = state[OLD_TOP]
    if cell + size > state[OLD_END]:
        return 0
    state[OLD_TOP] = cell + size
    return int(cell)


@loop
def evacuate(
    words: Words,
    queue: Words,
    heads: Words,
    tails: Words,
    free: Words,
    starts: Words,
    cards: Words,
    state: Words,
    cell: int,
) -> int:
    """Return where an object is from now on: copy it if it is young and was not copied."""
    if cell < state[FROM_START] or cell >= state[FROM_END]:
        return cell
    if words[cell] & FORWARDED:
        return link_of(words, cell)
    size = words[cell] & SIZE_MASK
    new = 0
    if age_of(words, cell) >= state[TENURING]:
        new = _old_place(words, heads, tails, free, state, size)
        if new != 0:
            begins(starts, cards, new, new + size)
            state[PROMOTED] += 1
            state[PROMOTED_WORDS] += size
        else:
            state[REFUSED] += 1
    if new == 0:
        new = state[TO_TOP]
        state[TO_TOP] += size
    move(words, cell, new)
    queue[state[QUEUE_TAIL]] = new
    state[QUEUE_TAIL] += 1
    state[COPIED] += 1
    state[COPIED_WORDS] += size
    return int(new)


@loop
def copy_from_roots(
    words: Words,
    roots: Words,
    queue: Words,
    heads: Words,
    tails: Words,
    free: Words,
    starts: Words,
    cards: Words,
    state: Words,
    first: int,
    behind: int,
) -> None:
    """Evacuate what root slots hold."""
    for slot in range(first, behind):
        roots[slot] = evacuate(words, queue, heads, tails, free, starts, cards, state, roots[slot])


@loop
def _copy_from_fields(
    words: Words,
    queue: Words,
    heads: Words,
    tails: Words,
    free: Words,
    starts: Words,
    cards: Words,
    state: Words,
    first: int,
    behind: int,
) -> bool:
    """Evacuate the objects in fields; return whether a field still refers to a young object."""
    young = False
    for field in range(first, behind):
        target = evacuate(words, queue, heads, tails, free, starts, cards, state, words[field])
        words[field] = target
        if state[YOUNG_START] <= target < state[YOUNG_END]:
            young = True
    return young


@loop
def copy_from_cards(
    words: Words,
    table: Bytes,
    queue: Words,
    heads: Words,
    tails: Words,
    free: Words,
    starts: Words,
    cards: Words,
    state: Words,
    limit: int,
) -> int:
    """Evacuate what fields on dirty cards refer to, and clean cards where no such reference is left; return how many were dirty."""
    done = 0
    while state[CARD] < len(table) and done < limit:
        card = state[CARD]
        if table[card] == DIRTY:
            done += 1
            start = cards[_START] + card * cards[_CARD_WORDS]
            end = min(start + cards[_CARD_WORDS], state[OLD_TOP])
            young = False
            cell = first_on_card(words, starts, cards, card)
            while cell < end:
                if (words[cell] & FREE) == 0:
                    first = max(cell + HEADER_WORDS, start)
                    behind = min(cell + HEADER_WORDS + fields_of(words, cell), end)
                    if _copy_from_fields(
                        words, queue, heads, tails, free, starts, cards, state, first, behind
                    ):
                        young = True
                cell += words[cell] & SIZE_MASK
            if not young:
                table[card] = CLEAN
        state[CARD] += 1
    return done


@loop
def copy_from_noted(
    words: Words,
    noted: Words,
    queue: Words,
    heads: Words,
    tails: Words,
    free: Words,
    starts: Words,
    cards: Words,
    state: Words,
    last: int,
    limit: int,
) -> int:
    """Evacuate the objects that recorded old objects refer to; remove the records of those without references to young objects. Return how many were scanned.

    Args:
        last: How many were noted when this began.
    """
    done = 0
    while state[CARD] < last and done < limit:
        cell = noted[state[CARD]]
        first = cell + HEADER_WORDS
        if _copy_from_fields(
            words,
            queue,
            heads,
            tails,
            free,
            starts,
            cards,
            state,
            first,
            first + fields_of(words, cell),
        ):
            noted[state[NOTE]] = cell
            state[NOTE] += 1
        else:
            words[cell] &= _NOT_NOTED
        state[CARD] += 1
        done += 1
    if state[CARD] == last:
        cards[_COUNT] = state[NOTE]
    return done


@loop
def copy_from_queue(
    words: Words,
    table: Bytes,
    noted: Words,
    queue: Words,
    heads: Words,
    tails: Words,
    free: Words,
    starts: Words,
    cards: Words,
    state: Words,
    limit: int,
) -> int:
    """Evacuate what copies refer to, and record it of those that are old now; return how many objects were copied."""
    before = state[COPIED]
    while state[QUEUE_HEAD] < state[QUEUE_TAIL]:
        cell = queue[state[QUEUE_HEAD]]
        old = cell < state[YOUNG_START] or cell >= state[YOUNG_END]
        fields = fields_of(words, cell)
        while state[FIELD] < fields:
            if state[COPIED] - before >= limit:
                return int(state[COPIED] - before)
            field = cell + HEADER_WORDS + state[FIELD]
            target = evacuate(words, queue, heads, tails, free, starts, cards, state, words[field])
            words[field] = target
            if old and state[YOUNG_START] <= target < state[YOUNG_END]:
                record(words, table, noted, cards, cell, field)
            state[FIELD] += 1
        state[QUEUE_HEAD] += 1
        state[FIELD] = 0
    return int(state[COPIED] - before)
