"""The driver for a JVM that has our agent: it reports each collection at its safepoint, and waits while it is read.

At "GC start" and "GC end" the JVM itself has stopped all Java threads and the collecting thread
waits for us: bounds, regions, cards and objects are of one moment. There is one of each for each
pause of the collector, and not for each collection: for Shenandoah and ZGC these are the short
pauses of a cycle, for G1 also its remark and clean-up. Concurrent work is noticed at the tick after
it, as without an agent. The clock also ticks, reads a running JVM, and holds nothing: a pause waits
for a collection.

Knows the stub's events, the agent, and the passive readers; knows neither wire nor memory.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import Final

from gcspy_drivers.cooperative.held_events import HELLO_SECS
from gcspy_drivers.cooperative.line import StubEvent
from gcspy_drivers.hotspot.agent.agent import Agent
from gcspy_drivers.hotspot.heaps.heap_view import OBJECTS
from gcspy_drivers.hotspot.passive_driver import PassiveJvmDriver
from gcspy_drivers.hotspot.spaces.object_view import JavaObjectView
from gcspy_drivers.hotspot.vm.collection_counts import CollectionCounter
from gcspy_drivers.hotspot.vm.target import JvmTarget, open_jvm
from gcspy_drivers.kit.sampled_driver import CLOCK
from gcspy_drivers.kit.stubbed_driver import EXACT_EVENTS, EXACT_KINDS, INJECT, StubbedDriver
from gcspy_server.api import AttachOptions, GatherRequest

__all__ = ["GC_END", "GC_START", "CooperativeHotSpotDriver"]

GC_START, GC_END = EXACT_KINDS
_COLLECTIONS: Final = 3

_RESTS_SECS: Final = 1.0
"""Time after an event in which the objects of the running JVM are not walked: those read at a collection are more accurate."""

_CONCURRENT: Final = ("Shenandoah", "Generational Shenandoah", "ZGC", "Generational ZGC")
"""Collectors that do most of their work concurrently, which no pause reports."""

_SAY_AFTERWARDS: Final = ("Serial", "Parallel", "CMS")
"""Collectors whose VM has cleared the cause when the end is reported, and has it as that of the latest collection."""


@dataclass(frozen=True)
class AgentTarget(JvmTarget):
    """A JVM, and what brings our agent in, and takes it out."""

    agent: Agent


class CooperativeHotSpotDriver(StubbedDriver, PassiveJvmDriver):
    """Monitors one JVM that has our agent.

    Args:
        target: The process, and the JVM in it; closed here.
        options: The user's choices.
        connection: The socket that its agent talks to; taken over.
    """

    info = (
        "At GC start and GC end, which are start and end of each pause of the collector, the program is stopped at a safepoint while it is read: the values are of one moment. At the clock the running program is read, and what changed "
        "meanwhile is unknown; a pause waits for a collection."
    )

    def __init__(
        self, target: AgentTarget, options: AttachOptions, connection: socket.socket
    ) -> None:
        super().__init__(target, options, connection)
        self.noticed = _COLLECTIONS if target.jvm.collector in _CONCURRENT else None
        self._agent = target.agent
        self._told: CollectionCounter | None = None
        self._looked_at = -_RESTS_SECS
        self._walking = True
        self._started = 0, ""

    @classmethod
    def find_target(cls, pid: int) -> AgentTarget:
        """Find the VM's structures in a process; see `open_jvm`."""
        found = open_jvm(pid)
        return AgentTarget(found.process, found.jvm, Agent(found.process))

    @classmethod
    def bring_in(cls, target: AgentTarget, options: AttachOptions) -> socket.socket:
        """Have a running JVM load our agent; see `Agent.bring_in`."""
        return target.agent.bring_in(target.jvm, options.text(INJECT), secs=HELLO_SECS)

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the kinds of event."""
        return EXACT_EVENTS if self.noticed is None else (*EXACT_EVENTS, "Collections")

    def start(self) -> None:
        """Add the spaces; see `PassiveJvmDriver.start`."""
        super().start()
        jvm = self._jvm
        self._told = CollectionCounter(jvm.memory, jvm.tables, jvm.counters, jvm.heap())

    def may_read_running(self) -> bool:
        """Return whether the running JVM may be read: with objects only if none were read recently."""
        self._walking = self.level < OBJECTS or self._may_walk()
        return self._walking or self.server.outlook(CLOCK).exact

    def ticked(self, *, read: bool) -> None:
        """Note when the JVM was read."""
        if read and self._walking:
            self._looked_at = time.monotonic()
        self._walking = True
        self.look_beside()

    def make_room(self) -> None:
        """Have warm memory for a copy of the objects: fresh pages would make a hold several times longer."""
        if self._objects is not None and self.level >= OBJECTS:
            self._objects.warm()

    def take_out(self) -> None:
        """Make the agent release all its resources."""
        self._agent.take_out()

    def gather_still(self, request: GatherRequest, event: StubEvent) -> None:
        """Gather the requested data."""
        self._gather(request, held=True, settled=bool(event.kind))
        self._looked_at = time.monotonic()

    def cause_of(self, event: StubEvent) -> str:
        """Describe which collector ran and why, as far as the VM reports it: some do so only during a collection."""
        if self._told is None:
            raise AssertionError("open comes first")
        cause = self._told.cause
        if not event.kind:
            self._started = event.number, cause
            return cause
        if not cause and self._started[0] == event.number:
            cause = self._started[1]  # G1 has often cleared it when it reports the end
        collector = self._told.ended()
        if not cause and collector and self._jvm.collector in _SAY_AFTERWARDS:
            cause = self._told.latest_cause
        return "; ".join(part for part in (collector, cause) if part)

    def _walks(self, objects: JavaObjectView) -> bool:
        """Not before the loops are compiled: a slow walk would make the JVM wait at its next collection."""
        return self._walking and not objects.coming

    def _may_walk(self) -> bool:
        """Return whether the objects of the running JVM may be walked now.

        That takes long, and collections are only counted meanwhile: so only if none were read
        recently.
        """
        if time.monotonic() - self._looked_at < _RESTS_SECS:
            return False
        return self._events.be_busy()

    def _copied(self) -> None:
        self._events.let_go_early()
