"""The driver for glibc's malloc: passive, or stopped while the heap is read.

Knows readings and the server's API; does not know memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.kit.memory_history_space import HeapBytes
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_drivers.kit.stopped_mode import LONGEST_HOLD_SECS, StoppedMode
from gcspy_drivers.malloc.age_streams import ages_text
from gcspy_drivers.malloc.arena_space import ArenaSpace
from gcspy_drivers.malloc.heap_space import HeapSpace
from gcspy_drivers.malloc.list_spaces import BinSpace, CacheSpace, ClassSpace, MappedSpace
from gcspy_drivers.malloc.options import OPTIONS
from gcspy_drivers.malloc.recognition import RUNTIME, find
from gcspy_drivers.native_heap.malloc_reader import (
    ARENAS,
    BINS_LEVEL,
    CHUNKS,
    MallocReader,
    MallocReading,
)
from gcspy_drivers.remote.pages.access_table import AccessTable, TableAges
from gcspy_drivers.remote.pages.page_ages import PageAges
from gcspy_drivers.remote.pages.unprepared_process import open_written_pages
from gcspy_drivers.remote.pages.written_pages import WrittenPages
from gcspy_drivers.remote.process import Process
from gcspy_server.api import (
    AttachOptions,
    GatherRequest,
    PauseActsOn,
    Recognition,
    ServerDescription,
    ServerSpace,
)

__all__ = ["MallocDriver"]

_LEVELS: Final = (
    "1: arenas and thread caches",
    "2: lists of free chunks",
    "3: all chunks",
    "4: resident pages",
)
_MOST_HOLDS: Final = 2
"""A thread may have been stopped inside malloc; then all are stopped once more."""
_MALLOC: Final = "malloc"


class MallocDriver(SampledDriver):
    """Monitors the malloc of one process.

    Args:
        process: The process.
        options: The user's choices.
    """

    name: ClassVar[str] = "malloc"
    runtime = RUNTIME
    levels = _LEVELS
    declared_options = OPTIONS
    info = (
        "Passive: read from outside while it runs; chunks that change during the read are unknown. "
        f"Stopped: all threads are stopped while the heap is read, for at most {LONGEST_HOLD_SECS:g} s. "
        "Chunks in thread caches are shown as free; malloc itself counts them as in use."
    )

    def __init__(self, process: Process, options: AttachOptions) -> None:
        super().__init__(process, options)
        self._stopped = StoppedMode(process, options)
        self._reader = MallocReader(process)
        try:
            self._stopped.check()
        except BaseException:
            self._reader.close()
            raise
        self._last: MallocReading | None = None
        self._pages: WrittenPages | None = None
        self._no_ages = ""

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        """Check quickly whether the process has a malloc that can be monitored."""
        return find(pid)

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts about the target."""
        return {"library": self._reader.location.path}

    def description(self) -> ServerDescription:
        """Return what distinguishes the session; see `ServerDescription`."""
        return ServerDescription(
            name=self.title,
            events=self.events,
            mode=self._stopped.mode,
            modes=self._stopped.modes,
            mode_refusal=self._stopped.refusal,
            pause_acts_on=PauseActsOn.SAMPLING,
            general_info=self.info,
        )

    def _follow_ages(self) -> None:
        """Make it possible to see for how long memory is not used, if the user wants that; or note why it is not."""
        if self.options.text("ages") != "on":
            return
        try:
            table = AccessTable.find(self.process)
            if table is not None:
                self._reader.ages = TableAges(table)
                return
            self._pages, fault_nanos = open_written_pages(self.process)
        except TargetGone:
            raise
        except TargetError as error:
            self._no_ages = f"For how long memory is not used is not known: {error}."
            return
        self._reader.ages = PageAges(self._pages, fault_nanos)

    def start(self) -> None:
        """Add the spaces."""
        server = self.server
        self._follow_ages()
        ages = self._reader.ages
        self._heap = HeapSpace(server, ages=ages)
        self._arenas = ArenaSpace(server)
        self._bins = BinSpace(server)
        self._classes = ClassSpace(server, ages=ages)
        self._mapped = MappedSpace(server, ages=ages)
        self._caches = CacheSpace(server)

    def prepare(self) -> None:
        """Apply level and mode."""
        super().prepare()
        self._stopped.follow(self.server)

    def gather(self, request: GatherRequest) -> None:
        """Read the heap at the level, and fill the requested spaces."""
        level = self._needed(request)
        note = ""
        if self._stopped.on:
            reading, note = self._read_held(level, request)
        else:
            reading = self._read(level, request)
        self._last = reading
        wants = request.wants
        if wants(self._arenas.space):
            self._arenas.fill(reading, self._anonymous_bytes())
            if note:
                self._arenas.space.info += f" {note}"
            for text in (self._no_ages, ages_text(reading)):
                if text:
                    self._arenas.space.info += f" {text}"
        if self._reader.ages is not None:
            self.server.held(self._reader.ages.take_charge())
        if wants(self._caches.space):
            self._caches.fill(reading)
        if level >= BINS_LEVEL:
            if wants(self._bins.space):
                self._bins.fill(reading)
            if wants(self._mapped.space):
                self._mapped.fill(reading)
            if wants(self._heap.space):
                self._heap.fill(reading)
        if level >= CHUNKS and wants(self._classes.space):
            self._classes.fill(reading)

    @property
    def managers(self) -> tuple[str, ...]:
        """Names of the memory managers."""
        return (_MALLOC,)

    def heap_bytes(self) -> Mapping[str, HeapBytes]:
        """Return the memory of malloc, as read at the current event."""
        reading = self._last
        if reading is None or not reading.arenas or reading.parameters is None:
            return {}
        mapped = reading.parameters.mapped_bytes
        system = sum(arena.system_bytes for arena in reading.arenas)
        used: int | None = None
        tops = [arena.top_bytes for arena in reading.arenas]
        if (
            reading.lists
            and not reading.missed_caches
            and all(lists.whole for lists in reading.lists)
            and None not in tops
        ):
            free = sum(lists.free_bytes + lists.fast_bytes for lists in reading.lists)
            cached = 0 if reading.cached is None else int(reading.cached[1].sum())
            used = max(0, system - free - cached - sum(filter(None, tops))) + mapped
        return {_MALLOC: HeapBytes(used, system + mapped)}

    def close(self) -> None:
        """Release the target, which keeps running."""
        if self._pages is not None:
            self._pages.close()
        self._reader.close()
        super().close()

    def _needed(self, request: GatherRequest) -> int:
        """Return the level that the requested spaces need, at most the chosen one."""
        level = min(self.level, request.level)
        walked: tuple[ServerSpace, ...] = (
            self._heap.space,
            self._classes.space,
            self._arenas.space,
        )
        listed = (self._bins.space, self._mapped.space)
        if any(request.wants(space) for space in walked):
            return level
        if any(request.wants(space) for space in listed):
            return min(level, BINS_LEVEL)
        return ARENAS

    def _read(self, level: int, request: GatherRequest) -> MallocReading:
        bins = request.wants(self._bins.space)
        return self._reader.read(level, tiles=self.options.tiles, bins=bins)

    def _read_held(self, level: int, request: GatherRequest) -> tuple[MallocReading, str]:
        """Read it while it is stopped; with a note, and while it runs, where it cannot be."""
        try:
            for _ in range(_MOST_HOLDS):
                with self._stopped.held() as hold:
                    reading = self._read(level, request)
                self.server.held(hold.nanos)
                if reading.is_whole:
                    break
        except TargetGone:
            raise
        except TargetError as error:
            return self._read(level, request), f"Read while it ran: {error}."
        note = f"{hold.threads} threads were held for {hold.nanos / 1e6:.1f} ms."
        if hold.expired:
            note += f" They were resumed after {LONGEST_HOLD_SECS:g} s, before all was read."
        return reading, note

    def _anonymous_bytes(self) -> int | None:
        return self._reader.anonymous_bytes()
