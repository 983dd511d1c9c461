"""Tables of detail as text and as JSON.

Knows tables; does not know what they are about.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.details import Cell, ColumnKind, DetailTable
from gcspy_protocol.text.visible import visible

from gcspy.output.terminal import say

__all__ = ["print_table", "rows_as_json"]


def rows_as_json(table: DetailTable) -> dict[str, Any]:
    """Rows by the names of their columns, what was left out, and the note; unknown is null."""
    names = [column.name.lower() for column in table.columns]
    return {
        "rows": [dict(zip(names, row, strict=True)) for row in table.rows],
        "rest": {"rows": table.rest, **dict(zip(names[1:], table.rest_cells[1:], strict=False))},
        "note": table.note,
    }


def print_table(table: DetailTable) -> None:
    """A table for people."""
    head = [column.name for column in table.columns]
    rows = [list(map(_words, row)) for row in table.rows]
    if table.rest:
        rows.append(
            [
                f"({table.rest:,} others)",
                *("" if cell is None else _words(cell) for cell in table.rest_cells[1:]),
            ]
        )
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    for row in [head, *rows]:
        cells = [
            text.ljust(width) if column.kind is ColumnKind.TEXT else text.rjust(width)
            for text, width, column in zip(row, widths, table.columns, strict=True)
        ]
        say("  ".join(cells).rstrip())
    if table.note:
        say(table.note)


def _words(cell: Cell) -> str:
    if cell is None:
        return "unknown"
    if isinstance(cell, int):
        return f"{cell:,}"
    return visible(cell)
