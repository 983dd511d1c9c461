"""Loads the memory behind the timeline: from events as they come, or from the file of a recording, in a thread.

Knows the session, its files and the thread that reads them; does not know how memory is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.model import PauseActsOn
from gcspy_replay.file import Recording
from PySide6.QtCore import QObject, Signal

from gcspy_client.model.memory_history import MemoryStreams, memory_source
from gcspy_client.model.playback.memory_reader import MemoryReader
from gcspy_client.model.playback.memory_track import MemoryTrack
from gcspy_client.model.session import ClientSession

__all__ = ["MemoryLoader"]


class MemoryLoader(QObject):
    """The memory of a window's session.

    Signals:
        changed: There is more of it, or that of another session.

    Args:
        session: The displayed and the live state.
        files: The files of the recording that is played; empty: it is not known, or none is.

    Attributes:
        track: The memory.
    """

    changed = Signal()
    _told = Signal()

    def __init__(
        self,
        session: ClientSession,
        files: Callable[[], tuple[Path, ...]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._files = session, files
        self.track = MemoryTrack()
        self._identity: tuple[object, ...] = ()
        self._schema: tuple[object, ...] = ()
        self._reader: MemoryReader | None = None
        self._ended: list[MemoryReader] = []
        self._closed = False
        self._told.connect(self._take)

    def follow(self, change: EventChange) -> None:
        """Take an event that came."""
        if self._closed:
            return
        self.refresh()
        if self._reader is None:
            self.track.take(self._session.live, change.event, self._session.timeline)

    def refresh(self) -> None:
        """Follow the session: another one has other memory."""
        live = self._session.live
        welcome = live.welcome
        if self._closed or welcome is None or live.last_event is None:
            return
        identity = welcome.session, self._session.is_playback, self._files()
        # Spaces come and go between events only, and the main one may be another then.
        schema = (*identity, live.epoch, len(live.spaces))
        if schema == self._schema:
            return
        self._schema = schema
        source = memory_source(live)
        if identity != self._identity:
            self._identity = identity
            self._begin(source)
        elif source != self.track.source and not self.track.has_memory:
            self._begin(source)

    def _begin(self, source: MemoryStreams) -> None:
        self._leave()
        self.track = MemoryTrack(source, gather_waits=self._gather_waits())
        files = self._files()
        if self._session.is_playback and files and source.wanted:
            self.track.reading = 0.0
            self._reader = MemoryReader(partial(Recording.open, *files), source, self._told.emit)
        self.changed.emit()

    def _gather_waits(self) -> bool:
        """Whether the target stands still while an event is gathered."""
        live = self._session.live
        if self._session.is_playback and live.welcome is not None:
            return live.welcome.target.get("recorded pause", "") == PauseActsOn.PROGRAM.value
        return live.pause_acts_on is PauseActsOn.PROGRAM

    def _take(self) -> None:
        reader = self._reader
        if reader is None or self._closed:
            return
        for first, columns in reader.take():
            self.track.samples.put(first, columns)
        self.track.reading = reader.progress
        if reader.error is not None:
            self.track.note = f"memory cannot be read: {reader.error}"
        self.changed.emit()

    def _leave(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.end()
            self._ended.append(reader)

    @property
    def settled(self) -> bool:
        """Whether everything that there is has been read."""
        return self._reader is None or self.track.reading >= 1 or bool(self.track.note)

    def stop(self) -> None:
        """Read no more; no thread is left."""
        self._closed = True
        self._leave()
        for reader in self._ended:
            reader.close()
        self._ended.clear()
