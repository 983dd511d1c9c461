"""Contradictions in a symbols file that can be read.

A symbols file has no checksum, but much of it is redundant: a type is written again with each class
object, the fields of a superclass with each class below it, the size of an instance by its fields,
that of an element by the array's descriptor; numbers of types and causes have no gaps.
Contradictions are reported here. A changed name cannot be detected.

Knows the file's records; knows no event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice, pairwise
from typing import Final

from gcspy_objects.anttracks.layout import ALL_FLAGS, PREFIX_BYTES
from gcspy_objects.anttracks.symbols import FIRST_BIG_SITE, FOLDED, Parser
from gcspy_objects.names import Flaw

__all__ = ["find_flaws"]

_KEPT: Final = 100
_HEADER_BYTES: Final = 12
_LARGEST_SLACK: Final = 24
_CONTENDED_BYTES: Final = range(248, 1024)
"""Bytes that ``@Contended`` adds to an instance: 128 before and after a group of fields."""
_ALIGN_BYTES: Final = 8
_ARRAY_HEADERS: Final = (16, 20, 24)
_ELEMENT_BYTES: Final = {
    "Z": (1,), "B": (1,), "C": (2,), "S": (2,), "I": (4,), "F": (4,), "J": (8,), "D": (8,), "L": (4, 8), "[": (4, 8),
}  # fmt: skip
_MOST_INDEX: Final = 0xFFFF
_WRONG_ACCESS: Final = 0x0300
"""Flags of methods and classes, which no field has (JVM specification, table 4.5-A, and HotSpot's own)."""
_VISIBILITY: Final = 0x0007
_STATIC: Final = 0x0008


def find_flaws(data: bytes, file: str) -> list[Flaw]:
    """Check a symbols file that was read without an error; returns errors and unusual data, at most 100."""
    checker = _Checker(data, file)
    checker.run()
    checker.finish()
    return checker.flaws


class _Checker(Parser):
    """Compare each record with the earlier ones, and at the end all with each other."""

    def __init__(self, data: bytes, file: str) -> None:
        super().__init__(data, file)
        self.flaws: list[Flaw] = []
        self._at: dict[tuple[str, int], int] = {}
        self._repeats: set[int] = set()
        self._methods_at: dict[str, int] = {}

    def _note(self, offset: int, expected: str, found: object, *, certain: bool = True) -> None:
        if len(self.flaws) < _KEPT:
            self.flaws.append(Flaw(self.reader.file, offset, expected, str(found), certain))

    def _repeated(self, kind: str, number: int, before: object, now: object) -> None:
        """Hold a record against the one before it of the same number."""
        if before is not None and before != now:
            where = self._at[kind, number]
            self._note(
                self.reader.record,
                f"{kind} {number} to be what the record at byte {where:,} says, {before}",
                now,
            )
        self._at[kind, number] = self.reader.record

    def _text(self, text: str, what: str) -> None:
        if not text or any(each < " " or each == "\x7f" for each in text):
            self._note(self.reader.record, f"{what} without control characters", repr(text))

    def _peek(self) -> int:
        return int.from_bytes(self.reader.data[self.reader.at : self.reader.at + 4], "little")

    def _cause(self) -> None:
        number = self._peek()
        before = self.causes.get(number)
        super()._cause()
        self._repeated("cause", number, before, self.causes[number])
        self._text(self.causes[number], "the name of a cause")
        common = self.reader.data[self.reader.at - 1]
        if common > 1:
            self._note(self.reader.at - 1, "0, or 1 for a common cause", common)

    def _type(self) -> None:
        number = self._peek()
        before = self.types.get(number)
        super()._type()
        self._repeated("type", number, before, self.types[number])
        descriptor, size = self.types[number]
        self._text(descriptor, "a descriptor")
        if descriptor.startswith("L") and "" in descriptor[1:-1].split("/"):
            self._note(
                self.reader.record, "a name of a class, each part of it with a name", descriptor
            )
        if descriptor.startswith("["):
            self._check_array(descriptor, size)
        elif size % _ALIGN_BYTES or size < 2 * _ALIGN_BYTES:
            self._note(
                self.reader.at - 4,
                f"the size of {descriptor}, a multiple of {_ALIGN_BYTES} from 16 on",
                size,
            )

    def _check_array(self, descriptor: str, size: int) -> None:
        header, element = size >> 8, size & 0xFF
        elements = _ELEMENT_BYTES[descriptor[1]]
        if header not in _ARRAY_HEADERS or element not in elements:
            self._note(
                self.reader.at - 4,
                f"a header of {' or '.join(map(str, _ARRAY_HEADERS))} bytes and elements of {' or '.join(map(str, elements))} for {descriptor}",
                f"{header} and {element}",
            )

    def _vm_site(self) -> None:
        number = self._site_again(super()._vm_site)
        self._text(self.sites[number][0], "the name of a site")

    def _site(self) -> None:
        number = self._site_again(super()._site)
        for method, index in self.sites[number][1]:
            if method in self._repeats:
                continue
            if not -1 <= index <= _MOST_INDEX:
                self._note(
                    self.reader.record, f"an index of a byte code from -1 to {_MOST_INDEX}", index
                )

    def _site_again(self, read: Callable[[], None]) -> int:
        """Read a site, and hold it against the one before it of the same number."""
        begin = self.reader.at
        number = self.reader.site()
        self.reader.at = begin
        before, known = self.sites.get(number), len(self.methods)
        read()
        self._repeated("site", number, before, self.sites[number])
        for signature in islice(self.methods, known, None):
            self._text(signature, "the signature of a method")
            self._methods_at[signature] = self.reader.record
            if FOLDED.fullmatch(signature):
                self._repeats.add(self.methods[signature])
        return number

    def finish(self) -> None:
        """Hold the records against each other."""
        flags = int.from_bytes(self.reader.data[PREFIX_BYTES : PREFIX_BYTES + 4], "little")
        if flags & ~ALL_FLAGS:
            self._note(PREFIX_BYTES, f"no flags but {ALL_FLAGS:#x}", f"{flags:#x}")
        big = [number for number in self.sites if number >= FIRST_BIG_SITE]
        self._check_gaps("type", self.types, 1)
        self._check_gaps("cause", self.causes, 0)
        self._check_gaps("site", big, min(big, default=0))
        self._check_methods()
        for number, (_, _, type_) in self.sites.items():
            if type_ and type_ not in self.types:
                self._note(
                    self._at["site", number],
                    f"a type that site {number} allocates",
                    f"type {type_}, which there is not",
                )
        self._check_fields()

    def _check_gaps(self, kind: str, found: Collection[int], first: int) -> None:
        """Numbers are given one after the other."""
        for before, after in pairwise([first - 1, *sorted(found)]):
            for number in range(before + 1, min(after, before + 1 + _KEPT)):
                self._note(
                    len(self.reader.data),
                    f"{kind} {number}, as there are larger numbers",
                    "none",
                    certain=False,
                )

    def _check_methods(self) -> None:
        """The class of a method that allocates was loaded, so it is a type."""
        names = {name[1:-1].replace("/", ".") for name, _ in self.types.values()}
        for signature, place in self._methods_at.items():
            name = signature.partition("(")[0].rpartition(".")[0]
            if name not in names and not FOLDED.fullmatch(signature):
                self._note(
                    place, f"{name}, the class of a method, among the types", "none", certain=False
                )

    def _check_fields(self) -> None:
        """The size of an instance must fit its fields; a superclass's fields must be those of the superclass itself."""
        references = {size & 0xFF for name, size in self.types.values() if name.startswith("[L")}
        reference_bytes = min(references & {4, 8}, default=4), max(references & {4, 8}, default=8)
        own: set[bytes] = set()
        above: dict[int, list[tuple[int, bytes]]] = {}
        for number, places in self.fields.items():
            least = most = _HEADER_BYTES
            for up, place in enumerate(places):
                reader = self.reader
                reader.at = reader.record = place
                for name, descriptor, access in reader.fields():
                    self._check_field(name, descriptor, access)
                    if not access & _STATIC:
                        sizes = _ELEMENT_BYTES.get(descriptor[:1], reference_bytes)
                        sizes = reference_bytes if len(sizes) > 1 else sizes
                        least, most = least + sizes[0], most + sizes[-1]
                found = reader.data[place : reader.at]
                if up:
                    above.setdefault(number, []).append((place, found))
                else:
                    own.add(found)
            self._check_size(number, least, most, len(places))
        for number, lists in above.items():
            for place, found in lists:
                if found not in own:
                    self._note(
                        place,
                        f"the fields of a superclass of {self.types[number][0]} as it has them itself",
                        "others",
                    )

    def _check_field(self, name: str, descriptor: str, access: int) -> None:
        where = self.reader.at - 2
        if access & _WRONG_ACCESS or (access & _VISIBILITY).bit_count() > 1:
            self._note(where, f"access flags of the field {name}", f"{access:#x}")
        if any(each < " " for each in name + descriptor) or any(each in ".;[/" for each in name):
            self._note(where, "the name of a field", repr(name))

    def _check_size(self, number: int, least: int, most: int, classes: int) -> None:
        found = self.types.get(number)
        if found is None or not found[0].startswith("L") or found[0] == "Ljava/lang/Class;":
            return
        size, largest = found[1], most + _LARGEST_SLACK + _ALIGN_BYTES * max(0, classes - 3)
        if size < least or (size > largest and size - least not in _CONTENDED_BYTES):
            self._note(
                self._at["type", number] + 1,
                f"{least} to {largest} bytes for an instance of {found[0]}, by its fields",
                size,
            )
