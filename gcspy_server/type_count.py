"""`TypeCount`: how many objects of each type a process has; made on request, not at events.

Knows tables; does not know drivers.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol.details import DetailTable

__all__ = ["TypeCount"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeCount:
    """The types of a process's objects, as far as they are known.

    Attributes:
        name: Title of the process.
        gather_nanos: Time since the first read of the process.
        share: Share of the heap that was examined. Less than 1: the numbers are estimates for the
            whole heap.
        table: Types, those with the most bytes first; its note says of an estimate what it is of.
    """

    name: str
    gather_nanos: int
    share: float
    table: DetailTable
