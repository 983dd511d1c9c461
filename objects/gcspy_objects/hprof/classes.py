"""`DumpClassTable`: the classes of a dump, what their instances consist of, and which are kinds of which.

Knows classes as the dump describes them; reads no instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from gcspy_protocol.errors import TraceError
from numpy.typing import NDArray

from gcspy_objects.hprof.layout import TYPE_NAMES, Type
from gcspy_objects.hprof.loops import ClassInfo
from gcspy_objects.hprof.texts import TextTable

__all__ = ["DumpClassTable", "Field"]

_MOST_DEEP: Final = 256
_MOST_OFFSETS: Final = 1 << 26
_DIMENSION: Final = "["
_LETTERS: Final = {
    "Z": "boolean",
    "C": "char",
    "F": "float",
    "D": "double",
    "B": "byte",
    "S": "short",
    "I": "int",
    "J": "long",
}
_TYPE_BYTES: Final = np.zeros(256, dtype=np.int64)
for _type, _bytes in {
    Type.BOOLEAN: 1,
    Type.BYTE: 1,
    Type.CHAR: 2,
    Type.SHORT: 2,
    Type.FLOAT: 4,
    Type.INT: 4,
    Type.DOUBLE: 8,
    Type.LONG: 8,
}.items():
    _TYPE_BYTES[_type] = _bytes


@dataclass(frozen=True, slots=True)
class Field:
    """A reference that instances of a class have.

    Attributes:
        name: Its name.
        owner: Row of the class that declares it.
        offset: Its offset, in bytes from the first field.
    """

    name: str
    owner: int
    offset: int


@dataclass(frozen=True, eq=False)
class DumpClassTable:
    """k classes, by address.

    Attributes:
        texts: Names.
        address: (k,) ascending: address of each class's object.
        names_id: (k,) identifier of each class's name; 0: not in the dump.
        info: (k, 9) `ClassInfo`.
        fields: (f, 3) row of the class, name, type; class by class.
        statics: (s, 4) row of the class, name, type, place of the value; class by class.
        width: Bytes of a reference in the dump.
        file: The dump, for messages.

    Raises:
        TraceError: A class has no superclass in the dump, or more than 256 of them.
    """

    texts: TextTable
    address: NDArray[np.int64]
    names_id: NDArray[np.int64]
    info: NDArray[np.int64]
    fields: NDArray[np.int64]
    statics: NDArray[np.int64]
    width: int
    file: str

    def __post_init__(self) -> None:
        """Check the superclasses."""
        if len(self.above) and (self.depth < 0).any():
            row = int(np.argmax(self.depth < 0))
            raise TraceError(
                f"{self.file}: class {self.names[row]} has more than {_MOST_DEEP} superclasses, or is its own",
                file=self.file,
            )

    def __len__(self) -> int:
        return len(self.address)

    def rows_of(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (m,) the row of the class at each address; -1: there is none."""
        if not len(self):
            return np.full(len(address), -1, dtype=np.int64)
        found = np.minimum(np.searchsorted(self.address, address), len(self) - 1)
        return np.where(self.address[found] == address, found, -1)

    @cached_property
    def above(self) -> NDArray[np.int64]:
        """(k,) row of each superclass; -1: none.

        Raises:
            TraceError: One is not in the dump.
        """
        above = self.info[:, ClassInfo.SUPER]
        found = self.rows_of(above)
        lost = np.flatnonzero((found < 0) & (above != 0))
        if len(lost):
            raise TraceError(
                f"{self.file}: the superclass of {self.names[int(lost[0])]} is not in the heap dump",
                file=self.file,
            )
        return found

    @cached_property
    def depth(self) -> NDArray[np.int64]:
        """(k,) how many superclasses each has; -1: too many."""
        depth = np.zeros(len(self), dtype=np.int64)
        stand = self.above.copy()
        for _ in range(_MOST_DEEP):
            going = stand >= 0
            if not going.any():
                return depth
            depth[going] += 1
            stand[going] = self.above[stand[going]]
        depth[stand >= 0] = -1
        return depth

    @cached_property
    def names(self) -> list[str]:
        """(k,) name of each class, as Java writes it: ``java.util.HashMap$Node[]``."""
        return [_java_name(self.texts.text(each)) for each in self.names_id.tolist()]

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """Rows of each name: several loaders may have a class of the same name."""
        found: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            found.setdefault(name, []).append(row)
        return found

    def kinds_of(self, name: str) -> NDArray[np.bool_]:
        """(k,) whether each is the class of this name, or a subclass of it."""
        found = np.zeros(len(self), dtype=np.bool_)
        found[self.by_name.get(name, [])] = True
        stand = self.above
        for _ in range(int(self.depth.max(initial=0))):
            inherited = np.where(stand >= 0, found[stand], False)
            if not (inherited & ~found).any():
                break
            found |= inherited
        return found

    @cached_property
    def value_bytes(self) -> NDArray[np.int64]:
        """(f,) bytes of each field in the dump."""
        kind = self.fields[:, 2]
        return np.where(kind == Type.OBJECT, self.width, _TYPE_BYTES[kind])

    @cached_property
    def own_offsets(self) -> NDArray[np.int64]:
        """(f,) start of each field among those of its own class."""
        ends = np.cumsum(self.value_bytes)
        begins = ends - self.value_bytes
        first = self.info[:, ClassInfo.FIRST_FIELD]
        at = np.append(begins, ends[-1] if len(ends) else 0)[first]
        return np.asarray(begins - at[self.fields[:, 0]], dtype=np.int64)

    @cached_property
    def field_bytes(self) -> NDArray[np.int64]:
        """(k,) bytes of all fields of an instance in the dump, inherited ones included."""
        return self.inherited(self.info[:, ClassInfo.FIELD_BYTES])

    def inherited(self, own: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up over superclasses: (k,) from (k,)."""
        total = own.astype(np.int64, copy=True)
        for level in range(1, int(self.depth.max(initial=0)) + 1):
            rows = np.flatnonzero(self.depth == level)
            total[rows] += total[self.above[rows]]
        return total

    def references(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where references are in instances: starts (k + 1,), and the offsets, class by class, from the first field.

        Raises:
            TraceError: There are too many.
        """
        held = self.fields[:, 2] == Type.OBJECT
        own_count = np.bincount(self.fields[held, 0], minlength=len(self))
        starts = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(self.inherited(own_count), out=starts[1:])
        if starts[-1] > _MOST_OFFSETS:
            raise TraceError(
                f"{self.file}: its classes have {starts[-1]:,} fields with references, more than {_MOST_OFFSETS:,}",
                file=self.file,
            )
        offsets = np.zeros(int(starts[-1]), dtype=np.int64)
        own = self.own_offsets[held]
        begins = np.cumsum(own_count) - own_count
        for row in np.argsort(self.depth, kind="stable").tolist():
            at, count = int(starts[row]), int(own_count[row])
            offsets[at : at + count] = own[begins[row] : begins[row] + count]
            above = int(self.above[row])
            if above >= 0:
                offsets[at + count : int(starts[row + 1])] = (
                    offsets[starts[above] : starts[above + 1]]
                    + self.info[row, ClassInfo.FIELD_BYTES]
                )
        return starts, offsets

    def fields_of(self, row: int) -> list[Field]:
        """Return the references that instances of a class have, its own first."""
        found: list[Field] = []
        base = 0
        while row >= 0:
            first, count = self.info[row, ClassInfo.FIRST_FIELD], self.info[row, ClassInfo.FIELDS]
            for at in range(int(first), int(first + count)):
                if self.fields[at, 2] == Type.OBJECT:
                    name = self.texts.text(int(self.fields[at, 1]))
                    found.append(Field(name, row, base + int(self.own_offsets[at])))
            base += int(self.info[row, ClassInfo.FIELD_BYTES])
            row = int(self.above[row])
        return found

    def statics_of(self, row: int) -> list[tuple[str, int]]:
        """Return name and place of the static references of a class."""
        first, count = self.info[row, ClassInfo.FIRST_STATIC], self.info[row, ClassInfo.STATICS]
        return [
            (self.texts.text(int(name)), int(place))
            for _, name, kind, place in self.statics[int(first) : int(first + count)].tolist()
            if kind == Type.OBJECT
        ]

    def reference_at(self, class_name: str, field: str) -> NDArray[np.int64]:
        """(k,) where instances of a class and its subclasses have one of its references; -1: they are no such instances."""
        offset = np.full(len(self), -1, dtype=np.int64)
        for row in np.flatnonzero(self.kinds_of(class_name)).tolist():
            for each in self.fields_of(row):
                if each.name == field and self.names[each.owner] == class_name:
                    offset[row] = each.offset
        return offset


def value_type_name(kind: int) -> str:
    """Return the name of an array of values: ``byte[]``."""
    return f"{TYPE_NAMES[kind]}[]"


def _java_name(name: str) -> str:
    """Write ``[Ljava/lang/String;`` as ``java.lang.String[]``."""
    bare = name.lstrip(_DIMENSION)
    dimensions = "[]" * (len(name) - len(bare))
    if dimensions:
        bare = (
            bare[1:-1] if bare.startswith("L") and bare.endswith(";") else _LETTERS.get(bare, bare)
        )
    return (bare.replace("/", ".") or "a class without a name") + dimensions
