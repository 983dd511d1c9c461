"""Tables of detail as text and as JSON.

Knows tables; does not know their subjects.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.details import Cell, ColumnKind, DetailColumn, DetailTable
from gcspy_protocol.text.rest import rest_heading
from gcspy_protocol.text.visible import visible

from gcspy.output.terminal import say
from gcspy_client.model.text import size_in_words

__all__ = ["print_table", "rows_as_json", "without_empty_columns"]


def rows_as_json(table: DetailTable) -> dict[str, Any]:
    """Rows by the names of their columns, what was left out, and the note; unknown is null."""
    names = [column.name.lower() for column in table.columns]
    return {
        "rows": [dict(zip(names, row, strict=True)) for row in table.rows],
        "rest": {"rows": table.rest, **dict(zip(names[1:], table.rest_cells[1:], strict=False))},
        "note": table.note,
    }


def without_empty_columns(table: DetailTable) -> DetailTable:
    """Return a table without the columns that have a text in no row; sums of left-out rows are dropped."""
    kept = [at for at in range(len(table.columns)) if any(row[at] != "" for row in table.rows)]
    return DetailTable(
        columns=tuple(table.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in table.rows),
        note=table.note,
    )


def print_table(table: DetailTable, *, rounded: bool = False, err: bool = False) -> None:
    """A table for people.

    Args:
        table: The table.
        rounded: Whether bytes are printed as ``12.3 MiB``, and a missing value as nothing instead
            of "unknown".
        err: Print to standard error.
    """

    def texts(row: tuple[Cell, ...], unknown: str) -> list[str]:
        return [
            unknown if cell is None else _text(cell, column, rounded=rounded)
            for cell, column in zip(row, table.columns, strict=True)
        ]

    head = [column.name for column in table.columns]
    rows = [texts(row, "" if rounded else "unknown") for row in table.rows]
    if table.rest:
        sums = texts(table.rest_cells, "") if table.rest_cells else [""] * len(head)
        rows.append([rest_heading(table.rest), *sums[1:]])
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    for row in [head, *rows]:
        cells = [
            text.ljust(width) if column.kind is ColumnKind.TEXT else text.rjust(width)
            for text, width, column in zip(row, widths, table.columns, strict=True)
        ]
        say("  ".join(cells).rstrip(), err=err)
    if table.note:
        say(table.note, err=err)


def _text(cell: int | str, column: DetailColumn, *, rounded: bool) -> str:
    if isinstance(cell, str):
        return visible(cell)
    if rounded and column.kind is ColumnKind.BYTES:
        return size_in_words(cell)
    return f"{cell:,}"
