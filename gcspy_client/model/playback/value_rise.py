"""The event at which a tile rose to its present value, found backwards in stored events.

Chunks are read from the displayed event back to the first: each is decoded forwards from its own
keyframe, and of each event the value of one tile is kept. So the search costs as many chunks as lie
between the event and the rise, whatever the length of the recording.

Knows recordings; does not know windows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from gcspy_protocol.errors import CorruptChunk, RecordingError
from gcspy_protocol.interpreter import SpaceState
from gcspy_replay.file import Recording
from gcspy_replay.file.cursor import ChunkAt, Cursor, RecordedEvent

from gcspy_client.model.codes import used
from gcspy_client.model.tile_source import TileSource

__all__ = ["TileSubject", "ValueRise", "find_rise"]


@dataclass(frozen=True, slots=True, eq=False)
class TileSubject:
    """One number of one tile.

    Attributes:
        space: Name of the space.
        space_id: Its id.
        source: The number.
        key: Stable key of the tile.
    """

    space: str
    space_id: int
    source: TileSource
    key: int


@dataclass(frozen=True, slots=True)
class ValueRise:
    """The beginning of the time in which a tile had at least its present value.

    Attributes:
        number: Number of the first event of that time.
        stored: Whether the event before is stored, and the tile had less then, or was not in use.
    """

    number: int
    stored: bool


@dataclass(frozen=True, slots=True)
class _Value:
    """Value of a tile at an event: a number; None: not in use. `known` is false if it could not be read."""

    event: int
    number: float | None
    known: bool = True


class _TileReader:
    """Follows one tile through the events of a chunk.

    Args:
        subject: The tile.
    """

    def __init__(self, subject: TileSubject) -> None:
        self._subject = subject
        self._space: SpaceState | None = None
        self._tile: int | None = None
        self._last: _Value | None = None

    def read(self, step: RecordedEvent, spaces: dict[int, SpaceState]) -> _Value:
        """The value at an event; events have to come one after the other."""
        subject, number = self._subject, step.number
        space = spaces.get(subject.space_id)
        if space is None or space.space.name != subject.space:
            self._space = self._last = None
            return _Value(number, None)
        anew = space is not self._space or subject.space_id in step.change.resized
        if anew:
            self._space, self._tile = space, space.names.index_of(subject.key)
        if self._tile is None or not 0 <= self._tile < space.count:
            self._last = None
            return _Value(number, None)
        last = self._last
        if not anew and last is not None:
            changed = subject.source.changed(step.change, space)
            if changed is not None and not np.any(changed == self._tile):
                self._last = _Value(number, last.number, last.known)
                return self._last
        self._last = self._value(number, space, self._tile)
        return self._last

    def _value(self, number: int, space: SpaceState, tile: int) -> _Value:
        part = self._subject.source.numbers(space).part(np.array([tile], dtype=np.int64))
        if not used(part.control)[0]:
            return _Value(number, None)
        if part.known is not None and not part.known[0]:
            return _Value(number, None, known=False)
        return _Value(number, float(part.values[0]))


def find_rise(
    recording: Recording,
    subject: TileSubject,
    number: int,
    *,
    stops: Callable[[], bool] = lambda: False,
) -> ValueRise | None:
    """Find the beginning of the time in which a tile has had at least the value of an event.

    Unknown values, and events that are lost, are passed over: they neither end that time nor begin it.

    Args:
        recording: The stored events.
        subject: The tile.
        number: Number of the event.
        stops: Called for each event; the search is given up once it returns True.

    Returns:
        The beginning; None: the tile is not in use at the event, its value is unknown, or the
        search was given up.

    Raises:
        RecordingError: The event is not stored.
    """
    chunks = [at for at in recording.chunks if at.place.events and at.place.first <= number]
    if not chunks or not recording.first <= number <= recording.last:
        raise RecordingError(f"event {number:,} is not stored")
    least: float | None = None
    begins = number
    for at in reversed(chunks):
        values = _values(recording, subject, at, number, stops)
        if values is None:
            return None
        for value in reversed(values):
            if least is None:
                if value.event != number or value.number is None:
                    return None
                least = value.number
            elif not value.known:
                continue
            elif value.number is None or value.number < least:
                return ValueRise(begins, stored=True)
            begins = value.event
    return None if least is None else ValueRise(begins, stored=False)


def _values(
    recording: Recording,
    subject: TileSubject,
    at: ChunkAt,
    last: int,
    stops: Callable[[], bool],
) -> list[_Value] | None:
    """The values at the events of a chunk, up to an event; None: the search was given up."""
    values: list[_Value] = []
    reader, cursor = _TileReader(subject), Cursor(recording)
    with suppress(CorruptChunk):
        cursor.before(at.place.first)
        while not values or values[-1].event < min(last, at.place.first + at.place.events - 1):
            step = cursor.step()
            if step is None or step.number > last:
                break
            values.append(reader.read(step, cursor.session.spaces))
            if stops():
                return None
    return values
