"""Is a trace consistent with itself, and with what the VM said in its own log?

AntTracks' consistency tests (Lengauer, Bitto, Mössenböck 2015, section 4.1.2): while the heap is rebuilt, spaces have to be tiled by objects
without hole or overlap, buffers full, and what is moved known (`heap.findings.Rule` has them all). Where the run's GC log is there as well,
the tops of all spaces at each collection and the class histogram after each full one have to be those of the VM.

Knows heaps and logs; knows no format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.errors import TraceError

from gcspy_objects.heap import Collection, Finding, Findings, Heap, Rule, Snapshot
from gcspy_objects.heap.heap import Progress
from gcspy_objects.hotspot_log import Histogram, LoggedCollection, LoggedSpace
from gcspy_objects.names import Types

__all__ = ["Report", "check", "histogram"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was held against what, and what was found.

    Attributes:
        events: Events that the heap was rebuilt from.
        objects: Objects that the program allocated in them; fillers are none.
        collections: Collections that were looked at.
        spaces_tiled: Spaces that were looked at for holes and overlaps, at the start and the end of each collection.
        tops_compared: Tops of spaces that were compared with the VM's log.
        histograms_compared: Class histograms that were.
        findings: What was found to be wrong, the first 100; all are counted.
        ended: Why the trace was not read to its end; None: it was.
    """

    events: int
    objects: int
    collections: int
    spaces_tiled: int
    tops_compared: int
    histograms_compared: int
    findings: Findings
    ended: TraceError | None

    @property
    def consistent(self) -> bool:
        """Whether nothing was found to be wrong."""
        return not self.findings and self.ended is None

    def as_json(self) -> dict[str, Any]:
        """Return it in plain values."""
        return {
            "consistent": self.consistent,
            "events": self.events,
            "objects": self.objects,
            "collections": self.collections,
            "spaces_tiled": self.spaces_tiled,
            "tops_compared": self.tops_compared,
            "histograms_compared": self.histograms_compared,
            "ended": str(self.ended) if self.ended else None,
            "counts": {str(rule): count for rule, count in self.findings.counts.items()},
            "findings": [_finding_as_json(one) for one in self.findings.kept],
        }


def check(
    heap: Heap, log: dict[int, LoggedCollection] | None = None, progress: Progress | None = None
) -> Report:
    """Rebuild a heap from its trace, and hold it to all rules, and to the VM's log if there is one."""
    objects = 0
    for lives in heap.lives(progress):
        objects += int(np.count_nonzero(~lives.filler))
    findings, rows = heap.findings, heap.collections
    tops = histograms = 0
    own = Findings(most=1 << 62, kept=list(findings.kept), counts=findings.counts.copy())
    for one in rows if log else ():
        logged = log.get(one.id) if log else None
        if logged is None:
            continue
        for moment, spaces, ours, theirs in (
            ("start", one.spaces_before, one.tops_before, logged.before),
            ("end", one.spaces_after, one.tops_after, logged.after),
        ):
            tops += _compare_tops(
                own,
                one,
                moment,
                {space.start: top for space, top in zip(spaces, ours, strict=True)},
                theirs,
            )
        if logged.histogram and one.full:
            histograms += 1
            _compare_histograms(
                own,
                one,
                histogram(heap.at_collection(one.number, end=True), heap.trace.types),
                logged.histogram,
            )
    tiled = sum(len(one.spaces_before) + len(one.spaces_after) for one in rows)
    return Report(heap.events, objects, len(rows), tiled, tops, histograms, own, heap.ended)


def histogram(snapshot: Snapshot, types: Types) -> Histogram:
    """Count the program's objects by class, under the VM's names; classes of one name together."""
    own = ~snapshot.filler
    rows = snapshot.type[own]
    instances = np.bincount(rows, minlength=len(types))
    size = np.zeros(len(instances), np.int64)
    np.add.at(size, rows, snapshot.size[own])
    found: Histogram = {}
    for row in np.flatnonzero(instances).tolist():
        name = types.internal[row] if row < len(types) else f"type {row}"
        before = found.get(name, (0, 0))
        found[name] = before[0] + int(instances[row]), before[1] + int(size[row])
    return found


def _compare_tops(
    findings: Findings,
    one: Collection,
    moment: str,
    ours: dict[int, int],
    theirs: list[LoggedSpace],
) -> int:
    """Compare those spaces that begin at the same address; return how many."""
    common = [space for space in theirs if space.start in ours]
    for space in common:
        if ours[space.start] != space.top:
            _found(
                findings, one, f"the top of {space.name} at {space.top:#x} at the {moment} of collection {one.id}, as the VM's log has it",
                f"{ours[space.start]:#x}",
            )  # fmt: skip
    return len(common)


def _compare_histograms(
    findings: Findings, one: Collection, ours: Histogram, theirs: Histogram
) -> None:
    for name in _different(ours, theirs):
        instances, size = theirs.get(name, (0, 0))
        own = ours.get(name, (0, 0))
        _found(
            findings, one, f"{instances:,} instances of {name} ({size:,} bytes) after collection {one.id}, as the VM's log has it",
            f"{own[0]:,} ({own[1]:,} bytes)",
        )  # fmt: skip


def _different(ours: Histogram, theirs: Histogram) -> Iterator[str]:
    return (
        name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)
    )


def _found(findings: Findings, one: Collection, expected: str, found: str) -> None:
    findings.add(Finding(Rule.LOG, None, one.number, expected, found))


def _finding_as_json(one: Finding) -> dict[str, Any]:
    where = one.where._asdict() if one.where else None
    return {
        "rule": str(one.rule),
        "where": where,
        "collection": one.collection,
        "expected": one.expected,
        "found": one.found,
    }
