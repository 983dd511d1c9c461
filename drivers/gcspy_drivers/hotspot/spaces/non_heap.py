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
_REST: Final = 4
"""The code cache is read again after this many times what reading it took: it has thousands of blocks, and changes slowly."""


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
        self._due_nanos = 0
        heaps = self._read_code()
        self._heaps: list[CodeHeapReading] = heaps or []
        self.code = CodeSpace(server, heaps, tiles=tiles) if heaps else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pools."""
        return (*_POOLS, CODE_POOL)

    def gather(self, *, fills: bool) -> None:
        """Read the code cache again, if it is time.

        Args:
            fills: Whether its space is requested.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        now = time.monotonic_ns()
        if now < self._due_nanos or self.code is None:
            return
        heaps = self._read_code()
        if heaps is not None:
            self._heaps = heaps
            if fills:
                self.code.fill(heaps)
        after = time.monotonic_ns()
        self._due_nanos = after + _REST * (after - now)

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
        if not len(counters):
            return pools, "metaspace: not available, this JVM keeps no counters (-XX:-UsePerfData)"
        return pools, "metaspace: as of the latest collection"

    def _read_code(self) -> list[CodeHeapReading] | None:
        if self._cache is None:
            return None
        try:
            return self._cache.read()
        except (TargetGone, NotPermitted):
            raise
        except TargetError:
            return None  # its bounds changed while they were read
