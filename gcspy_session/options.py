"""The limits and deadlines of a session, with the reason for each."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["RequestLimits", "SessionOptions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestLimits:
    """Request limits of a client; beyond them the server reads more slowly from that client (SPEC.md section 8.13).

    A window sends a ping each second and answers one, sends a place at most ten times a second, and
    requests one event, one detail or a few pages of names at a time. A server takes 40 microseconds
    for a PING and up to two milliseconds for a page of names, in the one thread for all clients.

    Attributes:
        bytes_per_sec: Bytes of requests, after decompression. A class's whole traffic is a tenth of
            it.
        burst_bytes: Bytes at once: sixteen requests of the greatest length.
        requests_per_sec: Requests of any kind: a program that steps a playback event by event gets
            500 events per second.
        burst_requests: Requests at once.
        changes_per_sec: Requests that cost more than an answer: a keyframe, a playback of its own,
            a message to all clients.
        burst_changes: Such requests at once: a program that sets all 64 triggers and 16 filters has room.
        pages_per_sec: Pages of names of tiles: ten million names in a minute.
        burst_pages: Pages at once: `gcspy tail` requests all missing ones at one event, two million
            names.
        all_per_sec: Requests of all clients together, where a page counts as 20 and a change as 10: a sixth of a processor.
            Clients that wait for it take turns, so that one request of a client waits for one of each other.
        burst_all: Requests of all clients at once.
        backlog_bytes: Thirty requests: a client that waits for answers never has this much unread,
            one that floods always has.
        patience_secs: A client that floods for this long, after the warning, is disconnected.
        turn: After this many requests of one client the others get a turn.
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
    """Limits for the clients of a session.

    Attributes:
        max_clients: A classroom is 100; each costs a socket and a queue.
        max_pending: Connections without a greeting; for one more the oldest is closed. Large enough
            for a class that joins at the same moment.
        handshake_secs: From connecting to HELLO, and to the client's proof if it has to give one;
            half-open peers are disconnected after it. Long enough for a window on a busy machine.
        silence_secs: While the target is held, a controller that is silent for this long has lost
            control.
        succession_secs: A controller with a successor that is silent for this long gives way to it.
            It is pinged twice a second, so that control passes within two seconds.
        stall_secs: A client whose socket takes nothing for so long is disconnected.
        queued_events: Events queued for one client; beyond it events are missed. Two seconds at 30
            Hz: a window that opens on 10,000,000 tiles takes nearly one for its first picture, and
            need not start over then.
        queued_bytes: Bytes of events queued for one client; beyond it events are missed. The first
            queued event is always allowed, however large.
        queued_bytes_all: Bytes queued for all clients together, each counted once however many
            share it. Beyond it the largest queues lose their events, and if that is not enough the
            clients that have read nothing for the longest time are disconnected. 256 clients with
            64 MiB each would take 16 GiB. The queue of a single client may be larger.
        queued_messages: State, schema and errors queued for one client; beyond it the client is
            disconnected.
        requests: Its request limits.
    """

    max_clients: int = 256
    max_pending: int = 128
    handshake_secs: float = 15.0
    silence_secs: float = 5.0
    succession_secs: float = 1.5
    stall_secs: float = 30.0
    queued_events: int = 64
    queued_bytes: int = 64 << 20
    queued_bytes_all: int = 1 << 30
    queued_messages: int = 512
    requests: RequestLimits = field(default_factory=RequestLimits)
