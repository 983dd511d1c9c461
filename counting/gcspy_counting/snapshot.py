"""All counters, and where all frames are, at one moment: while they are read no other thread runs, however long it takes.

What is read is dropped there, too, so that no object of the program is kept, or ends in a thread that is not its own. Knows `atomic_calls`.
"""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, repeat, takewhile
from operator import attrgetter, itemgetter, length_hint, methodcaller
from types import CodeType
from typing import Any

from gcspy_counting.atomic_calls import call_at_once, later, of_type, search_objects
from gcspy_counting.instrumented_code import HOOK_CODE, LARGEST, Position

__all__ = ["Snapshot", "take_snapshot"]

_TRIES = 100
_PAUSE_SECS = 0.0001
_SUSPENDABLE: tuple[tuple[int, type, str], ...] = (
    (0x0020, types.GeneratorType, "gi_frame"),
    (0x0080, types.CoroutineType, "cr_frame"),
    (0x0200, types.AsyncGeneratorType, "ag_frame"),
)
"""Flag of the code, type of the object, and where its frame is."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters and frames of one moment.

    Attributes:
        values: Value of each counter.
        raised: For each dictionary of exceptions its values, by position.
        places: Code and byte offset of each frame that runs or is suspended.
        time_nanos: When it was, by the monotonic clock.
        took_nanos: How long no other thread ran.
    """

    values: list[int]
    raised: list[dict[Position, int]]
    places: list[tuple[CodeType, int]]
    time_nanos: int
    took_nanos: int


def take_snapshot(
    counters: Sequence[Any], raised: Sequence[Mapping[Position, Any]], suspended: int
) -> Snapshot:
    """Read counters and frames, when no thread is just counting an exception.

    Args:
        counters: The counters.
        raised: Counters of exceptions, by position.
        suspended: Flags of the code whose suspended frames are searched for: if there are any, it takes longer, the more objects there are.
    """
    for _ in range(_TRIES):
        found, complete = _read(counters, raised, suspended)
        if complete:
            break
        time.sleep(_PAUSE_SECS)
    return found


def _back(tops: list[Any]) -> Iterable[Any]:
    """Return an iterator over some frames and those that called them."""
    outward = partial(accumulate, func=getattr)
    ways = map(outward, map(chain, zip(tops), repeat(repeat("f_back"))))
    return chain.from_iterable(map(partial(takewhile, bool), ways))


def _read(
    counters: Sequence[Any], raised: Sequence[Mapping[Position, Any]], suspended: int
) -> tuple[Snapshot, bool]:
    left: list[int] = []
    items: list[tuple[tuple[Position, Any], ...]] = []
    left_raised: list[int] = []
    tops: list[Any] = []
    frames: list[Any] = []
    idents: list[int] = []
    places: list[tuple[CodeType, int]] = []
    times: list[int] = []
    objects: list[Any] = []
    raised_counters = map(itemgetter(1), chain.from_iterable(items))
    current = chain.from_iterable(map(methodcaller("values"), later(sys._current_frames)))
    steps: list[Any] = [
        partial(times.extend, later(time.monotonic_ns)),
        partial(left.extend, map(length_hint, counters)),
        partial(items.extend, map(tuple, map(methodcaller("items"), raised))),
        partial(left_raised.extend, map(length_hint, raised_counters)),
        partial(tops.extend, current),
        partial(frames.extend, _back(tops)),
    ]
    if suspended:
        found = [
            partial(frames.extend, filter(None, map(attrgetter(name), of_type(objects, kind))))
            for flag, kind, name in _SUSPENDABLE
            if suspended & flag
        ]
        steps += search_objects(objects, found)
    steps += [
        partial(idents.extend, map(id, frames)),
        partial(places.extend, map(attrgetter("f_code", "f_lasti"), frames)),
        frames.clear,
        tops.clear,
        partial(times.extend, later(time.monotonic_ns)),
    ]
    call_at_once(steps)
    del current, raised_counters
    values = iter(left_raised)
    once = dict(zip(idents, places, strict=True))
    complete = not any(code is HOOK_CODE for code, _ in places)
    return (
        Snapshot(
            [LARGEST - each for each in left],
            [{position: LARGEST - next(values) for position, _ in each} for each in items],
            list(once.values()),
            times[0],
            times[1] - times[0],
        ),
        complete,
    )
