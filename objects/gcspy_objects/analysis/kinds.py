"""Allocations, survivors, promotions and deaths of objects: by type, by site, and in each collection.

The first is table 2 of YA-JOP (Wang, Shi and Li), the last its figure 4; it also counts accesses,
which no trace of moves contains.

**Survived** means: a collection examined the object and let it live. A minor collection examines
young objects only, so an old object survives full collections, and is merely present during the
others.

Knows the view `life`; does not know who asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gcspy_protocol.errors import GCspyError

from gcspy_objects.analysis.findings import Column, QueryResult, Unit
from gcspy_objects.analysis.store import LifeStore

__all__ = [
    "EVERYTHING",
    "KEYS",
    "NAMED",
    "GroupBy",
    "ObjectFilter",
    "chosen",
    "collections",
    "each_collection",
    "growth",
    "in_collection",
    "selected",
    "totals",
]


class GroupBy(Enum):
    """The keys that objects are grouped by."""

    TYPE = "type"
    SITE = "site"
    """Place in the program, and type: compilers make several sites of one place."""


@dataclass(frozen=True, slots=True)
class ObjectFilter:
    """The selection of objects.

    Attributes:
        type: Of types with this name; ``*`` matches anything. If no name is equal: whose name
            contains it.
        site: Allocated at sites that are called so, alike.
    """

    type: str = ""
    site: str = ""

    def words(self) -> str:
        """Return the selection, for a title; empty for all."""
        parts = [f"of type {self.type}"] if self.type else []
        return ", ".join(parts + ([f"allocated at {self.site}"] if self.site else []))


EVERYTHING: Final = ObjectFilter()

KEYS: Final = {GroupBy.TYPE: "type", GroupBy.SITE: "place, type"}
NAMED: Final = {
    GroupBy.TYPE: (Column("type_name", "Type", Unit.TEXT),),
    GroupBy.SITE: (Column("site_name", "Site", Unit.TEXT), Column("type_name", "Type", Unit.TEXT)),
}
_JOINED: Final = {
    GroupBy.TYPE: "JOIN type_names USING (type)",
    GroupBy.SITE: "JOIN type_names USING (type) JOIN place_names USING (place)",
}
_NAMES: Final = {
    GroupBy.TYPE: "type_names.name AS type_name",
    GroupBy.SITE: "place_names.name AS site_name, type_names.name AS type_name",
}

_WHAT: Final = ("allocated", "survived", "promoted", "died")


def chosen(store: LifeStore, only: ObjectFilter) -> str:
    """Return the source of a query: lives, with their sites, of the selected types and sites.

    Raises:
        GCspyError: There is no such type, or no such site.
    """
    wanted = _wanted(store, only)
    where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
    return f"(SELECT life.*, place FROM life JOIN site_names USING (site){where})"


def selected(store: LifeStore, only: ObjectFilter) -> str:
    """Return the same selection as a condition on a life's own columns.

    Raises:
        GCspyError: There is no such type, or no such site.
    """
    wanted = [
        f"site IN (SELECT site FROM site_names WHERE {one})" if one.startswith("place") else one
        for one in _wanted(store, only)
    ]
    return " AND ".join(["true", *wanted])


def _wanted(store: LifeStore, only: ObjectFilter) -> list[str]:
    """Return conditions on `type` and `place`."""
    wanted = []
    for name, text, column in (
        ("type_names", only.type, "type"),
        ("place_names", only.site, "place"),
    ):
        if text:
            rows = _named(store, name, column, text)
            if not rows:
                what = {"type": "type", "place": "site"}[column]
                raise GCspyError(
                    f"the trace has no {what} called {text!r}: gcspy objects {what}s lists them; * stands for anything"
                )
            wanted.append(f"{column} IN ({', '.join(map(str, rows))})")
    return wanted


def _named(store: LifeStore, table: str, column: str, text: str) -> list[int]:
    pattern = text.replace("!", "!!").replace("%", "!%").replace("_", "!_").replace("*", "%")
    for like in (pattern, f"%{pattern}%"):
        rows = store.ask(
            f"SELECT {column} FROM {table} WHERE name LIKE $like ESCAPE '!' ORDER BY 1", like=like
        )
        if rows:
            return [row for (row,) in rows]
    return []


def _counted(name: str, heading: str, condition: str, about: str) -> tuple[tuple[Column, ...], str]:
    """Two columns, objects and bytes, and the SQL that counts them."""
    columns = (
        Column(f"{name}_objects", heading, Unit.NUMBER, about),
        Column(f"{name}_bytes", f"{heading}, bytes", Unit.BYTES, about),
    )
    sql = f"count(*) FILTER ({condition}) AS {name}_objects, coalesce(sum(size) FILTER ({condition}), 0)::BIGINT AS {name}_bytes"
    return columns, sql


_TOTALS: Final = (
    _counted(
        "allocated",
        "Allocated",
        "born_after >= 0",
        "By the program; what collectors fill gaps with is not counted.",
    ),
    _counted(
        "survived",
        "Survived",
        "age > 0",
        "At least one collection examined and kept them.",
    ),
    _counted("promoted", "Promoted", "promoted_in > 0", "Moved from a young to an old space."),
    _counted("died", "Died", "dead", "Found dead by a collection."),
    _counted("left", "Left", "NOT dead", "No collection found them dead before the trace ended."),
)


def totals(
    store: LifeStore,
    by: GroupBy,
    only: ObjectFilter = EVERYTHING,
    *,
    by_bytes: bool = False,
    top: int = 0,
) -> QueryResult:
    """Objects over the whole trace, by type or by site, the most first: YA-JOP's table 2.

    Rows: the first `top`, 0: all. Columns: names, then objects and bytes allocated, their shares of
    the selection, survived, promoted, died, left.

    Raises:
        GCspyError: There is no such type or site.
    """
    keys, source = KEYS[by], chosen(store, only)
    (allocated, *others) = [columns for columns, _ in _TOTALS]
    columns = [
        *NAMED[by],
        allocated[0],
        Column("objects_share", "%", Unit.SHARE, "Of all objects allocated."),
        allocated[1],
        Column("bytes_share", "%", Unit.SHARE, "Of all bytes allocated."),
        *(column for pair in others for column in pair),
    ]
    question = f"""
        SELECT {_NAMES[by]}, counted.*,
               allocated_objects / nullif(sum(allocated_objects) OVER (), 0) AS objects_share,
               allocated_bytes / nullif(sum(allocated_bytes) OVER (), 0) AS bytes_share
        FROM (SELECT {keys}, {", ".join(sql for _, sql in _TOTALS)} FROM {source} GROUP BY {keys}) AS counted {_JOINED[by]}"""
    title = f"Objects by {by.value}" + (f", {only.words()}" if only.words() else "")
    first = (
        "allocated_bytes DESC, allocated_objects DESC"
        if by_bytes
        else "allocated_objects DESC, allocated_bytes DESC"
    )
    names = ", ".join(one.name for one in NAMED[by])
    return store.find(
        title, columns, question, order=f"{first}, {names}", top=top, notes=_left_out(store)
    )


def growth(store: LifeStore, since: int, *, top: int = 0) -> QueryResult:
    """Objects left at the end, by type and site, and by how much they are more than after a collection: the most growth first.

    Args:
        store: The lives.
        since: Number of the collection; 0: the beginning of the trace.
        top: Rows; 0: all.
    """
    before = "born_after < $since AND (NOT dead OR died_in > $since OR freed_bytes >= 0 AND freed_after >= $since)"
    left_columns, left = _counted(
        "left", "Left", "NOT dead", "No collection found them dead before the trace ended."
    )
    columns = (
        Column("type_name", "Type", Unit.TEXT),
        Column("site_name", "Allocated at", Unit.TEXT),
        *left_columns,
        Column("grew_objects", "Grew", Unit.NUMBER, f"Since collection {since}."),
        Column("grew_bytes", "Grew, bytes", Unit.BYTES, f"Since collection {since}."),
    )
    question = f"""
        SELECT {_NAMES[GroupBy.SITE]}, left_objects, left_bytes,
               left_objects - before_objects AS grew_objects, left_bytes - before_bytes AS grew_bytes
        FROM (SELECT {KEYS[GroupBy.SITE]}, {left}, {_counted("before", "", before, "")[1]}
              FROM {chosen(store, EVERYTHING)} GROUP BY ALL) AS counted {_JOINED[GroupBy.SITE]}
        WHERE left_objects > 0 OR before_objects > 0"""
    whole = f"from collection {since} of {len(store.collections)} to the end"
    return store.find(
        f"What grew {whole if since else 'from the beginning to the end'}, and where it was allocated",
        columns,
        question,
        order="grew_bytes DESC, left_bytes DESC, type_name, site_name",
        top=top,
        notes=_left_out(store),
        since=since,
    )


def _left_out(store: LifeStore) -> tuple[str, ...]:
    ((fillers, before),) = store.ask(
        "SELECT count(*) FILTER (filler), count(*) FILTER (born_after < 0 AND NOT filler) FROM everything"
    )
    notes = (
        [f"{fillers:,} objects that only fill gaps between buffers are left out."]
        if fillers
        else []
    )
    if before:
        notes.append(
            f"{before:,} objects were there when the trace began; they are not counted as allocated, and their age is not known."
        )
    return tuple(notes)


# ------------------------------------------------------------------------------------- collections

_COLLECTION: Final = (
    Column("number", "GC", Unit.NUMBER, "Number of the collection.", summed=False),
    Column("kind", "Kind", Unit.TEXT),
    Column("cause", "Cause", Unit.TEXT),
)
_ABOUT: Final = {
    "allocated": "Since the collection before.",
    "survived": "The collection examined and kept them.",
    "promoted": "It moved them to an old space; they are among those that survived.",
    "died": "It found them dead.",
}
_EVENTS: Final = tuple(
    Column(
        f"{what}_{unit}",
        what.capitalize() + (", bytes" if unit == "bytes" else ""),
        Unit.BYTES if unit == "bytes" else Unit.NUMBER,
        about,
    )
    for what, about in _ABOUT.items()
    for unit in ("objects", "bytes")
)


def _each(keys: str, source: str, ranked: str) -> str:
    """SQL: for each key of `ranked` and each collection what happened there; number 0 has the initial objects.

    Old objects that died are counted separately from young ones, because the number of examined
    objects follows from sums over the previous collections.
    """
    by = f"{keys}, " if keys else ""
    over = f"OVER (PARTITION BY {keys} ORDER BY number)" if keys else "OVER (ORDER BY number)"
    join = f"JOIN {ranked} USING ({keys})" if keys else ""
    grid = f"{ranked} CROSS JOIN collections" if keys else "collections"
    using = f"{by}number"

    def part(number: str, condition: str, **counted: str) -> str:
        sums = ", ".join(
            f"{f'sum({value})' if counted.get(what) else '0'}::BIGINT AS {what}_{unit}"
            for what in ("allocated", "pretenured", "promoted", "died", "died_old")
            for unit, value in (
                ("objects", counted.get(what, "")),
                ("bytes", f"size * {counted.get(what, '')}"),
            )
        )
        return f"SELECT {by}{number} AS number, {sums} FROM {source} {join} WHERE {condition} GROUP BY ALL"

    summed = ", ".join(
        f"coalesce(sum({what}_{unit}), 0)::BIGINT AS {what}_{unit}"
        for what in ("allocated", "pretenured", "promoted", "died", "died_old")
        for unit in ("objects", "bytes")
    )

    def survived(unit: str) -> str:
        old = f"sum(pretenured_{unit} + promoted_{unit} - died_old_{unit}) {over}"
        return f"(sum(allocated_{unit} - died_{unit}) {over} - CASE WHEN is_full THEN 0 ELSE {old} - promoted_{unit} END)::BIGINT AS survived_{unit}"

    return f"""
        WITH happened AS (
            {part("born_after + 1", "true", allocated="1", pretenured="born_old::INTEGER")}
            UNION ALL {part("promoted_in", "promoted_in > 0", promoted="1")}
            UNION ALL {part("CASE WHEN freed_bytes >= 0 THEN freed_after + 1 ELSE died_in END", "dead", died="1", died_old="became_old::INTEGER")}
        ), dense AS (
            SELECT {by}number, is_full, {summed}
            FROM {grid} LEFT JOIN happened USING ({using}) GROUP BY ALL
        ), grown AS (
            SELECT {by}number, allocated_objects, allocated_bytes, promoted_objects, promoted_bytes, died_objects, died_bytes,
                   {survived("objects")}, {survived("bytes")}
            FROM dense
        )
        SELECT grown.*, kind, cause FROM grown JOIN collections USING (number) WHERE number > 0"""


def collections(store: LifeStore, only: ObjectFilter = EVERYTHING) -> QueryResult:
    """Objects allocated before each collection, and those that survived it, were promoted and died in it: YA-JOP's figure 4.

    Rows: one a collection, in their order.

    Raises:
        GCspyError: There is no such type or site.
    """
    question = _each("", chosen(store, only), "")
    title = "Objects in each collection" + (f", {only.words()}" if only.words() else "")
    return store.find(
        title,
        (*_COLLECTION, *_EVENTS),
        question,
        order="number",
        notes=_after_the_last(store, only),
    )


def _after_the_last(store: LifeStore, only: ObjectFilter) -> tuple[str, ...]:
    last = len(store.collections)
    ((objects, size),) = store.ask(
        f"SELECT count(*), coalesce(sum(size), 0)::BIGINT FROM {chosen(store, only)} WHERE born_after = $last",
        last=last,
    )
    return (
        (f"{objects:,} objects of {size:,} bytes were allocated after the last collection.",)
        if objects
        else ()
    )


def each_collection(
    store: LifeStore,
    by: GroupBy,
    only: ObjectFilter = EVERYTHING,
    *,
    top: int = 10,
    by_bytes: bool = False,
) -> QueryResult:
    """The same for each of the types or sites that allocate most.

    Rows: one a collection, of the first type all, then of the next.

    Raises:
        GCspyError: There is no such type or site.
    """
    keys, source = KEYS[by], chosen(store, only)
    largest = "sum(size)" if by_bytes else "count(*)"
    store.ask(
        f"CREATE OR REPLACE TABLE ranked AS SELECT {keys}, row_number() OVER (ORDER BY {largest} DESC, {keys}) AS rank"
        f" FROM {source} GROUP BY {keys} ORDER BY rank LIMIT $top",
        top=top,
    )
    question = f"""SELECT {_NAMES[by]}, each.*, rank FROM ({_each(keys, source, "ranked")}) AS each
                   JOIN ranked USING ({keys}) {_JOINED[by]}"""
    title = f"Objects in each collection by {by.value}" + (
        f", {only.words()}" if only.words() else ""
    )
    return store.find(title, (*NAMED[by], *_COLLECTION, *_EVENTS), question, order="rank, number")


def in_collection(
    store: LifeStore,
    by: GroupBy,
    number: int,
    only: ObjectFilter = EVERYTHING,
    *,
    by_bytes: bool = False,
    top: int = 0,
) -> QueryResult:
    """The same for one collection: all types or sites that it had to do with, or that were allocated just before it.

    Raises:
        GCspyError: There is no such type, site or collection.
    """
    count = len(store.collections)
    if not 1 <= number <= count:
        raise GCspyError(
            f"the trace has no collection {number}: it has {f'1 to {count}' if count else 'none'}"
        )
    keys, source = KEYS[by], chosen(store, only)
    full = bool(store.collections.full[number - 1])
    looked_at = "born_after < $number AND (died_in = 0 OR died_in >= $number) AND (freed_bytes < 0 OR freed_after >= $number)"
    if not full:
        looked_at += " AND NOT born_old AND (promoted_in = 0 OR promoted_in >= $number)"
    counted = (
        _counted("allocated", "", "born_after = $number - 1", ""),
        _counted("survived", "", f"{looked_at} AND died_in <> $number", ""),
        _counted("promoted", "", "promoted_in = $number", ""),
        _counted(
            "died", "", "died_in = $number OR freed_bytes >= 0 AND freed_after = $number - 1", ""
        ),
    )
    question = f"""
        SELECT {_NAMES[by]}, counted.* FROM (SELECT {keys}, {", ".join(sql for _, sql in counted)} FROM {source} GROUP BY {keys}) AS counted
        {_JOINED[by]} WHERE allocated_objects + survived_objects + died_objects > 0"""
    unit = "bytes" if by_bytes else "objects"
    names = ", ".join(one.name for one in NAMED[by])
    kind, cause = store.collections.kind[number - 1], store.collections.cause[number - 1]
    title = f"Objects by {by.value} in collection {number} ({kind}, {cause})" + (
        f", {only.words()}" if only.words() else ""
    )
    return store.find(
        title,
        (*NAMED[by], *_EVENTS),
        question,
        order=f"allocated_{unit} + survived_{unit} DESC, {names}",
        top=top,
        number=number,
    )
