"""The layout of objects of one JVM: the class word, the length of an array, the form of a reference.

All is read from the flags and fields that the VM exports. Knows offsets and shifts; knows no classes and no heap.

Source: OpenJDK src/hotspot/share/oops/oop.hpp, arrayOop.hpp, markWord.hpp, compressedKlass.hpp; JEP 519 for compact headers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.vm.flags import Flags
from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory

__all__ = ["FORM", "ObjectHeader", "ObjectForm", "read_form"]

_MARK_BYTES: Final = 8
_COMPACT_CLASS_BITS: Final = 22
_ALIGNMENTS: Final = (8, 16, 32, 64, 128, 256)


class ObjectHeader(IntEnum):
    """Place of an object's class."""

    NARROW = 0
    """In 32 bits behind the mark word."""
    PLAIN = 1
    """In 64 bits behind the mark word."""
    COMPACT = 2
    """In the mark word."""


class FORM(IntEnum):
    """Places in `ObjectForm.numbers`."""

    HEADER = 0
    HEADER_WORDS = 1
    CLASS_SHIFT = 2
    CLASS_MASK = 3
    LENGTH_OFFSET = 4
    ALIGNMENT = 5
    MIRROR_SIZE = 6
    MIRROR_STATICS = 7
    CHUNK_SIZE = 8
    CHUNK_BITS = 9
    AGE_SHIFT = 10
    AGE_MASK = 11
    OOP_BYTES = 12
    OOP_BASE = 13
    OOP_SHIFT = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectForm:
    """The layout of objects.

    Attributes:
        header: Place of the class.
        class_base: Base of a class's number in a header.
        class_shift: Its shift.
        length_offset: Offset of an array's length, bytes.
        alignment: Objects begin at multiples of this, bytes.
        oop_bytes: Bytes of a reference.
        oop_base: Its base.
        oop_shift: Its shift.
        mirror_size: Offset of the size in words in a ``java.lang.Class``; 0: not known.
        mirror_statics: Offset of the number of its class's static reference fields; 0: not known.
        age_shift: Position of the age in the mark word.
        age_mask: Its bits.
        compact_shift: Position of the class in the mark word, with compact headers.
    """

    header: ObjectHeader
    class_base: int
    class_shift: int
    length_offset: int
    alignment: int
    oop_bytes: int
    oop_base: int
    oop_shift: int
    mirror_size: int
    mirror_statics: int
    age_shift: int
    age_mask: int
    compact_shift: int = 0

    def numbers(self, chunk_size_offset: int) -> npt.NDArray[np.int64]:
        """Return the walkers' parameters, by `FORM`; new.

        Args:
            chunk_size_offset: Offset of the size in words in a ``StackChunk``; 0: not known.
        """
        found = np.zeros(len(FORM), dtype=np.int64)
        compact = self.header is ObjectHeader.COMPACT
        found[FORM.HEADER] = self.header
        found[FORM.HEADER_WORDS] = 1 if compact else 2
        found[FORM.CLASS_SHIFT] = self.compact_shift
        found[FORM.CLASS_MASK] = (1 << _COMPACT_CLASS_BITS) - 1
        found[FORM.LENGTH_OFFSET] = self.length_offset
        found[FORM.ALIGNMENT] = self.alignment
        found[FORM.MIRROR_SIZE], found[FORM.MIRROR_STATICS] = self.mirror_size, self.mirror_statics
        # A chunk's stack is followed by a bit for each place in which a reference could be.
        found[FORM.CHUNK_SIZE], found[FORM.CHUNK_BITS] = chunk_size_offset, 8 // self.oop_bytes
        found[FORM.AGE_SHIFT], found[FORM.AGE_MASK] = self.age_shift, self.age_mask
        found[FORM.OOP_BYTES], found[FORM.OOP_BASE] = self.oop_bytes, self.oop_base
        found[FORM.OOP_SHIFT] = self.oop_shift
        return found

    def class_at(self, word: int) -> int:
        """Return the address of the class that is identified by a word of a header."""
        return (self.class_base + (word << self.class_shift)) & (2**64 - 1)


def read_form(memory: Memory, tables: VmTables, flags: Flags) -> ObjectForm:
    """Read the layout of objects in one JVM.

    Raises:
        TargetError: It does not export the required fields, or they are invalid.
    """
    header = ObjectHeader.NARROW if flags.on("UseCompressedClassPointers") else ObjectHeader.PLAIN
    if flags.on("UseCompactObjectHeaders"):
        header = ObjectHeader.COMPACT
    alignment = flags.number("ObjectAlignmentInBytes", 4) or 8
    if alignment not in _ALIGNMENTS:
        raise TargetError(
            f"process {memory.process.pid}: objects are aligned to {alignment} bytes, which cannot be"
        )
    narrow = flags.on("UseCompressedOops")
    # An unused field is not always a valid shift.
    nothing = (0, 0)
    plain = header is ObjectHeader.PLAIN
    class_base, class_shift = (
        nothing if plain else _narrow(memory, tables, "CompressedKlassPointers", "_narrow_klass")
    )
    oop_base, oop_shift = (
        _narrow(memory, tables, "CompressedOops", "_narrow_oop") if narrow else nothing
    )
    constants = tables.constants
    return ObjectForm(
        header=header,
        class_base=class_base,
        class_shift=class_shift,
        length_offset={
            ObjectHeader.NARROW: 12,
            ObjectHeader.PLAIN: 16,
            ObjectHeader.COMPACT: _MARK_BYTES,
        }[header],
        alignment=alignment,
        oop_bytes=4 if narrow else 8,
        oop_base=oop_base,
        oop_shift=oop_shift,
        mirror_size=_static_int(memory, tables, "_oop_size_offset"),
        mirror_statics=_static_int(memory, tables, "_static_oop_field_count_offset"),
        age_shift=constants.get("markWord::age_shift", constants.get("markOopDesc::age_shift", 3))
        & 63,
        age_mask=constants.get("markWord::age_mask", constants.get("markOopDesc::age_mask", 15))
        & 15,
        compact_shift=constants.get("markWord::klass_shift", 42) & 63,
    )


def _narrow(memory: Memory, tables: VmTables, holder: str, until_21: str) -> tuple[int, int]:
    """Return base and shift of compressed pointers; 0 if not exported."""
    for owner, prefix in ((holder, ""), (holder, until_21), ("Universe", until_21)):
        base = tables.static(owner, f"{prefix}._base" if prefix else "_base")
        shift = tables.static(owner, f"{prefix}._shift" if prefix else "_shift")
        if base is not None and shift is not None:
            found = int.from_bytes(memory.read(shift, 4), "little")
            if found > 32:
                raise TargetError(
                    f"process {memory.process.pid}: pointers are shifted by {found} bits, which cannot be"
                )
            return int.from_bytes(memory.read(base, 8), "little"), found
    return 0, 0


def _static_int(memory: Memory, tables: VmTables, name: str) -> int:
    place = tables.static("java_lang_Class", name)
    found = 0 if place is None else int.from_bytes(memory.read(place, 4), "little")
    return found if 0 < found < 4096 and found % 4 == 0 else 0
