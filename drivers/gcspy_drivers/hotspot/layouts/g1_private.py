"""Fields of a G1 region that no version exports: live bytes, remembered sets, and in JDK 8 even the kind of a region.

Offsets were taken from debug information of Debian's builds of 11.0.33, 17.0.21, 21.0.13 and
25.0.5, and tested on Temurin's too. A layout is looked up by the size of a region and the offset of
its exported field ``_type``, which differ between all of them, and is used only if in the attached
JVM each region has its own number and its remembered set points back to it.

Knows offsets; knows no memory. Source: OpenJDK src/hotspot/share/gc/g1/heapRegion.hpp, heapRegionRemSet.hpp, and g1HeapRegion.hpp of 25.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["G1Private", "layout_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class G1Private:
    """Offsets in a region, bytes; None: this version has no such field, or it means something else.

    Attributes:
        number: Offset of the region's own number, 32 bits.
        rem_set: Offset of the pointer to its remembered set.
        tag: Offset of its kind, if that is not exported.
        marked_bytes: Offset of the bytes that the last completed marking found live below
            ``marked_top``.
        marked_top: Offset of the end address of that marking.
        garbage_bytes: Offset of the bytes that the last completed marking found dead.
        remembered: Offset of the number of remembered cards, in the remembered set.
        marking: Offset of the pointer to G1ConcurrentMark, in the heap's own structure.
        bitmap: Offset of the pointer to the marks of the last completed marking, in that one.
        state: Offset of whether they are kept, in the remembered set: 0 not, 1 being made, 2
            complete.
    """

    number: int
    rem_set: int
    tag: int | None = None
    marked_bytes: int | None = None
    marked_top: int | None = None
    garbage_bytes: int | None = None
    remembered: int | None = None
    state: int | None = None
    marking: int | None = None
    bitmap: int | None = None

    @property
    def kept(self) -> bool:
        """Whether anything of the remembered sets is known."""
        return self.remembered is not None or self.state is not None


_LAYOUTS = {
    # JDK 8, of which only the fields checked here were tested
    (488, None): G1Private(number=312, rem_set=304, tag=320),
    # 11
    (376, 260): G1Private(
        number=256,
        rem_set=248,
        marked_bytes=296,
        marked_top=344,
        state=280,
        marking=1592,
        bitmap=136,
    ),
    # 17
    (296, 188): G1Private(
        number=184,
        rem_set=176,
        marked_bytes=240,
        marked_top=224,
        remembered=144,
        state=240,
        marking=1256,
        bitmap=144,
    ),
    # 21
    (144, 60): G1Private(number=56, rem_set=48, garbage_bytes=112, remembered=64, state=80),
    # 25, where remembered cards belong to groups of regions
    (144, 52): G1Private(number=48, rem_set=40, garbage_bytes=96, state=24),
}


def layout_of(region_bytes: int, type_offset: int | None) -> G1Private | None:
    """Return the layout of regions of this size with this exported field; None when none is known."""
    return _LAYOUTS.get((region_bytes, type_offset))
