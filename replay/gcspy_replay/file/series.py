"""A recording for notebooks and scripts: events and arrays, read when they are asked for.

`gcspy.open(FILE)` makes one::

    rec = gcspy.open("x.gcspy")
    rec.events["time_nanos"]                        # the table of events, a structured array
    rec.at(120)["pymalloc arenas"]["Used"].values   # the tiles after event 120
    rec.series("pymalloc arenas", "Used")           # events x summary, masked where there is none
    rec.matrix("pymalloc arenas", "Used", 1, 100)   # events x tiles, a row when it is asked for

Knows names of spaces and streams; what is in a file is `reader`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from gcspy_protocol.codec import decode
from gcspy_protocol.errors import CorruptChunk, RecordingError, RemoteProtocolError
from gcspy_protocol.frame import inflate
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState, StreamState
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Event, FrameType, SpaceDefined, SpaceRemoved, Summary
from gcspy_protocol.model import Space, Stream
from numpy.typing import NDArray

from gcspy_replay.file.cursor import ChunkAt, Cursor
from gcspy_replay.file.layout import blamed
from gcspy_replay.file.reader import Recording, compensated_nanos
from gcspy_replay.file.scan import Progress
from gcspy_replay.file.walk import Entry, check_entry, read_entry

__all__ = ["Matrix", "Moment", "SavedSession", "SpaceThen", "SummaryRow", "summaries"]


def _masked(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ma.MaskedArray[Any, Any]:
    """An array of which nothing is known yet."""
    return np.ma.MaskedArray(np.zeros(shape, dtype=dtype), mask=np.ones(shape, dtype=np.bool_))


class SummaryRow(NamedTuple):
    """A summary that an event brought."""

    number: int
    event: Event
    space: Space
    stream: Stream
    summary: Summary


def summaries(
    recording: Recording,
    space: str | None = None,
    stream: str | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
    progress: Progress | None = None,
) -> Iterator[SummaryRow]:
    """The summaries that events brought, without decoding any tile.

    A summary that is repeated in a keyframe, of an earlier event, is left out.

    Args:
        recording: Where from.
        space: Name of the space; None: all.
        stream: Name of the stream; None: all.
        first: Number of the first event; None: of the recording.
        last: Number of the last event; None: of the recording.
        progress: Told how many events were looked at, and of how many.

    Raises:
        CorruptChunk: The recording is damaged.
    """
    first = recording.first if first is None else first
    last = recording.last if last is None else last
    for at in recording.chunks:
        end = at.place.first + at.place.events - 1
        if end < first or at.place.first > last:
            continue  # each chunk has the schema in its head
        for row in _Summaries(at, recording.limits, space, stream):
            if first <= row.number <= last:
                yield row
        if progress is not None:
            progress(min(end, last) - first + 1, last - first + 1)


class _Summaries:
    """The summaries of one chunk."""

    def __init__(self, at: ChunkAt, limits: Limits, space: str | None, stream: str | None) -> None:
        self._at, self._limits = at, limits
        self._space, self._stream = space, stream
        self._wanted: dict[tuple[int, int], tuple[Space, Stream]] = {}

    def __iter__(self) -> Iterator[SummaryRow]:
        part, place = self._at.part, self._at.place
        head = part.head(place)
        offset, end = place.offset, place.offset + (place.end_at or place.size)
        number = head.first
        while offset < end:
            entry = read_entry(part.window, offset, end, self._limits)
            if entry is None:
                raise CorruptChunk(f"damaged at byte {offset}: a frame leaves its chunk", offset=offset, chunk=place.number)
            check_entry(entry)
            if not entry.is_event:
                self._schema(entry)
            elif offset - place.offset >= head.head_bytes:
                yield from self._event(entry, number)
                number += 1
            offset = entry.end

    def _decode(self, entry: Entry, i: int) -> object:
        place = entry.frames[i]
        try:
            raw = inflate(place.header, entry.payload(place), self._limits, entry.offset)
            return decode(place.header, raw, self._limits)
        except RemoteProtocolError as error:
            raise blamed(error, entry.offset + place.start, self._at.place.number) from error

    def _schema(self, entry: Entry) -> None:
        for i, place in enumerate(entry.frames):
            if place.header.type not in (FrameType.SPACE_DEFINED, FrameType.SPACE_REMOVED):
                continue
            message = self._decode(entry, i)
            if isinstance(message, SpaceDefined) and self._space in (None, message.space.name):
                for stream in message.space.streams:
                    if self._stream in (None, stream.name):
                        self._wanted[message.space.id, stream.id] = message.space, stream
            elif isinstance(message, SpaceRemoved):
                self._wanted = {key: value for key, value in self._wanted.items() if key[0] != message.space}

    def _event(self, entry: Entry, number: int) -> Iterator[SummaryRow]:
        last = entry.frames[-1].header.sequence
        event = self._decode(entry, len(entry.frames) - 1)
        assert isinstance(event, Event)
        for i, place in enumerate(entry.frames):
            header = place.header
            wanted = self._wanted.get((header.space, header.stream))
            if header.type == FrameType.SUMMARY and wanted is not None and header.sequence == last:
                summary = self._decode(entry, i)
                assert isinstance(summary, Summary)
                yield SummaryRow(number, event, *wanted, summary)


class SpaceThen:
    """A space as it was after an event; `then["Used"]` is one of its streams.

    Args:
        state: What a viewer knew of it.
    """

    def __init__(self, state: SpaceState) -> None:
        self.state = state

    @property
    def tiles(self) -> int:
        """How many tiles it had."""
        return self.state.count

    def __getitem__(self, stream: str) -> StreamState:
        for state in self.state.streams.values():
            if state.schema.name == stream:
                return state
        known = ", ".join(state.schema.name for state in self.state.streams.values())
        raise RecordingError(f"the space {self.state.space.name!r} has no stream {stream!r}; it has: {known}")

    def __iter__(self) -> Iterator[str]:
        return (state.schema.name for state in self.state.streams.values())


class Moment:
    """All that a viewer knew right after an event; `moment["heap"]["Used"].values` are tiles.

    Args:
        number: Of the event.
        session: What was known.
    """

    def __init__(self, number: int, session: ClientInterpreter) -> None:
        self.number, self.session = number, session

    @property
    def event(self) -> Event:
        """The event."""
        event = self.session.last_event
        assert event is not None, "a moment is after an event"
        return event

    def __getitem__(self, space: str) -> SpaceThen:
        for state in self.session.spaces.values():
            if state.space.name == space:
                return SpaceThen(state)
        known = ", ".join(state.space.name for state in self.session.spaces.values())
        raise RecordingError(f"there is no space {space!r} at event {self.number}; there are: {known}")

    def __iter__(self) -> Iterator[str]:
        return (state.space.name for state in self.session.spaces.values())


class Matrix:
    """Events by tiles of one stream; a row is read when it is asked for.

    Row i is a masked array of the tiles after event `first` + i: masked where a value is unknown. A row of an event that did
    not gather the stream is masked whole, unless older values were asked for; so is one without the space.

    Args:
        recording: Where from.
        space: Name of the space.
        stream: Name of the stream.
        first: Number of the first event.
        last: Number of the last event.
        stale: Show values that were gathered at an earlier event too.
    """

    def __init__(
        self, recording: Recording, space: str, stream: str, first: int, last: int, *, stale: bool = False
    ) -> None:
        if not recording.first <= first <= last <= recording.last:
            raise RecordingError(
                f"there are no events {first} to {last}: the recording has {recording.first} to {recording.last}"
            )
        self._cursor: Cursor = recording.cursor()
        self._space, self._stream, self._stale = space, stream, stale
        self.first, self.last = first, last

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __getitem__(self, row: int) -> np.ma.MaskedArray[Any, Any]:
        row = row + len(self) if row < 0 else row
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")  # ends a for loop, as any sequence does
        session = self._cursor.seek(self.first + row)
        for state in session.spaces.values():
            if state.space.name == self._space:
                return self._row(session, SpaceThen(state)[self._stream])
        return _masked((0,), np.dtype(np.int64))

    def _row(self, session: ClientInterpreter, state: StreamState) -> np.ma.MaskedArray[Any, Any]:
        event = session.last_event
        hidden = event is None or not (self._stale or state.is_fresh(event))
        unknown: Any = True if hidden else (False if state.known is None else ~state.known)
        return np.ma.MaskedArray(state.values.copy(), mask=np.broadcast_to(unknown, state.values.shape).copy())

    def __iter__(self) -> Iterator[np.ma.MaskedArray[Any, Any]]:
        return (self[row] for row in range(len(self)))

    def to_array(self) -> np.ma.MaskedArray[Any, Any]:
        """All rows, shape (events, most tiles of any), masked where a row is shorter."""
        rows = list(self)
        kinds = [row.dtype for row in rows if row.size] or [np.dtype(np.int64)]
        out = _masked((len(rows), max(row.size for row in rows)), np.result_type(*kinds))
        for i, row in enumerate(rows):
            out[i, : row.size] = row
        return out


class SavedSession:
    """What `gcspy.open` gives.

    Args:
        recording: The recording; it is closed with this.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @classmethod
    def open(cls, *paths: Path | str) -> SavedSession:
        """Open a file, the files of a split recording, or the folder of a ring."""
        return cls(Recording.open(*paths))

    def close(self) -> None:
        """Close the files."""
        self.recording.close()

    def __enter__(self) -> SavedSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.recording)

    def __repr__(self) -> str:
        rec = self.recording
        return f"<GCspy recording of {rec.welcome.server}: events {rec.first} to {rec.last}>"

    @property
    def events(self) -> NDArray[Any]:
        """The table of events, a structured array of dtype `EVENTS` (`gcspy_replay.file.reader`)."""
        return self.recording.events

    @property
    def event_names(self) -> list[str]:
        """Names of the kinds of event; `events["event"]` indexes them."""
        return [kind.name for kind in self.recording.welcome.events]

    @property
    def program_nanos(self) -> NDArray[np.int64]:
        """The program's own time of each event: without what gathering and holding took."""
        return compensated_nanos(self.events)

    def at(self, number: int) -> Moment:
        """All that a viewer knew right after the event with this number.

        Raises:
            RecordingError: There is no such event, or it is damaged.
        """
        return Moment(number, self.recording.seek(number))

    def series(self, space: str, stream: str) -> np.ma.MaskedArray[Any, Any]:
        """The summaries of a stream over all events.

        Returns:
            Shape (events, numbers of the summary), i64: one number; (sum, total) for percent; one a name for enum.
            Masked where an event brought none, or an unknown one.

        Raises:
            RecordingError: No event has such a stream, or the recording is damaged.
        """
        numbers = self.events["number"]
        found = [(row.number, row.summary) for row in summaries(self.recording, space, stream) if row.summary.covered]
        if not found and len(numbers):
            self.at(int(numbers[-1]))[space][stream]  # says what there is, where the name is wrong
        width = max((len(summary.values) for _, summary in found), default=1)
        out = _masked((len(numbers), width), np.dtype(np.int64))
        if found:
            rows = np.searchsorted(numbers, np.array([number for number, _ in found], dtype=np.uint64))
            for row, (_, summary) in zip(rows.tolist(), found, strict=True):
                out[row, : len(summary.values)] = summary.values
        return out

    def matrix(
        self, space: str, stream: str, first: int | None = None, last: int | None = None, *, stale: bool = False
    ) -> Matrix:
        """Events by tiles of a stream, a row when it is asked for; `to_array()` reads them all."""
        rec = self.recording
        first = rec.first if first is None else first
        return Matrix(rec, space, stream, first, rec.last if last is None else last, stale=stale)
