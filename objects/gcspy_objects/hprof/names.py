"""`DumpNamer`: names a reference of a dump, and the path from a static field or a thread to an object, in Java's syntax.

Names are read on demand. The inside of well-known collections is not named: see `collections`.

Knows a dump; knows no dominators and no tables.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.graph.references import ReferenceGraph
from gcspy_objects.graph.shortest import shortest_ways
from gcspy_objects.hprof.classes import Field
from gcspy_objects.hprof.collections import ENTRIES, ITEMS, SETS, TABLES, is_inside
from gcspy_objects.hprof.heap_dump import HeapDump
from gcspy_objects.hprof.layout import Sub
from gcspy_objects.hprof.loops import ClassInfo
from gcspy_objects.hprof.roots import ROOT_NAMES
from gcspy_objects.hprof.values import DumpValueReader

__all__ = ["DumpNamer"]

_MOST_STEPS: Final = 200
_LAST_STEPS: Final = 20
_THREAD_LOCAL: Final = "java.lang.ThreadLocal$ThreadLocalMap$Entry"
_STATICS: Final = {"<resolved_references>": " (constants)", "<init_lock>": " (lock)"}
_OF_CLASS: Final = {
    ClassInfo.SUPER: ".superclass",
    ClassInfo.LOADER: ".classLoader",
    ClassInfo.SIGNERS: ".signers",
    ClassInfo.DOMAIN: ".protectionDomain",
}
_BOOT: Final = 0


class DumpNamer:
    """Names for one dump.

    Args:
        dump: The dump.
        reached: (n,) whether a root reaches each object.
    """

    def __init__(self, dump: HeapDump, reached: NDArray[np.bool_]) -> None:
        self._dump = dump
        self._values = DumpValueReader(dump)
        self._fields: dict[int, list[Field]] = {}
        self._class_rows = {int(node): row for row, node in enumerate(dump.class_nodes.tolist())}
        self._parent = self._ways(reached)

    def _ways(self, reached: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the predecessor of each object on its path from a named start: classes of the program, threads, classes of the JVM, other roots."""
        dump = self._dump
        named = dump.namespaces & reached
        nodes = dump.class_nodes[named[dump.class_nodes]]
        rows = np.flatnonzero(named[dump.class_nodes])
        boot = dump.classes.info[rows, ClassInfo.LOADER] == _BOOT
        threads = np.array(list(dump.roots.thread), dtype=np.int64)
        loaders = np.flatnonzero(named & dump.is_loader)
        first = np.concatenate((nodes[~boot], threads, nodes[boot], loaders))
        graph = ReferenceGraph(dump.graph.starts, dump.graph.targets, first.astype(np.int32))
        return shortest_ways(graph, later=dump.graph.roots).parent

    def type_name(self, number: int) -> str:
        """Return the name of an object's class."""
        return self._dump.type_name(number)

    def way_to(self, number: int) -> str:
        """Describe the path from a root to an object: ``shop.Cache.ENTRIES['k12'].lines[3]``."""
        way = self._way(number)
        text = self._beginning(way[0])
        in_set = False
        for at, (above, below) in enumerate(pairwise(way)):
            if _MOST_STEPS <= at < len(way) - _LAST_STEPS:
                if at == _MOST_STEPS:
                    text += "…"
                continue
            step = self.reference(above, below)
            if step == " (key)" and in_set:
                step = " (member)"
            in_set = self._is_set(above) or (in_set and not step)
            if below in self._class_rows:
                step += f" {self._class_name(below)}"
            text += step
        return text

    def holder_name(self, number: int) -> str:
        """Describe the path to an object that holds others."""
        return self.way_to(number)

    def holder_type(self, number: int) -> str:
        """Return the type of the object that an object is a part of, such as a list for its array; its own if it is not a part."""
        way = self._way(number)
        while len(way) > 1 and not self.reference(way[-2], way[-1]):
            way.pop()
        return self.type_name(way[-1])

    def _way(self, number: int) -> list[int]:
        way = [number]
        while (above := int(self._parent[way[-1]])) >= 0:
            way.append(above)
        return way[::-1]

    def _beginning(self, node: int) -> str:
        """Name the start of a path."""
        dump = self._dump
        if node in self._class_rows:
            return self._class_name(node)
        if node in dump.roots.thread:
            name = self._values.refers_to(node, "name")
            text = None if name is None else self._values.text(name)
            return f"thread {text or 'without a name'}"
        if dump.namespaces[node]:
            return f"class loader {self.type_name(node)}"
        kind = dump.roots.kind.get(node)
        return f"{'nothing that was seen' if kind is None else ROOT_NAMES[kind]}: {self.type_name(node)}"

    def _class_name(self, node: int) -> str:
        return self._dump.classes.names[self._class_rows[node]]

    def reference(self, above: int, below: int) -> str:
        """Name the reference from one object to another: ``.name``, ``[3]``, ``['key']``; empty: it leads to a part of it."""
        dump = self._dump
        local = dump.roots.frame.get((above, below))
        kind = Sub(int(dump.data[int(dump.place[above])]))
        found = None
        if kind is Sub.CLASS:
            found = self._of_class(above, below)
        elif kind is Sub.OBJECTS:
            found = self._index(above, below)
        elif kind is Sub.INSTANCE:
            found = self._of_instance(above, below)
        if found is None and local is not None:
            return self._local(above, *local)
        if found is None:
            return ".class" if below in self._class_rows else f".<{self.type_name(above)}>"
        return found

    def _of_class(self, above: int, below: int) -> str | None:
        classes, held = self._dump.classes, int(self._dump.address[below])
        row = self._class_rows[above]
        for name, place in classes.statics_of(row):
            if self._identifier(place) == held:
                return _STATICS.get(name, f".{name}")
        return next(
            (text for column, text in _OF_CLASS.items() if classes.info[row, column] == held), None
        )

    def _index(self, above: int, below: int) -> str | None:
        dump = self._dump
        if self.type_name(above) in TABLES:
            return ""
        at = int(dump.place[above]) + 1 + dump.width + 4
        count = int.from_bytes(dump.data[at : at + 4].tobytes(), "big")
        at += 4 + dump.width
        items = dump.data[at : at + count * dump.width].view(">i8" if dump.width == 8 else ">u4")
        found = np.flatnonzero(items == dump.address[below])
        return f"[{int(found[0])}]" if len(found) else None

    def _of_instance(self, above: int, below: int) -> str | None:
        dump, held = self._dump, int(self._dump.address[below])
        row = int(dump.kind[above])
        fields = self._fields.get(row)
        if fields is None:
            fields = self._fields[row] = dump.classes.fields_of(row)
        first = int(dump.place[above]) + 1 + 2 * dump.width + 8
        for each in fields:
            if self._identifier(first + each.offset) == held:
                return self._field(above, dump.classes.names[each.owner], each.name)
        return None

    def _field(self, above: int, owner: str, name: str) -> str:
        if is_inside(owner, name):
            return ""
        if ITEMS.get(owner) == name:
            return "[…]"
        if owner in ENTRIES:
            key, value = ENTRIES[owner]
            if name == key:
                return " (key)"
            if name == value:
                found = self._values.refers_to(above, key or "referent")
                return "[…]" if found is None else f"[{self._values.key(found)}]"
        if owner == _THREAD_LOCAL and name == "value":
            variable = self._values.refers_to(above, "referent")
            if variable is None:
                return ", value of a ThreadLocal that is gone"
            return f", value of {self.way_to(variable)}"
        return f".{name}"

    def _local(self, thread: int, kind: Sub, depth: int) -> str:
        """Name a reference from a thread's stack."""
        dump = self._dump
        what = "a local" if kind is Sub.JAVA_FRAME else ROOT_NAMES[kind]
        frame = dump.frames.frame(dump.roots.thread[thread][1], depth)
        if frame is None:
            return f", {what}"
        found = np.flatnonzero(dump.loads[:, 0] == frame.class_serial)
        rows = dump.classes.rows_of(dump.loads[found[:1], 1])
        class_name = dump.classes.names[int(rows[0])] if len(rows) and rows[0] >= 0 else "?"
        return f", {class_name}.{dump.texts.text(frame.method)}(), {what}"

    def _is_set(self, number: int) -> bool:
        row = int(self._dump.kind[number])
        while 0 <= row < len(self._dump.classes):
            if self._dump.classes.names[row] in SETS:
                return True
            row = int(self._dump.classes.above[row])
        return False

    def _identifier(self, at: int) -> int:
        return int.from_bytes(self._dump.data[at : at + self._dump.width].tobytes(), "big")
