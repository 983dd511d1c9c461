"""The ordered queue of one client: whole events may be dropped; everything else may not.

A client that does not keep up loses events, gets their number, and gets a keyframe of the latest
snapshot once it has read the rest. State, schema and errors keep their place; too many of those end
the client.

Knows bytes and places; does not know sockets, clocks or other clients.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from gcspy_session.queued_bytes import QueuedBytes

__all__ = ["ClientQueue", "QueueEntry", "EntryKind", "TooSlow"]


_MUST_FACTOR = 4
"""Events that must arrive may have a queue this many times longer than others: a client that keeps stepping must read, too."""


class EntryKind(Enum):
    """Kind of an entry."""

    MESSAGE = "message"
    EVENT = "event"
    KEYFRAME = "keyframe, which only a later one replaces"
    MUST = "event that may not be dropped"


class TooSlow(Exception):
    """More messages are queued than a client may leave unread."""


class QueueEntry:
    """One entry to send; `data` None: it is being made, and later entries wait for it."""

    __slots__ = ("data", "dropped", "kind", "sequence")

    def __init__(self, kind: EntryKind, data: bytes | memoryview | None, sequence: int = 0) -> None:
        self.kind = kind
        self.data = data
        self.sequence = sequence
        self.dropped = False


class ClientQueue:
    """The ordered queue of one client.

    Args:
        events: Maximum queued events.
        event_bytes: Maximum bytes of queued events; the first one is always allowed.
        messages: Maximum queued messages.
        memory: The data queued for all clients together; None: not counted.
    """

    def __init__(
        self, *, events: int, event_bytes: int, messages: int, memory: QueuedBytes | None = None
    ) -> None:
        self._limits = (events, event_bytes, messages)
        self._memory = QueuedBytes() if memory is None else memory
        self._sending: bytes | memoryview | None = None
        self._entries: deque[QueueEntry] = deque()
        self._events = 0
        self._event_bytes = 0
        self._messages = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def events(self) -> int:
        """Queued events."""
        return self._events

    @property
    def event_bytes(self) -> int:
        """Bytes of queued events."""
        return self._event_bytes

    @property
    def waiting(self) -> str:
        """The queued entries, for the log."""
        return f"{self._events} events of {self._event_bytes} bytes and {self._messages} messages unread"

    @property
    def crowded(self) -> bool:
        """Whether messages that will be superseded anyway should not be added."""
        return self._messages > self._limits[2] // 4

    def add_message(self, data: bytes) -> None:
        """Add an entry that may never be dropped.

        Raises:
            TooSlow: Too many are queued already.
        """
        if self._messages >= self._limits[2]:
            raise TooSlow(self.waiting)
        self._messages += 1
        self._keep(QueueEntry(EntryKind.MESSAGE, data))

    def room(self) -> tuple[int, int]:
        """Events and bytes of events that may be added for a lossless reader."""
        return max(0, self._limits[0] - self._events), max(0, self._limits[1] - self._event_bytes)

    def add_event(
        self, data: bytes, sequence: int, *, must: bool = False, keep: bool = False
    ) -> int:
        """Add an event, if there is room, or if it must be added.

        Args:
            data: Its bytes.
            sequence: Its number.
            must: It must be added.
            keep: The reader is lossless: queued events stay, and only bytes before this one count.

        Returns:
            0 if it was added, else how many events were dropped: this one and, unless `keep`, all
                queued ones.

        Raises:
            TooSlow: Too many are queued that must arrive.
        """
        events, event_bytes, _ = self._limits
        if must and self._events >= _MUST_FACTOR * events:
            raise TooSlow(self.waiting)
        if keep:
            full = 0 in self.room()
        else:
            full = self._events >= events or (
                self._events > 0 and self._event_bytes + len(data) > event_bytes
            )
        if full and not must:
            return 1 if keep else self.drop_events() + 1
        self._append(QueueEntry(EntryKind.MUST if must else EntryKind.EVENT, data, sequence))
        return 0

    def add_place(self, sequence: int, *, must: bool = False) -> QueueEntry:
        """Reserve a place for a keyframe that is still being made.

        It stays when later events are dropped; otherwise a client whose keyframes take long would
        never get one.
        """
        entry = QueueEntry(EntryKind.MUST if must else EntryKind.KEYFRAME, None, sequence)
        self._append(entry)
        return entry

    def add_rest(self, kind: EntryKind, data: memoryview, sequence: int) -> None:
        """Add the rest of data whose beginning the socket took already: it cannot be dropped any more."""
        entry = QueueEntry(
            EntryKind.MESSAGE if kind is EntryKind.MESSAGE else EntryKind.MUST, data, sequence
        )
        if entry.kind is EntryKind.MESSAGE:
            self._messages += 1
            self._keep(entry)
        else:
            self._append(entry)

    def fill(self, entry: QueueEntry, data: bytes) -> None:
        """Insert the event at its reserved place."""
        if not entry.dropped:
            entry.data = data
            self._memory.add(data)
            self._event_bytes += len(data)

    def drop_events(self, *, keyframes: bool = False) -> int:
        """Drop every queued event that may be dropped; return how many.

        Args:
            keyframes: Drop keyframes too, because a later one comes.
        """
        kept: deque[QueueEntry] = deque()
        dropped = 0
        for entry in self._entries:
            if entry.kind is EntryKind.EVENT or (keyframes and entry.kind is EntryKind.KEYFRAME):
                self._forget(entry)
                if entry.data is not None:
                    self._memory.remove(entry.data)
                entry.dropped = True
                dropped += 1
            else:
                kept.append(entry)
        self._entries = kept
        return dropped

    def pop(self) -> QueueEntry | None:
        """Take the first entry, after the previous one is sent; None if there is none, or it is still being made."""
        self._sent()
        if not self._entries or self._entries[0].data is None:
            return None
        entry = self._entries.popleft()
        self._sending = entry.data
        if entry.kind is EntryKind.MESSAGE:
            self._messages -= 1
        else:
            self._forget(entry)
        return entry

    def clear(self) -> None:
        """Drop everything, also what is being sent: the client is ended."""
        self._sent()
        for entry in self._entries:
            entry.dropped = True
            if entry.data is not None:
                self._memory.remove(entry.data)
        self._entries.clear()
        self._events = self._event_bytes = self._messages = 0

    @property
    def last_event(self) -> int:
        """Number of the latest queued event that may be dropped; 0: there is none."""
        return max(
            (one.sequence for one in self._entries if one.kind is EntryKind.EVENT), default=0
        )

    @property
    def holds_any(self) -> bool:
        """Whether anything is queued, or is being sent."""
        return bool(self._entries) or self._sending is not None

    @property
    def own_bytes(self) -> int:
        """Bytes that are queued, or being sent, for no other client."""
        here = [one.data for one in self._entries if one.data is not None]
        here += [] if self._sending is None else [self._sending]
        return sum(self._memory.only_once(data) for data in here)

    def _sent(self) -> None:
        if self._sending is not None:
            self._memory.remove(self._sending)
            self._sending = None

    def _keep(self, entry: QueueEntry) -> None:
        self._entries.append(entry)
        if entry.data is not None:
            self._memory.add(entry.data)

    def _append(self, entry: QueueEntry) -> None:
        self._events += 1
        self._event_bytes += 0 if entry.data is None else len(entry.data)
        self._keep(entry)

    def _forget(self, entry: QueueEntry) -> None:
        self._events -= 1
        self._event_bytes -= 0 if entry.data is None else len(entry.data)
