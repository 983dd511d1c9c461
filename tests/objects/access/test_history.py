"""Vectors of objects and the questions about them, against loops over every object and interval."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.access.history import AccessHistory, AccessNames
from gcspy_objects.access.questions import (
    Candidates,
    Order,
    Wanted,
    candidates,
    each_collection,
    totals,
)
from gcspy_objects.access.recorder import access_history, accessed_rows
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.records import Access, AccessMeaning, CollectionKind, RecordKind
from gcspy_protocol.errors import GCspyError
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.gctrace.made import MadeTrace, event_columns

NAMES = AccessNames(["(unknown)", "Point", "Move"], ["(unknown)", "main", "loop"])


@dataclass(frozen=True)
class Made:
    """One object as a person would write it down."""

    type: int
    site: int
    size: int
    born: int
    died: int
    accessed: frozenset[int]

    def idle(self, last: int, observed: set[int]) -> int:
        """Count observed intervals without access up to the last one of its life."""
        end = self.died - 1 if self.died else last
        since = max([*self.accessed, max(self.born, 0) - 1]) + 1
        return sum(one in observed for one in range(since, end + 1))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Made], int, set[int]]:
    """Draw objects, the number of collections, and the observed intervals."""
    collections = draw(st.integers(0, 6))
    observed = draw(st.sets(st.integers(0, collections)))
    objects = []
    for _ in range(draw(st.integers(0, 12))):
        born = draw(st.integers(-1, collections))
        died = draw(st.one_of(st.just(0), st.integers(max(born, 0) + 1, collections + 1)))
        died = 0 if died > collections else died
        end = died - 1 if died else collections
        lived = st.integers(max(born, 0), end)
        accessed = frozenset(one for one in draw(st.sets(lived)) if one in observed)
        objects.append(
            Made(
                draw(st.integers(1, 2)), draw(st.integers(0, 2)), draw(st.integers(1, 99)),
                born, died, accessed,
            )
        )  # fmt: skip
    return objects, collections, observed


def history_of(objects: list[Made], collections: int, observed: set[int]) -> AccessHistory:
    """Return the columns of objects, which come in another order."""
    numbers = [7 * row + 3 for row in range(len(objects))]
    shuffled = np.random.default_rng(len(objects)).permutation(len(objects))
    columns = {
        "ident": np.array(numbers, np.int64)[shuffled],
        "address": np.array(numbers, np.int64)[shuffled] * 16,
    } | {
        name: np.array([getattr(one, name) for one in objects], np.int64)[shuffled]
        for name in ("type", "site", "size", "born", "died")
    }
    found = [
        (interval, np.array([number], np.int64))
        for number, one in zip(numbers, objects, strict=True)
        for interval in one.accessed
    ]
    return AccessHistory.of(
        columns, [*found, *found[:2]], collections=collections, observed=observed
    )


@given(worlds())
def test_vectors_are_those_of_the_objects(world: tuple[list[Made], int, set[int]]) -> None:
    objects, collections, observed = world
    history = history_of(*world)
    assert len(history) == len(objects)
    for row, one in enumerate(objects):
        vector = history.vector(row)
        assert (vector.type, vector.site, vector.size) == (one.type, one.site, one.size)
        assert (vector.born, vector.died) == (one.born, one.died)
        assert vector.accessed == tuple(sorted(one.accessed))
        assert history.idle[row] == one.idle(collections, observed)
        assert history.accesses[row] == len(one.accessed)


@given(worlds())
def test_accesses_until_an_interval_are_those_of_loops(
    world: tuple[list[Made], int, set[int]],
) -> None:
    objects, collections, observed = world
    history = history_of(*world)
    idents = np.array([*(7 * row + 3 for row in range(len(objects))), 5], np.int64)
    for interval in range(collections + 1):
        found = history.until(interval, idents)
        assert not found.known[-1]
        for row, one in enumerate(objects):
            if max(one.born, 0) > interval:
                continue
            accessed = {when for when in one.accessed if when <= interval}
            since = max([*accessed, max(one.born, 0) - 1]) + 1
            idle = sum(when in observed for when in range(since, interval + 1))
            assert found.known[row] == any(when in observed for when in range(interval + 1))
            assert (found.accesses[row], found.idle[row]) == (len(accessed), idle)


def is_candidate(kind: Candidates, one: Made, last: int, observed: set[int], number: int) -> bool:
    """Say whether an object is a candidate, from the words of the documentation."""
    end = one.died - 1 if one.died else last
    outlived = end > max(one.born, 0)
    later = [when for when in one.accessed if when > one.born]
    match kind:
        case Candidates.IDLE:
            return not one.died and one.idle(last, observed) >= number
        case Candidates.NEVER:
            seen = any(when in observed for when in range(max(one.born, 0) + 1, end + 1))
            return not later and seen
        case Candidates.ONCE:
            return end > one.born and len(later) == 1
        case Candidates.ARRIVAL:
            return one.born >= 0 and one.died == one.born + 1
        case Candidates.PRETENURE:
            return one.born >= 0 and outlived and end - max(one.born, 0) >= number


@given(worlds(), st.sampled_from(Candidates), st.integers(1, 3), st.sampled_from(("type", "site")))
def test_candidates_are_those_that_loops_find(
    world: tuple[list[Made], int, set[int]], kind: Candidates, number: int, by: str
) -> None:
    objects, collections, observed = world
    groups: dict[tuple[str, ...], list[Made]] = {}
    for one in objects:
        name = NAMES.types[one.type]
        groups.setdefault((name,) if by == "type" else (NAMES.sites[one.site], name), []).append(
            one
        )
    expected = set()
    for key, members in groups.items():
        chosen = [one for one in members if is_candidate(kind, one, collections, observed, number)]
        size = sum(one.size for one in chosen)
        share = size / sum(one.size for one in members)
        if chosen and (kind != Candidates.PRETENURE or share >= 0.8):
            expected.add((*key, len(chosen), size))
    found = candidates(Wanted(history_of(*world), NAMES, by=by), kind, idle_for=number)
    names = len(next(iter(groups), ("",)))
    assert {row[: names + 2] for row in found.rows} == expected
    sizes = [int(cell or 0) for cell in found.column("bytes")]
    assert sizes == sorted(sizes, reverse=True)


@given(worlds())
def test_each_interval_has_what_was_allocated_accessed_and_collected(
    world: tuple[list[Made], int, set[int]],
) -> None:
    objects, collections, observed = world
    found = each_collection(Wanted(history_of(*world), NAMES))
    for interval, row in enumerate(found.rows):
        born = [one.size for one in objects if one.born == interval]
        used = [one.size for one in objects if interval in one.accessed]
        died = [one.size for one in objects if one.died == interval + 1]
        seen = [len(used), sum(used)] if interval in observed else [None, None]
        assert list(row) == [interval, len(born), sum(born), *seen, len(died), sum(died)]
    assert len(found.rows) == collections + 1


@given(worlds(), st.integers(0, 2), st.sampled_from(Order))
def test_totals_count_everything_once(
    world: tuple[list[Made], int, set[int]], top: int, order: Order
) -> None:
    objects = world[0]
    found = totals(Wanted(history_of(*world), NAMES), order=order, top=top)
    for column, expected in (
        ("allocated_objects", len(objects)),
        ("allocated_bytes", sum(one.size for one in objects)),
        ("accesses", sum(len(one.accessed) for one in objects)),
    ):
        place = [one.name for one in found.columns].index(column)
        rest = found.rest_cells[place] if found.rest else 0
        shown = sum(int(cell or 0) for cell in found.column(column))
        assert shown + int(rest or 0) == expected


def test_a_selection_takes_patterns_and_refuses_what_does_not_exist() -> None:
    one = Made(1, 2, 10, 0, 0, frozenset({0}))
    history = history_of([one, Made(2, 1, 20, 0, 0, frozenset())], 1, {0, 1})
    assert [row[0] for row in totals(Wanted(history, NAMES, type="Po*")).rows] == ["Point"]
    assert totals(Wanted(history, NAMES, site="loo")).rows[0][:2] == ("Point", 1)
    with pytest.raises(GCspyError, match="no type called 'Chess'"):
        Wanted(history, NAMES, type="Chess")


def test_a_trace_without_accesses_says_so() -> None:
    history = history_of([Made(1, 0, 8, 0, 0, frozenset())], 2, set())
    assert totals(Wanted(history, NAMES)).notes == (
        "the trace has no records of accesses: nothing is known about them",
    )
    assert candidates(Wanted(history, NAMES), Candidates.IDLE, idle_for=1).rows == []


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 30)), max_size=8),
    st.sets(st.integers(0, 9)),
    st.one_of(st.none(), st.sets(st.integers(0, 9))),
)
def test_an_object_is_accessed_if_any_of_its_granules_was(
    places: list[tuple[int, int]], accessed: set[int], known: set[int] | None
) -> None:
    def packed(which: set[int]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return np.packbits([one in which for one in range(10)], bitorder="little")

    access = Access(
        0, -1, 16, 10, 3, AccessMeaning.ACCESSED, packed(accessed),
        None if known is None else packed(known),
    )  # fmt: skip
    address = np.array([at for at, _ in places], np.int64)
    size = np.array([length for _, length in places], np.int64)
    used, certain = accessed_rows(access, address, size)
    for row, (at, length) in enumerate(places):
        granules = set(range((at - 16) // 8, (at + max(length, 1) - 1 - 16) // 8 + 1))
        assert used[row] == bool(granules & accessed)
        whole = granules <= set(range(10)) and (known is None or granules <= known)
        assert certain[row] == (whole or bool(granules & accessed))


def test_a_trace_of_frees_and_accesses_by_page_gives_vectors(tmp_path: Path) -> None:
    made = MadeTrace(runtime="test", births="all", deaths="told")

    def accessed(interval: int, *pages: int) -> None:
        bits = np.packbits([page in pages for page in range(2)], bitorder="little")
        made.writer.write_access(
            Access(interval, -1, 0x10000, 2, 12, AccessMeaning.WRITTEN_AS_ACCESSED, bits)
        )

    allocate, free = int(RecordKind.ALLOCATE), int(RecordKind.FREE)
    starts, ends = int(RecordKind.COLLECTION_START), int(RecordKind.COLLECTION_END)
    full = int(CollectionKind.FULL_TOLD)
    places = [0x10000, 0x10100, 0x11000]
    made.writer.write(event_columns([allocate] * 3, address=places, size=[64] * 3), thread=1)
    accessed(0, 0, 1)
    made.writer.write(event_columns([starts, ends], length=[1, 1], detail=[full] * 2), thread=1)
    made.writer.write(event_columns([free], address=[0x10100]), thread=1)
    accessed(1, 1)
    made.writer.end()
    with made.opened(tmp_path / "made.gctrace") as trace, RebuiltHeap(trace) as heap:
        history = access_history(heap)
    vectors = [history.vector(row) for row in range(len(history))]
    assert [one.address for one in vectors] == places
    assert [one.died for one in vectors] == [0, 2, 0]
    assert [one.accessed for one in vectors] == [(0,), (0,), (0, 1)]
    assert history.idle.tolist() == [1, 1, 0]
    assert history.granule_bytes == 4096
