"""The results of the analyses, compared with the same computed object by object."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import pytest
from gcspy_objects.analysis.findings import QueryResult
from gcspy_objects.analysis.kinds import (
    GroupBy,
    ObjectFilter,
    collections,
    each_collection,
    growth,
    in_collection,
    totals,
)
from gcspy_objects.analysis.lifetimes import distribution, spans
from gcspy_objects.analysis.store import CollectionTable, LifeStore, Names
from gcspy_objects.analysis.survival import AgeClock, survival
from gcspy_protocol.errors import GCspyError

from tests.objects.analysis.made_up import SITES, TYPES, Life, MadeUp, columns_of, made_up

SEEDS = (1, 2, 3)


@pytest.fixture(scope="module", params=SEEDS)
def program(request: pytest.FixtureRequest) -> MadeUp:
    return made_up(request.param)


@pytest.fixture(scope="module")
def store(program: MadeUp) -> Iterator[LifeStore]:
    with program.store(batch=300) as made:
        yield made


def counted(lives: list[Life]) -> tuple[int, int]:
    return len(lives), sum(life.size for life in lives)


def rows_of(findings: QueryResult, *names: str) -> list[tuple[object, ...]]:
    return list(zip(*(findings.column(name) for name in names), strict=True))


def numbers(findings: QueryResult, name: str) -> list[float]:
    return [float(str(cell)) for cell in findings.column(name)]


def happened(lives: list[Life], number: int) -> tuple[int, ...]:
    parts = (
        [life for life in lives if life.born_after == number - 1],
        [life for life in lives if number in life.looks],
        [life for life in lives if life.promoted_in == number],
        [life for life in lives if life.died_in == number],
    )
    return tuple(value for part in parts for value in counted(part))


EVENTS = tuple(
    f"{what}_{unit}"
    for what in ("allocated", "survived", "promoted", "died")
    for unit in ("objects", "bytes")
)
TOTALS = (*EVENTS, "left_objects", "left_bytes")


def test_the_totals_of_each_type_and_place_are_those_of_its_objects(
    program: MadeUp, store: LifeStore
) -> None:
    def told(lives: list[Life]) -> tuple[int, ...]:
        parts = (
            lives,
            [life for life in lives if life.looks],
            [life for life in lives if life.promoted_in],
            [life for life in lives if life.died_in],
            [life for life in lives if not life.died_in],
        )
        return tuple(value for part in parts for value in counted(part))

    own = program.own()
    expected = {
        TYPES[kind]: told([life for life in own if life.type == kind]) for kind in (1, 2, 3)
    }
    found = totals(store, GroupBy.TYPE)
    assert {row[0]: row[1:] for row in rows_of(found, "type_name", *TOTALS)} == expected
    assert found.column("allocated_objects") == sorted(
        (row[0] for row in expected.values()), reverse=True
    )
    assert sum(numbers(found, "objects_share")) == pytest.approx(1)
    places = {(SITES[life.site], TYPES[life.type]) for life in own}
    by_place = {
        key: told([life for life in own if (SITES[life.site], TYPES[life.type]) == key])
        for key in places
    }
    assert {
        row[:2]: row[2:]
        for row in rows_of(totals(store, GroupBy.SITE), "site_name", "type_name", *TOTALS)
    } == by_place


def test_growth_since_a_collection_is_that_of_the_objects_of_each_type_and_place(
    program: MadeUp, store: LifeStore
) -> None:
    for since in (0, 1, program.last // 2, program.last):
        expected: dict[tuple[str, str], list[int]] = {}
        for life in program.own():
            left = not life.died_in
            before = life.born_after < since and (left or life.died_in > since)
            if left or before:
                row = expected.setdefault((TYPES[life.type], SITES[life.site]), [0] * 4)
                counts = (left, left * life.size, left - before, (left - before) * life.size)
                row[:] = (have + more for have, more in zip(row, counts, strict=True))
        found = growth(store, since)
        names = ("left_objects", "left_bytes", "grew_objects", "grew_bytes")
        rows = rows_of(found, "type_name", "site_name", *names)
        assert {row[:2]: list(row[2:]) for row in rows} == expected
        assert numbers(found, "grew_bytes") == sorted(numbers(found, "grew_bytes"), reverse=True)


def test_the_rest_of_a_table_is_summed_up_where_a_sum_means_something(store: LifeStore) -> None:
    whole, first = totals(store, GroupBy.TYPE), totals(store, GroupBy.TYPE, top=1)
    assert (first.rows, first.rest) == (whole.rows[:1], 2)
    rest = dict(zip((column.name for column in first.columns), first.rest_cells, strict=True))
    assert rest["type_name"] is None
    assert rest["died_bytes"] == sum(numbers(whole, "died_bytes")[1:])
    assert rest["objects_share"] == pytest.approx(sum(numbers(whole, "objects_share")[1:]))


def test_what_is_wanted_by_type_and_site_is_looked_at_and_nothing_else(
    program: MadeUp, store: LifeStore
) -> None:
    nodes = [life for life in program.own() if life.type == 1 and life.site in (1, 3)]
    for only in (
        ObjectFilter(type="Node", site="List.add() @ 3"),
        ObjectFilter(type="N*e", site="add()"),
        ObjectFilter(type="od", site="List*"),
    ):
        (row,) = rows_of(
            totals(store, GroupBy.TYPE, only), "type_name", "allocated_objects", "allocated_bytes"
        )
        assert row == ("Node", *counted(nodes))


def test_brackets_percents_and_underscores_of_a_name_are_no_wildcards(store: LifeStore) -> None:
    assert totals(store, GroupBy.TYPE, ObjectFilter(type="byte[]")).column("type_name") == [
        "byte[]"
    ]
    for text in ("Nod_", "%", "[bB]yte", "x'; DROP TABLE collections; --"):
        with pytest.raises(GCspyError, match="the trace has no type called"):
            totals(store, GroupBy.TYPE, ObjectFilter(type=text))


def test_each_collection_tells_who_was_allocated_survived_was_promoted_and_died(
    program: MadeUp, store: LifeStore
) -> None:
    numbers = range(1, program.last + 1)
    own = program.own()
    assert rows_of(collections(store), "number", *EVENTS) == [
        (number, *happened(own, number)) for number in numbers
    ]
    leaves = [life for life in own if life.type == 3]
    found = collections(store, ObjectFilter(type="Tree$Leaf"))
    assert rows_of(found, *EVENTS) == [happened(leaves, number) for number in numbers]
    after = counted([life for life in own if life.born_after == program.last])
    assert collections(store).notes == (
        f"{after[0]:,} objects of {after[1]:,} bytes were allocated after the last collection.",
    )


def test_each_collection_of_each_type_adds_up_to_all_of_it(
    program: MadeUp, store: LifeStore
) -> None:
    found = each_collection(store, GroupBy.TYPE, top=2)
    most = sorted(
        {1, 2, 3}, key=lambda kind: -len([life for life in program.own() if life.type == kind])
    )[:2]
    expected = [
        (
            TYPES[kind],
            number,
            *happened([life for life in program.own() if life.type == kind], number),
        )
        for kind in most
        for number in range(1, program.last + 1)
    ]
    assert rows_of(found, "type_name", "number", *EVENTS) == expected


def test_one_collection_by_place_is_the_same_as_object_by_object(
    program: MadeUp, store: LifeStore
) -> None:
    for number in range(1, program.last + 1):
        found = rows_of(
            in_collection(store, GroupBy.SITE, number), "site_name", "type_name", *EVENTS
        )
        expected = {
            (site, kind): happened(
                [
                    life
                    for life in program.own()
                    if (SITES[life.site], TYPES[life.type]) == (site, kind)
                ],
                number,
            )
            for site in SITES[1:3]
            for kind in TYPES[1:]
        }
        assert {row[:2]: row[2:] for row in found} == {
            key: row for key, row in expected.items() if row[0] + row[2] + row[6]
        }


def test_a_collection_that_is_not_there_is_named_with_those_that_are(store: LifeStore) -> None:
    with pytest.raises(GCspyError, match="no collection 10: it has 1 to 9"):
        in_collection(store, GroupBy.TYPE, 10)


def estimate(spans_of: list[tuple[int, bool, int]], age: int) -> float:
    """The product-limit estimate by its definition: (age at the end, whether it died, weight) of each."""
    share = 1.0
    for at in sorted({end for end, died, _ in spans_of if died and end <= age}):
        watched = sum(weight for end, _, weight in spans_of if end >= at)
        share *= 1 - sum(weight for end, died, weight in spans_of if died and end == at) / watched
    return share


def test_the_share_still_there_is_the_product_limit_estimate_of_each_generation(
    program: MadeUp, store: LifeStore
) -> None:
    own = program.own()
    ends = {
        "all": [
            (life.died_in - life.born_after, True, life)
            if life.died_in
            else (program.last - life.born_after, False, life)
            for life in own
        ],
        "young": [
            (life.promoted_in - life.born_after, False, life)
            if life.promoted_in
            else ((life.died_in or program.last) - life.born_after, bool(life.died_in), life)
            for life in own
            if not life.born_old
        ],
        "old": [
            (
                (life.died_in or program.last) - (life.promoted_in or life.born_after),
                bool(life.died_in),
                life,
            )
            for life in own
            if life.born_old or life.promoted_in
        ],
    }
    found = survival(store, AgeClock.COLLECTIONS)
    assert {row[0] for row in rows_of(found, "generation")} == set(ends)
    for generation, age, of_bytes, of_objects in rows_of(
        found, "generation", "age", "held_bytes_share", "held_objects_share"
    ):
        lives = ends[str(generation)]
        assert isinstance(age, int)
        assert of_bytes == pytest.approx(
            estimate([(end, died, life.size) for end, died, life in lives], age)
        )
        assert of_objects == pytest.approx(
            estimate([(end, died, 1) for end, died, _ in lives], age)
        )


def test_age_in_bytes_ends_where_the_collection_found_the_object_dead_and_where_one_last_saw_it(
    program: MadeUp, store: LifeStore
) -> None:
    held, seen = [], []
    for life in program.own():
        until = program.at(life.died_in) if life.died_in else program.total_bytes
        last = max(life.birth_bytes, program.at(max([life.born_after, *life.looks])))
        held.append((until - life.birth_bytes, bool(life.died_in), 1))
        seen.append((last + 1 - life.birth_bytes, True, 1) if life.died_in else held[-1])
    for generation, age, most, least in rows_of(
        survival(store), "generation", "age", "held_objects_share", "seen_objects_share"
    ):
        if generation == "all" and isinstance(age, int) and age < 4096:  # above, ages share bins
            assert most == pytest.approx(estimate(held, age))
            assert least == pytest.approx(min(estimate(held, age), estimate(seen, age)))


def test_a_survival_curve_never_rises_and_a_thinned_one_lies_on_it(store: LifeStore) -> None:
    whole, thin = survival(store), survival(store, points=12)
    columns = ("generation", "age", "held_bytes_share", "seen_bytes_share", "watched_objects")
    assert set(rows_of(thin, *columns)) <= set(rows_of(whole, *columns))
    for generation in ("all", "young", "old"):
        points = [row for row in rows_of(whole, *columns) if row[0] == generation]
        assert points[0][1:4] == (0, 1, 1)
        for place in (2, 3):
            shares = np.array([row[place] for row in points], float)
            assert (np.diff(shares) <= 1e-12).all()
        assert len([row for row in rows_of(thin, "generation") if row[0] == generation]) <= 14


def test_ages_are_counted_once_each_and_add_up_to_all_objects(
    program: MadeUp, store: LifeStore
) -> None:
    own = program.own()
    by_collections = distribution(store, AgeClock.COLLECTIONS)
    for age, died, left in rows_of(by_collections, "age", "died_objects", "left_objects"):
        assert died == len(
            [life for life in own if life.died_in and life.died_in - 1 - life.born_after == age]
        )
        assert left == len(
            [life for life in own if not life.died_in and program.last - life.born_after == age]
        )
    for found in (by_collections, distribution(store)):
        assert sum(numbers(found, "died_objects")) + sum(numbers(found, "left_objects")) == len(own)
        assert (
            sum(numbers(found, "died_bytes")) + sum(numbers(found, "left_bytes")) == counted(own)[1]
        )
    octaves = distribution(store)
    for low, high, died in zip(
        numbers(octaves, "age"),
        numbers(octaves, "below"),
        octaves.column("died_objects"),
        strict=True,
    ):
        ages = [program.at(life.died_in) - life.birth_bytes for life in own if life.died_in]
        assert died == len([age for age in ages if low <= age < high])


def test_the_age_by_which_a_half_is_gone_is_where_the_curve_passes_a_half(store: LifeStore) -> None:
    for kind, half, tenth in rows_of(
        spans(store, GroupBy.TYPE), "type_name", "half_age", "tenth_age"
    ):
        curve = [
            row[1:]
            for row in rows_of(
                survival(store, only=ObjectFilter(type=str(kind))),
                "generation",
                "age",
                "held_objects_share",
            )
            if row[0] == "all"
        ]
        for share, age in ((0.5, half), (0.1, tenth)):
            assert age == next((at for at, left in curve if float(str(left)) <= share), None)


def test_objects_that_were_there_at_the_beginning_are_told_apart_and_have_no_age() -> None:
    before = Life(1, 1, 16, 0, -1, died_in=2, looks=[1])
    new = Life(1, 1, 24, 0, 0, died_in=1)
    with MadeUp([before, new], [False, False], [24, 24], 24).store() as store:
        found = totals(store, GroupBy.TYPE)
        assert rows_of(found, "allocated_objects", "survived_objects", "died_objects") == [
            (1, 1, 2)
        ]
        assert any("1 objects were there when the trace began" in note for note in found.notes)
        assert rows_of(collections(store), *EVENTS) == [
            (1, 24, 1, 16, 0, 0, 1, 24),
            (0, 0, 0, 0, 0, 0, 1, 16),
        ]
        assert distribution(store).column("died_objects") == [1]


def test_a_trace_without_objects_or_collections_is_answered_with_empty_tables() -> None:
    with MadeUp([], [], [], 0).store() as store:
        for found in (
            totals(store, GroupBy.TYPE),
            collections(store),
            distribution(store),
            survival(store),
            spans(store, GroupBy.SITE),
            each_collection(store, GroupBy.SITE),
        ):
            assert not found.rows
        with pytest.raises(GCspyError, match="it has none"):
            in_collection(store, GroupBy.TYPE, 1)
    with MadeUp([Life(1, 1, 16, 0, 0)], [], [], 16).store() as store:
        assert rows_of(
            survival(store, AgeClock.COLLECTIONS), "generation", "age", "held_bytes_share"
        ) == [("all", 0, 1), ("young", 0, 1)]


def test_findings_and_lives_are_written_as_parquet_with_their_names(
    program: MadeUp, store: LifeStore, tmp_path: Path
) -> None:
    found = totals(store, GroupBy.TYPE)
    store.write(found, tmp_path / "types.parquet")
    with duckdb.connect() as engine:
        assert engine.execute(f"SELECT * FROM '{tmp_path}/types.parquet'").fetchall() == list(
            found.rows
        )
        store.write_lives(tmp_path / "lives.parquet")
        lives = engine.execute(
            f"SELECT count(*), sum(size), count(DISTINCT (type_name, site_name)) FROM '{tmp_path}/lives.parquet'"
        ).fetchone()
        assert lives == (*counted(program.own()), len(totals(store, GroupBy.SITE).rows))
    with pytest.raises(OSError, match="nowhere"):
        store.write(found, tmp_path / "nowhere" / "types.parquet")


def test_a_store_leaves_no_file_behind(tmp_path: Path) -> None:
    with LifeStore(tmp_path) as store:
        store.add(columns_of([Life(1, 1, 16, 0, 0)]))
        store.flush()
        assert list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.iterdir())


def test_more_lives_than_the_engine_has_memory_for_are_counted_all_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    count, batches = 300_000, 5
    with LifeStore(tmp_path, memory_bytes=64 << 20) as store:
        for number in range(batches):
            lives = columns_of([])
            lives = {name: np.zeros(count, column.dtype) for name, column in lives.items()}
            lives["size"] += 16
            lives["freed_bytes"] -= 1
            lives["birth_bytes"] = np.arange(number * count, (number + 1) * count) * 16
            lives["site"] = rng.integers(1, 100_000, count).astype(np.int32)
            store.add(lives)
        sites = [f"Site.number{site}()" for site in range(100_000)]
        store.finish(
            CollectionTable(np.empty(0, bool), (), (), np.empty(0, np.int64), batches * count * 16),
            Names(TYPES, sites, sites),
        )
        # Lives alone are half as much again as the memory that the engine may use.
        assert count * batches * 50 > 64 << 20
        assert sum(numbers(distribution(store), "left_objects")) == count * batches
        assert survival(store, points=10).rows[-1][2] == 1


def test_too_little_memory_is_one_of_our_errors_with_a_remedy() -> None:
    with made_up(1).store() as store:
        store.ask("SET memory_limit = '1 MiB'")
        with pytest.raises(GCspyError, match="--type or --site, or set TMPDIR"):
            survival(store)


def test_pandas_is_looked_for_once_a_table_and_not_once_a_text(
    program: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("pandas") is not None:
        pytest.skip("it is installed")
    looked: list[str] = []

    class Finder(MetaPathFinder):
        def find_spec(self, name: str, _path: object, _target: object = None) -> None:
            looked.append(name)

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with program.store(batch=300) as made:
        assert totals(made, GroupBy.TYPE).rows
    assert "pandas" not in sys.modules
    assert looked.count("pandas") <= 8  # once for each table and batch; the tables have 260 texts
