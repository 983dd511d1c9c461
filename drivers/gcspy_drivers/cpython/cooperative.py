"""The driver for a CPython that cooperates: a stub in the target tells of each collection, and the target waits.

Three kinds of event. At "GC start" and "GC end" the thread that collects stands still and keeps the interpreter's lock, so nothing
that needs the lock changes while it is read: pymalloc, the collector's generations. What is outside of it is not
promised: the memory map, since threads of C libraries go on; sub-interpreters with a lock of their own. The clock ticks beside
that, reads a running program, as in passive mode, and holds nothing: a pause waits for a collection.

Knows the stub's events and the passive readers; knows neither wire nor memory.
"""

from __future__ import annotations

import select
import socket
import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cooperative.held_events import HELLO_SECS, HeldEvents
from gcspy_drivers.cooperative.line import StubEvent
from gcspy_drivers.cpython.collector_time import CollectorTime
from gcspy_drivers.cpython.driver import CLOCK, CPythonDriver
from gcspy_drivers.cpython.inject import bring_in
from gcspy_drivers.cpython.stub_events import KINDS, cause_of
from gcspy_drivers.cpython.survivors import Survivors
from gcspy_drivers.cpython.target import Target
from gcspy_server.api import (
    AttachOptions,
    GatherRequest,
    Mode,
    PauseActsOn,
    Server,
    ServerDescription,
)

__all__ = ["CooperativeDriver"]


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
        self._events = HeldEvents(connection, target.process, KINDS, self)
        self._line = self._events.line
        self._event: StubEvent | None = None
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
                connection = bring_in(target, options.inject, secs=HELLO_SECS)
            except BaseException:
                target.close()
                raise
        else:
            connection = socket.socket(fileno=options.stub_fd)
            try:
                # Its hello says that we may read it: the system may have to be told so by the target itself.
                select.select([connection], [], [], HELLO_SECS)
                target = Target(pid)
            except BaseException:
                connection.close()
                raise
        driver = cls(target, options, connection)
        try:
            driver._line.begin(HELLO_SECS)
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
            pairs=(KINDS,),
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
        self._events.open(server)

    def tick(self) -> None:
        """Read the running program, unless a pause is due: then the next event is one at which it can be held.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
            TargetError: The stub has left the target.
        """
        server = self._server
        if server is None:
            raise AssertionError("open comes before tick")
        self._events.count_untold()
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
        self._events.prepare()

    def wait(self, secs: float) -> None:
        """Wait so long, or until a collection; see `gcspy_server.drivers.WaitingDriver`."""
        self._events.wait(secs)

    def went_on(self) -> bool:
        """Whether the target, held at an event that is not finished yet, goes on all the same."""
        return self._events.went_on()

    def close(self) -> None:
        """Let go of the target: it goes on at once, and the stub leaves it at its next collection."""
        self._events.close()
        super().close()

    def prepare(self, server: Server, event: StubEvent) -> None:
        """Follow the interpreters and the level; see `Reader`."""
        if event.kind == 0:
            self._time.start(event.number)
        else:
            self._time.end(event.number, event.generation)
        self._follow_interpreters(server)
        self._follow_level(server)

    def read(self, request: GatherRequest, event: StubEvent) -> None:
        """Gather what is wanted."""
        self._event = event
        try:
            self._gather(request)
        finally:
            self._event = None

    def spoil(self) -> None:
        """Forget the lengths of lists that were counted while the target went on."""
        self._lists_at_start = None

    def cause_of(self, event: StubEvent) -> str:
        """Say what the runtime told."""
        return cause_of(event)

    def pass_by(self, server: Server) -> None:
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
        lengths = (
            self._objects.lengths(ident) if self._counted and self._line.stands_still else None
        )
        start, self._lists_at_start = self._lists_at_start, None
        if lengths is None:
            return
        if event.kind == 0:
            self._lists_at_start = event.number, lengths
        elif start is not None and start[0] == event.number:
            survivors.compare(event.generation, start[1], lengths)
