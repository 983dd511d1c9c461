"""Export as comma-separated values: for spreadsheets, and for everything else."""

from __future__ import annotations

import csv
from pathlib import Path

from gcspy_protocol.text.cells import table_cell

from gcspy_replay.file.export.tables import (
    SUMMARY_COLUMNS,
    TILE_COLUMNS,
    Batch,
    ExportSelection,
    Progress,
    summary_batches,
    tile_batches,
)
from gcspy_replay.file.reader import Recording

__all__ = ["write"]


def write(
    recording: Recording, path: Path, wanted: ExportSelection, progress: Progress | None = None
) -> int:
    """Write a table with a header line; a text that a spreadsheet would run gets an apostrophe (`table_cell`).

    Returns:
        How many rows were written.

    Raises:
        RecordingError: The range is invalid, or the recording is damaged.
        OSError: The file cannot be written.
    """
    names = TILE_COLUMNS if wanted.tiles else SUMMARY_COLUMNS
    batches = (tile_batches if wanted.tiles else summary_batches)(recording, wanted, progress)
    rows = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for batch in batches:
            writer.writerows(zip(*(_cells(batch, name) for name in names), strict=True))
            rows += len(batch)
    return rows


def _cells(batch: Batch, name: str) -> list[object]:
    column = batch.columns[name]
    if isinstance(column, list):
        return [table_cell(cell) for cell in column]
    cells: list[object] = column.tolist()
    if name == "address" and not batch.addresses:
        return [None] * len(cells)
    if name == "value" and batch.unknown is not None:
        return [
            None if gone else cell for cell, gone in zip(cells, batch.unknown.tolist(), strict=True)
        ]
    return cells
