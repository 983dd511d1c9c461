"""An answer: rows under columns that know their unit, and sentences that belong to it.

Knows no engine, and no questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

__all__ = ["Cell", "Column", "QueryResult", "Unit"]

Cell: TypeAlias = int | float | str | bool | None
"""None is unknown, or not applicable."""


class Unit(Enum):
    """Kind of the cells of a column."""

    TEXT = "text"
    NUMBER = "number"
    BYTES = "bytes"
    SHARE = "share"
    """A share from 0 to 1."""


class Column(NamedTuple):
    """One column.

    Attributes:
        name: Name in JSON and Parquet.
        heading: Heading for people.
        unit: Unit of its cells.
        about: One sentence; empty if the heading is enough.
        summed: Whether the sum over rows means something.
    """

    name: str
    heading: str
    unit: Unit = Unit.NUMBER
    about: str = ""
    summed: bool = True


@dataclass(frozen=True, slots=True)
class QueryResult:
    """An answer.

    Attributes:
        title: The question.
        columns: The columns.
        rows: In the order that the question defines; only the first ones, if there are more than
            requested.
        rest: How many more there are.
        rest_cells: Sums of those, a cell for each column; None where a sum means nothing.
        notes: Further information, a sentence each.
        table: Name of all rows in the store that found them, for `LifeStore.write`.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    rest: int = 0
    rest_cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()
    table: str = ""

    def column(self, name: str) -> list[Cell]:
        """Return one column of the rows that are here."""
        place = [one.name for one in self.columns].index(name)
        return [row[place] for row in self.rows]

    def records(self) -> list[Mapping[str, Cell]]:
        """Return the rows that are here, each with the names of its cells."""
        names = [one.name for one in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]
