"""`HeapGraph`: all objects that roots lead to, who refers to whom, and how large they are; built from a copy of a process's memory.

Knows copies, types and roots; `gcspy_objects.graph` answers questions about a graph, `names` has
the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from gcspy_objects.graph.references import ReferenceGraph
from gcspy_protocol.errors import TargetError
from numpy.typing import NDArray

from gcspy_drivers.cpython.graph.forms import DATA_WORD, Form, TypeForm, forms_of
from gcspy_drivers.cpython.graph.loops import Place, State, shape_bytes
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.cpython.graph.roots import (
    Root,
    RootKind,
    library_words,
    named_roots,
    state_words,
)
from gcspy_drivers.cpython.graph.source import GraphSource
from gcspy_drivers.cpython.layouts import VersionLayout
from gcspy_drivers.cpython.objects.types import TypeTable
from gcspy_drivers.remote.maps import Maps
from gcspy_drivers.remote.memory import Memory

__all__ = ["LARGE_BYTES", "HeapGraph", "build_graph"]

LARGE_BYTES: Final = 64 << 10
"""The pages and mappings of smaller objects are not checked."""

_AT_ONCE: Final = 200_000
_TYPE_SUBCLASS: Final = np.uint64(1 << 31)
_HEAP_TYPE: Final = np.uint64(1 << 9)
_WEAK_AT, _DICT_AT = 208, 288
_MOST_CANDIDATES: Final = 1 << 20
_ROUNDS: Final = 4
_LEAST_BYTES: Final = 16


@dataclass(frozen=True, eq=False)
class HeapGraph:
    """Objects and references.

    Attributes:
        copy: The memory that it was built from.
        types: Types, by row.
        layout: Offsets of the version.
        graph: Who refers to whom.
        address: (n,) of each object.
        kind: (n,) row of its type.
        parent: (n,) who met it first, on a shortest way from a root; -1: a root.
        own: (n,) its bytes, including its memory outside of itself, as allocated.
        elsewhere: (n,) the part of these outside.
        forms: (types, COLUMNS) what objects of each type keep, `forms.TypeForm`.
        roots: By object: the roots; those that own no reference are not in `graph`.
        complete: Whether there was room for everything.
    """

    copy: MemoryCopy
    types: TypeTable
    layout: VersionLayout
    graph: ReferenceGraph
    address: NDArray[np.int64]
    kind: NDArray[np.int32]
    parent: NDArray[np.int32]
    own: NDArray[np.int64]
    elsewhere: NDArray[np.int64]
    forms: NDArray[np.int64]
    roots: dict[int, Root]
    complete: bool

    @property
    def objects(self) -> int:
        """How many there are."""
        return len(self.address)

    @cached_property
    def _by_address(self) -> NDArray[np.int32]:
        return np.argsort(self.address, kind="stable").astype(np.int32)

    def number_of(self, address: int) -> int | None:
        """Return the number of the object at an address; None if none was found there."""
        order = self._by_address
        at = int(np.searchsorted(self.address, address, sorter=order))
        if at == len(order) or self.address[order[at]] != address:
            return None
        return int(order[at])

    @cached_property
    def in_files(self) -> NDArray[np.bool_]:
        """(n,) whether an object is in a mapping of a file: a static object, which is never freed."""
        return _in_files(self.copy.maps, self.address)

    def data_of(self, chosen: NDArray[np.int64], word: int) -> NDArray[np.int64]:
        """Return (k,) a word of each of some objects, such as the address of their data; 0: not copied."""
        found = [
            self.copy.word(address + 8 * word) or 0 for address in self.address[chosen].tolist()
        ]
        return np.array(found, dtype=np.int64)

    def data_bytes(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (k,) the bytes at `data_of` of each of some objects: all outside it, but for an array's extents and strides."""
        found = self.elsewhere[chosen].copy()
        arrays = np.flatnonzero(self.forms[self.kind[chosen], TypeForm.FORM] == Form.NDARRAY)
        words = self.data_of(chosen[arrays], 3).tolist()
        found[arrays] -= np.array([shape_bytes(word) for word in words], dtype=np.int64)
        return found

    @cached_property
    def references(self) -> NDArray[np.int64]:
        """(n,) each object's reference count, as copied."""
        return self.references_to(self.address)

    def references_to(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (k,) the reference counts of the objects at some addresses, as copied."""
        row = np.searchsorted(self.copy.runs[:, 0], address, side="right") - 1
        place = self.copy.runs[row, 2] + (address - self.copy.runs[row, 0]) // 8
        bits = np.uint64(self.layout.objects.refcount_flags)
        return np.asarray((self.copy.words[place].view(np.uint64) & ~bits).view(np.int64))

    @cached_property
    def namespaces(self) -> NDArray[np.bool_]:
        """(n,) whether an object is a module, its table of names, or a table of modules, which are never named as holders."""
        found = np.zeros(self.objects, dtype=np.bool_)
        modules = np.flatnonzero(self.forms[self.kind, TypeForm.FORM] == Form.MODULE)
        found[modules] = True
        for module in self.address[modules].tolist():
            table = self.number_of(self.copy.word(module + 16) or 0)
            if table is not None:
                found[table] = True
        for number, root in self.roots.items():
            if root.kind in (RootKind.MODULES, RootKind.FRAME):
                found[number] = True
        return found

    def of_type(self, name: str) -> NDArray[np.int32]:
        """Return the objects of types of this name, with a module's or without."""
        bare = name.rpartition(".")[2]
        rows = [
            row
            for row, each in enumerate(self.types.names)
            if each in (name, bare) or each.rpartition(".")[2] == name
        ]
        return np.flatnonzero(np.isin(self.kind, rows)).astype(np.int32)


@dataclass(eq=False)
class _Walk:
    """A graph under construction."""

    copy: MemoryCopy
    loops: Loops
    walked: tuple[NDArray[np.int64] | NDArray[np.int32], ...]
    forms: NDArray[np.int64]
    starts: NDArray[np.int64]
    own: NDArray[np.int64]
    elsewhere: NDArray[np.int64]
    state: NDArray[np.int64]
    roots: dict[int, Root] = field(default_factory=dict)
    root_rows: list[int] = field(default_factory=list)

    def add(self, addresses: NDArray[np.int64], roots: Iterable[Root]) -> None:
        """Add new root objects; each gets its name."""
        names = iter(roots)
        before = int(self.state[State.OBJECTS])
        if not self.loops.enter_all(addresses, self.walked):
            return
        new = range(before, int(self.state[State.OBJECTS]))
        self.root_rows.extend(new)
        found: NDArray[np.int64] = np.asarray(self.walked[4])
        by_address = {root.address: root for root in names}
        for row in new:
            root = by_address.get(int(found[row])) or by_address[0]
            self.roots[row] = root

    def go(self, progress: Callable[[int], None]) -> None:
        """Examine all objects that were met."""
        while self.loops.walk(
            self.walked, self.forms, self.starts, self.own, self.elsewhere, _AT_ONCE
        ):
            if self.state[State.FULL]:
                return
            progress(int(self.state[State.NEXT]))
        progress(int(self.state[State.NEXT]))


def build_graph(
    source: GraphSource,
    loops: Loops,
    progress: Callable[[int], None] = lambda _: None,
) -> HeapGraph:
    """Build the graph.

    Args:
        source: Its source; unknown types are learned.
        loops: The loops, compiled or not.
        progress: Called periodically with the number of objects examined.

    Raises:
        TargetGone: The target has ended.
        TargetError: It has no types that can be read.
    """
    memory, copy, types, layout, interpreters, list_heads, *_ = source
    _learn_types(copy, types, loops)
    columns = types.columns()
    if columns is None:
        raise TargetError(
            f"process {memory.process.pid} has {len(types)} types, too many to identify objects by type"
        )
    forms = forms_of(types, layout, _type_words(memory, types, layout))
    # An object has sixteen bytes or more, a reference eight: this is enough room, and is only
    # allocated as it is used.
    most = len(copy.words) // 2 + 1
    address = np.empty(most, dtype=np.int64)
    kind, parent = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    targets = np.empty(2 * len(copy.words) + 1024, dtype=np.int32)
    starts = np.zeros(most + 1, dtype=np.int64)
    own, elsewhere = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    state = np.zeros(len(State), dtype=np.int64)
    seen = np.zeros(len(copy.words) // 2 + 2, dtype=np.int32)
    numbers = _numbers(layout, columns.multiplier, columns.shift, columns.mask)
    walked = (
        copy.words,
        copy.runs,
        copy.granules,
        seen,
        address,
        kind,
        parent,
        targets,
        state,
        columns.slots,
        columns.address,
        numbers,
    )
    walk = _Walk(copy, loops, walked, forms, starts, own, elsewhere, state)
    named = named_roots(copy, layout, interpreters)
    # First the most informative names: objects reached from there get their path from there, even
    # if another is shorter.
    for kinds in ((RootKind.MODULES,), (RootKind.VARIABLE,), (RootKind.STACK, RootKind.FRAME)):
        first: dict[int, Root] = {}
        for root in named:
            if root.kind in kinds:
                first.setdefault(root.address, root)
        walk.add(np.array(list(first), dtype=np.int64), first.values())
        walk.go(progress)
    certain = int(state[State.OBJECTS])
    for words in (state_words(copy, layout, interpreters), library_words(copy)):
        for name, root_kind, some in words:
            walk.add(some, [Root(0, root_kind, name)])
        walk.go(progress)
    tracked = np.empty(most, dtype=np.int64)
    count = loops.on_lists(
        np.array(list_heads, dtype=np.int64), copy.words, copy.runs, copy.granules, tracked
    )
    walk.add(tracked[:count], [Root(0, RootKind.UNSEEN, "nothing that was seen")])
    walk.go(progress)
    del tracked, seen, walked  # what follows needs memory, too
    graph = _finished(walk, types, layout)
    del walk
    _disbelieve(graph)
    return _counted(graph, certain)


def _disbelieve(graph: HeapGraph) -> None:
    """Set sizes that reach beyond the mapping of an object or of its data to zero: they changed while they were copied."""
    inside = graph.own - graph.elsewhere
    large = np.flatnonzero(inside >= LARGE_BYTES)
    wrong = large[~_is_mapped(graph.copy.maps, graph.address[large], inside[large])]
    graph.own[wrong] -= inside[wrong]
    form = graph.forms[graph.kind, TypeForm.FORM]
    for each, word in DATA_WORD.items():
        large = np.flatnonzero((form == each) & (graph.elsewhere >= LARGE_BYTES))
        is_mapped = _is_mapped(graph.copy.maps, graph.data_of(large, word), graph.data_bytes(large))
        wrong = large[~is_mapped]
        graph.own[wrong] -= graph.elsewhere[wrong]
        graph.elsewhere[wrong] = 0


def _in_files(maps: Maps, address: NDArray[np.int64]) -> NDArray[np.bool_]:
    row = maps.rows_of(address)
    return np.asarray((row >= 0) & (maps.inode[row] != 0))


def _is_mapped(maps: Maps, first: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which ranges are within one mapping, or within several without a gap."""
    # Unsigned: the kernel's own mapping is in the upper half, and as a negative number it would not be the last.
    start, end, wanted = maps.start, maps.end, first.astype(np.uint64)
    begins = np.flatnonzero(np.append(True, start[1:] != end[:-1])) if len(start) else start
    end = end[np.append(begins[1:], len(start)) - 1]
    row = np.searchsorted(start[begins], wanted, side="right") - 1
    return np.asarray((row >= 0) & (size <= (end[row] - wanted).astype(np.int64)))


def _counted(graph: HeapGraph, certain: int) -> HeapGraph:
    """Return a graph without the roots that own no reference, as reference counts tell.

    A word of C's memory may be stale, and the collector's lists contain garbage. Objects behind `certain` are reached from such roots
    only, so all references from objects to them are known. One without any other reference needs no root. If no other root leads to
    it, it is garbage. Static objects stay roots.

    Args:
        graph: The graph.
        certain: The number of objects that modules and variables lead to; they have the lower numbers.
    """
    if not graph.complete or certain >= graph.objects:
        return graph
    known = np.bincount(
        graph.graph.targets[int(graph.graph.starts[certain]) :], minlength=graph.objects
    )
    roots = graph.graph.roots
    owns = (roots < certain) | (graph.references_to(graph.address[roots]) > known[roots])
    # A static type may be in memory without a file: in the zeroed data of a library.
    types = graph.types.address[(graph.types.flags & _HEAP_TYPE) == 0].astype(np.int64)
    others = graph.address[certain:]
    static = np.flatnonzero(_in_files(graph.copy.maps, others) | np.isin(others, types)) + certain
    roots = np.union1d(roots[owns], static).astype(np.int32)
    kept = ReferenceGraph(graph.graph.starts, graph.graph.targets, roots)
    return replace(graph, graph=kept)


def _finished(walk: _Walk, types: TypeTable, layout: VersionLayout) -> HeapGraph:
    _, _, _, _, address, kind, parent, targets, *_ = walk.walked
    looked, found = int(walk.state[State.NEXT]), int(walk.state[State.TARGETS])
    full = bool(walk.state[State.FULL])
    # The columns keep their memory, without the room that was not used: a copy would double it.
    for column in (address, kind, parent, walk.own, walk.elsewhere):
        column.resize(looked, refcheck=False)
    starts = walk.starts
    starts.resize(looked + 1, refcheck=False)
    targets.resize(int(starts[-1]) if full else found, refcheck=False)
    if full:
        # Objects that were met and not examined are not known enough to be shown.
        targets[targets >= looked] = 0
    roots = np.array([row for row in walk.root_rows if row < looked], dtype=np.int32)
    return HeapGraph(
        walk.copy,
        types,
        layout,
        ReferenceGraph(starts, np.asarray(targets, dtype=np.int32), roots),
        np.asarray(address, dtype=np.int64),
        np.asarray(kind, dtype=np.int32),
        np.asarray(parent, dtype=np.int32),
        walk.own,
        walk.elsewhere,
        walk.forms,
        {row: root for row, root in walk.roots.items() if row < looked},
        not full,
    )


def _learn_types(copy: MemoryCopy, types: TypeTable, loops: Loops) -> None:
    """Find all types in the copy: whatever has a type of types where an object has its type."""
    types.begin()
    known = -1
    for _ in range(_ROUNDS):
        metatypes = types.address[(types.flags & _TYPE_SUBCLASS) != 0].astype(np.int64)
        if len(metatypes) == known:
            return
        known = len(metatypes)
        places = np.empty(_MOST_CANDIDATES, dtype=np.int64)
        count = loops.find_words(copy.words, np.sort(metatypes), places)
        places = places[: min(count, _MOST_CANDIDATES)] - 1
        # Runs are in the order of their addresses, and not always in that of their words.
        runs = copy.runs[np.argsort(copy.runs[:, 2])]
        row = np.searchsorted(runs[:, 2], places, side="right") - 1
        inside = places >= runs[row, 2]
        address = runs[row, 0] + 8 * (places - runs[row, 2])
        types.learn(address[inside].astype(np.uint64))


def _type_words(memory: Memory, types: TypeTable, layout: VersionLayout) -> NDArray[np.int64]:
    """Read of each type where weak references are kept, the names that its instances share, and where they have a dictionary."""
    found = np.zeros((len(types), 3), dtype=np.int64)
    for column, offset in enumerate((_WEAK_AT, layout.objects.cached_keys_at, _DICT_AT)):
        data, ok = memory.read_many(types.address + np.uint64(offset), 8)
        found[:, column] = np.where(ok, data.view(np.int64)[:, 0], 0)
    return found


def _numbers(layout: VersionLayout, multiplier: int, shift: int, mask: int) -> NDArray[np.int64]:
    places = layout.graph
    if places is None:
        raise TargetError("the layout of this version of Python says nothing of roots")
    objects = layout.objects
    numbers = np.zeros(len(Place), dtype=np.int64)
    bits = objects.refcount_flags
    for place, number in {
        Place.MULTIPLIER: multiplier,
        Place.SHIFT: shift,
        Place.MASK: mask,
        Place.VERSION: layout.version[1],
        Place.MOST_REFERENCES: objects.most_references,
        Place.REFERENCE_BITS: bits - (1 << 64) if bits >= 1 << 63 else bits,
        Place.FRAME_IN_GENERATOR: places.generator_frame,
        Place.GENERATOR_STATE: places.generator_state,
        Place.CODE_LOCALS: places.code_variables,
        Place.FRAME_CODE: places.frame_code,
        Place.FRAME_LOCALS: places.frame_variables,
        Place.FRAME_TOP: places.frame_top,
        Place.FRAME_OWNER: places.frame_owner,
        Place.ASCII_AT: objects.ascii_at,
        Place.TEXT_AT: objects.text_at,
        Place.DIGITS_SHIFT: objects.digits_shift,
        Place.BASIC_TYPE_BYTES: places.static_type_bytes,
        Place.COMPACT_KEYS: objects.compact_keys,
        Place.STACK_AT: places.frame_stack,
        Place.FRAME_TAGS: places.frame_tags,
        Place.GENERATOR_ENDED: places.generator_ended,
        Place.MODULE_STATE: places.module_state,
        Place.MODULE_STATE_BYTES: places.module_state_bytes,
        Place.BYTEARRAY_OBJECT: objects.bytearray_object,
        Place.CACHED_KEYS: objects.cached_keys_at,
    }.items():
        numbers[place] = number
    return numbers
