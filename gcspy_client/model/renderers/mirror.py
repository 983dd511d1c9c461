"""A second copy of a space, for a thread: kept in step by what events changed, gathered where the first is written.

The interpreter writes the arrays of a space in place, so another thread may not read them. The
thread that applies the session's messages collects what an event changed, which is little, and the
other thread puts it into arrays of its own.

Knows a space's arrays; does not know threads, or the use of the copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState, StreamState
from gcspy_protocol.messages import Summary
from gcspy_protocol.model import CONTROL_STREAM
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices

__all__ = ["Patch", "merged", "patch_of"]


@dataclass(frozen=True, slots=True, eq=False)
class _StreamPatch:
    """The changes of one stream.

    Attributes:
        where: Tiles that changed; None: all.
        values: Shape (those tiles,): their values.
        known: Shape (those tiles,): whether they are known.
        all_known: Whether every tile of the stream is known now.
        stamp: Sequence, time, kind and occurrence of the event at which it was gathered.
        told: The driver's summary.
        names: Those of its values, where they are numbers of names.
    """

    where: Indices | None
    values: NDArray[Any]
    known: NDArray[np.bool_] | None
    all_known: bool
    stamp: tuple[int, int, int, int]
    told: Summary | None
    names: tuple[str, ...]

    def apply(self, twin: StreamState) -> None:
        where = slice(None) if self.where is None else self.where
        twin.values[where] = self.values
        if self.all_known:
            twin.known = None
        else:
            if twin.known is None:
                twin.known = np.ones(len(twin.values), dtype=np.bool_)
            twin.known[where] = True if self.known is None else self.known
        twin.sequence, twin.time_nanos, twin.event, twin.occurrence = self.stamp
        twin.told, twin.names = self.told, self.names


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """An event's changes of a space.

    Attributes:
        change: The event.
        streams: By id, those whose values or stamp changed.
        whole: The space itself, copied, where tiles came or went; then `streams` is empty.
        tiles: Values that are kept here, to know how much waits.
    """

    change: EventChange
    streams: dict[int, _StreamPatch]
    whole: SpaceState | None
    tiles: int

    def apply(self, twin: SpaceState) -> SpaceState:
        """Bring a copy up to date.

        Returns:
            The copy, or another one in its place.
        """
        if self.whole is not None:
            return self.whole
        for number, patch in self.streams.items():
            patch.apply(twin.stream(number))
        return twin


def patch_of(space: SpaceState, change: EventChange) -> Patch:
    """Collect an event's changes, right after the interpreter applied it."""
    if space.space.id in change.resized:
        return Patch(change, {}, space.copy(), space.count)
    streams: dict[int, _StreamPatch] = {}
    tiles = 0
    none: Indices = np.empty(0, dtype=np.int64)
    for number, stream in ((CONTROL_STREAM, space.control), *space.streams.items()):
        where = change.changed.get((space.space.id, number), none)
        known = stream.known
        streams[number] = _StreamPatch(
            where,
            stream.values.copy() if where is None else stream.values[where],
            None if known is None else known.copy() if where is None else known[where],
            known is None,
            (stream.sequence, stream.time_nanos, stream.event, stream.occurrence),
            stream.told,
            stream.names,
        )
        tiles += space.count if where is None else len(where)
    return Patch(change, streams, None, tiles)


def merged(changes: list[EventChange], space: int) -> EventChange:
    """Merge several events into one, for a renderer that draws once after all of them; none of them resized the space."""
    if len(changes) == 1:
        return changes[0]
    together: dict[tuple[int, int], NDArray[np.int64] | None] = {}
    for change in changes:
        for key, where in change.changed.items():
            if key[0] != space:
                continue
            before = together.get(key, where)
            if before is None or where is None:
                together[key] = None
            else:
                together[key] = where if before is where else np.union1d(before, where)
    return EventChange(changes[-1].event, together)
