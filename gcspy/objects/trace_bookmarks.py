"""`TraceBookmarks`: bookmarks of a trace that is played, kept beside the trace.

A trace is played as a temporary recording, whose events have other numbers each time that the trace has grown. So a bookmark is kept
with the number of the trace's event, and gets the number of the session's event when that one is there.

Knows sidecar files of recordings; does not know windows.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import (
    SIDECAR_SUFFIX,
    Bookmark,
    Sidecar,
    put_sidecar,
    read_sidecar,
    sidecar_path,
    write_sidecar,
)

__all__ = ["TraceBookmarks"]

_LOOK_SECS: Final = 0.5
_EVENT: Final = "trace_event"
"""Field of a kept bookmark: number of the trace's event before which the heap is shown."""


class TraceBookmarks:
    """Bookmarks of one trace.

    Args:
        trace: Path of the trace.
        identity: 16 bytes that no other trace has; empty: not known.
        recording: Path of the temporary recording.
        events: For each event of the session the event of the trace; grows.

    Attributes:
        path: File in which they are kept.
    """

    def __init__(
        self, trace: Path, identity: bytes, recording: Path, events: Sequence[int]
    ) -> None:
        trace = trace.absolute()
        self.path = trace.with_name(trace.name + SIDECAR_SUFFIX)
        self._identity, self._events = identity, events
        self._played = sidecar_path(recording)
        self._seen = 0
        self._waiting: list[Bookmark] = []
        kept = None
        with suppress(RecordingError):
            kept = read_sidecar(self.path)
        self._kept = kept if kept is not None and kept.belongs_to(identity) else Sidecar()
        for mark in self._kept.bookmarks:
            event = mark.others.get(_EVENT)
            if isinstance(event, int) and event >= 0:
                self._waiting.append(mark)

    @property
    def note(self) -> str | None:
        """Message for the user if new ones cannot be kept."""
        if os.access(self.path.parent, os.W_OK):
            return None
        return f"bookmarks are not kept: {self.path.parent} cannot be written"

    @contextmanager
    def following(self) -> Iterator[None]:
        """Keep changes while the block runs."""
        self.begin()
        over = threading.Event()

        def follow() -> None:
            while not over.wait(_LOOK_SECS):
                self.look()

        thread = threading.Thread(target=follow, name="gcspy bookmarks")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.look()

    def begin(self) -> None:
        """Give the recording the notes and the layout of the last time, and the bookmarks whose event it has."""
        with suppress(RecordingError):
            if not self._kept.empty:
                write_sidecar(self._played, replace(self._kept, recording=b"", bookmarks=()))
                self._seen = self._changed_at()
        self.look()

    def look(self) -> None:
        """Give the recording those whose event it has, and keep what was changed there."""
        with suppress(RecordingError, OSError):
            last = self._events[-1] if self._events else -1
            ready = [one for one in self._waiting if one.others[_EVENT] <= last]
            changed = self._changed_at()
            if ready:
                self._waiting = [one for one in self._waiting if one not in ready]
                played = read_sidecar(self._played) or Sidecar()
                marks = {one.number: one for one in map(self._numbered, ready)}
                marks |= {one.number: one for one in played.bookmarks}
                ordered = tuple(marks[number] for number in sorted(marks))
                write_sidecar(self._played, replace(played, bookmarks=ordered))
                if changed == self._seen:
                    self._seen = self._changed_at()
            elif changed != self._seen:
                self._keep()
                self._seen = changed

    def _changed_at(self) -> int:
        try:
            return self._played.stat().st_mtime_ns
        except OSError:
            return 0

    def _numbered(self, mark: Bookmark) -> Bookmark:
        event = mark.others[_EVENT]
        # Several events of a session may show the same heap.
        if 0 < mark.number <= len(self._events) and self._events[mark.number - 1] == event:
            return mark
        return replace(mark, number=bisect_left(self._events, event) + 1)

    def _keep(self) -> None:
        played = read_sidecar(self._played)
        if played is None:
            return
        marks = [
            replace(one, others={**one.others, _EVENT: self._events[one.number - 1]})
            for one in played.bookmarks
            if 0 < one.number <= len(self._events)
        ]
        # What waits for its event stays, under a number that no other one has.
        free = max((one.number for one in marks), default=0)
        marks += [replace(one, number=free + index) for index, one in enumerate(self._waiting, 1)]
        put_sidecar(self.path, replace(played, recording=self._identity, bookmarks=tuple(marks)))
