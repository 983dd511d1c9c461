"""The number of events missed in all, over the connections of one session.

A server counts from a client's connecting on. The events' sequence shows what happened between two
connections. Knows messages; does not know links or who needs the number.
"""

from __future__ import annotations

from dataclasses import replace

from gcspy_protocol.messages import Event, Message, Missed

__all__ = ["MissedTotal"]


class MissedTotal:
    """Counts missed events; pass it each message in order."""

    def __init__(self) -> None:
        self._before = 0  # without those that the server of this connection has counted
        self._counted = 0
        self._sequence = 0
        self._joined = (
            True  # an event of this connection arrived that is later than those of the previous one
        )

    @property
    def total(self) -> int:
        """The number missed, up to the latest message."""
        return self._before + self._counted

    def connected(self) -> None:
        """The messages that follow are of a new connection to the same session."""
        self._before, self._counted = self.total, 0
        self._joined = self._sequence == 0

    def follow(self, message: Message) -> Message:
        """Count a message; return it, with the total of all connections if it is about that."""
        if isinstance(message, Missed):
            self._counted = message.total
            return replace(message, total=self.total)
        if isinstance(message, Event):
            if not self._joined and not (message.cached and message.sequence == self._sequence):
                self._joined = True
                between = message.sequence - self._sequence - 1
                self._before += max(0, between - self._counted)
            self._sequence = message.sequence
        return message
