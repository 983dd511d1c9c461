"""The limits and deadlines of a session, with the reason for each."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SessionOptions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionOptions:
    """What a session grants its clients.

    Attributes:
        max_clients: A classroom is 100; each costs a socket and a queue.
        handshake_secs: From connecting to HELLO; half-open peers go away after it.
        silence_secs: While the target is held, a controller that says nothing so long has lost control.
        succession_secs: A controller that has named a successor, and says nothing so long, gives way to it. It is asked twice a second, so that control
            passes within two seconds.
        stall_secs: A client whose socket takes nothing for so long is disconnected.
        queued_events: Events that wait for one client; then it misses some. Two seconds at 30 Hz: a window that opens on
            10,000,000 tiles takes nearly one for its first picture, and need not start over then.
        queued_bytes: Bytes of events that wait for one client; then it misses some. The first waiting
            event is always allowed, however large.
        queued_messages: State, schema and errors that wait for one client; then it is disconnected.
    """

    max_clients: int = 256
    handshake_secs: float = 5.0
    silence_secs: float = 5.0
    succession_secs: float = 1.5
    stall_secs: float = 30.0
    queued_events: int = 64
    queued_bytes: int = 64 << 20
    queued_messages: int = 512
