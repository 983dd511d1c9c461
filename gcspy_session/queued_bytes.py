"""The data queued for all clients of a session together: counted once however many share it, and limited.

Each client's queue has a limit of its own; many clients that read nothing, each with other events,
would take a multiple of it. Beyond the common limit the largest queues lose their events, and their
clients are informed. If that is not enough the clients that have read nothing for the longest time
are disconnected.

Knows data by their identity, and their holders; does not know sockets or frames.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Holder", "QueuedBytes"]


class Holder(Protocol):
    """A client with a queue."""

    last_taken: float

    @property
    def waiting_bytes(self) -> int:
        """Bytes of its queued events."""

    @property
    def own_bytes(self) -> int:
        """Bytes that only it holds."""

    @property
    def holds_any(self) -> bool:
        """Whether anything is queued for it, or being sent to it."""

    def lose_events(self) -> None:
        """Drop its events that may be dropped."""

    def end_for_memory(self, waiting: int, most: int) -> None:
        """End it: too many bytes are queued for all clients together."""


class QueuedBytes:
    """The ledger of a session.

    Args:
        most: Maximum bytes queued for all clients together; None: no limit. A single client may
            hold more.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._holders: list[Holder] = []
        self._counts: dict[int, int] = {}
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes that are queued, or being sent."""
        return self._total

    def join(self, holder: Holder) -> None:
        """Add a client."""
        self._holders.append(holder)

    def leave(self, holder: Holder) -> None:
        """Remove a client; harmless for one that was not added."""
        if holder in self._holders:
            self._holders.remove(holder)

    def add(self, data: bytes | memoryview) -> None:
        """Note a holder of data."""
        whole = _whole(data)
        count = self._counts.get(id(whole), 0)
        self._counts[id(whole)] = count + 1
        if not count:
            self._total += len(whole)

    def remove(self, data: bytes | memoryview) -> None:
        """Note that a holder of data has released it."""
        whole = _whole(data)
        count = self._counts[id(whole)] - 1
        if count:
            self._counts[id(whole)] = count
        else:
            del self._counts[id(whole)]
            self._total -= len(whole)

    def only_once(self, data: bytes | memoryview) -> int:
        """Bytes that are freed when one holder releases the data: all, or none."""
        whole = _whole(data)
        return len(whole) if self._counts[id(whole)] == 1 else 0

    def relieve(self) -> None:
        """Enforce the limit: drop events of the largest queues, then end the slowest clients."""
        if not self._over():
            return
        for holder in sorted(self._holders, key=lambda one: one.waiting_bytes, reverse=True):
            holder.lose_events()
            if not self._over():
                return
        by_silence = sorted(self._holders, key=lambda one: one.last_taken)
        for useful in (True, False):
            for holder in by_silence:
                if not self._over() or sum(one.holds_any for one in self._holders) <= 1:
                    return
                if holder.holds_any and (not useful or holder.own_bytes):
                    holder.end_for_memory(self._total, self._most or 0)

    def _over(self) -> bool:
        return self._most is not None and self._total > self._most


def _whole(data: bytes | memoryview) -> bytes:
    """The object that is in memory as long as these data are."""
    if isinstance(data, memoryview):
        assert isinstance(data.obj, bytes)
        return data.obj
    return data
