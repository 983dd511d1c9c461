"""Checks whether a trace is consistent with itself, and with the VM's own log.

AntTracks' consistency tests (Lengauer, Bitto, Mössenböck 2015, section 4.1.2): while the heap is
rebuilt, spaces have to be tiled by objects without hole or overlap, buffers have to be full, and
moved objects known (`heap.findings.Rule` has all rules). If the run's GC log exists as well, the
tops of all spaces at each collection and the class histogram after each full one have to be those
of the VM.

Knows heaps and logs; knows no format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.errors import TraceError

from gcspy_objects.heap import Finding, Findings, HeapSnapshot, RebuiltHeap, Rule, TraceCollection
from gcspy_objects.heap.heap import Progress
from gcspy_objects.hotspot_log import Histogram, LoggedCollection, LoggedSpace
from gcspy_objects.names import Types

__all__ = ["ConsistencyReport", "check", "histogram"]

_KEPT = 100


@dataclass(frozen=True, slots=True)
class ConsistencyReport:
    """The comparisons, and their findings.

    Attributes:
        events: Events that the heap was rebuilt from.
        objects: Objects that the program allocated in them; fillers do not count.
        collections: Collections checked.
        spaces_tiled: Spaces checked for holes and overlaps, at the start and the end of each
            collection.
        tops_compared: Tops of spaces that were compared with the VM's log.
        tops_left: Tops that could not be compared.
        histograms_compared: Class histograms that were compared with the VM's log.
        histograms_left: Class histograms in the log that could not be compared.
        remarks: Unusual data, and reasons why something could not be compared, the first 100 of
            each; none of it is certainly wrong.
        findings: The findings, the first 100; all are counted.
        ended: Why the trace was not read to its end; None: it was.
    """

    events: int
    objects: int
    collections: int
    spaces_tiled: int
    tops_compared: int
    tops_left: int
    histograms_compared: int
    histograms_left: int
    remarks: list[str]
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
            "tops_not_compared": self.tops_left,
            "histograms_compared": self.histograms_compared,
            "histograms_not_compared": self.histograms_left,
            "remarks": self.remarks,
            "ended": str(self.ended) if self.ended else None,
            "counts": {str(rule): count for rule, count in self.findings.counts.items()},
            "findings": [_finding_as_json(one) for one in self.findings.kept],
        }


def check(
    heap: RebuiltHeap,
    log: dict[int, LoggedCollection] | None = None,
    progress: Progress | None = None,
) -> ConsistencyReport:
    """Rebuild a heap from its trace, and hold it to all rules, and to the VM's log if there is one."""
    objects = 0
    for lives in heap.lives(progress):
        objects += int(np.count_nonzero(~lives.filler))
    findings, rows = heap.findings, heap.collections
    own = Findings(most=1 << 62, kept=list(findings.kept), counts=findings.counts.copy())
    flaws = heap.trace.find_flaws()
    for flaw in flaws:
        if flaw.certain:
            where = f"at byte {flaw.offset:,} of {flaw.file}"
            own.add(Finding(Rule.SYMBOLS, None, 0, f"{flaw.expected}, {where}", flaw.found))
    compared = _Log(heap, own)
    if log:
        compared.compare(rows, log)
    tiled = sum(len(one.spaces_before) + len(one.spaces_after) for one in rows)
    remarks = [str(flaw) for flaw in flaws if not flaw.certain] + compared.left
    return ConsistencyReport(
        heap.events, objects, len(rows), tiled, compared.tops, compared.tops_left, compared.histograms,
        compared.histograms_left, remarks, own, heap.ended,
    )  # fmt: skip


class _Log:
    """Compares collections with those of the VM's log.

    Attributes:
        tops: Tops that were compared.
        tops_left: Tops that were not.
        histograms: Class histograms that were compared.
        histograms_left: Those of the log that were not.
        left: Why not, the first.
    """

    def __init__(self, heap: RebuiltHeap, findings: Findings) -> None:
        self._heap, self._findings = heap, findings
        self.tops = self.tops_left = self.histograms = self.histograms_left = 0
        self.left: list[str] = []

    def _leave(self, what: str) -> None:
        if len(self.left) < _KEPT:
            self.left.append(what)

    def compare(self, rows: Sequence[TraceCollection], log: dict[int, LoggedCollection]) -> None:
        """Compare all collections; each is known by the number that the VM gave it."""
        found = {one.id: one for one in rows}
        for number in sorted(log.keys() | found.keys()):
            one, logged = found.get(number), log.get(number)
            if one is None and logged is not None:
                self.tops_left += len(logged.before) + len(logged.after)
                self.histograms_left += bool(logged.histogram)
                self._leave(f"collection {number} of the VM's log is not in the trace")
            elif logged is None and one is not None:
                self.tops_left += len(one.spaces_before) + len(one.spaces_after)
                self._leave(f"collection {number} of the trace is not in the VM's log")
            elif one is not None and logged is not None:
                self._compare_one(one, logged)

    def _compare_one(self, one: TraceCollection, logged: LoggedCollection) -> None:
        for moment, spaces, ours, theirs in (
            ("start", one.spaces_before, one.tops_before, logged.before),
            ("end", one.spaces_after, one.tops_after, logged.after),
        ):
            tops = {space.start: top for space, top in zip(spaces, ours, strict=True)}
            self._compare_tops(one, moment, tops, theirs)
        if not logged.histogram:
            return
        if not one.full:
            self.histograms_left += 1
            self._leave(
                f"the class histogram after collection {one.id}, which is not a full collection"
            )
            return
        self.histograms += 1
        snapshot = self._heap.at_collection(one.number, end=True)
        _compare_histograms(
            self._findings, one, histogram(snapshot, self._heap.trace.types), logged.histogram
        )

    def _compare_tops(
        self, one: TraceCollection, moment: str, ours: dict[int, int], theirs: list[LoggedSpace]
    ) -> None:
        """Compare those spaces that begin at the same address."""
        when = f"at the {moment} of collection {one.id}"
        for space in theirs:
            top = ours.pop(space.start, None)
            if top is None:
                self.tops_left += 1
                self._leave(
                    f"the top of {space.name}, which begins at {space.start:#x} in the VM's log {when}: "
                    "in the trace no space begins there"
                )
                continue
            self.tops += 1
            if top != space.top:
                _found(
                    self._findings, one, f"the top of {space.name} at {space.top:#x} {when}, as the VM's log has it",
                    f"{top:#x}",
                )  # fmt: skip
        if not theirs:
            self.tops_left += len(ours)
            self._leave(f"the VM's log has no tops {when}")


def histogram(snapshot: HeapSnapshot, types: Types) -> Histogram:
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


def _compare_histograms(
    findings: Findings, one: TraceCollection, ours: Histogram, theirs: Histogram
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


def _found(findings: Findings, one: TraceCollection, expected: str, found: str) -> None:
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
