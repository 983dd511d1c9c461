"""Moving through time: one behaviour, whether a player at the other end obeys or the time shift in this process.

* `WirePlaying`: a recording that a player serves; requests are messages, their fulfilment comes as events.
* `ShiftPlaying`: the past of a live session; a playback over the stored events, driven by Qt's
  timer. The live session continues meanwhile, and gets no requests.

Seeks are coalesced: one at a time is under way, and of those that are requested meanwhile only the latest follows.

Knows playbacks and the link; does not know buttons or keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from gcspy_protocol.errors import RecordingError
from gcspy_protocol.interpreter import ClientInterpreter, EventChange
from gcspy_protocol.messages import (
    Error,
    Message,
    Pause,
    Playback,
    Position,
    Resume,
    Seek,
    SetPlayback,
)
from gcspy_protocol.model import ControlState
from gcspy_protocol.playback import Direction
from gcspy_replay.file import Cursor, Recording
from gcspy_replay.playback import Move
from gcspy_replay.playback import RecordingPlayback as LocalPlayback
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from gcspy_client.link import WindowLink
from gcspy_client.model.latest_worker import LatestWorker
from gcspy_client.model.session import ClientSession

__all__ = ["PlaybackController", "ShiftPlayback", "WirePlayback"]

_BATCH_NANOS = 8_000_000
"""How long due events are applied before the window is painted."""


class PlaybackController(QObject):
    """Base class of the two controllers of playback, which behave alike.

    Signals:
        changed: Its state has changed.
        refused: A request could not be fulfilled; the reason as text.
    """

    changed = Signal()
    refused = Signal(str)

    @property
    def running(self) -> bool:
        """Whether it is running."""
        raise NotImplementedError

    @property
    def manner(self) -> SetPlayback:
        """How it is played."""
        raise NotImplementedError

    def set_manner(self, manner: SetPlayback) -> None:
        """Play in another manner; neither starts nor stops."""
        raise NotImplementedError

    def seek(self, place: Seek) -> None:
        """Go to an event."""
        raise NotImplementedError

    def resume(self) -> None:
        """Continue, in the direction of the parameters."""
        raise NotImplementedError

    def pause(self) -> None:
        """Stand still at once."""
        raise NotImplementedError

    def play(self, direction: Direction) -> None:
        """Continue in a direction; stop, if it runs in this direction already."""
        if self.running and self.manner.direction is direction:
            self.pause()
            return
        if self.manner.direction is not direction:
            self.set_manner(replace(self.manner, direction=direction))
        if not self.running:
            self.resume()

    def step(self, steps: int) -> None:
        """Go by this many events, or back, and stop."""
        if self.running:
            self.pause()
        self.seek(Seek(steps=steps))


class WirePlayback(PlaybackController):
    """Controls the playback of a player.

    Args:
        session: The state received from the player.
        link: Connection to the player.
    """

    def __init__(
        self, session: ClientSession, link: WindowLink, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._link = session, link
        self._manner: SetPlayback | None = None  # requested and not confirmed
        self._under_way = False
        self._next: Seek | None = None
        link.received.connect(self._received)
        link.refused.connect(self._refused)
        link.welcomed.connect(self._begin)

    @property
    def running(self) -> bool:
        """Whether the playback runs."""
        return self._session.live.state is ControlState.RUNNING

    @property
    def manner(self) -> SetPlayback:
        """How it is played: as last requested, or as the player says."""
        if self._manner is not None:
            return self._manner
        playback = self._session.live.playback
        return SetPlayback() if playback is None else playback.manner

    @property
    def seeking(self) -> bool:
        """Whether a seek is under way."""
        return self._under_way

    def set_manner(self, manner: SetPlayback) -> None:
        """Ask for another manner."""
        self._manner = manner
        self._link.send(manner)
        self.changed.emit()

    def seek(self, place: Seek) -> None:
        """Request an event, as soon as the previous request has been answered."""
        if self._under_way:
            self._next = self._joined(place)
            return
        self._under_way = True
        self._link.send(place)

    def _joined(self, place: Seek) -> Seek:
        """The request with what waits: steps add up, anything else replaces it."""
        waiting = self._next
        if place.steps is not None and waiting is not None and waiting.steps is not None:
            return Seek(steps=waiting.steps + place.steps)
        return place

    def resume(self) -> None:
        """Request that it continues."""
        self._link.send(Resume())

    def pause(self) -> None:
        """Ask for it to stand still."""
        self._link.send(Pause())

    def _begin(self) -> None:
        self._under_way, self._next, self._manner = False, None, None

    def _received(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, Position):
                self._arrived()
            elif isinstance(message, Playback):
                self._manner = None
                self.changed.emit()

    def _refused(self, error: Error) -> None:
        self._manner = None
        self._arrived()

    def _arrived(self) -> None:
        self._under_way = False
        following, self._next = self._next, None
        if following is not None:
            self.seek(following)


@dataclass(frozen=True, slots=True)
class _Reached:
    """An event that was looked for in the thread: that of a million tiles takes longer than a picture may.

    Attributes:
        playback: No other code uses it meanwhile.
        target: Number of the event.
        place: Where it got, or why not.
    """

    playback: LocalPlayback
    target: int
    place: Cursor | RecordingError


def _reach(playback: LocalPlayback, target: int) -> _Reached:
    try:
        return _Reached(playback, target, playback.reach(target))
    except RecordingError as error:
        return _Reached(playback, target, error)


class ShiftPlayback(PlaybackController):
    """A playback of what was kept of a live session.

    The next event is shown at once, as it costs only its changes; a thread fetches any other one,
    one at a time, while the window continues.

    Signals:
        moved: Another event is displayed; the changes since the previous one, or None if the whole state may differ.

    Args:
        session: The displayed and the live state.
        recording: Opens the stored events.
    """

    moved = Signal(object)
    _back = Signal()

    def __init__(
        self,
        session: ClientSession,
        recording: Callable[[], Recording],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._open = recording
        self._playback: LocalPlayback | None = None
        self._manner = SetPlayback()
        self._next: Seek | None = None
        self._worker: LatestWorker[_Reached] | None = None  # of the playback; closes its recording
        self._reaching = False
        self._resumes = False  # when it is reached
        self._seeking = self._timer(self._seek_now)
        self._due = self._timer(self._advance)
        self._back.connect(self._arrived, Qt.ConnectionType.QueuedConnection)

    def _timer(self, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(slot)
        return timer

    @property
    def running(self) -> bool:
        """Whether the playback runs; while the session is live there is none."""
        return self._resumes or (self._playback is not None and self._playback.running)

    @property
    def manner(self) -> SetPlayback:
        """How it is played."""
        return self._manner

    @property
    def seeking(self) -> bool:
        """Whether an event is on its way."""
        return self._reaching or self._seeking.isActive()

    def set_manner(self, manner: SetPlayback) -> None:
        """Play in another manner, now or the next time."""
        self._manner = manner
        if self._playback is not None and not self._reaching:
            self._playback.set_manner(manner)
            self._schedule()
        self.changed.emit()

    def seek(self, place: Seek) -> None:
        """Show an event as soon as the previous one is ready; leaves live."""
        if place.steps is not None and self._next is not None and self._next.steps is not None:
            place = Seek(steps=self._next.steps + place.steps)
        self._next = place
        if not self._reaching and not self._seeking.isActive():
            self._seeking.start(0)

    def resume(self) -> None:
        """Continue from the displayed event; leaves live."""
        playback = self._look_back()
        if playback is None:
            return
        if self.seeking:
            self._resumes = True
        else:
            self._refresh(playback)
            self._show(playback.resume(time.monotonic_ns()))
            self._schedule()
        self.changed.emit()

    def pause(self) -> None:
        """Stand still; leaves live."""
        self._resumes = False
        playback = self._look_back()
        if playback is not None:
            playback.pause(time.monotonic_ns())
            self._schedule()
            self.changed.emit()

    def go_live(self) -> None:
        """Show what came last, and what comes."""
        self.leave()
        self._session.go_live()
        self.moved.emit(None)
        self.changed.emit()

    def leave(self, *, wait: bool = False) -> None:
        """Drop the playback; it no longer determines the displayed event.

        Args:
            wait: Whether to wait for the running seek, since the window is being closed.
        """
        self._next = None
        self._resumes = False
        self._seeking.stop()
        self._due.stop()
        self._playback = None
        worker, self._worker = self._worker, None
        self._reaching = False
        self._manner = replace(self._manner, direction=Direction.FORWARDS, loop=None)
        if worker is not None:
            worker.stop()
            if wait:
                worker.join()

    def came(self) -> None:
        """A live event came: a playback that had shown everything has something more."""
        playback = self._playback
        if playback is None or self._reaching or not playback.running:
            return
        if playback.due_nanos is None and self._refresh(playback):
            self._schedule()

    # ------------------------------------------------------------------------ moving

    def _look_back(self) -> LocalPlayback | None:
        """The playback; made, and on its way to the newest event, when the session is live."""
        playback = self._playback if self._playback is not None else self._begin()
        if playback is not None and not playback.number and not self.seeking:
            self.seek(Seek(number=max(1, self._session.number)))
        return playback

    def _begin(self) -> LocalPlayback | None:
        try:
            playback = LocalPlayback(self._open(), manner=self._manner, running=False, growing=True)
        except RecordingError as error:
            self.refused.emit(str(error))
            return None
        self._playback = playback
        self._worker = LatestWorker(
            "gcspy playback", self._back.emit, at_end=playback.recording.close
        )
        return playback

    def _seek_now(self) -> None:
        playback = self._playback if self._playback is not None else self._begin()
        place, self._next = self._next, None
        if place is None or playback is None:
            return
        self._due.stop()
        self._refresh(playback)
        if not playback.number and place.number is None and place.time_nanos is None:
            self._next = place  # steps and names are counted from what is live: first go there
            place = Seek(number=max(1, self._session.number))
        try:
            target = playback.target(place)
        except RecordingError as error:
            self._stay(error)
            return
        if playback.number and target == playback.number + 1:
            try:
                self._show(playback.seek(Seek(number=target), time.monotonic_ns()))
            except RecordingError as error:
                self._stay(error)
            self._go_on()
        else:
            self._reach(playback, target)

    def _reach(self, playback: LocalPlayback, target: int) -> None:
        assert self._worker is not None
        self._reaching = True
        self._worker.submit(partial(_reach, playback, target))

    def _arrived(self) -> None:
        outcome = None if self._worker is None else self._worker.take()
        if outcome is None:  # the live session was left meanwhile
            return
        reached = outcome.result()
        self._reaching = False
        reached.playback.set_manner(self._manner)
        try:
            self._show(reached.playback.arrive(reached.target, reached.place, time.monotonic_ns()))
        except RecordingError as error:
            self._stay(error)
        self._go_on()

    def _stay(self, error: RecordingError) -> None:
        """There is no such event: stay where one is."""
        self.refused.emit(str(error))
        if self._playback is not None and not self._playback.number:
            self.go_live()

    def _go_on(self) -> None:
        """Continue with the latest request made in the meantime."""
        if self._next is not None:
            self._seeking.start(0)
        elif self._resumes:
            self._resumes = False
            self.resume()
        else:
            self._schedule()
        self.changed.emit()

    def _refresh(self, playback: LocalPlayback) -> bool:
        try:
            return playback.refresh()
        except RecordingError as error:
            self.refused.emit(str(error))
            return False

    def _schedule(self) -> None:
        """Wait for the event that is due next."""
        playback = self._playback
        due = None if playback is None or not playback.running else playback.due_nanos
        if due is None or self._reaching:
            self._due.stop()
        else:
            self._due.start(max(0, -(-(due - time.monotonic_ns()) // 1_000_000)))

    def _advance(self) -> None:
        """Show what is due; not all of it at once, so that the window is painted in between."""
        playback = self._playback
        if playback is None or self._reaching:
            return
        begun = time.monotonic_ns()
        while True:
            now = time.monotonic_ns()
            due = playback.due_nanos
            if due is None and playback.running:
                self._refresh(playback)
                due = playback.due_nanos
            if due is None or due > now or now - begun > _BATCH_NANOS or not playback.running:
                break
            following = playback.following
            if following is not None and following != playback.number + 1:
                self._reach(playback, following)
                return
            self._show(playback.advance(now))
        self._schedule()
        self.changed.emit()

    def _show(self, move: Move | None) -> None:
        if move is None:
            return
        same = self._session.interpreter is move.session
        self._session.show(move.session, move.number)
        if not same:
            self.moved.emit(None)
        else:
            self.moved.emit(move.steps[0].change if move.direct else _anything(move.session))


def _anything(session: ClientInterpreter) -> EventChange | None:
    """A change of everything: more than one event was passed."""
    event = session.last_event
    if event is None:
        return None
    changed = {
        (space_id, stream_id): None
        for space_id, space in session.spaces.items()
        for stream_id in space.streams
    }
    return EventChange(event, dict(changed))
