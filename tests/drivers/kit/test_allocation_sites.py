"""Sites of groups of objects, computed by hand."""

from __future__ import annotations

import numpy as np
from gcspy_drivers.kit.allocation_sites import (
    ALL_TRACED,
    NOT_KNOWN,
    AllocationSites,
    SiteName,
    growth_rows,
    members_of,
    no_sites,
    site_rows,
    totals_by_site,
)

from tests.drivers.kit.small_heap import SmallHeap


def some_sites(stack: list[int]) -> AllocationSites:
    """Four stacks at three sites; the second and the third end at one."""
    return AllocationSites(
        note="",
        stack=np.array(stack, dtype=np.int32),
        site=np.array([0, 1, 1, 2]),
        blocks=np.array([1, 2, 3, 4]),
        size=np.array([1000, 20, 30, 400]),
        keys=("a:1", "b:2", "c:3"),
        name=lambda number: SiteName(f"stack {number}", f"caller {number}"),
    )


def test_a_group_has_its_largest_sites_first_with_the_stack_that_made_most_objects() -> None:
    sites = some_sites([0, 1, 2, 2, 3])
    own = np.array([100, 50, 40, 30, 10])
    rows = site_rows(sites, [("all", np.arange(5)), ("two", np.array([1, 4]))], own)
    assert rows == [
        ("all", "stack 2", "caller 2", 3, 5, 120),
        ("all", "stack 0", "caller 0", 1, 5, 100),
        ("two", "stack 1", "caller 1", 1, 2, 50),
        ("two", "stack 3", "caller 3", 1, 2, 10),
    ]


def test_small_sites_and_small_groups_have_no_row() -> None:
    sites = some_sites([0, 1, 2, 2, 3])
    own = np.array([10_000, 5, 400, 30, 100])
    rows = site_rows(sites, [("all", np.arange(5)), ("small", np.array([1, 4]))], own)
    assert rows == [("all", "stack 0", "caller 0", 1, 5, 10_000)]


def test_objects_without_a_site_are_counted_where_they_matter() -> None:
    sites = some_sites([-1, -1, 0])
    own = np.array([10, 20, 30])
    everything = np.arange(3)
    assert site_rows(sites, [("all", everything)], own) == [
        ("all", "stack 0", "caller 0", 1, 3, 30),
        ("all", NOT_KNOWN, "", 2, 3, 30),
    ]
    assert site_rows(sites, [("none", everything[:2])], own) == [("none", NOT_KNOWN, "", 2, 2, 30)]
    assert site_rows(sites, [("all", everything)], np.array([0, 1, 999])) == [
        ("all", "stack 0", "caller 0", 1, 3, 999)
    ]
    assert site_rows(sites, [("empty", everything[:0])], own) == []


def test_nothing_is_said_of_sites_that_are_not_known() -> None:
    sites = no_sites("it is off")
    assert (sites.known, sites.note, totals_by_site(sites)) == (False, "it is off", {})
    assert site_rows(sites, [("all", np.arange(2))], np.array([1, 2])) == []
    assert growth_rows({}, sites, 5) == []


def test_all_blocks_are_compared_with_those_of_the_earlier_sample() -> None:
    sites = some_sites([])
    assert totals_by_site(sites) == {"a:1": (1, 1000), "b:2": (5, 50), "c:3": (4, 400)}
    before = {"a:1": (9, 1200), "b:2": (1, 10), "gone:1": (7, 70)}
    assert growth_rows(before, sites, 5) == [
        (ALL_TRACED, "stack 3", "caller 3", 4, 10 - 17, 400),
        (ALL_TRACED, "stack 2", "caller 2", 4, 10 - 17, 40),
    ]
    assert [row[1] for row in growth_rows({}, sites, 2)] == ["stack 0", "stack 3"]


def test_an_object_belongs_to_the_holder_that_dominates_it_at_any_distance() -> None:
    heap = SmallHeap()
    module = heap.namespace()
    one, other = heap.one("list", 1, module), heap.one("list", 1, module)
    chain = [heap.one("node", 1, one)]
    for _ in range(20):
        chain.append(heap.one("node", 1, chain[-1]))
    shared = heap.one("node", 1, one, other)
    member = members_of(heap.tree, [other, one])
    assert member[[module, other, one, shared]].tolist() == [-1, 0, 1, -1]
    assert (member[chain] == 1).all()
    assert (members_of(heap.tree, []) == -1).all()
