"""Finds the collector of a JVM by its flags.

Not by the type of its heap: stock libraries have no symbols for that. Source: OpenJDK src/hotspot/share/gc/shared/gc_globals.hpp.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.hotspot.vm.flags import Flags
from gcspy_drivers.hotspot.vm.tables import VmTables

__all__ = ["collector_of"]

_BY_FLAG: Final = {
    "UseG1GC": "G1",
    "UseParallelGC": "Parallel",
    "UseParallelOldGC": "Parallel",
    "UseConcMarkSweepGC": "CMS",
    "UseSerialGC": "Serial",
    "UseShenandoahGC": "Shenandoah",
    "UseEpsilonGC": "Epsilon",
}


def collector_of(flags: Flags, tables: VmTables) -> str:
    """Return the collector's name; empty if it is not known here.

    Returns:
        ``Serial``, ``Parallel``, ``CMS``, ``G1``, ``Epsilon``, ``Shenandoah``, ``Generational Shenandoah``, ``ZGC`` or ``Generational
        ZGC``.
    """
    for flag, name in _BY_FLAG.items():
        if flags.on(flag):
            return (
                f"Generational {name}"
                if flags.text("ShenandoahGCMode") == "generational" and flag == "UseShenandoahGC"
                else name
            )
    if flags.on("UseZGC"):
        return "Generational ZGC" if _is_generational(flags, tables) else "ZGC"
    return ""


def _is_generational(flags: Flags, tables: VmTables) -> bool:
    if "ZGenerational" in flags:
        return flags.on("ZGenerational")
    # From 24 on there is no other: then there is no flag, and the name that the other had until 20
    # is used again.
    return "ZAddressBadMask" not in tables.constants and ("ZPageType::small" in tables.constants)
