"""`MemoryQuestion`: a question what all memory of a process is used for, what keeps it alive, and what of it grows; answered on request, not at events.

Knows questions; does not know drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gcspy_protocol.details import MemoryReport

__all__ = ["Explainer", "MemoryQuestion"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryQuestion:
    """A request for reports.

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


Explainer = Callable[[MemoryQuestion, Callable[[str, int, int], None]], Iterator[MemoryReport]]
"""Reports on one sample, and then on the second if there is one, in any thread; it calls its argument with the current step, its progress, and its total (0: not known)."""
