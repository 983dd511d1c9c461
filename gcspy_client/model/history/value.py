"""The value of one tile at one event, read from a recording in a thread, while the mouse is over a history graph.

Knows recordings; does not know graphs or windows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from gcspy_protocol.errors import GCspyError
from gcspy_replay.file import Cursor, Recording

from gcspy_client.model.latest_worker import LatestWorker
from gcspy_client.model.session import tile_title
from gcspy_client.model.text import control_words
from gcspy_client.model.tile_source import TileSource

__all__ = ["TileAt", "TileValue", "ValueReader"]


@dataclass(frozen=True, slots=True)
class TileAt:
    """A tile at an event.

    Attributes:
        number: Number of the event.
        space: Id of the space.
        key: The tile's.
    """

    number: int
    space: int
    key: int


@dataclass(frozen=True, slots=True)
class TileValue:
    """The result.

    Attributes:
        at: The request.
        title: Name of the tile; empty if there was none.
        text: Its value as text, or why there is none.
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

    """

    def __init__(
        self,
        open_recording: Callable[[], Recording],
        source: TileSource,
        notify: Callable[[], None],
    ) -> None:
        self._open, self._source = open_recording, source
        self._worker: LatestWorker[TileValue] = LatestWorker(
            "gcspy history value", notify, at_end=self._leave
        )
        self._recording: Recording | None = None
        self._cursor: Cursor | None = None
        self._value: TileValue | None = None

    @property
    def value(self) -> TileValue | None:
        """The latest result."""
        outcome = self._worker.take()
        if outcome is not None:
            self._value = outcome.result()
        return self._value

    def ask(self, at: TileAt) -> None:
        """Read this next, instead of an earlier request that has not begun."""
        self._worker.submit(partial(self._try, at))

    def stop(self) -> None:
        """Read nothing more; `join` waits for the end of the thread."""
        self._worker.stop()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._worker.join()

    def _try(self, at: TileAt) -> TileValue:
        try:
            return self._read(at)
        except GCspyError as error:
            self._leave()
            return TileValue(at, "", str(error))

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
            return TileValue(at, "", "the tile did not exist")
        words = control_words(int(space.control.values[tile]), space.space.unused_text)
        return TileValue(at, tile_title(space, tile), words or self._source.text(space, tile))

    def _leave(self) -> None:
        recording, self._recording, self._cursor = self._recording, None, None
        if recording is not None:
            with suppress(OSError):
                recording.close()
