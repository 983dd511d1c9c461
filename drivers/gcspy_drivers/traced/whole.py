"""Answers about a whole trace: survival by age, age at death, what each collection did, and accesses.

The lives of all objects are gathered when the first such question comes, and kept for the next one; the answers are those of
`gcspy objects survival`, `lifetimes` and `collections`, with shares as millionths.

Maps questions to analyses; does not know who asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gcspy_objects.heap import RebuiltHeap
from gcspy_protocol.errors import CommandError

from gcspy_drivers.traced.kinds import (
    ACCESSES,
    COLLECTIONS,
    LIFETIMES_BYTES,
    LIFETIMES_GCS,
    SURVIVAL_BYTES,
    SURVIVAL_GCS,
)
from gcspy_server.api import ColumnKind, DetailColumn, DetailTable

if TYPE_CHECKING:
    from gcspy_objects.access.history import AccessHistory
    from gcspy_objects.analysis.findings import Cell, QueryResult
    from gcspy_objects.analysis.store import LifeStore

__all__ = ["Whole", "table_of"]

_POINTS = 240
"""Ages of a survival curve, a generation: more than a window has room for, fewer than an answer has rows."""
_MILLION = 1_000_000


def table_of(findings: QueryResult, most: int) -> DetailTable:
    """Findings as the table of an answer: shares become millionths, and numbers that are not integers are unknown."""
    from gcspy_objects.analysis.findings import Unit

    kinds = {Unit.TEXT: ColumnKind.TEXT, Unit.BYTES: ColumnKind.BYTES}
    columns = tuple(
        DetailColumn(name=one.heading, kind=kinds.get(one.unit, ColumnKind.NUMBER), about=one.about)
        for one in findings.columns
    )
    rows = tuple(tuple(map(_cell, row)) for row in findings.rows[:most])
    left_out = len(findings.rows) - len(rows) + findings.rest
    return DetailTable(
        columns=columns,
        rows=rows,
        rest=left_out,
        rest_cells=(None,) * len(columns) if left_out else (),
        note=" ".join(findings.notes),
    )


def _cell(cell: Cell) -> int | str | None:
    if isinstance(cell, float):
        return round(cell * _MILLION)
    return cell


class Whole:
    """Answers questions about a whole trace. Not to be asked in two threads at once.

    Args:
        heap: The heap of the trace.
    """

    def __init__(self, heap: RebuiltHeap) -> None:
        self._heap = heap
        self._store: LifeStore | None = None
        self._history: AccessHistory | None = None
        self._told: dict[tuple[str, str], QueryResult] = {}

    def close(self) -> None:
        """Remove the files with the lives."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def tell(self, kind: str, text: str, most: int) -> DetailTable:
        """Answer a question.

        Args:
            kind: One of `kinds.KINDS_OF_ALL`.
            text: Type of the objects; empty: all.
            most: Rows.

        Raises:
            CommandError: The engine that answers is not installed.
            GCspyError: There is no such type.
        """
        found = self._told.get((kind, text))
        if found is None:
            found = self._told[kind, text] = self._ask(kind, text)
            while len(self._told) > _MOST_KEPT:
                self._told.pop(next(iter(self._told)))
        return table_of(found, most)

    @property
    def has_read_accesses(self) -> bool:
        """Whether the accesses to all objects are there already."""
        return self._history is not None

    @property
    def history(self) -> AccessHistory:
        """The accesses to all objects, read when they are needed first."""
        if self._history is None:
            from gcspy_objects.access.recorder import access_history

            self._history = access_history(self._heap)
        return self._history

    def _accesses(self, text: str) -> QueryResult:
        from gcspy_objects.access.questions import Wanted, each_collection
        from gcspy_objects.access.recorder import access_names

        names = access_names(self._heap)
        return each_collection(Wanted(self.history, names, type=text.strip()))

    def _ask(self, kind: str, text: str) -> QueryResult:
        if kind == ACCESSES:
            return self._accesses(text)
        try:
            from gcspy_objects.analysis.gather import gather
            from gcspy_objects.analysis.kinds import ObjectFilter, collections
            from gcspy_objects.analysis.lifetimes import distribution
            from gcspy_objects.analysis.survival import AgeClock, survival
        except ModuleNotFoundError as error:
            raise CommandError(
                f"this needs the package {error.name} where the trace is played; in a clone of gcspy: pip install '.[objects]'"
            ) from error
        if self._store is None:
            self._store = gather(self._heap)
        clock = AgeClock.COLLECTIONS if kind in (SURVIVAL_GCS, LIFETIMES_GCS) else AgeClock.BYTES
        only = ObjectFilter(type=text.strip())
        if kind in (SURVIVAL_BYTES, SURVIVAL_GCS):
            return survival(self._store, clock, only, points=_POINTS)
        if kind in (LIFETIMES_BYTES, LIFETIMES_GCS):
            return distribution(self._store, clock, only)
        assert kind == COLLECTIONS
        return collections(self._store, only)


_MOST_KEPT: Final = 32
