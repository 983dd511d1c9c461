"""`EmbeddedSession`: the base of what calls the server from within: a simulation, a trace, a manager that knows GCspy.

Nobody is attached to and no clock ticks: whoever has something to show says that an event happens. Knows the
order of the calls; does not know what is shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from gcspy_server.api import GatherRequest, Server

__all__ = ["EmbeddedSession"]


class EmbeddedSession(ABC):
    """One server, and what it shows.

    Attributes:
        server: To be served, handed over or observed by who made this.
    """

    server: Server

    clock: ClassVar[str] = "allocated bytes"
    """Name of the program's clock."""

    @abstractmethod
    def gather(self, request: GatherRequest) -> None:
        """Fill the spaces that the request wants."""

    @property
    @abstractmethod
    def clock_value(self) -> int:
        """What the program's clock says now."""

    def happen(self, event: int, cause: str = "", *, holds: bool = True) -> bool:
        """Gather and finish an event that happens now; held by a pause in here.

        Args:
            event: Number of its kind.
            cause: Its cause.
            holds: Whether what a pause acts on stands still at it.

        Returns:
            Whether anybody wanted it.
        """
        request = self.server.should_transmit(event)
        if request:
            self.gather(request)
        self.server.finish(event, cause, (self.clock, self.clock_value), holds=holds)
        return bool(request)
