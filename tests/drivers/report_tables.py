"""Columns of the tables of a memory report, by the names of their rows."""

from __future__ import annotations

from gcspy_server.api import DetailTable

__all__ = ["column", "total"]


def column(table: DetailTable, name: str) -> dict[str, int | None]:
    """Return one column by the names of the rows."""
    at = [each.name for each in table.columns].index(name)
    found = {}
    for row in table.rows:
        cell = row[at]
        assert cell is None or isinstance(cell, int)
        found[str(row[0])] = cell
    return found


def total(table: DetailTable, name: str) -> int:
    """Add up a column, including the omitted rows."""
    at = [each.name for each in table.columns].index(name)
    rest = table.rest_cells[at] if table.rest_cells else 0
    assert isinstance(rest, int)
    return sum(size or 0 for size in column(table, name).values()) + rest
