"""What a history is made of, as it comes: reads what is recorded already, and then what is added to it.

Nothing is read in the thread of the window. What has come since the last reading is read by the next
one; one that took long is followed by a rest, so that a large heap does not take all the time there is.

Knows recordings that grow; does not know what is made of them, or drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import Recording
from PySide6.QtCore import QObject, QTimer, Signal

from gcspy_client.model.history_reader import HistoryReading, ReadRow, Target
from gcspy_client.model.history_rows import HistoryRow
from gcspy_client.model.tile_series import SeriesPoint

__all__ = ["HistoryFeed", "Made"]

Made = HistoryRow | SeriesPoint

_LOOK_MILLIS = 200
_MOST_REST_SECS = 1.0


class HistoryFeed(QObject):
    """Reads a recording from its first event on, and goes on as it grows.

    Signals:
        brought: What was made of some events: a list of `ReadRow`.
        failed: Why it cannot be read, in words.

    Args:
        target: What to make of the events.
        open_recording: Opens the recording.
        ends: Numbers of the first and the last event that there are now; 0 where there is none.
    """

    brought = Signal(object)
    failed = Signal(str)
    _told = Signal()

    def __init__(
        self,
        target: Target[Made],
        open_recording: Callable[[], Recording],
        ends: Callable[[], tuple[int, int]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._target, self._open, self._ends = target, open_recording, ends
        self._next = 1
        self._reading: HistoryReading[Made] | None = None
        self._begun = self._rest_until = 0.0
        self._told.connect(self._collect)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._look)

    def start(self) -> None:
        """Begin."""
        self._timer.start(_LOOK_MILLIS)
        self._look()

    def stop(self) -> None:
        """Read no more; no thread and no timer is left."""
        self._timer.stop()
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()

    @property
    def progress(self) -> float | None:
        """How much of what there is was read, 0 to 1; None: all."""
        return None if self._reading is None else self._reading.progress

    def _look(self) -> None:
        """Read on, when there is something new and nothing is being read."""
        if self._reading is not None:
            self._collect()
        if self._reading is not None or monotonic() < self._rest_until:
            return
        first, last = self._ends()
        if not last or last < self._next:
            return
        try:
            recording = self._open()
        except RecordingError as error:
            self._timer.stop()
            self.failed.emit(str(error))
            return
        begin, end = max(first, self._next), min(last, recording.last)
        if end < begin:
            recording.close()
            return
        self._next = end + 1
        self._begun = monotonic()
        self._reading = HistoryReading(recording, [self._target], begin, end, notify=self._told.emit)
        self._reading.start()

    def _collect(self) -> None:
        reading = self._reading
        if reading is None:
            return  # told by one that was stopped meanwhile
        ended = not reading.running
        rows: list[ReadRow[Made]] = reading.collect()
        if ended:
            self._reading = None
            now = monotonic()
            self._rest_until = now + min(_MOST_REST_SECS, now - self._begun)
            if reading.error is not None:
                self.failed.emit(str(reading.error))
        if rows or ended:
            self.brought.emit(rows)
