"""Rows of history graphs from a recording or a time shift, in a thread of its own, a few events at a time.

The window takes what is there (`collect`) whenever it is told that there is something, and may
cancel at any time. What is made of an event is the same that would have been made of it live.

Knows recordings; does not know graphs, series or windows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic, Protocol, TypeVar

from gcspy_protocol.errors import CorruptChunk, GCspyError
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_replay.file import Recording

__all__ = ["HistoryReading", "Maker", "ReadRow", "Target"]

_NOTIFY_SECS = 0.05
"""The window is told this often: a picture that fills up, without drawing it for each event."""


Made = TypeVar("Made", covariant=True)


class Maker(Protocol[Made]):
    """Makes something of each event: `RowMaker`, or `SeriesMaker` (`tile_series`)."""

    def follow(self, space: SpaceState, change: EventChange) -> Made | None:
        """Take an event; None when it tells nothing."""


@dataclass(frozen=True, slots=True)
class Target(Generic[Made]):
    """What to make of the events.

    Attributes:
        space: Id of the space.
        make: Makes the maker; called again behind damage, where what was before is not known.
    """

    space: int
    make: Callable[[], Maker[Made]]


@dataclass(frozen=True, slots=True)
class ReadRow(Generic[Made]):
    """Something that was read.

    Attributes:
        target: Place of its target among those asked for.
        number: Number of the event in the recording.
        made: What the target's maker made.
    """

    target: int
    number: int
    made: Made


class HistoryReading(Generic[Made]):
    """Reads a range of events.

    Args:
        recording: Opened for this alone; it is closed at the end.
        targets: What to make of them.
        first: Number of the first event.
        last: Number of the last event.
        notify: Called from the reading thread when there is something to collect, and at the end.

    Attributes:
        error: Why it ended early, or None.
    """

    def __init__(
        self,
        recording: Recording,
        targets: Sequence[Target[Made]],
        first: int,
        last: int,
        *,
        notify: Callable[[], None] | None = None,
    ) -> None:
        self._recording = recording
        self._targets = targets
        self._first = max(first, recording.first)
        self._last = min(last, recording.last)
        self._notify = notify or (lambda: None)
        self._makers = self._new_makers()
        self._lock = threading.Lock()
        self._rows: list[ReadRow[Made]] = []
        self._read = 0
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gcspy-history", daemon=True)
        self.error: GCspyError | None = None

    def _new_makers(self) -> list[Maker[Made]]:
        return [target.make() for target in self._targets]

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """Stop after the event that is being read, and wait for that."""
        self._cancelled.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait(self, timeout_secs: float | None = None) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(timeout_secs)
        return not self._thread.is_alive()

    @property
    def running(self) -> bool:
        """Whether there is more to come."""
        return self._thread.is_alive()

    @property
    def progress(self) -> float:
        """How much was read, 0 to 1."""
        total = self._last - self._first + 1
        return 1.0 if total <= 0 else min(1.0, self._read / total)

    def collect(self) -> list[ReadRow[Made]]:
        """Take the rows that were read since the last time."""
        with self._lock:
            rows, self._rows = self._rows, []
        return rows

    def _run(self) -> None:
        try:
            with self._recording:
                # The event before the first is not shown, but tells what changed at the first.
                begin = max(self._first - 1, self._recording.first)
                while begin and begin <= self._last:
                    begin = self._read_from(begin)
        except GCspyError as error:
            self.error = error
        self._notify()

    def _read_from(self, begin: int) -> int:
        """Read on from an event; returns where to go on, behind damage, or 0 at the end."""
        try:
            told = monotonic()
            for step, session in self._recording.steps(begin, self._last):
                if self._cancelled.is_set():
                    return 0
                rows = []
                for i, (target, maker) in enumerate(zip(self._targets, self._makers, strict=True)):
                    space = session.spaces.get(target.space)
                    made = None if space is None else maker.follow(space, step.change)
                    if made is not None and step.number >= self._first:
                        rows.append(ReadRow(i, step.number, made))
                with self._lock:
                    self._rows += rows
                self._read = step.number - self._first + 1
                if monotonic() - told > _NOTIFY_SECS:
                    told = monotonic()
                    self._notify()
            return 0
        except CorruptChunk as damage:
            self._makers = self._new_makers()
            return max(begin, self._recording.damaged(damage)[1]) + 1
