"""What one tile held at one event, read from a recording in a thread of its own: for whoever points at a history graph.

Only the latest wish counts: a mouse passes over many events on its way.

Knows recordings; does not know graphs or windows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from gcspy_protocol.errors import GCspyError
from gcspy_replay.file import Cursor, Recording

from gcspy_client.model.session import tile_title
from gcspy_client.model.text import control_words
from gcspy_client.model.tile_source import TileSource

__all__ = ["TileAt", "TileValue", "ValueReader"]


@dataclass(frozen=True, slots=True)
class TileAt:
    """A tile at an event.

    Attributes:
        number: Of the event.
        space: Id of the space.
        key: The tile's.
    """

    number: int
    space: int
    key: int


@dataclass(frozen=True, slots=True)
class TileValue:
    """What was found.

    Attributes:
        at: What was asked for.
        title: What the tile is called; empty where there was none.
        text: Its value in words, or why there is none.
    """

    at: TileAt
    title: str
    text: str


class ValueReader:
    """Reads values, one at a time.

    Args:
        open_recording: Opens the recording; called in the reading thread.
        source: Which number of a tile.
        notify: Called from the reading thread when `value` is another.

    Attributes:
        value: What was read last.
    """

    def __init__(
        self,
        open_recording: Callable[[], Recording],
        source: TileSource,
        notify: Callable[[], None],
    ) -> None:
        self._open, self._source, self._notify = open_recording, source, notify
        self._condition = threading.Condition()
        self._wish: TileAt | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        self._recording: Recording | None = None
        self._cursor: Cursor | None = None
        self.value: TileValue | None = None

    def ask(self, at: TileAt) -> None:
        """Read this next, instead of what was asked before and is not yet begun."""
        with self._condition:
            self._wish = at
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="gcspy history value", daemon=True
                )
                self._thread.start()
            self._condition.notify()

    def end(self) -> None:
        """End the thread; `close` waits for it."""
        with self._condition:
            self._closed = True
            self._condition.notify()

    def close(self) -> None:
        """End the thread, and wait for that."""
        self.end()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                with self._condition:
                    while self._wish is None and not self._closed:
                        self._condition.wait()
                    if self._closed or self._wish is None:
                        return
                    at, self._wish = self._wish, None
                try:
                    self.value = self._read(at)
                except GCspyError as error:
                    self._leave()
                    self.value = TileValue(at, "", str(error))
                self._notify()
        finally:
            self._leave()

    def _read(self, at: TileAt) -> TileValue:
        cursor = self._cursor
        if cursor is None or self._recording is None or at.number > self._recording.last:
            self._leave()
            self._recording = self._open()
            cursor = self._cursor = Cursor(self._recording)
        session = cursor.seek(at.number)
        space = session.spaces.get(at.space)
        tile = None if space is None else space.names.index_of(at.key)
        if space is None or tile is None:
            return TileValue(at, "", "there was no such tile")
        words = control_words(int(space.control.values[tile]), space.space.unused_text)
        return TileValue(at, tile_title(space, tile), words or self._source.text(space, tile))

    def _leave(self) -> None:
        recording, self._recording, self._cursor = self._recording, None, None
        if recording is not None:
            with suppress(OSError):
                recording.close()
