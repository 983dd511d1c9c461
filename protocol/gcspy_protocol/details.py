"""Detail on demand as a small table: the content of a tile or a space, or the holders of objects (SPEC.md section 8.11).

Knows questions and tables; does not know who answers them, or how.
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
"""Maximum rows of an answer, which is for a person to read, not a dump."""

MOST_COLUMNS = 32

HEAP_KINDS = ("holders", "dominators")
"""Kinds of questions about all objects and the references between them: who holds objects, and what keeps most alive."""

Cell = int | str | None
"""One cell of a table; None is unknown."""


class ColumnKind(Enum):
    """Kind of content of a column's cells."""

    TEXT = "text"
    NUMBER = "number"
    """Any integer; rows are summed."""
    BYTES = "bytes"
    """The same, in multiples of 1024."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DetailColumn:
    """One column: its heading, the kind of its cells, and a sentence about it."""

    name: str
    kind: ColumnKind = ColumnKind.NUMBER
    about: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DetailTable:
    """A small table.

    Attributes:
        columns: The columns.
        rows: The largest rows, the largest first; each has a cell for each column.
        rest: How many rows were left out.
        rest_cells: Sums of those, a cell for each column; None where there is no sum. Empty if no
            row was left out.
        note: Further information, such as that part of it was unknown.
    """

    columns: tuple[DetailColumn, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    rest: int = 0
    rest_cells: tuple[Cell, ...] = ()
    note: str = ""


class AnswerState(Enum):
    """Outcome of a question."""

    ANSWERED = "answered"
    UNKNOWN = "unknown"
    """It was not gathered, or could not be read."""
    GONE = "gone"
    """There is no such tile at that snapshot."""
    REFUSED = "refused"
    """Too many at a time, or the space does not support it."""
    NOT_RECORDED = "not recorded"
    """The session is a playback, and the recording has no answers."""
    UNDER_WAY = "under way"
    """The server is working on it, and another answer follows; only for questions of `HEAP_KINDS`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """Any client: what is in a tile, or in the whole space? The controller: who holds objects?

    Attributes:
        number: The client's own; the answer has the same.
        space: Id of the space; 0 with `HEAP_KINDS`: none.
        kind: Kind of question: one of the space's `details`, or of `HEAP_KINDS`.
        key: Stable key of the tile; None: the whole space. With space 0 the address of an object.
        most: Maximum number of rows.
        text: Search text, in the syntax of the kind; empty: everything. With `HEAP_KINDS` the name
            of a type.
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
    """Server: the answer, for the latest snapshot at which the detail was gathered.

    Attributes:
        number: Number of the query.
        space: Space of the query.
        sequence: Sequence of the snapshot that it describes; 0: none.
        state: The outcome.
        reason: Why there is no table; if it is under way, the current step.
        table: The table; empty unless it was answered.
        done: If it is under way, the progress.
        total: The end of the progress; 0: not known.
    """

    number: int
    space: int
    sequence: int
    state: AnswerState
    reason: str = ""
    table: DetailTable = DetailTable()
    done: int = 0
    total: int = 0
