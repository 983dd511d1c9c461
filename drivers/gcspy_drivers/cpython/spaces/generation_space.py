"""The space "GC generations": a tile is a generation of one interpreter's collector.

Maps `Generations` to streams; knows no memory.
"""

from __future__ import annotations

import numpy as np

from gcspy_drivers.cpython.collector.collection_rings import ToldTime
from gcspy_drivers.cpython.collector.collector_time import CollectorTime
from gcspy_drivers.cpython.collector.generations import GENERATIONS, Generations
from gcspy_drivers.cpython.collector.survivors import Survivors, full_collection_waits_for
from gcspy_drivers.kit.streams import I4_MAX, I8_MAX, add_amount
from gcspy_server.api import Server, ServerStream, StringNames

__all__ = ["GenerationSpace", "collections_between", "cause_text"]

_NAMES = ("0 (young)", "1 (middle)", "2 (old)")
_OLD = GENERATIONS - 1
_I8_MAX = (1 << 63) - 1


class GenerationSpace:
    """The generations of one interpreter as a space.

    Args:
        server: The server to add the space to.
        title: Name of the space.
    """

    def __init__(self, server: Server, title: str) -> None:
        self.space = server.add_space(
            title,
            names=StringNames(_NAMES),
            driver="cpython",
            tile_title="Generation ",
            description="The collector's generations, as gc.get_count(), gc.get_threshold() and gc.get_stats() report them",
        )
        self.threshold = self._stream(
            "Threshold", 1, "The count above which the generation is collected", dtype="i4"
        )
        self.count = self._stream(
            "Count",
            0,
            "Young: allocations less deallocations since its last collection; else: collections of the next younger one",
            dtype="i4",
            of=self.threshold,
            threshold=True,
        )
        self.collections = self._stream("Collections", 2, "Number of collections", dtype="i8")
        self.collected = self._stream(
            "Collected", 3, "Objects that its collections freed", dtype="i8"
        )
        self.uncollectable = self._stream(
            "Uncollectable", 4, "Objects that its collections found and could not free", dtype="i8"
        )
        self.examined = self._stream(
            "Examined",
            6,
            "Objects examined by its last collection, including those of younger generations, as far as known",
            dtype="i8",
        )
        self.survivors = self._stream(
            "Survivors",
            5,
            "Objects that its last collection left alive: they are in the next older generation then. Known of the oldest one; of "
            "the middle one when each of its collections is seen; of the young one at level 3 with exact events",
            dtype="i8",
            of=self.examined,
        )
        self.needed = self._stream(
            "Waits for",
            8,
            "A quarter of the survivors of the last full collection: the next full collection waits for this many pending objects, whatever the count",
            dtype="i8",
        )
        self.pending = self._stream(
            "Pending",
            7,
            "Objects that were moved to the oldest generation since its last collection",
            dtype="i8",
        )
        self.garbage = self._stream(
            "In gc.garbage",
            9,
            "Length of gc.garbage, shown with the oldest generation: uncollectable objects, or all that was found with gc.DEBUG_SAVEALL",
            dtype="i8",
        )

        self.time = self._stream(
            "Collecting",
            10,
            "Processor time of its collections, as far as their start and end were reported; without exact events their duration, which Python 3.15 records itself; otherwise unknown",
            dtype="i8",
            suffix=" µs",
        )
        self.last_time = self._stream(
            "Last collection",
            11,
            "Time of its last reported collection, as for Collecting",
            dtype="i8",
            suffix=" µs",
        )

    def _stream(
        self,
        name: str,
        order: int,
        description: str,
        *,
        dtype: str,
        of: ServerStream | None = None,
        suffix: str = "",
        threshold: bool = False,
    ) -> ServerStream:
        return add_amount(
            self.space,
            name,
            description,
            order=order,
            most=I8_MAX if dtype == "i8" else I4_MAX,
            suffix=suffix,
            of=of,
            dtype=dtype,
            threshold=threshold,
        )

    def fill(
        self,
        found: Generations | None,
        survivors: Survivors,
        *,
        spent: CollectorTime | ToldTime | None = None,
        note: str = "",
    ) -> None:
        """Fill the space.

        Args:
            found: The collector's numbers; None: everything is unknown.
            survivors: Survivors of its last collections.
            spent: How long its collections took; None: that is not known.
            note: Further information.
        """
        self.space.reset()
        if found is None:
            for stream in self.space.streams:
                stream.set_unknown(np.ones(GENERATIONS, dtype=np.bool_))
            self.space.info = "the collector's state could not be read"
            return
        self.threshold.data[:] = found.threshold
        self.count.data[:] = found.count
        self.collections.data[:] = found.collections
        self.collected.data[:] = found.collected
        self.uncollectable.data[:] = found.uncollectable
        if found.whole:
            self.pending.data[_OLD] = found.pending
            self.needed.data[_OLD] = full_collection_waits_for(found)
        else:
            self.pending.set_unknown([_OLD])
            self.needed.set_unknown([_OLD])
        if found.garbage is None:
            self.garbage.set_unknown([_OLD])
        else:
            self.garbage.data[_OLD] = found.garbage
        for stream, numbers, known in (
            (self.survivors, survivors.survivors, survivors.survivors_known),
            (self.examined, survivors.examined, survivors.examined_known),
        ):
            stream.data[:] = numbers
            if not known.all():
                stream.set_unknown(~known)
        if spent is None:
            for stream in (self.time, self.last_time):
                stream.set_unknown(np.ones(GENERATIONS, dtype=np.bool_))
        else:
            self.time.data[:] = spent.total_micros
            if not spent.total_known.all():
                self.time.set_unknown(~spent.total_known)
            self.last_time.data[:] = spent.last_micros
            if not spent.timed.all():
                self.last_time.set_unknown(~spent.timed)
        self.space.info = _info(found, note)


def _info(found: Generations, note: str) -> str:
    if not found.whole:
        return note
    automatic = (
        "automatic collection is on"
        if found.enabled
        else "automatic collection is off (gc.disable)"
    )
    parts = [automatic]
    if found.collecting:
        parts.append("a collection was in progress")
    if found.collections[_OLD]:
        parts.append(
            f"{found.long_lived} objects survived the last full collection, {found.pending} became old since: "
            f"the next one waits for {full_collection_waits_for(found)}"
        )
    if found.garbage:
        parts.append(f"{found.garbage} objects are in gc.garbage")
    return "; ".join([*parts, note] if note else parts)


def collections_between(before: Generations | None, now: Generations | None) -> tuple[int, ...]:
    """Return how many collections of each generation happened between two readings; zeros when one is not known."""
    if before is None or now is None:
        return (0,) * GENERATIONS
    return tuple(int(more) for more in np.maximum(now.collections - before.collections, 0))


def cause_text(collections: dict[int, tuple[int, ...]]) -> str:
    """Describe which generations were collected, as ``gen0 +3, gen1 +1``.

    Args:
        collections: By the id of the interpreter, collections of each generation. The main one (0) is not named.

    Returns:
        The text; empty when there were none.
    """
    parts = []
    for ident, counts in sorted(collections.items()):
        found = ", ".join(
            f"gen{generation} +{count}" for generation, count in enumerate(counts) if count
        )
        if found:
            parts.append(found if ident == 0 else f"interpreter {ident}: {found}")
    return "; ".join(parts)
