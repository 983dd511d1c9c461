"""The table of features as Parquet and JSON lines, and its summary for people; knows rows, not recordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from gcspy_protocol.details import Cell, ColumnKind, DetailColumn, DetailTable
from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode
from gcspy.fleet.engine import Engine
from gcspy.fleet.features import Features, features_of
from gcspy.output.detail_text import print_table
from gcspy.output.terminal import say

__all__ = [
    "SCHEMA_VERSION",
    "features_of_files",
    "gathered",
    "print_summary",
    "rows_as_json",
    "write_parquet",
]

SCHEMA_VERSION = "1"
_FILES_A_TASK = 8


def gathered(files: Sequence[str], engine: Engine) -> Iterator[Features]:
    """Yield the row of each recording in the order of the files, wherever they are read.

    Raises:
        CommandError: The engine's workers keep dying, or cannot be reached.
    """
    tasks = [(list(files[at : at + _FILES_A_TASK]),) for at in range(0, len(files), _FILES_A_TASK)]
    waiting: dict[int, list[Features]] = {}
    following = 0
    for number, rows in engine.call(features_of_files, tasks):
        waiting[number] = rows
        while following in waiting:
            yield from waiting.pop(following)
            following += 1


def features_of_files(files: Sequence[str]) -> list[Features]:
    """Return the rows of some recordings."""
    return [features_of(one) for one in files]


def rows_as_json(rows: Sequence[Features]) -> list[dict[str, Any]]:
    """Return the rows for JSON; unknown is null."""
    return [asdict(row) for row in rows]


def write_parquet(rows: Sequence[Features], path: Path) -> None:
    """Write the table: the same bytes for the same rows.

    Raises:
        CommandError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise CommandError(
            "this needs pyarrow, which is not installed; in a clone of gcspy: pip install '.[export]'",
            exit_code=ExitCode.MISSING_PART,
        ) from error
    kinds = {
        "file": pa.string(),
        "error": pa.string(),
        "program": pa.string(),
        "runtime": pa.string(),
        "version": pa.string(),
        "started": pa.timestamp("ns", tz="UTC"),
        "seconds": pa.float64(),
        "growth": pa.string(),
        "fragmentation": pa.float64(),
        "collecting_share": pa.float64(),
        "longest_hold_seconds": pa.float64(),
        "type_names": pa.list_(pa.string()),
        "type_bytes": pa.list_(pa.int64()),
        "anomalies": pa.list_(pa.string()),
    }
    names = [field.name for field in fields(Features)]
    schema = pa.schema(
        [(name, kinds.get(name, pa.int64())) for name in names],
        metadata={"gcspy_features": SCHEMA_VERSION},
    )
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    parquet.write_table(pa.table(columns, schema=schema), str(path), compression="zstd")


def print_summary(rows: Sequence[Features], most: int) -> None:
    """Print how many recordings are conspicuous, and those that grow fastest."""
    unread = [row for row in rows if row.error is not None]
    say(f"{len(rows):,} recordings, {len(unread):,} of them cannot be read")
    for name in sorted({name for row in rows for name in row.anomalies}):
        say(f"{name}: {sum(name in row.anomalies for row in rows):,}")
    growing = sorted(
        (row for row in rows if row.growth == "growing"),
        key=lambda row: (-(row.growth_per_minute or 0), row.file),
    )
    if growing:
        say("")
        cells: list[tuple[Cell, ...]] = [
            (row.file, row.program or "", row.resident_last, row.growth_per_minute)
            for row in growing
        ]
        columns = (
            DetailColumn(name="Growing", kind=ColumnKind.TEXT),
            DetailColumn(name="Program", kind=ColumnKind.TEXT),
            DetailColumn(name="Resident", kind=ColumnKind.BYTES),
            DetailColumn(name="Grew a minute", kind=ColumnKind.BYTES),
        )
        shown = DetailTable(
            columns=columns, rows=tuple(cells[:most]), rest=max(0, len(cells) - most)
        )
        print_table(shown, rounded=True)
