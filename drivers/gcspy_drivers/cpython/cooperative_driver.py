"""The driver for a CPython that cooperates: a stub in the target reports each collection, and the target waits.

Three kinds of event. At "GC start" and "GC end" the collecting thread waits and keeps the GIL, so
data under the GIL does not change while it is read: pymalloc, the collector's generations. Other
data may change: the memory map, since threads of C libraries keep running, and which is read in a
thread of its own, once a second; sub-interpreters with a GIL of their own. At levels 1 and 2 the
target goes on as soon as it was copied. The clock also ticks, reads the running program as in passive mode, and holds
nothing: a pause waits for a collection.

Knows the stub's events and the passive readers; knows neither wire nor memory.
"""

from __future__ import annotations

import platform
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_drivers.cooperative.held_events import HELLO_SECS
from gcspy_drivers.cooperative.line import StubEvent
from gcspy_drivers.cooperative.ring_buffer import CopyPlan, EventCopy
from gcspy_drivers.cpython.collection_accesses import (
    CollectionAccesses,
    open_accesses,
    open_pages,
)
from gcspy_drivers.cpython.collector.collector_time import CollectorTime
from gcspy_drivers.cpython.collector.survivors import Survivors
from gcspy_drivers.cpython.cooperation.injection import bring_in
from gcspy_drivers.cpython.cooperation.stub_events import cause_of
from gcspy_drivers.cpython.counting.package import package_as_json
from gcspy_drivers.cpython.counting.site_counts import SiteCounts
from gcspy_drivers.cpython.event_copies import EventCopies
from gcspy_drivers.cpython.heap_mirror import MOST_PAGES, HeapMirror
from gcspy_drivers.cpython.map_reader import MapReader
from gcspy_drivers.cpython.objects.kept_pools import WrittenPools
from gcspy_drivers.cpython.options import ACCESSES, COUNT, COUNT_HOT, COUNT_IN
from gcspy_drivers.cpython.passive_driver import (
    OBJECTS,
    POOLS,
    REFERENCES,
    PassiveDriver,
    Readings,
)
from gcspy_drivers.cpython.pool_writes import PoolWrites
from gcspy_drivers.cpython.pymalloc.obmalloc import Arenas, HeapReading
from gcspy_drivers.cpython.target import ObjectReading, PymallocHeap, Target
from gcspy_drivers.kit.counted_sites.site_space import SiteSpace
from gcspy_drivers.kit.memory_space import MemorySpace
from gcspy_drivers.kit.sampled_driver import CLOCK
from gcspy_drivers.kit.stubbed_driver import EXACT_KINDS, INJECT, StubbedDriver
from gcspy_drivers.remote.pages.accesses import CellAccesses
from gcspy_drivers.remote.pages.protection import ProtectedPages
from gcspy_drivers.remote.pages.written_pages import WrittenPages
from gcspy_server.api import (
    AttachOptions,
    DetailTable,
    GatherRequest,
    HeapQuestion,
    Investigator,
    Server,
    ServerDescription,
)

__all__ = ["CooperativeDriver", "modules_of"]

_SEARCH_REST_NANOS: Final = 1_000_000_000
"""How long after an event a tick does not search for objects, if events are recorded with their pages."""


class CooperativeDriver(StubbedDriver, PassiveDriver):
    """Monitors one CPython process that has a stub.

    Args:
        target: The process.
        options: The user's choices.
        connection: The socket that its stub talks to.
    """

    info = (
        "At GC start and GC end the program waits, with the interpreter's lock, while it is read: pymalloc and the "
        "generations are exact then. The memory map is not: it is read once a second while the program runs; nor are sub-interpreters with a lock of their own. At the "
        "clock the running program is read, and what changed meanwhile is unknown; a pause waits for a collection."
    )
    noticed = None

    def __init__(self, target: Target, options: AttachOptions, connection: socket.socket) -> None:
        super().__init__(target, options, connection)
        self._event: StubEvent | None = None
        self._copied_event: StubEvent | None = None
        self._time = CollectorTime(target.process.pid, lambda: self._line.stands_still)
        self._lists_at_start: tuple[int, npt.NDArray[np.int64]] | None = None
        self._map_reader = MapReader()
        self._arenas: list[Arenas] = []
        self._copies = EventCopies(target)
        self._accesses: CollectionAccesses | None = None
        self._asked_for_accesses = False
        self._read_still = False  # whether the target stood still until everything was read
        self._pages: WrittenPages | None = None
        self._is_open = True
        self._using_pages = threading.RLock()  # by one thread: see `announced_aside` and `_idle_at`
        self._writes: PoolWrites | None = None
        self._mirror: HeapMirror | None = None
        self._mirror_read = False  # whether objects are searched for in the mirror at this event
        self._searched_nanos = 0
        self._accesses_shown: tuple[HeapReading, int, CellAccesses] | None = None
        self._site_counts: SiteCounts | None = None
        self._site_space: SiteSpace | None = None

    @classmethod
    def find_target(cls, pid: int) -> Target:
        """Find the runtime's structures in a process; see `Target`."""
        return Target(pid)

    @classmethod
    def bring_in(cls, target: Target, options: AttachOptions) -> socket.socket:
        """Have a running interpreter take a stub; see `inject.bring_in`."""
        sites = options.text(COUNT.name)
        counting = b""
        if sites:
            hot_secs = float(options.values.get(COUNT_HOT.name, COUNT_HOT.default))
            counting = package_as_json(sites, modules_of(options.text(COUNT_IN.name)), hot_secs)
        return bring_in(target, options.text(INJECT), secs=HELLO_SECS, counting=counting)

    def description(self) -> ServerDescription:
        """Return the fields of the session's description; accesses can be seen from here on, or it says why not."""
        if not self._asked_for_accesses:
            self._asked_for_accesses = True
            choice = str(self.options.values.get(ACCESSES.name, ACCESSES.default))
            opened = open_pages(self.process, self._line)
            geometry = self._target.geometry
            self._pages = opened.pages
            if opened.pages is not None:
                self._writes = PoolWrites(opened.pages, geometry, opened.fault_nanos)
            if opened.pages is not None and opened.source is not None:
                self._open_mirror(opened.pages, opened.source, opened.fault_nanos)
            self._accesses, why_not = open_accesses(opened, self._line, geometry, choice)
            self._sees_accesses = self._accesses is not None
            self.note += f"{why_not[:1].upper()}{why_not[1:]}. " if why_not else ""
            if self.options.text(COUNT.name) and self._line.counts_fd < 0:
                self.note += "Allocation sites are not counted: that needs CPython 3.11 to 3.14. "
        return super().description()

    def _open_mirror(self, pages: WrittenPages, source: ProtectedPages, fault_nanos: int) -> None:
        """Have objects searched for in a copy of the memory, if the stub can record written pages."""
        if self._line.ring is not None and platform.machine() == "x86_64":
            self._mirror = HeapMirror(self._target, pages, source, fault_nanos)

    def changes(self) -> str:
        """Return nothing: the stub announces collections."""
        return ""

    def _follow_mode(self) -> None:
        """There is one mode only: the target stops itself."""

    def announced(self, server: Server, event: StubEvent) -> None:
        """Follow the interpreters and the level, and note the time."""
        if event.kind == 0:
            self._time.start(event.number)
        else:
            self._time.end(event.number, event.generation)
        super().announced(server, event)
        self._follow_pages(event)

    def announced_aside(self, event: StubEvent, /) -> None:
        """Read and reset the written pages; the event itself is recorded."""
        ring = self._line.ring
        if ring is not None and self._mirror is not None and self._mirror.complete:
            ring.keep(sys.maxsize)  # what they say of written pages belongs to this event
        with self._using_pages:
            self._follow_pages(event)
            if self._accesses is not None:
                self._accesses.keep(event)

    def _note_recorded_pages(self) -> None:
        """Tell accesses which pages recorded events found written."""
        ring, mirror = self._line.ring, self._mirror
        while ring is not None and mirror is not None and ring.regions:
            mirror.note(ring.regions.popleft())

    def _follow_pages(self, event: StubEvent) -> None:
        """See to the written pages at an event at which the target stands still."""

        def arenas() -> list[Arenas]:
            return self._target.arenas(self._interpreters)

        with self._using_pages:
            self._note_recorded_pages()

        if self._writes is not None:  # before accesses end their interval, which forgets them
            self._follow_writes(
                lambda writes: writes.announced(event.kind, event.generation, arenas)
            )
        if self._accesses is not None and self._accesses.ends_at(event):
            with self._using_pages:
                self._accesses.announced(event, arenas())
        if self._writes is not None:
            self._follow_writes(lambda writes: writes.let_collect())

    def gather_still(self, request: GatherRequest, event: StubEvent) -> None:
        """Gather what is wanted."""
        self._event = event
        self._charge_accesses()
        try:
            self.gather(request)
        finally:
            self._event = None
            self._mirror_read = False

    def copied(self) -> bool:
        """Let the target go on, unless something has to hold it after this event.

        What the clock read is not shown if a collection was recorded meanwhile: it may be of after that.
        """
        if self._event is None:
            if self._events.pending:
                self.server.discard()
                return False
        else:
            self._read_still = self._line.stands_still
            self._events.let_go_early()
        return True

    def copy_plan(self) -> CopyPlan | None:
        """Return what the stub copies at each event, of a program with one interpreter; at level 3 once all of its pages have been copied."""
        if self.level >= REFERENCES:
            return None
        plan = self._copies.plan(self._interpreters, pools=self.level >= POOLS)
        if self.level < OBJECTS or plan is None:
            return plan
        mirror, ring = self._mirror, self._line.ring
        if mirror is None or ring is None or not mirror.complete or ring.refusal:
            return None
        return replace(plan, pages=MOST_PAGES)

    def saw_new_pages(self) -> None:
        """Have the pages of new mappings followed."""
        if self._mirror is not None:
            with self._using_pages:
                self._mirror.follow_new()

    def announced_copy(self, event: StubEvent, copy: EventCopy, /) -> None:
        """Note the time."""
        if event.kind == 0:
            self._time.start_at(event.number, copy.processor_nanos)
        else:
            self._time.end_at(event.number, event.generation, copy.processor_nanos)

    def gather_copy(self, request: GatherRequest, event: StubEvent, copy: EventCopy, /) -> None:
        """Fill the spaces from a copy."""
        level = min(self.level, request.level)
        heaps = self._copies.heaps(copy) if level >= POOLS else None
        found: ObjectReading | None = None
        if self._take_pages(copy) and heaps is not None and level >= OBJECTS:
            found = self._search_mirror(request, heaps)
        self._charge_accesses()
        self._copied_event = event
        try:
            self._fill(request, Readings(heaps, found, self._copies.generations(copy)))
        finally:
            self._copied_event = None

    def _take_pages(self, copy: EventCopy) -> bool:
        """Take the pages of a recorded event; return whether objects can be searched for in the mirror."""
        mirror = self._mirror
        return mirror is not None and copy.plan.pages > 0 and mirror.take(copy.pages)

    def _search_mirror(
        self, request: GatherRequest, heaps: tuple[PymallocHeap, ...]
    ) -> ObjectReading | None:
        mirror = self._mirror
        if mirror is None or not super()._wants_objects(request):
            return None
        mirror.writes.take()
        self._searched_nanos = time.monotonic_ns()
        return self._objects.examine(
            heaps,
            self._interpreters,
            large=self._objects.wants_large(request),
            written=mirror.writes,
            mirror=mirror.target,
        )

    def pass_copy_by(self, copy: EventCopy, /) -> None:
        """Take the collector's numbers even if they are not sent, and the written pages; see `pass_by`."""
        self._take_pages(copy)
        self._charge_accesses()
        for reading in self._copies.generations(copy):
            self._survivors_of(reading.ident).look(reading.generations)

    def _written_pools(self) -> WrittenPools | None:
        """Return which pools may have been written since they were read last; None: it is not known."""
        mirror, ring = self._mirror, self._line.ring
        if mirror is not None and not mirror.refusal and ring is not None and not ring.refusal:
            if self._event is None:
                return None  # at a tick: written pages belong to the mirror
            with self._using_pages:
                copied = mirror.copy(self._events.pending, lost=ring.lost)
            if copied:
                ring.copied()
                mirror.writes.take()
                self._mirror_read = True
                return mirror.writes
        if self._writes is None:
            return None
        arenas = [heap.reading.arenas for heap in self._heaps_read]
        if not arenas:
            arenas = self._target.arenas(self._interpreters)
        # New arenas are followed from the next reading on; until then their pools count as written.
        self._follow_writes(lambda writes: writes.take(arenas))
        return self._writes

    def _follow_writes(self, step: Callable[[PoolWrites], None]) -> None:
        """Take a step; where it fails although the target goes on, writes are not followed any more."""
        if self._writes is None:
            return
        try:
            with self._using_pages:
                step(self._writes)
        except (TargetGone, NotPermitted):
            raise
        except TargetError:
            self._writes.close()
            self._writes = None

    def _wants_objects(self, request: GatherRequest) -> bool:
        """At a tick, search the running program only if there was no event for a second: that examines all pools."""
        if not super()._wants_objects(request):
            return False
        now = time.monotonic_ns()
        mirrored = self._mirror is not None and self._mirror.complete
        if self._event is None and mirrored and now < self._searched_nanos + _SEARCH_REST_NANOS:
            return False
        self._searched_nanos = now
        return True

    def _mirrored_target(self) -> Target | None:
        """Return the mirror, at an event at which it was brought up to date."""
        return self._mirror.target if self._mirror_read and self._mirror is not None else None

    def _fill(self, request: GatherRequest, readings: Readings) -> None:
        """Fill the requested spaces; allocation sites with the counts that came last."""
        super()._fill(request, readings)
        space = self._site_space
        if space is not None and request.wants(space.space):
            space.fill()

    def _charge_accesses(self) -> None:
        """Count what following accesses has cost the program against the budget."""
        with self._using_pages:
            asked = self._accesses, self._writes, self._mirror
            charges = [each.take_charge() for each in asked if each]
        for charge in charges:
            self.server.held(charge)

    def ticked(self, *, read: bool) -> None:
        """Follow accesses while somebody asks for them."""
        super().ticked(read=read)
        counts = self._site_counts
        if counts is not None:
            if any(self.server.outlook(kind).period for kind in (CLOCK, *EXACT_KINDS)):
                counts.ask()
            if counts.problem and self._site_space is not None:
                self._site_space.space.tell(f"No more counts: {counts.problem}.")
        if self._accesses is not None:
            wanted = self.level >= POOLS and any(
                self.server.outlook(kind).period for kind in (CLOCK, *EXACT_KINDS)
            )
            with self._using_pages:
                self._accesses.follow(self._target.arenas(self._interpreters), wanted=wanted)

    def _accesses_of(self, reading: HeapReading) -> tuple[CellAccesses | None, str]:
        """Return the accesses to the pools of a reading, and to which time they belong."""
        with self._using_pages:
            return self._locked_accesses_of(reading)

    def _locked_accesses_of(self, reading: HeapReading) -> tuple[CellAccesses | None, str]:
        self._note_recorded_pages()
        accesses = self._accesses
        if accesses is None or accesses.problem:
            return None, "" if accesses is None else accesses.since(time.monotonic_ns())
        if self._copied_event is not None:
            then = accesses.at(self._copied_event, reading.pools.address)
            if then is not None:
                return then
        try:
            accesses.refresh([heap.reading.arenas for heap in self._heaps_read])
        except TargetGone:
            if self._copied_event is None:
                raise
            return (
                None,
                "",
            )  # recorded before the program's end: what it wrote since nobody can tell
        shown = self._accesses_shown
        if shown is None or shown[0] is not reading or shown[1] != accesses.number:
            found = accesses.of_pools(reading.pools.address)
            shown = self._accesses_shown = reading, accesses.number, found
        return shown[2], accesses.since(time.monotonic_ns())

    def investigator(self) -> Investigator | None:
        """Return what answers questions about objects and says how much of them is idle, if accesses are seen."""
        return self._investigate if self._accesses is not None else None

    def _investigate(
        self, question: HeapQuestion, progress: Callable[[str, int, int], None]
    ) -> DetailTable:
        from gcspy_drivers.cpython.graph.answers import answer

        with Target(self.process.pid) as target:
            return answer(target, question, progress, self._idle_at)

    def _idle_at(self, address: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.bool_], str]:
        """Return whether the pool of each address is known not to have been accessed, (n,), and in which time; in any thread."""
        nothing = np.zeros(len(address), dtype=np.bool_)
        with self._using_pages:
            self._note_recorded_pages()
            accesses = self._accesses
            if accesses is None or accesses.problem or not self._is_open:
                return nothing, ""
            accesses.refresh(self._target.arenas(self._interpreters))
            mask = np.uint64(self._target.geometry.pool_bytes - 1)
            found = accesses.of_pools(address & ~mask)
            return found.known & (found.accessed_bytes == 0), accesses.since(time.monotonic_ns())

    def start(self) -> None:
        """Add the spaces; nothing is held yet, so the first memory map is read now."""
        super().start()
        counts = self._line.take_counts()
        if counts >= 0:
            self._site_counts = SiteCounts(counts)
            self._site_space = SiteSpace(self.server, self._site_counts, self.name)
        self._read_map_beside(self._target.arenas(self._interpreters))
        self._map_reader.wait()

    def close(self) -> None:
        """Release the target."""
        self._map_reader.wait()
        with self._using_pages:
            self._is_open = False
            for each in (self._accesses, self._writes, self._pages, self._mirror):
                if each is not None:
                    each.close()
        if self._site_counts is not None:
            self._site_counts.close()
        super().close()

    def _fill_memory(self, memory: MemorySpace, heaps: tuple[PymallocHeap, ...]) -> None:
        """Show the memory map that was read last, and have it read again."""
        latest = self._map_reader.take()
        if latest is not None:
            self._show_map(memory, latest.found, latest.age_text(time.monotonic_ns()))
        self._read_map_beside([heap.reading.arenas for heap in heaps])

    def _read_map_beside(self, arenas: list[Arenas]) -> None:
        if arenas:
            self._arenas = arenas
        known = self._arenas
        self._map_reader.ask(lambda: self._read_map(known))

    def spoil(self) -> None:
        """Discard the lengths of lists that were counted while the target continued."""
        self._lists_at_start = None

    def cause_of(self, event: StubEvent) -> str:
        """Return the runtime's report."""
        return cause_of(event)

    def pass_by(self, server: Server) -> None:
        """Sample the collector's numbers even if they are not sent: survivors follow from two samples only."""
        begin = time.monotonic_ns()
        self._charge_accesses()
        for reading in self._target.generations(self._interpreters):
            self._survivors_of(reading.ident).look(reading.generations)
        server.held(time.monotonic_ns() - begin)

    def _spent(self, ident: int) -> CollectorTime | None:
        """Return the duration of the reported collections; the stub is in the main interpreter."""
        return self._time if ident == 0 else None

    def _compare_lists(self, ident: int, survivors: Survivors) -> None:
        """Compare the lists' lengths at the end of a collection with those at its start, if both were counted whole."""
        event = self._event or self._copied_event
        if ident != 0 or event is None:
            return  # the stub is in the main interpreter
        still = self._read_still or self._copied_event is not None
        lengths = self._objects.lengths(ident) if self._counted and still else None
        start, self._lists_at_start = self._lists_at_start, None
        if lengths is None:
            return
        if event.kind == 0:
            self._lists_at_start = event.number, lengths
        elif start is not None and start[0] == event.number:
            survivors.compare(event.generation, start[1], lengths)


def modules_of(text: str) -> tuple[str, ...]:
    """Return the names in a text with commas between them."""
    return tuple(filter(None, (each.strip() for each in text.split(","))))
