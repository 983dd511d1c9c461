"""Contradictions in a trace: the rules for a rebuilt heap, and their violations.

AntTracks' consistency tests (Lengauer, Bitto, Mössenböck 2015, section 4.1.2) and further rules. A
finding has the place in the trace, what was expected and what was found. Rebuilding continues after
one, as the rule defines; after `Findings.most` it ends.

Knows records' places; knows no heap.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gcspy_objects.records import EventPlace

__all__ = ["KEPT", "MOST", "Finding", "Findings", "Rule", "TooManyFindings"]

KEPT: Final = 100
"""Number of findings that are stored; of the others only the number by rule."""

MOST: Final = 1_000
"""After this many findings the rebuilt heap has little to do with the original."""


class Rule(StrEnum):
    """The rules for a heap; the value is for programs (``--json``)."""

    BUFFER = "buffer"
    """An object that is put next into its thread's buffer has such a buffer, and room in it. Otherwise it is left out."""
    CURSOR = "cursor"
    """An object with an address inside its thread's buffer lies behind the previous one. Otherwise its address is used."""
    BUFFER_SUM = "buffer-sum"
    """A buffer is full when it is replaced, and at a collection's start and end: its objects' sizes add up to its size."""
    SPACE = "space"
    """An object or buffer that is allocated or moved lies completely in a space. Otherwise it is left out."""
    TILED = "tiled"
    """At the start and the end of each collection objects follow each other from the bottom of each space without a hole."""
    OVERLAP = "overlap"
    """No two objects share an address. Otherwise the later one is left out."""
    UNKNOWN_OBJECT = "unknown-object"
    """A moved or kept object existed. Otherwise nothing is moved."""
    TWICE = "twice"
    """Nothing is moved or kept twice in one collection. Otherwise the first time counts."""
    COLLECTED = "collected"
    """Only objects in a collected space are moved. Otherwise they are moved all the same."""
    PHASE = "phase"
    """Moves occur during a collection, collections follow each other, and end as they began. Otherwise the record is left out."""
    SNAPSHOT = "snapshot"
    """A snapshot's data of an object equals the known data. Otherwise the snapshot's is used."""
    DESTINATION = "destination"
    """A buffer to copy into lies in a space of the kind that is copied to."""
    SIZE = "size"
    """An object's size is a number of bytes above 0. Otherwise it is left out."""
    CAPACITY = "capacity"
    """Allocated objects fit into the spaces. Otherwise rebuilding ends."""
    FORM = "form"
    """An event has no bits set that its format leaves 0. Otherwise it is used all the same."""
    SYMBOLS = "symbols"
    """The trace's types, sites and causes do not contradict each other."""
    LOG = "log"
    """Tops and class histograms are those of the VM's own log."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that was broken at one place.

    Attributes:
        rule: Which.
        where: The event; None if it is not about one.
        collection: How many collections had begun.
        expected: The expected value.
        found: The value found.
    """

    rule: Rule
    where: EventPlace | None
    collection: int
    expected: str
    found: str

    def __str__(self) -> str:
        when = (
            f"after collection {self.collection}"
            if self.collection
            else "before the first collection"
        )
        return f"{self.rule}: expected {self.expected}; found {self.found} ({self.where or 'no event in particular'}; {when})"


class TooManyFindings(Exception):
    """There were too many findings to continue; it never leaves the heap."""


@dataclass(slots=True)
class Findings:
    """Findings in the order in which they were met.

    Attributes:
        most: Rebuilding ends after this many.
        kept: The first of them.
        counts: How many of each rule.
    """

    most: int = MOST
    kept: list[Finding] = field(default_factory=list)
    counts: Counter[Rule] = field(default_factory=Counter)

    def __len__(self) -> int:
        return self.counts.total()

    def add(self, finding: Finding, count: int = 1) -> None:
        """Note a finding, the first of `count` of its kind.

        Raises:
            TooManyFindings: These are more than `most`.
        """
        self.counts[finding.rule] += count
        if len(self.kept) < KEPT:
            self.kept.append(finding)
        if len(self) > self.most:
            raise TooManyFindings

    @property
    def first(self) -> Finding | None:
        """The first one."""
        return self.kept[0] if self.kept else None
