"""`HeldEvents`: what a stub reports about collections, as events of the session during which the target stands still.

    stub tells ──▶ count what it did not tell ──▶ does anybody want it? ──▶ read, while it stands still ──▶ finish ──▶ let it go on

The same for every runtime; what is to be read at an event, and in which words it is told, the driver says (`Reader`). Knows the stub's
line and the server's API; knows neither wire nor memory.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from gcspy_protocol.errors import TargetError

from gcspy_drivers.cooperative.event_accounting import EventAccounting
from gcspy_drivers.cooperative.line import StubEvent, StubLine, StubLost
from gcspy_drivers.remote.process import Process
from gcspy_server.api import GatherRequest, Server

__all__ = ["HELLO_SECS", "HeldEvents", "Reader"]

HELLO_SECS: Final = 10.0
"""How long a stub may take to say hello: it may have to wait for the target to come to it."""

_LONGEST_GATHER_SECS: Final = 20.0
"""A target is kept no longer for reading it: a sidecar that takes longer is out of order."""

_LONGEST_BUSY_SECS: Final = 2.0
"""One that was let go early and has come to its next event waits no longer until we have done with the one before, unless none may be
left out."""

_NOT_READ: Final = "; not read: gcspy was silent for 2 s, and the program continued"

_ENDING_SECS: Final = 0.5
"""How long a process may take from closing its sockets to its end."""


class Reader(Protocol):
    """What a driver does at an event."""

    def announced(self, server: Server, event: StubEvent, /) -> None:
        """Look at what changes between events, before it is asked whether anybody wants this one."""
        ...

    def read(self, request: GatherRequest, event: StubEvent, /) -> None:
        """Gather it; the target stands still."""
        ...

    def pass_by(self, server: Server, /) -> None:
        """Nobody wants this one."""
        ...

    def spoil(self) -> None:
        """What was read at this event is worth nothing."""
        ...

    def cause_of(self, event: StubEvent, /) -> str:
        """Say why it happened; asked after it was read or passed by."""
        ...


class HeldEvents:
    """The events of one stub.

    Args:
        connection: A connected socket of packets whose other end the stub has; taken over.
        process: The target; borrowed.
        kinds: Numbers of the kinds of event "GC start" and "GC end".
        reader: The driver.

    Attributes:
        line: The connection to the stub.
    """

    def __init__(
        self, connection: socket.socket, process: Process, kinds: tuple[int, int], reader: Reader
    ) -> None:
        self.line = StubLine(connection, process, self._may_hold)
        self._process = process
        self._kinds = kinds
        self._accounting = EventAccounting(self.line, kinds)
        self._reader = reader
        self._server: Server | None = None
        self._request: GatherRequest | None = None
        self._event: StubEvent | None = None
        self._held_by_us = False
        self._let_go_nanos = (
            0  # when the target was let go before all was made of what was read; 0: it was not
        )
        self._inside = False  # a collection whose start was told, and its end was not yet
        self._exact = (
            False  # while we are busy with something else the target waits for us at its next event
        )

    def open(self, server: Server) -> None:
        """Begin; the target begins with the first tick or wait."""
        self._server = server
        with self._lost_told():
            self._accounting.want(server)

    def begin_tick(self) -> None:
        """Take pending reports and count missed events. If none may be missed, the target waits until `prepare`.

        Raises:
            TargetError: As `wait`.
        """
        self.wait(0)
        with self._lost_told():
            self._accounting.count_untold(self._opened())
        self._exact = self._none_may_be_left_out()
        if self._exact:
            self.line.come_back()

    def be_busy(self) -> bool:
        """Say that this tick takes long: collections are only counted meanwhile, and nobody waits for us, unless none may be left out.

        Returns:
            False: not now, as the target is within a collection whose start was told, or reports one just now.
        """
        if self._inside or self.line.told:
            return False
        if not self._exact:
            self._accounting.want_none()
        return True

    def prepare(self) -> None:
        """Tell the stub what is wanted now, and let a program begin that waits for us before its first line."""
        self._be_back()
        with self._lost_told():
            self._accounting.want(self._opened(), inside=self._inside)
        self.line.let_begin()

    def wait(self, secs: float) -> None:
        """Wait so long, or until a collection; see `gcspy_server.drivers.WaitingDriver`."""
        server = self._opened()
        self.prepare()
        with self._lost_told():
            event = self.line.wait(secs)
            if event is not None:
                self.take(server, event)

    def went_on(self) -> bool:
        """Whether the target, held at an event that is not finished yet, goes on all the same."""
        return self._held_by_us and not self.line.stands_still

    def close(self) -> None:
        """Let go of the target: it goes on at once, and the stub leaves it at its next collection."""
        self.line.close()

    def take(self, server: Server, event: StubEvent) -> None:
        """Gather and finish one of the stub's events, during which the target stands still."""
        kind = self._kinds[1 if event.kind else 0]
        told_late = max(0, min(time.monotonic_ns(), self.line.let_go_at_nanos) - event.time_nanos)
        self._held_by_us = True
        try:
            self._accounting.count_to_event(server, event)
            self._reader.announced(server, event)
            if self._accounting.is_half(event) and not server.pausing:
                # A session that begins within a collection does not begin with the end of that.
                self._reader.pass_by(server)
                server.skip(kind)
                self._inside = False
                self._accounting.want(server)
                return
            request = server.should_transmit(kind)
            server.held(told_late)  # not before: what is owed decides about this very event
            still = True
            if request is not None:
                still = self._read_still(server, event, request)
            else:
                self._reader.pass_by(server)
            cause = self._reader.cause_of(event)
            spoilt = not (still or self._let_go_nanos)
            server.finish(kind, cause + (_NOT_READ if spoilt else ""), holds=still)
            self._inside = event.kind == 0
            self._accounting.want(server, inside=self._inside)
        finally:
            self._held_by_us = False
            self._request = self._event = None
            if not self._let_go_nanos:
                self.line.go_on()
            self._let_go_nanos = 0
            self._be_back()

    def let_go_early(self) -> None:
        """Say that all was read, and what is left is to make something of it: the target need not wait for that, if nothing else holds it.

        It does wait where it may have to be paused after this very event. Who was let go at the start of a collection reports its end as
        usual, and waits there until we look; at its next collection only if none may be left out.
        """
        event, request = self._event, self._request
        if event is None or request is None or request.may_hold or not self.line.stands_still:
            return  # if it went on by itself, that is seen later
        self._exact = self._none_may_be_left_out()
        self._inside = event.kind == 0
        if self._inside or self._exact:
            self._accounting.want(self._opened(), inside=self._inside)
        else:  # the next is told only when it is known what is wanted after this one
            self._accounting.want_none()
        self._let_go_nanos = time.monotonic_ns()
        self._held_by_us = False
        self.line.go_on(come_back=self._inside or self._exact)

    def _read_still(self, server: Server, event: StubEvent, request: GatherRequest) -> bool:
        """Gather an event; False: the target goes on already, and is not held after it.

        If it went on before all was read, what was read is not shown: the event is counted and told, with all of its streams of an
        earlier one.
        """
        self._event, self._request = event, request
        if self.line.stands_still:
            self._reader.read(request, event)
        self._process.check()
        if self._let_go_nanos:
            server.held(max(0, self._let_go_nanos - request.time_nanos))
            return False
        if self.line.stands_still:
            return True
        self._reader.spoil()
        self._held_by_us = False
        server.discard()
        # From the news to here is the gathering's: the program stood still for part of it only.
        server.held(
            max(
                0,
                min(self.line.let_go_at_nanos, time.monotonic_ns())
                - max(event.time_nanos, request.time_nanos),
            )
        )
        return False

    def _may_hold(self, secs: float) -> bool:
        """Whether the target may be kept any longer: it is paused or delayed, or is being read."""
        server = self._server
        busy = self._let_go_nanos and not self._exact
        longest = _LONGEST_BUSY_SECS if busy else _LONGEST_GATHER_SECS
        return secs < longest or (server is not None and server.holding)

    @contextmanager
    def _lost_told(self) -> Iterator[None]:
        """Say whose stub it is that is lost, and what to do."""
        try:
            yield
        except StubLost as error:
            self._refuse_ended()  # that the target has ended is the better message
            raise TargetError(
                f"process {self._process.pid} is alive, but {error}: attach again"
            ) from error

    def _refuse_ended(self) -> None:
        """Raise if the target has ended, or is just ending: its sockets are closed before it is seen to have."""
        until = time.monotonic() + _ENDING_SECS
        while time.monotonic() < until:
            self._process.check()
            time.sleep(_ENDING_SECS / 50)

    def _none_may_be_left_out(self) -> bool:
        """Whether the target waits for us at its next collection, however long what we do takes."""
        server = self._opened()
        return any(server.outlook(kind).exact for kind in self._kinds)

    def _be_back(self) -> None:
        self._exact = False
        self.line.be_back()

    def _opened(self) -> Server:
        if self._server is None:
            raise AssertionError("open comes first")
        return self._server
