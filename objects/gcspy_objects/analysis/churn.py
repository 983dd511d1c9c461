"""Objects that are freed soon after their birth, by site and type.

An object is temporary if it was freed before the program allocated some bytes more, by default before the next allocation. Where only
collections tell deaths, it is one that the first collection after its birth found dead.

Knows the view `life`; does not know who asks.
"""

from __future__ import annotations

from typing import Final

from gcspy_objects.analysis.findings import Column, QueryResult, Unit
from gcspy_objects.analysis.kinds import EVERYTHING, KEYS, NAMED, GroupBy, ObjectFilter, chosen
from gcspy_objects.analysis.store import LifeStore

__all__ = ["churn"]

_TEMPORARY: Final = "(freed_bytes >= 0 AND freed_bytes - birth_bytes - size <= $within OR died_in > 0 AND died_in = born_after + 1)"


def churn(
    store: LifeStore,
    only: ObjectFilter = EVERYTHING,
    *,
    within_bytes: int = 0,
    by_bytes: bool = False,
    top: int = 0,
) -> QueryResult:
    """Objects by site and type: allocated, died, temporary, and how long half of them lived; most temporary ones first.

    Args:
        store: The lives.
        only: Which of them.
        within_bytes: A freed object is temporary if the program allocated at most so many bytes after it before it was freed.
        by_bytes: Whether the order is by bytes instead of objects.
        top: Rows; 0: all.

    Raises:
        GCspyError: There is no such type or site.
    """
    keys = KEYS[GroupBy.SITE]
    told = "Freed before the program allocated more than the given bytes; or found dead by the first collection."
    columns = (
        *NAMED[GroupBy.SITE],
        Column("allocated_objects", "Allocated", Unit.NUMBER),
        Column("allocated_bytes", "Allocated, bytes", Unit.BYTES),
        Column("died_objects", "Died", Unit.NUMBER, "Before the trace ended."),
        Column("died_bytes", "Died, bytes", Unit.BYTES, "Before the trace ended."),
        Column("temporary_objects", "Temporary", Unit.NUMBER, told),
        Column("temporary_bytes", "Temporary, bytes", Unit.BYTES, told),
        Column(
            "temporary_share", "%", Unit.SHARE, "Temporary, of the allocated objects.", summed=False
        ),
        Column(
            "median_life_bytes",
            "Median life",
            Unit.BYTES,
            "Median of the bytes that the program allocated between birth and death, of those that died.",
            summed=False,
        ),
    )
    question = f"""
        SELECT place_names.name AS site_name, type_names.name AS type_name, counted.*,
               temporary_objects / nullif(allocated_objects, 0) AS temporary_share
        FROM (SELECT {keys}, count(*) AS allocated_objects, sum(size)::BIGINT AS allocated_bytes,
                     count(*) FILTER (dead) AS died_objects, coalesce(sum(size) FILTER (dead), 0)::BIGINT AS died_bytes,
                     count(*) FILTER ({_TEMPORARY}) AS temporary_objects,
                     coalesce(sum(size) FILTER ({_TEMPORARY}), 0)::BIGINT AS temporary_bytes,
                     approx_quantile(until_bytes - birth_bytes, 0.5) FILTER (dead)::BIGINT AS median_life_bytes
              FROM {chosen(store, only)} WHERE born_after >= 0 GROUP BY {keys}) AS counted
        JOIN type_names USING (type) JOIN place_names USING (place)"""
    unit = "bytes" if by_bytes else "objects"
    title = "Objects that are soon freed, by site" + (f", {only.words()}" if only.words() else "")
    return store.find(
        title,
        columns,
        question,
        order=f"temporary_{unit} DESC, allocated_{unit} DESC, site_name, type_name",
        top=top,
        within=within_bytes,
    )
