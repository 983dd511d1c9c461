"""Reads the memory over time of a recording, in a thread: summaries only, no tiles.

Chunks are read in an order in which those already read are about equally far apart. So a coarse
picture of a whole long recording appears at once and is refined. A recording that is still being
written is read again once a second.

Knows recordings; does not know timelines or windows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import numpy as np
from gcspy_protocol.errors import CorruptChunk, GCspyError
from gcspy_replay.file import Recording
from gcspy_replay.file.cursor import ChunkAt
from gcspy_replay.file.series import summary_columns
from numpy.typing import NDArray

from gcspy_client.model.history.filler import spread
from gcspy_client.model.memory_history import MemoryStreams
from gcspy_client.model.playback.memory_samples import columns_of_summaries

__all__ = ["MemoryReader"]

_LOOK_SECS = 1.0
_NOTIFY_SECS = 0.1
"""How often the window is notified: each time it draws the plot again."""

_REST_SHARE = 0.25
_LEAST_REST_SECS = 0.005
"""The thread rests a part of the time, so that the window's thread is not kept from the interpreter's lock."""

Piece = tuple[int, NDArray[np.int64]]
"""Number of an event, and the values from there on, as of `columns_of_summaries`."""


class MemoryReader:
    """The reading thread; it starts when the reader is made.

    Args:
        open_recording: Opens the recording, in the thread.
        source: The quantities to read.
        notify: Called in the thread when there is something to `take`, and at the end.

    Attributes:
        error: The reason why it ended early, or None.
    """

    def __init__(
        self,
        open_recording: Callable[[], Recording],
        source: MemoryStreams,
        notify: Callable[[], None],
    ) -> None:
        self._open, self._source, self._notify = open_recording, source, notify
        self._gate = threading.Condition()
        self._pieces: list[Piece] = []
        self._stopping = False
        self._done = self._total = 0
        self.error: GCspyError | None = None
        self._thread = threading.Thread(target=self._run, name="gcspy memory reading", daemon=True)
        self._thread.start()

    def take(self) -> list[Piece]:
        """Return the pieces that were read since the last call."""
        with self._gate:
            pieces, self._pieces = self._pieces, []
        return pieces

    @property
    def progress(self) -> float:
        """Share of the events that was read, 0 to 1."""
        with self._gate:
            return self._done / self._total if self._total else 0.0

    def end(self) -> None:
        """Stop after the chunk that is being read; `close` waits for it."""
        with self._gate:
            self._stopping = True
            self._gate.notify_all()

    def close(self) -> None:
        """Stop after the chunk that is being read, and wait for that."""
        self.end()
        self._thread.join()

    # ------------------------------------------------------------------- in the thread

    def _run(self) -> None:
        try:
            with self._open() as recording:
                self._read(recording)
        except GCspyError as error:
            self.error = error
        if not self._stopping:
            self._notify()

    def _read(self, recording: Recording) -> None:
        read: dict[int, int] = {}  # events that were read, by number of the chunk
        while not self._stopping:
            chunks = {at.place.number: at for at in recording.chunks if at.place.events}
            with self._gate:
                self._total = sum(at.place.events for at in chunks.values())
                self._done = sum(read.get(key, 0) for key in chunks)
            new = [key for key, at in chunks.items() if read.get(key) != at.place.events]
            self._read_chunks(
                recording, chunks, [new[i] for i in spread([*range(len(new))], len(new))], read
            )
            if recording.finished or self._rests(_LOOK_SECS):
                return
            recording.refresh()

    def _read_chunks(
        self,
        recording: Recording,
        chunks: dict[int, ChunkAt],
        order: list[int],
        read: dict[int, int],
    ) -> None:
        told = began = monotonic()
        for key in order:
            at = chunks[key]
            with suppress(CorruptChunk):  # its events stay unknown
                summaries = summary_columns(recording, at, self._source.wanted)
                piece = at.place.first, columns_of_summaries(self._source, summaries)
                with self._gate:
                    self._pieces.append(piece)
            read[key] = at.place.events
            with self._gate:
                self._done += at.place.events
            now = monotonic()
            if now - told > _NOTIFY_SECS:
                told = now
                self._notify()
            rest = (now - began) * _REST_SHARE
            if rest > _LEAST_REST_SECS:
                if self._rests(rest):
                    return
                began = monotonic()
            elif self._stopping:
                return
        if order:
            self._notify()

    def _rests(self, secs: float) -> bool:
        """Wait; whether to stop."""
        with self._gate:
            return self._gate.wait_for(lambda: self._stopping, secs)
