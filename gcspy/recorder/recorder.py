"""The recorder: writes what one client receives to a file, until it is stopped.

However it ends, written data can be read: a stop closes the file with its index, so does the loss
of the server, and a full disk leaves every event that fitted.

Knows a link and a store; does not know where either comes from, nor how progress is shown.
"""

from __future__ import annotations

import secrets
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import FrameType

from gcspy_protocol.errors import (
    CommandError,
    DriverError,
    GCspyError,
    LinkError,
    RecordingError,
    Refused,
    RemoteProtocolError,
)
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Budget, Event, Fired, Message, Missed, State, Welcome
from gcspy_protocol.model import ControlState
from gcspy_protocol.triggers import TriggerAction
from gcspy_replay.file import Bookmark, PartFacts, RecordingWriter, Sidecar, Store, WireTap

from gcspy.connection.missed_total import MissedTotal
from gcspy.connection.reconnecting_link import ReconnectingLink
from gcspy.connection.stop_condition import Until
from gcspy.recorder.lossless import Cost, LosslessMode

__all__ = ["Progress", "Recorder", "RecordingReport", "StopFlag", "StopReason", "stop_signals"]

_POLL_SECS = 0.2
"""How soon a stop is noticed if no event comes."""

_NOTICE_SECS = 0.5
"""How long a notice waits for the next event, to be one write with it. With the poll it is in the
file within a second: a paused session has no next event."""


_MOST_BOOKMARKS = 5_000
"""Maximum bookmarks of triggers: one that fires at every other event would fill the sidecar file."""


class StopReason(Enum):
    """Why a recording ended."""

    EVENTS = "the requested number of events was recorded"
    CONDITION = "the condition holds"
    SECONDS = "the requested time is over"
    SIGNAL = "stopped by the user"
    TARGET = "the target ended"
    DRIVER = "the driver failed"
    SERVER = "the server ended the session"
    LOST = "the connection was lost"
    REFUSED = "the server refused it"
    UNWRITABLE = "writing failed"


class StopFlag:
    """Set by a signal, checked by the recorder between two messages.

    A plain attribute, where a `threading.Event` would do for threads: a signal may come while the handler of
    another holds the event's lock.

    Attributes:
        requested: Whether to stop.
    """

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def stop_signals() -> Iterator[StopFlag]:
    """Ctrl-C, SIGTERM and the end of the terminal set a flag during the body of the `with`, so that none interrupts a write."""
    flag = StopFlag()

    def request(_number: int, _frame: FrameType | None) -> None:
        flag.requested = True

    numbers = [signal.SIGINT, signal.SIGTERM]
    # SIGHUP exists on Unix only, and a user who started us with nohup wants it to be ignored.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, request) for number in numbers}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Progress of a recording.

    Attributes:
        events: Recorded.
        written_bytes: Written; a ring has deleted some of them.
        missed: Events that the server did not send us, since we were too slow or joined late.
        secs: Since the recorder began.
        cost: The cost of the lossless mode for the target; None: it was not requested.
        reconnected: How often the connection was lost, and restored or tried again.
        budget: The server's report on its cost budget; None: it has none.
        stopped_nanos: How long the program stood still while it was read for the recorded events, as far as the server knows.
    """

    events: int
    written_bytes: int
    missed: int
    secs: float
    cost: Cost | None = None
    reconnected: int = 0
    budget: Budget | None = None
    stopped_nanos: int = 0


@dataclass(frozen=True, slots=True)
class _Gap:
    """A gap between two connections of one session.

    Attributes:
        sequence: Sequence of the last event before it.
        missed: Events missed before it.
    """

    sequence: int
    missed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordingReport:
    """The result of a recording.

    Attributes:
        progress: The progress of the recording.
        stopped: Why it ended.
        reason: The server's reason, or the error.
        error: The error; None for a requested end, and for the target's end.
    """

    progress: Progress
    stopped: StopReason
    reason: str = ""
    error: GCspyError | None = None


class Recorder:
    """Records the messages of a link.

    Args:
        link: The connection, from which nothing was received yet. If it is restored and the session
            is the same, the recording continues after a gap.
        tap: what receives all bytes of the latest connection.
        open_store: Creates the destination, when there is data to write: a recorder that is killed
            before leaves no empty file.
        lossless: Requests that no event be dropped.
    """

    def __init__(
        self,
        link: ReconnectingLink,
        tap: Callable[[], WireTap],
        open_store: Callable[[], Store],
        *,
        lossless: LosslessMode | None = None,
    ) -> None:
        self._link, self._find_tap, self._open_store = link, tap, open_store
        self._tap = WireTap()
        self._lossless = lossless
        self._session = ClientInterpreter()
        self._writer: RecordingWriter | None = None
        self._began = time.monotonic()
        self._waits_since: float | None = None
        self._gap: _Gap | None = None
        self._missed = MissedTotal()
        self._recording = b""
        self._stopped_nanos = 0
        self._bookmarks: dict[int, Bookmark] = {}

    @property
    def added(self) -> Sidecar:
        """The data beside the recording: the bookmarks that triggers requested."""
        return Sidecar(recording=self._recording, bookmarks=tuple(self._bookmarks.values()))

    @property
    def progress(self) -> Progress:
        """The current progress."""
        return Progress(
            events=self._writer.events if self._writer else 0,
            written_bytes=self._writer.bytes_written if self._writer else 0,
            missed=self._missed.total,
            secs=time.monotonic() - self._began,
            cost=self._lossless.cost if self._lossless else None,
            reconnected=self._link.lost,
            budget=self._session.budget,
            stopped_nanos=self._stopped_nanos,
        )

    def run(
        self,
        *,
        stop: StopFlag,
        max_events: int | None = None,
        max_secs: float | None = None,
        until: Until | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> RecordingReport:
        """Record until it is stopped, and close the file.

        Args:
            stop: Stops it.
            max_events: End after this many.
            max_secs: End after this time.
            until: End after the first event at which it is true.
            on_progress: Called after each message, and periodically if none comes.

        Raises:
            CommandError: `until` is ambiguous.
        """
        error: GCspyError | None = None
        self._began = time.monotonic()
        try:
            try:
                stopped = self._follow(stop, max_events, max_secs, until, on_progress)
            except Refused as refused:
                stopped, error = StopReason.REFUSED, refused
            except (LinkError, RemoteProtocolError) as lost:
                stopped, error = StopReason.LOST, lost
            except CommandError:
                self._close(without_events=False)
                raise
            self._close(without_events=error is None)
            if stopped is StopReason.DRIVER:
                error = DriverError(self._session.state_reason or stopped.value)
        except RecordingError as unwritable:
            stopped, error = (
                StopReason.UNWRITABLE,
                unwritable,
            )  # the writer has closed the file
        reason = (
            str(error)
            if error
            else self._session.state_reason
            if stopped is StopReason.TARGET
            else ""
        )
        return RecordingReport(progress=self.progress, stopped=stopped, reason=reason, error=error)

    def _follow(
        self,
        stop: StopFlag,
        max_events: int | None,
        max_secs: float | None,
        until: Until | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> StopReason:
        first = deque(self._lossless.begin(self._link) if self._lossless else ())
        while True:
            if stop.requested:
                return StopReason.SIGNAL  # before anything is printed: the terminal may be gone
            progress = self.progress
            if on_progress is not None:
                on_progress(progress)
            if max_secs is not None and progress.secs >= max_secs:
                return StopReason.SECONDS
            wait = (
                _POLL_SECS
                if max_secs is None
                else max(0.0, min(_POLL_SECS, max_secs - progress.secs))
            )
            message = first.popleft() if first else self._link.receive(wait)
            self._flush_notices()
            if message is None:
                if self._link.closed:
                    return StopReason.SERVER
                continue
            if until is not None and isinstance(message, Event):
                until.follow(self._session)  # before a file is made
            self._add(message)
            if isinstance(message, State) and message.state is ControlState.ENDED:
                return StopReason.DRIVER if message.driver_failed else StopReason.TARGET
            if self._writer is not None and self._writer.events == max_events:
                return StopReason.EVENTS
            if until is not None and isinstance(message, Event) and until.holds(self._session):
                return StopReason.CONDITION

    def _add(self, message: Message) -> None:
        if isinstance(message, Welcome):
            self._begin(message)
        message = self._missed.follow(message)
        self._session.apply(message)
        if self._lossless is not None:
            self._lossless.follow(message)
        if self._gap is not None:
            self._bridge(message, self._gap)
            return
        if self._writer is None and isinstance(message, Event):
            self._writer = self._make_writer()
        if self._writer is not None:
            self._writer.add(message)
            if isinstance(message, Event):
                self._stopped_nanos += message.stopped_nanos
            if isinstance(message, Fired):
                self._bookmark(message, self._writer.number)

    def _bookmark(self, fired: Fired, number: int) -> None:
        """Store a bookmark that a trigger requested, for the event recorded last."""
        if (
            fired.trigger.action is TriggerAction.BOOKMARK
            and len(self._bookmarks) < _MOST_BOOKMARKS
        ):
            title = (fired.trigger.note or fired.trigger.expression)[:200]
            self._bookmarks.setdefault(number, Bookmark(number=number, title=title))

    def _begin(self, welcome: Welcome) -> None:
        """Begin a connection, the first or a restored one."""
        before = self._session
        if before.welcome is not None and welcome.session != before.welcome.session:
            raise LinkError(
                f"the session is over: another session now answers at {self._link.address}; it needs another recording"
            )
        self._session, self._tap = ClientInterpreter(), self._find_tap()
        if before.welcome is None:
            return
        if self._lossless is not None:
            self._lossless.ask(self._link)
        self._missed.connected()
        if self._gap is None and self._writer is not None and before.last_event is not None:
            self._gap = _Gap(before.last_event.sequence, before.missed_total)

    def _bridge(self, message: Message, gap: _Gap) -> None:
        """Apply a restored connection until it sends an event that is not recorded yet; then continue with that."""
        assert self._writer is not None
        if not isinstance(message, Event):
            return
        self._tap.take(message)  # including everything before it, which the keyframe repeats
        if message.cached and message.sequence == gap.sequence:
            return
        total = self._missed.total
        if total:
            self._session.apply(Missed(events=total - gap.missed, total=total))
        self._writer.follow(self._session, tap=self._tap)
        self._writer.start()
        self._gap = None

    def _flush_notices(self) -> None:
        """Write notices that have waited for an event for too long."""
        if self._writer is None or not self._writer.waiting:
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = time.monotonic()
        elif time.monotonic() - self._waits_since >= _NOTICE_SECS:
            self._writer.flush()
            self._waits_since = None

    def _make_writer(self) -> RecordingWriter:
        self._recording = secrets.token_bytes(16)
        facts = PartFacts(recording=self._recording, created=time.time_ns())
        return RecordingWriter(self._open_store(), self._session, facts=facts, tap=self._tap)

    def _close(self, *, without_events: bool) -> None:
        """Finish the file; `without_events`: also one without events, for its schema."""
        if self._writer is None and without_events and self._session.welcome is not None:
            self._writer = self._make_writer()
        if self._writer is not None:
            self._writer.close()
