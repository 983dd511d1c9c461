"""Connections without a greeting: a limited number; for one more the oldest is closed.

A stranger needs no token for such a connection, and each costs a file descriptor: without a limit
anyone who may connect could keep all others out.

Knows clients; does not know sockets or greetings.
"""

from __future__ import annotations

from gcspy_session.client import ClientConnection

__all__ = ["PendingConnections"]


class PendingConnections:
    """Clients that have connected and were neither accepted nor refused.

    Args:
        most: Their maximum number.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._clients: dict[int, ClientConnection] = {}

    def add(self, client: ClientConnection) -> None:
        """Add a new connection; the oldest is closed if there are too many now. It gets no message, as it sent none."""
        self._clients[client.number] = client
        if len(self._clients) > self._most:
            oldest = self._clients.pop(next(iter(self._clients)))
            oldest.end(f"sent no greeting; {self._most} later clients are waiting")

    def remove(self, client: ClientConnection) -> None:
        """Remove a connection that has greeted, or has gone; harmless for others."""
        self._clients.pop(client.number, None)
