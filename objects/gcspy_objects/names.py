"""The meaning of the numbers in records: types and their sizes, allocation sites, threads, causes of collections.

Row 0 of types and of sites means that the trace has none (`records.UNKNOWN`). Names are in source
form (``java.lang.String``, ``int[]``, ``java.lang.String.substring(int, int)``); the trace's own
name of a type is stored beside it.

Knows no format: a reader makes these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAX_NAMES",
    "Causes",
    "TypeField",
    "Flaw",
    "CallFrame",
    "Sites",
    "Thread",
    "ThreadKind",
    "Threads",
    "TypeKind",
    "Types",
    "is_called",
]

Causes: TypeAlias = Mapping[int, str]
"""Why a collection was begun: the number in a record to a text such as ``Allocation Failure``."""


MAX_NAMES: Final = 8
"""Maximum number of threads with the same address that are distinguished."""


class TypeKind(IntEnum):
    """How the size of a type's objects is known."""

    UNKNOWN = 0
    INSTANCE = 1
    """Each is `Types.instance_bytes` large."""
    ARRAY = 2
    """Header and elements, rounded up to `Types.align_bytes`."""
    CLASS = 3
    """Each object represents a class and holds its static fields: the record has its size."""


class Flaw(NamedTuple):
    """An inconsistency or a gap in a trace's types, sites or causes.

    Attributes:
        file: Name of the file.
        offset: Byte of it.
        expected: The expected value.
        found: The value found.
        certain: It cannot be so; otherwise it is only unusual.
    """

    file: str
    offset: int
    expected: str
    found: str
    certain: bool = True

    def __str__(self) -> str:
        return f"{self.file}, byte {self.offset:,}: expected {self.expected}; found {self.found}"


class TypeField(NamedTuple):
    """A field of a type's objects.

    Attributes:
        name: Name in source form.
        type: Its type's name.
        access: The class file's access flags (0x0008: static).
        declared_by: How many superclasses up it is declared, 0 for the type itself.
    """

    name: str
    type: str
    access: int
    declared_by: int


@dataclass(frozen=True, slots=True, eq=False)
class Types:
    """The types of a trace, n rows.

    Attributes:
        names: (n) such as ``java.lang.String`` and ``int[]``; row 0 is ``(unknown)``.
        internal: (n) as the trace's VM writes it in its own logs and class histograms: ``java.lang.String``, ``[I``.
        kind: (n,) u8, `TypeKind`.
        instance_bytes: (n,) i64, of an instance; 0 for arrays and unknown types.
        header_bytes: (n,) i64, of an array before its first element.
        element_bytes: (n,) i64, of an element of an array.
        align_bytes: Objects begin at multiples of this, and so their sizes are.
        fields: Row to the fields of its objects, for types whose fields the trace contains.
    """

    names: Sequence[str]
    internal: Sequence[str]
    kind: NDArray[np.uint8]
    instance_bytes: NDArray[np.int64]
    header_bytes: NDArray[np.int64]
    element_bytes: NDArray[np.int64]
    align_bytes: int = 8
    fields: Mapping[int, Sequence[TypeField]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def rows_named(self, name: str) -> list[int]:
        """Return the rows of types that are called so, as programmer or VM writes it; several where class loaders differ."""
        return [row for row in range(1, len(self)) if name in (self.names[row], self.internal[row])]


class CallFrame(NamedTuple):
    """A call on the stack of an allocation.

    Attributes:
        method: Such as ``java.lang.String.substring(int, int)``.
        bci: Which byte code of it (bci), or line; how often it repeats where `folded`; -1: not known.
        folded: It represents frames repeated by recursion.
    """

    method: str
    bci: int
    folded: bool = False

    def __str__(self) -> str:
        if self.folded:
            return f"({self.method}, {self.bci} times)"
        return f"{self.method} @ {self.bci}" if self.bci >= 0 else self.method


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """The allocation sites of a trace, n rows.

    Attributes:
        type: (n,) i32, row in `Types` of the site's objects; 0 if it varies.
        labels: (n) name of a site without frames (``Object.clone``), else empty; row 0 is
            ``(unknown)``.
        methods: (m) names of methods, each once.
        first_frame: (n + 1,) i64, where a site's frames begin in the two arrays that follow, innermost first.
        frame_method: (f,) i32, in `methods`.
        frame_bci: (f,) i32, see `CallFrame.bci`.
        folded: Those of `methods` that represent repeated frames.
    """

    type: NDArray[np.int32]
    labels: Sequence[str]
    methods: Sequence[str]
    first_frame: NDArray[np.int64]
    frame_method: NDArray[np.int32]
    frame_bci: NDArray[np.int32]
    folded: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.labels)

    def frames(self, row: int) -> list[CallFrame]:
        """Return the stack of a site, innermost frame first; empty where it has none."""
        first, last = int(self.first_frame[row]), int(self.first_frame[row + 1])
        pairs = zip(
            self.frame_method[first:last].tolist(), self.frame_bci[first:last].tolist(), strict=True
        )
        return [
            CallFrame(self.methods[method], bci, method in self.folded) for method, bci in pairs
        ]

    def name(self, row: int) -> str:
        """Return a site in one line: its innermost frame, or its label."""
        first, last = int(self.first_frame[row]), int(self.first_frame[row + 1])
        return str(self.frames(row)[0]) if last > first else self.labels[row]


class ThreadKind(IntEnum):
    """Purpose of a thread."""

    VM = 0
    COLLECTOR = 1
    COMPILER = 2
    PROGRAM = 3
    OTHER = 4
    UNKNOWN = 255


class Thread(NamedTuple):
    """A thread's beginning, as reported by the trace."""

    name: str
    kind: ThreadKind


@dataclass(slots=True)
class Threads:
    """The threads of a trace. It grows while the trace is read; rows never change.

    A row is an address of the VM, and threads that follow each other may have the same: then it has several names, in their order, of which
    the first `MAX_NAMES` are kept.

    Attributes:
        addresses: The VM's address of each row's thread.
        began: For each row, who began there; empty for one that the trace did not announce.
    """

    addresses: list[int] = field(default_factory=list)
    began: list[list[Thread]] = field(default_factory=list)
    _rows: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.addresses)

    def row_of(self, address: int) -> int:
        """Return the row of the thread at `address`, a new one if there was none."""
        row = self._rows.get(address)
        if row is None:
            row = self._rows[address] = len(self.addresses)
            self.addresses.append(address)
            self.began.append([])
        return row

    def begin(self, row: int, thread: Thread) -> int:
        """Note the thread that begins at `row`; returns the index of its name there, `MAX_NAMES` if it was not stored. A repeated one counts once."""
        names = self.began[row]
        if thread not in names and len(names) < MAX_NAMES:
            names.append(thread)
        return names.index(thread) if thread in names else MAX_NAMES

    def extend(self, other: Threads) -> bool:
        """Take the threads of another reading of the trace; return whether all have the rows that they had there."""
        fits = len(self) <= len(other) and self.addresses == other.addresses[: len(self)]
        if fits:
            for address, began in zip(other.addresses, other.began, strict=True):
                row = self.row_of(address)
                for thread in began:
                    self.begin(row, thread)
        return fits

    def name(self, row: int) -> str:
        """Return the name of a row: all its names, or its address."""
        return (
            ", then ".join(each.name for each in self.began[row])
            or f"thread at {self.addresses[row]:#x}"
        )

    def kind(self, row: int) -> ThreadKind:
        """Return the purpose of the row's first thread."""
        return self.began[row][0].kind if self.began[row] else ThreadKind.UNKNOWN


def is_called(name: str, wanted: str) -> bool:
    """Return whether a name matches a class: with its package or without, inner classes with a dot or a dollar, or alone."""
    if wanted in (name, name.rpartition(".")[2]):
        return True
    plain = name.replace("$", ".")
    return plain == wanted or plain.endswith("." + wanted.replace("$", "."))
