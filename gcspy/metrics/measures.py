"""`measures_of`: the numbers of one process that are exported, at most 30, by OpenTelemetry's names where it has some.

A number that is not known is left out; it is never zero. Neither tiles, types nor sites are exported:
their number has no limit. Source: OpenTelemetry semantic conventions 1.34, process, CPython and JVM
metrics. Knows spaces and streams by their names; does not know who collects the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gcspy.tree.tree_driver import TreePart
from gcspy_server.api import ServerSpace, ServerStream, StringNames

__all__ = ["MEASURES", "MOST_SERIES", "Measure", "Reading", "is_measured", "measures_of"]

MOST_SERIES = 30
"""Series of one process at most."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One exported quantity.

    Attributes:
        name: Its name, as OpenTelemetry writes it.
        unit: ``By``, ``s``, ``1`` or, in braces, what is counted.
        about: A sentence about it.
        counts: Whether it only rises.
    """

    name: str
    unit: str
    about: str
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One number.

    Attributes:
        measure: Its quantity.
        value: The number.
        attributes: What it is of, besides the process.
    """

    measure: Measure
    value: float
    attributes: tuple[tuple[str, str], ...] = ()


_RESIDENT = Measure("process.memory.usage", "By", "Resident set, shared pages included")
_PRIVATE = Measure("gcspy.memory.private", "By", "Bytes that no other process has")
_SHARE = Measure(
    "gcspy.memory.shared", "By", "Share of pages that others have too, divided by their users"
)
_GROWTH = Measure(
    "gcspy.memory.growth_rate", "By/min", "Growth of the resident set since gcspy first saw it"
)
_GROWS = Measure("gcspy.memory.growing", "1", "1: the resident set grows; 0: it does not")
_USED = Measure("gcspy.heap.used", "By", "Bytes in use in the memory managers")
_COMMITTED = Measure("gcspy.heap.committed", "By", "Bytes that memory managers took")
_FILL = Measure("gcspy.heap.fill_ratio", "1", "Used divided by committed")
_FRAGMENTED = Measure(
    "gcspy.heap.fragmentation_ratio", "1", "Committed and not in use, divided by committed"
)
_HELD = Measure(
    "gcspy.heap.held", "By", "Unused bytes that cannot be returned until the blocks beside are free"
)
_RECLAIMABLE = Measure(
    "gcspy.heap.reclaimable", "By", "Bytes of free pages in memory, which trimming returns"
)
_READ = Measure("gcspy.heap.readable", "1", "1: a driver reads the heap; 0: none does")
_COLLECTIONS = Measure("cpython.gc.collections", "{collection}", "Collections", counts=True)
_COLLECTED = Measure(
    "cpython.gc.collected_objects", "{object}", "Objects that collections freed", counts=True
)
_UNCOLLECTABLE = Measure(
    "cpython.gc.uncollectable_objects", "{object}", "Objects that could not be freed", counts=True
)
_PAUSE = Measure("gcspy.gc.last_duration", "s", "Time of the last reported collection")
_POOL_USED = Measure("jvm.memory.used", "By", "Bytes in use in a memory pool")
_POOL_COMMITTED = Measure("jvm.memory.committed", "By", "Bytes of a memory pool from the system")

MEASURES = (
    _RESIDENT,
    _PRIVATE,
    _SHARE,
    _GROWTH,
    _GROWS,
    _READ,
    _USED,
    _COMMITTED,
    _FILL,
    _FRAGMENTED,
    _HELD,
    _RECLAIMABLE,
    _COLLECTIONS,
    _COLLECTED,
    _UNCOLLECTABLE,
    _PAUSE,
    _POOL_USED,
    _POOL_COMMITTED,
)
"""All quantities, in the order in which they are left out last."""

_SUMS = (
    ("Whole arenas", "Unused", _HELD),
    ("malloc heap", "Reclaimable", _RECLAIMABLE),
)
"""Space, stream, and the quantity that the sum over its tiles is."""

_GENERATION = "cpython.gc.generation"
_POOL = "jvm.memory.pool.name"
_BY_TILE = (
    ("GC generations", "Collections", _COLLECTIONS, _GENERATION, 1.0),
    ("GC generations", "Collected", _COLLECTED, _GENERATION, 1.0),
    ("GC generations", "Uncollectable", _UNCOLLECTABLE, _GENERATION, 1.0),
    ("GC generations", "Last collection", _PAUSE, _GENERATION, 1e-6),
    ("Memory pools", "Used", _POOL_USED, _POOL, 1.0),
    ("Memory pools", "Committed", _POOL_COMMITTED, _POOL, 1.0),
)
"""Space, stream, quantity, the attribute that a tile's name is, and the factor to the quantity's unit."""

_UNREAD = frozenset(
    (
        "Code cache",
        "Memory over time",
        "Process memory",
        "Processes",
        "pymalloc arenas",
        "Size classes",
        "malloc size classes",
    )
)
"""Spaces that no quantity is read of, and that cost time; unknown ones may be what a driver counts its heap's bytes with."""

_GROWING = 2


def is_measured(space: str) -> bool:
    """Return whether quantities may be read of a space of this name."""
    return _base(space) not in _UNREAD


def measures_of(part: TreePart) -> tuple[Reading, ...]:
    """Return the numbers of one process, at most `MOST_SERIES`, the most important ones first."""
    return tuple([*_of_process(part), *_of_spaces(part.spaces)][:MOST_SERIES])


def _of_process(part: TreePart) -> Iterator[Reading]:
    numbers = part.numbers
    known = (
        (_RESIDENT, numbers.resident),
        (_PRIVATE, numbers.private),
        (_SHARE, numbers.share),
        (_GROWTH, numbers.per_minute),
        (_USED, numbers.used),
        (_COMMITTED, numbers.committed),
    )
    yield from (Reading(measure, value) for measure, value in known if value is not None)
    if numbers.state:
        yield Reading(_GROWS, int(numbers.state == _GROWING))
    yield Reading(_READ, int(bool(part.spaces)))
    if numbers.used is not None and numbers.committed:
        fill = numbers.used / numbers.committed
        yield Reading(_FILL, fill)
        yield Reading(_FRAGMENTED, 1 - fill)


def _of_spaces(spaces: Sequence[ServerSpace]) -> Iterator[Reading]:
    by_name: dict[str, ServerSpace] = {}
    for space in spaces:
        by_name.setdefault(_base(space.name), space)
    for space_name, stream_name, measure in _SUMS:
        stream = _stream(by_name.get(space_name), stream_name)
        if stream is not None and len(stream.values) and _all_known(stream):
            yield Reading(measure, int(stream.values.sum(dtype=np.int64)))
    for space_name, stream_name, measure, attribute, factor in _BY_TILE:
        found = by_name.get(space_name)
        stream = _stream(found, stream_name)
        if found is None or stream is None or not isinstance(found.names, StringNames):
            continue
        for place, name in enumerate(found.names.names):
            if stream.known is None or stream.known[place]:
                tile = str(place) if attribute == _GENERATION else name
                yield Reading(measure, int(stream.values[place]) * factor, ((attribute, tile),))


def _base(space: str) -> str:
    """Return a space's name without its process."""
    return space.partition(" (")[0]


def _stream(space: ServerSpace | None, name: str) -> ServerStream | None:
    if space is None:
        return None
    return next((one for one in space.streams if one.name == name and one.was_gathered), None)


def _all_known(stream: ServerStream) -> bool:
    return stream.known is None or bool(stream.known.all())
