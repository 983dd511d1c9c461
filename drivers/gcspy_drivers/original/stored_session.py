"""A session of a stored trace: its events follow each other as fast as they are read, with their original times.

The wire has no dates. Times are the sums of the elapsed times of all events, from 0 on, so that
pauses of the original's session do not count.

Knows messages; does not know files.
"""

from __future__ import annotations

from typing import Final

from gcspy_original.wire import Command, Connection, Event, Message

from gcspy_drivers.original.spaces import OriginalSpaces, clean_text
from gcspy_server.api import EventKind, Mode, PauseActsOn, Server

__all__ = ["DRIVER", "StoredSession"]

DRIVER: Final = "original"
_NANOS: Final = 1_000_000


class StoredSession:
    """The session of one stored trace.

    Args:
        connection: Has read the description of the session; its messages go to `take`.

    Attributes:
        server: To be recorded or observed by the creator.
        events: How many events there were so far.
    """

    def __init__(self, connection: Connection) -> None:
        self._now = 0
        self.events = 0
        self.server = Server(
            clean_text(connection.server_name) or "GCspy 1.0",
            events=tuple(
                EventKind(id=number, name=clean_text(name))
                for number, name in enumerate(connection.event_names or ("Event",))
            ),
            mode=Mode.EMBEDDED,
            pause_acts_on=PauseActsOn.PROGRAM,
            general_info=clean_text(connection.general_info),
            target={"runtime": "GCspy 1.0"},
            time_nanos=lambda: self._now,
        )
        self._spaces = OriginalSpaces(self.server, driver=DRIVER)
        for space in connection.spaces.values():
            self._spaces.add(space)

    def take(self, message: Message) -> None:
        """Take a message; an event is finished with all that came before."""
        if isinstance(message, Event):
            self._happen(message)
        elif isinstance(message, Command):
            self._spaces.take(message)

    def _happen(self, event: Event) -> None:
        elapsed = max(0, event.elapsed_millis)
        gathering = min(max(0, event.compensation_millis), elapsed)
        self._now += (elapsed - gathering) * _NANOS
        self._spaces.count_up_to(event.event)
        request = self.server.should_transmit(event.event)
        if request is None:
            self._spaces.leave_out()
        else:
            self._spaces.fill(request)
        self._now += gathering * _NANOS
        self.server.finish(event.event)
        self.events += 1
