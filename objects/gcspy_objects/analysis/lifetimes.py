"""Lifetimes of objects: the number that died at each age, and the age by which half of a type's objects were gone.

The age is that at which a collection found the object dead; it may have died at any time since the
last collection that examined it (`gcspy_objects.analysis.survival` gives both limits). Objects
without a known death have columns of their own, at their age when the trace ended: they live at
least this long.

Knows the view `life`; does not know who asks.
"""

from __future__ import annotations

from typing import Final

from gcspy_objects.analysis.findings import Column, QueryResult, Unit
from gcspy_objects.analysis.kinds import EVERYTHING, KEYS, NAMED, GroupBy, ObjectFilter, chosen
from gcspy_objects.analysis.store import LifeStore
from gcspy_objects.analysis.survival import AgeClock, product_limit

__all__ = ["distribution", "spans"]

_AGE: Final = {
    AgeClock.BYTES: "until_bytes - birth_bytes",
    AgeClock.COLLECTIONS: "until - born_after",
}
_STEP: Final = {
    AgeClock.BYTES: "CASE WHEN age < 1024 THEN 0 ELSE floor(log2(age)) END",
    AgeClock.COLLECTIONS: "age",
}
_EDGES: Final = {
    AgeClock.BYTES: (
        "CASE WHEN step = 0 THEN 0 ELSE pow(2, step)::BIGINT END",
        "CASE WHEN step = 0 THEN 1024 ELSE pow(2, step + 1)::BIGINT END",
    ),
    AgeClock.COLLECTIONS: ("step", "step + 1"),
}


def distribution(
    store: LifeStore, clock: AgeClock = AgeClock.BYTES, only: ObjectFilter = EVERYTHING
) -> QueryResult:
    """Number of objects that died at each age.

    Rows: by age, in octaves of bytes, or one for each number of collections that an object survived
    (0: the first found it dead). Empty ones are left out.

    Raises:
        GCspyError: There is no such type or site.
    """
    low, high = _EDGES[clock]
    question = f"""
        WITH aged AS NOT MATERIALIZED (SELECT {_AGE[clock]} AS age, size, dead FROM {chosen(store, only)} WHERE born_after >= 0),
        stepped AS (
            SELECT {_STEP[clock]} AS step, count(*) FILTER (dead) AS died_objects, coalesce(sum(size) FILTER (dead), 0)::BIGINT AS died_bytes,
                   count(*) FILTER (NOT dead) AS left_objects, coalesce(sum(size) FILTER (NOT dead), 0)::BIGINT AS left_bytes
            FROM aged GROUP BY step
        )
        SELECT ({low})::BIGINT AS age, ({high})::BIGINT AS below, died_objects, died_bytes, left_objects, left_bytes,
               died_objects / nullif(sum(died_objects) OVER (), 0) AS died_share
        FROM stepped"""
    unit = Unit.BYTES if clock is AgeClock.BYTES else Unit.NUMBER
    what = "Bytes allocated meanwhile" if clock is AgeClock.BYTES else "GCs survived"
    columns = (
        Column("age", what, unit, "From this age on.", summed=False),
        Column("below", "Less than", unit, "To below this age.", summed=False),
        Column("died_objects", "Died", Unit.NUMBER, "Found dead at such an age."),
        Column("died_share", "% of objects", Unit.SHARE, "Of all objects that died.", summed=False),
        Column("died_bytes", "Died, bytes", Unit.BYTES),
        Column(
            "left_objects",
            "Left",
            Unit.NUMBER,
            "Not found dead, and of such an age when the trace ended.",
        ),
        Column("left_bytes", "Left, bytes", Unit.BYTES),
    )
    title = "Ages of objects" + (f", {only.words()}" if only.words() else "")
    return store.find(title, columns, question, order="age")


def spans(
    store: LifeStore,
    by: GroupBy,
    clock: AgeClock = AgeClock.BYTES,
    only: ObjectFilter = EVERYTHING,
    *,
    top: int = 0,
) -> QueryResult:
    """Time for which the objects of each type or site are held: the ages by which a half and nine tenths of them were gone.

    Rows: the first `top` types or sites, 0: all; those with most objects first. An age is unknown
    (None) if fewer than that share had died when the trace ended.

    Raises:
        GCspyError: There is no such type or site.
    """
    keys, source = KEYS[by], chosen(store, only)
    joined = "JOIN type_names USING (type)" + (
        " JOIN place_names USING (place)" if by is GroupBy.SITE else ""
    )
    names = "type_names.name AS type_name" + (
        ", place_names.name AS site_name" if by is GroupBy.SITE else ""
    )
    question = f"""
        WITH estimate AS ({product_limit(source, clock, ("all",), keys)})
        SELECT {names}, spans.* FROM (
            SELECT {keys}, max(watched_objects) AS objects, sum(objects)::BIGINT AS died_objects,
                   min(age) FILTER (objects_share <= 0.5) AS half_age, min(age) FILTER (objects_share <= 0.1) AS tenth_age,
                   max(age) FILTER (objects > 0) AS longest_age
            FROM estimate WHERE how = 'held' GROUP BY {keys}
        ) AS spans {joined}"""
    unit = Unit.BYTES if clock is AgeClock.BYTES else Unit.NUMBER
    columns = (
        *NAMED[by],
        Column("objects", "Objects", Unit.NUMBER, "Allocated."),
        Column("died_objects", "Died", Unit.NUMBER, "Found dead by a collection."),
        Column(
            "half_age",
            "Half gone after",
            unit,
            "The age by which a half of the objects was found dead.",
            summed=False,
        ),
        Column(
            "tenth_age",
            "9 of 10 gone after",
            unit,
            "The age by which nine tenths of the objects were found dead.",
            summed=False,
        ),
        Column(
            "longest_age",
            "Longest life",
            unit,
            "The greatest age at which one was found dead.",
            summed=False,
        ),
    )
    title = f"Ages of objects by {by.value}" + (f", {only.words()}" if only.words() else "")
    order = ", ".join(["objects DESC", *(one.name for one in NAMED[by])])
    return store.find(title, columns, question, order=order, top=top)
