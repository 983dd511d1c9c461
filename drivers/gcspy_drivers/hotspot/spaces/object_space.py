"""The space "Objects": the heap by address with the objects in it; "Survivors by age"; and "References", of level 4.

Maps `HeapObjects` to streams. Knows objects and spaces; does not know memory.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.heaps.tile_streams import MOST_TILE_BYTES, add_bytes
from gcspy_drivers.hotspot.objects.heap_objects import AGES, REFERENCE, SUM, HeapObjects
from gcspy_drivers.hotspot.objects.layout import HeapLayout
from gcspy_drivers.hotspot.spaces.class_space import TYPES, ClassSpace, ClassTable
from gcspy_drivers.kit.streams import U4_MAX, add_amount, add_category, add_count
from gcspy_drivers.kit.tiling import UniformTiling
from gcspy_server.api import (
    Control,
    Server,
    ServerSpace,
    ServerStream,
    StringNames,
)

__all__ = ["AgeSpace", "JavaObjectSpace", "JavaReferenceSpace"]

_U4_MAX: Final = (1 << 32) - 1
_BYTES: Final = (
    ("Instance bytes", SUM.INSTANCE_BYTES, "Bytes of objects that are not arrays"),
    ("Array bytes", SUM.ARRAY_BYTES, "Bytes of arrays"),
    (
        "Free bytes",
        SUM.FREE,
        "Filler that keeps the heap walkable, and unused bytes of thread-local buffers",
    ),
)

I64 = npt.NDArray[np.int64]


class JavaObjectSpace:
    """The objects of one heap as a space.

    Args:
        server: The server to add the space to.
        tiling: Its tiles.
        classes: The space with the names of classes.
        marks: Whether a completed marking gives live objects; else why none does.
    """

    def __init__(
        self,
        server: Server,
        tiling: UniformTiling,
        classes: ClassSpace,
        *,
        marks: bool,
        why_no_marks: str = "",
    ) -> None:
        self._tiling = tiling
        self._classes = classes
        self.space = server.add_space(
            "Objects",
            names=tiling.names,
            driver="hotspot",
            tile_title="Tile ",
            unused_text="no objects, as nothing is allocated there",
            description="The objects in the heap, "
            + (
                "except those found dead by the last completed marking"
                if marks
                else f"reachable or not; liveness is not available{why_no_marks and ': '}{why_no_marks}"
            ),
            details=(TYPES,),
        )
        self.objects = _number(self.space, "Objects", 0, "Objects that begin in the tile")
        self.arrays = _number(self.space, "Arrays", 1, "Those of them that are arrays")
        self._bytes = [
            (add_bytes(self.space, name, order, description), column)
            for order, (name, column, description) in enumerate(_BYTES, start=2)
        ]
        self._marked = []
        if marks:
            self._marked = [
                (
                    _number(
                        self.space,
                        "Live objects",
                        6,
                        "Objects found alive by the last completed marking, without objects allocated since it began. Unknown where it did not mark, and everywhere before the first marking",
                    ),
                    SUM.MARKED,
                ),
                (
                    add_bytes(self.space, "Live bytes", 7, "Bytes of these objects"),
                    SUM.MARKED_BYTES,
                ),
                (
                    add_bytes(
                        self.space,
                        "Dead bytes",
                        8,
                        "Bytes of old objects found dead by the last completed marking",
                    ),
                    SUM.DEAD,
                ),
            ]
        self.top_class = add_category(
            self.space,
            "Top class",
            classes.space,
            "Class with the most bytes of objects that begin in the tile, as the number of its tile in the space Classes",
            order=5,
        )

    def cut(self, tiling: UniformTiling) -> None:
        """Give the space other tiles."""
        if tiling != self._tiling:
            self._tiling = tiling
            self.space.resize(tiling.names)

    def fill(self, found: HeapObjects) -> None:
        """Fill the space; classes have the numbers that `ClassSpace` gave by now."""
        self.space.reset()
        self.objects.data[:] = found.sums[:, SUM.OBJECTS]
        self.arrays.data[:] = found.sums[:, SUM.ARRAYS]
        for stream, column in (*self._bytes, *self._marked):
            stream.data[:] = np.minimum(found.sums[:, column], MOST_TILE_BYTES)
        for stream, _ in self._marked:
            stream.data[~found.marked] = stream.schema.default
            stream.set_unknown(~found.marked)
        self.top_class.data[:] = _top_classes(found, self._classes, self._tiling.count)
        _mark(self.space, found.layout)
        _hide(self.space, found)
        self.space.answer_with(TYPES, ClassTable.of(found).table)
        self.space.info = _info(found)


class JavaReferenceSpace:
    """The references of one heap as a space.

    Args:
        server: The server to add the space to.
        tiling: Its tiles.
    """

    def __init__(self, server: Server, tiling: UniformTiling) -> None:
        self._tiling = tiling
        self.space = server.add_space(
            "References",
            names=tiling.names,
            driver="hotspot",
            tile_title="Tile ",
            unused_text="no objects, as nothing is allocated there",
            description="References in objects, in arrays and in static fields, by tile. Not included: referents of weak, soft, phantom and final references, and stacks, including those of virtual threads",
        )
        for column, name, description in (
            (REFERENCE.WITHIN, "Within", "References in the tile to objects of the same tile"),
            (REFERENCE.OUT, "Out", "References in the tile to objects that begin in other tiles"),
            (REFERENCE.INTO, "Into", "References in other tiles to objects that begin in this one"),
            (
                REFERENCE.OLD_TO_YOUNG,
                "Old to young",
                "References from old objects in the tile to young objects: the roots of a young collection",
            ),
            (
                REFERENCE.YOUNG_TO_OLD,
                "Young to old",
                "References from young objects in the tile to old objects",
            ),
        ):
            _number(self.space, name, int(column), description)

    def cut(self, tiling: UniformTiling) -> None:
        """Give the space other tiles."""
        if tiling != self._tiling:
            self._tiling = tiling
            self.space.resize(tiling.names)

    def fill(self, found: HeapObjects) -> None:
        """Fill the space."""
        counted = found.references
        if counted is None:
            return
        self.space.reset()
        for stream, column in zip(self.space.streams, counted.T, strict=True):
            stream.data[:] = np.minimum(column, _U4_MAX)
        _mark(self.space, found.layout)
        _hide(self.space, found)
        within, out, _, down, up = counted.sum(axis=0).tolist()
        self.space.info = f"{within + out:,} references, {out:,} of them between tiles; {down:,} from old to young, {up:,} from young to old"
        if found.unknown_bytes:
            self.space.info += f"; {found.unknown_bytes:,} bytes could not be walked: references from there are missing everywhere"


class AgeSpace:
    """Survivors by age as a space: how many young collections each has outlived.

    Args:
        server: The server to add the space to.
    """

    def __init__(self, server: Server) -> None:
        names = [f"age {age}" for age in range(AGES - 1)]
        self.space = server.add_space(
            "Survivors by age",
            names=StringNames([*names, "age unknown"]),
            driver="hotspot",
            tile_title="",
            description="Objects in survivor spaces or regions by the age in their headers. The header of a locked object may be displaced: its age is then unknown",
        )
        for order, (name, suffix, description) in enumerate(
            (("Bytes", " bytes", "Bytes of these objects"), ("Objects", "", "Number of objects"))
        ):
            add_amount(self.space, name, description, order=order, suffix=suffix)

    def fill(self, found: HeapObjects) -> None:
        """Fill the space."""
        self.space.reset()
        size, objects = self.space.streams
        size.data[:], objects.data[:] = found.ages[:, 1], found.ages[:, 0]
        self.space.info = f"{int(found.ages[:, 0].sum()):,} objects have survived a young collection and are still young"


def _number(space: ServerSpace, name: str, order: int, description: str) -> ServerStream:
    return add_count(space, name, description, order=order, most=U4_MAX)


def _top_classes(found: HeapObjects, classes: ClassSpace, tiles: int) -> I64:
    """Return for each tile the tile in "Classes" of the class with most bytes; 0 where no object begins."""
    number = classes.tile_of(found.number)
    kinds = classes.space.count
    key, back = np.unique(found.tile * kinds + number, return_inverse=True)
    size = np.zeros(len(key), dtype=np.int64)
    np.add.at(size, back, found.size)
    order = np.lexsort((-key, size))  # of two with the same bytes the lower number is written last
    top = np.zeros(tiles, dtype=np.int64)
    top[key[order] // kinds] = key[order] % kinds
    return top


def _mark(space: ServerSpace, layout: HeapLayout) -> None:
    """Fill the control stream: which tiles have something allocated, and where spaces or regions begin."""
    tiling, control = layout.tiling, space.control
    control[:] = Control.UNUSED
    for low, high in [*((span.bottom, span.top) for span in layout.spans), *layout.unknown]:
        for first, end, _ in tiling.runs(low, high):
            control[first:end] = Control.USED
    tiles = (np.array(layout.separators, dtype=np.int64) - tiling.base) // tiling.tile_bytes
    control[tiles[(tiles > 0) & (tiles < tiling.count)]] |= np.uint8(Control.SEPARATOR)


def _hide(space: ServerSpace, found: HeapObjects) -> None:
    """Mark tiles that could not be walked as unknown, and clear their values."""
    if not found.unknown.any():
        return
    for stream in space.streams:
        stream.data[found.unknown] = stream.schema.default
        stream.set_unknown(found.unknown)


def _info(found: HeapObjects) -> str:
    objects, arrays = (int(found.sums[:, column].sum()) for column in (SUM.OBJECTS, SUM.ARRAYS))
    text = f"{objects:,} objects, {arrays:,} of them arrays"
    dead = int(found.sums[:, SUM.DEAD].sum())
    if dead:
        text += f"; {dead:,} bytes were found dead by the last completed marking"
    if found.layout.epoch.marks and not found.marked.any():
        text += "; no completed marking shows which are alive"
    if found.unknown_bytes:
        text += f"; {found.unknown_bytes:,} bytes could not be walked because they were inconsistent at that moment"
    if found.kept:
        text += f"; {found.kept:,} bytes of old objects were not read again because nothing was moved there"
    if found.collections:
        text += f"; {found.collections} collections happened while it was walked"
    return text
