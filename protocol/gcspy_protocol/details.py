"""Detail on demand as small tables: the content of a tile or a space, the holders of objects, or the use of memory (SPEC.md section 8.11).

Knows questions and tables; does not know who answers them, or how.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "HEAP_KINDS",
    "LEAST_SAMPLE_BYTES",
    "LONGEST_OVER_MILLIS",
    "MEMORY_KIND",
    "MOST_SAMPLE_BYTES",
    "MOST_COLUMNS",
    "MOST_ROWS",
    "Answer",
    "AnswerState",
    "Cell",
    "ColumnKind",
    "DetailColumn",
    "DetailTable",
    "MemoryReport",
    "Query",
]

MOST_ROWS = 1024
"""Maximum rows of an answer, which is for a person to read, not a dump."""

MOST_COLUMNS = 32

HEAP_KINDS = ("holders", "dominators")
"""Kinds of questions about all objects and the references between them: who holds objects, and what keeps most alive."""

MEMORY_KIND = "memory"
"""Kind of the question what all memory is used for, what holds it, and what of it grows."""

LONGEST_OVER_MILLIS = 86_400_000
"""Longest time between the two samples of a question about memory: a day."""

LEAST_SAMPLE_BYTES, MOST_SAMPLE_BYTES = 1 << 10, 1 << 30
"""Limits of the distance of sampled allocations: a server takes a smaller number for the least."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryReport:
    """The result of one sample of all memory, or the change since an earlier one.

    Attributes:
        secs: Seconds since the first sample; 0: this is the first.
        resident: Bytes of the resident set.
        grew: By how much the resident set grew since the first sample; None at the first.
        memory: Uses of the resident set: types of objects and other parts, which add up to
            it. Columns: what, objects, bytes; after the first sample also by how many bytes each
            grew, and how many objects were created and removed.
        holders: Objects that keep most alive, or after the first sample those that keep most of the
            new objects alive. Columns: holder, type, objects, retained bytes; after the first sample
            also by how many bytes these grew.
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
    """The server is working on it, and another answer follows; only for questions of `HEAP_KINDS` and `MEMORY_KIND`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """Any client: what is in a tile, or in the whole space? The controller: who holds objects, and what is memory used for?

    Attributes:
        number: The client's own; the answer has the same.
        space: Id of the space; 0 with `HEAP_KINDS` and `MEMORY_KIND`: none.
        kind: Kind of question: one of the space's `details`, of `HEAP_KINDS`, or `MEMORY_KIND`.
        key: Stable key of the tile; None: the whole space. With space 0 the address of an object.
        most: Maximum number of rows.
        text: Search text, in the syntax of the kind; empty: everything. With `HEAP_KINDS` the name
            of a type.
        held: With `HEAP_KINDS` and `MEMORY_KIND`: whether the process is to be held while its
            memory is copied.
        over_millis: With `MEMORY_KIND`: milliseconds from the first sample to the second; 0: there
            is only one.
        sample_bytes: With `MEMORY_KIND`, of a JVM: between the samples, one allocation in this
            number of bytes of a thread is sampled; 0: none is.
    """

    number: int
    space: int
    kind: str
    key: int | None = None
    most: int = 100
    text: str = ""
    held: bool = False
    over_millis: int = 0
    sample_bytes: int = 0


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
        report: With `MEMORY_KIND`, instead of a table: if it is under way, the first sample; if it
            was answered, the only sample, or the growth until the second one. None: there is none.
    """

    number: int
    space: int
    sequence: int
    state: AnswerState
    reason: str = ""
    table: DetailTable = DetailTable()
    done: int = 0
    total: int = 0
    report: MemoryReport | None = None
