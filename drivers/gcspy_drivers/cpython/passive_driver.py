"""The driver for CPython without a stub: at each tick of the clock, it reads memory and fills spaces, tiles and streams.

Two kinds of event. A collection is noticed at the tick after it, by the collector's own statistics;
then the tick is a "Collections" event if requested, and the clock is only counted, so that nothing
is read twice. Pause stops the sampling, not the program, and is named so.

Knows the target's readings and the server's API; knows neither memory nor wire.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_drivers.cpython.collector.collection_rings import ToldTime, times_text
from gcspy_drivers.cpython.collector.collector_time import CollectorSamples, CollectorTime
from gcspy_drivers.cpython.collector.generations import Generations
from gcspy_drivers.cpython.collector.interpreters import Interpreter
from gcspy_drivers.cpython.collector.survivors import Survivors
from gcspy_drivers.cpython.map_reader import next_map_nanos
from gcspy_drivers.cpython.objects import machine_code
from gcspy_drivers.cpython.objects.kept_pools import WrittenPools
from gcspy_drivers.cpython.pymalloc.obmalloc import Arenas, HeapReading, used_bytes
from gcspy_drivers.cpython.pymalloc.pool_tiling import HeapTiles
from gcspy_drivers.cpython.recognition import find_with_gil
from gcspy_drivers.cpython.spaces.arena_occupancy_space import ArenaOccupancySpace
from gcspy_drivers.cpython.spaces.arena_space import ArenaSpace
from gcspy_drivers.cpython.spaces.generation_space import (
    GenerationSpace,
    cause_text,
    collections_between,
)
from gcspy_drivers.cpython.spaces.object_view import ObjectView, title_of
from gcspy_drivers.cpython.spaces.process_memory_space import open_memory_space
from gcspy_drivers.cpython.spaces.size_class_space import SizeClassSpace
from gcspy_drivers.cpython.stopped_target import ABOUT_HOLDS, HeldReader
from gcspy_drivers.cpython.target import (
    InterpreterReading,
    ObjectCopies,
    ObjectReading,
    PymallocHeap,
    Target,
)
from gcspy_drivers.kit.memory_history_space import HeapBytes
from gcspy_drivers.kit.memory_map import MemoryMap
from gcspy_drivers.kit.memory_space import MemorySpace
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_drivers.kit.stopped_mode import StoppedMode
from gcspy_drivers.remote.pages.accesses import CellAccesses
from gcspy_server.api import (
    AttachOptions,
    GatherRequest,
    PauseActsOn,
    Recognition,
    Server,
    ServerDescription,
    ServerSpace,
)

__all__ = ["COLLECTIONS", "OBJECTS", "POOLS", "REFERENCES", "PassiveDriver", "Readings"]

POOLS: Final = 2
OBJECTS: Final = 3
REFERENCES: Final = 4
"""Levels: 1 reads the collectors' states only, 2 pool headers and the memory map too, 3 searches for objects in all pools, 4 for references in them."""

_LEVELS: Final = (
    "1: the collector's counters",
    "2: pool headers and the memory map",
    "3: objects in all pools",
    "4: references in them",
)

COLLECTIONS: Final = 1

_PYMALLOC: Final = "pymalloc"

_MOST_SHOWN: Final = 16
"""Interpreters that get spaces of their own; a server of hundreds would drown in them."""


@dataclass(frozen=True)
class Readings:
    """Data that was read at one event.

    Attributes:
        heaps: The states of pymalloc; None: they were not read.
        objects: The objects that were found; None: they were not searched for.
        generations: The collectors; None: they were not read.
    """

    heaps: tuple[PymallocHeap, ...] | None = None
    objects: ObjectReading | None = None
    generations: tuple[InterpreterReading, ...] | None = None


@dataclass
class _HeapSpaces:
    """The spaces of one pymalloc."""

    tiles: HeapTiles
    arenas: ArenaSpace
    classes: SizeClassSpace
    whole: ArenaOccupancySpace

    latest: HeapReading | None = None

    def known(self, reading: HeapReading) -> HeapReading:
        """Return the reading before, if this one is the same: the spaces then have its values."""
        if self.latest is None or not reading.is_same(self.latest):
            self.latest = reading
        return self.latest

    @property
    def all(self) -> tuple[ServerSpace, ...]:
        """The spaces themselves."""
        return self.arenas.space, self.classes.space, self.whole.space


class PassiveDriver(SampledDriver):
    """Monitors one CPython process, passively, or stopped while it is read, as the controller chooses.

    Args:
        target: The process.
        options: The user's choices.
    """

    name: ClassVar[str] = "cpython"
    runtime = "CPython"
    levels = _LEVELS
    noticed: int | None = COLLECTIONS

    def __init__(self, target: Target, options: AttachOptions) -> None:
        super().__init__(target.process, options)
        self._target = target
        self._interpreters: tuple[Interpreter, ...] = ()
        self._before: dict[int, Generations | None] = {}
        self._survivors: dict[int, Survivors] = {}
        self._looks: dict[int, CollectorSamples] = {}
        self._heap_spaces: dict[int, _HeapSpaces] = {}
        self._generation_spaces: dict[int, GenerationSpace] = {}
        self._memory_space: MemorySpace | None = None
        self._map_due_nanos = 0
        self._heaps_read: tuple[PymallocHeap, ...] = ()
        self._objects = ObjectView(target, tiles=options.tiles)
        self._stopped = StoppedMode(target.process, options)
        self._held_reader: HeldReader | None = None
        self._counted = False  # whether objects were gathered at this event
        self._sees_accesses = False

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        """Check quickly whether the process is a CPython that can be monitored."""
        return find_with_gil(pid)

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> PassiveDriver:
        """Find the runtime's structures in a process, and verify them.

        Raises:
            TargetGone: There is no such process.
            NotPermitted: The system does not let us read it.
            Unsupported: It is not a CPython that can be read.
            TargetError: It is, and is not as its version should be; or it is to be held, and cannot be.
        """
        target = Target(pid)
        try:
            StoppedMode(target.process, options).check()
        except BaseException:
            target.close()
            raise
        return cls(target, options)

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the kinds of event."""
        return ("Clock", "Collections")

    @property
    def version(self) -> str:
        """Its version, as people write it."""
        return ".".join(map(str, self._target.version))

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts about the target."""
        return {"image": self._target.image_path}

    def description(self) -> ServerDescription:
        """Return what distinguishes the session; see `ServerDescription`."""
        info = (
            "Passive: read from outside while it runs; values that change during the read are read again, and then unknown. "
            f"Stopped: {ABOUT_HOLDS[0].lower()}{ABOUT_HOLDS[1:]}"
        )
        info += self._without_pymalloc()
        return ServerDescription(
            name=self.title,
            events=self.events,
            mode=self._stopped.mode,
            modes=self._stopped.modes,
            mode_refusal=self._stopped.refusal,
            pause_acts_on=PauseActsOn.SAMPLING,
            general_info=info,
        )

    def start(self) -> None:
        """Add the spaces, with the tiles that there are now.

        Raises:
            TargetGone: The target has ended.
        """
        server = self.server
        self._interpreters = self._target.interpreters() or ()
        heaps = self._target.heaps(self._interpreters)
        self._add_heap_spaces(server, tuple(heap.owner for heap in heaps), heaps)
        self._add_generation_spaces(server)
        self._memory_space = open_memory_space(server, main=not heaps)
        self._follow_level()
        self._follow_mode()
        for reading in self._target.generations(self._interpreters):
            self._before[reading.ident] = reading.generations
            self._survivors_of(reading.ident).look(reading.generations)

    def check(self) -> None:
        """Confirm that the data belongs to the target; see `SampledDriver.check`."""
        self._target.check()

    def close(self) -> None:
        """Release the target, which keeps running."""
        self._target.close()

    def loops_coming(self) -> bool:
        """Return whether the search for objects is slow until loops are compiled."""
        return self.level >= OBJECTS and machine_code.coming()

    def changes(self) -> str:
        """Return which collections happened since the last tick; empty when none did."""
        return self._collections_since(self._target.generations(self._interpreters))

    def _collections_since(self, readings: tuple[InterpreterReading, ...]) -> str:
        """Describe the collections since the last tick; empty if there were none."""
        counts = {}
        said = []
        now = dict(self._before)
        for reading in readings:
            before = self._before.get(reading.ident)
            if before is not None and reading.generations is not None:
                said.append(times_text(reading.generations.times, before.collections))
            counts[reading.ident] = collections_between(
                self._before.get(reading.ident), reading.generations
            )
            self._survivors_of(reading.ident).look(reading.generations)
            self._looks.setdefault(reading.ident, CollectorSamples()).look(reading.generations)
            if reading.generations is not None:
                now[reading.ident] = reading.generations
        present = {reading.ident for reading in readings}
        self._before = {ident: found for ident, found in now.items() if ident in present}
        self._survivors = {
            ident: found for ident, found in self._survivors.items() if ident in present
        }
        self._looks = {ident: found for ident, found in self._looks.items() if ident in present}
        return "; ".join(part for part in (cause_text(counts), *said) if part)

    def gather(self, request: GatherRequest) -> None:
        """Read the requested data, and fill the spaces."""
        # The data is read at the event, and not when collections were checked.
        readings = self._read(request)
        if self.copied():
            self._fill(request, readings)

    def copied(self) -> bool:
        """Called when everything was read; returns whether the data may be shown."""
        return True

    def _read(self, request: GatherRequest) -> Readings:
        """Read the requested data."""
        level = min(self.level, request.level)
        of_heaps = [space for spaces in self._heap_spaces.values() for space in spaces.all]
        heaps: tuple[PymallocHeap, ...] | None = None
        copies: ObjectCopies | None = None
        objects = level >= OBJECTS and self._wants_objects(request)
        # Who sees none of its spaces does not pay for references.
        references = level >= REFERENCES and any(
            request.wants(space) for space in self._objects.reference_spaces
        )
        written: WrittenPools | None = None
        if objects and not references:
            # Before anything is read: what is written from now on is read again the next time.
            written = self._written_pools()
        if objects or (level >= POOLS and any(request.wants(space) for space in of_heaps)):
            heaps, copies = self._read_heaps(objects=objects)
        wanted = any(request.wants(space.space) for space in self._generation_spaces.values())
        generations = self._target.generations(self._interpreters) if wanted else None
        found: ObjectReading | None = None
        if objects and heaps is not None:
            found = self._objects.examine(
                heaps,
                self._interpreters,
                references=references,
                large=self._objects.wants_large(request),
                copies=copies,
                written=written,
                mirror=self._mirrored_target(),
            )
        return Readings(heaps, found, generations)

    def _wants_objects(self, request: GatherRequest) -> bool:
        """Return whether objects are requested, and may be searched for now."""
        return any(request.wants(space) for space in self._objects.spaces)

    def _mirrored_target(self) -> Target | None:
        """Return a copy of the target's memory that is examined at this event; None: the target itself is."""
        return None

    def _fill(self, request: GatherRequest, readings: Readings) -> None:
        """Fill the requested spaces."""
        self._counted = False
        self._heaps_read = readings.heaps or ()
        if readings.heaps is not None:
            self._fill_heaps(readings.heaps, request)
        if readings.objects is not None:
            self._fill_objects(request, readings.objects)
        memory = self._memory_space
        if (
            memory is not None
            and request.wants(memory.space)
            and min(self.level, request.level) >= POOLS
        ):
            self._fill_memory(memory, self._heaps_read)
        if readings.generations is not None:
            self._fill_generations(request, readings.generations)

    def _fill_objects(self, request: GatherRequest, found: ObjectReading) -> None:
        tables = self._objects.fill(found, self._accesses_by_owner())
        for ident, table in tables.items():
            arenas = self._heap_spaces[ident].arenas
            if request.wants(arenas.space):  # its tiles are those of this event
                arenas.answer_with(table.table)
        self._counted = True

    def _written_pools(self) -> WrittenPools | None:
        """Return which pools may have been written since objects were searched for before; None: it is not known."""
        return None

    def _fill_memory(self, memory: MemorySpace, heaps: tuple[PymallocHeap, ...]) -> None:
        """Read the memory map and fill its space, if it is due."""
        now = time.monotonic_ns()
        if now < self._map_due_nanos:
            return
        arenas = [heap.reading.arenas for heap in heaps]
        self._show_map(memory, self._read_map(arenas or self._target.arenas(self._interpreters)))
        self._map_due_nanos = next_map_nanos(now, time.monotonic_ns())

    def _show_map(self, memory: MemorySpace, found: MemoryMap | None, note: str = "") -> None:
        memory.fill(found, note)
        if not self._heap_spaces and (reason := self._without_pymalloc()):
            memory.space.info += f".{reason}"

    @property
    def managers(self) -> tuple[str, ...]:
        """Names of the memory managers."""
        return (_PYMALLOC,) if self._heap_spaces else ()

    def heap_bytes(self) -> Mapping[str, HeapBytes]:
        """Return what pymalloc has, that of all interpreters together."""
        if not self._heaps_read:
            return {}
        readings = [heap.reading for heap in self._heaps_read]
        whole = all(reading.complete for reading in readings)
        used = [used_bytes(reading) for reading in readings]
        committed = sum(len(one.arenas) * one.geometry.arena_bytes for one in readings)
        return {
            _PYMALLOC: HeapBytes(
                sum(filter(None, used)) if whole and None not in used else None,
                committed if whole else None,
            )
        }

    def _read_heaps(self, *, objects: bool) -> tuple[tuple[PymallocHeap, ...], ObjectCopies | None]:
        """Read the heaps, and the data for `ObjectView.fill` if it is not to read that itself."""
        if self._stopped.on and self._held_reader is not None:
            return self._held_reader.read(self._interpreters, objects=objects)
        return self._target.heaps(self._interpreters), None

    def _fill_generations(
        self, request: GatherRequest, readings: tuple[InterpreterReading, ...]
    ) -> None:
        for reading in readings:
            space = self._generation_spaces.get(reading.ident)
            if space is not None and request.wants(space.space):
                survivors = self._survivors_of(reading.ident)
                survivors.look(reading.generations)
                self._compare_lists(reading.ident, survivors)
                spent: CollectorTime | ToldTime | None = self._spent(reading.ident)
                if (
                    spent is None
                    and reading.generations is not None
                    and reading.generations.times is not None
                ):
                    spent = ToldTime(reading.generations.times)
                looks = self._looks.get(reading.ident)
                note = "" if looks is None else looks.note()
                if spent is not None and reading.generations is not None:
                    note = spent.note(reading.generations.collections)
                space.fill(reading.generations, survivors, spent=spent, note=note)

    def _survivors_of(self, ident: int) -> Survivors:
        return self._survivors.setdefault(ident, Survivors())

    def _spent(self, _ident: int) -> CollectorTime | None:
        """Return the duration of an interpreter's collections, if it is reported."""
        return None

    def _compare_lists(self, ident: int, survivors: Survivors) -> None:
        """Describe a collection from the collector's lists; only a driver with exact events can."""

    def _fill_heaps(self, heaps: tuple[PymallocHeap, ...], request: GatherRequest) -> None:
        for heap in heaps:
            spaces = self._heap_spaces.get(heap.owner)
            if spaces is None:
                continue
            reading = spaces.known(heap.reading)
            accesses, note = self._accesses_of(reading)
            if request.wants(spaces.arenas.space):
                spaces.arenas.fill(reading, accesses, note)
            if request.wants(spaces.classes.space):
                spaces.classes.fill(reading)
            if request.wants(spaces.whole.space):
                spaces.whole.fill(reading, accesses)

    def _accesses_by_owner(self) -> dict[int, CellAccesses] | None:
        """Return the accesses to the pools of each heap; None: they are not known."""
        found = {heap.owner: self._accesses_of(heap.reading)[0] for heap in self._heaps_read}
        known = {owner: one for owner, one in found.items() if one is not None}
        return known if self._sees_accesses and len(known) == len(found) else None

    def _accesses_of(self, _reading: HeapReading) -> tuple[CellAccesses | None, str]:
        """Return the accesses to pools and to which time they belong; None: they are not known."""
        return None, ""

    def _read_map(self, arenas: list[Arenas]) -> MemoryMap | None:
        if self._heap_spaces and not arenas:
            return (
                None  # pymalloc is not found just now: which memory is its own is unknown, not none
            )
        try:
            return self._target.memory_map(arenas)
        except (TargetGone, NotPermitted):
            raise
        except TargetError:
            return None  # it changed while it was read: unknown at this event

    def prepare(self) -> None:
        """Notice sub-interpreters that came or went: their spaces come and go with them; and another level or mode."""
        found = self._target.interpreters()
        if found and found != self._interpreters:
            self._change_interpreters(self.server, found)
        self._follow_level()
        self._follow_mode()

    def _change_interpreters(self, server: Server, found: tuple[Interpreter, ...]) -> None:
        self._interpreters = found
        present = {interpreter.ident for interpreter in found}
        for ident in [ident for ident in self._heap_spaces if ident not in present]:
            for space in self._heap_spaces.pop(ident).all:
                server.remove_space(space)
        for ident in [ident for ident in self._generation_spaces if ident not in present]:
            server.remove_space(self._generation_spaces.pop(ident).space)
        self._add_heap_spaces(server, self._target.owners(found), ())
        self._add_generation_spaces(server)

    def _add_heap_spaces(
        self, server: Server, owners: tuple[int, ...], heaps: tuple[PymallocHeap, ...]
    ) -> None:
        readings = {heap.owner: heap.reading for heap in heaps}
        geometry = self._target.geometry
        for ident in owners:
            if ident in self._heap_spaces or len(self._heap_spaces) >= _MOST_SHOWN:
                continue
            tiles = HeapTiles(geometry, tiles=self.options.tiles)
            arenas = ArenaSpace(
                server,
                title_of("pymalloc arenas", ident),
                geometry,
                tiles=tiles,
                main=ident == 0,
                first=readings.get(ident),
                accesses=self._sees_accesses,
            )
            self._heap_spaces[ident] = _HeapSpaces(
                tiles,
                arenas,
                SizeClassSpace(server, title_of("Size classes", ident), geometry),
                ArenaOccupancySpace(
                    server,
                    title_of("Whole arenas", ident),
                    geometry,
                    tiles=tiles,
                    first=readings.get(ident),
                    accesses=self._sees_accesses,
                ),
            )

    def _add_generation_spaces(self, server: Server) -> None:
        for interpreter in self._interpreters:
            ident = interpreter.ident
            if ident not in self._generation_spaces and len(self._generation_spaces) < _MOST_SHOWN:
                self._generation_spaces[ident] = GenerationSpace(
                    server, title_of("GC generations", ident)
                )

    def _follow_level(self) -> None:
        """Notice between events that another level was chosen: spaces of objects exist once they were requested."""
        super().prepare()
        if self.level >= OBJECTS:
            self._objects.open(
                self.server,
                self._target.owners(self._interpreters),
                self._interpreters,
                tiles={ident: spaces.tiles for ident, spaces in self._heap_spaces.items()},
                references=self.level >= REFERENCES,
                accesses=self._sees_accesses,
            )

    def _follow_mode(self) -> None:
        """Notice between events that the target shall be held while it is read, or not any more."""
        self._stopped.follow(self.server)
        if self._stopped.on and self._held_reader is None:
            self._held_reader = HeldReader(self._target, self.server)

    def _without_pymalloc(self) -> str:
        """Say that no object can be shown, and why; empty if there is a pymalloc."""
        if self._target.owners(self._target.interpreters() or ()):
            return ""
        setting = self._target.malloc_setting
        told = f" (PYTHONMALLOC={setting})" if setting else ""
        return (
            f" pymalloc is not in use{told}: small objects are in malloc's heaps, and are not shown. "
            "`gcspy why` lists them."
        )
