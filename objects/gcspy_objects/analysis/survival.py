"""The share of objects still present after a number of allocated bytes, or of collections; and the resulting lifetimes of each type.

When the trace ends, most programs hold objects whose death was not recorded. Leaving them out would
make all lives short, and so would counting them as dead. So the share is the product-limit estimate
(Kaplan and Meier, 1958): at each age at which an object died, of those that had reached it and were
still observed. If all died it is the plain share.

An object dies some time between the last collection that saw it alive and the one that found it
dead. Both are given: `held`, the share that still took up memory, and `seen`, as if each had died
right after it was last seen alive. The reachable share lies between.

| generation | begins with | ends with |
|---|---|---|
| all | birth | death |
| young | birth in a young space | death; one that is promoted is watched no longer |
| old | promotion, or birth in an old space | death |

Ages in bytes are put into bins of a 64th of an octave (1.1 %), each at its greatest age, below 4096
bytes into bins of one. So the work does not grow with the number of different ages.

Knows the view `life`; does not know who asks.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from gcspy_objects.analysis.age_bins import age_bins
from gcspy_objects.analysis.findings import Column, QueryResult, Unit
from gcspy_objects.analysis.kinds import EVERYTHING, ObjectFilter, chosen, selected
from gcspy_objects.analysis.store import LifeStore

__all__ = ["GENERATIONS", "AgeClock", "product_limit", "survival"]

GENERATIONS: Final = ("all", "young", "old")


class AgeClock(Enum):
    """Unit of age."""

    BYTES = "bytes"
    """Bytes that the program allocated meanwhile."""
    COLLECTIONS = "gcs"
    """Collections that took place in that time, whatever they examined."""


# For each generation: which lives, since when, how long they were held, how long those that died
# were seen, and whether it ended with a death.
_SPANS: Final = {
    AgeClock.BYTES: {
        "all": ("true", "birth_bytes", "until_bytes", "seen_bytes", "dead"),
        "young": (
            "NOT born_old",
            "birth_bytes",
            "CASE WHEN promoted_in > 0 THEN old_bytes ELSE until_bytes END",
            "seen_bytes",
            "dead AND promoted_in = 0",
        ),
        "old": (
            "became_old",
            "CASE WHEN born_old THEN birth_bytes ELSE old_bytes END",
            "until_bytes",
            "seen_bytes",
            "dead",
        ),
    },
    AgeClock.COLLECTIONS: {
        "all": ("true", "born_after", "until + (died_in > 0)::INTEGER", "seen_in", "dead"),
        "young": (
            "NOT born_old",
            "born_after",
            "CASE WHEN promoted_in > 0 THEN promoted_in ELSE until + (died_in > 0)::INTEGER END",
            "seen_in",
            "dead AND promoted_in = 0",
        ),
        "old": ("became_old", "old_since", "until + (died_in > 0)::INTEGER", "seen_in", "dead"),
    },
}
_BIN: Final = {
    AgeClock.BYTES: "CASE WHEN age < 4096 THEN age ELSE 4096 + floor(64 * log2(age))::BIGINT END",
    AgeClock.COLLECTIONS: "age",
}


def _ages(source: str, clock: AgeClock, generations: tuple[str, ...], keys: str) -> str:
    """SQL: a row for each life in each generation, as held and as seen: its age when it ended or was last observed.

    One scan of the lives, each of which becomes several rows: several scans at a time would each
    need memory.
    """
    parts = []
    for generation in generations:
        which, since, held, seen, dead = _SPANS[clock][generation]
        # An object last seen alive at an age is dead an instant later; one that did not die is
        # observed for the same time either way.
        for how, until in (
            ("held", held),
            ("seen", f"CASE WHEN {dead} THEN {seen} + 1 ELSE {held} END"),
        ):
            parts.append(
                f"{{generation: '{generation}', how: '{how}', counts: {which}, ends: {dead}, age: greatest({until} - ({since}), 0)::BIGINT}}"
            )
    by = f"{keys}, " if keys else ""
    each = f"SELECT {by}size, unnest([{', '.join(parts)}], recursive := true) FROM {source} WHERE born_after >= 0"
    return f"SELECT * FROM ({each}) WHERE counts"


def product_limit(
    source: str, clock: AgeClock, generations: tuple[str, ...] = GENERATIONS, keys: str = ""
) -> str:
    """SQL: the estimate, a row for each key, generation, kind of age (`how`: held or seen) and age at which something ended.

    Columns: the keys, `generation`, `how`, `age`, `bytes_share` and `objects_share` of those older than that, `bytes` and `objects` that died then,
    `watched_bytes` and `watched_objects` of that age.
    """
    by = f"{keys}, generation, how" if keys else "generation, how"
    return _estimate(
        f"""
        WITH ages AS NOT MATERIALIZED ({_ages(source, clock, generations, keys)})
        SELECT {by}, {_BIN[clock]} AS bin, max(age) AS age, count(*) AS ending_objects, sum(size) AS ending_bytes,
               count(*) FILTER (ends) AS objects, coalesce(sum(size) FILTER (ends), 0) AS bytes
        FROM ages GROUP BY {by}, bin""",
        by,
    )


def _estimate(binned: str, by: str) -> str:
    """SQL: the estimate from ages in bins."""
    return f"""
        WITH binned AS ({binned}
        ), watched AS (
            SELECT *, sum(ending_objects) OVER later AS watched_objects, sum(ending_bytes) OVER later AS watched_bytes FROM binned
            WINDOW later AS (PARTITION BY {by} ORDER BY age DESC)
        )
        SELECT {by}, age::BIGINT AS age, objects, bytes::BIGINT AS bytes, watched_objects::BIGINT AS watched_objects,
               watched_bytes::BIGINT AS watched_bytes,
               product(1 - bytes / nullif(watched_bytes, 0)) OVER sooner AS bytes_share,
               product(1 - objects / watched_objects) OVER sooner AS objects_share
        FROM watched WINDOW sooner AS (PARTITION BY {by} ORDER BY age)"""


_COLUMNS: Final = (
    Column("generation", "Generation", Unit.TEXT),
    Column("age", "", Unit.NUMBER, summed=False),
    Column(
        "held_bytes_share",
        "Held, %",
        Unit.SHARE,
        "Of the bytes: what still takes up memory at this age.",
        summed=False,
    ),
    Column(
        "seen_bytes_share",
        "Seen alive, %",
        Unit.SHARE,
        "The same, if each object had died right after a collection last saw it alive.",
        summed=False,
    ),
    Column(
        "held_objects_share", "Held, % of objects", Unit.SHARE, "The same of objects.", summed=False
    ),
    Column(
        "seen_objects_share",
        "Seen alive, % of objects",
        Unit.SHARE,
        "The same of objects.",
        summed=False,
    ),
    Column(
        "watched_objects",
        "Watched",
        Unit.NUMBER,
        "Objects of this age or older that the estimate is made of.",
        summed=False,
    ),
)

_THINNED: Final = """
    QUALIFY age = 0 OR row_number() OVER (
        PARTITION BY generation, floor({points} * ln(age + 1) / ln(2 + oldest)) ORDER BY age DESC) = 1"""
"""Thin out close points: of the ages in one step of a logarithmic axis the greatest is kept."""


def survival(
    store: LifeStore,
    clock: AgeClock = AgeClock.BYTES,
    only: ObjectFilter = EVERYTHING,
    *,
    points: int = 0,
) -> QueryResult:
    """The share still there after each age, of bytes and of objects, by generation.

    Rows: generation by generation, by age from 0; columns: `generation`, `age`, `held_bytes_share`, `seen_bytes_share`,
    `held_objects_share`, `seen_objects_share`, `watched_objects`.

    Args:
        store: The lives.
        clock: How age is counted.
        only: Which objects.
        points: Approximate number of rows per generation, with ages evenly over its octaves; 0:
            each age at which a life ended.

    Raises:
        GCspyError: There is no such type or site.
    """
    thinned = _THINNED.format(points=int(points)) if points else ""
    binned = age_bins(
        store, collections=clock is AgeClock.COLLECTIONS, selection=selected(store, only)
    )
    if binned is None:
        limit = product_limit(chosen(store, only), clock)
    else:
        limit = _estimate(f"SELECT * FROM {store.add_table(**binned)}", "generation, how")
    # Both kinds of age are in one row: each share is valid from its own last age on.
    question = f"""
        WITH estimate AS ({limit}), started AS (
            SELECT generation, how, age, bytes_share, objects_share, watched_objects FROM estimate
            UNION ALL SELECT DISTINCT generation, how, 0, 1, 1, NULL FROM estimate
        ), placed AS (
            SELECT generation, age,
                   min(bytes_share) FILTER (how = 'held') AS held_bytes_share, min(objects_share) FILTER (how = 'held') AS held_objects_share,
                   min(bytes_share) FILTER (how = 'seen') AS seen_bytes_share, min(objects_share) FILTER (how = 'seen') AS seen_objects_share,
                   max(watched_objects) FILTER (how = 'held') AS watched
            FROM started GROUP BY generation, age
        ), filled AS (
            SELECT generation, age, max(age) OVER (PARTITION BY generation) AS oldest,
                   last_value(held_bytes_share IGNORE NULLS) OVER so_far AS held_bytes_share,
                   last_value(held_objects_share IGNORE NULLS) OVER so_far AS held_objects_share,
                   last_value(seen_bytes_share IGNORE NULLS) OVER so_far AS seen_bytes_share,
                   last_value(seen_objects_share IGNORE NULLS) OVER so_far AS seen_objects_share,
                   first_value(watched IGNORE NULLS) OVER onwards AS watched_objects
            FROM placed
            WINDOW so_far AS (PARTITION BY generation ORDER BY age ROWS UNBOUNDED PRECEDING),
                   onwards AS (PARTITION BY generation ORDER BY age ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
        )
        SELECT * EXCLUDE oldest REPLACE (
            coalesce(watched_objects, 0) AS watched_objects,
            -- two estimates may cross where few are left
            least(held_bytes_share, seen_bytes_share) AS seen_bytes_share, least(held_objects_share, seen_objects_share) AS seen_objects_share
        ) FROM filled {thinned}"""
    heading, unit = (
        ("After bytes", Unit.BYTES) if clock is AgeClock.BYTES else ("After GCs", Unit.NUMBER)
    )
    columns = tuple(
        one._replace(heading=heading, unit=unit) if one.name == "age" else one for one in _COLUMNS
    )
    title = "Share still there" + (f", {only.words()}" if only.words() else "")
    order = f"list_position({list(GENERATIONS)}, generation), age"
    return store.find(title, columns, question, order=order)
