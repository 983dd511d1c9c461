"""`EventAccounting`: informs a stub which events are requested, and counts those that it did not report.

A stub counts every event and reports some. For the others the server decides whether they were not
requested, left out for the budget, or lost (`Server.skip`). This class alone knows the numbers from
the time in which no event was requested. Knows the stub's page and the server's API; does not know
any runtime.
"""

from __future__ import annotations

from gcspy_drivers.cooperative.line import StubEvent, StubLine
from gcspy_server.api import NEVER, EventForecast, Server

__all__ = ["EventAccounting"]


class EventAccounting:
    """Keeps the session's counts in step with one stub's.

    Args:
        line: The connection to the stub; borrowed.
        kinds: Numbers of the kinds of event for starts and ends.
    """

    def __init__(self, line: StubLine, kinds: tuple[int, int]) -> None:
        self._line = line
        self._kinds = kinds
        self._wanted = [False, False]
        self._every = False
        self._unwanted_to = [0, 0]  # up to this number no event was requested

    def want(self, server: Server, *, inside: bool = False) -> None:
        """Inform the stub of the current requests.

        Args:
            server: The session.
            inside: Whether the start of a collection was reported whose end was not yet.
        """
        outlooks = [server.outlook(kind) for kind in self._kinds]
        self._every = all(one.period == 1 for one in outlooks)
        if inside and outlooks[1].period == 1:
            # Half of a collection is of little use: a client that was notified of its start is also
            # notified of its end, whether or not that is gathered.
            outlooks[1] = EventForecast(1)
        # The stub has one time for both kinds. The kind that is to wait for longer is not reported
        # until we allow it.
        first = min((one.not_before_nanos for one in outlooks if one.period), default=NEVER)
        self._line.rest(
            max(one.rest_nanos for one in outlooks),
            after=server.counts()[self._kinds[0]] + max(one.at_once for one in outlooks),
        )
        for number, outlook in enumerate(outlooks):
            now = outlook.not_before_nanos <= first
            self._line.want(number, period=outlook.period if now else 0, not_before_nanos=first)
            if outlook.period and not self._wanted[number]:
                self._unwanted_to[number] = self._line.counts[number]
            self._wanted[number] = outlook.period > 0

    @property
    def paired(self) -> bool:
        """Whether every start and every end is requested."""
        return all(self._wanted) and self._every

    def want_none(self) -> None:
        """Make the stub only count for a while; events in that time still count as requested, if they were before."""
        for number in (0, 1):
            self._line.want(number, period=0, not_before_nanos=NEVER)

    def is_half(self, event: StubEvent) -> bool:
        """Whether an event is the end of a collection that started before events were requested, if both ends are requested now."""
        return event.kind == 1 and all(self._wanted) and event.number <= self._unwanted_to[0]

    def count_untold(self, server: Server, counts: tuple[int, int] | None = None) -> None:
        """Count the events that were not reported; the last one of each kind may still be on its way.

        Args:
            server: The session.
            counts: Starts and ends of which all that were reported are counted already; None: all until now.
        """
        for number, count in enumerate(counts or self._line.counts):
            self._count_to(server, number, count - 1)

    def count_to_event(
        self, server: Server, event: StubEvent, counts: tuple[int, int] | None = None
    ) -> None:
        """Count the events before a reported one, without that one.

        For the other kind, all events that the stub has counted have happened: one that is still to
        come belongs to this event.

        Args:
            server: The session.
            event: The event.
            counts: Starts and ends when it happened; None: it happens now.
        """
        kind = 1 if event.kind else 0
        self._count_to(server, 1 - kind, (counts or self._line.counts)[1 - kind])
        self._count_to(server, kind, event.number - 1)

    def _count_to(self, server: Server, number: int, to: int) -> None:
        kind = self._kinds[number]
        have = server.counts()[kind]
        if to <= have:
            return
        unwanted = to - have
        if self._wanted[number]:
            unwanted = min(unwanted, max(0, self._unwanted_to[number] - have))
        if unwanted:
            server.skip(kind, unwanted)
        if to - have > unwanted:
            server.skip(kind, to - have - unwanted, untold=True)
