"""The records of a Python 3.15 collector about its latest collections: exact times, without a stub in the program.

Three rings on the heap, for each generation one: when a collection began and ended by the monotonic clock, and the totals until then.
The program writes while we read, and counts its writings: a reading during which that number changed, or was odd, is made
again, and then its times are not known.

Knows the rings; knows neither streams nor where the pointer to them is.

Source: CPython 3.15 pycore_interp_structs.h, struct gc_stats and gc_generation_stats; Python/gc.c, gc_collect_main; ``update_seq`` from
3.15.1 on (before that it is not there, and reads as zero).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt


class _Readable(Protocol):
    """Like `generations.Readable`."""

    def try_read(self, addr: int, size_bytes: int, /) -> bytes | None: ...


__all__ = [
    "RINGS_BYTES",
    "TIMED",
    "CollectionTimes",
    "CollectionRings",
    "ToldTime",
    "read_rings",
    "times_text",
]

_STATS = np.dtype([("collections", "<i8"), ("collected", "<i8"), ("uncollectable", "<i8")])
_ENTRY = np.dtype(
    [
        ("start", "<i8"),
        ("stop", "<i8"),
        ("stats", _STATS),
        ("candidates", "<i8"),
        ("secs", "<f8"),
        ("heap", "<i8"),
    ]
)
TIMED = np.dtype([("generation", "<i8"), ("number", "<i8"), ("start", "<i8"), ("stop", "<i8")])
"""A collection: its generation, its number in that from 1, when it began and ended in ns."""
_RINGS: Final = (
    (0, 11),
    (712, 3),
    (912, 3),
)  # start of each generation's records, and their number
RINGS_BYTES: Final = 1120
_SEQUENCE_AT: Final = 1112
_TRIES: Final = 3
_NANOS: Final = 1_000_000_000
_MOST_SECS: Final = 1e9
_MOST_SAID: Final = 4

Records = npt.NDArray[np.void]


@dataclass(frozen=True, eq=False)
class CollectionTimes:
    """When a collector's latest collections were, by the monotonic clock of the target's host.

    Attributes:
        recent: (n,) records ``generation``, ``number`` (from 1, in its generation), ``start``, ``stop`` in ns, by start: at most
            the last 11 of the young generation and the last 3 of each other.
        total_nanos: (3,) how long each generation's collections took in all.
    """

    recent: Records
    total_nanos: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CollectionRings:
    """One reading of them.

    Attributes:
        stats: (3,) records ``collections``, ``collected``, ``uncollectable``: the totals of each generation.
        times: When they were; None when the collector wrote while they were read, or they are not as they should be.
    """

    stats: Records
    times: CollectionTimes | None


def read_rings(memory: _Readable, where: int) -> CollectionRings | None:
    """Read the rings; None when they cannot be.

    Args:
        memory: The target's memory.
        where: The address in the collector's state.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    found = None
    for _ in range(_TRIES):
        found = memory.try_read(where, RINGS_BYTES)
        again = memory.try_read(where + _SEQUENCE_AT, 4)
        if found is None:
            return None
        if found[_SEQUENCE_AT : _SEQUENCE_AT + 4] == again and not found[_SEQUENCE_AT] & 1:
            return _parse(found, whole=True)
    return None if found is None else _parse(found, whole=False)


def _parse(found: bytes, *, whole: bool) -> CollectionRings:
    stats = np.zeros(len(_RINGS), dtype=_STATS)
    total_nanos = np.zeros(len(_RINGS), dtype=np.int64)
    rows = []
    for generation, (begin, entries) in enumerate(_RINGS):
        ring = np.frombuffer(found, dtype=_ENTRY, count=entries, offset=begin)
        # Each entry has the totals until then, so the latest one has most collections.
        latest = ring[int(ring["stats"]["collections"].argmax())]
        stats[generation] = latest["stats"]
        used = ring[ring["stats"]["collections"] > 0]
        whole = whole and bool((used["start"] > 0).all() and (used["stop"] >= used["start"]).all())
        whole = whole and 0 <= float(latest["secs"]) < _MOST_SECS
        total_nanos[generation] = round(float(latest["secs"]) * _NANOS) if whole else 0
        timed = np.zeros(len(used), dtype=TIMED)
        timed["generation"] = generation
        timed["number"] = used["stats"]["collections"]
        timed["start"], timed["stop"] = used["start"], used["stop"]
        rows.append(timed)
    recent = np.concatenate(rows)
    return CollectionRings(
        stats, CollectionTimes(np.sort(recent, order="start"), total_nanos) if whole else None
    )


class ToldTime:
    """Times of a collector's collections, for streams.

    Args:
        times: Its records.

    Attributes:
        total_micros: (3,) how long the collections of each generation took, in µs.
        total_known: (3,) whether that is known; it is: Python counts from its start on.
        last_micros: (3,) the last of each, in µs; 0 before the first.
        timed: (3,) whether there was one.
    """

    def __init__(self, times: CollectionTimes) -> None:
        self._times = times
        self.total_micros = times.total_nanos // 1000
        self.total_known = np.ones(len(_RINGS), dtype=np.bool_)
        self.timed = np.zeros(len(_RINGS), dtype=np.bool_)
        self.last_micros = np.zeros(len(_RINGS), dtype=np.int64)
        for one in times.recent:  # by start: a later one of the same generation comes later
            self.timed[int(one["generation"])] = True
            self.last_micros[int(one["generation"])] = (
                int(one["stop"]) - int(one["start"])
            ) // 1000

    def note(self, collections: npt.NDArray[np.int64]) -> str:
        """Describe it as text; empty before the first collection.

        Args:
            collections: (3,) how often each generation was collected.
        """
        recent = self._times.recent
        if not len(recent):
            return ""
        spent = float(self._times.total_nanos.sum()) / 1e6
        return f"its {int(collections.sum())} collections took {spent:,.1f} ms, as measured by itself; the last: {_said(recent[-1])}"


def times_text(times: CollectionTimes | None, before: npt.NDArray[np.int64]) -> str:
    """Describe the times of the collections since an earlier reading; empty if unknown.

    Args:
        times: The collector's records.
        before: (3,) how often each generation had been collected.
    """
    if times is None:
        return ""
    since = times.recent[times.recent["number"] > before[times.recent["generation"]]]
    said = [_said(one) for one in since[-_MOST_SAID:]]
    left_out = len(since) - len(said)
    return ", ".join([f"{left_out} earlier", *said] if left_out else said)


def _said(one: np.void) -> str:
    start, stop = int(one["start"]), int(one["stop"])
    return (
        f"gen{int(one['generation'])} at {start / _NANOS:.6f} s for {(stop - start) / 1e6:.3f} ms"
    )
