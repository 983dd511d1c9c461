"""`EmbeddedSession`: the base of programs that call the server themselves: a simulation, a trace, a memory manager that knows GCspy.

There is no process to attach to and no clock: the program reports its events. Knows the order of
the calls; does not know the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from gcspy_server.api import GatherRequest, Server

__all__ = ["EmbeddedSession"]


class EmbeddedSession(ABC):
    """One server, and its data.

    Attributes:
        server: To be served, recorded or observed by the creator.
    """

    server: Server

    clock: ClassVar[str] = "allocated bytes"
    """Name of the program's clock."""

    @abstractmethod
    def gather(self, request: GatherRequest) -> None:
        """Fill the requested spaces."""

    @property
    @abstractmethod
    def clock_value(self) -> int:
        """The current value of the program's clock."""

    def happen(self, event: int, cause: str = "", *, holds: bool = True) -> bool:
        """Gather and finish an event that happens now; a pause holds this call.

        Args:
            event: Number of its kind.
            cause: Its cause.
            holds: Whether the target of a pause stands still at it.

        Returns:
            Whether it was requested.
        """
        request = self.server.should_transmit(event)
        if request:
            self.gather(request)
        self.server.finish(event, cause, (self.clock, self.clock_value), holds=holds)
        return bool(request)
