"""Summaries and tiles of one stream over many events, read on demand.

Knows names of spaces and streams. `reader` knows the content of a file, `notebook` the interface
for scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gcspy_protocol.codec import decode, unpack
from gcspy_protocol.errors import CorruptChunk, RecordingError, RemoteProtocolError
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState, StreamState
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Event, FrameType, SpaceDefined, SpaceRemoved, Summary
from gcspy_protocol.model import Space, Stream
from numpy.typing import NDArray

from gcspy_replay.file.cursor import ChunkAt, Cursor
from gcspy_replay.file.layout import blamed
from gcspy_replay.file.parts.chunk_records import NOT_RECORDS
from gcspy_replay.file.parts.scan import Progress
from gcspy_replay.file.parts.walk import FileEntry, read_entries
from gcspy_replay.file.reader import Recording
from gcspy_replay.file.records.summaries import SummaryTrail

__all__ = ["Matrix", "SummaryRow", "stream_named", "summaries", "summary_columns"]

_MOST = (1 << 62) - 1
"""Greater sums are given as this: they fit a signed word, and so do their differences."""


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
        recording: The recording.
        space: Name of the space; None: all.
        stream: Name of the stream; None: all.
        first: Number of the first event; None: of the recording.
        last: Number of the last event; None: of the recording.
        progress: Called with the number of events read, and the total.

    Raises:
        CorruptChunk: The recording is damaged.
    """
    first = recording.first if first is None else first
    last = recording.last if last is None else last
    for at in recording.chunks:
        end = at.place.first + at.place.events - 1
        if end < first or at.place.first > last:
            continue  # each chunk has the schema in its head
        for row in _Summaries(at, recording.limits, partial(_is_named, space, stream)):
            if first <= row.number <= last:
                yield row
        if progress is not None:
            progress(min(end, last) - first + 1, last - first + 1)


def _is_named(space: str | None, stream: str | None, space_name: str, stream_name: str) -> bool:
    """Whether a stream is meant; None: any."""
    return space in (None, space_name) and stream in (None, stream_name)


def summary_columns(
    recording: Recording, at: ChunkAt, wanted: Sequence[tuple[str, str]]
) -> NDArray[np.int64]:
    """The summaries of some streams at the events of one chunk, without decoding any tile.

    Args:
        recording: The recording.
        at: One of its chunks.
        wanted: Names of space and stream of each. Of several spaces of one name, the last that
            told counts.

    Returns:
        Shape (events, wanted, 3), new: tiles covered, -1 if the event brought no summary; the sum;
        and what it is a share of, -1 if it is none. The first row is that of event
        `at.place.first`.

    Raises:
        CorruptChunk: The chunk is damaged.
    """
    columns = np.full((at.place.events, len(wanted), 3), -1, dtype=np.int64)
    places = {names: i for i, names in enumerate(wanted)}
    chunk = _Summaries(at, recording.limits, lambda space, stream: (space, stream) in places)
    for number, _, told in chunk.events():
        row = number - at.place.first
        if row >= len(columns):
            break  # of a live recorder: it came after the list of chunks was made
        for space, stream, summary in told():
            values = [min(value, _MOST) for value in summary.values[:2]]
            columns[row, places[space.name, stream.name], : 1 + len(values)] = (
                summary.covered,
                *values,
            )
    return columns


_Told = Callable[[], Iterator[tuple[Space, Stream, Summary]]]
"""Hands out the summaries of an event."""


def _itself(event: Event) -> Event:
    return event


class _Summaries:
    """The summaries of one chunk.

    Args:
        at: The chunk.
        limits: Limits on its content.
        wants: Whether a stream is of interest, by the names of space and stream.
    """

    def __init__(self, at: ChunkAt, limits: Limits, wants: Callable[[str, str], bool]) -> None:
        self._at, self._limits, self._wants = at, limits, wants
        self._wanted: dict[tuple[int, int], tuple[Space, Stream]] = {}

    def __iter__(self) -> Iterator[SummaryRow]:
        for number, event_of, told in self.events():
            event = event_of()
            for space, stream, summary in told():
                yield SummaryRow(number, event, space, stream, summary)

    def events(self) -> Iterator[tuple[int, Callable[[], Event], _Told]]:
        """Its events in order, by number; of each, ask for the summaries before the next."""
        if self._at.part.head(self._at.place).has_records:
            yield from self._records()
            return
        for number, entry in self.entries():
            yield number, partial(self._event, entry), partial(self.summaries_of, entry)

    def _event(self, entry: FileEntry) -> Event:
        event = self._decode(entry, len(entry.frames) - 1)
        assert isinstance(event, Event)
        return event

    def _records(self) -> Iterator[tuple[int, Callable[[], Event], _Told]]:
        part, place = self._at.part, self._at.place
        records = part.records(place)
        trail = SummaryTrail(part.notices, self._limits)
        number = place.first
        at = 0
        while (record := records.record(at)) is not None:
            at += 1
            try:
                found = trail.take(record.data)
            except RemoteProtocolError as error:
                raise blamed(error, record.start, place.number) from error
            except NOT_RECORDS as error:
                what = f"damaged at byte {record.start}: a record that cannot be read: {error}"
                raise CorruptChunk(what, offset=record.start, chunk=place.number) from error
            if found is not None:
                event, told = found
                yield number, partial(_itself, event), partial(self._wanted_of, told)
                number += 1

    def _wanted_of(
        self, told: list[tuple[Space, Stream, Summary]]
    ) -> Iterator[tuple[Space, Stream, Summary]]:
        for space, stream, summary in told:
            if self._wants(space.name, stream.name):
                yield space, stream, summary

    def entries(self) -> Iterator[tuple[int, FileEntry]]:
        """Its events in order, by number; of each, ask for the summaries before the next."""
        part, place = self._at.part, self._at.place
        head = part.head(place)
        offset, end = place.offset, place.offset + (place.end_at or place.size)
        number = head.first
        for entry in read_entries(part.window, offset, end, self._limits, place.number):
            if not entry.is_event:
                self._schema(entry)
            elif entry.offset - offset >= head.head_bytes:
                yield number, entry
                number += 1

    def _decode(self, entry: FileEntry, i: int) -> object:
        place = entry.frames[i]
        try:
            raw = unpack(place.header, entry.payload(place), self._limits, entry.offset)
            return decode(place.header, raw, self._limits)
        except RemoteProtocolError as error:
            raise blamed(error, entry.offset + place.start, self._at.place.number) from error

    def _schema(self, entry: FileEntry) -> None:
        for i, place in enumerate(entry.frames):
            if place.header.type not in (FrameType.SPACE_DEFINED, FrameType.SPACE_REMOVED):
                continue
            message = self._decode(entry, i)
            if isinstance(message, SpaceDefined):
                for stream in message.space.streams:
                    if self._wants(message.space.name, stream.name):
                        self._wanted[message.space.id, stream.id] = message.space, stream
            elif isinstance(message, SpaceRemoved):
                self._wanted = {
                    key: value for key, value in self._wanted.items() if key[0] != message.space
                }

    def summaries_of(self, entry: FileEntry) -> Iterator[tuple[Space, Stream, Summary]]:
        """The summaries that an event brought, decoded."""
        last = entry.frames[-1].header.sequence
        for i, place in enumerate(entry.frames):
            header = place.header
            wanted = self._wanted.get((header.space, header.stream))
            if header.type == FrameType.SUMMARY and wanted is not None and header.sequence == last:
                summary = self._decode(entry, i)
                assert isinstance(summary, Summary)
                yield *wanted, summary


def stream_named(space: SpaceState, name: str) -> StreamState:
    """A stream of a space.

    Raises:
        RecordingError: It has none of this name.
    """
    for state in space.streams.values():
        if state.schema.name == name:
            return state
    known = ", ".join(state.schema.name for state in space.streams.values())
    raise RecordingError(f"the space {space.space.name!r} has no stream {name!r}; it has: {known}")


class Matrix:
    """Events by tiles of one stream; each row is read on demand.

    Row i is a masked array of the tiles after event `first` + i: masked where a value is unknown. A
    row of an event that did not gather the stream is masked completely, unless older values were
    requested; so is one without the space.

    Args:
        recording: The recording.
        space: Name of the space.
        stream: Name of the stream.
        first: Number of the first event.
        last: Number of the last event.
        stale: Show values that were gathered at an earlier event too.
    """

    def __init__(
        self,
        recording: Recording,
        space: str,
        stream: str,
        first: int,
        last: int,
        *,
        stale: bool = False,
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
                return self._row(session, stream_named(state, self._stream))
        return _masked((0,), np.dtype(np.int64))

    def _row(self, session: ClientInterpreter, state: StreamState) -> np.ma.MaskedArray[Any, Any]:
        event = session.last_event
        hidden = event is None or not (self._stale or state.is_fresh(event))
        unknown: Any = True if hidden else (False if state.known is None else ~state.known)
        return np.ma.MaskedArray(
            state.values.copy(), mask=np.broadcast_to(unknown, state.values.shape).copy()
        )

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
