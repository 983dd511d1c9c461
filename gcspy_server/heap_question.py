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
    """Kind of a heap question."""

    HOLDERS = "holders"
    """The holders of some objects: the paths from roots to them, grouped."""
    DOMINATORS = "dominators"
    """The objects that keep most of the heap alive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeapQuestion:
    """One question.

    Attributes:
        kind: Kind of the question.
        type_name: Only objects of this type, with a module's name or without; empty: all objects.
        address: Only the object at this address; None: all of the type.
        extent_bytes: All objects that begin in this number of bytes from the address on, of the
            type if one is given; 0: the one at the address.
        most: Maximum number of rows.
        held: Whether to hold the process while its memory is copied, so that the copy is of one
            moment.
    """

    kind: HeapQuestionKind
    type_name: str = ""
    address: int | None = None
    extent_bytes: int = 0
    most: int = 20
    held: bool = False


Investigator = Callable[[HeapQuestion, Callable[[str, int, int], None]], DetailTable]
"""Answers a question, in any thread; it calls its argument with the current step, its progress, and its total (0: not known)."""
