"""A recording: its parts, its events as a table, and every state that a viewer saw.

Only headers and the index are read at opening; the table of events is read on demand. A recording
that is still being written can be read at the same time: see `refresh`.

Knows files and numbers of events; the client interpreter has a viewer's state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from gcspy_protocol.errors import CorruptChunk, NotARecording, RecordingError, TruncatedRecording
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import CLIENT_LIMITS, Limits
from gcspy_protocol.messages import Welcome
from numpy.typing import NDArray

from gcspy_replay.file.cursor import ChunkAt, Cursor, Places, RecordedEvent
from gcspy_replay.file.layout import PartFacts
from gcspy_replay.file.parts.addresses import is_address, sources_at
from gcspy_replay.file.parts.packed_source import open_source
from gcspy_replay.file.parts.part import RecordingPart
from gcspy_replay.file.parts.scan import DamagedRange, Progress
from gcspy_replay.file.parts.source import ByteSource
from gcspy_replay.file.storage.store import SUFFIX

__all__ = ["EVENTS", "Recording", "compensated_nanos", "sources_of"]

EVENTS = np.dtype(
    [
        ("number", "<u8"),
        ("event", "<u2"),
        ("occurrence", "<u8"),
        ("sequence", "<u8"),
        ("time_nanos", "<u8"),
        ("gather_nanos", "<u8"),
        ("held_nanos", "<u8"),
        ("missed", "<u8"),
        ("keyframe", "?"),
        ("cached", "?"),
        ("part", "<u4"),
        ("chunk", "<u8"),
        ("offset", "<u8"),
        ("bytes", "<u8"),
    ]
)
"""A row of `Recording.events`.

    number        of the event in the recording, from 1; a cut keeps the numbers
    event         its kind; names are in `Recording.welcome.events`
    occurrence    how often the kind had happened, filtered ones too
    sequence      number of the snapshot in the session
    time_nanos    when, by the monotonic clock of the target's host
    gather_nanos  spent gathering
    held_nanos    held since the event before (delay, pause, lossless clients)
    missed        events that the recorder missed between the event before and this one
    keyframe      sent whole
    cached        repeated: it happened before the recorder joined, or while it missed events
    part, chunk, offset, bytes   where it lies
"""


def sources_of(paths: Iterable[Path | str]) -> list[ByteSource]:
    """The files of a recording: files as given, and for a folder those of the ring in it. Texts are addresses.

    Raises:
        RecordingError: There is none, or it cannot be read.
    """
    sources: list[ByteSource] = []
    try:
        for path in paths:
            if isinstance(path, str):
                sources.extend(sources_at(path))
                continue
            if not path.is_dir():
                sources.append(open_source(path))
                continue
            before = len(sources)
            for file in sorted(path.glob("*" + SUFFIX)):
                source = _source_of_ring(file)
                if source is not None:
                    sources.append(source)
            if len(sources) == before:
                raise NotARecording(
                    f"there is no recording in the folder {path}: its files should end in {SUFFIX}"
                )
    except RecordingError:
        for source in sources:
            source.close()
        raise
    return sources


def _source_of_ring(path: Path) -> ByteSource | None:
    """A file of a ring; None if the recorder has deleted it since the folder was listed."""
    try:
        return open_source(path)
    except RecordingError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def compensated_nanos(events: NDArray[Any]) -> NDArray[np.int64]:
    """The program's own time of each event: without what gathering and holding took (SPEC.md 7.1).

    Args:
        events: `Recording.events`, or a slice of it.

    Returns:
        Shape (events,), nanoseconds since the first of them.
    """
    if not len(events):
        return np.empty(0, dtype=np.int64)
    gathered = np.cumsum(events["gather_nanos"].astype(np.int64))
    # The gathering and the hold of the first event lie after and before it.
    before = np.concatenate(([0], gathered[:-1])) + np.cumsum(events["held_nanos"].astype(np.int64))
    times = (events["time_nanos"] - events["time_nanos"][0]).astype(np.int64)
    result: NDArray[np.int64] = times - (before - before[0])
    return result


def _part_of(source: ByteSource, limits: Limits, progress: Progress | None) -> RecordingPart:
    try:
        return RecordingPart(source, limits, progress=progress)
    except RecordingError as error:
        error.args = (f"{source.name}: {error}",)  # a recording may have many files
        raise


class Recording(Places):
    """A recording that is read. One thread uses one; open it again for another.

    Args:
        sources: Its parts, in any order.
        limits: Limits on its content.
        progress: Called with the progress of a scan, if the index is missing.
        catalogue: The current parts, called by `refresh`: a ring loses and gets some.

    Attributes:
        welcome: The recorded server, with the kinds of event.
        facts: The facts in the header of the first part.
        limits: Limits on its content.

    Raises:
        NotARecording: One of them is not a recording.
        CorruptChunk: The header of one is damaged: `gcspy repair` may help.
        TruncatedRecording: One ends before its header does.
        RecordingError: They are not parts of one recording, or cannot be read.
    """

    def __init__(
        self,
        sources: Sequence[ByteSource],
        *,
        limits: Limits = CLIENT_LIMITS,
        progress: Progress | None = None,
        catalogue: Callable[[], list[ByteSource]] | None = None,
    ) -> None:
        if not sources:
            raise NotARecording("no file was named")
        self.limits = limits
        self._sources = list(sources)
        self._catalogue = catalogue
        try:
            parts = [_part_of(source, limits, progress) for source in sources]
            parts.sort(key=lambda part: part.facts.part)
            self._parts = parts
            if len({part.facts.recording for part in parts}) > 1:
                names = ", ".join(source.name for source in sources)
                raise RecordingError(f"these are parts of different recordings: {names}")
        except RecordingError:
            self.close()
            raise
        self.welcome: Welcome = parts[0].welcome
        self.facts: PartFacts = parts[0].facts
        self._events: NDArray[Any] | None = None
        self._chunks: list[ChunkAt] = []
        self._firsts: list[int] = []
        self._misplaced: list[DamagedRange] = []
        self._list_chunks()

    @classmethod
    def open(
        cls, *paths: Path | str, limits: Limits = CLIENT_LIMITS, progress: Progress | None = None
    ) -> Recording:
        """Open a file, the files of a split recording, or the folder of a ring; or addresses of them (`parts.addresses`)."""
        named = [path if is_address(path) else Path(path) for path in paths]
        folder = any(isinstance(path, Path) and path.is_dir() for path in named)
        catalogue = (lambda: sources_of(named)) if folder else None
        return cls(sources_of(named), limits=limits, progress=progress, catalogue=catalogue)

    def again(self) -> Recording:
        """Open it once more, for another thread or viewer; the results of a scan are shared.

        Raises:
            RecordingError: A file is gone, or is another one now.
        """
        twin = copy(self)
        sources: list[ByteSource] = []
        try:
            parts: list[RecordingPart] = []
            for part in self._parts:
                sources.append(part.window.source.again())
                parts.append(part.again(sources[-1]))
            twin._parts = parts
        except RecordingError:
            for source in sources:
                source.close()
            raise
        twin._sources = sources
        twin._list_chunks()
        return twin

    def close(self) -> None:
        """Close its files."""
        for source in self._sources:
            source.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---------------------------------------------------------------- content

    def _list_chunks(self) -> None:
        chunks: list[ChunkAt] = []
        self._misplaced = []
        following, number = 1, -1
        for part in self._parts:
            for place in part.places:
                if place.first < following or place.number <= number:
                    # Two chunks that claim one event: a file was put together from pieces of others.
                    what = f"chunk {place.number} begins with event {place.first}, which there is already"
                    self._misplaced.append(
                        DamagedRange(place.offset, place.offset + place.size, place.number, what)
                    )
                    continue
                chunks.append(ChunkAt(part, place))
                following, number = place.first + place.events, place.number
        self._chunks = chunks
        self._firsts = [at.place.first for at in chunks if at.place.events]
        self._with_events = [at for at in chunks if at.place.events]

    def refresh(self) -> bool:
        """Read data that a running recorder has written since.

        Returns:
            Whether there was anything.
        """
        changed = self._follow_catalogue()
        grown = [part.refresh() for part in self._parts]
        if not changed and not any(grown):
            return False
        self._events = None
        self._list_chunks()
        return True

    def _follow_catalogue(self) -> bool:
        """Add new parts and drop deleted ones; return whether there were any."""
        if self._catalogue is None:
            return False
        now = {source.name: source for source in self._catalogue()}
        known = {source.name for source in self._sources}
        gone = [part for part in self._parts if part.window.source.name not in now]
        new: list[RecordingPart] = []
        for name, source in now.items():
            try:
                if name in known:
                    raise NotARecording("")
                new.append(RecordingPart(source, self.limits))
            except (NotARecording, TruncatedRecording):
                source.close()  # known already, or its header is being written now
        if len(gone) == len(self._parts) and not new:
            gone = []
        for part in gone:
            part.window.source.close()
        self._parts = sorted(
            [part for part in self._parts if part not in gone] + new,
            key=lambda part: part.facts.part,
        )
        self._sources = [part.window.source for part in self._parts]
        return bool(new or gone)

    @property
    def first(self) -> int:
        """Number of the first event; 0 if there is none."""
        return self._firsts[0] if self._firsts else 0

    @property
    def last(self) -> int:
        """Number of the last event; 0 if there is none."""
        if not self._firsts:
            return 0
        place = self._with_events[-1].place
        return place.first + place.events - 1

    def range_of(self, first: int | None, last: int | None) -> tuple[int, int]:
        """Return the numbers of the first and the last event of a range; zeros for all of a recording without events.

        Args:
            first: The first; None: that of the recording.
            last: The last; None: that of the recording.

        Raises:
            RecordingError: There are no such events.
        """
        if not len(self):
            if first is None and last is None:
                return 0, 0
            raise RecordingError("the recording has no events")
        begin = self.first if first is None else first
        end = self.last if last is None else last
        if not self.first <= begin <= end <= self.last:
            raise RecordingError(
                f"there are no events {begin} to {end}: the recording has {self.first} to {self.last}"
            )
        return begin, end

    def __len__(self) -> int:
        return sum(at.place.events for at in self._with_events)

    @property
    def finished(self) -> bool:
        """Whether the recorder closed it; otherwise it is being written, or was killed."""
        return all(part.finished for part in self._parts)

    @property
    def packed(self) -> bool:
        """Whether the records of a part are packed by column."""
        return any(part.packed for part in self._parts)

    @property
    def indexed(self) -> bool:
        """Whether each part has its index; otherwise it was rebuilt by a scan."""
        return all(part.indexed for part in self._parts)

    @property
    def damages(self) -> list[tuple[str, DamagedRange]]:
        """Ranges that a scan could not use, with the name of the part; `integrity.verify` checks every byte."""
        found = [
            (part.window.source.name, damage) for part in self._parts for damage in part.damages
        ]
        return found + [(self._parts[0].window.source.name, damage) for damage in self._misplaced]

    @property
    def torn_bytes(self) -> int:
        """Bytes at the ends of parts that are no whole event: torn by a kill, or still being written."""
        return sum(part.tail for part in self._parts)

    @property
    def size_bytes(self) -> int:
        """Bytes of all parts."""
        return sum(part.window.source.size() for part in self._parts)

    @property
    def parts(self) -> Sequence[RecordingPart]:
        """The parts, in order."""
        return self._parts

    @property
    def chunks(self) -> Sequence[ChunkAt]:
        """The chunks, in order."""
        return self._chunks

    @property
    def events(self) -> NDArray[Any]:
        """The table of events: a structured array of dtype `EVENTS`, one row an event.

        Raises:
            CorruptChunk: A chunk that the index names is not there.
        """
        if self._events is None:
            self._events = self._read_events()
        return self._events

    def _read_events(self) -> NDArray[Any]:
        tables = []
        part_numbers = {id(part): part.facts.part for part in self._parts}
        for part in self._parts:
            part.prefetch_tables()
        for at in self._with_events:
            rows = at.part.rows(at.place)
            table = np.zeros(len(rows), dtype=EVENTS)
            for name in (
                "event",
                "occurrence",
                "sequence",
                "time_nanos",
                "gather_nanos",
                "held_nanos",
            ):
                table[name] = rows[name]
            table["number"] = at.place.first + np.arange(len(rows), dtype=np.uint64)
            table["missed"] = rows["missed_total"]
            table["keyframe"] = rows["flags"] & 1
            table["cached"] = rows["flags"] & 2
            table["part"] = part_numbers[id(at.part)]
            table["chunk"] = at.place.number
            table["offset"] = rows["start"] + np.uint64(at.place.offset)
            table["bytes"] = rows["end"] - rows["start"]
            tables.append(table)
        if not tables:
            return np.zeros(0, dtype=EVENTS)
        events = np.concatenate(tables)
        totals = events["missed"].astype(np.int64)
        events["missed"] = np.maximum(np.diff(totals, prepend=totals[:1]), 0).astype(np.uint64)
        return events

    # ------------------------------------------------------------------ finding events

    def nearest(self, time_nanos: int) -> int:
        """Number of the event nearest to a time of the target's clock; the earlier of two as near.

        Raises:
            RecordingError: There is no event.
        """
        self._some()
        # Chunks are in the order of time, so that one table is enough.
        starts = [at.place.first_time for at in self._with_events]
        i = max(0, bisect_right(starts, time_nanos) - 1)
        best = (1 << 65, 0)
        for at in self._with_events[i : i + 2]:
            times = at.part.rows(at.place)["time_nanos"]
            if not len(times):
                continue
            k = int(np.argmin(np.abs(times.astype(np.float64) - float(time_nanos))))
            distance = abs(int(times[k]) - time_nanos)
            best = min(best, (distance, at.place.first + k))
        return best[1]

    def event_ids(self, name: str) -> list[int]:
        """The kinds of event of this name.

        Raises:
            RecordingError: There is no such kind.
        """
        found = [kind.id for kind in self.welcome.events if kind.name == name]
        if not found:
            known = ", ".join(kind.name for kind in self.welcome.events)
            raise RecordingError(f"there is no kind of event {name!r}; there are: {known}")
        return found

    def find(self, name: str, *, after: int = 0, backwards: bool = False) -> int | None:
        """Number of the next event of this name.

        Args:
            name: Name of the kind of event.
            after: Search behind the event of this number; backwards: before it (0: from the end).
            backwards: Search towards the beginning.

        Returns:
            Its number, or None if there is none.

        Raises:
            RecordingError: There is no such kind.
        """
        kinds = self.event_ids(name)
        chunks = reversed(self._with_events) if backwards else iter(self._with_events)
        for at in chunks:
            if (backwards and after and at.place.first >= after) or (
                not backwards and at.place.first + at.place.events - 1 <= after
            ):
                continue
            rows = at.part.rows(at.place)
            numbers = at.place.first + np.flatnonzero(np.isin(rows["event"], kinds))
            if backwards:
                numbers = numbers[numbers < after][::-1] if after else numbers[::-1]
            else:
                numbers = numbers[numbers > after]
            if len(numbers):
                return int(numbers[0])
        return None

    # ------------------------------------------------------------------ events

    def cursor(self) -> Cursor:
        """An independent position in the recording; `seek` or `step` moves it."""
        return Cursor(self)

    def seek(self, number: int) -> ClientInterpreter:
        """A viewer's state right after an event: a new interpreter each time.

        Raises:
            RecordingError: There is no such event.
            CorruptChunk: Its chunk is damaged before it.
        """
        return self.cursor().seek(number)

    def steps(
        self, first: int | None = None, last: int | None = None
    ) -> Iterator[tuple[RecordedEvent, ClientInterpreter]]:
        """The events of a range in order, each with a viewer's state right after it.

        Args:
            first: Number of the first; by default of the recording.
            last: Number of the last; by default of the recording.

        Yields:
            The event, and the interpreter: the same one each time, changed in place.
        """
        if not self._firsts:
            return
        first, last = first or self.first, last or self.last
        cursor = self.cursor()
        cursor.before(first)
        while cursor.number < last and (step := cursor.step()) is not None:
            if step.number > last:
                return
            yield step, cursor.session

    def _has(self, number: int) -> bool:
        i = bisect_right(self._firsts, number) - 1
        return (
            i >= 0 and number < self._with_events[i].place.first + self._with_events[i].place.events
        )

    def _some(self) -> None:
        if not self._firsts:
            raise RecordingError(f"{self._parts[0].window.source.name} has no events")

    def chunk_of(self, number: int) -> ChunkAt:
        """The chunk of an event; of number 0 the first chunk.

        Raises:
            RecordingError: The recording does not have that event.
        """
        if number == 0 and self._chunks:
            return self._chunks[0]
        self._some()
        if not self._has(number):
            lost = " (lost with a damaged part)" if self.first <= number <= self.last else ""
            raise RecordingError(
                f"there is no event {number}{lost}: there are {self.first} to {self.last}"
            )
        return self._with_events[bisect_right(self._firsts, number) - 1]

    def chunk_after(self, at: ChunkAt) -> ChunkAt | None:
        """The chunk behind another, or the same one grown."""
        for i in range(self._index_of(at), len(self._chunks)):
            if self._chunks[i].place.number > at.place.number:
                return self._chunks[i]
        return None

    def chunk_now(self, at: ChunkAt) -> ChunkAt:
        """The same chunk as it is known now: that of a live recorder grows."""
        i = self._index_of(at)
        if i < len(self._chunks) and self._chunks[i].place.number == at.place.number:
            return self._chunks[i]
        return at

    def _index_of(self, at: ChunkAt) -> int:
        """Index of the chunk, or of the one behind it."""
        low, high = 0, len(self._chunks)
        while low < high:
            middle = (low + high) // 2
            if self._chunks[middle].place.number < at.place.number:
                low = middle + 1
            else:
                high = middle
        return low

    def damaged(self, error: CorruptChunk) -> tuple[int, int]:
        """Numbers of the first and last event that this damage makes unreachable: the rest of its chunk."""
        for at in self._with_events:
            if at.place.number == error.chunk:
                rows = at.part.rows(at.place)
                lost = np.flatnonzero(rows["end"] + np.uint64(at.place.offset) > error.offset)
                first = int(lost[0]) if len(lost) else 0
                return at.place.first + first, at.place.first + at.place.events - 1
        raise RecordingError(f"no chunk {error.chunk} has events")
