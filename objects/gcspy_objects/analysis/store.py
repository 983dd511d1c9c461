"""All lives of a trace in Parquet files, and the engine that answers questions about them in bounded memory.

A trace may be larger than memory, and so may its lives: they are written as they end, batch by
batch, and the engine reads the columns that a query needs. It has a memory limit, and spills to
files beside the lives.

Why DuckDB: MIT licence, one wheel of 22 MB without further packages, a memory limit with spilling
to disk, and queries in SQL that anybody can read and try. Polars is as good a library, but has no
such limit; pyarrow is seven times as large installed, and only groups.

**Times.** A collection has a number from 1; number 0 is the beginning. The clock in bytes counts
the program's allocations, without the collector's fillers. An object is found dead by a collection,
and may have died at any time since the last collection that saw it alive: the view `life` has both
limits.

Tables in a ``WITH`` are NOT MATERIALIZED where they have a row a life: the engine would keep them whole otherwise.

Knows columns and SQL; does not know traces.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import duckdb
import numpy as np
from gcspy_protocol.errors import GCspyError
from numpy.typing import NDArray

from gcspy_objects.analysis.findings import Cell, Column, QueryResult, Unit

__all__ = ["LIFE_COLUMNS", "CollectionTable", "LifeStore", "Lives", "Names"]

Lives: TypeAlias = Mapping[str, NDArray[Any]]
"""Lives that ended, or that had not when the trace did: `LIFE_COLUMNS`, each (n,)."""

LIFE_COLUMNS: Final[dict[str, str]] = {
    "type": "INTEGER",
    "site": "INTEGER",
    "thread": "INTEGER",
    "size": "BIGINT",
    "birth_bytes": "BIGINT",
    "born_after": "INTEGER",
    "born_old": "BOOLEAN",
    "promoted_in": "INTEGER",
    "died_in": "INTEGER",
    "freed_bytes": "BIGINT",
    "freed_after": "INTEGER",
    "moves": "INTEGER",
    "age": "INTEGER",
    "filler": "BOOLEAN",
}
"""The columns of a life, one row per object.

======================= ======================================================================================================
type, site, thread      rows in the trace's names
size                    bytes
birth_bytes             what the program had allocated before it, bytes
born_after              how many collections had ended before it was born; -1: it was there when the trace began
born_old                it was allocated in an old space
promoted_in             number of the collection that moved it to an old space; 0: none
died_in                 number of the collection that found it dead; 0: none before the trace ended
freed_bytes             what the program had allocated when it was freed by itself; -1: it was not
freed_after             how many collections had ended when it was freed; 0 if it was not
moves                   how often it was moved
age                     how many collections looked at it and let it live
filler                  no object of the program: the rest of a buffer
======================= ======================================================================================================
"""

_MEMORY_BYTES = 512 << 20
_FILE_ROWS: Final = 1 << 20
_TABLES: Final = ("collections", "type_names", "site_names", "place_names", "summary")
_LIFE: Final = """
CREATE VIEW life AS
WITH outlived AS NOT MATERIALIZED (
    SELECT *, died_in > 0 OR freed_bytes >= 0 AS dead,
           CASE WHEN freed_bytes >= 0 THEN freed_after WHEN died_in > 0 THEN died_in - 1 ELSE {last} END AS until,
           born_old OR promoted_in > 0 AS became_old
    FROM everything WHERE NOT filler
), phases AS NOT MATERIALIZED (
    -- `old_since`: the collection after which it was old
    SELECT *, CASE WHEN born_old THEN greatest(born_after, 0) ELSE promoted_in END AS old_since FROM outlived
), seen AS NOT MATERIALIZED (
    -- `seen_in`: the last collection that looked at it and saw it alive; old spaces are looked at by full collections only
    SELECT phases.*, CASE WHEN NOT became_old THEN until WHEN upto.last_full > old_since THEN upto.last_full ELSE old_since END AS seen_in
    FROM phases JOIN collections AS upto ON upto.number = until
)
SELECT seen.*,
       CASE WHEN freed_bytes >= 0 THEN freed_bytes WHEN dead THEN found.bytes ELSE {total} END AS until_bytes,
       CASE WHEN freed_bytes >= 0 THEN greatest(freed_bytes - 1, birth_bytes) ELSE greatest(saw.bytes, birth_bytes) END AS seen_bytes,
       old.bytes AS old_bytes
FROM seen JOIN collections AS found ON found.number = died_in
          JOIN collections AS saw ON saw.number = seen_in
          JOIN collections AS old ON old.number = old_since
"""
"""The life of each of the program's own objects, and derived columns:

`dead`; `until`, the last collection that it outlived; `until_bytes` on the clock of bytes: found dead by then, or not yet at the end; `seen_in` and
`seen_bytes`: alive at least until then; `became_old`, `old_since` and `old_bytes`: whether and since when it was old (0 if never).
"""


@dataclass(frozen=True, slots=True, eq=False)
class CollectionTable:
    """The collections of a trace, n rows in their order, and its end.

    Attributes:
        full: (n,) whether it examined old spaces too.
        kind: (n,) name of its kind.
        cause: (n,) why it was begun.
        bytes: (n,) bytes that the program had allocated when it began.
        total_bytes: Bytes that it had allocated when the trace ended.
    """

    full: NDArray[np.bool_]
    kind: Sequence[str]
    cause: Sequence[str]
    bytes: NDArray[np.int64]
    total_bytes: int

    def __len__(self) -> int:
        return len(self.full)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """Names of the rows of types and sites.

    Attributes:
        types: (t) names.
        sites: (s) a line each: the place in the program.
        stacks: (s) all frames, a line each, innermost first.
    """

    types: Sequence[str]
    sites: Sequence[str]
    stacks: Sequence[str]


class LifeStore:
    """The lives of one trace. A context manager.

    Args:
        parent: Folder for the folder of its files, which goes when the store is closed; None: the system's for temporary files.
        kept: Folder for its files instead, which stays: `LifeStore.opened` reads it again.
        prefix: Of the names of the files with lives, so that several processes write into one folder.
        memory_bytes: How much memory the engine may use.
    """

    def __init__(
        self,
        parent: Path | None = None,
        *,
        kept: Path | None = None,
        prefix: str = "",
        memory_bytes: int = _MEMORY_BYTES,
    ) -> None:
        self._scratch = Path(
            tempfile.mkdtemp(prefix="gcspy-lives-", dir=parent if kept is None else None)
        )
        self.folder = kept if kept is not None else self._scratch
        self._lives = self.folder / "lives"
        self._lives.mkdir(exist_ok=True)
        self._kept = kept is not None
        self._prefix = prefix
        self._memory_bytes = memory_bytes
        self._files = 0
        self._found = 0
        self._waiting: list[dict[str, NDArray[Any]]] = []
        self._waiting_rows = 0
        self._engine = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": f"{memory_bytes} B",
                "temp_directory": str(self._scratch / "spilled"),
                # It fetches nothing from anywhere: Parquet is built in, and nothing else is used.
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        self._engine.execute(
            "SET enable_progress_bar = false"
        )  # it would be printed among the answers
        self.lives = 0
        self.collections = CollectionTable(np.empty(0, bool), (), (), np.empty(0, np.int64), 0)

    @classmethod
    def opened(cls, kept: Path, *, memory_bytes: int = _MEMORY_BYTES) -> Self:
        """Open the folder of a store that was kept and finished.

        Raises:
            GCspyError: It is not complete, or damaged.
        """
        store = cls(kept=kept, memory_bytes=memory_bytes)
        try:
            for table in _TABLES:
                path = _quoted(kept / f"{table}.parquet")
                store._run(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{path}')")
            ((store.lives, total),) = store.ask("SELECT lives, total_bytes FROM summary")
            store._define(int(total))
            ((there,),) = store.ask("SELECT count(*) FROM everything")
            if there != store.lives:
                raise GCspyError(f"{kept}: has {there:,} lives; expected {store.lives:,}")
        except BaseException:
            store.close()
            raise
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove its temporary files."""
        self._engine.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    # ------------------------------------------------------------------------------ filling

    def add(self, lives: Lives) -> None:
        """Write some lives, in any order."""
        count = len(lives["size"])
        if not count:
            return
        self.lives += count
        self._waiting.append({name: np.ascontiguousarray(lives[name]) for name in LIFE_COLUMNS})
        self._waiting_rows += count
        if self._waiting_rows >= _FILE_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what `add` has not yet written to a file: many rows a file are asked faster."""
        if not self._waiting:
            return
        batch = {
            name: np.concatenate([each[name] for each in self._waiting]) for name in LIFE_COLUMNS
        }
        self._waiting, self._waiting_rows = [], 0
        self._files += 1
        self._engine.register("batch", batch)
        typed = ", ".join(f'"{name}"::{kind} AS "{name}"' for name, kind in LIFE_COLUMNS.items())
        path = self._lives / f"{self._prefix}{self._files:06d}.parquet"
        # Whoever does the same work again, because its result was lost, writes the same file.
        begun = path.with_suffix(f".{os.getpid()}.part")
        self._run(
            f"COPY (SELECT {typed} FROM batch) TO '{_quoted(begun)}' (FORMAT parquet, COMPRESSION lz4_raw)"
        )
        begun.replace(path)
        self._engine.unregister("batch")

    def finish(self, collections: CollectionTable, names: Names, lives: int | None = None) -> None:
        """Set the tables that the lives refer to, once all were added; then queries are possible.

        Args:
            collections: Of the trace.
            names: Of the trace.
            lives: How many there are in the files; None: as many as were added here.
        """
        self.flush()
        if lives is not None:
            self.lives = lives
        last = len(collections)
        numbers = np.arange(last + 1)
        full = np.concatenate(([False], collections.full))
        self._table(
            "collections",
            number=numbers.astype(np.int32),
            kind=_texts(["", *collections.kind]),
            cause=_texts(["", *collections.cause]),
            is_full=full,
            bytes=np.concatenate(([0], collections.bytes)).astype(np.int64),
            last_full=np.maximum.accumulate(np.where(full, numbers, 0)).astype(np.int32),
        )
        self._table(
            "type_names", type=np.arange(len(names.types), dtype=np.int32), name=_texts(names.types)
        )
        places, place = (
            np.unique(_texts(names.sites), return_inverse=True)
            if len(names.sites)
            else (_texts([]), np.empty(0, np.int32))
        )
        self._table(
            "site_names",
            site=np.arange(len(names.sites), dtype=np.int32),
            place=place.astype(np.int32),
            stack=_texts(names.stacks),
        )
        self._table("place_names", place=np.arange(len(places), dtype=np.int32), name=places)
        self._table(
            "summary",
            lives=np.array([self.lives], np.int64),
            total_bytes=np.array([collections.total_bytes], np.int64),
        )
        if self._kept:
            for table in _TABLES:
                path = _quoted(self.folder / f"{table}.parquet")
                self._run(f"COPY {table} TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
        self._define(collections.total_bytes)

    def _define(self, total_bytes: int) -> None:
        """Define the views, and read the collections."""
        self._run("SET preserve_insertion_order = false")
        if any(self._lives.glob("*.parquet")):
            self._run(
                f"CREATE VIEW everything AS SELECT * FROM read_parquet('{_quoted(self._lives)}/*.parquet')"
            )
        else:
            columns = ", ".join(f'"{name}" {kind}' for name, kind in LIFE_COLUMNS.items())
            self._run(f"CREATE TABLE everything ({columns})")
        rows = self.ask(
            "SELECT is_full, kind, cause, bytes FROM collections WHERE number > 0 ORDER BY number"
        )
        self.collections = CollectionTable(
            np.array([row[0] for row in rows], bool),
            [row[1] for row in rows],
            [row[2] for row in rows],
            np.array([row[3] for row in rows], np.int64),
            total_bytes,
        )
        self._run(_LIFE.format(last=len(rows), total=total_bytes))

    def _run(
        self, question: str, values: Mapping[str, Any] | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Have the engine do something.

        Raises:
            GCspyError: Its memory, or the disk, is too small for that, or it fails.
        """
        try:
            return self._engine.execute(question, values or None)
        except duckdb.OutOfMemoryException as error:
            raise GCspyError(
                f"{self.lives:,} lives cannot be asked this in {self._memory_bytes >> 20:,} MiB of memory and what {self.folder.parent} has room for:"
                " ask about fewer with --type or --site, or set TMPDIR to a folder with more room"
            ) from error
        except duckdb.IOException as error:
            raise GCspyError(
                f"the lives in {self.folder} cannot be written or read: {error}; TMPDIR names another folder"
            ) from error
        except duckdb.Error as error:  # a defect, of the engine or of a question
            first = str(error).partition("\n")[0]
            raise GCspyError(
                f"DuckDB {duckdb.__version__} failed: {first}; another version of it may not"
            ) from error

    def _table(self, table: str, /, **columns: NDArray[Any]) -> None:
        """A small table of the engine's own, copied."""
        with _pandas_looked_up_once():
            self._engine.register("columns", columns)
            self._run(f"CREATE TABLE {table} AS SELECT * FROM columns")
            self._engine.unregister("columns")

    # ------------------------------------------------------------------------------- asking

    def ask(self, question: str, **values: Cell | Sequence[int]) -> list[tuple[Any, ...]]:
        """Return the rows of a query; `values` replace the ``$names`` in it."""
        rows: list[tuple[Any, ...]] = self._run(question, values).fetchall()
        return rows

    def columns(
        self, names: Sequence[str], where: str = "true"
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield columns of all lives, fillers too, a file at a time: for a pass that the engine would not do as fast.

        Args:
            names: Of `LIFE_COLUMNS`.
            where: SQL: which lives, by their own columns.
        """
        chosen = ", ".join(f'"{name}"' for name in names)
        for path in sorted(self._lives.glob("*.parquet")):
            yield self._run(
                f"SELECT {chosen} FROM read_parquet('{_quoted(path)}') WHERE {where}"
            ).fetchnumpy()

    def add_table(self, **columns: NDArray[Any]) -> str:
        """Add a table for queries; returns its name."""
        self._found += 1
        table = f"given_{self._found}"
        self._table(table, **columns)
        return table

    def find(
        self,
        title: str,
        columns: Iterable[Column],
        question: str,
        *,
        order: str,
        top: int = 0,
        notes: Iterable[str] = (),
        **values: Cell | Sequence[int],
    ) -> QueryResult:
        """Run a query, and return the rows with the names of the columns, in that order; `top`: return this many and sums of the rest, 0: all."""
        columns = tuple(columns)
        self._found += 1
        table = f"found_{self._found}"
        names = ", ".join(f'"{one.name}"' for one in columns)
        self._run(
            f"CREATE TABLE {table} AS SELECT row_number() OVER (ORDER BY {order}) AS place, {names} FROM ({question})",
            values,
        )
        rows = self.ask(
            f"SELECT {names} FROM {table} {'WHERE place <= $top' if top else ''} ORDER BY place",
            **({"top": top} if top else {}),
        )
        sums = ", ".join(
            f'sum("{one.name}")' if one.summed and one.unit is not Unit.TEXT else "NULL"
            for one in columns
        )
        ((count, *rest),) = self.ask(
            f"SELECT count(*), {sums} FROM {table} WHERE place > $shown", shown=len(rows)
        )
        return QueryResult(
            title, columns, rows, count, tuple(rest) if count else (), tuple(notes), table
        )

    def write(self, findings: QueryResult, path: Path) -> None:
        """Write results as Parquet.

        Raises:
            OSError: It cannot be written.
        """
        self._copy(f"SELECT * EXCLUDE place FROM {findings.table} ORDER BY place", path)

    def write_lives(self, path: Path) -> None:
        """Write all lives as Parquet, with their names: for questions that are not asked here.

        Raises:
            OSError: It cannot be written.
        """
        self._copy(
            "SELECT type_names.name AS type_name, place_names.name AS site_name, life.* FROM life JOIN type_names USING (type)"
            " JOIN site_names USING (site) JOIN place_names USING (place)",
            path,
        )

    def _copy(self, question: str, path: Path) -> None:
        try:
            self._engine.execute(
                f"COPY ({question}) TO '{_quoted(path)}' (FORMAT parquet, COMPRESSION zstd)"
            )
        except duckdb.IOException as error:
            raise OSError(str(error)) from error


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


@contextmanager
def _pandas_looked_up_once() -> Iterator[None]:
    """Keep DuckDB from looking for pandas where it is not installed: it does so at each text of a column, in every folder of modules."""
    missing = "pandas" not in sys.modules and find_spec("pandas") is None
    no_module: Any = None
    if missing:
        sys.modules["pandas"] = no_module  # importing it fails at once
    try:
        yield
    finally:
        if missing:
            del sys.modules["pandas"]


def _texts(texts: Sequence[str]) -> NDArray[np.object_]:
    found = np.empty(len(texts), dtype=object)
    found[:] = texts
    return found
