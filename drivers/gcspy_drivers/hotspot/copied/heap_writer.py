"""`written_dump`: a heap dump, in memory, made from the copy of a heap.

It has what a JVM writes into a heap dump, except for what only the JVM itself knows: references
from stacks of threads, from native code and from the VM. Its roots are the classes of the boot
loader, and the threads that have begun and have not ended. An identifier is an address, as in a
JVM's own dump.

Where fields are is checked: in each class, the references among them must be where the class
itself says that its instances have references.

Knows copies, classes and the format; reads nothing but classes.

Source: OpenJDK src/hotspot/share/services/heapDumper.cpp, the comment at its top.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_objects.hprof.layout import FORMATS, Sub, Tag, Type
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.hotspot.copied.class_fields import ClassFieldReader, JavaClass, JavaField
from gcspy_drivers.hotspot.copied.heap_copy import CopiedHeap, CopiedSpan
from gcspy_drivers.hotspot.copied.machine_code import CopyLoops
from gcspy_drivers.hotspot.objects.form import FORM, ObjectForm
from gcspy_drivers.hotspot.objects.heap_walk import WalkStop
from gcspy_drivers.hotspot.objects.layout import SpanKind
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.hotspot.vm.klasses import CLASS, ClassShape, Klasses, Trait

__all__ = ["WrittenDump", "written_dump"]

_ROOM: Final = 1 << 20
_OBJECT_HEAD, _ARRAY_HEAD, _VALUES_HEAD = 25, 25, 18
_MOST_WRONG: Final = 0.01
"""Share of classes whose fields may contradict their own map of references: some are just being loaded."""
_LEAST_CLASSES: Final = 100
_MOST_DEEP: Final = 256
_TYPE_OF_LETTER: Final = dict(
    zip(
        "ZCFDBSIJ",
        (
            Type.BOOLEAN,
            Type.CHAR,
            Type.FLOAT,
            Type.DOUBLE,
            Type.BYTE,
            Type.SHORT,
            Type.INT,
            Type.LONG,
        ),
        strict=True,
    )
)
_BYTES: Final = {
    Type.BOOLEAN: 1,
    Type.CHAR: 2,
    Type.FLOAT: 4,
    Type.DOUBLE: 8,
    Type.BYTE: 1,
    Type.SHORT: 2,
    Type.INT: 4,
    Type.LONG: 8,
}

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False, slots=True)
class WrittenDump:
    """A heap dump.

    Attributes:
        data: (b,) its bytes.
        lost_bytes: Bytes of the heap in which no objects could be found.
        lost_objects: Objects whose class could not be described.
    """

    data: U8
    lost_bytes: int
    lost_objects: int


@dataclass(eq=False, slots=True)
class _Found:
    """The objects of a span: offset and class of each."""

    copy: CopiedSpan
    where: I64
    kind: I32

    @property
    def data(self) -> U8:
        return self.copy.words.view(np.uint8)

    def column(self, rows: I64, offset: int, size: int) -> I64:
        """Return a number of ``size`` bytes of some objects, (k,); 0 beyond the copy."""
        at = self.where[rows] + offset
        fits = at + size <= len(self.data)
        found = self.data[np.where(fits, at, 0)[:, None] + np.arange(size)]
        numbers = np.ascontiguousarray(found).view(f"<u{size}")[:, 0].astype(np.int64)
        return np.where(fits, numbers, 0)


@dataclass(eq=False, slots=True)
class _Writer:
    """Records outside of segments of objects."""

    parts: list[bytes] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)

    def record(self, tag: Tag, body: bytes) -> None:
        """Add a record."""
        self.parts.append(struct.pack(">BII", tag, 0, len(body)) + body)

    def text(self, text: str) -> int:
        """Add a text, once; returns its identifier."""
        found = self.texts.get(text)
        if found is None:
            found = self.texts[text] = len(self.texts) + 1
            self.record(Tag.TEXT, struct.pack(">Q", found) + text.encode("utf-8", "replace"))
        return found


def written_dump(jvm: Jvm, form: ObjectForm, heap: CopiedHeap, loops: CopyLoops) -> WrittenDump:
    """Make a heap dump.

    Args:
        jvm: The JVM, for its classes.
        form: Layout of its objects.
        heap: The copy.
        loops: The loops.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it any more.
        Unsupported: It does not export where classes have their fields.
        TargetError: Its classes are not as its version should have them.
    """
    return _Dump(jvm, form, heap, loops).write()


class _Dump:
    """A dump under construction."""

    def __init__(self, jvm: Jvm, form: ObjectForm, heap: CopiedHeap, loops: CopyLoops) -> None:
        self._jvm, self._form, self._heap, self._loops = jvm, form, heap, loops
        place = jvm.tables.static("java_lang_Class", "_klass_offset")
        if place is None or not form.mirror_size:
            raise Unsupported(
                f"process {jvm.process.pid}: Java {jvm.release} does not export where a class object has its class: add --hold",
                found=jvm.version,
                known="a JVM that exports it",
            )
        self._klass_at = int.from_bytes(jvm.memory.read(place, 4), "little")
        self._klasses = Klasses(jvm.memory, jvm.tables, form)
        self._reader = ClassFieldReader(jvm.memory, jvm.tables, self._klasses)
        self._writer = _Writer()
        self._lost_bytes = heap.lost_bytes
        self._lost_objects = 0

    def write(self) -> WrittenDump:
        """Make it."""
        found = [self._index(copy) for copy in self._heap.spans]
        mirrors, mirror_of = self._mirrors(found)
        classes = self._reader.read(np.array(sorted(mirror_of), dtype=np.uint64))
        lineages = _lineages(classes, mirror_of)
        ids, starts, plans = self._plans(lineages, mirror_of)
        self._check(lineages)
        loader_at = _offset_of(classes, "java/lang/Class", "classLoader")
        # Mirrors of classes that are described are classes, and no instances.
        described = {mirror_of[address]: address for address in lineages}
        heads = self._classes(found, mirrors, described, classes, mirror_of, loader_at)
        roots = self._threads(found, classes, lineages)
        roots += b"".join(
            struct.pack(">BQ", Sub.STICKY_CLASS, mirror) for mirror in heads.of_boot_loader
        )
        for each in found:
            where = each.where + each.copy.span.bottom
            for row in np.flatnonzero(each.kind == self._mirror_number).tolist():
                if int(where[row]) in described:
                    each.kind[row] = -1
        segments: list[bytes | U8] = [
            roots + heads.text,
            *(self._segment(each, ids, starts, plans) for each in found),
        ]
        return self._together(segments)

    def _together(self, segments: list[bytes | U8]) -> WrittenDump:
        """Put the parts one behind the other."""
        head = FORMATS[1] + b"\0" + struct.pack(">IQ", 8, 0) + b"".join(self._writer.parts)
        pieces = [np.frombuffer(head, dtype=np.uint8)]
        for each in segments:
            if len(each):
                record = struct.pack(">BII", Tag.SEGMENT, 0, len(each))
                pieces.append(np.frombuffer(record, dtype=np.uint8))
                pieces.append(
                    np.frombuffer(each, dtype=np.uint8) if isinstance(each, bytes) else each
                )
        return WrittenDump(np.concatenate(pieces), self._lost_bytes, self._lost_objects)

    def _index(self, copy: CopiedSpan) -> _Found:
        """Find the objects of a span."""
        span, klasses, marks = copy.span, self._klasses, copy.marks
        place = np.array(
            [
                span.bottom,
                min(span.marked_top, span.top) if marks is not None else 0,
                marks.base if marks is not None else 0,
                marks.shift if marks is not None else 0,
                span.kind is SpanKind.HUMONGOUS,
                8 * len(copy.words),
            ],
            dtype=np.int64,
        )
        bits = marks.words if marks is not None else np.zeros(0, dtype=np.int64)
        state = np.zeros(3, dtype=np.int64)
        room = min(_ROOM, len(copy.words) // 2 + 1)
        where, kind = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int32)
        parts: list[tuple[I64, I32]] = []
        while state[0] < len(copy.words):
            state[1] = 0
            why = self._loops.index(
                copy.words, state, place, klasses.numbers_of_form, klasses.keys, klasses.numbers,
                klasses.classes, copy.gaps, bits, where, kind,
            )  # fmt: skip
            count = int(state[1])
            parts.append((where[:count].copy(), kind[:count].copy()))
            if why == WalkStop.UNKNOWN:
                klasses.add(int(state[2]))
            elif why == WalkStop.BAD:
                state[0] = self._lose(copy, int(state[0]))
            elif why == WalkStop.DONE:
                break
        return _Found(
            copy,
            np.concatenate([one for one, _ in parts]) if parts else where[:0],
            np.concatenate([one for _, one in parts]) if parts else kind[:0],
        )

    def _lose(self, copy: CopiedSpan, at: int) -> int:
        """Skip words in which no object could be found, up to the next known start of one; returns it."""
        here = copy.span.bottom + 8 * at
        anchors = self._heap.anchors
        row = int(np.searchsorted(anchors, here, side="right"))
        following = int(anchors[row]) if row < len(anchors) else copy.span.top
        following = min(following, copy.span.bottom + 8 * len(copy.words))
        self._lost_bytes += following - here
        return (following - copy.span.bottom) >> 3

    @property
    def _mirror_number(self) -> int:
        """Number of the class ``java.lang.Class``; -1: no object of it was met."""
        shapes = self._klasses.classes[: len(self._klasses), CLASS.SHAPE]
        rows = np.flatnonzero(shapes == ClassShape.MIRROR)
        return int(rows[0]) if len(rows) else -1

    def _mirrors(self, found: list[_Found]) -> tuple[dict[int, tuple[int, int]], dict[int, int]]:
        """Return span and row of each class object by its address, and the class object of each class by the address of its structure."""
        places: dict[int, tuple[int, int]] = {}
        mirror_of: dict[int, int] = {}
        for span, each in enumerate(found):
            rows = np.flatnonzero(each.kind == self._mirror_number)
            klass = each.column(rows, self._klass_at, 8)
            address = each.where[rows] + each.copy.span.bottom
            for row, place, of in zip(rows.tolist(), address.tolist(), klass.tolist(), strict=True):
                places[place] = span, row
                if of > 0:
                    mirror_of.setdefault(of, place)
        if not mirror_of:
            raise TargetError(
                f"process {self._jvm.process.pid}: no class objects were found in its heap: add --hold"
            )
        return places, mirror_of

    def _plans(
        self,
        lineages: dict[int, list[JavaClass]],
        mirror_of: dict[int, int],
    ) -> tuple[I64, I64, I64]:
        """Return by number of a class: its identifier, 0 if it cannot be described; where its fields begin; and the fields, (f, 2)."""
        count = len(self._klasses)
        ids, starts = np.zeros(count, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
        plans: list[tuple[int, int]] = []
        for number, address in enumerate(self._klasses.addresses):
            lineage = lineages.get(address)
            if lineage is not None and self._klasses.classes[number, CLASS.SHAPE]:
                ids[number] = mirror_of[address]
                if lineage[0].layout > 0:
                    plans += [
                        (one.offset, _BYTES.get(one.type, 0))
                        for each in lineage
                        for one in each.fields
                        if not one.static
                    ]
            starts[number + 1] = len(plans)
        return ids, starts, np.array(plans, dtype=np.int64).reshape(-1, 2)

    def _check(self, lineages: dict[int, list[JavaClass]]) -> None:
        """Refuse if fields are not where the classes themselves have references.

        Raises:
            TargetError: They are not.
        """
        wrong = checked = 0
        width = self._form.oop_bytes
        for number, address in enumerate(self._klasses.addresses):
            row = self._klasses.classes[number]
            if (
                row[CLASS.SHAPE] != ClassShape.INSTANCE
                or address not in lineages
                or row[CLASS.MAPS] < 0
            ):
                continue
            maps = self._klasses.maps[row[CLASS.FIRST_MAP] : row[CLASS.FIRST_MAP] + row[CLASS.MAPS]]
            said = {at + width * step for at, times in maps.tolist() for step in range(times)}
            held = [
                one.offset
                for each in lineages[address]
                if each.name != "java/lang/ref/Reference"
                for one in each.fields
                if one.type is Type.OBJECT and not one.static
            ]
            checked += 1
            # The VM adds fields of its own to some classes.
            wrong += len(set(held)) != len(held) or not said.issuperset(held)
        if wrong > max(1, checked * _MOST_WRONG) or not checked:
            raise TargetError(
                f"process {self._jvm.process.pid}: the fields of {wrong:,} of {checked:,} classes are not where Java "
                f"{self._jvm.release} should have them: add --hold, and a heap dump answers"
            )

    def _classes(
        self,
        found: list[_Found],
        mirrors: dict[int, tuple[int, int]],
        described: dict[int, int],
        classes: dict[int, JavaClass],
        mirror_of: dict[int, int],
        loader_at: int,
    ) -> _ClassText:
        """Write a sub-record for each class."""
        text = _ClassText()
        root = next((one.address for one in classes.values() if one.name == "java/lang/Object"), 0)
        for serial, (mirror, address) in enumerate(described.items(), 1):
            one = classes[address]
            name = self._writer.text(one.name)
            self._writer.record(Tag.LOAD_CLASS, struct.pack(">IQIQ", serial, mirror, 0, name))
            span, row = mirrors[mirror]
            copy = found[span]
            first = int(copy.where[row])
            loader = self._value(copy.data, first + loader_at, 0)
            if not loader and one.layout > 0:
                text.of_boot_loader.append(mirror)
            statics = [each for each in one.fields if each.static]
            own = [each for each in one.fields if not each.static]
            parts = [
                struct.pack(
                    ">BQIQQQQQQIHH",
                    Sub.CLASS,
                    mirror,
                    0,
                    mirror_of.get(one.above if one.layout > 0 else root, 0),
                    loader,
                    0,
                    0,
                    0,
                    0,
                    max(0, one.layout),
                    0,
                    len(statics) + bool(one.constants),
                )
            ]
            for each in statics:
                size = _BYTES.get(each.type, 0)
                number = self._value(copy.data, first + each.offset, size)
                parts.append(struct.pack(">QB", self._writer.text(each.name), each.type))
                parts.append(number.to_bytes(size or 8, "big"))
            if one.constants:
                parts.append(
                    struct.pack(
                        ">QBQ",
                        self._writer.text("<resolved_references>"),
                        Type.OBJECT,
                        one.constants,
                    )
                )
            parts.append(struct.pack(">H", len(own)))
            parts += [struct.pack(">QB", self._writer.text(each.name), each.type) for each in own]
            text.parts += parts
        return text

    def _value(self, data: U8, at: int, size: int) -> int:
        """Return a value of a class object; of size 0 a reference."""
        width = size or self._form.oop_bytes
        found = int.from_bytes(data[at : at + width].tobytes(), "little") if at >= 0 else 0
        if size or width == 8 or not found:
            return found
        return self._form.oop_base + (found << self._form.oop_shift)

    def _threads(
        self,
        found: list[_Found],
        classes: dict[int, JavaClass],
        lineages: dict[int, list[JavaClass]],
    ) -> bytes:
        """Write a root for each thread that runs: the VM's own structure of it is not null."""
        native_at = _offset_of(classes, "java/lang/Thread", "eetop")
        kinds = [
            number
            for number, address in enumerate(self._klasses.addresses)
            if any(one.name == "java/lang/Thread" for one in lineages.get(address, ()))
        ]
        roots: list[bytes] = []
        for each in found if native_at >= 0 else []:
            rows = np.flatnonzero(np.isin(each.kind, kinds))
            running = rows[each.column(rows, native_at, 8) != 0]
            for place in (each.where[running] + each.copy.span.bottom).tolist():
                roots.append(struct.pack(">BQII", Sub.THREAD, place, len(roots) + 1, 0))
        return b"".join(roots)

    def _segment(self, found: _Found, ids: I64, starts: I64, plans: I64) -> U8:
        """Write the objects of a span."""
        klasses = self._klasses
        count = len(ids)
        rows = klasses.classes[:count]
        known = (ids != 0) & (rows[:, CLASS.SHAPE] != ClassShape.REFUSED)
        types = np.zeros(count, dtype=np.int64)
        for number in np.flatnonzero(rows[:, CLASS.SHAPE] == ClassShape.ARRAY).tolist():
            references = rows[number, CLASS.TRAITS] & Trait.REFERENCES
            types[number] = (
                Type.OBJECT if references else _TYPE_OF_LETTER.get(klasses.names[number][1:], 0)
            )
        known[(rows[:, CLASS.SHAPE] == ClassShape.ARRAY) & (types == 0)] = False
        # Arrays of values have no class in a dump.
        known[types > Type.OBJECT] = True
        lost = (found.kind >= 0) & ~known[found.kind]
        self._lost_objects += int(np.count_nonzero(lost))
        found.kind[lost] = -1
        size = self._size_of(found, types, starts, plans)
        out = np.zeros(size, dtype=np.uint8)
        filled = self._loops.emit(
            found.data, found.copy.span.bottom, found.where, found.kind, np.ascontiguousarray(rows), types, ids, starts,
            plans, klasses.numbers_of_form, out, 0,
        )  # fmt: skip
        if filled != size:
            raise AssertionError(f"{filled} bytes of objects were written into room for {size}")
        return out

    def _size_of(self, found: _Found, types: I64, starts: I64, plans: I64) -> int:
        """Return the bytes of the sub-records of a span's objects."""
        each = np.where(plans[:, 1] == 0, 8, plans[:, 1])
        ends = np.concatenate(([0], np.cumsum(each)))
        fields = ends[starts[1:]] - ends[starts[:-1]]
        kind = found.kind[found.kind >= 0]
        size = int((_OBJECT_HEAD + fields[kind])[types[kind] == 0].sum())
        rows = np.flatnonzero((found.kind >= 0) & (types[found.kind] != 0))
        of = types[found.kind[rows]]
        length = found.column(rows, int(self._klasses.numbers_of_form[FORM.LENGTH_OFFSET]), 4)
        log_bytes = self._klasses.classes[found.kind[rows], CLASS.LOG_ELEMENT]
        objects = of == Type.OBJECT
        size += int((_ARRAY_HEAD + 8 * length[objects]).sum())
        size += int((_VALUES_HEAD + (length[~objects] << log_bytes[~objects])).sum())
        return size


@dataclass(eq=False, slots=True)
class _ClassText:
    """Sub-records of classes, and the class objects of those that the boot loader loaded."""

    parts: list[bytes] = field(default_factory=list)
    of_boot_loader: list[int] = field(default_factory=list)

    @property
    def text(self) -> bytes:
        return b"".join(self.parts)


def _lineages(
    classes: dict[int, JavaClass], mirror_of: dict[int, int]
) -> dict[int, list[JavaClass]]:
    """Return each class with its superclasses, itself first, by address; without those one of whose superclasses is not known."""
    found: dict[int, list[JavaClass]] = {}
    for address in classes:
        lineage: list[JavaClass] = []
        at = address
        while at in classes and at in mirror_of and len(lineage) < _MOST_DEEP:
            lineage.append(classes[at])
            at = classes[at].above
        if not at:
            found[address] = lineage
    return found


def _offset_of(classes: dict[int, JavaClass], class_name: str, name: str) -> int:
    """Return the offset of a field in an instance; -1: there is no such field."""
    fields: list[JavaField] = [
        each for one in classes.values() if one.name == class_name for each in one.fields
    ]
    return next((each.offset for each in fields if each.name == name and not each.static), -1)
