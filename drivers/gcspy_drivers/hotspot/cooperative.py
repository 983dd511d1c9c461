"""The driver for a JVM that has our agent: it tells of each collection at its safepoint, and waits while it is read.

At "GC start" and "GC end" all Java threads are stopped by the JVM itself and the thread that collects waits for us: bounds, regions, cards
and objects are of one moment. One of each is told for each pause of the collector, and not for each collection: of Shenandoah and
ZGC these are the short pauses of a cycle, of G1 also its remark and clean-up. What runs beside the program is noticed at the tick after
it, as without an agent. The clock ticks beside all that, reads a running JVM, and holds nothing: a pause waits for a collection.

Knows the stub's events, the agent, and the passive readers; knows neither wire nor memory.
"""

from __future__ import annotations

import select
import socket
import time
from dataclasses import replace
from typing import ClassVar, Final

from gcspy_drivers.cooperative.held_events import HELLO_SECS, HeldEvents
from gcspy_drivers.cooperative.line import StubEvent
from gcspy_drivers.hotspot.agent import Agent
from gcspy_drivers.hotspot.counting import Collections
from gcspy_drivers.hotspot.driver import CLOCK, HotSpotDriver, open_jvm
from gcspy_drivers.hotspot.jvm import Jvm
from gcspy_drivers.hotspot.object_view import ObjectView
from gcspy_drivers.hotspot.view import OBJECTS
from gcspy_drivers.remote.process import Process
from gcspy_server.api import (
    AttachOptions,
    GatherRequest,
    Mode,
    PauseActsOn,
    Server,
    ServerDescription,
)

__all__ = ["GC_END", "GC_START", "CooperativeHotSpotDriver"]

GC_START: Final = 1
GC_END: Final = 2
_COLLECTIONS: Final = 3
_KINDS: Final = (GC_START, GC_END)

_RESTS_SECS: Final = 1.0
"""So long after an event the objects of the running JVM are not walked: those that stand still at a collection are better."""

_CONCURRENT: Final = ("Shenandoah", "Generational Shenandoah", "ZGC", "Generational ZGC")
"""Collectors that do most of their work beside the program, of which no pause tells."""

_SAY_AFTERWARDS: Final = ("Serial", "Parallel", "CMS")
"""Collectors whose VM has taken back the cause when the end is told, and says it as that of the latest collection."""


class CooperativeHotSpotDriver(HotSpotDriver):
    """Watches one JVM that has our agent.

    Args:
        process: The process; closed here.
        jvm: The JVM in it.
        options: What the user chose.
        connection: The socket that its agent talks to; taken over.
        agent: What brought it in, and takes it out.
    """

    name: ClassVar[str] = "hotspot"

    def __init__(
        self,
        process: Process,
        jvm: Jvm,
        options: AttachOptions,
        connection: socket.socket,
        agent: Agent,
    ) -> None:
        super().__init__(process, jvm, options)
        self.noticed = _COLLECTIONS if jvm.collector in _CONCURRENT else None
        self._agent = agent
        self._events = HeldEvents(connection, process, _KINDS, self)
        self._told: Collections | None = None
        self._looked_at = -_RESTS_SECS

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> CooperativeHotSpotDriver:
        """Find the VM's structures in a process, and have it take the agent, unless it was started with it.

        Raises:
            TargetError: As `HotSpotDriver.attach`; or it does not take the agent, or that does not connect.
        """
        if options.stub_fd is None:
            process, jvm = open_jvm(pid)
            agent = Agent(process)
            try:
                connection = agent.bring_in(jvm, options.inject, secs=HELLO_SECS)
            except BaseException:
                jvm.close()
                process.close()
                raise
        else:
            connection = socket.socket(fileno=options.stub_fd)
            try:
                # Its hello says that we may read it, and that its heap is there.
                select.select([connection], [], [], HELLO_SECS)
                process, jvm = open_jvm(pid)
            except BaseException:
                connection.close()
                raise
            agent = Agent(process)
        driver = cls(process, jvm, options, connection, agent)
        try:
            driver._events.line.begin(HELLO_SECS)
        except BaseException:
            driver.close()
            raise
        return driver

    def describe(self) -> ServerDescription:
        """How the session introduces itself."""
        noticed = () if self.noticed is None else ("Collections",)
        return replace(
            super().describe(),
            events=("Clock", "GC start", "GC end", *noticed),
            mode=Mode.COOPERATIVE,
            pairs=(_KINDS,),
            rungs=(),
            pause_acts_on=PauseActsOn.PROGRAM,
            general_info=(
                "At GC start and GC end, which are start and end of each pause of the collector, the program stands still at a safepoint "
                "while it is read: what is shown then is of one moment. At the clock the running program is read, and what changed "
                "meanwhile is unknown; a pause waits for a collection."
            ),
        )

    def open(self, server: Server) -> None:
        """Add the spaces; the program begins with the first tick or wait.

        Raises:
            TargetError: The JVM does not export what is needed.
            TargetGone: The target has ended.
        """
        super().open(server)
        jvm = self._jvm
        self._told = Collections(jvm.memory, jvm.tables, jvm.counters, jvm.heap())
        self._make_room()
        self._events.open(server)

    def tick(self) -> None:
        """Read the running program, unless a pause is due: then the next event is one at which it can be held.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
            TargetError: The agent has left the target.
        """
        server = self._opened()
        self._events.count_untold()
        if server.pausing or (self._level >= OBJECTS and not self._may_walk()):
            self._process.check()
            server.skip(CLOCK)
        else:
            self._tick(holds=False)
            self._looked_at = time.monotonic()
        self._make_room()
        self._events.prepare()

    def wait(self, secs: float) -> None:
        """Wait so long, or until a collection; see `gcspy_server.drivers.WaitingDriver`."""
        self._events.wait(secs)

    def went_on(self) -> bool:
        """Whether the target, held at an event that is not finished yet, goes on all the same."""
        return self._events.went_on()

    def close(self) -> None:
        """Let go of the target: it goes on at once, and its agent gives back all that it has."""
        self._events.close()
        self._agent.take_out()
        super().close()

    def prepare(self, server: Server, _event: StubEvent) -> None:
        """Follow the settings; see `Reader`."""
        self._follow_settings(server)

    def read(self, request: GatherRequest, event: StubEvent) -> None:
        """Gather what is wanted."""
        self._gather(request, held=True, settled=bool(event.kind))
        self._looked_at = time.monotonic()

    def pass_by(self, server: Server) -> None:
        """Nothing is kept from one event to the next."""

    def spoil(self) -> None:
        """Nothing is kept from one event to the next."""

    def cause_of(self, event: StubEvent) -> str:
        """Say which collector it was and why it ran, as far as the VM says it: some say that only during a collection."""
        if self._told is None:
            raise AssertionError("open comes first")
        cause = self._told.cause
        if not event.kind:
            return cause
        collector = self._told.ended()
        if not cause and collector and self._jvm.collector in _SAY_AFTERWARDS:
            cause = self._told.latest_cause
        return "; ".join(part for part in (collector, cause) if part)

    def _walks(self, objects: ObjectView) -> bool:
        """Not before the loops are compiled: what takes seconds would have the JVM wait at its next collection."""
        return not objects.coming

    def _may_walk(self) -> bool:
        """Tell whether the objects of the running JVM may be walked now.

        That takes long, and collections are only counted meanwhile: so only where none was looked at lately.
        """
        if time.monotonic() - self._looked_at < _RESTS_SECS:
            return False
        return self._events.be_busy()

    def _make_room(self) -> None:
        """Have warm memory for a copy of the objects, as far as is known now: fresh pages would make a hold several times longer."""
        if self._objects is not None and self._level >= OBJECTS:
            self._objects.warm()

    def _copied(self) -> None:
        self._events.let_go_early()
