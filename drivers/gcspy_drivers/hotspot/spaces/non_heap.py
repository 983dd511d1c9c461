"""A JVM's memory outside its heap: metaspace and class space by the VM's own counters, and the code cache, a space of its own.

The VM updates the counters at collections only; a JVM without them (``-XX:-UsePerfData``) has no
data. No version exports the content of metaspace, so it has no tiles. Knows names of counters; does
not know structures.
"""

from __future__ import annotations

import time
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_drivers.hotspot.spaces.code_space import CODE_POOL, CodeSpace, code_pool
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.hotspot.vm.code_cache import CodeHeapReading, find_code_cache
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_server.api import Server

__all__ = ["NonHeap"]

_POOLS: Final = {
    "metaspace": "sun.gc.metaspace.",
    "of it, class space": "sun.gc.compressedclassspace.",
}
_REST_NANOS: Final = 1_000_000_000
"""The code cache is read at most once in this time: it has thousands of blocks, and changes slowly."""


class NonHeap:
    """One JVM's memory outside its heap.

    Args:
        jvm: The JVM.
        server: The server to add the space to.
        tiles: About how many tiles it may have at most.
    """

    def __init__(self, jvm: Jvm, server: Server, *, tiles: int) -> None:
        self._jvm = jvm
        self._cache = find_code_cache(jvm.memory, jvm.tables)
        self._wanted = False
        heaps = self._read_code()
        self._read_nanos = time.monotonic_ns()
        self._heaps: list[CodeHeapReading] = heaps or []
        self.code = CodeSpace(server, heaps, tiles=tiles) if heaps else None
        self._filled = self.code is None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pools."""
        return (*_POOLS, CODE_POOL)

    def look(self) -> None:
        """Read the code cache again, if it was requested lately, and a second has passed. Not while a target is held.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        now = time.monotonic_ns()
        if not self._wanted or now - self._read_nanos < _REST_NANOS:
            return
        heaps = self._read_code()
        self._read_nanos = now
        if heaps is not None:
            self._heaps, self._filled = heaps, False

    def want(self, wanted: bool) -> None:
        """Note whether the code cache is requested at this event."""
        self._wanted = wanted

    def fill(self) -> None:
        """Fill the space of the code cache, if it was read since that was done last."""
        if self.code is not None and not self._filled:
            self.code.fill(self._heaps, age_secs=(time.monotonic_ns() - self._read_nanos) / 1e9)
            self._filled = True

    def pools(self) -> tuple[list[Pool], str]:
        """Return the pools, and notes on them."""
        pools = []
        counters = self._jvm.counters
        for name, prefix in _POOLS.items():
            used, committed, most = counters.numbers(
                f"{prefix}used", f"{prefix}capacity", f"{prefix}maxCapacity"
            )
            # A bound that is larger than any memory means none.
            pools.append(
                Pool(name, used, committed, None if most is None or most >= 1 << 47 else most)
            )
        pools.append(code_pool(self._heaps) if self._heaps else Pool(CODE_POOL, None, None, None))
        note = (
            "metaspace: as of the latest collection"
            if len(counters)
            else "metaspace: not available, this JVM keeps no counters (-XX:-UsePerfData)"
        )
        if self._heaps:
            age_secs = max(1, -(-(time.monotonic_ns() - self._read_nanos) // _REST_NANOS))
            note += f"; code cache: read less than {age_secs} s before"
        return pools, note

    def _read_code(self) -> list[CodeHeapReading] | None:
        if self._cache is None:
            return None
        try:
            return self._cache.read()
        except (TargetGone, NotPermitted):
            raise
        except TargetError:
            return None  # its bounds changed while they were read
