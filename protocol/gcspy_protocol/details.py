"""Detail on demand: what is in a tile, in a whole space, or who holds objects, as a small table (SPEC.md section 8.11).

Knows questions and tables; does not know who answers, or how.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "HEAP_KINDS",
    "MOST_COLUMNS",
    "MOST_ROWS",
    "Answer",
    "AnswerState",
    "Cell",
    "ColumnKind",
    "DetailColumn",
    "DetailTable",
    "Query",
]

MOST_ROWS = 1024
"""Rows of an answer: what somebody reads, not a dump."""

MOST_COLUMNS = 32

HEAP_KINDS = ("holders", "dominators")
"""Kinds of questions about all objects and the references between them: who holds some, and what keeps most alive."""

Cell = int | str | None
"""One cell of a table; None is unknown."""


class ColumnKind(Enum):
    """What a column's cells are."""

    TEXT = "text"
    NUMBER = "number"
    """Any integer, which is summed up over rows."""
    BYTES = "bytes"
    """The same, counted by 1024."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DetailColumn:
    """One column: its heading, what is in it, and a sentence about it."""

    name: str
    kind: ColumnKind = ColumnKind.NUMBER
    about: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DetailTable:
    """A small table.

    Attributes:
        columns: What each row has.
        rows: The largest rows, the largest first; each has a cell for each column.
        rest: How many rows were left out.
        rest_cells: Sums of those, a cell for each column; None where there is no sum. Empty where none was left out.
        note: What else is to be known: that some of it was unknown, say.
    """

    columns: tuple[DetailColumn, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    rest: int = 0
    rest_cells: tuple[Cell, ...] = ()
    note: str = ""


class AnswerState(Enum):
    """What became of a question."""

    ANSWERED = "answered"
    UNKNOWN = "unknown"
    """It was not gathered, or could not be read."""
    GONE = "gone"
    """There is no such tile any more."""
    REFUSED = "refused"
    """Too many at a time, or nothing that this space can tell."""
    NOT_RECORDED = "not recorded"
    """The session is a playback, and nobody asked this while it was recorded."""
    UNDER_WAY = "under way"
    """It is being worked at, and another answer follows; only questions of `HEAP_KINDS` are told so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """Any client: what is in a tile, or in the whole space? The controller: who holds objects?

    Attributes:
        number: The client's own; the answer has the same.
        space: Id of the space; 0 with `HEAP_KINDS`: of none.
        kind: What is asked for: one of those that the space says it can tell, or of `HEAP_KINDS`.
        key: Stable key of the tile; None: the whole space. With space 0 the address of an object.
        most: Rows wanted at most.
        text: What is sought, in the words of the kind; empty: everything. With `HEAP_KINDS` the name of a type.
        held: With `HEAP_KINDS`: whether the process is to be held while its memory is copied.
    """

    number: int
    space: int
    kind: str
    key: int | None = None
    most: int = 100
    text: str = ""
    held: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Server: what was asked for, as of the latest snapshot at which it was gathered.

    Attributes:
        number: Of the query.
        space: Of the query.
        sequence: Of the snapshot that it describes; 0: of none.
        state: What became of it.
        reason: Why there is no table; of one that is under way, what is being done.
        table: The table; empty unless it was answered.
        done: Of one that is under way: how much of it is done.
        total: Of how much; 0: that is not known.
    """

    number: int
    space: int
    sequence: int
    state: AnswerState
    reason: str = ""
    table: DetailTable = DetailTable()
    done: int = 0
    total: int = 0
