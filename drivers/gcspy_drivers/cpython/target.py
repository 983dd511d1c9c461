"""One monitored CPython process: found, verified, and read repeatedly.

Combines the readers: the interpreters, which of them have a pymalloc of their own, the state of
their collectors. Does not know tiles, streams and events.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy as shallow_copy
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone, Unsupported

from gcspy_drivers.cpython.allocations.tracemalloc import TracePlaces, find_places
from gcspy_drivers.cpython.collector.generations import (
    LISTS,
    Generations,
    list_heads,
    read_generations,
)
from gcspy_drivers.cpython.collector.interpreters import Interpreter, read_interpreters
from gcspy_drivers.cpython.discovery import (
    RuntimeFound,
    find_runtime,
    pymalloc_setting,
    without_pymalloc,
)
from gcspy_drivers.cpython.graph.memory_copy import copy_memory, copy_new_pages, plan_copy
from gcspy_drivers.cpython.graph.source import GraphSource
from gcspy_drivers.cpython.layouts import (
    PoolGeometry,
    VersionLayout,
    debug_offsets,
    known_graph_text,
    known_text,
    layout_for,
)
from gcspy_drivers.cpython.layouts.debug_offsets import DebuggerSupport
from gcspy_drivers.cpython.objects.heap_copy import COPY_BYTES, HeapCopy
from gcspy_drivers.cpython.objects.kept_pools import KeptPools, WrittenPools
from gcspy_drivers.cpython.objects.large import LargeBlocks, LargeReader
from gcspy_drivers.cpython.objects.large_chunks import LargeChunks, MallocChunks
from gcspy_drivers.cpython.objects.lists import Heads, ListReader, Lists
from gcspy_drivers.cpython.objects.machine_code import Kernels
from gcspy_drivers.cpython.objects.pool_index import Outward, PoolIndex
from gcspy_drivers.cpython.objects.references import BlockMap, find_leads, find_references
from gcspy_drivers.cpython.objects.scan import (
    NO_ENTRIES,
    NO_HOLDERS,
    Nodes,
    ObjectScanner,
    ScannedObjects,
)
from gcspy_drivers.cpython.objects.types import TypeTable
from gcspy_drivers.cpython.pymalloc.location import Locator
from gcspy_drivers.cpython.pymalloc.obmalloc import Arenas, HeapReading, ObmallocPlace, PoolReader
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.kit.copier import RecordBuffers
from gcspy_drivers.kit.memory_map import MemoryMap, MemoryMapper
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.maps import LiveMaps, read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pages.mirror import MirroredProcess
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.process_hold import held as hold

__all__ = [
    "PymallocHeap",
    "PymallocObjects",
    "InterpreterReading",
    "ObjectCopies",
    "ObjectReading",
    "Target",
]

_SEARCH_AGAIN_AFTER: Final = 50
"""Readings after which an interpreter without pymalloc is checked again: it may only have started when we attached."""


_MOST_OF_FREE_MEMORY: Final = 0.5
"""The part of free memory that copies of a whole heap may take."""

_LONGEST_HOLD_SECS: Final = 2.0
"""Longest hold for copying all memory; a gigabyte takes a third of it."""

_ROOM_FOR_NEW: Final = 1 << 25
"""Words for pages that appear while a running process is copied; unused ones take no memory."""

_PAGE_WORDS: Final = 512

_MOST_LISTED: Final = 31
"""Maximum interpreters whose lists of objects are distinguished."""

_STARTING_SECS: Final = 1.0
"""How long to wait for a runtime to be there whole: Python needs some 20 ms from its first instruction to its first line."""

_STARTING_POLL_SECS: Final = 0.01


_NO_NODES: Final = np.zeros((0, LISTS + 1), dtype=np.int32), np.zeros((1, 3), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PymallocHeap:
    """A state of pymalloc, and whose it is.

    Attributes:
        owner: Id of the interpreter that it was found by; others may share it.
        reading: Its reading.
    """

    owner: int
    reading: HeapReading

    @property
    def used_pools(self) -> int:
        """How many pools have a block in use."""
        return int(np.count_nonzero(self.reading.pools.state == PoolState.USED))


@dataclass(frozen=True, eq=False)
class InterpreterReading:
    """Data of an interpreter's collector.

    Attributes:
        ident: The interpreter's id.
        generations: Its collector; None when it could not be read.
    """

    ident: int
    generations: Generations | None


@dataclass(frozen=True, eq=False)
class PymallocObjects:
    """The objects in one pymalloc.

    Attributes:
        heap: The pymalloc, and its pools when they were examined.
        objects: Their objects.
        pools_before: Number to subtract from `Nodes.pool` of the whole reading to get a row of this heap.
    """

    heap: PymallocHeap
    objects: ScannedObjects
    pools_before: int


@dataclass(frozen=True, eq=False)
class ObjectReading:
    """All objects that were found, and the lists of the collector that they are on.

    Attributes:
        heaps: By pymalloc.
        lists: Tracked objects, in pools and outside. List ``4 * k + g`` is generation g of the interpreter ``owners[k]``, the
            fourth one what ``gc.freeze`` took out; None when no collector could be read.
        owners: Ids of the interpreters.
        types: Names and forms of types.
        nodes_by_pool: (pools of all heaps, LISTS + 1) tracked objects by generation, the last column those whose list is not known.
        nodes_by_list: (lists + 1, 3) tracked objects, bytes of their blocks, and those outside of pools; the last row is for those whose
            list is not known.
        references: (pools of all heaps, 5) the number of each of `references.FOUND`; None if they
            were not searched for.
        large: Blocks outside of pools that objects lead to; None if they were not searched for.
        chunks: Their chunks of malloc; None if references were not searched for, or malloc cannot be read.
    """

    heaps: tuple[PymallocObjects, ...]
    lists: Lists | None
    owners: tuple[int, ...]
    types: TypeTable
    nodes_by_pool: npt.NDArray[np.int32]
    nodes_by_list: npt.NDArray[np.int64]
    references: npt.NDArray[np.int64] | None = None
    large: LargeBlocks | None = None
    chunks: LargeChunks | None = None


@dataclass(frozen=True, eq=False)
class ObjectCopies:
    """The data that `Target.objects` examines, of one moment.

    Attributes:
        heaps: The pools of each heap.
        heads: Heads of lists, and of objects outside of pools that are known.
        ends: Number of each list by the address of its own head.
        owners: Ids of the interpreters that have the lists.
    """

    heaps: tuple[HeapCopy, ...]
    heads: Heads
    ends: dict[int, int]
    owners: tuple[int, ...]


@dataclass
class _Known:
    """State of one interpreter's pymalloc: its reader, or when to check again."""

    reader: PoolReader | None
    readings: int = 0


class Target:
    """A CPython process.

    Args:
        pid: Its process id.
        start_ticks: Its start time when it was found, so that a recycled number is noticed.

    Attributes:
        process: The process.
        version: Its version, (3, 11, 7).
        image_path: The executable or library that the interpreter is in.
        malloc_setting: Initial value of ``PYTHONMALLOC``; may be empty.

    Raises:
        TargetGone: There is no such process, or it ended meanwhile.
        NotPermitted: The system does not let us read it.
        Unsupported: It is not a CPython, or not one that can be read.
        TargetError: It is one, and is not as its version should be.
    """

    def __init__(self, pid: int, *, start_ticks: int | None = None) -> None:
        self.process = Process(pid, start_ticks=start_ticks)
        self._found: RuntimeFound | None = None
        self._malloc = MallocChunks(self.process)
        deadline = time.monotonic() + _STARTING_SECS
        while not self._try_attach(last=time.monotonic() >= deadline):
            time.sleep(_STARTING_POLL_SECS)

    def _try_attach(self, *, last: bool) -> bool:
        """Attach; False if it is to be tried again, because the target seems to have only just started."""
        try:
            self._attach()
            if last or not self._may_yet_have_pymalloc():
                return True
        except TargetError as error:
            self.close()
            # The error may be a consequence of the target's end, which then is the better message.
            again = Process(self.process.pid, start_ticks=self.process.start_ticks)
            if last or not _may_pass(error, again):
                again.close()
                raise
        else:
            self.close()
            again = Process(self.process.pid, start_ticks=self.process.start_ticks)
        self.process = again
        return False

    def _may_yet_have_pymalloc(self) -> bool:
        """Return whether pymalloc is not in use, without a setting to that effect, in a process that has just started."""
        unused = all(known.reader is None for known in self._known.values())
        return (
            unused
            and not without_pymalloc(self.malloc_setting)
            and self.process.age_secs() < _STARTING_SECS
        )

    def _attach(self) -> None:
        process = self.process
        self._memory = Memory(process)
        self._maps = LiveMaps(process, read_maps(process))
        found = self._found = find_runtime(process, self._memory, self._maps.maps)
        if found is None:
            raise Unsupported(
                f"process {process.pid} is not a Python process",
                found=f"{process.name} ({process.read_link('exe') or 'unknown program'})",
                known=known_text(),
            )
        found.refuse_unsupported()
        image = found.image
        runtime = found.exported("_PyRuntime")
        if image is None or not self._maps.maps.cover(runtime, debug_offsets.TABLE_BYTES):
            raise TargetError(
                f"process {process.pid}: _PyRuntime of {found.path} is at {runtime:#x}, where nothing is mapped"
            )
        self.version = found.version
        self.image_path = found.path
        layout = layout_for(self.version)
        if layout.debug_offsets:
            layout = debug_offsets.apply(
                layout, self._memory.read(runtime, debug_offsets.TABLE_BYTES)
            )
        self._layout: VersionLayout = layout
        self._runtime: Addr = runtime
        self._locator = Locator(self._memory, self._maps, layout, image)
        self._mapper = MemoryMapper(process)
        self._known: dict[Interpreter, _Known] = {}
        self._places: dict[ObmallocPlace, PoolReader] = {}
        self._types: TypeTable | None = None
        self._padding: int | None = None
        self._kept: dict[int, KeptPools] = {}
        self._room = RecordBuffers(layout.geometry.pool_bytes, COPY_BYTES)
        self._outside: npt.NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
        self.malloc_setting = pymalloc_setting(process)
        interpreters = read_interpreters(self._memory, layout, runtime)
        if not interpreters:
            raise TargetError(
                f"process {process.pid}: no interpreter was found at its _PyRuntime ({runtime:#x}): it is starting or ending, try again"
            )
        self._known[interpreters[0]] = _Known(self._reader_for(interpreters[0]))
        process.check()

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the target, which keeps running. May be called twice."""
        if self._found is not None:
            self._found.close()
            self._found = None
        self._malloc.close()
        self.process.close()

    @property
    def memory(self) -> Memory:
        """Its memory."""
        return self._memory

    @property
    def layout(self) -> VersionLayout:
        """Offsets of its version."""
        return self._layout

    @property
    def geometry(self) -> PoolGeometry:
        """Sizes that its pymalloc was built with."""
        return self._layout.geometry

    def function(self, name: str) -> Addr:
        """Return the address of a function of the interpreter.

        Raises:
            TargetError: It exports none of this name.
        """
        if self._found is None:
            raise TargetGone(f"process {self.process.pid} was released: attach again to monitor it")
        return self._found.exported(name)

    def debugger_support(self) -> DebuggerSupport | None:
        """Return where a script for its main thread is stored; None if its version supports none.

        Raises:
            TargetGone: The target has ended.
            TargetError: Its table contradicts itself.
        """
        if not self._layout.debug_offsets:
            return None
        table = self._memory.read(self._runtime, debug_offsets.TABLE_BYTES)
        return debug_offsets.debugger_support(self._layout, table)

    def check(self) -> None:
        """Confirm that all that was read came from this process.

        Raises:
            TargetGone: It has ended, or is another one now.
        """
        self.process.check()

    def interpreters(self) -> tuple[Interpreter, ...] | None:
        """List its interpreters, the main one first; None when the list could not be walked.

        Raises:
            TargetGone: The target has ended.
        """
        return read_interpreters(self._memory, self._layout, self._runtime)

    def generations(self, interpreters: tuple[Interpreter, ...]) -> tuple[InterpreterReading, ...]:
        """Read the collectors of some interpreters.

        Raises:
            TargetGone: The target has ended.
        """
        offset, layout = self._layout.interpreter_gc, self._layout.gc
        return tuple(
            InterpreterReading(
                ident=interpreter.ident,
                generations=read_generations(
                    self._memory, Addr(interpreter.address + offset), layout
                ),
            )
            for interpreter in interpreters
        )

    def heaps(self, interpreters: tuple[Interpreter, ...]) -> tuple[PymallocHeap, ...]:
        """Read the pymalloc of each interpreter that has its own; none when pymalloc is not in use.

        Args:
            interpreters: As `interpreters` listed them.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        heaps = []
        for owner, reader in self._readers(interpreters):
            reading = reader.read()
            heaps.append(PymallocHeap(owner=owner, reading=reading))
            if not reading.complete:
                # It may have moved (a table found by the search can); it is searched for again the
                # next time.
                self._forget(reader)
        return tuple(heaps)

    def owners(self, interpreters: tuple[Interpreter, ...]) -> tuple[int, ...]:
        """Determine which of the interpreters have a pymalloc of their own, by id; others share one of these, or use none.

        Raises:
            TargetGone: The target has ended.
        """
        return tuple(owner for owner, _ in self._readers(interpreters))

    def places(self, interpreters: tuple[Interpreter, ...]) -> list[tuple[int, ObmallocPlace]]:
        """Return the place of each state of pymalloc, and an interpreter that has it.

        Raises:
            TargetGone: The target has ended.
        """
        return [(owner, reader.place) for owner, reader in self._readers(interpreters)]

    def arenas(self, interpreters: tuple[Interpreter, ...]) -> list[Arenas]:
        """Read the arenas, without their content.

        Raises:
            TargetGone: The target has ended.
        """
        return [reader.read_arenas() for _, reader in self._readers(interpreters)]

    def objects(
        self,
        heaps: tuple[PymallocHeap, ...],
        interpreters: tuple[Interpreter, ...],
        *,
        code: Kernels | None = None,
        references: bool = False,
        large: bool = False,
        copies: ObjectCopies | None = None,
        written: WrittenPools | None = None,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> ObjectReading:
        """Examine the pools of some heaps: their objects, and on which of the collector's lists these are.

        Args:
            heaps: As `heaps` read them, just before.
            interpreters: As `interpreters` listed them.
            code: Compiled loops, to use instead of numpy.
            references: Whether to search for references too.
            large: Whether to search for large blocks too.
            copies: Their copies; without them they are copied now, a part at a time.
            written: Which pools may have been written since the last call with this argument; of the others what was found then is
                kept. None: all are examined. Not used for references.
            progress: Called with the current step, its progress, and its total; 0: not known.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
            TargetError: Its image does not contain the address of ``type``.
        """
        types = self._type_table()
        scanner = self._scanner(types, code)
        readings = [heap.reading for heap in heaps]
        blocks = BlockMap.of(readings, self.geometry) if references else None
        index = PoolIndex.of(readings, self.geometry)
        if copies is None:
            types.begin()
        found: list[PymallocObjects] = []
        parts: list[tuple[HeapCopy, int]] = []
        before = examined = 0
        used = sum(heap.used_pools for heap in heaps)
        if written is not None and copies is None and blocks is None:
            known = self._known_pools(heaps, types)
        else:
            known = {}
        for number, heap in enumerate(heaps):
            after = before + len(heap.reading.pools)
            told = partial(_tell_pools, progress, before=examined, total=used)
            if heap.owner in known and written is not None:
                objects = known[heap.owner].scan(scanner, heap.reading, index, written, told)
            else:
                copy = (
                    HeapCopy(self._memory, heap.reading, self.geometry)
                    if copies is None
                    else copies.heaps[number]
                )
                entries = NO_ENTRIES if blocks is None else blocks.entry[before:after]
                objects = scanner.scan(copy, entries, index, told)
                parts.append((copy, before))
            examined += heap.used_pools
            found.append(PymallocObjects(heap, objects, before))
            before = after
        self._padding = scanner.padding
        ends, owners = (
            self._list_ends(interpreters) if copies is None else (copies.ends, copies.owners)
        )
        nodes = Nodes.together([one.objects.nodes.moved(one.pools_before) for one in found])
        # Most of those outside of the pools are where they were before: one call reads them all.
        heads = self._heads(ends) if copies is None else copies.heads
        progress("following the collector's lists", 0, 0)
        lists = (
            ListReader(self._memory, self._maps, types, code, heads).read(nodes, ends)
            if ends
            else None
        )
        self._outside = np.zeros(0, dtype=np.uint64) if lists is None else lists.outside.address
        by_pool, by_list = _NO_NODES
        if lists is not None:
            by_pool, by_list = lists.sums(pools=before, lists=LISTS * len(owners), each=LISTS)
        counted = None
        if blocks is not None:
            if lists is not None:
                inside = lists.inside
                blocks.give_lists(inside.address, lists.of_node[: len(inside)], LISTS, code)
            counted = find_references(blocks, parts, code)
        blocks_outside = chunks = None
        if large:
            reader = LargeReader(self._memory, self._maps, types, self._layout.objects, index)
            holders = np.concatenate([NO_HOLDERS, *(one.objects.holders for one in found)])
            leads = None
            if blocks is not None:
                leads = find_leads(blocks, parts, Outward.of(index, self._maps.maps), code)
            blocks_outside = reader.read(holders, lists, leads)
            if references:
                chunks = self._malloc.of(blocks_outside)
        return ObjectReading(
            tuple(found), lists, owners, types, by_pool, by_list, counted, blocks_outside, chunks
        )

    def sample_objects(
        self, heaps: tuple[PymallocHeap, ...], *, every: int, code: Kernels | None = None
    ) -> ObjectReading:
        """Examine one in a number of the used pools of some heaps, at equal distances; the others are unknown, and so are lists.

        Args:
            heaps: As `heaps` read them, just before.
            every: This number.
            code: Compiled loops, to use instead of numpy.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
            TargetError: Its image does not contain the address of ``type``.
        """
        types = self._type_table()
        types.begin()
        scanner = self._scanner(types, code)
        index = PoolIndex.of([heap.reading for heap in heaps], self.geometry)
        found = []
        for heap in heaps:
            copy = HeapCopy(self._memory, heap.reading, self.geometry, every=every)
            found.append(PymallocObjects(heap, scanner.scan(copy, NO_ENTRIES, index), 0))
        return ObjectReading(tuple(found), None, (), types, *_NO_NODES)

    def warm(self, heaps: tuple[PymallocHeap, ...]) -> bool:
        """Have room for copies of some heaps, so that `copy_objects` needs no memory of the system; False when there is too little."""
        pools = sum(heap.used_pools for heap in heaps)
        if pools * self.geometry.pool_bytes > _MOST_OF_FREE_MEMORY * _free_bytes():
            return False
        self._room.begin(pools)
        self._type_table()
        return True

    def copy_objects(
        self, heaps: tuple[PymallocHeap, ...], interpreters: tuple[Interpreter, ...]
    ) -> ObjectCopies:
        """Copy all data that `objects` examines, as fast as possible.

        That is pools, types, the lists' heads, and the heads of objects outside of pools that were on a list the last time.

        Args:
            heaps: As `heaps` read them, just before.
            interpreters: As `interpreters` listed them.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
            TargetError: Its image does not contain the address of ``type``.
        """
        copies = []
        for heap in heaps:
            copy = HeapCopy(self._memory, heap.reading, self.geometry)
            copy.keep(self._room)
            copies.append(copy)
        ends, owners = self._list_ends(interpreters)
        heads = self._heads(ends)
        self._type_table().begin()
        return ObjectCopies(tuple(copies), heads, ends, owners)

    def _heads(self, ends: dict[int, int]) -> Heads:
        """Read the heads of lists, and of objects outside of pools that were on one the last time."""
        known = np.concatenate((np.array(list(ends), dtype=np.uint64), self._outside))
        return Heads(self._memory, known)

    def graph_source(self, *, held: bool) -> GraphSource:
        """Copy all of its writable memory, from which the graph of its references is made.

        Args:
            held: Whether all of its threads are to be stopped meanwhile.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
            Unsupported: Nothing is known of the roots in its version.
            TargetError: Its memory cannot be copied: it exceeds the free memory, or is invalid.
        """
        if self._layout.graph is None:
            raise Unsupported(
                f"process {self.process.pid}: who holds its objects cannot be found in this version of CPython",
                found="CPython " + ".".join(map(str, self.version)),
                known=known_graph_text(),
            )
        types = self._type_table()
        plan = plan_copy(self.process, read_maps(self.process))
        if plan.total_bytes > _MOST_OF_FREE_MEMORY * _free_bytes():
            raise TargetError(
                f"process {self.process.pid} has {plan.total_bytes >> 20} MiB to copy, and half of what is free here is less: "
                "free some memory, or ask on another machine"
            )
        room = np.zeros(plan.total_bytes // 8 + _ROOM_FOR_NEW, dtype=np.int64)
        nanos, expired = 0, False
        if held:
            # The system provides memory when it is first written to: not while the process is held.
            room[: plan.total_bytes // 8 : _PAGE_WORDS] = 0
            with hold(self.process, longest_secs=_LONGEST_HOLD_SECS) as still:
                copy = copy_memory(self._memory, plan, room)
            nanos, expired = still.nanos, still.expired
        else:
            copy = copy_memory(self._memory, plan, room)
        if expired or not held:
            copy = copy_new_pages(
                self._memory, plan_copy(self.process, read_maps(self.process)), copy, room
            )
        interpreters = self.interpreters()
        if not interpreters:
            raise TargetError(
                f"process {self.process.pid}: its interpreters changed while they were listed; try again"
            )
        heads: list[int] = []
        for each in interpreters:
            gc = Addr(each.address + self._layout.interpreter_gc)
            heads.extend(list_heads(self._memory, gc, self._layout.gc) or ())
        self.check()
        return GraphSource(
            self._memory, copy, types, self._layout, interpreters, tuple(heads), nanos, expired
        )

    def trace_places(self) -> TracePlaces:
        """Return where ``tracemalloc`` keeps its state.

        Raises:
            TargetGone: The target was released.
            TargetError: Its file is damaged.
        """
        image = None if self._found is None else self._found.image
        if image is None:
            raise TargetGone(f"process {self.process.pid} was released: attach again to monitor it")
        return find_places(image, self._layout, self._runtime)

    def _list_ends(
        self, interpreters: tuple[Interpreter, ...]
    ) -> tuple[dict[int, int], tuple[int, ...]]:
        """Return the number of each list by the address of its own head, and the interpreters of the lists."""
        ends: dict[int, int] = {}
        owners = []
        for number, interpreter in enumerate(interpreters[:_MOST_LISTED]):
            address = Addr(interpreter.address + self._layout.interpreter_gc)
            heads = list_heads(self._memory, address, self._layout.gc)
            owners.append(interpreter.ident)
            if heads is not None:
                ends.update({head: number * LISTS + which for which, head in enumerate(heads)})
        return ends, tuple(owners)

    def _scanner(self, types: TypeTable, code: Kernels | None) -> ObjectScanner:
        return ObjectScanner(
            types, self._layout.objects, self.geometry, code, padding=self._padding
        )

    def _known_pools(
        self, heaps: tuple[PymallocHeap, ...], types: TypeTable
    ) -> dict[int, KeptPools]:
        """Return what is kept of each heap, by its owner; of heaps that have gone nothing is."""
        self._kept = {
            heap.owner: self._kept.get(heap.owner) or KeptPools(self._memory, types, self.geometry)
            for heap in heaps
        }
        return self._kept

    def _type_table(self) -> TypeTable:
        if self._types is None:
            if self._found is None:
                raise AssertionError("closed")
            root = self._found.exported("PyType_Type")
            self._types = TypeTable(self._memory, self._maps, self._layout.objects, root)
        self._types.read_from(self._memory, self._maps)
        return self._types

    def mirrored(self, process: MirroredProcess) -> Target:
        """Return the same target read from a mirror; types have the same numbers in both. It need not be closed."""
        self._type_table()
        found = shallow_copy(self)
        found.process = process
        found._memory = Memory(process)
        found._maps = LiveMaps(process, process.maps)
        found._kept, found._outside = {}, np.zeros(0, dtype=np.uint64)
        found._room = RecordBuffers(self.geometry.pool_bytes, COPY_BYTES)
        return found

    def memory_map(self, arenas: list[Arenas]) -> MemoryMap:
        """Read all of the process's memory by kind.

        Args:
            arenas: As `heaps` or `arenas` read them.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not show us its maps.
            TargetError: The maps changed while they were read.
        """
        addresses: list[npt.NDArray[np.uint64]] = [found.address for found in arenas]
        together = (
            np.unique(np.concatenate(addresses)) if addresses else np.zeros(0, dtype=np.uint64)
        )
        return self._mapper.read(together, self.geometry.arena_bytes)

    def _readers(self, interpreters: tuple[Interpreter, ...]) -> list[tuple[int, PoolReader]]:
        """Return the readers of different states of pymalloc, each with the first interpreter that has it."""
        self._forget_all_but(interpreters)
        readers: dict[PoolReader, int] = {}
        for interpreter in interpreters:
            reader = self._known_reader(interpreter)
            if reader is not None:
                readers.setdefault(reader, interpreter.ident)
        return [(owner, reader) for reader, owner in readers.items()]

    def _known_reader(self, interpreter: Interpreter) -> PoolReader | None:
        known = self._known.get(interpreter)
        if known is not None and (known.reader is not None or known.readings < _SEARCH_AGAIN_AFTER):
            known.readings += 1
            return known.reader
        try:
            reader = self._reader_for(interpreter)
        except TargetGone:
            raise
        except TargetError:
            # An interpreter that starts or ends just now is invalid. It is checked again like one
            # without pymalloc.
            self.process.check()
            reader = None
        self._known[interpreter] = _Known(reader)
        return reader

    def _reader_for(self, interpreter: Interpreter) -> PoolReader | None:
        place = self._locator.find(interpreter.address)
        if place is None:
            return None
        if place not in self._places:
            self._places[place] = PoolReader(self._memory, self._maps, self._layout.geometry, place)
        return self._places[place]

    def _forget(self, reader: PoolReader) -> None:
        self._places = {place: kept for place, kept in self._places.items() if kept is not reader}
        self._known = {
            interpreter: known
            for interpreter, known in self._known.items()
            if known.reader is not reader
        }

    def _forget_all_but(self, interpreters: tuple[Interpreter, ...]) -> None:
        if len(self._known) > len(interpreters):
            self._known = {
                interpreter: known
                for interpreter, known in self._known.items()
                if interpreter in interpreters
            }
            kept = {id(known.reader) for known in self._known.values()}
            self._places = {
                place: reader for place, reader in self._places.items() if id(reader) in kept
            }


def _tell_pools(
    progress: Callable[[str, int, int], None], done: int, *, before: int, total: int
) -> None:
    progress("examining pools", before + done, total)


def _free_bytes() -> int:
    """Return how much memory the system can give without giving up anything."""
    with open("/proc/meminfo", encoding="ascii") as file:
        found = [int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:")]
    return found[0] if found else 0


def _may_pass(error: TargetError, process: Process) -> bool:
    """Return whether the failure to attach may be due to the target's start.

    A young process may be about to execute Python, or to load its library. Later, a process without
    Python stays one.
    """
    if isinstance(error, NotPermitted):
        return False
    return not isinstance(error, (TargetGone, Unsupported)) or process.age_secs() < _STARTING_SECS
