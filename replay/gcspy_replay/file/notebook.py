"""A recording for scripts and notebooks: what `gcspy.open(FILE)` gives.

    >>> import gcspy
    >>> rec = gcspy.open("replay/samples/semispace.gcspy")
    >>> rec
    <GCspy recording of Semi-space collector: 100 events, 1 to 100, over 21.3 s>
    >>> rec[12].name, rec[12]["Semispaces"]["Used space"].values[:8].tolist()
    ('Semispace GC End', [256, 256, 256, 256, 256, 256, 256, 256])
    >>> rec.series("Semispaces", "Used space").shape
    (100, 2)
    >>> [moment.number for moment in rec.between(0.0, 1.0)]
    [1, 2, 3, 4, 5, 6]
    >>> rec.close()

Everything is read on demand, and returned as a copy, which never changes.

Knows names, seconds and slices; `reader` knows the content of a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Stream
from gcspy_protocol.text.visible import shortened, visible
from numpy.typing import NDArray

from gcspy_replay.file.reader import Recording, compensated_nanos
from gcspy_replay.file.series import Matrix, stream_named, summaries

if TYPE_CHECKING:
    from gcspy_replay.file.export.parquet_file import Table

__all__ = ["EventState", "EventRange", "RecordedSpace", "RecordedStream", "SavedSession"]


_MOST_CHARS = 500


def _shown(text: str) -> str:
    """A stranger's text where it is printed by a shell or a notebook."""
    return visible(shortened(text, _MOST_CHARS))


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """A stream right after an event; a copy.

    Attributes:
        schema: Name, type, range and unit.
        values: Shape (tiles,): one number a tile; means nothing where it is not known.
        known: Shape (tiles,): where the value is known; None if all are.
        fresh: Whether they were gathered at this event, and not at an earlier one.
        summary: The driver's summary of the whole stream at its latest gathering; None if there is
            none.
        covered: How many tiles that summary covers.
    """

    schema: Stream
    values: NDArray[Any]
    known: NDArray[np.bool_] | None
    fresh: bool
    summary: tuple[int, ...] | None
    covered: int

    @property
    def masked(self) -> np.ma.MaskedArray[Any, Any]:
        """The values, masked where they are unknown: sums and means leave those out."""
        mask: Any = False if self.known is None else ~self.known
        return np.ma.MaskedArray(self.values, mask=np.broadcast_to(mask, self.values.shape).copy())


class RecordedSpace:
    """A space right after an event; `then["Used"]` is one of its streams, iteration gives their names.

    Args:
        moment: Its event.
        state: A viewer's state of it.
    """

    def __init__(self, moment: EventState, state: SpaceState) -> None:
        self._moment, self._state = moment, state

    @property
    def state(self) -> SpaceState:
        """A viewer's whole state of it: names of tiles, control stream, texts."""
        self._moment.check()
        return self._state

    @property
    def tiles(self) -> int:
        """Number of tiles at the event."""
        return self.state.count

    @property
    def info(self) -> str:
        """The driver's text about it."""
        return self.state.info

    def tile_name(self, tile: int) -> str:
        """Return the name of a tile: an address, a type."""
        return self.state.names.name(tile)

    def __getitem__(self, stream: str) -> RecordedStream:
        found = stream_named(self.state, stream)
        summary = found.summary
        return RecordedStream(
            schema=found.schema,
            values=found.values.copy(),
            known=None if found.known is None else found.known.copy(),
            fresh=found.is_fresh(self._moment.event),
            summary=None if summary is None or not summary.covered else tuple(summary.values),
            covered=0 if summary is None else summary.covered,
        )

    def __iter__(self) -> Iterator[str]:
        return (state.schema.name for state in self.state.streams.values())

    def __repr__(self) -> str:
        return f"<{_shown(self.state.space.name)}: {self.tiles:,} tiles, streams {', '.join(map(_shown, self))}>"


class EventState:
    """All that a viewer knew right after an event; `moment["heap"]["Used"].values` are tiles.

    An event of a loop over many is valid until the next iteration: copy what you want to keep.

    Args:
        number: Number of the event.
        session: A viewer's state at it.
        began_nanos: When the recording began.
    """

    def __init__(self, number: int, session: ClientInterpreter, began_nanos: int) -> None:
        self.number = number
        self._session, self._began = session, began_nanos
        assert session.last_event is not None, "a moment is after an event"
        self.event: Event = session.last_event

    def check(self) -> None:
        """Refuse to be asked when the loop has gone on.

        Raises:
            RecordingError: It has.
        """
        if self._session.last_event is not self.event:
            raise RecordingError(
                f"the loop has moved on from event {self.number}: copy the values you need inside the loop, or use rec[{self.number}]"
            )

    @property
    def session(self) -> ClientInterpreter:
        """The client interpreter, with the whole state."""
        self.check()
        return self._session

    @property
    def name(self) -> str:
        """Name of the kind of event."""
        return self._session.event_name(self.event.event)

    @property
    def seconds(self) -> float:
        """Since the first event of the recording."""
        return (self.event.time_nanos - self._began) / 1e9

    def __getitem__(self, space: str) -> RecordedSpace:
        for state in self.session.spaces.values():
            if state.space.name == space:
                return RecordedSpace(self, state)
        known = ", ".join(self)
        raise RecordingError(
            f"there is no space {space!r} at event {self.number}; there are: {known}"
        )

    def __iter__(self) -> Iterator[str]:
        return (state.space.name for state in self.session.spaces.values())

    def __repr__(self) -> str:
        return f"<event {self.number:,}: {_shown(self.name)} #{self.event.occurrence:,} at {self.seconds:,.3f} s>"


class EventRange:
    """Some events of a recording, in order; a loop over it gives a `EventState` each.

    Args:
        saved: The recording.
        start: Row of the first in its table of events.
        stop: Row behind the last.
    """

    def __init__(self, saved: SavedSession, start: int, stop: int) -> None:
        self._saved, self._start, self._stop = saved, start, max(start, stop)

    @property
    def events(self) -> NDArray[Any]:
        """Its rows of the table of events."""
        return self._saved.events[self._start : self._stop]

    def __len__(self) -> int:
        return self._stop - self._start

    def __iter__(self) -> Iterator[EventState]:
        if not len(self):
            return
        began, numbers = self._saved.began_nanos, self.events["number"]
        for step, session in self._saved.recording.steps(int(numbers[0]), int(numbers[-1])):
            yield EventState(step.number, session, began)

    def __repr__(self) -> str:
        numbers = self.events["number"]
        return f"<events {numbers[0]:,} to {numbers[-1]:,}>" if len(self) else "<no events>"


class SavedSession:
    """A recording; a context manager, which closes it.

    * `rec[120]` is the state after event 120, `rec[-1]` that after the last, `rec[10:20]` events 10 to 19.
    * `for moment in rec:` goes through all events, each decoded once.
    * `rec.between(1.5, 3)` are the events in these seconds since the first.
    * `rec.events` is the table of all events, without their tiles; `rec.series` and `rec.matrix` are one stream over
      many events; `rec.to_arrow` is for other people's tools.

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
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ content

    def __len__(self) -> int:
        return len(self.recording)

    def __repr__(self) -> str:
        rec = self.recording
        if not len(rec):
            return f"<GCspy recording of {_shown(rec.welcome.server)}: no events>"
        return (
            f"<GCspy recording of {_shown(rec.welcome.server)}: {len(rec):,} events, {rec.first:,} to {rec.last:,}, "
            f"over {self.seconds:,.1f} s>"
        )

    def _repr_html_(self) -> str:
        """Display in a notebook: target, events by name, spaces with their streams."""
        rec = self.recording
        kinds = np.bincount(self.events["event"], minlength=len(self.event_names)).tolist()
        rows = [
            (name, f"{count:,} events")
            for name, count in zip(self.event_names, kinds, strict=False)
            if count
        ]
        if len(rec):
            started = (self.began_nanos + rec.welcome.wall_offset_nanos) / 1e9
            if 0 <= started < 2**37:
                rows.insert(
                    0,
                    (
                        "recorded",
                        f"{datetime.fromtimestamp(started, tz=UTC):%Y-%m-%d %H:%M:%S} UTC",
                    ),
                )
            last = self[-1]
            rows += [
                (name, f"{last[name].tiles:,} tiles: {', '.join(last[name])}") for name in last
            ]
        cells = "".join(
            f"<tr><th>{escape(_shown(name))}</th><td>{escape(_shown(text))}</td></tr>"
            for name, text in rows
        )
        return f"<table><caption>{escape(repr(self)[1:-1])}</caption>{cells}</table>"

    @property
    def events(self) -> NDArray[Any]:
        """The table of events, a structured array of dtype `EVENTS` (`gcspy_replay.file.reader`)."""
        return self.recording.events

    @property
    def event_names(self) -> list[str]:
        """Names of the kinds of event; `events["event"]` indexes them."""
        return [kind.name for kind in self.recording.welcome.events]

    @property
    def began_nanos(self) -> int:
        """Time of the first event, by the clock of the target's host; 0 if there is none."""
        events = self.events
        return int(events["time_nanos"][0]) if len(events) else 0

    @property
    def seconds(self) -> float:
        """Seconds from the first event to the last."""
        events = self.events
        return (int(events["time_nanos"][-1]) - self.began_nanos) / 1e9 if len(events) else 0.0

    @property
    def program_nanos(self) -> NDArray[np.int64]:
        """The program's own time of each event: without what gathering and holding took."""
        return compensated_nanos(self.events)

    # ---------------------------------------------------------------------- states

    def at(self, number: int) -> EventState:
        """All that a viewer knew right after the event with this number.

        Raises:
            RecordingError: There is no such event, or it is damaged.
        """
        if number < 1:
            rec = self.recording
            raise RecordingError(f"there is no event {number}: there are {rec.first} to {rec.last}")
        return EventState(number, self.recording.seek(number), self.began_nanos)

    @overload
    def __getitem__(self, number: int, /) -> EventState: ...

    @overload
    def __getitem__(self, number: slice, /) -> EventRange: ...

    def __getitem__(self, number: int | slice, /) -> EventState | EventRange:
        """The state after an event, or some events; numbers are those of events, from 1; negative ones count from the end.

        Raises:
            RecordingError: There is no such event, or a slice has a step.
        """
        if not isinstance(number, slice):
            return self.at(self._number(number))
        if number.step not in (None, 1):
            raise RecordingError(
                "a slice of events has no step: select every n-th event in the loop"
            )
        numbers = self.events["number"]
        start = (
            0
            if number.start is None
            else int(np.searchsorted(numbers, max(0, self._number(number.start))))
        )
        stop = (
            len(numbers)
            if number.stop is None
            else int(np.searchsorted(numbers, max(0, self._number(number.stop))))
        )
        return EventRange(self, start, stop)

    def _number(self, number: int) -> int:
        return self.recording.last + 1 + number if number < 0 else number

    def __iter__(self) -> Iterator[EventState]:
        return iter(EventRange(self, 0, len(self.events)))

    def between(
        self, start: float | datetime | None = None, end: float | datetime | None = None
    ) -> EventRange:
        """The events in a stretch of time, both ends included.

        Args:
            start: Seconds since the first event, or a time of day with its zone; None: from the beginning.
            end: The same; None: to the end.

        Raises:
            RecordingError: A time of day has no zone.
        """
        times = self.events["time_nanos"].astype(np.int64)
        first = 0 if start is None else int(np.searchsorted(times, self._nanos(start), side="left"))
        last = (
            len(times)
            if end is None
            else int(np.searchsorted(times, self._nanos(end), side="right"))
        )
        return EventRange(self, first, last)

    def _nanos(self, moment: float | datetime) -> int:
        if not isinstance(moment, datetime):
            return self.began_nanos + round(moment * 1e9)
        if moment.tzinfo is None:
            raise RecordingError(f"{moment} has no time zone: use datetime(..., tzinfo=UTC)")
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return (
            (since.days * 86_400 + since.seconds) * 10**9
            + since.microseconds * 1000
            - self.recording.welcome.wall_offset_nanos
        )

    # ------------------------------------------------------------- one stream, many events

    def series(self, space: str, stream: str) -> np.ma.MaskedArray[Any, Any]:
        """The summaries of a stream over all events.

        Returns:
            Shape (events, numbers of the summary), i64: one number; (sum, total) for percent; one a name for enum.
            Masked where an event brought none, or an unknown one.

        Raises:
            RecordingError: No event has such a stream, or the recording is damaged.
        """
        numbers = self.events["number"]
        found = [
            (row.number, row.summary)
            for row in summaries(self.recording, space, stream)
            if row.summary.covered
        ]
        if not found and len(numbers):
            self.at(int(numbers[-1]))[space][stream]  # lists the names, if the name is wrong
        width = max((len(summary.values) for _, summary in found), default=1)
        shape = len(numbers), width
        out = np.ma.MaskedArray(
            np.zeros(shape, dtype=np.int64), mask=np.ones(shape, dtype=np.bool_)
        )
        if found:
            rows = np.searchsorted(
                numbers, np.array([number for number, _ in found], dtype=np.uint64)
            )
            for row, (_, summary) in zip(rows.tolist(), found, strict=True):
                out[row, : len(summary.values)] = summary.values
        return out

    def matrix(
        self,
        space: str,
        stream: str,
        first: int | None = None,
        last: int | None = None,
        *,
        stale: bool = False,
    ) -> Matrix:
        """Events by tiles of a stream, each row read on demand; `to_array()` reads them all."""
        rec = self.recording
        first = rec.first if first is None else first
        return Matrix(rec, space, stream, first, rec.last if last is None else last, stale=stale)

    def to_arrow(
        self,
        space: str | None = None,
        stream: str | None = None,
        *,
        tiles: bool = False,
        first: int | None = None,
        last: int | None = None,
    ) -> Table:
        """An Arrow table, with the columns of `gcspy export` to Parquet; `.to_pandas()` makes a data frame of it.

        Args:
            space: Name of the space; None: all.
            stream: Name of the stream; None: all.
            tiles: A row for each tile that an event gathered, instead of one a number of each summary.
            first: Number of the first event; None: of the recording.
            last: Number of the last event; None: of the recording.

        Raises:
            RecordingError: pyarrow is not installed, the range is invalid, or the recording is
                damaged.
        """
        try:
            from gcspy_replay.file.export import parquet_file  # optional
        except ModuleNotFoundError as error:
            raise RecordingError(
                f"this needs the package {error.name}; in a clone of gcspy: pip install '.[export]'"
            ) from error
        from gcspy_replay.file.export.tables import ExportSelection

        wanted = ExportSelection(first=first, last=last, space=space, stream=stream, tiles=tiles)
        return parquet_file.table_of(self.recording, wanted)
