"""`HeapQuestion`: a question about all objects of a process and the references between them, which is answered on request, not at events.

Knows questions; knows no driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from gcspy_protocol.details import DetailTable

__all__ = ["HeapQuestion", "HeapQuestionKind", "Investigator"]


class HeapQuestionKind(Enum):
    """What is asked."""

    HOLDERS = "holders"
    """Who holds some objects: the ways from roots to them, grouped."""
    DOMINATORS = "dominators"
    """Which objects keep most of the heap alive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeapQuestion:
    """One question.

    Attributes:
        kind: What is asked.
        type_name: Of the objects of this type, with a module's name or without; empty: of all objects.
        address: Of the object at this address; None: of all of the type.
        extent_bytes: Of all objects that begin in so many bytes from the address on, of the type if one is named; 0: of the one at the address.
        most: Rows wanted at most.
        held: Whether the process is to be held while its memory is copied, so that the copy is of one moment.
    """

    kind: HeapQuestionKind
    type_name: str = ""
    address: int | None = None
    extent_bytes: int = 0
    most: int = 20
    held: bool = False


Investigator = Callable[[HeapQuestion, Callable[[str, int, int], None]], DetailTable]
"""Answers a question, in any thread; the function that it is given is told what is done, how much of it is done, and of how much (0: not known)."""
