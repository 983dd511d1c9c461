"""The driver for a CPython that cooperates: a stub in the target tells of each collection, and the target waits.

Three kinds of event. At "GC start" and "GC end" the thread that collects stands still and keeps the interpreter's lock, so nothing
that needs the lock changes while it is read: pymalloc, the collector's generations. What is outside of it is not
promised: the memory map, since threads of C libraries go on; sub-interpreters with a lock of their own. The clock ticks beside
that, reads a running program, as in passive mode, and holds nothing: a pause waits for a collection.

Knows the stub's line and the passive readers; knows neither wire nor memory.
"""

from __future__ import annotations

import select
import socket
import time
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.cooperative.line import StubEvent, StubLine, StubLost
from gcspy_drivers.cpython.collector_time import CollectorTime
from gcspy_drivers.cpython.driver import CLOCK, CPythonDriver
from gcspy_drivers.cpython.inject import bring_in
from gcspy_drivers.cpython.stub_events import GC_END, GC_START, cause_of, count_to, count_to_event
from gcspy_drivers.cpython.survivors import Survivors
from gcspy_drivers.cpython.target import Target
from gcspy_server.api import (
    AttachOptions,
    GatherRequest,
    Mode,
    Outlook,
    PauseActsOn,
    Server,
    ServerDescription,
)

__all__ = ["CooperativeDriver"]

_HELLO_SECS: Final = 10.0
"""How long a stub may take to say hello: one that was injected has to wait for the target's main thread."""

_LONGEST_GATHER_SECS: Final = 20.0
"""A target is kept no longer for reading it: a sidecar that takes longer is out of order."""


_NOT_READ: Final = "; not read: nothing was heard of gcspy for 2 s, and the program went on"

_ENDING_SECS: Final = 0.5
"""How long a process may take from closing its sockets to its end."""


class CooperativeDriver(CPythonDriver):
    """Watches one CPython process that has a stub.

    Args:
        target: The process.
        options: What the user chose.
        connection: The socket that its stub talks to.
    """

    name: ClassVar[str] = "cpython"

    def __init__(self, target: Target, options: AttachOptions, connection: socket.socket) -> None:
        super().__init__(target, options)
        self._line = StubLine(connection, target.process, self._may_hold)
        self._served: Server | None = None
        self._event: StubEvent | None = None
        self._held_by_us = False
        self._inside = False  # a collection whose start was told, and its end was not yet
        self._time = CollectorTime(target.process.pid, lambda: self._line.stands_still)
        self._lists_at_start: tuple[int, npt.NDArray[np.int64]] | None = None

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> CooperativeDriver:
        """Find the runtime's structures in a process, and meet the stub.

        Raises:
            TargetError: As `CPythonDriver.attach`; or the stub is none, or did not come.
        """
        if options.stub_fd is None:
            target = Target(pid)
            try:
                connection = bring_in(target, options.inject, secs=_HELLO_SECS)
            except BaseException:
                target.close()
                raise
        else:
            connection = socket.socket(fileno=options.stub_fd)
            try:
                # Its hello says that we may read it: the system may have to be told so by the target itself.
                select.select([connection], [], [], _HELLO_SECS)
                target = Target(pid)
            except BaseException:
                connection.close()
                raise
        driver = cls(target, options, connection)
        try:
            driver._line.begin(_HELLO_SECS)
        except BaseException:
            driver.close()
            raise
        return driver

    def describe(self) -> ServerDescription:
        """How the session introduces itself."""
        return replace(
            super().describe(),
            events=("Clock", "GC start", "GC end"),
            mode=Mode.COOPERATIVE,
            pairs=((GC_START, GC_END),),
            rungs=(),
            pause_acts_on=PauseActsOn.PROGRAM,
            general_info=(
                "At GC start and GC end the program waits, with the interpreter's lock, while it is read: pymalloc and the "
                "generations are exact then. The memory map is not, nor are sub-interpreters with a lock of their own. At the "
                "clock the running program is read, and what changed meanwhile is unknown; a pause waits for a collection."
            ),
        )

    def _follow_rung(self, server: Server) -> None:
        """There is one rung only: it stands still by itself."""

    def open(self, server: Server) -> None:
        """Add the spaces; the target begins with the first tick or wait.

        Raises:
            TargetGone: The target has ended.
        """
        super().open(server)
        self._served = server
        self._say_what_is_wanted(server)

    def tick(self) -> None:
        """Read the running program, unless a pause is due: then the next event is one at which it can be held.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
            TargetError: The stub has left the target.
        """
        server = self._opened()
        count_to(server, *(max(0, count - 1) for count in self._line.counts))
        if server.pausing:
            self._target.check()
            server.skip(CLOCK)
        else:
            self._follow_interpreters(server)
            self._follow_level(server)
            request = server.should_transmit(CLOCK)
            if request is not None:
                self._gather(request)
            self._target.check()
            server.finish(CLOCK, holds=False)
        self._say_what_is_wanted(server)
        self._line.let_begin()

    def wait(self, secs: float) -> None:
        """Wait so long, or until a collection; see `gcspy_server.drivers.WaitingDriver`."""
        server = self._opened()
        self._say_what_is_wanted(server)
        self._line.let_begin()  # one that was started for us waits before its first line
        try:
            event = self._line.wait(secs)
            if event is not None:
                self._collection(server, event)
        except StubLost as error:
            self._refuse_ended()  # that the target has ended is the better message
            raise TargetError(f"process {self._target.process.pid} is alive, but {error}: attach again") from error

    def went_on(self) -> bool:
        """Whether the target, held at an event that is not finished yet, goes on all the same."""
        return self._held_by_us and not self._line.stands_still

    def close(self) -> None:
        """Let go of the target: it goes on at once, and the stub leaves it at its next collection."""
        self._line.close()
        super().close()

    def _collection(self, server: Server, event: StubEvent) -> None:
        """Gather and finish one of the stub's events, during which the target stands still."""
        kind = GC_END if event.kind else GC_START
        told_late = max(0, min(time.monotonic_ns(), self._line.let_go_at_nanos) - event.time_nanos)
        self._held_by_us = True
        try:
            if event.kind == 0:
                self._time.start(event.number)
            else:
                self._time.end(event.number, event.generation)
            count_to_event(server, event, self._line.counts)
            self._follow_interpreters(server)
            self._follow_level(server)
            request = server.should_transmit(kind)
            server.held(told_late)  # not before: what is owed decides about this very event
            still = True
            if request is not None:
                still = self._read_still(server, event, request)
            else:
                self._look_besides(server)
            server.finish(kind, cause_of(event) + ("" if still else _NOT_READ), holds=still)
            self._inside = event.kind == 0
            self._say_what_is_wanted(server)
        finally:
            self._event = None
            self._held_by_us = False
            self._line.go_on()

    def _read_still(self, server: Server, event: StubEvent, request: GatherRequest) -> bool:
        """Gather an event; False: the target went on before that was done, and what was read is not shown.

        Then the event is counted and told, with all of its streams of an earlier one, and the target is not held after it.
        """
        if self._line.stands_still:
            self._event = event
            self._gather(request)
        self._target.check()
        if self._line.stands_still:
            return True
        self._lists_at_start = None
        self._held_by_us = False
        server.discard()
        # From the news to here is the gathering's: the program stood still for part of it only.
        server.held(max(0, min(self._line.let_go_at_nanos, time.monotonic_ns()) - max(event.time_nanos, request.time_nanos)))
        return False

    def _look_besides(self, server: Server) -> None:
        """Look at the collector's numbers though nobody is sent them: what a collection left alive shows in two looks only."""
        begin = time.monotonic_ns()
        for reading in self._target.generations(self._interpreters):
            self._survivors_of(reading.ident).look(reading.generations)
        server.held(time.monotonic_ns() - begin)

    def _spent(self, ident: int) -> CollectorTime | None:
        """Return how long the collections took that the stub told of; it stands in the main interpreter."""
        return self._time if ident == 0 else None

    def _compare_lists(self, ident: int, survivors: Survivors) -> None:
        """Compare the lists' lengths at the end of a collection with those at its start, if both were counted whole."""
        event = self._event
        if ident != 0 or event is None:
            return  # the stub stands in the main interpreter
        lengths = self._objects.lengths(ident) if self._counted and self._line.stands_still else None
        start, self._lists_at_start = self._lists_at_start, None
        if lengths is None:
            return
        if event.kind == 0:
            self._lists_at_start = event.number, lengths
        elif start is not None and start[0] == event.number:
            survivors.compare(event.generation, start[1], lengths)

    def _refuse_ended(self) -> None:
        """Raise if the target has ended, or is just ending: its sockets are closed before it is seen to have."""
        until = time.monotonic() + _ENDING_SECS
        while time.monotonic() < until:
            self._target.check()
            time.sleep(_ENDING_SECS / 50)

    def _say_what_is_wanted(self, server: Server) -> None:
        outlooks = [server.outlook(kind) for kind in (GC_START, GC_END)]
        # The stub has one time for both kinds. One that is to wait for longer than the other is not told of until we say so.
        first = min((one.not_before_nanos for one in outlooks if one.period), default=0)
        if self._inside and outlooks[1].period == 1:
            # Half of a collection tells little: who was told of its start is told of its end, whether or not that is gathered.
            first = 0
            outlooks[1] = Outlook(1)
        for number, outlook in enumerate(outlooks):
            now = outlook.not_before_nanos <= first
            self._line.want(number, period=outlook.period if now else 0, not_before_nanos=first)

    def _may_hold(self, secs: float) -> bool:
        """Whether the target may be kept any longer: it is paused or delayed, or is being read."""
        server = self._served
        return secs < _LONGEST_GATHER_SECS or (server is not None and server.holding)

    def _opened(self) -> Server:
        if self._served is None:
            raise AssertionError("open comes first")
        return self._served
