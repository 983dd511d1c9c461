"""The driver for HotSpot: at each tick of the clock, what was read becomes spaces, tiles and streams.

Two kinds of event. Collections are noticed at the tick after them, by the VM's own counters; then the tick is a "Collections" event if
anybody wants one, and the clock is only counted, so that nothing is read twice. Pause holds the sampling: the program is not
stopped, and is not called so.

Knows views and the server's API; knows neither memory nor wire.
"""

from __future__ import annotations

import os
from functools import partial
from typing import ClassVar, Final

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone, Unsupported

from gcspy_drivers.hotspot.beside import Beside
from gcspy_drivers.hotspot.counting import Collections
from gcspy_drivers.hotspot.discover import look
from gcspy_drivers.hotspot.jvm import Jvm
from gcspy_drivers.hotspot.object_view import ObjectView
from gcspy_drivers.hotspot.pool_space import PoolSpace
from gcspy_drivers.hotspot.view import CARDS, TILE_SIZE, HeapView, tile_size_setting
from gcspy_drivers.hotspot.views import open_view
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.waiting import waited_nanos
from gcspy_server.api import (
    LEVEL,
    AttachOptions,
    GatherRequest,
    Mode,
    PauseActsOn,
    Recognition,
    Server,
    ServerDescription,
)

__all__ = ["CLOCK", "COLLECTIONS", "HotSpotDriver", "open_jvm"]

CLOCK: Final = 0
COLLECTIONS: Final = 1

_LEVELS: Final = (
    "1: bounds of spaces, regions, counters",
    "2: card table, code cache",
    "3: objects",
    "4: references",
)


class HotSpotDriver:
    """Watches one JVM, passively.

    Args:
        process: The process; closed here.
        jvm: The JVM in it.
        options: What the user chose.
        note: What the user should know of how it is watched.
    """

    name: ClassVar[str] = "hotspot"
    noticed: int | None = COLLECTIONS
    """Kind of event for collections that are noticed at the tick after them; None: there is none."""

    def __init__(
        self, process: Process, jvm: Jvm, options: AttachOptions, *, note: str = ""
    ) -> None:
        self._process = process
        self._jvm = jvm
        self._options = options
        self._note = note
        self._server: Server | None = None
        self._view: HeapView | None = None
        self._pools: PoolSpace | None = None
        self._beside: Beside | None = None
        self._objects: ObjectView | None = None
        self._collections: Collections | None = None
        self._tile_sizes: tuple[int, ...] = ()
        self._level = options.level

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        """Say cheaply whether the process is a JVM that can be watched; never raises."""
        try:
            found = look(pid)
        except TargetError as error:
            return Recognition(why_not=str(error))
        facts = (found.collector, f"heap {found.heap}" if found.heap else "")
        return Recognition(
            runtime=found.runtime,
            version=found.version,
            detail=", ".join(fact for fact in facts if fact),
            program=found.program,
            rungs=found.rungs,
            supported=bool(found.runtime) and not found.why_not,
            why_not=found.why_not,
        )

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> HotSpotDriver:
        """Find the VM's structures in a process, and verify them.

        Raises:
            TargetGone: There is no such process.
            NotPermitted: The system does not let us read it.
            Unsupported: It is no JVM that can be read, or not in the way that was asked for.
            TargetError: It is, and is not as its version should be.
        """
        note = ""
        if options.rung == "stopped":
            raise Unsupported(
                "a JVM cannot be held while it is read", found="stopped", known="passive"
            )
        if options.cooperates:
            from gcspy_drivers.hotspot.cooperative import CooperativeHotSpotDriver

            try:
                return CooperativeHotSpotDriver.attach(pid, options)
            except (TargetGone, NotPermitted):
                raise
            except TargetError as error:
                if options.inject != "auto":
                    raise
                note = f"No exact events: {error}. "
        return cls(*open_jvm(pid), options, note=note)

    def describe(self) -> ServerDescription:
        """How the session introduces itself."""
        jvm, pid = self._jvm, self._process.pid
        program = jvm.main_class or self._process.name
        return ServerDescription(
            name=f"{program} (Java {jvm.version}, {jvm.collector}, process {pid})",
            events=("Clock", "Collections"),
            levels=_LEVELS,
            level=self._level,
            processors=_processors(pid),
            waited_nanos=partial(waited_nanos, pid),
            mode=Mode.PASSIVE,
            pause_acts_on=PauseActsOn.SAMPLING,
            general_info=self._note
            + "Read from outside while it runs; what changed while it was read is read again, and then unknown.",
            target={
                "pid": str(pid),
                "runtime": "HotSpot",
                "version": jvm.version,
                "collector": jvm.collector,
                "driver": self.name,
                "image": jvm.image.path,
                "command": jvm.command,
            },
        )

    def open(self, server: Server) -> None:
        """Add the spaces, with the tiles that there are now.

        Raises:
            TargetError: The JVM does not export what is needed.
            TargetGone: The target has ended.
        """
        self._server = server
        jvm = self._jvm
        self._view = open_view(jvm, server, tiles=self._options.tiles)
        if self._view.tile_bytes is not None:
            low, high = self._view.extent
            setting, self._tile_sizes = tile_size_setting(high - low, self._view.tile_bytes)
            server.add_setting(setting)
        self._beside = Beside(jvm, server, tiles=self._options.tiles)
        self._pools = PoolSpace(server, [*self._view.pool_names, *self._beside.names])
        self._collections = Collections(jvm.memory, jvm.tables, jvm.counters, jvm.heap())
        self._objects = ObjectView(jvm, self._view, self._collections)
        self._objects.open(server, self._level)

    def tick(self) -> None:
        """Gather and finish the event that is due: collections, if there were any and anybody wants them, else the clock.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        self._tick(holds=True)

    def alive(self) -> bool:
        """Whether it is still the same process, running the same program; about 10 µs."""
        return self._process.alive()

    def close(self) -> None:
        """Let go of the target; it goes on running."""
        self._jvm.close()
        self._process.close()

    def _tick(self, *, holds: bool) -> None:
        """Gather and finish the event that is due.

        Args:
            holds: Whether what a pause acts on stands still at it.
        """
        server = self._opened()
        self._follow_settings(server)
        cause = "" if self._collections is None else self._collections.since()
        event, request = self._event_due(server, cause)
        if request is not None:
            self._gather(request)
        self._process.check()
        server.finish(event, cause if event == self.noticed else "", holds=holds)
        if event == self.noticed:
            server.skip(CLOCK)

    def _follow_settings(self, server: Server) -> None:
        self._level = server.take_setting(LEVEL)
        if self._tile_sizes and self._view is not None:
            self._view.cut(self._tile_sizes[server.take_setting(TILE_SIZE)])
        if self._objects is not None:
            self._objects.open(server, self._level)

    def _event_due(self, server: Server, cause: str) -> tuple[int, GatherRequest | None]:
        if cause and self.noticed is not None:
            request = server.should_transmit(self.noticed)
            if request is not None:
                return self.noticed, request
            server.skip(self.noticed)
        return CLOCK, server.should_transmit(CLOCK)

    def _opened(self) -> Server:
        if self._server is None:
            raise AssertionError("open comes first")
        return self._server

    def _copied(self) -> None:
        """Say that all was read that has to be of one moment: what follows is made of copies."""

    def _walks(self, _objects: ObjectView) -> bool:
        """Whether objects may be walked now, where they are wanted."""
        return True

    def _gather(self, request: GatherRequest, *, held: bool = False, settled: bool = False) -> None:
        """Read what is wanted and fill the spaces.

        Args:
            request: Who wants what.
            held: Whether the target stands still until `_copied`.
            settled: Whether it does so with no collection about to begin.
        """
        if self._view is None or self._pools is None or self._beside is None:
            raise AssertionError("open comes before tick")
        level = min(self._level, request.level)
        self._view.read(request, level)
        objects = (
            self._objects if self._objects is not None and self._walks(self._objects) else None
        )
        if objects is not None and not objects.wanted(request, level):
            objects = None
        copy = objects.copy(request, level) if objects is not None and held else None
        self._copied()
        pools = self._view.fill(request)
        code = self._beside.code
        if code is not None and level >= CARDS:
            self._beside.gather(fills=request.wants(code.space))
        if request.wants(self._pools.space):
            beside, note = self._beside.pools()
            if self._objects is not None and self._objects.why_not:
                note += f"; objects: not available, {self._objects.why_not}"
            self._pools.fill([*pools, *beside], note)
        if objects is not None and (copy is not None or not held):
            objects.gather(request, level, copy, settled=settled)


def open_jvm(pid: int) -> tuple[Process, Jvm]:
    """Find the VM's structures in a process, and verify them; both are the caller's to close.

    Raises:
        TargetGone: There is no such process.
        NotPermitted: The system does not let us read it.
        Unsupported: It is no JVM that can be read.
        TargetError: It is, and is not as its version should be; or it is starting.
    """
    process = Process(pid)
    try:
        jvm = Jvm(process, read_maps(process))
    except BaseException:
        process.close()
        raise
    try:
        jvm.refuse_unsupported()
        jvm.heap()
    except BaseException:
        jvm.close()
        process.close()
        raise
    return process, jvm


def _processors(pid: int) -> int:
    """How many processors a process may use; 0: it cannot be said."""
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return 0
