"""`read_features`: the table that `feature_table.write_parquet` wrote, as rows; knows the file, not what follows from it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from gcspy_protocol.errors import CommandError
from gcspy_protocol.text.visible import visible

from gcspy.exit_codes import ExitCode
from gcspy.fleet.feature_table import SCHEMA_VERSION
from gcspy.fleet.features import Features

__all__ = ["MOST_RECORDINGS", "read_features"]

MOST_RECORDINGS: Final = 1_000_000
"""Rows that a table may have: each takes some 600 bytes of memory."""

_LISTS: Final = ("type_names", "type_bytes", "anomalies")
_TEXTS: Final = ("file", "error", "program", "runtime", "version", "growth")
_NUMBERS: Final = ("seconds", "fragmentation", "collecting_share", "longest_hold_seconds")


def read_features(path: Path) -> list[Features]:
    """Return the rows of a table of features.

    Raises:
        CommandError: It cannot be read, is no such table, or is too large; or pyarrow is missing.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise CommandError(
            "this needs pyarrow, which is not installed; in a clone of gcspy: pip install '.[export]'",
            exit_code=ExitCode.MISSING_PART,
        ) from error
    names = [field.name for field in fields(Features)]
    try:
        with parquet.ParquetFile(str(path)) as file:
            version = (file.schema_arrow.metadata or {}).get(b"gcspy_features")
            if version != SCHEMA_VERSION.encode():
                raise CommandError(
                    f"{path} is not a table of `gcspy features`, version {SCHEMA_VERSION}; "
                    "write one with: gcspy features FILE... -o TABLE",
                    exit_code=ExitCode.RECORDING,
                )
            if file.metadata.num_rows > MOST_RECORDINGS:
                raise CommandError(
                    f"{path} has {file.metadata.num_rows:,} rows; {MOST_RECORDINGS:,} at most are read",
                    exit_code=ExitCode.RECORDING,
                )
            table = file.read(columns=names)
            columns = {
                name: (
                    table[name].cast(pa.int64()) if name == "started" else table[name]
                ).to_pylist()
                for name in names
            }
    except FileNotFoundError as error:
        raise CommandError(f"{path}: no such file", exit_code=ExitCode.TARGET_GONE) from error
    except (OSError, KeyError, pa.ArrowException) as error:
        raise CommandError(
            f"{path} cannot be read as Parquet: {visible(str(error))[:200]}",
            exit_code=ExitCode.RECORDING,
        ) from error
    return [
        Features(
            **{name: _checked(name, value, path) for name, value in zip(names, row, strict=True)}
        )
        for row in zip(*columns.values(), strict=True)
    ]


def _checked(name: str, value: Any, path: Path) -> Any:
    """Return a cell as the type of its column, texts printable."""
    if value is None:
        if name in ("file", "growth"):
            raise CommandError(f"{path}: a row has no {name}", exit_code=ExitCode.RECORDING)
        return () if name in _LISTS else None
    if name in _TEXTS and isinstance(value, str):
        return visible(value)
    if name in _LISTS and isinstance(value, list):
        kind = int if name == "type_bytes" else str
        if all(isinstance(one, kind) for one in value):
            return tuple(visible(one) if isinstance(one, str) else one for one in value)
    if name in _NUMBERS and isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if name not in (*_TEXTS, *_LISTS, *_NUMBERS) and isinstance(value, int):
        return value
    raise CommandError(
        f"{path}: the column {name} has {type(value).__name__} cells", exit_code=ExitCode.RECORDING
    )
