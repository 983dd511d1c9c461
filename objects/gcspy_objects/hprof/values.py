"""`DumpValueReader`: values in instances of a dump: texts, numbers, names of threads and of constants.

Knows the value fields of `java.lang.String` and of boxed numbers, in 8 to 25.
"""

from __future__ import annotations

from typing import Final

from gcspy_objects.hprof.heap_dump import HeapDump
from gcspy_objects.hprof.layout import Sub, Type
from gcspy_objects.hprof.loops import ClassInfo

__all__ = ["DumpValueReader"]

_MOST_CHARACTERS: Final = 60
_BOXES: Final = {
    "java.lang.Boolean": 1,
    "java.lang.Byte": 1,
    "java.lang.Short": 2,
    "java.lang.Integer": 4,
    "java.lang.Long": 8,
}


class DumpValueReader:
    """Reads values.

    Args:
        dump: The dump.
    """

    def __init__(self, dump: HeapDump) -> None:
        self._dump = dump
        self._places: dict[tuple[int, str], int] = {}

    def field(self, number: int, name: str, size: int) -> bytes | None:
        """Return the bytes of a field of an instance; None: it has none of this name.

        Args:
            number: The instance.
            name: The field.
            size: Bytes of it.
        """
        dump = self._dump
        row, place = int(dump.kind[number]), int(dump.place[number])
        if row >= len(dump.classes) or dump.data[place] != Sub.INSTANCE:
            return None
        offset = self._offset(row, name)
        if offset < 0:
            return None
        at = place + 1 + 2 * dump.width + 8 + offset
        return dump.data[at : at + size].tobytes()

    def refers_to(self, number: int, name: str) -> int | None:
        """Return the target of a field of an instance; None: there is none."""
        found = self.field(number, name, self._dump.width)
        return None if found is None else self._dump.number_of(int.from_bytes(found, "big"))

    def text(self, number: int) -> str | None:
        """Return a `java.lang.String`, cut at 60 characters; None: it is not one."""
        if self._dump.type_name(number) != "java.lang.String":
            return None
        value = self.refers_to(number, "value")
        if value is None:
            return None
        kind = int(self._dump.kind[value]) - len(self._dump.classes)
        if kind == Type.CHAR:
            found = self._values(value, 2).decode("utf-16-be", "replace")
        elif kind == Type.BYTE and self.field(number, "coder", 1) == b"\1":
            found = self._values(value, 2, of=1).decode("utf-16-le", "replace")
        elif kind == Type.BYTE:
            found = self._values(value, 1).decode("latin-1")
        else:
            return None
        return found if len(found) <= _MOST_CHARACTERS else found[:_MOST_CHARACTERS] + "…"

    def key(self, number: int) -> str:
        """Describe a key: a text in quotes, a number, a constant of an enumeration, or its type."""
        text = self.text(number)
        if text is not None:
            return repr(text)
        name = self._dump.type_name(number)
        size = _BOXES.get(name)
        found = None if size is None else self.field(number, "value", size)
        if found is not None:
            return str(int.from_bytes(found, "big", signed=True))
        row = int(self._dump.kind[number])
        if row < len(self._dump.classes) and self._dump.classes.kinds_of("java.lang.Enum")[row]:
            constant = self.refers_to(number, "name")
            said = None if constant is None else self.text(constant)
            if said is not None:
                return f"{name.rpartition('.')[2]}.{said}"
        return f"a {name}"

    def _values(self, number: int, width: int, of: int = 0) -> bytes:
        """Return the beginning of an array of values.

        Args:
            number: The array.
            width: Bytes of a character.
            of: Bytes of an element, where that is not a character.
        """
        dump = self._dump
        at = int(dump.place[number]) + 1 + dump.width + 4
        count = int.from_bytes(dump.data[at : at + 4].tobytes(), "big") * (of or width)
        at += 5
        return dump.data[at : at + min(count, (_MOST_CHARACTERS + 1) * width)].tobytes()

    def _offset(self, row: int, name: str) -> int:
        """Return where instances of a class have a field, of any type; -1: nowhere."""
        known = self._places.get((row, name))
        if known is not None:
            return known
        classes, found, base, at = self._dump.classes, -1, 0, row
        while at >= 0 and found < 0:
            first, count = classes.info[at, [ClassInfo.FIRST_FIELD, ClassInfo.FIELDS]].tolist()
            for each in range(first, first + count):
                if classes.texts.text(int(classes.fields[each, 1])) == name:
                    found = base + int(classes.own_offsets[each])
                    break
            base += int(classes.info[at, ClassInfo.FIELD_BYTES])
            at = int(classes.above[at])
        self._places[row, name] = found
        return found
