"""`MemoryReport`: what all memory of a process is for, what keeps it alive, and what of it grew between two looks; made on request, not at events.

Knows tables; knows no driver.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol.details import DetailTable

__all__ = ["MemoryQuestion", "MemoryReport"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryQuestion:
    """What is asked.

    Attributes:
        over_secs: A second look is taken so long after the first one; 0: there is one look only.
        most: Rows wanted at most, of each table.
        held: Whether the process is to be held while its memory is copied, so that a copy is of one moment.
    """

    over_secs: float
    most: int = 20
    held: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryReport:
    """What one look found, or what it found since an earlier one.

    Attributes:
        secs: Seconds since the first look; 0: this is the first.
        resident: Bytes of the resident set.
        grew: By how much the resident set grew since the first look; None at the first.
        memory: What the resident set is for: types of objects and other parts, which add up to it. Columns: what, objects, bytes; since
            the first look also by how many bytes each grew, and how many objects came and went.
        holders: What keeps most alive, or since the first look what keeps most alive that was not there. Columns: holder, type, objects,
            retained bytes; since the first look also by how many bytes these grew.
        unsure: Bytes of `memory` of which is not known whose they are.
        note: How far this can be believed.
    """

    secs: float
    resident: int
    grew: int | None
    memory: DetailTable
    holders: DetailTable
    unsure: int
    note: str
