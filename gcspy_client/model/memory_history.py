"""The streams of a session that report its memory over time, and their values at the latest event.

Sessions of a process have the space "Memory over time". Others have heaps: then the sums over
the streams of used bytes are taken, under the names that they have there. Spaces are only added up
if their tiles have addresses and none overlaps another: otherwise memory could count twice.

Spaces of another kind, such as a code cache beside a heap, are left out.

Knows the session's model; knows neither widgets nor drivers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState, StreamState
from gcspy_protocol.messages import Summary
from gcspy_protocol.model import Presentation
from numpy.typing import NDArray

from gcspy_client.model.text import is_bytes

__all__ = [
    "MEMORY_HISTORY",
    "RESIDENT_SET",
    "MemoryQuantity",
    "MemoryRole",
    "MemoryStreams",
    "StreamName",
    "latest_summaries",
    "memory_source",
    "resident_set",
]

MEMORY_HISTORY: Final = "Memory over time"
"""Name of the space that a session of a process has for it."""

RESIDENT_SET: Final = "Resident set"
"""Name of its stream."""

_PROCESS_MEMORY: Final = "Process memory"
_RESIDENT: Final = "Resident"
"""Space and stream of recordings that are older than `MEMORY_HISTORY`."""

_USED, _COMMITTED = " used", " committed"
_USED_NAMES: Final = ("used", "used space", "used bytes", "used memory")
_COLLECTING: Final = "Collecting"
_MICROS: Final = "µs"


class MemoryRole(Enum):
    """Meaning of a quantity of memory; it determines how the quantity is drawn."""

    RESIDENT = "resident"
    COMMITTED = "committed"
    USED = "used"


StreamName = tuple[str, str]
"""Names of space and stream."""


@dataclass(frozen=True, slots=True)
class MemoryQuantity:
    """A quantity of memory over time: the sum of the summaries of some streams.

    Attributes:
        role: Its meaning.
        name: Its name in a few characters.
        about: Its description in words.
        parts: The streams.
        share: Whether it is what their summaries are a share of, and not their sum.
    """

    role: MemoryRole
    name: str
    about: str
    parts: tuple[StreamName, ...]
    share: bool = False


@dataclass(frozen=True, slots=True)
class MemoryStreams:
    """The streams of a session that report its memory.

    Attributes:
        quantities: At most one of each role, in the order of `MemoryRole`; none: nothing is known.
        collecting: A stream with the time of all collections so far, in µs; or None.
    """

    quantities: tuple[MemoryQuantity, ...] = ()
    collecting: StreamName | None = None

    @property
    def wanted(self) -> tuple[StreamName, ...]:
        """All streams, each once."""
        names = [part for one in self.quantities for part in one.parts]
        if self.collecting is not None:
            names.append(self.collecting)
        return tuple(dict.fromkeys(names))


def memory_source(session: ClientInterpreter) -> MemoryStreams:
    """Choose the streams that say most about memory, as far as a session has any."""
    spaces = list(session.spaces.values())
    return MemoryStreams(_of_process(spaces) or _of_heaps(spaces), _collecting(spaces))


def _of_process(spaces: list[SpaceState]) -> tuple[MemoryQuantity, ...]:
    names = [
        (space.space.name, state.schema.name)
        for space in spaces
        if space.space.name == MEMORY_HISTORY
        for state in space.streams.values()
    ]
    resident = tuple(part for part in names if part[1] == RESIDENT_SET)[:1]
    found = []
    if resident:
        about = "resident set: memory of the process that is in RAM"
        found.append(MemoryQuantity(MemoryRole.RESIDENT, "Resident", about, resident))
    for role, name, ending, words in (
        (MemoryRole.COMMITTED, "Committed", _COMMITTED, "taken from the system by"),
        (MemoryRole.USED, "Used", _USED, "in use in"),
    ):
        parts = tuple(dict.fromkeys(part for part in names if part[1].endswith(ending)))
        if parts:
            managers = " and ".join(part[1].removesuffix(ending) for part in parts)
            found.append(MemoryQuantity(role, name, f"{words} {managers}", parts))
    return tuple(found)


def _of_heaps(spaces: list[SpaceState]) -> tuple[MemoryQuantity, ...]:
    """Return the quantities of a session without "Memory over time": a trace, a simulated heap, an older recording."""
    found = []
    if any(
        space.space.name == _PROCESS_MEMORY and _stream_named(space, _RESIDENT) for space in spaces
    ):
        about = f'sum of "{_RESIDENT}" of {_PROCESS_MEMORY}'
        resident = ((_PROCESS_MEMORY, _RESIDENT),)
        found.append(MemoryQuantity(MemoryRole.RESIDENT, _RESIDENT, about, resident))
    heaps = _heaps(spaces)
    if not heaps:
        return tuple(found)
    used = heaps[0][1].schema
    parts = tuple((space.space.name, stream.schema.name) for space, stream in heaps)
    where = ", ".join(space.space.name for space, _ in heaps)
    top = heaps[0][0].streams.get(-1 if used.max_stream is None else used.max_stream)
    if used.presentation is Presentation.PERCENT_VAR and top is not None and is_bytes(top.schema):
        name = top.schema.name
        about = f'sum of "{name}" of {where}'
        found.append(MemoryQuantity(MemoryRole.COMMITTED, name, about, parts, share=True))
    about = f'sum of "{used.name}" of {where}'
    found.append(MemoryQuantity(MemoryRole.USED, used.name, about, parts))
    return tuple(found)


def _heaps(spaces: list[SpaceState]) -> list[tuple[SpaceState, StreamState]]:
    """Spaces with a stream of used bytes that do not overlap, and the stream: the main space first."""
    candidates = [
        (space, stream)
        for space in sorted(spaces, key=lambda one: not one.space.main)
        if (stream := _used(space)) is not None
    ]
    if not candidates:
        return []
    first, used = candidates[0]
    ranges = _ranges(first)
    chosen = [(first, used)]
    for space, stream in candidates[1:]:
        more = _ranges(space)
        if (
            ranges is None
            or more is None
            or space.space.driver != first.space.driver
            or stream.schema.name != used.schema.name
            or not _alike(space, first)
            or _overlap(both := np.concatenate((ranges, more)))
        ):
            continue
        ranges = both
        chosen.append((space, stream))
    return chosen


def _alike(space: SpaceState, main: SpaceState) -> bool:
    """Whether a space has most of the streams of the main one."""
    wanted = {state.schema.name for state in main.streams.values()}
    shared = wanted & {state.schema.name for state in space.streams.values()}
    return 2 * len(shared) > len(wanted)


def _used(space: SpaceState) -> StreamState | None:
    """The stream of used bytes of a space."""
    found = [
        state
        for state in space.streams.values()
        if is_bytes(state.schema) and state.schema.name.lower() in _USED_NAMES
    ]
    return min(found, key=lambda state: state.schema.order, default=None)


def _stream_named(space: SpaceState, name: str) -> StreamState | None:
    return next((state for state in space.streams.values() if state.schema.name == name), None)


def _ranges(space: SpaceState) -> NDArray[np.uint64] | None:
    """Shape (ranges, 2): first address of each range of tiles, and that behind it; None: tiles have no addresses."""
    base, size = space.names.uniform
    extents = space.names.extents()
    if extents is not None:
        there = extents[1] > 0
        return np.stack((extents[0][there], extents[0][there] + extents[1][there]), axis=1)
    if size:
        return np.array([[base, base + size * space.count]], dtype=np.uint64)
    return None


def _overlap(ranges: NDArray[np.uint64]) -> bool:
    ordered = ranges[np.argsort(ranges[:, 0], kind="stable")]
    return bool((ordered[1:, 0] < ordered[:-1, 1]).any())


def _collecting(spaces: list[SpaceState]) -> StreamName | None:
    for space in spaces:
        stream = _stream_named(space, _COLLECTING)
        if stream is not None and stream.schema.suffix.strip() == _MICROS:
            return space.space.name, _COLLECTING
    return None


def latest_summaries(
    session: ClientInterpreter, wanted: tuple[StreamName, ...]
) -> list[Summary | None]:
    """The summaries of some streams that the latest event brought; None for each that it did not bring."""
    event = session.last_event
    found: dict[StreamName, Summary] = {}
    if event is not None and wanted:
        names = {name for name, _ in wanted}
        for space in session.spaces.values():
            if space.space.name not in names:
                continue
            for state in space.streams.values():
                summary = state.told
                if summary is not None and summary.sequence == event.sequence:
                    found[space.space.name, state.schema.name] = summary
    return [found.get(name) for name in wanted]


def resident_set(session: ClientInterpreter) -> int | None:
    """Return its bytes; None: there is no such space, or it was not gathered at the latest event, or is unknown."""
    event = session.last_event
    if event is None:
        return None
    for space in session.spaces.values():
        if space.space.name != MEMORY_HISTORY:
            continue
        for state in space.streams.values():
            if state.schema.name == RESIDENT_SET and state.is_fresh(event) and state.is_known(0):
                return int(state.values[0])
    return None
