"""Request limits of a client: token buckets of its own, and one that all clients share (SPEC.md section 8.13).

A request is served first and paid for afterwards. A client with an overdrawn bucket waits before
its next request is read: so a client that waits for its answers is only slowed down, and one that
floods fills its own socket. All wait for the shared bucket in turn, and none has more than one
request in it.

Knows limits, kinds of requests and a clock that is passed in; does not know sockets, and sends
nothing.
"""

from __future__ import annotations

from gcspy_protocol import messages as m
from gcspy_protocol.messages import Message

from gcspy_session.options import RequestLimits

__all__ = ["Allowance", "Bucket", "shared_bucket"]

_CHANGES = (
    m.Attend,
    m.Follow,
    m.HandOver,
    m.Lossless,
    m.NameSuccessor,
    m.SetFilters,
    m.SetSetting,
    m.Subscribe,
    m.TakeControl,
    m.Trigger,
)
"""Requests that cost more than an answer."""

_CHANGE_WEIGHT = 10
_PAGE_WEIGHT = 20
"""How many PINGs such a request costs the session's thread."""


class Bucket:
    """Tokens that are refilled at a steady rate. The bucket may be overdrawn; then its user waits until it is refilled.

    Args:
        per_sec: Tokens refilled per second.
        burst: Maximum number of tokens, and the initial one.
    """

    def __init__(self, per_sec: float, burst: float) -> None:
        self._per_sec, self._burst = per_sec, burst
        self._tokens, self._at = burst, float("-inf")

    def take(self, tokens: float, now: float) -> float:
        """Take tokens at a time in seconds; returns the seconds to wait until the bucket is no longer overdrawn."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_sec) - tokens
        self._at = now
        return max(0.0, -self._tokens / self._per_sec)


def shared_bucket(limits: RequestLimits) -> Bucket:
    """The bucket that all clients of a session share."""
    return Bucket(limits.all_per_sec, limits.burst_all)


class Allowance:
    """Allowance of one client.

    Args:
        limits: The limits.
        shared: The bucket of all clients together.

    Attributes:
        exceeded: The limit that it exceeds now: the number, the unit and the period; empty: none.
    """

    def __init__(self, limits: RequestLimits, shared: Bucket) -> None:
        self._limits, self._shared = limits, shared
        self._bytes = Bucket(limits.bytes_per_sec, limits.burst_bytes)
        self._requests = Bucket(limits.requests_per_sec, limits.burst_requests)
        self._changes = Bucket(limits.changes_per_sec, limits.burst_changes)
        self._pages = Bucket(limits.pages_per_sec, limits.burst_pages)
        self._excess_since: float | None = None
        self._told_at = float("-inf")
        self.exceeded = ""
        self._served = 0

    def charge(self, message: Message | None, frames: int, size: int, now: float) -> float:
        """Charge a request that was served.

        Args:
            message: The request; None: unknown frames.
            frames: Number of its frames.
            size: Their bytes after decompression.
            now: Time in seconds.

        Returns:
            Seconds to wait before the next one is served; negative: other clients need not get a
            turn yet.
        """
        limits, weight = self._limits, frames
        owed = {
            f"{limits.bytes_per_sec:,.0f} bytes of requests": self._bytes.take(size, now),
            f"{limits.requests_per_sec:g} requests": self._requests.take(frames, now),
        }
        if isinstance(message, m.TileNamesRequest):
            weight = _PAGE_WEIGHT
            owed[f"{limits.pages_per_sec:g} pages of names"] = self._pages.take(1, now)
        elif isinstance(message, _CHANGES):
            weight = _CHANGE_WEIGHT
            what = f"{limits.changes_per_sec:g} requests like {type(message).__name__}"
            owed[what] = self._changes.take(1, now)
        longest = max(owed, key=lambda what: owed[what])
        if owed[longest]:
            self.exceeded = longest
        self._served += weight
        wait = max(owed[longest], self._shared.take(weight, now))
        if wait or self._served >= limits.turn:
            self._served = 0
            return wait
        return -1.0

    # ------------------------------------------------------------------------- floods

    def received(self, backlog: int) -> None:
        """Note that data arrived, after earlier data was served.

        Args:
            backlog: Its bytes. A client that waits for answers has not sent much meanwhile.
        """
        if backlog <= self._limits.backlog_bytes:
            self.exceeded = ""
            self._excess_since = None

    def excess_secs(self, backlog: int, now: float) -> float | None:
        """How long this client has exceeded its limits, without waiting for answers; None: it does not.

        Args:
            backlog: Bytes that were received and not examined yet.
            now: The time.
        """
        if self._excess_since is None and self.exceeded and backlog > self._limits.backlog_bytes:
            self._excess_since = now
        return None if self._excess_since is None else now - self._excess_since

    def may_tell(self, now: float) -> bool:
        """Whether a flooding client is to be warned now: once, and again if it begins again much later."""
        if now - self._told_at < self._limits.patience_secs:
            return False
        self._told_at = now
        return True
