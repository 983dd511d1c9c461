"""What waits for all clients of a session together: counted once however many share it, and bounded.

Each client's queue has a bound of its own; many clients that read nothing, each with other events, would take as many times
as much. Beyond the bound the largest queues lose their events, whose clients are told what they missed; where that is not
enough the clients that have taken nothing for the longest time are let go.

Knows data by their identity, and who holds some; knows no sockets and no frames.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Holder", "QueuedBytes"]


class Holder(Protocol):
    """A client for which something waits."""

    last_taken: float

    @property
    def waiting_bytes(self) -> int:
        """Bytes of events that wait for it."""

    @property
    def own_bytes(self) -> int:
        """Bytes that only it holds."""

    @property
    def holds_any(self) -> bool:
        """Whether anything waits for it, or is being sent to it."""

    def lose_events(self) -> None:
        """Drop its events that may be dropped."""

    def end_for_memory(self, waiting: int, most: int) -> None:
        """End it: so many bytes wait for all clients together, of at most so many."""


class QueuedBytes:
    """The ledger of a session.

    Args:
        most: Bytes that may wait for all clients together; None: any number. What one client alone holds may be more.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._holders: list[Holder] = []
        self._counts: dict[int, int] = {}
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes that wait, or are being sent."""
        return self._total

    def join(self, holder: Holder) -> None:
        """A client has come."""
        self._holders.append(holder)

    def leave(self, holder: Holder) -> None:
        """A client has gone; harmless for one that never came."""
        if holder in self._holders:
            self._holders.remove(holder)

    def add(self, data: bytes | memoryview) -> None:
        """Somebody holds data from now on."""
        whole = _whole(data)
        count = self._counts.get(id(whole), 0)
        self._counts[id(whole)] = count + 1
        if not count:
            self._total += len(whole)

    def remove(self, data: bytes | memoryview) -> None:
        """Somebody who held data does so no more."""
        whole = _whole(data)
        count = self._counts[id(whole)] - 1
        if count:
            self._counts[id(whole)] = count
        else:
            del self._counts[id(whole)]
            self._total -= len(whole)

    def only_once(self, data: bytes | memoryview) -> int:
        """Bytes that are free when one holder of data goes: all, or none."""
        whole = _whole(data)
        return len(whole) if self._counts[id(whole)] == 1 else 0

    def relieve(self) -> None:
        """Keep to the bound: take events from the largest, then end the slowest."""
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
    """What is in memory as long as these data are."""
    if isinstance(data, memoryview):
        assert isinstance(data.obj, bytes)
        return data.obj
    return data
