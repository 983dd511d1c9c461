"""The limits and deadlines of a session, with the reason for each."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["RequestLimits", "SessionOptions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestLimits:
    """How much a client may ask for; beyond it the server reads more slowly from that client (SPEC.md section 8.13).

    A window sends a ping each second and answers one, tells a place at most ten times a second, and asks for one event, one
    detail or a few pages of names at a time. A server takes 40 microseconds for a PING and up to two milliseconds for a
    page of names, in the one thread that serves everybody.

    Attributes:
        bytes_per_sec: Bytes of requests, as they are after decompression. A class's whole traffic is a tenth of it.
        burst_bytes: Bytes at once: sixteen requests of the greatest length.
        requests_per_sec: Requests of any kind: a program that steps a playback event by event gets 500 events a second.
        burst_requests: Requests at once.
        changes_per_sec: Requests that cost more than an answer: a keyframe, a playback of one's own, a message to everybody.
        burst_changes: Such requests at once: a program that sets all 64 triggers and 16 filters has room.
        pages_per_sec: Pages of names of tiles: ten million names in a minute.
        burst_pages: Pages at once: `gcspy tail` asks for all that it lacks at one event, two million names.
        all_per_sec: Requests of all clients together, where a page counts as 20 and a change as 10: a sixth of a processor.
            Clients that wait for it take turns, so that one request of a client waits for one of each other.
        burst_all: Requests of all clients at once.
        backlog_bytes: Thirty requests: a client that waits for answers never has so much unread, one that floods always has.
        patience_secs: Who floods for so long, after it was told, is disconnected.
        turn: After so many requests of one client the others get a turn.
    """

    bytes_per_sec: float = 256 << 10
    burst_bytes: float = 1 << 20
    requests_per_sec: float = 500
    burst_requests: float = 1000
    changes_per_sec: float = 10
    burst_changes: float = 100
    pages_per_sec: float = 50
    burst_pages: float = 500
    all_per_sec: float = 4000
    burst_all: float = 4000
    backlog_bytes: int = 1 << 10
    patience_secs: float = 5.0
    turn: int = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionOptions:
    """What a session grants its clients.

    Attributes:
        max_clients: A classroom is 100; each costs a socket and a queue.
        max_pending: Connections that have not greeted yet; for one more the oldest is closed. A class that joins at one word has room.
        handshake_secs: From connecting to HELLO, and to the client's proof where it has to give one; half-open peers go away after it.
        silence_secs: While the target is held, a controller that says nothing so long has lost control.
        succession_secs: A controller that has named a successor, and says nothing so long, gives way to it. It is asked twice a second, so that control
            passes within two seconds.
        stall_secs: A client whose socket takes nothing for so long is disconnected.
        queued_events: Events that wait for one client; then it misses some. Two seconds at 30 Hz: a window that opens on
            10,000,000 tiles takes nearly one for its first picture, and need not start over then.
        queued_bytes: Bytes of events that wait for one client; then it misses some. The first waiting
            event is always allowed, however large.
        queued_bytes_all: Bytes that wait for all clients together, each counted once however many share it; then the largest queues lose their
            events, and where that is not enough those that have taken nothing for the longest time are disconnected. 256 clients with 64 MiB each
            would take 16 GiB. What waits for one client alone may be more.
        queued_messages: State, schema and errors that wait for one client; then it is disconnected.
        requests: How much a client may ask for.
    """

    max_clients: int = 256
    max_pending: int = 128
    handshake_secs: float = 5.0
    silence_secs: float = 5.0
    succession_secs: float = 1.5
    stall_secs: float = 30.0
    queued_events: int = 64
    queued_bytes: int = 64 << 20
    queued_bytes_all: int = 1 << 30
    queued_messages: int = 512
    requests: RequestLimits = field(default_factory=RequestLimits)
