r"""An event bus; each session subscribes to it, and does not unsubscribe when it ends.

Cause: listeners are added to a list, and never removed
Holder: __main__\.BUS\.listeners
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.leaks.pace import growing


class Bus:
    """Hands each message to all who listen."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Add a listener."""
        self.listeners.append(listener)


class Session:
    """The server's data about a visitor."""

    def __init__(self, bus: Bus, user: int) -> None:
        self.user = f"user {user}"
        self.seen = [f"{self.user} saw article {number}" for number in range(10)]
        bus.subscribe(self.receive)

    def receive(self, message: str) -> None:
        """Take note of a message."""
        self.seen.append(message)


BUS = Bus()


def main() -> None:
    """Serve visitors; each session ends at once."""
    for user in growing(check_every=50):
        Session(BUS, user)


if __name__ == "__main__":
    main()
