"""`MemoryReport`: what all memory of a process is used for, what keeps it alive, and what of it grew between two samples; made on request, not at events.

Knows tables; does not know drivers.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol.details import DetailTable

__all__ = ["MemoryQuestion", "MemoryReport"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryQuestion:
    """A request for a report.

    Attributes:
        over_secs: Time from the first sample to the second; 0: there is only one sample.
        most: Maximum rows of each table.
        held: Whether to hold the process while its memory is copied, so that a copy is of one
            moment.
        sample_bytes: Between the samples of memory, one allocation is sampled in this number of
            bytes that a thread allocates, on average; 0: none is. Of JVMs.
    """

    over_secs: float
    most: int = 20
    held: bool = False
    sample_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryReport:
    """The result of one sample, or the change since an earlier one.

    Attributes:
        secs: Seconds since the first sample; 0: this is the first.
        resident: Bytes of the resident set.
        grew: By how much the resident set grew since the first sample; None at the first.
        memory: Uses of the resident set: types of objects and other parts, which add up to
            it. Columns: what, objects, bytes; after the first sample also by how many bytes each
            grew, and how many objects were created and removed.
        holders: Objects that keep most alive, or after the first sample those that keep most of the
            new objects alive. Columns: holder, type, objects, retained bytes; after the first sample also by
            how many bytes these grew.
        sites: Where the objects of the first rows were allocated, or after the first sample the new
            ones; no rows: it is not known. Its note says how it is known, or why it is not. Columns:
            what, site, caller, objects of the site, objects in all, bytes.
        unsure: Bytes of `memory` whose owner is not known.
        unsure_grew: By how many bytes these grew since the first sample; 0 at the first.
        note: Limits of the accuracy.
    """

    secs: float
    resident: int
    grew: int | None
    memory: DetailTable
    holders: DetailTable
    sites: DetailTable
    unsure: int
    note: str
    unsure_grew: int = 0
