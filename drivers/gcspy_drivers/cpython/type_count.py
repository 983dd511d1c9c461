"""Counts the objects of a CPython process by type, on request: of a large heap first an estimate from a sample of its pools.

A session gathers more at an event: spaces, memory map, large blocks. Knows targets and tables; does
not know sessions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.cpython.objects import machine_code
from gcspy_drivers.cpython.spaces.type_tables import estimated_table, table_of
from gcspy_drivers.cpython.target import PymallocHeap, Target
from gcspy_server.api import DetailTable, TypeCount

__all__ = ["LARGE_HEAP_BYTES", "count_types"]

LARGE_HEAP_BYTES: Final = 48 << 20
"""Used pools of a heap that is sampled first; a smaller one is counted in less than a second."""

_SAMPLE_BYTES: Final = 12 << 20
"""Pools of a sample: numpy examines them in a third of a second."""

_COMPILED_BYTES: Final = 256 << 20
"""Used pools of a heap for which loops are compiled if they were not: numpy alone would take as long."""

_LOOKS: Final = 3
"""How often a heap is read if it changes so much that nothing can be counted."""


def count_types(
    target: Target, most: int, progress: Callable[[str, int, int], None]
) -> Iterator[TypeCount]:
    """Count.

    Args:
        target: The process.
        most: Maximum rows.
        progress: Called with the current step, its progress, and its total; 0: not known.

    Yields:
        Of a large heap an estimate; then the counts.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
        Unsupported: pymalloc is not in use.
        TargetError: The heap changed too much to be read.
    """
    pid = target.process.pid
    version = ".".join(map(str, target.version))
    name = f"{target.process.name} (CPython {version}, process {pid})"
    began = time.monotonic_ns()

    def count(share: float, table: DetailTable) -> TypeCount:
        nanos = time.monotonic_ns() - began
        return TypeCount(name=name, gather_nanos=nanos, share=share, table=table)

    for look in range(_LOOKS):
        progress("reading the headers of pools", 0, 0)
        interpreters = target.interpreters() or ()
        heaps = target.heaps(interpreters)
        used = sum(heap.used_pools for heap in heaps)
        if not used:
            break
        code = machine_code.compiled()
        size_bytes = used * target.geometry.pool_bytes
        if size_bytes >= LARGE_HEAP_BYTES:
            if not look:
                estimate = _estimate(target, heaps, used, most)
                if estimate is not None:
                    yield count(*estimate)
            progress("loading the loops that read objects", 0, 0)
            if size_bytes >= _COMPILED_BYTES and not machine_code.kept():
                progress("compiling the loops that read objects, once", 0, 0)
                code = machine_code.load()
            else:
                code = machine_code.load_kept()
        found = target.objects(heaps, interpreters, code=code, progress=progress)
        target.check()
        table = table_of(found, most)
        if table is not None:
            yield count(1.0, table)
            return
    if not look:
        raise Unsupported(
            f"process {pid}: pymalloc has no pool in use",
            found="no pools",
            known="processes that use pymalloc",
        )
    raise TargetError(f"{name}: all pools changed while they were read; try again")


def _estimate(
    target: Target, heaps: tuple[PymallocHeap, ...], used: int, most: int
) -> tuple[float, DetailTable] | None:
    """Return what share of the used pools a sample has, and its table; None if none of them could be examined."""
    every = max(2, used * target.geometry.pool_bytes // _SAMPLE_BYTES)
    sample = target.sample_objects(heaps, every=every)
    target.check()
    examined = sum(one.objects.pools_copied for one in sample.heaps)
    share = examined / used
    table = estimated_table(sample, share, most)
    if table is None:
        return None
    note = f"estimated from {share:.1%} of the heap: {examined:,} of {used:,} pools"
    return share, replace(table, note=note)
