"""Another session beside the one of the window: a recording that is read here, or a live one that is joined.

It has no playback of its own: it is set to an event, and shows it as soon as a thread has fetched
it; of the requests made meanwhile the latest is next. The same holds for a live one: received
events are stored, and shown on request.

Knows sessions, recordings and links; does not know widgets, nor which event belongs to which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from gcspy_protocol.address import Address
from gcspy_protocol.errors import RecordingError, RemoteProtocolError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Message
from gcspy_protocol.playback import TIMELINE
from gcspy_replay.file import Recording, events_with_clock
from gcspy_replay.playback import Timetable
from PySide6.QtCore import QObject, Qt, Signal

from gcspy_client.link import WindowLink
from gcspy_client.model.compare.pairs import ComparedSession
from gcspy_client.model.latest_worker import LatestWorker
from gcspy_client.model.playback.program_clock import ProgramClock
from gcspy_client.model.playback.time_shift import TimeShift
from gcspy_client.model.playback.timeline import EventTimeline
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import LinkPhase

__all__ = ["Other", "OtherLive", "OtherRecording"]

T = TypeVar("T")

_SETTLE_SECS = 20.0
_REST_SHARE, _MOST_REST_SECS = 0.5, 0.25
"""An event of a large heap takes long to reach; a drag asks for many of them."""


class Other(QObject):
    """A session that shows the event that it is set to.

    Attributes:
        session: The other session.
        name: Its name for users.
        clock: Its program's clock.

    Signals:
        ready: Its events are known.
        moved: It shows another event.
        grown: There are more events of it.
        failed: It cannot be read or joined, or an event cannot be decoded; the reason as text.
    """

    ready = Signal()
    moved = Signal()
    grown = Signal()
    failed = Signal(str)

    def __init__(self, name: str, session: ClientSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.name, self.session = name, session
        self.requested = 0
        self.clock = ProgramClock()

    @property
    def side(self) -> ComparedSession:
        """Its events."""
        welcome = self.session.interpreter.welcome
        kinds = () if welcome is None else welcome.events
        return ComparedSession(
            self.session.timeline,
            kinds,
            0 if welcome is None else welcome.wall_offset_nanos,
            self.clock,
        )

    @property
    def title(self) -> str:
        """Its target."""
        welcome = self.session.interpreter.welcome
        return self.name if welcome is None else f"{welcome.server}  ({self.name})"

    @property
    def shows_what_was_requested(self) -> bool:
        """Whether it shows the latest requested event."""
        return (
            self.session.interpreter.last_event is not None
            and self.session.number == self.requested
        )

    def show(self, number: int) -> None:
        """Show an event, soon."""
        raise NotImplementedError

    def settle(self) -> bool:
        """Show what was requested, now; whether that came about."""
        raise NotImplementedError

    def stop(self) -> None:
        """Show nothing more; no thread is left."""
        raise NotImplementedError


class _Reached:
    """An event that was got at."""

    def __init__(self, number: int, state: ClientInterpreter) -> None:
        self.number, self.state = number, state


def _worker(notify: Callable[[], None]) -> LatestWorker[T]:
    return LatestWorker(
        "gcspy other session", notify, rest_share=_REST_SHARE, most_rest_secs=_MOST_REST_SECS
    )


class OtherRecording(Other):
    """A recording.

    Args:
        paths: Its files.
    """

    _done = Signal()

    def __init__(self, paths: Sequence[Path], parent: QObject | None = None) -> None:
        super().__init__(
            ", ".join(path.name for path in paths), ClientSession(EventTimeline()), parent
        )
        self._paths = tuple(paths)
        self._recording: Recording | None = None
        self._first: ClientInterpreter | None = None
        self._opened = False
        self._worker: LatestWorker[_Reached | Timetable] = _worker(self._done.emit)
        self._done.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._worker.submit(self._open)

    def _open(self) -> Timetable:
        """Open the recording and read its events; runs in the thread."""
        recording = Recording.open(*self._paths)
        try:
            table = Timetable(recording)
            state = recording.seek(recording.first) if len(recording) else None
            # Only where the first event reports a clock: all events have to be read for it.
            if (
                state is not None
                and state.last_event is not None
                and state.last_event.program_clock is not None
            ):
                self.clock = ProgramClock.of(*events_with_clock(recording))
        except RecordingError:
            recording.close()
            raise
        if state is None:
            recording.close()
            raise RecordingError(f"{self.name} has no event")
        self._recording, self._first = recording, state
        return table

    def _reach(self, number: int) -> _Reached:
        """Decode an event; runs in the thread."""
        assert self._recording is not None
        return _Reached(number, self._recording.seek(number))

    def show(self, number: int) -> None:
        """Show an event, soon."""
        self.requested = number
        if self._opened:
            self._worker.submit(partial(self._reach, number))

    def _take(self) -> None:
        outcome = self._worker.take()
        if outcome is None:
            return
        if outcome.failure is not None:
            self.failed.emit(str(outcome.failure))
            return
        done = outcome.result()
        if isinstance(done, Timetable):
            rows = np.zeros(len(done.rows), dtype=TIMELINE)
            for field in TIMELINE.names or ():
                rows[field] = done.rows[field]
            self.session.timeline.extend(done.rows["number"], rows)
            assert self._first is not None
            self.session.show(self._first, done.first)
            self._opened = True
            self.ready.emit()
        else:
            self.session.show(done.state, done.number)
            self.moved.emit()

    def settle(self) -> bool:
        """Show what was requested, now."""
        for _ in range(3):
            if not self._worker.settle(_SETTLE_SECS):
                return False
            self._take()
            if self._worker.idle:
                break
        return self.shows_what_was_requested

    def stop(self) -> None:
        """Show nothing more; the files are closed."""
        self.blockSignals(True)
        self._worker.stop()
        self._worker.join()
        if self._recording is not None:
            self._recording.close()


class OtherLive(Other):
    """A served session: it is never controlled from here.

    Args:
        address: Where.
        token: Its token, where one is needed.
    """

    _done = Signal()

    def __init__(
        self, address: Address, *, token: str | None = None, parent: QObject | None = None
    ) -> None:
        self.shift = TimeShift()
        super().__init__(str(address), ClientSession(self.shift.timeline), parent)
        self.link = WindowLink(self)
        self.link.tap = self.shift
        self.shift.on_room = self.link.read_on
        self._known = False
        self._worker: LatestWorker[_Reached] = _worker(self._done.emit)
        self._done.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self.link.welcomed.connect(self._welcomed)
        self.link.received.connect(self._received)
        self.link.status_changed.connect(self._status_changed)
        self.link.open(address, token=token, wants_control=False)

    def _welcomed(self) -> None:
        self.session.restart()

    def _received(self, messages: list[Message]) -> None:
        events = 0
        for message in messages:
            try:
                change = self.session.apply(message)
                if change is not None:
                    events += 1
                    self.clock.add(change.event)
            except RemoteProtocolError as error:
                self.link.fail(error)
                return
        if self.session.is_playback:
            self.link.close()
            self.failed.emit(
                f"{self.name} plays a recording: open its file instead, so that both can move together"
            )
            return
        if events and not self._known:
            self._known = True
            self.session.show(self.session.live.copy(), self.session.timeline.last)
            self.ready.emit()
        elif events:
            self.grown.emit()

    def _status_changed(self, status: object) -> None:
        now = self.link.status
        if now.phase is LinkPhase.FAILED:
            self.failed.emit(f"{self.name}: {now.message}{': ' if now.remedy else ''}{now.remedy}")

    def show(self, number: int) -> None:
        """Show an event, soon."""
        self.requested = number
        self._worker.submit(partial(self._reach, number))

    def _reach(self, number: int) -> _Reached:
        """In the thread: get at an event that was kept; what came just now is on its way there."""
        self.shift.settle(_SETTLE_SECS)
        with self.shift.recording() as recording:
            return _Reached(number, recording.seek(number))

    def _take(self) -> None:
        outcome = self._worker.take()
        if outcome is None:
            return
        if outcome.failure is not None:
            self.failed.emit(str(outcome.failure))
            return
        done = outcome.result()
        if done.number == self.requested:
            self.session.show(done.state, done.number)
            self.moved.emit()

    def settle(self) -> bool:
        """Show what was requested, now."""
        if not self._worker.settle(_SETTLE_SECS):
            return False
        self._take()
        return self.shows_what_was_requested

    def stop(self) -> None:
        """Leave the session; what was kept of it is given up."""
        self.blockSignals(True)
        self.link.shut()
        self._worker.stop()
        self._worker.join()
        self.shift.close()
