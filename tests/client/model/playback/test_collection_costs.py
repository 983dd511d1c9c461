"""The costs of collections, from rows of events."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from gcspy_protocol.playback import TIMELINE
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gcspy_client.model.playback.collection_costs import (
    UNKNOWN_COST,
    CollectionCosts,
    CollectionKinds,
    before_collection,
)

NAMES = ("Clock", "GC start", "GC end")
CLOCK, START, END = range(3)
Row = tuple[int, int, int, int, int]
"""Time, kind, occurrence, gathering, held before it."""


def rows_of(rows: list[Row]) -> NDArray[np.void]:
    table = np.zeros(len(rows), dtype=TIMELINE)
    for place, row in enumerate(rows):
        for name, value in zip(
            ("time_nanos", "event", "occurrence", "gather_nanos", "held_nanos"), row, strict=True
        ):
            table[name][place] = value
    return table


def costs_of(
    rows: list[Row], names: tuple[str, ...] = NAMES, *, gather_waits: bool = True
) -> CollectionCosts:
    made = CollectionCosts(gather_waits=gather_waits)
    made.follow(np.arange(1, len(rows) + 1, dtype=np.uint64), rows_of(rows), names)
    return made


def told(costs: CollectionCosts) -> list[tuple[int, int]]:
    return list(zip(costs.numbers.tolist(), costs.nanos.tolist(), strict=True))


@pytest.mark.parametrize(
    ("names", "pairs", "lone"),
    [
        (("Clock", "GC start", "GC end"), ((1, 2),), ()),
        (("Clock", "Collections"), (), (1,)),
        (("Semispace GC Start", "Semispace GC End"), ((0, 1),), ()),
        (
            (
                "Program starts",
                "Minor collection starts",
                "Minor: copy ends",
                "Minor collection ends",
                "Major collection starts",
                "Major collection ends",
                "Program ends",
            ),
            ((1, 3), (4, 5)),
            (),
        ),
        (("GC end",), (), (0,)),
        (("Clock", "Full GCs soon"), (), ()),
    ],
)
def test_kinds_of_collections_are_known_by_their_names(
    names: tuple[str, ...], pairs: tuple[tuple[int, int], ...], lone: tuple[int, ...]
) -> None:
    assert CollectionKinds.of(names) == CollectionKinds(pairs, lone)


def test_a_collection_takes_from_its_start_to_its_end() -> None:
    rows = [(0, CLOCK, 1, 0, 0), (100, START, 1, 0, 0), (150, END, 1, 0, 0)]
    assert told(costs_of(rows)) == [(3, 50)]


def test_gathering_at_the_start_and_holds_are_not_the_collectors() -> None:
    rows = [(100, START, 1, 30, 7), (170, CLOCK, 1, 0, 5), (200, END, 1, 40, 10)]
    assert told(costs_of(rows)) == [(3, 100 - 30 - 5 - 10)]
    assert told(costs_of(rows, gather_waits=False)) == [(3, 100 - 5 - 10)]


def test_an_end_without_its_start_has_no_cost() -> None:
    rows = [
        (0, END, 1, 0, 0),  # the session began within the collection
        (10, START, 1, 0, 0),
        (15, END, 2, 0, 0),
        (20, START, 2, 0, 0),
        (24, END, 3, 0, 0),
        (30, START, 3, 0, 0),  # its end was left out, and the start of the next
        (99, END, 5, 0, 0),
    ]
    assert told(costs_of(rows)) == [(1, UNKNOWN_COST), (3, 5), (5, 4), (7, UNKNOWN_COST)]


def test_two_ends_do_not_share_a_start() -> None:
    rows = [(0, START, 1, 0, 0), (5, END, 1, 0, 0), (9, END, 2, 0, 0)]
    assert told(costs_of(rows)) == [(2, 5), (3, UNKNOWN_COST)]


def followed_in_pieces(
    kinds: list[int], cuts: list[int]
) -> tuple[CollectionCosts, CollectionCosts]:
    """Follow events of these kinds with stops, and at once."""
    seen = [0, 0, 0]
    rows: list[Row] = []
    for place, kind in enumerate(kinds):
        seen[kind] += 1
        rows.append((place * 10, kind, seen[kind], place % 3, place % 2))
    numbers, table = np.arange(1, len(rows) + 1, dtype=np.uint64), rows_of(rows)
    pieces = CollectionCosts()
    for end in [*sorted(cuts), len(rows)]:
        pieces.follow(numbers[:end], table[:end], NAMES)
    return pieces, costs_of(rows)


CUTS = st.lists(st.integers(0, 40), max_size=4)


@given(kinds=st.lists(st.sampled_from((CLOCK, START, END)), max_size=40), cuts=CUTS)
def test_following_piece_by_piece_finds_the_same_collections(
    kinds: list[int], cuts: list[int]
) -> None:
    pieces, at_once = followed_in_pieces(kinds, cuts)
    assert pieces.numbers.tolist() == at_once.numbers.tolist()
    assert len(at_once.numbers) == kinds.count(END)
    assert all(cost >= UNKNOWN_COST for _, cost in told(pieces))


@given(clocks=st.lists(st.integers(0, 3), max_size=20), cuts=CUTS)
def test_following_piece_by_piece_finds_the_same_costs(clocks: list[int], cuts: list[int]) -> None:
    """Each start has its end: otherwise what is known of a collection may depend on later ones."""
    kinds: list[int] = []
    for place, count in enumerate(clocks):
        kinds += [CLOCK] * count + [END if place % 2 else START]
    pieces, at_once = followed_in_pieces(kinds, cuts)
    assert told(pieces) == told(at_once)
    assert all(cost >= 0 for _, cost in told(at_once))


def test_of_two_shifts_that_are_as_frequent_the_first_counts() -> None:
    rows = [
        (0, START, 1, 0, 0),
        (5, END, 1, 0, 0),
        (9, START, 2, 0, 0),  # its end was left out
        (20, START, 3, 0, 0),
        (30, END, 2, 0, 0),
    ]
    assert told(costs_of(rows)) == [(2, 5), (5, UNKNOWN_COST)]


def test_another_timeline_begins_anew() -> None:
    costs = costs_of([(0, START, 1, 0, 0), (5, END, 1, 0, 0)])
    other = rows_of([(1000, START, 1, 0, 0), (1009, END, 1, 0, 0)])
    costs.follow(np.array([1, 2], dtype=np.uint64), other, NAMES)
    assert told(costs) == [(2, 9)]


def test_without_pairs_a_stream_of_the_total_time_tells_the_cost() -> None:
    names = ("Clock", "Collections")
    rows = [(place * 10, place % 2, place // 2 + 1, 0, 0) for place in range(6)]
    costs = costs_of(rows, names)
    assert told(costs) == [(2, UNKNOWN_COST), (4, UNKNOWN_COST), (6, UNKNOWN_COST)]
    costs.learn(1, np.array([100, 103, 103, 110, -2, 120], dtype=np.int64))
    assert told(costs) == [(2, 3000), (4, 7000), (6, UNKNOWN_COST)]


@given(
    costs=st.lists(st.one_of(st.integers(0, 99), st.just(UNKNOWN_COST)), max_size=20),
    limits=st.lists(st.integers(1, 45), min_size=2, max_size=8),
)
def test_columns_have_count_total_and_greatest_cost(costs: list[int], limits: list[int]) -> None:
    rows: list[Row] = []
    for place, cost in enumerate(costs):
        start = 1000 * place
        # An occurrence that does not fit is a collection of unknown cost.
        nth = place + 1 if cost >= 0 else 500 + place
        rows += [(start, START, place + 1, 0, 0), (start + max(cost, 0), END, nth, 0, 0)]
    made = costs_of(rows)
    if any(cost >= 0 for cost in costs) and told(made) != [
        (2 * place + 2, cost) for place, cost in enumerate(costs)
    ]:
        assert sum(cost < 0 for cost in costs) >= sum(cost >= 0 for cost in costs)
        return  # what fits is the exception here, and not the rule
    limits.sort()
    pooled = made.pooled(np.array(limits, dtype=np.int64))
    for column, (low, high) in enumerate(pairwise(limits)):
        under = [cost for number, cost in told(made) if low <= number < high]
        known = [cost for cost in under if cost >= 0]
        assert pooled.counts[column] == len(under)
        assert pooled.most_nanos[column] == max(known, default=UNKNOWN_COST)
        assert pooled.total_nanos[column] == sum(known)
        assert pooled.unknown[column] == len(under) - len(known)
        assert pooled.kinds[column] == (END if under else -1)


@given(
    st.lists(st.sampled_from(["Clock", "GC start", "GC end", "Collections"]), max_size=14),
    st.integers(0, 15),
)
def test_before_a_collection_is_the_last_moment_that_shows_the_heap_before_it(
    kinds: list[str], number: int
) -> None:
    names = ("Clock", "GC start", "GC end", "Collections")
    rows = rows_of([(place, names.index(kind), 0, 0, 0) for place, kind in enumerate(kinds)])
    moments = [place for place, kind in enumerate(kinds, 1) if kind == "GC start"]
    moments += [place - 1 for place, kind in enumerate(kinds, 1) if kind == "Collections"]
    earlier = [one for one in moments if 1 <= one < number]
    numbers = np.arange(1, len(kinds) + 1, dtype=np.uint64)
    assert before_collection(numbers, rows, names, number) == max(earlier, default=None)
