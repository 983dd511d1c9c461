"""Vectors and tables of accesses as files: CSV or Apache Parquet, by the file's name. Parquet needs pyarrow.

Knows histories and tables; does not know options.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from gcspy_objects.access.questions import Wanted
from gcspy_objects.analysis.findings import QueryResult, Unit
from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode

__all__ = ["need_parquet", "write_result", "write_vectors"]


def need_parquet() -> Any:
    """Return pyarrow and its module of Parquet.

    Raises:
        CommandError: It is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise CommandError(
            "this needs pyarrow, which is not installed; in a clone of gcspy: pip install '.[export]'",
            exit_code=ExitCode.MISSING_PART,
        ) from error
    return pa, parquet


def write_result(findings: QueryResult, path: Path) -> None:
    """Write all rows of a table as Parquet, with its title as metadata."""
    pa, parquet = need_parquet()
    kinds = {Unit.TEXT: pa.string(), Unit.SHARE: pa.float64()}
    schema = pa.schema(
        [(one.name, kinds.get(one.unit, pa.int64())) for one in findings.columns],
        metadata={"title": findings.title},
    )
    columns = list(zip(*findings.rows, strict=True)) or [()] * len(findings.columns)
    arrays = [
        pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)
    ]
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), str(path), compression="zstd")


def write_vectors(wanted: Wanted, path: Path, *, as_parquet: bool) -> None:
    """Write the vectors of the selected objects, one a row.

    Args:
        wanted: The objects.
        path: The file.
        as_parquet: Whether as Parquet, with the intervals of accesses as a list; otherwise as CSV, with
            them in one cell and spaces between.
    """
    history, names = wanted.history, wanted.names
    rows = np.flatnonzero(wanted.rows)
    begin = np.searchsorted(history.accessed_object, rows)
    end = np.searchsorted(history.accessed_object, rows, side="right")
    if as_parquet:
        pa, parquet = need_parquet()
        count = end - begin
        offsets = np.concatenate(([0], np.cumsum(count)))
        place = np.repeat(begin - offsets[:-1], count) + np.arange(offsets[-1])
        accessed = pa.LargeListArray.from_arrays(offsets, history.accessed_in[place])
        columns = {
            "site": pa.DictionaryArray.from_arrays(history.site[rows], pa.array(names.sites)),
            "born": history.born[rows],
            "died": history.died[rows],
            "type": pa.DictionaryArray.from_arrays(history.type[rows], pa.array(list(names.types))),
            "size": history.size[rows],
            "address": history.address[rows],
            "accessed": accessed,
        }
        parquet.write_table(pa.table(columns), str(path), compression="zstd")
        return
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("site", "born", "died", "type", "size", "address", "accessed"))
        texts = history.accessed_in.astype("U20").tolist()
        cells = (history.site, history.born, history.died, history.type, history.size, history.address)  # fmt: skip
        values = zip(
            *(column[rows].tolist() for column in cells),
            begin.tolist(),
            end.tolist(),
            strict=True,
        )
        out.writerows(
            (
                names.sites[site], born, died, names.types[kind], size, f"{address:#x}", " ".join(texts[low:high]),
            )
            for site, born, died, kind, size, address, low, high in values
        )  # fmt: skip
