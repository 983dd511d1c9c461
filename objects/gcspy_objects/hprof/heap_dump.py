"""`HeapDump`: a heap dump as a graph of objects, with the columns that an answer about holders needs.

An object's number is its place among all objects by address. The references of `java.lang.ref`, which do not keep their targets alive, are not
followed, except to softly reachable objects, and to objects that wait for their finalizer, if nothing else holds these.

Knows the format; `names` has the names of references.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from gcspy_protocol.errors import TraceError
from numpy.typing import NDArray

from gcspy_objects.graph.references import ReferenceGraph
from gcspy_objects.graph.shortest import shortest_ways
from gcspy_objects.hprof.classes import DumpClassTable, value_type_name
from gcspy_objects.hprof.layout import FORMATS, GZIP, TYPE_NAMES, Sub
from gcspy_objects.hprof.loops import ClassInfo, Problem, State
from gcspy_objects.hprof.machine_code import Loops
from gcspy_objects.hprof.roots import FrameTable, RootTable, numbers_at, read_roots
from gcspy_objects.hprof.sizes import DumpLayout, find_layout
from gcspy_objects.hprof.texts import TextTable
from gcspy_objects.names import is_called

__all__ = ["HeapDump", "load", "parse"]

_AT_ONCE: Final = 500_000
_CHUNK_BYTES: Final = 16 << 20
_LEAST_OBJECT: Final = {4: 14, 8: 18}
"""Bytes of an empty array of values, the smallest sub-record of an object."""
_HEAD_BYTES: Final = 64
_BLOCKS, _BLOCK = 64, 4096
"""This many objects in this many places are enough to determine the layout of the heap."""

_SAID: Final = {
    Problem.CUT_RECORD: "the head of a record is cut short",
    Problem.RECORD_BEYOND: "a record is longer than the file: it was cut short",
    Problem.RECORD_TOO_SHORT: "a record is too short for what it is",
    Problem.UNKNOWN_SUB: "there is no such kind of sub-record",
    Problem.SUB_BEYOND: "a sub-record is longer than its segment",
    Problem.UNKNOWN_TYPE: "there is no such type of values",
    Problem.NO_CLASS: "the class of an object is not in the dump",
    Problem.SHORT_INSTANCE: "an object has fewer bytes than its class has fields",
}


@dataclass(frozen=True, eq=False)
class HeapDump:
    """All objects of a JVM at one moment.

    Attributes:
        file: Name of the dump, for messages.
        data: (b,) its bytes, from which names are read.
        width: Bytes of an identifier.
        graph: The references; roots as given by the JVM.
        address: (n,) of each object, ascending.
        kind: (n,) row of its class in `classes`; len(classes): a class; that and a `layout.Type`: an array of values.
        own: (n,) bytes of each object.
        place: (n,) where in `data` its sub-record begins.
        classes: Classes.
        texts: Names.
        loads: (c, 3) classes by serial number: serial number, identifier, name.
        roots: Roots and threads.
        frames: Stack traces.
        layout: How its objects lie in memory.
        missing: References that lead to no object of the dump.
    """

    file: str
    data: NDArray[np.uint8]
    width: int
    graph: ReferenceGraph
    address: NDArray[np.int64]
    kind: NDArray[np.int32]
    own: NDArray[np.int64]
    place: NDArray[np.int64]
    classes: DumpClassTable
    texts: TextTable
    loads: NDArray[np.int64]
    roots: RootTable
    frames: FrameTable
    layout: DumpLayout
    missing: int

    @property
    def objects(self) -> int:
        """Number of objects."""
        return len(self.address)

    def number_of(self, address: int) -> int | None:
        """Return the number of the object at an address; None: there is none."""
        if not 0 < address < 1 << 63:
            return None
        at = int(np.searchsorted(self.address, address))
        return at if at < self.objects and self.address[at] == address else None

    def type_name(self, number: int) -> str:
        """Return the name of an object's class, as Java writes it."""
        return self.kind_name(int(self.kind[number]))

    def kind_name(self, kind: int) -> str:
        """Return the name of a kind, see `kind`."""
        if kind < len(self.classes):
            return self.classes.names[kind]
        if kind == len(self.classes):
            return "java.lang.Class"
        return value_type_name(kind - len(self.classes))

    def of_type(self, name: str) -> NDArray[np.int32]:
        """Return the objects of a class: ``shop.Order``, ``Order``, ``shop.Order$Item``, ``Order.Item``, ``Item``, ``byte[]``."""
        kinds = [row for row, each in enumerate(self.classes.names) if is_called(each, name)]
        top = len(self.classes)
        kinds += [
            top + each for each in (0, *TYPE_NAMES) if is_called(self.kind_name(top + each), name)
        ]
        return np.flatnonzero(np.isin(self.kind, kinds)).astype(np.int32)

    @cached_property
    def class_nodes(self) -> NDArray[np.int64]:
        """(k,) number of each class's object."""
        return np.searchsorted(self.address, self.classes.address)

    @cached_property
    def is_loader(self) -> NDArray[np.bool_]:
        """(n,) whether an object loads classes."""
        kinds = np.flatnonzero(self.classes.kinds_of("java.lang.ClassLoader"))
        return np.isin(self.kind, kinds)

    @cached_property
    def namespaces(self) -> NDArray[np.bool_]:
        """(n,) objects that are never named as holders: classes, class loaders and their lists of classes.

        A loader most of whose classes another one of its kind has loaded as well is excepted: it
        was leaked.
        """
        found = np.zeros(self.objects, dtype=np.bool_)
        loader = self.classes.info[:, ClassInfo.LOADER]
        forgotten = self._loaded_twice(loader)
        found[self.class_nodes[~np.isin(loader, forgotten)]] = True
        loaders = np.flatnonzero(self.is_loader)
        loaders = loaders[~np.isin(self.address[loaders], forgotten)]
        found[loaders] = True
        at = self.classes.reference_at("java.lang.ClassLoader", "classes")
        lists = self._referred(loaders, at)
        found[lists] = True
        for owner in ("java.util.ArrayList", "java.util.Vector"):
            items = self.classes.reference_at(owner, "elementData")
            found[self._referred(lists, items)] = True
        return found

    def _loaded_twice(self, loader: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return addresses of loaders most of whose classes others of their kind have loaded, too."""
        rows = np.flatnonzero(loader != 0)
        nodes = np.searchsorted(self.address, loader[rows])
        nodes = np.minimum(nodes, max(0, self.objects - 1))
        key = np.stack((self.kind[nodes].astype(np.int64), self.classes.names_id[rows]))
        _, group, count = np.unique(key, axis=1, return_inverse=True, return_counts=True)
        twice = count[group.reshape(-1)] > 1
        addresses, of = np.unique(loader[rows], return_inverse=True)
        share = np.bincount(of, weights=twice) / np.maximum(1, np.bincount(of))
        return addresses[share > 0.5]

    def _referred(self, nodes: NDArray[np.int64], offset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the objects that one reference of some instances leads to, by its offset (k,) in each class."""
        kinds = self.kind[nodes]
        nodes = nodes[kinds < len(self.classes)]
        at = offset[self.kind[nodes]]
        nodes, at = nodes[at >= 0], at[at >= 0]
        ids = numbers_at(self.data, self.place[nodes] + 1 + 2 * self.width + 8 + at, self.width)
        rows = np.minimum(np.searchsorted(self.address, ids), max(0, self.objects - 1))
        return rows[self.address[rows] == ids] if len(rows) else rows


def load(
    file: io.RawIOBase, name: str, most_bytes: int, progress: Callable[[int, int], None]
) -> NDArray[np.uint8]:
    """Read a whole dump into memory; it is not mapped, as a mapping of a file that is cut short ends its reader.

    Args:
        file: The file, at its beginning.
        name: Its name, for messages.
        most_bytes: A larger one is refused.
        progress: Called with the number of bytes read, and the total.

    Raises:
        TraceError: It is too large, or there is no memory for it.
        OSError: It cannot be read.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if size > most_bytes:
        raise TraceError(
            f"{name}: a heap dump of more than {most_bytes:,} bytes does not fit into memory",
            file=name,
        )
    try:
        data = np.empty(size, dtype=np.uint8)
    except MemoryError:
        raise TraceError(f"{name}: there is no memory for its {size:,} bytes", file=name) from None
    at = 0
    while at < size:
        count = file.readinto(data[at : at + _CHUNK_BYTES].data) or 0
        if not count:
            return data[:at]
        at += count
        progress(at, size)
    return data


def parse(
    data: NDArray[np.uint8],
    file: str,
    loops: Loops,
    progress: Callable[[int, int], None] = lambda _done, _whole: None,
) -> HeapDump:
    """Build the graph of a dump.

    Args:
        data: (b,) its bytes, writable as machine code requires; kept, for names.
        file: Its name, for messages.
        loops: The loops, compiled or not.
        progress: Called with the progress, and the total.

    Raises:
        TraceError: It is not a heap dump, or is damaged; the message says where.
    """
    return _Parser(data, file, loops, progress).run()


class _Parser:
    """A graph under construction."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        file: str,
        loops: Loops,
        progress: Callable[[int, int], None],
    ) -> None:
        self.data, self.file, self.loops, self.progress = data, file, loops, progress
        self.state = np.zeros(len(State), dtype=np.int64)
        self.width = self._head()

    def run(self) -> HeapDump:
        self.loops.count_records(self.data, self.state)
        self._check()
        address, place, roots, tables = self._objects()
        texts = TextTable(self.data, tables[0])
        classes = self._classes(address, place, texts, tables[1])
        root_table, lost = read_roots(self.data, self.width, roots, address)
        unheld, late = _unheld(classes)
        layout_starts, layout = classes.references()
        n = len(address)
        kind = np.empty(n, dtype=np.int32)
        amount = np.empty(n, dtype=np.int64)
        starts = np.empty(n + 1, dtype=np.int64)
        segment_bytes = int(self.state[State.SEGMENT_BYTES])
        targets = np.empty(segment_bytes // self.width + len(root_table.local) + 1, dtype=np.int32)
        buckets, shift = _buckets(address)
        columns = (
            classes.address,
            classes.field_bytes,
            layout_starts,
            layout,
            self._linked(classes, root_table, address),
            unheld,
        )
        while n and self.loops.follow(
            self.data, self.width, address, place, buckets, shift, columns, classes.info, classes.statics,
            root_table.local, kind, amount, starts, targets, self.state, _AT_ONCE,
        ):  # fmt: skip
            self.progress(n + int(self.state[State.NEXT]), 2 * n)
        self._check()
        if not n:
            starts[0] = 0
        del buckets
        targets.resize(int(starts[-1]), refcheck=False)
        graph = ReferenceGraph(starts, targets, root_table.node)
        self._follow_late(graph, address, kind, place, unheld, late)
        own, heap_layout = self._sizes(address, kind, amount, classes, layout_starts)
        missing = lost + int(self.state[State.MISSING])
        return HeapDump(
            self.file, self.data, self.width, graph, address, kind, own, place, classes, texts, tables[1], root_table,
            FrameTable(self.data, self.width, tables[2], tables[3]), heap_layout, missing,
        )  # fmt: skip

    def _head(self) -> int:
        """Read the head; leave in the state where the records begin.

        Returns:
            Bytes of an identifier.
        """
        head = self.data[:_HEAD_BYTES].tobytes()
        if head.startswith(GZIP):
            raise self._error("it is compressed: decompress it with gunzip first", 0)
        name, zero, _ = head.partition(b"\0")
        if not zero or name not in FORMATS:
            known = ", ".join(each.decode() for each in FORMATS)
            raise self._error(f"it is not a heap dump that a JVM writes ({known})", 0)
        at = len(name) + 1
        if len(self.data) < at + 12:
            raise self._error("it ends in its head", len(self.data))
        width = int.from_bytes(head[at : at + 4], "big")
        if width not in _LEAST_OBJECT:
            raise self._error(f"its identifiers have {width} bytes, not 4 or 8", at)
        self.state[State.AT] = self.state[State.STOP] = at + 12
        return width

    def _error(self, what: str, offset: int) -> TraceError:
        return TraceError(f"{self.file}: byte {offset:,}: {what}", file=self.file, offset=offset)

    def _check(self) -> None:
        problem = Problem(int(self.state[State.PROBLEM]))
        if problem:
            raise self._error(_SAID[problem], int(self.state[State.PROBLEM_AT]))

    def _objects(
        self,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        tuple[NDArray[np.int64], ...],
    ]:
        """Find all objects: address and place of each, by address; places of roots; tables of other records."""
        state, segment_bytes = self.state, int(self.state[State.SEGMENT_BYTES])
        kinds = (State.TEXTS, State.LOADS, State.FRAMES, State.TRACES)
        tables = tuple(np.zeros((int(state[each]), 3), dtype=np.int64) for each in kinds)
        state[list(kinds)] = 0
        # This is enough room, and is only allocated as it is used.
        most = segment_bytes // _LEAST_OBJECT[self.width] + 1
        address, place = (np.empty(most, dtype=np.int64) for _ in range(2))
        roots = np.empty(segment_bytes // (1 + self.width) + 1, dtype=np.int64)
        while self.loops.scan(
            self.data, self.width, tables, address, place, roots, state, _AT_ONCE
        ):
            self.progress(int(state[State.AT]), 2 * len(self.data))
        self._check()
        n = int(state[State.OBJECTS])
        if n >= 1 << 31:
            raise self._error(f"it has {n:,} objects, too many", 0)
        for each in (address, place):
            each.resize(n, refcheck=False)
        address, place = _by_address(address, place)
        same = np.flatnonzero(address[1:] == address[:-1])
        if len(same):
            raise self._error(
                f"two objects are at {int(address[same[0]]):#x}", int(place[same[0] + 1])
            )
        if n and address[0] <= 0:
            raise self._error("an object is at an address that no process has", int(place[0]))
        return address, place, roots[: int(state[State.ROOTS])].copy(), tables

    def _classes(
        self,
        address: NDArray[np.int64],
        place: NDArray[np.int64],
        texts: TextTable,
        loads: NDArray[np.int64],
    ) -> DumpClassTable:
        rows = np.flatnonzero(self.data[place] == Sub.CLASS)
        info = np.zeros((len(rows), len(ClassInfo)), dtype=np.int64)
        fields = np.zeros((int(self.state[State.FIELDS]), 3), dtype=np.int64)
        statics = np.zeros((int(self.state[State.STATICS]), 4), dtype=np.int64)
        self.loops.describe(self.data, self.width, place[rows], info, fields, statics)
        names = np.zeros(len(rows), dtype=np.int64)
        if len(rows) and len(loads):
            at = np.minimum(np.searchsorted(address[rows], loads[:, 1]), len(rows) - 1)
            there = address[rows][at] == loads[:, 1]
            names[at[there]] = loads[there, 2]
        return DumpClassTable(
            texts, address[rows], names, info, fields, statics, self.width, self.file
        )

    def _linked(
        self, classes: DumpClassTable, roots: RootTable, address: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return by class the object that its instances refer to for it; -1 of classes that never go."""
        nodes = np.searchsorted(address, classes.address)
        sticky = [node for node, kind in roots.kind.items() if kind is Sub.STICKY_CLASS]
        return np.where(np.isin(nodes, sticky), -1, nodes).astype(np.int64)

    def _follow_late(
        self,
        graph: ReferenceGraph,
        address: NDArray[np.int64],
        kind: NDArray[np.int32],
        place: NDArray[np.int64],
        unheld: NDArray[np.int64],
        late: NDArray[np.bool_],
    ) -> None:
        """Follow references that count only if nothing else holds their target; they are the first of their object."""
        if not late.any():
            return
        rows = np.flatnonzero(np.isin(kind, np.flatnonzero(late)))
        at = place[rows] + 1 + 2 * self.width + 8 + unheld[kind[rows]]
        ids = numbers_at(self.data, at, self.width)
        to = np.minimum(np.searchsorted(address, ids), len(address) - 1)
        there = address[to] == ids
        rows, to = rows[there], to[there]
        alone = shortest_ways(graph).depth[to] < 0
        graph.targets[graph.starts[rows[alone]]] = to[alone]

    def _sizes(
        self,
        address: NDArray[np.int64],
        kind: NDArray[np.int32],
        amount: NDArray[np.int64],
        classes: DumpClassTable,
        layout_starts: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], DumpLayout]:
        """Return (n,) bytes of each object; `amount` is used up."""
        k = len(classes)
        references = np.diff(layout_starts)
        array = np.array([name.endswith("[]") for name in classes.names], dtype=np.bool_)
        # Neighbours from everywhere: the beginning of a heap may contain only one kind.
        n = len(address)
        blocks = np.linspace(0, max(0, n - _BLOCK), max(1, min(_BLOCKS, n // _BLOCK))).astype(
            np.int64
        )
        told = np.unique(blocks[:, None] + np.arange(min(n, _BLOCK)))
        row = kind[told]
        some = np.minimum(row, max(0, k - 1))
        instance = (row < k) & ~array[some] if k else np.zeros(len(row), dtype=np.bool_)
        layout = find_layout(
            address[told],
            np.where((row < k) & ~instance, amount[told], -1),
            np.where(instance, classes.field_bytes[some], -1) if k else np.full(len(row), -1),
            references[some] if k else np.zeros(len(row), dtype=np.int64),
            self.width,
        )
        item = np.zeros(k + 12, dtype=np.int64)
        item[:k][array] = layout.reference
        base = np.zeros(k + 12, dtype=np.int64)
        narrower = (self.width - layout.reference) * references
        base[:k] = layout.header + classes.field_bytes - narrower
        for each, size in zip(range(4, 12), (1, 2, 4, 8, 1, 2, 4, 8), strict=True):
            item[k + each] = size
        arrays = item > 0
        base[arrays] = layout.array_header(item[arrays])
        mirror = classes.by_name.get("java.lang.Class", [])
        base[k] = base[mirror[0]] if mirror else layout.header
        amount *= item[kind]
        amount += base[kind]
        amount[np.searchsorted(address, classes.address)] += _static_bytes(classes, layout)
        return layout.rounded(amount), layout


def _by_address(
    address: NDArray[np.int64], place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort objects by address; of equal ones the first in the dump stays first.

    A JVM writes its heap region by region, each in ascending order: few pieces to put into order,
    where sorting would take a column of numbers and as much time as reading the dump. Both columns
    are used up.
    """
    begins = np.flatnonzero(address[1:] <= address[:-1]) + 1
    if not len(begins):
        return address, place
    begins, ends = np.append(0, begins), np.append(begins, len(address))
    order = np.argsort(address[begins], kind="stable")
    begins, ends = begins[order], ends[order]
    if (address[ends[:-1] - 1] >= address[begins[1:]]).any():
        rows = np.argsort(address, kind="stable")
        return address[rows], place[rows]
    pieces = [slice(*each) for each in zip(begins.tolist(), ends.tolist(), strict=True)]
    sorted_address = np.concatenate([address[piece] for piece in pieces])
    # The second column takes the first one's memory: fresh memory costs more than the copying.
    np.concatenate([place[piece] for piece in pieces], out=address)
    return sorted_address, address


def _static_bytes(classes: DumpClassTable, layout: DumpLayout) -> NDArray[np.int64]:
    """Return (k,) bytes of the statics of each class, which its object has."""
    sizes = np.zeros(256, dtype=np.int64)
    sizes[4:12] = (1, 2, 4, 8, 1, 2, 4, 8)
    sizes[2] = layout.reference
    each = sizes[classes.statics[:, 2]]
    return np.bincount(classes.statics[:, 0], weights=each, minlength=len(classes)).astype(np.int64)


def _unheld(classes: DumpClassTable) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return by class where its instances have a reference that does not hold, -1: nowhere; and whether it may count later."""
    offset = classes.reference_at("java.lang.ref.Reference", "referent")
    late = classes.kinds_of("java.lang.ref.SoftReference")
    late |= classes.kinds_of("java.lang.ref.FinalReference")
    return offset, late & (offset >= 0)


def _buckets(address: NDArray[np.int64]) -> tuple[NDArray[np.int32], int]:
    """Return the number of the first object of each part of the addresses, and how many bytes a part has, as a power of two."""
    if not len(address):
        return np.zeros(2, dtype=np.int32), 0
    span, shift = int(address[-1] - address[0]), 0
    while span >> shift > 2 * len(address):
        shift += 1
    count = (span >> shift) + 1
    buckets = np.zeros(count + 1, dtype=np.int32)
    for begin in range(0, len(address), _AT_ONCE):
        part = (address[begin : begin + _AT_ONCE] - address[0]) >> shift
        found = np.bincount(part - part[0])
        buckets[part[0] + 1 : part[0] + 1 + len(found)] += found.astype(np.int32)
    np.cumsum(buckets, out=buckets)
    return buckets, shift
