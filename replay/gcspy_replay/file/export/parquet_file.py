"""Export as Apache Parquet: the same columns as CSV, typed and compressed. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from gcspy_protocol.errors import RecordingError
from pyarrow import parquet

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

__all__ = ["Table", "table_of", "write"]

Table = pa.Table

_GROUP_ROWS = 1 << 17

_TEXTS = {"event", "cause", "space", "stream", "part", "name"}
_UNSIGNED = {
    "number",
    "occurrence",
    "sequence",
    "time_nanos",
    "gather_nanos",
    "held_nanos",
    "tile",
    "address",
    "covered",
}


def _type(name: str) -> pa.DataType:
    if name in _TEXTS:
        return pa.string()
    return pa.uint64() if name in _UNSIGNED else pa.int64()


def write(
    recording: Recording, path: Path, wanted: ExportSelection, progress: Progress | None = None
) -> int:
    """Write a table, in row groups of some hundred thousand rows.

    Returns:
        How many rows were written.

    Raises:
        RecordingError: The range is invalid, the recording is damaged, or a value does not fit.
        OSError: The file cannot be written.
    """
    schema = _schema(recording, wanted)
    rows = 0
    with parquet.ParquetWriter(str(path), schema, compression="zstd") as writer:
        waiting: list[pa.Table] = []
        written = 0
        for table in _tables(recording, wanted, schema, progress):
            waiting.append(table)
            rows += table.num_rows
            if rows - written >= _GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting, written = [], rows
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    return rows


def table_of(recording: Recording, wanted: ExportSelection) -> pa.Table:
    """The same as a table in memory.

    Raises:
        RecordingError: The range is invalid, the recording is damaged, or a value does not fit.
    """
    schema = _schema(recording, wanted)
    return pa.concat_tables([schema.empty_table(), *_tables(recording, wanted, schema, None)])


def _schema(recording: Recording, wanted: ExportSelection) -> pa.Schema:
    names = TILE_COLUMNS if wanted.tiles else SUMMARY_COLUMNS
    return pa.schema(
        [(name, _type(name)) for name in names], metadata={"gcspy": recording.welcome.server}
    )


def _tables(
    recording: Recording, wanted: ExportSelection, schema: pa.Schema, progress: Progress | None
) -> Iterator[pa.Table]:
    batches = (tile_batches if wanted.tiles else summary_batches)(recording, wanted, progress)
    for batch in batches:
        yield pa.table({name: _array(batch, name) for name in schema.names}, schema=schema)


def _array(batch: Batch, name: str) -> pa.Array:
    column: Any = batch.columns[name]
    if name == "address" and not batch.addresses:
        return pa.array([None] * len(column), type=_type(name))
    if name != "value" or isinstance(column, list):
        return pa.array(column, type=_type(name))
    if column.dtype.kind == "u" and column.size and int(column.max()) >= 1 << 63:
        raise RecordingError(
            f"a value of {int(column.max())} in stream {batch.columns['stream'][0]!r} does not fit Parquet's signed "
            "64 bits: export to CSV"
        )
    return pa.array(column.astype(np.int64), type=_type(name), mask=batch.unknown)
