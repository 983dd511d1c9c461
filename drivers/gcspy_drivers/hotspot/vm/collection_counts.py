"""Collections since the last reading, by the VM's own counters: how many of each collector, their duration, and the cause.

A JVM without performance counters (``-XX:-UsePerfData``) only has their total number. Knows
counters; does not know the heap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gcspy_drivers.hotspot.vm.counters import PerfCounters
from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory

__all__ = ["CollectionCounter", "CollectorCounts"]

_NAME: Final = re.compile(r"^sun\.gc\.collector\.(\d+)\.name$")
_IDLE: Final = "No GC"


@dataclass(frozen=True, slots=True)
class CollectorCounts:
    """The VM's counters of its collectors.

    Attributes:
        invocations: How often each collector ran; if it is not known, the total.
        ticks: Duration of each, in ticks of the VM's clock; None: not available.
    """

    invocations: tuple[int, ...]
    ticks: tuple[int, ...] | None


class CollectionCounter:
    """Counts the collections of one JVM.

    Args:
        memory: The target's memory.
        tables: Its exports.
        counters: Its performance counters.
        heap: Address of its CollectedHeap.
    """

    def __init__(self, memory: Memory, tables: VmTables, counters: PerfCounters, heap: int) -> None:
        self._memory = memory
        self._counters = counters
        prefixes = [
            name.removesuffix("name")
            for name in counters.names("sun.gc.collector.", ".name")
            if _NAME.match(name)
        ]
        self._names = tuple(counters.text(f"{prefix}name") for prefix in prefixes)
        self._wanted = tuple(
            f"{prefix}{what}" for what in ("invocations", "time") for prefix in prefixes
        )
        total = tables.offset("CollectedHeap", "_total_collections")
        self._total = None if total is None else heap + total
        self._frequency = counters.number("sun.os.hrt.frequency") or 0
        self._before = self._read()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the collectors; empty if not available."""
        return self._names

    @property
    def counts(self) -> CollectorCounts | None:
        """The counters at the latest reading."""
        return self._before

    def since(self) -> str:
        """Describe which collections ended since the last time, and the cause of the latest; empty if none did."""
        said = self.ended()
        return f"{said}; the latest: {self.latest_cause}" if said and self.latest_cause else said

    def ended(self) -> str:
        """Describe which collections ended since the last time; empty if none did."""
        before, now = self._before, self._read()
        if now is None:
            return ""
        self._before = now
        if before is None or now.invocations == before.invocations:
            return ""
        said = []
        for place, (new, old) in enumerate(zip(now.invocations, before.invocations, strict=True)):
            if new <= old:
                continue
            name = self._names[place] if self._names else "collections"
            said.append(f"{new - old} × {name}{self._took(now, before, place)}")
        return "; ".join(said)

    @property
    def latest_cause(self) -> str:
        """Cause of the latest finished collection; empty if not available."""
        return self._cause("sun.gc.lastCause")

    @property
    def cause(self) -> str:
        """Cause of the running collection; empty if there is none, or the VM does not report it yet, or no longer."""
        return self._cause("sun.gc.cause")

    def _cause(self, name: str) -> str:
        found = self._counters.text(name)
        return "" if found == _IDLE else found

    def now(self) -> CollectorCounts | None:
        """Read the counters now; the result of `since` stays the same."""
        return self._read()

    def _took(self, now: CollectorCounts, before: CollectorCounts, place: int) -> str:
        if now.ticks is None or before.ticks is None or not self._frequency:
            return ""
        return f" ({(now.ticks[place] - before.ticks[place]) * 1000 / self._frequency:,.1f} ms)"

    def _read(self) -> CollectorCounts | None:
        if self._names:
            found = self._counters.numbers(*self._wanted)
            known = [number for number in found if number is not None]
            if len(known) != len(found):
                return None
            half = len(known) // 2
            return CollectorCounts(tuple(known[:half]), tuple(known[half:]))
        word = None if self._total is None else self._memory.try_read(self._total, 4)
        return None if word is None else CollectorCounts((int.from_bytes(word, "little"),), None)
