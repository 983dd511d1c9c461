"""Loops of the Train: cars, and how objects are pulled out of one, or out of the nursery, into others; for `train`.

The key of a car is the number of its train, and behind it the car's own, so that comparing keys compares the order in which cars will be collected.
Cars are numbered as they are made: a car that is appended has the highest number of its train.

Knows the heap and `policies/slotsets.py`. The plan decides when which car is collected.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.simulator.heap import (
    FORWARDED,
    HEADER_WORDS,
    SIZE_MASK,
    fields_of,
    link_of,
    set_link,
)
from gcspy_drivers.simulator.loops import Words, loop
from gcspy_drivers.simulator.policies.copying import move
from gcspy_drivers.simulator.policies.slotsets import HEAD, KEY, KIND, ROW, TOP, after, drop, note

__all__ = [
    "ASTRAY", "CAR", "CACHED", "CARS", "CAR_WORDS", "CONTINUED", "COPIED", "COPIED_WORDS", "CURSOR", "FAILED", "FREE_CAR", "FREE_CARS", "FROM", "FROM_END", "FROM_OTHER_TRAINS", "FROM_ROOTS", "FROM_SET", "FROM_START",
    "FROM_TRAIN", "KEEP", "LARGE", "LEFT", "LIMIT_POPULAR", "NEXT_CAR", "POPULAR", "QUEUE_HEAD", "RESERVE", "START", "STATES", "TARGET", "TRAIN_SHIFT",
    "count_references", "evacuate", "place", "pull", "referenced", "region_of", "renote", "renote_object", "renote_set", "take_car", "train_of", "WITHHELD",
]  # fmt: skip

FREE_CAR, CAR, POPULAR, LARGE, CONTINUED, WITHHELD = range(6)
TRAIN_SHIFT: Final = 32

# Scalars that the loops share: indexes of the array `state`.
START, CAR_WORDS, CARS, FROM_START, FROM_END, FROM, FROM_TRAIN, TARGET, FREE_CARS, RESERVE = range(
    10
)
(
    NEXT_CAR,
    CURSOR,
    QUEUE_HEAD,
    QUEUE_TAIL,
    FIELD,
    DONE,
    COPIED,
    COPIED_WORDS,
    LIMIT_POPULAR,
    LEFT,
    KEEP,
    CACHED,
    FAILED,
    ASTRAY,
) = range(10, 24)
STATES: Final = 24
FROM_ROOTS, FROM_SET, FROM_OTHER_TRAINS = range(3)


@loop
def region_of(state: Words, cell: int) -> int:
    """Return the region that a word of the mature space lies in."""
    return int((cell - state[START]) // state[CAR_WORDS])


@loop
def train_of(cars: Words, region: int) -> int:
    """Return the train of a car."""
    return int(cars[region * ROW + KEY] >> TRAIN_SHIFT)


@loop
def renote(words: Words, links: Words, cars: Words, state: Words, slot: int) -> None:
    """Put a field of a mature object into the set that it belongs into now: the nursery's, or that of a car that is collected earlier than its own."""
    drop(links, cars, slot)
    target = words[slot]
    if target == 0:
        return
    if target < state[START]:
        note(links, cars, slot, state[CARS])
    else:
        at = region_of(state, target)
        if cars[region_of(state, slot) * ROW + KEY] > cars[at * ROW + KEY]:
            note(links, cars, slot, at)


@loop
def renote_object(words: Words, links: Words, cars: Words, state: Words, cell: int) -> None:
    """Do so with all fields of an object."""
    first = cell + HEADER_WORDS
    for slot in range(first, first + fields_of(words, cell)):
        renote(words, links, cars, state, slot)


@loop
def renote_set(words: Words, links: Words, cars: Words, state: Words, region: int) -> None:
    """Do so with all entries of a car's set, when its key has changed."""
    slot = cars[region * ROW + HEAD]
    while slot != 0:
        behind = after(links, slot)
        renote(words, links, cars, state, slot)
        slot = behind


@loop
def take_car(cars: Words, state: Words, train: int, kind: int) -> int:
    """Append a car to a train; return its region, or -1 if none is free."""
    for region in range(state[CARS]):
        if cars[region * ROW + KIND] == FREE_CAR:
            cars[region * ROW + KIND] = kind
            cars[region * ROW + KEY] = (train << TRAIN_SHIFT) | state[NEXT_CAR]
            cars[region * ROW + TOP] = state[START] + region * state[CAR_WORDS]
            state[NEXT_CAR] += 1
            state[FREE_CARS] -= 1
            return region
    return -1


@loop
def last_car(cars: Words, state: Words, train: int) -> int:
    """Return the last ordinary car of a train, but for the one that is being collected; -1 if it has none."""
    cached = state[CACHED]
    if (
        cached >= 0
        and cars[cached * ROW + KIND] == CAR
        and train_of(cars, cached) == train
        and cached != state[FROM]
    ):
        return int(cached)
    found = -1
    for region in range(state[CARS]):
        fits = (
            cars[region * ROW + KIND] == CAR
            and train_of(cars, region) == train
            and region != state[FROM]
        )
        if fits and (found < 0 or cars[region * ROW + KEY] > cars[found * ROW + KEY]):
            found = region
    return found


@loop
def _room_in(cars: Words, state: Words, train: int, size: int, reserve: int) -> int:
    """Return a car of a train with room, a new one if more than `reserve` are free; or -1."""
    car = last_car(cars, state, train)
    if car >= 0 and cars[car * ROW + TOP] + size <= state[START] + (car + 1) * state[CAR_WORDS]:
        return car
    if state[FREE_CARS] > reserve:
        return take_car(cars, state, train, CAR)
    return -1


@loop
def place(cars: Words, state: Words, train: int, size: int) -> int:
    """Take words at the end of a train; where cars are short, at the end of the train that receives objects referred to by roots. Return 0 if there are none."""
    car = _room_in(cars, state, train, size, state[RESERVE])
    if car < 0 and state[KEEP] == 0:
        car = _room_in(cars, state, state[TARGET], size, 0)
        state[ASTRAY] += 1
    if car < 0:
        return 0
    state[CACHED] = car
    cell = cars[car * ROW + TOP]
    cars[car * ROW + TOP] = cell + size
    return int(cell)


@loop
def evacuate(words: Words, cars: Words, queue: Words, state: Words, cell: int, train: int) -> int:
    """Return where an object is from now on: copy it to a train if it lies in what is being collected and was not copied."""
    if cell < state[FROM_START] or cell >= state[FROM_END]:
        return cell
    if words[cell] & FORWARDED:
        return link_of(words, cell)
    size = words[cell] & SIZE_MASK
    new = 0
    if (
        state[LIMIT_POPULAR] > 0
        and link_of(words, cell) >= state[LIMIT_POPULAR]
        and state[FREE_CARS] > state[RESERVE]
    ):
        region = take_car(cars, state, train, POPULAR)
        new = cars[region * ROW + TOP]
        cars[region * ROW + TOP] = new + size
    else:
        new = place(cars, state, train, size)
        if new == 0:
            state[FAILED] = 1
            return cell
    move(words, cell, new)
    set_link(words, new, 0)
    queue[state[QUEUE_TAIL]] = new
    state[QUEUE_TAIL] += 1
    state[DONE] += 1
    state[COPIED] += 1
    state[COPIED_WORDS] += size
    if train_of(cars, region_of(state, new)) != state[FROM_TRAIN]:
        state[LEFT] += 1
    return int(new)


@loop
def _pull_into(
    words: Words, links: Words, cars: Words, queue: Words, state: Words, slot: int
) -> None:
    """Evacuate what a field of a mature object refers to, into the train of that object."""
    words[slot] = evacuate(
        words, cars, queue, state, words[slot], train_of(cars, region_of(state, slot))
    )
    renote(words, links, cars, state, slot)


@loop
def _drain(words: Words, links: Words, cars: Words, queue: Words, state: Words, limit: int) -> bool:
    """Evacuate the objects that copies refer to into the trains of the copies; return whether all copies were scanned."""
    while state[QUEUE_HEAD] < state[QUEUE_TAIL]:
        cell = queue[state[QUEUE_HEAD]]
        fields = fields_of(words, cell)
        while state[FIELD] < fields:
            if state[DONE] >= limit:
                return False
            _pull_into(words, links, cars, queue, state, cell + HEADER_WORDS + state[FIELD])
            state[FIELD] += 1
        state[QUEUE_HEAD] += 1
        state[FIELD] = 0
    state[QUEUE_HEAD] = state[QUEUE_TAIL] = 0
    return bool(state[DONE] < limit)


@loop
def pull(
    words: Words,
    roots: Words,
    links: Words,
    cars: Words,
    queue: Words,
    state: Words,
    source: int,
    limit: int,
) -> int:
    """Evacuate what is referred to from outside, and what that refers to; return how many objects were copied.

    Args:
        source: FROM_ROOTS; FROM_SET: the set of what is collected, to its end; FROM_OTHER_TRAINS: only those of its entries.
    """
    state[DONE] = 0
    while _drain(words, links, cars, queue, state, limit) and state[FAILED] == 0:
        if source == FROM_ROOTS:
            if state[CURSOR] >= len(roots):
                break
            roots[state[CURSOR]] = evacuate(
                words, cars, queue, state, roots[state[CURSOR]], state[TARGET]
            )
            state[CURSOR] += 1
        elif source == FROM_SET:
            slot = cars[state[FROM] * ROW + HEAD]
            if slot == 0:
                break
            _pull_into(words, links, cars, queue, state, slot)
        else:
            slot = state[CURSOR]
            if slot == 0:
                break
            state[CURSOR] = after(links, slot)
            if train_of(cars, region_of(state, slot)) != state[FROM_TRAIN]:
                _pull_into(words, links, cars, queue, state, slot)
    return int(state[DONE])


@loop
def count_references(words: Words, links: Words, state: Words, limit: int) -> int:
    """Count in the objects' links how many entries of the set refer to each; return how many entries were read."""
    done = 0
    while state[CURSOR] != 0 and done < limit:
        cell = words[state[CURSOR]]
        set_link(words, cell, link_of(words, cell) + 1)
        state[CURSOR] = after(links, state[CURSOR])
        done += 1
    return done


@loop
def referenced(
    roots: Words, links: Words, cars: Words, state: Words, region: int, train: int
) -> int:
    """Return the source of a reference to something in a car: the number of another train, the present target for a root, `train` for its own, or 0."""
    first, end = state[START] + region * state[CAR_WORDS], cars[region * ROW + TOP]
    for slot in range(len(roots)):
        if first <= roots[slot] < end:
            return int(state[TARGET])
    found, slot = 0, cars[region * ROW + HEAD]
    while slot != 0:
        found = train_of(cars, region_of(state, slot))
        if found != train:
            return found
        slot = after(links, slot)
    return found
