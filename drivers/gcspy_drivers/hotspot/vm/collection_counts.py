"""Collections since the last look, by the VM's own counters: how many of each collector, how long they took, and why.

A JVM without performance counters (``-XX:-UsePerfData``) only says how many there were in all. Knows counters; knows no heap.
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
    """What the VM counts of its collectors.

    Attributes:
        invocations: Of each collector, how often it ran; of one that is not known, in all.
        ticks: Of each, how long it took, in ticks of the VM's clock; None: the VM does not say it.
    """

    invocations: tuple[int, ...]
    ticks: tuple[int, ...] | None


class CollectionCounter:
    """Counts the collections of one JVM.

    Args:
        memory: The target's memory.
        tables: What it exports.
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
        """What the collectors are called; empty when the VM does not say it."""
        return self._names

    @property
    def counts(self) -> CollectorCounts | None:
        """What was counted at the latest look."""
        return self._before

    def since(self) -> str:
        """Say which collections ended since the last time, and why the latest; empty when none did."""
        said = self.ended()
        return f"{said}; the latest: {self.latest_cause}" if said and self.latest_cause else said

    def ended(self) -> str:
        """Say which collections ended since the last time; empty when none did."""
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
        """Why the latest collection that is over ran; empty when the VM does not say it."""
        return self._cause("sun.gc.lastCause")

    @property
    def cause(self) -> str:
        """Why the collection runs that the VM is in; empty when it is in none, or does not say it yet, or not any more."""
        return self._cause("sun.gc.cause")

    def _cause(self, name: str) -> str:
        found = self._counters.text(name)
        return "" if found == _IDLE else found

    def now(self) -> CollectorCounts | None:
        """Count now; what `since` says stays the same."""
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
