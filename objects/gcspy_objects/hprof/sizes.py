"""The sizes of objects in a JVM: a dump has their fields, but neither their headers nor the width of references.

The JVM's choices are computed from the distances of neighbouring objects in memory: nothing is
larger than the distance to the next one.

Knows HotSpot's layouts. Source: OpenJDK src/hotspot/share/oops/arrayOop.hpp, instanceKlass.cpp, and JEP 519 (compact headers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["DumpLayout", "find_layout"]

_MOST_ALIGNMENT: Final = 256
_HEADERS: Final = (16, 12, 8)
"""Mark and class; mark and compressed class; both in one word."""
_ENOUGH: Final = 8
"""This many references distinguish four bytes from eight whatever the header size."""


@dataclass(frozen=True, slots=True)
class DumpLayout:
    """Properties that all objects of a JVM share.

    Attributes:
        reference: Bytes of a reference.
        header: Bytes before the fields.
        alignment: Objects are at multiples of this.
    """

    reference: int
    header: int
    alignment: int

    def rounded(self, bytes_: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes that objects of these sizes occupy."""
        return np.asarray((bytes_ + (self.alignment - 1)) & -self.alignment, dtype=np.int64)

    def array_header(self, item: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes before the elements of an array, by the bytes of one."""
        length_end = self.header + 4
        return np.where(item == 8, (length_end + 7) & -8, length_end)


def find_layout(
    address: NDArray[np.int64],
    elements: NDArray[np.int64],
    field_bytes: NDArray[np.int64],
    references: NDArray[np.int64],
    width: int,
) -> DumpLayout:
    """Compute a JVM's choices; without evidence, the usual ones.

    Args:
        address: (n,) of objects, ascending.
        elements: (n,) of an array of references its elements, and -1 of others.
        field_bytes: (n,) of an instance all its fields' bytes with references as wide as in the dump; -1 of others.
        references: (n,) how many of its fields are references.
        width: Bytes of an identifier in the dump.
    """
    bits = int(np.bitwise_or.reduce(address)) if len(address) else 0
    alignment = 8
    while alignment < _MOST_ALIGNMENT and bits and bits % (2 * alignment) == 0:
        alignment *= 2
    gap = np.diff(address)
    narrow = width == 4
    if not narrow and len(gap):
        arrays = elements[:-1] >= _ENOUGH
        wide = 8 * elements[:-1] + 8
        # Without a single conclusive array, references are as in heaps of less than 32 GB.
        narrow = not arrays.any() or bool((gap[arrays] < wide[arrays]).any())
    reference = 4 if narrow else 8
    if width == 4:
        return DumpLayout(4, 8, alignment)

    def layout_of(header: int) -> DumpLayout:
        return DumpLayout(reference, header, alignment)

    one = field_bytes[:-1] >= 0
    fields = (field_bytes[:-1] - (8 - reference) * references[:-1])[one]
    gap = gap[one]
    widest, usual, compact = (layout_of(each) for each in _HEADERS)
    if (usual.rounded(fields + usual.header) > gap).any():
        return compact
    # That wide headers would fit is not enough evidence; that objects are as close as these sizes
    # imply is.
    sizes = widest.rounded(fields + widest.header)
    exact = (sizes == gap) & (usual.rounded(fields + usual.header) < sizes)
    return widest if exact.any() and not (sizes > gap).any() else usual
