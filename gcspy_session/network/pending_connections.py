"""Connections on which nobody has greeted yet: so many, and for one more the oldest is closed.

A stranger needs no token for such a connection, and each costs a file descriptor: without a bound whoever
may connect could keep everybody else out.

Knows clients; knows neither sockets nor greetings.
"""

from __future__ import annotations

from gcspy_session.client import ClientConnection

__all__ = ["PendingConnections"]


class PendingConnections:
    """Clients that have connected and were neither let in nor refused.

    Args:
        most: How many there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._clients: dict[int, ClientConnection] = {}

    def add(self, client: ClientConnection) -> None:
        """Somebody has connected; the oldest goes if they are too many now. Nothing is said to it, as it said nothing."""
        self._clients[client.number] = client
        if len(self._clients) > self._most:
            oldest = self._clients.pop(next(iter(self._clients)))
            oldest.end(f"sent no greeting; {self._most} later clients are waiting")

    def remove(self, client: ClientConnection) -> None:
        """Somebody has greeted, or has gone; harmless for others."""
        self._clients.pop(client.number, None)
