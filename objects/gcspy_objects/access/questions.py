"""Questions about accesses: the tables of YA-JOP, and candidates for leaks, reuse and pretenuring.

* `totals`: its table 2, by type or site, with accesses and idle bytes.
* `each_collection`: its figure 4: allocated, accessed and collected in each interval.
* `candidates`: objects that are reachable and idle (leaks); that are used in no later interval or in
  one only; that die at once (reuse); that live long (pretenuring).

Knows histories; does not know who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

import numpy as np
from gcspy_protocol.errors import GCspyError
from numpy.typing import NDArray

from gcspy_objects.access.history import AccessHistory, AccessNames
from gcspy_objects.analysis.findings import Cell, Column, QueryResult, Unit

__all__ = ["Candidates", "Order", "Wanted", "candidates", "each_collection", "totals"]

Mask = NDArray[np.bool_]
Longs = NDArray[np.int64]


class Order(Enum):
    """The values by which rows of a table are ordered, the greatest first."""

    BYTES = "bytes"
    OBJECTS = "objects"
    ACCESSES = "accesses"
    IDLE = "idle"


class Candidates(Enum):
    """Kinds of candidates."""

    IDLE = "idle"
    """Reachable at the end, and not accessed for some time: leaks, caches."""
    NEVER = "never"
    """Outlived a collection, and never accessed after the interval of birth."""
    ONCE = "once"
    """Outlived a collection, and accessed in one later interval only."""
    ARRIVAL = "arrival"
    """Died in the first collection after birth: such objects could be reused."""
    PRETENURE = "pretenure"
    """Sites whose objects mostly live long: they could be allocated where old objects are."""


class Wanted:
    """The selection of objects.

    Args:
        history: The objects.
        names: Their names.
        by: ``type``, or ``site``: site and type.
        type: A type's name, a part of it, or a pattern with ``*``; empty: all.
        site: The same of a site.

    Raises:
        GCspyError: There is no such type or site.
    """

    def __init__(
        self,
        history: AccessHistory,
        names: AccessNames,
        *,
        by: str = "type",
        type: str = "",
        site: str = "",
    ) -> None:
        self.history, self.names, self.by = history, names, by
        self.rows = np.ones(len(history), dtype=np.bool_)
        words = []
        for what, text, known, column in (
            ("type", type, names.types, history.type),
            ("site", site, names.sites, history.site),
        ):
            if text:
                chosen = _matching(known, text)
                if not len(chosen):
                    raise GCspyError(
                        f"the trace has no {what} called {text!r}: gcspy objects {what}s lists them; * stands for anything"
                    )
                self.rows &= np.isin(column, chosen)
                words.append(f"of type {text}" if what == "type" else f"allocated at {text}")
        self.words = ", ".join(words)
        key = (
            history.type if by == "type" else history.site * max(1, len(names.types)) + history.type
        )
        self.keys, self.group = np.unique(key, return_inverse=True)
        self.group = self.group.reshape(-1)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of names."""
        kind = Column("type_name", "Type", Unit.TEXT)
        return (kind,) if self.by == "type" else (Column("site_name", "Site", Unit.TEXT), kind)

    def named(self, group: int) -> tuple[str, ...]:
        """Return the names of a group."""
        key = int(self.keys[group])
        if self.by == "type":
            return (self.names.types[key],)
        site, kind = divmod(key, max(1, len(self.names.types)))
        return self.names.sites[site], self.names.types[kind]

    def sums(self, which: Mask, values: Longs | None = None) -> Longs:
        """Return the number of objects, or the sum of values, of each group, (groups,)."""
        which = which & self.rows
        weights = None if values is None else values[which].astype(np.float64)
        return np.bincount(self.group[which], weights=weights, minlength=len(self.keys)).astype(
            np.int64
        )

    def most(self, which: Mask, values: Longs) -> Longs:
        """Return the greatest value of each group, (groups,); 0 where there is none."""
        found = np.zeros(len(self.keys), np.int64)
        which = which & self.rows
        np.maximum.at(found, self.group[which], values[which])
        return found

    def titled(self, text: str) -> str:
        """Return a title, with the selection."""
        return f"{text} by {self.by}" + (f", {self.words}" if self.words else "")


def _matching(names: Sequence[str], text: str) -> Longs:
    for pattern in (text, f"*{text}*"):
        rows = [row for row, name in enumerate(names) if fnmatchcase(name, pattern)]
        if rows:
            return np.array(rows, np.int64)
    return np.zeros(0, np.int64)


def _result(
    title: str,
    wanted: Wanted,
    columns: Mapping[Column, Longs | NDArray[np.float64]],
    *,
    keep: Mask,
    order: Longs | NDArray[np.float64],
    top: int,
    notes: tuple[str, ...],
) -> QueryResult:
    """Put a table of groups together, the greatest first."""
    rows = np.flatnonzero(keep)
    named = [wanted.named(group) for group in rows.tolist()]
    places = sorted(range(len(rows)), key=lambda place: (-order[rows[place]], named[place]))
    shown = places[:top] if top else places
    rest = rows[places[len(shown) :]]
    values = list(columns.values())

    def cells(group: int) -> tuple[Cell, ...]:
        return tuple(
            float(one[group]) if one.dtype.kind == "f" else int(one[group]) for one in values
        )

    rest_cells: list[Cell] = [None] * len(wanted.columns)
    rest_cells += [
        int(one[rest].sum()) if column.summed and one.dtype.kind != "f" else None
        for column, one in columns.items()
    ]
    return QueryResult(
        title,
        (*wanted.columns, *columns),
        [(*named[place], *cells(int(rows[place]))) for place in shown],
        rest=len(rest),
        rest_cells=tuple(rest_cells) if len(rest) else (),
        notes=notes,
    )


def _notes(history: AccessHistory) -> tuple[str, ...]:
    notes = []
    missing = int(np.count_nonzero(~history.observed))
    if not history.observed.any():
        return ("the trace has no records of accesses: nothing is known about them",)
    if missing:
        notes.append(
            f"accesses are known of {int(history.observed.sum()):,} of {len(history.observed):,} intervals between collections"
        )
    if history.granule_bytes >= 512:
        notes.append(
            f"accesses are known by {history.granule_bytes:,} bytes: an object counts as accessed if anything there was"
        )
    return tuple(notes)


def totals(
    wanted: Wanted, *, order: Order = Order.BYTES, idle_for: int = 1, top: int = 0
) -> QueryResult:
    """Objects over the whole trace with their accesses, the most first.

    Args:
        wanted: Which, and by what.
        order: What comes first.
        idle_for: For how many observed intervals an object is not accessed to be idle.
        top: Rows; 0: all.
    """
    history = wanted.history
    everything = np.ones(len(history), dtype=np.bool_)
    idle = history.alive & (history.idle >= idle_for)
    columns: dict[Column, Longs | NDArray[np.float64]] = {}
    counted: tuple[tuple[str, str, Mask, str], ...] = (
        ("allocated", "Objects", everything, "All, also those that are older than the trace."),
        ("idle", "Idle", idle, f"There at the end, and not accessed for {idle_for} intervals or more."),
        ("arrival", "Dead on arrival", history.dead_on_arrival, "Died in the first collection after their birth."),
        ("never", "Never again", history.never_again, "Outlived a collection, and were not accessed after the interval of their birth."),
        ("once", "Once", history.accessed_once, "Outlived a collection, and were accessed in one later interval."),
    )  # fmt: skip
    for name, heading, which, about in counted:
        columns[Column(f"{name}_objects", heading, Unit.NUMBER, about)] = wanted.sums(which)
        columns[Column(f"{name}_bytes", f"{heading}, bytes", Unit.BYTES, about)] = wanted.sums(
            which, history.size
        )
    accesses = wanted.sums(everything, history.accesses)
    columns[
        Column("accesses", "Accesses", Unit.NUMBER, "Intervals in which each was accessed, summed.")
    ] = accesses
    listed = list(columns.values())
    by = {
        Order.OBJECTS: listed[0],
        Order.BYTES: listed[1],
        Order.IDLE: listed[3],
        Order.ACCESSES: accesses,
    }[order]
    return _result(
        wanted.titled("Accesses to objects"),
        wanted,
        columns,
        keep=listed[0] > 0,
        order=by,
        top=top,
        notes=_notes(history),
    )


def each_collection(wanted: Wanted) -> QueryResult:
    """Objects allocated, accessed and collected in each interval: one row for each, which ends with the collection of the next number."""
    history, rows = wanted.history, wanted.rows
    intervals = history.collections + 1

    def sums(interval: Longs, size: Longs | None) -> Longs:
        weights = None if size is None else size.astype(np.float64)
        return np.bincount(interval, weights=weights, minlength=intervals)[:intervals].astype(
            np.int64
        )

    born = rows & (history.born >= 0)
    died = rows & (history.died > 0)
    accessed = rows[history.accessed_object]
    parts: tuple[tuple[str, Longs, Longs, str], ...] = (
        ("Allocated", history.born[born], history.size[born], "Since the collection before."),
        ("Accessed", history.accessed_in[accessed], history.size[history.accessed_object[accessed]], "In this interval."),
        ("Collected", history.died[died] - 1, history.size[died], "Found dead by the collection that ends it."),
    )  # fmt: skip
    columns = [Column("interval", "Interval", Unit.NUMBER, "Collections before it.", summed=False)]
    values: list[list[Cell]] = [list(range(intervals))]
    for heading, interval, size, about in parts:
        name = heading.lower()
        columns += [
            Column(f"{name}_objects", heading, Unit.NUMBER, about),
            Column(f"{name}_bytes", f"{heading}, bytes", Unit.BYTES, about),
        ]
        for found in (sums(interval, None), sums(interval, size)):
            cells: list[Cell] = list(found.tolist())
            if heading == "Accessed":
                cells = [
                    cell if known else None
                    for cell, known in zip(cells, history.observed.tolist(), strict=True)
                ]
            values.append(cells)
    title = "Objects in each interval between collections" + (
        f", {wanted.words}" if wanted.words else ""
    )
    return QueryResult(
        title, tuple(columns), list(zip(*values, strict=True)), notes=_notes(history)
    )


def candidates(wanted: Wanted, kind: Candidates, *, idle_for: int = 2, top: int = 0) -> QueryResult:
    """Types or sites with the most bytes of a kind of candidates.

    Args:
        wanted: Which, and by what.
        kind: Of candidates.
        idle_for: For `IDLE`: for how many observed intervals they were not accessed; for
            `PRETENURE`: how many collections an object has to outlive.
        top: Rows; 0: all.
    """
    history = wanted.history
    titles: Final = {
        Candidates.IDLE: f"Reachable at the end, not accessed for {idle_for} intervals or more",
        Candidates.NEVER: "Outlived a collection, never accessed after the interval of birth",
        Candidates.ONCE: "Outlived a collection, accessed in one later interval",
        Candidates.ARRIVAL: "Dead in the first collection after birth",
        Candidates.PRETENURE: f"Outlived {idle_for} collections or more, as most of their site do",
    }
    outlived = history.last_interval - history.first_interval
    selected: dict[Candidates, Callable[[], Mask]] = {
        Candidates.IDLE: lambda: history.alive & (history.idle >= idle_for),
        Candidates.NEVER: lambda: history.never_again,
        Candidates.ONCE: lambda: history.accessed_once,
        Candidates.ARRIVAL: lambda: history.dead_on_arrival,
        Candidates.PRETENURE: lambda: (history.born >= 0) & (outlived >= idle_for),
    }
    which = selected[kind]()
    objects, size = wanted.sums(which), wanted.sums(which, history.size)
    all_bytes = wanted.sums(np.ones(len(history), dtype=np.bool_), history.size)
    share = size / np.maximum(all_bytes, 1)
    columns: dict[Column, Longs | NDArray[np.float64]] = {
        Column("objects", "Objects"): objects,
        Column("bytes", "Bytes", Unit.BYTES): size,
        Column("share", "% of all", Unit.SHARE, "Of all bytes of the group.", summed=False): share,
    }
    if kind in (Candidates.IDLE, Candidates.NEVER):
        columns[
            Column(
                "idle_most",
                "Idle, most",
                Unit.NUMBER,
                "Intervals of the most idle object.",
                summed=False,
            )
        ] = wanted.most(which, history.idle)
    keep = objects > 0
    if kind == Candidates.PRETENURE:
        columns[
            Column(
                "copied_bytes",
                "Copied, bytes",
                Unit.BYTES,
                "What a copying collector copies of them in collections before that.",
            )
        ] = size * idle_for
        keep &= share >= _MOSTLY
    return _result(
        wanted.titled(titles[kind]),
        wanted,
        columns,
        keep=keep,
        order=size,
        top=top,
        notes=_notes(history),
    )


_MOSTLY: Final = 0.8
"""Share of a site's bytes that must live long for the site to be a candidate."""
