"""Chooses the view of a collector's heap.

Knows the names of collectors; knows no heap.
"""

from __future__ import annotations

from gcspy_drivers.hotspot.heaps.g1_view import G1View
from gcspy_drivers.hotspot.heaps.generational_view import GenerationalView
from gcspy_drivers.hotspot.heaps.heap_view import HeapView
from gcspy_drivers.hotspot.heaps.shenandoah_view import ShenandoahView
from gcspy_drivers.hotspot.heaps.zgc_view import ZView
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_server.api import Server

__all__ = ["open_view"]


def open_view(jvm: Jvm, server: Server, *, tiles: int) -> HeapView:
    """Add the spaces of a JVM's heap.

    Raises:
        TargetError: It does not export the required fields, or its heap does not exist yet.
    """
    if jvm.collector == "G1":
        return G1View(jvm, server, tiles=tiles)
    if jvm.collector in ("Shenandoah", "Generational Shenandoah"):
        return ShenandoahView(jvm, server, tiles=tiles)
    if jvm.collector in ("ZGC", "Generational ZGC"):
        return ZView(jvm, server)
    return GenerationalView(jvm, server, tiles=tiles)
