"""`AgeStreams`: bytes in use that were not written, or not accessed, for some time, as streams of a space; and a sentence about them.

Knows ages and spaces; does not know how writes and accesses are seen.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.kit.streams import add_bytes, hide_all
from gcspy_drivers.native_heap.malloc_reader import MallocReading
from gcspy_drivers.remote.pages.memory_ages import AGE_SECS, MemoryAges
from gcspy_server.api import ServerSpace

__all__ = ["AgeStreams", "ages_text"]

_NAMES: Final = {10: "10 seconds", 60: "a minute", 600: "10 minutes", 3600: "an hour"}
_DONE: Final = {False: "written", True: "accessed"}
_ABOUT: Final = {
    False: "Bytes in use on pages that the program has not written for {} or more; it may have read them",
    True: "Bytes of chunks in use of which the program has not accessed anything for {} or more",
}
_NANOS: Final = 1_000_000_000


class AgeStreams:
    """The streams of one space, one for each of `AGE_SECS`.

    Args:
        space: The space.
        ages: The ages that are shown.
        order: Order of the first stream.
    """

    def __init__(self, space: ServerSpace, ages: MemoryAges, order: int) -> None:
        about = _ABOUT[ages.sees_reads]
        self._streams = [
            add_bytes(
                space,
                f"Not {_DONE[ages.sees_reads]} for {_NAMES[secs]}",
                about.format(_NAMES[secs]),
                order=order + place,
            )
            for place, secs in enumerate(AGE_SECS)
        ]

    def fill(
        self, aged: npt.NDArray[np.uint64] | npt.NDArray[np.int64] | None, ages: MemoryAges | None
    ) -> None:
        """Fill the streams.

        Args:
            aged: (ages, tiles) bytes in use by the age of their pages; None: not known.
            ages: Since when ages are followed; None: they are not.
        """
        if aged is None or ages is None or not ages.begun_nanos:
            hide_all(self._streams)
            return
        followed = (ages.looked_nanos - ages.begun_nanos) // _NANOS
        older = np.cumsum(aged[::-1], axis=0)[::-1].astype(np.int64)
        for place, (stream, secs) in enumerate(zip(self._streams, AGE_SECS, strict=True), start=1):
            stream.data[:] = older[place]
            if followed < secs:  # nothing can be so old yet
                hide_all([stream])


def ages_text(reading: MallocReading) -> str:
    """Say how much of what is in use was not written or accessed, and for how long; empty: nothing is known."""
    ages = reading.ages
    if ages is None or not ages.begun_nanos or not reading.walks or not reading.used_is_known:
        return ""
    aged = sum((walk.aged.sum(axis=1) for each in reading.walks for walk in each), start=0)
    if reading.mapped_aged is not None:
        aged = aged + reading.mapped_aged.sum(axis=1)
    older = np.cumsum(np.asarray(aged, dtype=np.int64)[::-1])[::-1]
    followed = (ages.looked_nanos - ages.begun_nanos) // _NANOS
    parts = [
        f"{int(older[place]):,} were not {_DONE[ages.sees_reads]} for {_NAMES[secs]}"
        for place, secs in enumerate(AGE_SECS, start=1)
        if secs <= followed
    ]
    if not parts:
        return f"uses have been followed for {followed} s"
    return f"of {int(older[0]):,} bytes in use, {', '.join(parts)} (followed for {followed:,} s)"
