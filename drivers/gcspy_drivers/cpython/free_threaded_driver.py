"""The driver for a Python without a lock (free-threaded): shows only what its stub reports about collections; reads no memory.

Such a program cannot be stopped by keeping the GIL, and has neither pymalloc nor lists of objects.
So nothing of its heap is shown, and nothing is held: its stub reports collections and continues.
"GC start" and "GC end" have the collector's numbers as the program itself reports them at that
moment; the clock has the kernel's map of its memory. A pause stops the sampling.

Knows the stub's line and the kernel's files; knows no structure of the runtime.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone, Unsupported

from gcspy_drivers.cooperative.event_accounting import EventAccounting
from gcspy_drivers.cooperative.line import StubEvent, StubLine, StubLost
from gcspy_drivers.cpython.collector.collection_rings import TIMED, CollectionTimes, ToldTime
from gcspy_drivers.cpython.collector.generations import GENERATIONS, Generations
from gcspy_drivers.cpython.collector.survivors import Survivors
from gcspy_drivers.cpython.cooperation.stub import NUMBERS
from gcspy_drivers.cpython.cooperation.stub_events import GC_END, GC_START, KINDS, cause_of
from gcspy_drivers.cpython.discovery import FREE_THREADED_RUNTIME, look
from gcspy_drivers.cpython.layouts.debug_offsets import FREE_THREADED, with_gil
from gcspy_drivers.cpython.recognition import find_free_threaded
from gcspy_drivers.cpython.spaces.generation_space import GenerationSpace
from gcspy_drivers.cpython.spaces.object_view import title_of
from gcspy_drivers.cpython.spaces.process_memory_space import open_memory_space
from gcspy_drivers.kit.memory_map import MemoryMapper
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_drivers.kit.stubbed_driver import EXACT_EVENTS
from gcspy_drivers.remote.process import Process
from gcspy_server.api import (
    AttachOptions,
    DetailTable,
    GatherRequest,
    HeapQuestion,
    MemoryQuestion,
    MemoryReport,
    Mode,
    PauseActsOn,
    Recognition,
    Server,
    ServerDescription,
    WaitingDriver,
)

__all__ = ["FreeThreadedDriver"]

_HELLO_SECS: Final = 10.0
_NO_ARENAS: Final = np.zeros(0, dtype=np.uint64)


class FreeThreadedDriver(SampledDriver, WaitingDriver):
    """Takes the reports of one process with a stub.

    Args:
        process: The process; taken over.
        options: The user's choices.
        version: Version of its Python, as text; empty if unknown.
        line: The connection to its stub, which has sent its hello; this takes ownership.
    """

    name: ClassVar[str] = "cpython"
    runtime = FREE_THREADED_RUNTIME
    has_stub = True
    info = "Reported: this Python has no global lock that could stop it, so its objects are not read. At GC start and GC end it reports the statistics of its collector and continues; a pause stops the sampling, not the program."

    def __init__(
        self, process: Process, options: AttachOptions, version: str, line: StubLine
    ) -> None:
        super().__init__(process, options)
        self._version = version
        self._line = line
        self._accounting = EventAccounting(line, KINDS)
        self._mapper = MemoryMapper(process)
        self._times = _Times()
        self._survivors = Survivors()  # none are known

    @classmethod
    def investigate(
        cls, pid: int, _question: HeapQuestion, _progress: Callable[[str, int, int], None], /
    ) -> DetailTable:
        """Refuse: its objects are not read; see the base class."""
        raise _not_read(pid)

    @classmethod
    def explain_memory(
        cls, pid: int, _question: MemoryQuestion, _progress: Callable[[str, int, int], None], /
    ) -> Iterator[MemoryReport]:
        """Refuse: its objects are not read; see the base class."""
        raise _not_read(pid)

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        """Check quickly whether the process is a Python without a GIL."""
        return find_free_threaded(pid)

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> FreeThreadedDriver:
        """Meet the stub of a process.

        Raises:
            Unsupported: It has none: nothing can be read from outside.
            TargetError: The process has ended, or its stub is not one that only reports.
        """
        if options.stub_fd is None:
            found = look(pid)
            known = with_gil(found.numbers[:2])
            raise Unsupported(
                FREE_THREADED, found=f"{FREE_THREADED_RUNTIME} {found.version}", known=known
            )
        connection = socket.socket(fileno=options.stub_fd)
        try:
            # Before its hello it may not be the program yet that it is to be.
            select.select([connection], [], [], _HELLO_SECS)
            found = look(pid)
            process = Process(pid, start_ticks=found.start_ticks)
        except BaseException:
            connection.close()
            raise
        driver = cls(
            process,
            options,
            found.version,
            StubLine(connection, process, lambda _secs: False),
        )
        try:
            driver._line.begin(_HELLO_SECS)
            if driver._line.holds:
                raise TargetError(
                    f"process {pid}: its stub would have to be read while it waits, and this Python cannot be read"
                )
        except BaseException:
            driver.close()
            raise
        return driver

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the kinds of event."""
        return EXACT_EVENTS

    @property
    def version(self) -> str:
        """Its version, as people write it; empty: not known."""
        return self._version

    def description(self) -> ServerDescription:
        """Return what distinguishes the session."""
        return ServerDescription(
            name=self.title,
            events=self.events,
            mode=Mode.COOPERATIVE,
            pause_acts_on=PauseActsOn.SAMPLING,
            pairs=(KINDS,),
        )

    def start(self) -> None:
        """Add the spaces; the target begins with the first tick or wait."""
        self._generations = GenerationSpace(self.server, title_of("GC generations", 0))
        self._memory = open_memory_space(self.server, main=True)
        self._accounting.want(self.server)

    def prepare(self) -> None:
        """Count unreported events."""
        self._accounting.count_untold(self.server)

    def gather(self, request: GatherRequest) -> None:
        """Read the kernel's map of the process's memory."""
        if request.wants(self._memory.space):
            self._read_map()

    def sample(self) -> None:
        """Gather and finish the event of the clock; see `SampledDriver.sample`."""
        super().sample()
        self._accounting.want(self.server)
        self._line.let_begin()

    def wait(self, secs: float) -> None:
        """Wait until the time is over, or until the target has reported a collection; see `gcspy_server.drivers.WaitingDriver`.

        Raises:
            TargetError: The stub has left the target.
        """
        server = self.server
        self._accounting.want(server)
        self._line.let_begin()
        try:
            event = self._line.wait(secs)
        except StubLost as error:
            self.process.check()  # that it has ended is the better message
            raise TargetError(
                f"process {self.process.pid} is alive, but {error}: attach again"
            ) from error
        if event is not None:
            self._take(server, event)

    def close(self) -> None:
        """Release the target; its stub leaves it at its next collection."""
        self._line.close()
        super().close()

    def _take(self, server: Server, event: StubEvent) -> None:
        kind = GC_END if event.kind else GC_START
        self._accounting.count_to_event(server, event)
        self._times.take(event)
        request = server.should_transmit(kind)
        if request is not None:
            self.gather_event(request, lambda wanted: self._gather_collection(wanted, event))
        server.finish(kind, cause_of(event))

    def _gather_collection(self, request: GatherRequest, event: StubEvent) -> None:
        if request.wants(self._generations.space):
            self._fill(event)

    def _fill(self, event: StubEvent) -> None:
        if len(event.more) != NUMBERS.size:
            self._generations.fill(None, self._survivors)
            return
        told = np.array(NUMBERS.unpack(event.more), dtype=np.int64).reshape(-1, GENERATIONS)
        count, threshold, collections, collected, uncollectable = told
        found = Generations(
            enabled=False,
            collecting=False,
            count=count.astype(np.int32),
            threshold=threshold.astype(np.int32),
            collections=collections,
            collected=collected,
            uncollectable=uncollectable,
            long_lived=0,
            pending=0,
            garbage=None,
            whole=False,
        )
        spent = self._times.told()
        self._generations.fill(
            found,
            self._survivors,
            spent=spent,
            note="" if spent is None else spent.note(self._times.numbers),
        )

    def _read_map(self) -> None:
        try:
            found = self._mapper.read(_NO_ARENAS, 0)
        except (TargetGone, NotPermitted):
            raise
        except TargetError:
            found = None  # it changed while it was read
        self._memory.fill(found)


class _Times:
    """The times of the collections whose start and end were reported."""

    def __init__(self) -> None:
        self._started: tuple[int, int] | None = None
        self._last = np.zeros(GENERATIONS, dtype=TIMED)
        self._total_nanos: npt.NDArray[np.int64] = np.zeros(GENERATIONS, dtype=np.int64)

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """(3,) how many of each generation."""
        numbers: npt.NDArray[np.int64] = self._last["number"]
        return numbers

    def take(self, event: StubEvent) -> None:
        if event.kind == 0:
            self._started = event.number, event.time_nanos
            return
        started, self._started = self._started, None
        generation = event.generation
        if (
            started is None
            or started[0] != event.number
            or generation >= GENERATIONS
            or event.time_nanos < started[1]
        ):
            return
        self._total_nanos[generation] += event.time_nanos - started[1]
        self._last[generation] = (
            generation,
            self._last[generation]["number"] + 1,
            started[1],
            event.time_nanos,
        )

    def told(self) -> ToldTime | None:
        """Return the collector's reported times, for the streams; None before the first report."""
        recent = np.sort(self._last[self._last["number"] > 0], order="start")
        return ToldTime(CollectionTimes(recent, self._total_nanos)) if len(recent) else None


def _not_read(pid: int) -> Unsupported:
    return Unsupported(
        f"process {pid}: who holds its objects cannot be found in a free-threaded Python",
        found=FREE_THREADED_RUNTIME,
        known="CPython 3.9 to 3.15 with a global lock",
    )
