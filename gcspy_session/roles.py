"""The controller of a session, and its successor.

Knows client numbers; does not know sockets, or what a controller may do.
"""

from __future__ import annotations

__all__ = ["Roles"]


class Roles:
    """One controller at most, one named successor at most, any number of viewers.

    Attributes:
        controller: Client number, or None.
        successor: Client number, or None; never the controller.
    """

    def __init__(self) -> None:
        self.controller: int | None = None
        self.successor: int | None = None

    def take(self, client: int) -> bool:
        """Make a client the controller, if there is none; return whether it is now."""
        if self.controller is None:
            self.controller = client
            if self.successor == client:
                self.successor = None
        return self.controller == client

    def hand_over(self, client: int) -> None:
        """Make another client the controller."""
        self.controller = client
        if self.successor == client:
            self.successor = None

    def name_successor(self, client: int | None) -> None:
        """Name the successor; the controller itself cannot be it."""
        self.successor = None if client == self.controller else client

    def leave(self, client: int) -> bool:
        """Remove a client; return whether it had control, which its successor then has at once."""
        if self.successor == client:
            self.successor = None
        if self.controller != client:
            return False
        self.controller, self.successor = self.successor, None
        return True
