"""Fills history graphs and series from a recording or a time shift, in one thread for all of them.

Each event is decoded once, for all graphs that lack it. First come single events from all over a
long recording, so that there is something to see; then those in view; then the rest in order. When
everything is read the thread continues with new events: nothing is read twice.

Rows are passed on in this thread; the receiver must do its own locking.

Knows recordings; does not know graphs, series or windows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from gcspy_protocol.errors import CorruptChunk, GCspyError, RecordingError
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_replay.file import Cursor, Recording
from gcspy_replay.file.cursor import RecordedEvent
from numpy.typing import NDArray

__all__ = ["FillTarget", "HistoryFiller", "Maker", "spread"]

_NOTIFY_SECS = 0.05
"""How often the window is notified: the picture fills up, without being drawn for each event."""

_LOOK_SECS = 0.15
_MOST_REST_SECS = 1.0
_SEGMENT = 256
"""Events read at a time, before the visible part is checked again."""

_TRIES = 5

_FEW_EVENTS = 400
_ROUGH = 192
"""If a recording has more events, this many are read first; each costs a keyframe."""

Made = TypeVar("Made")
MadeCo = TypeVar("MadeCo", covariant=True)


class Maker(Protocol[MadeCo]):
    """Makes something of each event: `RowMaker`, or `SeriesMaker` (`tile_series`)."""

    def follow(self, space: SpaceState, change: EventChange) -> MadeCo | None:
        """Process an event; None if it adds nothing."""


def _nothing() -> None:
    pass


class FillTarget(Generic[Made]):
    """A graph to fill.

    Args:
        space: Id of the space.
        make: Makes the maker; called again if the previous state is not known.
        take: Receives the result of an event, and its number; in the reading thread.
        take_rough: The same for the events that are read first of all, which come once more later.
        done: Called when all that there is has been read; once.
        numbers: First and last event number; None: all, as more come.
        first: Read this before others.

    Attributes:
        removed: Whether it is no longer needed; it is then not filled, even if it is added later.
    """

    def __init__(
        self,
        space: int,
        make: Callable[[], Maker[Made]],
        take: Callable[[Made, int], None],
        *,
        take_rough: Callable[[Made, int], None] | None = None,
        done: Callable[[], None] = _nothing,
        numbers: tuple[int, int] | None = None,
        first: bool = False,
    ) -> None:
        self.space, self.first, self.numbers = space, first, numbers
        self._make, self._take, self._take_rough, self._done = make, take, take_rough, done
        self._maker = make()
        self._at = 0  # the event that the maker followed last
        self._ended = False
        self.removed = False
        self.missing: list[tuple[int, int]] = []
        self.rough: list[int] = []
        self.total = 0

    def begin(self, recording: Recording) -> None:
        """Get the available events; in the reading thread."""
        self.extend(recording.first, recording.last)
        if self._take_rough is not None and self.total > _FEW_EVENTS:
            firsts = [at.place.first for at in recording.chunks if at.place.events]
            self.rough = spread(firsts, _ROUGH)

    def extend(self, first: int, last: int) -> None:
        """There are more."""
        if self.numbers is not None:
            first, last = max(first, self.numbers[0]), min(last, self.numbers[1])
        if first <= last:
            self.missing.append((first, last))
            self.total += last - first + 1

    def lacks(self, number: int) -> bool:
        """Whether an event is yet to be read."""
        return any(first <= number <= last for first, last in self.missing)

    def has(self, first: int, last: int) -> None:
        """These need not be read (any more)."""
        left: list[tuple[int, int]] = []
        for low, high in self.missing:
            left += [
                part
                for part in ((low, min(high, first - 1)), (max(low, last + 1), high))
                if part[0] <= part[1]
            ]
        self.missing = left
        if not left and not self._ended:
            self._ended = True
            self._done()

    def stands_before(self, number: int) -> bool:
        """Whether the maker can continue with this event."""
        return self._at == number - 1

    def begin_anew(self) -> None:
        """Note that the previous state is not known."""
        self._maker = self._make()
        self._at = 0

    def follow(self, step: RecordedEvent, space: SpaceState | None, *, wanted: bool) -> None:
        """Make something of an event."""
        made = None if space is None else self._maker.follow(space, step.change)
        self._at = step.number
        if made is not None and wanted:
            self._take(made, step.number)

    def follow_rough(self, step: RecordedEvent, space: SpaceState | None) -> None:
        """Make something of an event that is read first of all."""
        made = None if space is None else self._make().follow(space, step.change)
        if made is not None and self._take_rough is not None:
            self._take_rough(made, step.number)


def spread(numbers: list[int], most: int) -> list[int]:
    """Some of these, evenly, in an order in which the earlier ones are always about equally far apart."""
    count = min(most, len(numbers))
    some = [numbers[i * len(numbers) // count] for i in range(count)]
    return [some[i] for i in _halving(count)]


def _halving(count: int) -> Iterator[int]:
    """0 to count - 1: the first, then the middle, then the middles of both halves, and so on."""
    if count:
        yield 0
    parts = [(0, count)]
    while parts:
        halves = []
        for low, high in parts:
            middle = (low + high) // 2
            if middle > low:
                yield middle
                halves += [(low, middle), (middle, high)]
        parts = halves


class HistoryFiller:
    """The thread.

    Args:
        open_recording: Opens the recording, in the thread; None: there is nothing yet.
        events: Called with the initial table of events (`Recording.events`), in the thread.
        notify: Called from the thread periodically when rows were added, and at the end.

    Attributes:
        error: Why it ended early, or None.
    """

    def __init__(
        self,
        open_recording: Callable[[], Recording | None],
        events: Callable[[NDArray[Any]], None],
        notify: Callable[[], None],
    ) -> None:
        self._open, self._events, self._notify = open_recording, events, notify
        self._condition = threading.Condition()
        self._all: list[FillTarget[Any]] = []
        self._new: list[FillTarget[Any]] = []
        self._focus: tuple[int, int] | None = None
        self._turned = False  # there is something else to read first
        self._stopping = False
        self._told = 0.0
        self._cursor: Cursor | None = None
        self._failures = 0  # since an event was read
        self._thread = threading.Thread(target=self._run, name="gcspy history filling", daemon=True)
        self.error: GCspyError | None = None

    # ------------------------------------------------------------------- from any thread

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def add(self, filled: FillTarget[Any]) -> None:
        """Fill this, too."""
        with self._condition:
            if filled.removed:
                return
            self._new.append(filled)
            self._turned = True
            self._condition.notify()

    def remove(self, filled: FillTarget[Any]) -> None:
        """Stop filling this; the row that is just being made is still passed on."""
        with self._condition:
            filled.removed = True
            self._all = [one for one in self._all if one is not filled]
            self._new = [one for one in self._new if one is not filled]

    def look_at(self, first: int, last: int) -> None:
        """Read these events before others."""
        with self._condition:
            if self._focus != (first, last):
                self._focus = (first, last)
                self._turned = True

    def end(self) -> None:
        """Stop after the event that is being read; `close` waits for it."""
        with self._condition:
            self._stopping = True
            self._condition.notify()

    def close(self) -> None:
        """Stop after the event that is being read, and wait for that."""
        self.end()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def progress(self) -> float:
        """Share that was read, 0 to 1."""
        with self._condition:
            waiting = bool(self._new)
            whole = [one for one in self._all if one.numbers is None]
        total = sum(one.total for one in whole)
        missing = sum(last - first + 1 for one in whole for first, last in list(one.missing))
        return 0.0 if waiting and not total else 1.0 if not total else 1 - missing / total

    # ------------------------------------------------------------------- in the thread

    def _run(self) -> None:
        recording: Recording | None = None
        try:
            while recording is None:
                recording = self._open()
                if recording is None and self._stopped_for(_LOOK_SECS):
                    return
            with suppress(CorruptChunk):
                self._events(recording.events)
            self._fill(recording)
        except GCspyError as error:
            self.error = error
        finally:
            if recording is not None:
                recording.close()
        self._notify()

    def _stopped_for(self, secs: float) -> bool:
        """Wait until there is something to do, up to a limit; return whether to stop."""
        with self._condition:
            if not self._stopping and not self._new:
                self._condition.wait(secs)
            return self._stopping

    def _fill(self, recording: Recording) -> None:
        self._cursor = Cursor(recording)
        known, looked = recording.last, monotonic()
        while not self._stopping:
            self._begin_new(recording)
            if monotonic() - looked > _LOOK_SECS:
                recording.refresh()
                looked = monotonic()
                for filled in self._all:
                    filled.extend(max(known + 1, recording.first), recording.last)
                known = max(known, recording.last)
            if self._read_rough():
                continue
            segment = self._next_segment(recording)
            if segment is None:
                self._tell(now=True)
                # A slow step is followed by a pause, so that a large heap does not take all the
                # processor time.
                if self._stopped_for(min(_MOST_REST_SECS, max(_LOOK_SECS, monotonic() - looked))):
                    return
                looked = 0.0
            else:
                self._read(recording, *segment)

    def _begin_new(self, recording: Recording) -> None:
        with self._condition:
            new, self._new = self._new, []
            self._turned = False
        for filled in new:
            filled.begin(recording)
        with self._condition:
            self._all = [*self._all, *new]

    def _tell(self, *, now: bool = False) -> None:
        if now or monotonic() - self._told > _NOTIFY_SECS:
            self._told = monotonic()
            self._notify()

    def _read_rough(self) -> bool:
        """Read one of the events that come first of all; whether there was one."""
        wanted = next((one for one in self._all if one.rough), None)
        if wanted is None:
            return False
        number = wanted.rough.pop(0)
        cursor = self._cursor
        assert cursor is not None
        with suppress(GCspyError):  # damaged events are met again, in order
            cursor.before(number)
            step = cursor.step()
            if step is not None and step.number == number:
                for one in self._all:
                    if one is wanted or number in one.rough:
                        one.follow_rough(step, cursor.session.spaces.get(one.space))
                        one.rough = [other for other in one.rough if other != number]
        self._tell()
        return True

    def _next_segment(self, recording: Recording) -> tuple[int, int] | None:
        """Numbers of the first and last event to be read next; None when there is nothing to read."""
        lacking = sorted((one for one in self._all if one.missing), key=lambda one: not one.first)
        if not lacking:
            return None
        missing = sorted(lacking[0].missing)
        focus = self._focus
        if focus is not None:
            seen = [(max(low, focus[0]), min(high, focus[1])) for low, high in missing]
            missing = [part for part in seen if part[0] <= part[1]] or missing
        first, last = missing[0]
        if first < recording.first:  # given up meanwhile, in a time shift
            for one in self._all:
                one.has(1, recording.first - 1)
            return self._next_segment(recording)
        return first, min(last, first + _SEGMENT - 1)

    def _read(self, recording: Recording, first: int, last: int) -> None:
        lacking = [one for one in self._all if one.lacks(first)]
        cursor = self._cursor
        assert cursor is not None
        at = first - 1
        try:
            if cursor.number != first - 1 or not all(one.stands_before(first) for one in lacking):
                # The event before the first is not shown, but is needed for the changes at the
                # first.
                cursor.before(max(first - 1, recording.first))
                for one in lacking:
                    one.begin_anew()
            while cursor.number < last and not self._stopping and not self._turned:
                step = cursor.step()
                if step is None or step.number > last:
                    at = last
                    break
                for one in lacking:
                    one.follow(
                        step, cursor.session.spaces.get(one.space), wanted=step.number >= first
                    )
                at = max(at, step.number)
                self._failures = 0
                self._tell()
        except CorruptChunk as damage:
            at = max(first, recording.damaged(damage)[1])
            self._cursor = Cursor(recording)
        except RecordingError:
            # The oldest part may have been given up while it was read.
            self._failures += 1
            if self._failures > _TRIES:
                raise
            self._cursor = Cursor(recording)
            recording.refresh()
        for one in self._all if at > last else lacking:
            one.has(first, at)
