"""Statistics of a connection: bytes, events, cost of gatherings, round-trip time.

Everything is counted as it arrives; rates are of the last few seconds, and absent if they were not
read.

Knows messages and times; does not know sockets, clocks or widgets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from gcspy_protocol.messages import Event, Message, Missed, StreamDelta, StreamKey

__all__ = ["GatheringCost", "LinkMeter", "Rates"]

_WINDOW_SECS = 4.0


@dataclass(slots=True)
class GatheringCost:
    """The cost of gatherings of one kind of event.

    Attributes:
        events: How many of the kind came.
        nanos: In all.
        last_nanos: For the latest.
        most_nanos: Maximum.
    """

    events: int = 0
    nanos: int = 0
    last_nanos: int = 0
    most_nanos: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second, over the last few seconds; None if there is no such interval yet.

    Attributes:
        events: Events that came.
        wire_bytes: Bytes that came.
    """

    events: float | None
    wire_bytes: float | None


@dataclass(slots=True)
class LinkMeter:
    """Counts since the connection was made.

    Attributes:
        wire_bytes: Bytes that came.
        plain_bytes: Size of the received streams as plain values of all their tiles.
        events: Events that came.
        missed: Events that this connection missed, as the server counts them.
        waited_nanos: Time that lossless clients were waited for, in all, since the server began.
        gathered: By kind of event.
        round_trip_nanos: From the latest ping to its answer; None before the first.
    """

    wire_bytes: int = 0
    plain_bytes: int = 0
    events: int = 0
    missed: int = 0
    waited_nanos: int = 0
    gathered: dict[int, GatheringCost] = field(default_factory=dict)
    round_trip_nanos: int | None = None
    _pings: dict[int, int] = field(default_factory=dict)
    _samples: deque[tuple[float, int, int]] = field(default_factory=deque)

    def take(self, wire_bytes: int, messages: Sequence[Message]) -> None:
        """Count bytes, and the messages that they completed."""
        self.wire_bytes += wire_bytes
        for message in messages:
            if isinstance(message, StreamKey):
                self.plain_bytes += message.values.nbytes
            elif isinstance(message, StreamDelta):
                self.plain_bytes += message.count * message.values.dtype.itemsize
            elif isinstance(message, Event):
                self._count(message)
            elif isinstance(message, Missed):
                self.missed = message.total

    def _count(self, event: Event) -> None:
        self.events += 1
        self.waited_nanos = max(self.waited_nanos, event.waited_nanos)
        if event.cached:
            return  # it is sent again: nothing was gathered
        gathered = self.gathered.setdefault(event.event, GatheringCost())
        gathered.events += 1
        gathered.nanos += event.gather_nanos
        gathered.last_nanos = event.gather_nanos
        gathered.most_nanos = max(gathered.most_nanos, event.gather_nanos)

    def pinged(self, number: int, now_nanos: int) -> None:
        """Note that a ping was sent."""
        self._pings = {number: now_nanos}  # answers to older ones are ignored

    def ponged(self, number: int, now_nanos: int) -> None:
        """Note that a ping was answered, and measure the round trip."""
        sent = self._pings.pop(number, None)
        if sent is not None:
            self.round_trip_nanos = now_nanos - sent

    @property
    def ratio(self) -> float | None:
        """Plain bytes a byte on the wire; None before anything came."""
        return self.plain_bytes / self.wire_bytes if self.wire_bytes and self.plain_bytes else None

    def rates(self, now_secs: float) -> Rates:
        """The current rates; call it periodically, since it also stores the base of the next ones."""
        self._samples.append((now_secs, self.events, self.wire_bytes))
        while len(self._samples) > 2 and self._samples[1][0] <= now_secs - _WINDOW_SECS:
            self._samples.popleft()
        then, events, wire_bytes = self._samples[0]
        span = now_secs - then
        if not 0 < span <= 3 * _WINDOW_SECS:  # the last samples are too old for a present rate
            self._samples = deque([self._samples[-1]])
            return Rates(None, None)
        return Rates((self.events - events) / span, (self.wire_bytes - wire_bytes) / span)
