"""Time shift: stores the messages of a live session, so that the user can look back and save it.

A thread of its own writes, because a keyframe of a million tiles takes longer than a screen frame.
It has its own client interpreter, which applies the messages that the link has decoded already, and
it stores the server's own bytes. The queue between link and thread has a limited size. When the
thread falls behind, the link stops reading its socket until there is room: then the server leaves
events out and reports how many, and nothing that was received is lost.

Knows the link's bytes and messages, the store and the writer; does not know Qt, sockets, or the
display. An error here ends the storing, is reported, and does not affect the live view.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path

from gcspy_protocol.codec import encode
from gcspy_protocol.errors import GCspyError, RecordingError
from gcspy_protocol.frames.frame import HEADER
from gcspy_protocol.interpreter import ClientInterpreter, EventChange
from gcspy_protocol.messages import Event, Message, Missed, StreamDelta, StreamKey, Tiles, Welcome
from gcspy_protocol.model import Mode
from gcspy_replay.file import (
    WIRE_VERSION,
    ChunkRule,
    Cursor,
    PartFacts,
    Recording,
    RecordingWriter,
    ShiftStore,
    WireTap,
)

from gcspy_client.model.playback.excerpt import save_events
from gcspy_client.model.playback.timeline import EventTimeline

__all__ = ["StorageState", "ShiftStatus", "TimeShift"]

_MEMORY_BYTES = 256 << 20
_DISK_BYTES = 4 << 30
_MOST_EVENTS = 1_000_000
"""Small events fit by the million into the budget of the disk, and each takes some 70 bytes of the timeline."""

_QUEUE_BYTES = 32 << 20
"""Maximum of the queue: some keyframes of a million tiles, and a second or two of events."""

_RULE = ChunkRule(weight=1.0, most_events=256)
"""Longer chunks than in a file: a keyframe of a million tiles costs 40 times as much as an event,
in a process that has frames to paint. Looking back at such a heap costs some 25 ms for it instead
of 20."""

_GATHER_SECS = 0.04
"""The worker handles all data of this span together."""

_PATIENCE_SECS = 0.25
"""Longest wait for an event that was received a moment ago and is still in the queue."""

_END_SECS = 5.0
_TRIES = 5


class StorageState(Enum):
    """Whether received events are stored."""

    WAITING = "no event received yet"
    ON = "received events are stored"
    OFF = "this session is already a recording"
    ENDED = "storing has ended"


@dataclass(frozen=True, kw_only=True, slots=True)
class ShiftStatus:
    """State of a time shift.

    Attributes:
        keeping: Whether received events are stored.
        reason: Why not, in words; empty while it is.
        first: Number of the oldest event that is kept; 0: none. Those before it were given up.
        last: Number of the latest event that can be gone to.
        memory_bytes: Stored in memory.
        most_memory_bytes: Maximum ever stored in memory.
        disk_bytes: Stored in temporary files.
        waiting_bytes: Received and not stored yet.
    """

    keeping: StorageState
    reason: str
    first: int
    last: int
    memory_bytes: int
    most_memory_bytes: int
    disk_bytes: int
    waiting_bytes: int


def temporary_folder() -> str | None:
    """Folder for large temporary files; None: the system's default.

    On many systems /tmp is in memory, which the files are meant to save.
    """
    told = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    large = "/var/tmp"
    return None if told or not os.access(large, os.W_OK) else large


def _memory_of(messages: Sequence[Message]) -> int:
    """Bytes of the arrays that waiting messages hold."""
    held = 0
    for message in messages:
        if isinstance(message, StreamKey):
            held += message.values.nbytes + (0 if message.known is None else message.known.nbytes)
        elif isinstance(message, StreamDelta):
            held += message.values.nbytes + message.indices.nbytes
            held += 0 if message.known is None else message.known.nbytes
        elif isinstance(message, Tiles) and message.bases is not None:
            held += 2 * message.bases.nbytes
    return held


class _Keeper:
    """The storage of one session. The worker changes it; other threads may read its attributes.

    Attributes:
        store: The destination.
        recording: The id of the recording.
        last: Number of the latest event that was written.
        failure: The error that ended the storing.
        parts: Number of the first event of each part that was begun.
    """

    def __init__(self, store: ShiftStore, rule: ChunkRule, most_events: int) -> None:
        self.store = store
        self._most_events = most_events
        self.recording = secrets.token_bytes(16)
        self.last = 0
        self.failure = ""
        self.parts: dict[int, int] = {}
        self._rule = rule
        self._interpreter = ClientInterpreter()
        self._tap = WireTap()
        self._writer: RecordingWriter | None = None
        self._starts = True  # the next event begins a chunk that needs nothing before it
        self._missed_before = 0  # in all, up to the latest event
        self._missed_more = 0  # to be added to the count of this connection's server
        self._sequence = 0

    # A store, to see where parts begin.

    def begin(self, part: int) -> None:
        number = 1 if self._writer is None else self._writer.number + 1
        oldest = self.store.oldest_part
        kept = {
            one: first for one, first in self.parts.items() if oldest is not None and one >= oldest
        }
        for following in [first for _, first in sorted(kept.items())][1:]:
            if number - following >= self._most_events:
                self.store.give_up_oldest()
        self.parts = {**kept, part: number}  # replaced, as others read it meanwhile
        self.store.begin(part)

    def append(self, data: bytes, *, time_nanos: int) -> None:
        self.store.append(data, time_nanos=time_nanos)

    def is_full(self, *, part_bytes: int) -> bool:
        return self.store.is_full(part_bytes=part_bytes)

    def end(self) -> None:
        self.store.end()

    def close(self) -> None:
        self.store.close()

    @property
    def first(self) -> int:
        oldest = self.store.oldest_part
        return 0 if oldest is None or not self.last else self.parts.get(oldest, 0)

    def connect(self) -> None:
        """Follow a new connection to the session."""
        self._interpreter = ClientInterpreter()
        self._tap = WireTap()
        self._starts = True

    def take(self, data: bytes, messages: Sequence[Message]) -> None:
        """Keep bytes, and the messages that they completed.

        Raises:
            GCspyError: They cannot be kept, or make no sense.
        """
        self._tap.receive_data(data)
        for message in messages:
            if self._starts:
                self._interpreter.apply(message)
                self._tap.take(message)
                if isinstance(message, Event):
                    self._start(message)
            elif isinstance(message, Missed) and self._missed_more:
                self._keep_missed(message)
            else:
                assert self._writer is not None
                self._interpreter.apply(message)
                self._writer.add(message)
            if isinstance(message, Event):
                assert self._writer is not None
                self._sequence, self._missed_before = (
                    message.sequence,
                    self._interpreter.missed_total,
                )
                self.last = self._writer.number

    def flush(self) -> None:
        """Store the notices since the latest event: a paused session has no next event to carry them."""
        if self._writer is not None:
            self._writer.flush()

    def _start(self, event: Event) -> None:
        """Begin with the interpreter's state: at first, and with each connection."""
        if self._writer is None:
            facts = PartFacts(recording=self.recording, created=time.time_ns())
            self._writer = RecordingWriter(
                self,
                self._interpreter,
                rule=self._rule,
                facts=facts,
                tap=self._tap,
                version=WIRE_VERSION,  # in a process that has frames to paint, kept as they came
            )
        else:
            # The sequence shows what the server sent in between; a new connection counts from 0.
            between = max(0, event.sequence - self._sequence - 1 - self._interpreter.missed_total)
            self._missed_more = self._missed_before + between
            self._interpreter.missed_total += self._missed_more
            self._writer.follow(self._interpreter, tap=self._tap)
        self._writer.start()
        self._starts = False

    def _keep_missed(self, message: Missed) -> None:
        """Keep a count of missed events with those of the connections before."""
        assert self._writer is not None
        notices, _ = self._tap.take(message)
        message = replace(message, total=message.total + self._missed_more)
        self._interpreter.apply(message)
        at = 0  # of the last frame in the notices: MISSED as sent by the server
        while (after := at + HEADER.size + int.from_bytes(notices[at : at + 4], "little")) < len(
            notices
        ):
            at = after
        self._writer.add_notices(notices[:at] + encode(message).data)


class TimeShift:
    """Stores the data of a link, and reads it back.

    Everything but `save`, `recording` and methods documented otherwise belongs to the thread of the
    link. Pass it to the link as its tap; `close` it at the end.

    Args:
        memory_bytes: Most bytes of recording kept in memory.
        disk_bytes: Most bytes in temporary files; 0: none.
        folder: Folder for the temporary files; by default one that probably has room for them.
        most_events: Approximate maximum of events, however small they are.
        queue_bytes: Maximum bytes that wait for the worker, except those of one read of the socket.
        rule: When chunks end.
        on_room: Called, from the worker's thread, when there is room again after `received` has
            reported that there is none.

    Attributes:
        timeline: The stored events, and those that will be stored in a moment.
    """

    def __init__(
        self,
        *,
        memory_bytes: int = _MEMORY_BYTES,
        disk_bytes: int = _DISK_BYTES,
        folder: str | None = None,
        most_events: int = _MOST_EVENTS,
        queue_bytes: int = _QUEUE_BYTES,
        rule: ChunkRule | None = None,
        on_room: Callable[[], None] | None = None,
    ) -> None:
        self.timeline = EventTimeline()
        self.on_room = on_room
        self._budgets = memory_bytes, disk_bytes
        self._most_events = most_events
        self._folder = folder if folder is not None else temporary_folder()
        self._rule = rule or _RULE
        self._most_queued = queue_bytes
        self._condition = threading.Condition()
        self._queue: deque[tuple[int, _Keeper, Callable[[], None]]] = deque()
        self._queued = 0  # bytes
        self._pending = 0  # batches, including the worker's current one
        self._awaited = 0  # threads that wait for the worker
        self._wanted = False  # a thread waits for room
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._keeper: _Keeper | None = None
        self._identity = ""  # of the stored session
        self._off = False  # the data is a playback
        self._welcomed = False
        self._early: list[tuple[bytes, list[Message]]] = []  # came before the welcome
        self._joined = False  # an event of this connection has come
        self._number = self._sequence = 0
        self._missed = self._missed_before = 0
        self._recording: Recording | None = None
        self._cursor: Cursor | None = None
        self._changes: EventChange | None = None

    def set_budgets(self, *, memory_bytes: int, disk_bytes: int) -> None:
        """Change the limits; excess data is dropped at the next event."""
        self._budgets = memory_bytes, disk_bytes
        if self._keeper is not None:
            self._keeper.store.set_budgets(memory_bytes=memory_bytes, disk_bytes=disk_bytes)

    # ------------------------------------------------------------------- from the link

    def connected(self) -> None:
        """Begin a connection: later data belongs to it."""
        self._early = []
        self._welcomed = False
        self._joined = False
        self._missed = self._missed_before = 0

    def received(self, data: bytes, messages: list[Message]) -> bool:
        """Store the data that the link has read.

        Args:
            data: The bytes, all of them in order from the first of the connection on.
            messages: All messages that were completed by them.

        Returns:
            Whether there is room for more; if not, `on_room` will be called.
        """
        if not self._welcomed:
            self._early.append((data, messages))
            welcome = next((message for message in messages if isinstance(message, Welcome)), None)
            if welcome is None:
                return True
            self._welcomed = True
            self._begin(welcome)
            room = True
            for early_data, early in self._early:
                room = self._keep(early_data, early)
            self._early = []
            return room
        return self._keep(data, messages)

    def _begin(self, welcome: Welcome) -> None:
        """Continue the stored session, or begin another."""
        self._off = welcome.mode is Mode.PLAYBACK
        if self._off or welcome.session != self._identity or self._keeper is None:
            self._leave()
        if self._off:
            return
        self._identity = welcome.session
        if self._keeper is None:
            store = ShiftStore(
                memory_bytes=self._budgets[0], disk_bytes=self._budgets[1], folder=self._folder
            )
            self._keeper = _Keeper(store, self._rule, self._most_events)
        self._put(0, self._keeper, self._keeper.connect)

    def _leave(self) -> None:
        """Drop the stored data."""
        keeper, self._keeper = self._keeper, None
        self._identity = ""
        self._recording = self._cursor = self._changes = None
        self.timeline.clear()
        self._number = self._sequence = 0
        if keeper is not None:
            self._put(0, keeper, keeper.store.discard)

    def _keep(self, data: bytes, messages: list[Message]) -> bool:
        keeper = self._keeper
        if keeper is None or keeper.failure:
            return True
        for message in messages:
            if isinstance(message, Missed):
                self._missed = message.total
            elif isinstance(message, Event):
                self._add(message)
        self._trim()
        return self._put(
            len(data) + _memory_of(messages), keeper, partial(keeper.take, data, messages)
        )

    def _add(self, event: Event) -> None:
        """Add an event to the timeline, under the number that the writer will give it."""
        self._number += 1
        missed = max(0, self._missed - self._missed_before)
        if not self._joined:
            self._joined = True
            # Counts like the worker, see `_Keeper`.
            missed = max(missed, event.sequence - self._sequence - 1) if self._number > 1 else 0
        self._sequence, self._missed_before = event.sequence, self._missed
        self.timeline.add(self._number, event, missed=missed)

    def _trim(self) -> None:
        """Take from the timeline what cannot be gone to."""
        keeper = self._keeper
        if keeper is not None:
            if keeper.first > self.timeline.first:
                self.timeline.forget_before(keeper.first)
            if keeper.failure:
                self.timeline.forget_after(keeper.last)

    # --------------------------------------------------------------------- the worker

    def _put(self, weight: int, keeper: _Keeper, work: Callable[[], None]) -> bool:
        """Let the worker do something; whether there is room for more."""
        with self._condition:
            if self._thread is None:
                # A daemon: a disk that never answers does not keep the process from ending.
                self._thread = threading.Thread(
                    target=self._run, name="gcspy time shift", daemon=True
                )
                self._thread.start()
            self._queue.append((weight, keeper, work))
            self._queued += weight
            self._pending += 1
            self._wanted = self._queued >= self._most_queued
            # Not for each event: waking a thread 60 times a second cost the thread of the link more
            # than the data itself.
            if len(self._queue) == 1 or self._queued >= self._most_queued // 4:
                self._condition.notify_all()
            return not self._wanted

    def _hurries(self) -> bool:
        return self._awaited > 0 or self._stopping or self._queued >= self._most_queued // 4

    def _run(self) -> None:
        while True:
            with self._condition:
                if not self._queue and not self._stopping:
                    self._condition.wait_for(lambda: bool(self._queue) or self._stopping)
                    # Data that arrives in this moment is handled with it.
                    self._condition.wait_for(self._hurries, _GATHER_SECS)
                if self._stopping:
                    return
                weight, keeper, work = self._queue.popleft()
            self._do(keeper, work)
            work = keeper.connect  # holds no messages while it waits
            with self._condition:
                self._queued -= weight
                self._pending -= 1
                self._condition.notify_all()
                room = self._wanted and self._queued <= self._most_queued // 2
                self._wanted = self._wanted and not room
            if room and self.on_room is not None:
                self.on_room()

    @staticmethod
    def _do(keeper: _Keeper, work: Callable[[], None]) -> None:
        """Do it, unless the storing has ended before."""
        if keeper.failure and work != keeper.store.discard:
            return
        try:
            work()
        except RecordingError as error:
            keeper.failure = str(error)
        except GCspyError as error:
            keeper.failure = f"the server's messages cannot be stored: {error}"
        except MemoryError:
            keeper.failure = "out of memory"
        except Exception as error:  # noqa: BLE001  # whatever it is, the live view goes on, and the window says it
            keeper.failure = f"an internal error of GCspy: {type(error).__name__}: {error}"

    def close(self) -> None:
        """End the worker and release the stored data."""
        with self._condition:
            self._stopping = True
            self.on_room = None
            self._queue.clear()
            self._condition.notify_all()
        thread, keeper = self._thread, self._keeper
        self._recording = self._cursor = None
        if thread is not None:
            thread.join(_END_SECS)
            if thread.is_alive():
                return  # a disk that does not answer: the system takes the files when the process ends
        if keeper is not None:
            keeper.store.discard()

    def settle(self, timeout_secs: float) -> bool:
        """Wait until all received data is stored; from any thread.

        Returns:
            Whether it is.
        """
        return self._wait_for(lambda: not self._pending, timeout_secs)

    def _wait_for(self, condition: Callable[[], bool], timeout_secs: float) -> bool:
        """Have the worker hurry until something is so; whether it came about."""
        with self._condition:
            self._awaited += 1
            self._condition.notify_all()
            came = self._condition.wait_for(condition, timeout_secs)
            self._awaited -= 1
            return came

    # ------------------------------------------------------------------- state

    @property
    def status(self) -> ShiftStatus:
        """The current state."""
        self._trim()
        keeper = self._keeper
        kept = keeper is not None and keeper.last > 0
        if keeper is not None and keeper.failure:
            keeping = StorageState.ENDED
        elif self._off:
            keeping = StorageState.OFF
        else:
            keeping = StorageState.ON if kept else StorageState.WAITING
        return ShiftStatus(
            keeping=keeping,
            reason=keeper.failure if keeper is not None else keeping.value if self._off else "",
            first=self.first,
            last=self.last,
            memory_bytes=keeper.store.memory_bytes if keeper is not None else 0,
            most_memory_bytes=keeper.store.peak_memory_bytes if keeper is not None else 0,
            disk_bytes=keeper.store.disk_bytes if keeper is not None else 0,
            waiting_bytes=self._queued,
        )

    @property
    def first(self) -> int:
        """Number of the oldest event that is kept; 0: none. Those before it were given up."""
        return 0 if self._keeper is None else self._keeper.first

    @property
    def last(self) -> int:
        """Number of the latest event that can be displayed; 0: none. Later ones are being stored now."""
        return 0 if self._keeper is None else self._keeper.last

    @property
    def recording_id(self) -> bytes:
        """The id that a file saved from it has; empty while nothing is kept."""
        return b"" if self._keeper is None else self._keeper.recording

    # -------------------------------------------------------------------- looking back

    @property
    def changes(self) -> EventChange | None:
        """The change of the latest `at` in its interpreter, if it advanced by one event; None: anything may differ."""
        return self._changes

    def at(self, number: int) -> ClientInterpreter:
        """The state right after an event.

        The next event costs as much as it changed; any other a keyframe, and the events after it.

        Returns:
            The same interpreter again, changed, where that is cheaper. It is not another's to change.

        Raises:
            RecordingError: The event is not kept, or not any more.
        """
        self._changes = None
        keeper = self._kept()
        if number > keeper.last:
            self._wait_for(lambda: number <= keeper.last or bool(keeper.failure), _PATIENCE_SECS)
        if not keeper.first <= number <= keeper.last:
            raise RecordingError(
                f"event {number} is not stored: stored are events {keeper.first} to {keeper.last}"
            )
        try:
            return self._go(self._reader(keeper, number), number)
        except RecordingError:
            self._cursor = None
            raise

    def _go(self, cursor: Cursor, number: int) -> ClientInterpreter:
        before = cursor.session
        if cursor.number and cursor.number + 1 == number:
            step = cursor.step()
            if step is not None and step.number == number:
                self._changes = step.change if cursor.session is before else None
                return cursor.session
        return cursor.seek(number)

    def _reader(self, keeper: _Keeper, number: int) -> Cursor:
        """The cursor, including new data."""
        if self._recording is None:
            self._recording = keeper.store.recording()
        elif number > self._recording.last:
            self._recording.refresh()
        if self._cursor is None:
            self._cursor = self._recording.cursor()
        return self._cursor

    def _kept(self) -> _Keeper:
        keeper = self._keeper
        if keeper is not None and not keeper.last:
            self.settle(_PATIENCE_SECS)  # the first event may wait in the queue
        if keeper is None or not keeper.last:
            raise RecordingError(
                "this session is not stored"
                if self._off
                else "nothing is kept yet: no event has arrived"
            )
        return keeper

    def recording(self) -> Recording:
        """The stored data, as a growing recording of the caller's own, for a playback. From any thread.

        Raises:
            RecordingError: Nothing is kept.
        """
        return self._kept().store.recording()

    def save(
        self,
        path: Path,
        first: int | None = None,
        last: int | None = None,
        *,
        replace: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Save events as a recording, completely or not at all; they keep their numbers. From any thread.

        Args:
            path: Of the file.
            first: Number of the first event; by default the oldest stored one.
            last: Number of the last; by default the latest.
            replace: Whether a file that is there may be replaced.
            progress: Called with the number of events done, and the total; an exception ends the
                saving.

        Returns:
            How many events were written.

        Raises:
            RecordingError: They are not kept, or the file cannot be written, or is there already.
        """
        keeper = self._keeper
        if keeper is not None and not self._stopping:
            self._put(0, keeper, keeper.flush)
        self.settle(_END_SECS)
        keeper = self._kept()  # asked after that: the first event may have waited
        note = "a session saved while it was monitored"
        for _ in range(_TRIES):
            with keeper.store.recording() as recording:
                facts = PartFacts(recording=keeper.recording, created=time.time_ns(), note=note)
                begin = recording.first if first is None else first
                try:
                    return save_events(
                        recording,
                        path,
                        begin,
                        last,
                        facts=facts,
                        replace=replace,
                        progress=progress,
                    )
                except RecordingError:
                    if first is not None or keeper.first <= begin:
                        raise
                    # The oldest were given up in the meantime.
        raise RecordingError(
            "the oldest events are discarded before they can be read: save a range of later events"
        )
