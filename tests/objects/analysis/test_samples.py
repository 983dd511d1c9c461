"""Results of the analyses of the sample traces, compared with the reports of the traced programs and their VM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from gcspy_objects.analysis.findings import QueryResult
from gcspy_objects.analysis.gather import gather
from gcspy_objects.analysis.kinds import GroupBy, ObjectFilter, collections, in_collection, totals
from gcspy_objects.analysis.lifetimes import distribution
from gcspy_objects.analysis.store import LifeStore
from gcspy_objects.analysis.survival import AgeClock, survival
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.hotspot_log import LoggedCollection, LoggedSpace, read_log
from gcspy_objects.trace import open_trace

from tests.objects.samples import NAMES, path_of, text_of


@dataclass(frozen=True)
class Sample:
    """A trace's lives, what its program said, and what its VM logged."""

    store: LifeStore
    internal: dict[str, str]
    """The VM's name of a type to ours."""
    truth: list[list[str]]
    log: dict[int, LoggedCollection]

    def told(self, word: str) -> list[list[str]]:
        """Return what the program said after a word, for each time."""
        return [line[1:] for line in self.truth if line[0] == word]


def used(spaces: list[LoggedSpace], *, old: bool) -> int:
    """Return the bytes that the VM says are used in the old space, or in the young ones."""
    return sum(space.top - space.start for space in spaces if (space.name == "object") is old)


@pytest.fixture(scope="module", params=NAMES)
def sample(request: pytest.FixtureRequest) -> Iterator[Sample]:
    with open_trace(path_of(request.param)) as trace, gather(RebuiltHeap(trace)) as store:
        internal = dict(zip(trace.types.internal, trace.types.names, strict=True))
        truth = [line.split() for line in text_of(request.param, "truth.txt") if line[0] != "#"]
        yield Sample(store, internal, truth, read_log(text_of(request.param, "gc.log")))


def numbers(findings: QueryResult, name: str) -> list[int]:
    return [int(str(cell)) for cell in findings.column(name)]


def by_type(findings: QueryResult, *names: str) -> dict[str, tuple[int, ...]]:
    columns = [numbers(findings, name) for name in names]
    return dict(
        zip(map(str, findings.column("type_name")), zip(*columns, strict=True), strict=True)
    )


def test_as_many_objects_of_each_type_were_allocated_as_the_program_said(sample: Sample) -> None:
    found = by_type(totals(sample.store, GroupBy.TYPE), "allocated_objects")
    told = sample.told("allocated")
    assert told
    for name, count, *_ in told:
        assert found[sample.internal[name]] == (int(count),)


def test_as_many_were_allocated_at_a_site_as_the_program_said(sample: Sample) -> None:
    for site, kind, count, *_ in sample.told("allocated_at_site"):
        found = totals(sample.store, GroupBy.SITE, ObjectFilter(type=kind, site=f"{site}(*"))
        assert sum(numbers(found, "allocated_objects")) == int(count)


def test_as_many_were_left_as_the_program_held_at_its_end(sample: Sample) -> None:
    found = by_type(totals(sample.store, GroupBy.TYPE), "left_objects")
    told = (
        sample.told("live")
        + [line[:2] for line in sample.told("live@end")]
        + [line[2:] for line in sample.told("live@end")]
    )
    assert told
    for name, count, *_ in told:
        assert found[sample.internal[name]] == (int(count),)


def test_what_died_and_what_is_left_is_what_was_allocated(sample: Sample) -> None:
    for by in GroupBy:
        found = totals(sample.store, by)
        for unit in ("objects", "bytes"):
            allocated, died, left = (
                numbers(found, f"{what}_{unit}") for what in ("allocated", "died", "left")
            )
            assert [one + other for one, other in zip(died, left, strict=True)] == allocated
        ages = distribution(sample.store)
        assert sum(numbers(ages, "died_bytes")) == sum(numbers(found, "died_bytes"))
        assert sum(numbers(ages, "left_bytes")) == sum(numbers(found, "left_bytes"))
        events = collections(sample.store)
        assert sum(numbers(events, "died_bytes")) == sum(numbers(found, "died_bytes"))
        assert sum(numbers(events, "promoted_bytes")) == sum(numbers(found, "promoted_bytes"))


@pytest.mark.parametrize("clock", AgeClock)
def test_what_is_held_of_a_type_at_the_greatest_age_is_what_did_not_die(
    sample: Sample, clock: AgeClock
) -> None:
    kinds = totals(sample.store, GroupBy.TYPE, top=3)
    for kind, died in zip(kinds.column("type_name"), numbers(kinds, "died_objects"), strict=True):
        found = survival(sample.store, clock, ObjectFilter(type=str(kind)))
        rows = [row for row in found.rows if row[0] == "all"]
        shares = [float(str(row[4])) for row in rows]
        assert shares[0] == 1
        assert all(later <= sooner + 1e-12 for sooner, later in pairwise(shares))
        assert (shares[-1] < 1) is (died > 0)


def test_what_survived_and_was_promoted_fills_the_spaces_as_the_vm_logged(sample: Sample) -> None:
    # Tops count what fills gaps too: the rest of a buffer that a collection copied into stays until the next one.
    found = collections(sample.store)
    survived, promoted = numbers(found, "survived_bytes"), numbers(found, "promoted_bytes")
    assert len(sample.log) == len(found.rows)
    for number, logged in sample.log.items():
        old_before, old_after = used(logged.before, old=True), used(logged.after, old=True)
        young_after = used(logged.after, old=False)
        ((young_gaps, new_old_gaps),) = sample.store.ask(
            "SELECT coalesce(sum(size) FILTER (NOT born_old), 0)::BIGINT, coalesce(sum(size) FILTER (born_old AND born_after = $number - 1), 0)::BIGINT"
            " FROM everything WHERE filler AND born_after < $number AND (died_in = 0 OR died_in > $number)",
            number=number,
        )
        if sample.store.collections.full[number - 1]:
            assert survived[number - 1] == old_after + young_after
        else:
            assert survived[number - 1] - promoted[number - 1] + young_gaps == young_after
            assert promoted[number - 1] + new_old_gaps == old_after - old_before


def test_what_survived_a_full_collection_is_the_class_histogram_that_the_vm_logged(
    sample: Sample,
) -> None:
    full = [
        number
        for number in range(1, len(sample.store.collections) + 1)
        if sample.store.collections.full[number - 1]
    ]
    assert [number for number, logged in sample.log.items() if logged.histogram] == full != []
    for number in full:
        histogram = {
            sample.internal[name]: row for name, row in sample.log[number].histogram.items()
        }
        found = by_type(
            in_collection(sample.store, GroupBy.TYPE, number), "survived_objects", "survived_bytes"
        )
        assert {name: row for name, row in found.items() if row[0]} == histogram
