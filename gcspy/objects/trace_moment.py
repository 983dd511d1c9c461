"""Moments of a trace as users write them: ``end``, ``peak``, ``gc:3``, ``12.5s``, or the number of an event.

Knows texts and rebuilt heaps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
from gcspy_protocol.errors import CommandError

if TYPE_CHECKING:
    from gcspy_objects.heap import RebuiltHeap

__all__ = ["MOMENTS", "event_of"]

MOMENTS: Final = "end, start, peak, gc:3 (its start), gc:3:end, 12.5s, or the number of an event"
"""What a user may write."""

_FORM: Final = re.compile(
    r"(?P<word>end|start|peak)|gc:(?P<gc>\d{1,18})(?P<side>:start|:end)?|(?P<secs>\d{1,9}(?:\.\d{1,9})?)s|(?P<event>\d{1,18})"
)


def event_of(heap: RebuiltHeap, text: str) -> int:
    """The event of a trace that a text names; the heap before it is meant.

    Raises:
        CommandError: There is no such moment.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise CommandError(f"{text!r} is not a time of a trace: write {MOMENTS}")
    if match["word"] == "end":
        return heap.events
    if match["word"] == "start":
        return 0
    if match["word"] == "peak":
        from gcspy_objects.analysis.peak import peak_of

        return peak_of(heap).event
    if match["secs"]:
        return _event_at(heap, float(match["secs"]))
    if match["event"]:
        if int(match["event"]) > heap.events:
            raise CommandError(
                f"there is no event {int(match['event']):,}: the trace has {heap.events:,}"
            )
        return int(match["event"])
    number = int(match["gc"])
    if not 1 <= number <= len(heap.collections):
        raise CommandError(
            f"there is no collection {number}: the trace has {len(heap.collections):,}, from 1 on"
        )
    one = heap.collections[number - 1]
    return one.end_event + 1 if match["side"] == ":end" else one.start_event


def _event_at(heap: RebuiltHeap, secs: float) -> int:
    """The event about which a time had passed since the trace's start."""
    length = heap.nanos_at(heap.events)
    if not length:
        raise CommandError(
            "the trace has no times between its collections: name a collection, such as gc:3, or an event"
        )
    if secs * 1e9 > length:
        raise CommandError(f"the trace ends after {length / 1e9:.1f} s: {secs:g} s is behind that")
    low, high = 0, heap.events
    while low < high:
        middle = (low + high) // 2
        if heap.nanos_at(middle) < secs * 1e9:
            low = middle + 1
        else:
            high = middle
    return int(np.clip(low, 0, heap.events))
