"""`AllocationSites`: the places in a program that allocated its objects; `site_rows` and `growth_rows` list them for groups of objects.

A driver has a stack for each object, as far as it is known, and names for the stacks. Several
stacks can end at the same site.

Knows objects by number; does not know runtimes, types and holders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from gcspy_objects.graph.dominators import DominatorTree
from gcspy_objects.graph.references import NO_NODE
from numpy.typing import NDArray

from gcspy_server.api import Cell, ColumnKind, DetailColumn, DetailTable

__all__ = [
    "ALL_SAMPLED",
    "ALL_TRACED",
    "NOT_KNOWN",
    "AllocationSites",
    "SampledAllocation",
    "SampledSites",
    "SiteName",
    "growth_rows",
    "members_of",
    "no_sites",
    "sampled_table",
    "site_rows",
    "sites_in_words",
    "site_table",
    "totals_by_site",
]

ALL_TRACED: Final = "all traced memory"
"""The group of all blocks, whatever is in them."""

ALL_SAMPLED: Final = "all samples"
"""The group of all samples, whatever they are of."""

NOT_KNOWN: Final = "not known"
"""Takes the place of a site."""

_SITES_OF_GROUP: Final = 3
_LEAST_OF_GROUP: Final = 0.05
"""Share of a group's bytes from which on a site has a row, or that its sites are not known; the largest site always has one."""

_LEAST_GROUP: Final = 0.02
"""Share of the largest group's bytes from which on a group has rows."""

_COLUMNS: Final = (
    DetailColumn(
        name="What", kind=ColumnKind.TEXT, about="A type of objects, what a holder holds, or all"
    ),
    DetailColumn(
        name="Allocated at",
        kind=ColumnKind.TEXT,
        about="File, line and function that allocated the objects",
    ),
    DetailColumn(
        name="Called from",
        kind=ColumnKind.TEXT,
        about="The nearest caller in the program, if the site is in a library",
    ),
    DetailColumn(name="Objects", about="How many were allocated there; of all memory, blocks"),
    DetailColumn(name="Of", about="How many there are"),
    DetailColumn(
        name="Bytes",
        kind=ColumnKind.BYTES,
        about="Those of the objects, with their tables, items and data",
    ),
)


_SAMPLED_COLUMNS: Final = (
    *_COLUMNS[:3],
    DetailColumn(name="Samples", about="Sampled objects that were allocated there and are alive"),
    DetailColumn(name="Of", about="Sampled objects of the type that are alive"),
    DetailColumn(
        name="Bytes, estimated",
        kind=ColumnKind.BYTES,
        about="Of all objects that were allocated there and are alive, as the samples show it",
    ),
)


class SiteName(NamedTuple):
    """The name of a site.

    Attributes:
        place: File, line and function.
        caller: The same of the nearest caller in the program, if the site is in a library; else empty.
    """

    place: str
    caller: str = ""


class SampledAllocation(NamedTuple):
    """Live objects of one type and one site, of which some were sampled.

    Attributes:
        type_name: Their type.
        site: Where they were allocated.
        samples: How many were sampled.
        size: Estimated bytes of all of them.
    """

    type_name: str
    site: SiteName
    samples: int
    size: int


@dataclass(frozen=True, eq=False)
class SampledSites:
    """Allocation sites known from sampled allocations that cannot be matched with objects.

    Attributes:
        note: How it is known, or why it is not.
        sites: By type and site; none: nothing is known.
    """

    note: str
    sites: Sequence[SampledAllocation] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class AllocationSites:
    """The known allocation sites of a sample.

    Attributes:
        note: How it is known, or why it is not.
        stack: (n,) the stack that allocated each object; -1: not known. Empty: nothing is known.
        site: (b,) the site of each stack, from 0 on.
        blocks: (b,) blocks in memory that each stack allocated, with those that contain no object.
        size: (b,) their bytes.
        keys: (s,) a name of each site that is the same in all samples.
        name: Returns the name of a stack's site.
    """

    note: str
    stack: NDArray[np.int32]
    site: NDArray[np.int64]
    blocks: NDArray[np.int64]
    size: NDArray[np.int64]
    keys: Sequence[str]
    name: Callable[[int], SiteName]

    @property
    def known(self) -> bool:
        """Whether any site is known."""
        return bool(len(self.site))

    @cached_property
    def usual_stack(self) -> NDArray[np.int64]:
        """(s,) the stack of each site that has the most bytes."""
        usual = np.zeros(len(self.keys), dtype=np.int64)
        order = np.argsort(self.size, kind="stable")
        usual[self.site[order]] = order  # ascending: the largest is written last
        return usual


def no_sites(note: str) -> AllocationSites:
    """Return that no site is known.

    Args:
        note: Why not.
    """
    nothing = np.zeros(0, dtype=np.int64)
    return AllocationSites(
        note=note,
        stack=nothing.astype(np.int32),
        site=nothing,
        blocks=nothing,
        size=nothing,
        keys=(),
        name=lambda _: SiteName(NOT_KNOWN),
    )


def site_table(rows: Sequence[tuple[Cell, ...]], note: str) -> DetailTable:
    """Return the table of some rows.

    Args:
        rows: See `site_rows`.
        note: How they are known, or why there are none.
    """
    return DetailTable(columns=_COLUMNS, rows=tuple(rows), note=note)


def site_rows(
    sites: AllocationSites,
    groups: Iterable[tuple[str, NDArray[np.integer]]],
    own: NDArray[np.int64],
) -> list[tuple[Cell, ...]]:
    """List for each group of objects the sites that allocated most of them.

    Args:
        sites: The known sites.
        groups: Name and numbers of the objects of each group.
        own: (n,) bytes of each object.

    Returns:
        Name of the group, site, caller, objects of the site, objects of the group, bytes of the former.
    """
    rows: list[tuple[Cell, ...]] = []
    if not sites.known:
        return rows
    found = [_Group(what, chosen, own[chosen]) for what, chosen in groups if len(chosen)]
    largest = max((int(group.size.sum()) for group in found), default=0)
    for group in found:
        if group.size.sum() >= _LEAST_GROUP * largest:
            rows.extend(_rows_of_group(sites, group))
    return rows


def sites_in_words(
    sites: AllocationSites, chosen: NDArray[np.integer], own: NDArray[np.int64]
) -> str:
    """Name the sites that allocated most of some objects, in one line; empty: no site is known.

    Args:
        sites: The known sites.
        chosen: Numbers of the objects.
        own: (n,) bytes of each object.
    """
    rows = [row for row in site_rows(sites, [("", chosen)], own) if row[1] != NOT_KNOWN]
    places = (
        f"{place}{f', called from {caller}' if caller else ''} ({count:,} of {of:,} objects)"
        for _, place, caller, count, of, _ in rows
    )
    return "allocated at " + " and ".join(places) if rows else ""


class _Group(NamedTuple):
    what: str
    chosen: NDArray[np.integer]
    size: NDArray[np.int64]


def _rows_of_group(sites: AllocationSites, group: _Group) -> Iterator[tuple[Cell, ...]]:
    what, chosen, size = group
    stack = sites.stack[chosen]
    known = stack >= 0
    found, site = np.unique(sites.site[stack[known]], return_inverse=True)
    count = np.bincount(site, minlength=len(found))
    total = np.bincount(site, weights=size[known], minlength=len(found)).astype(np.int64)
    least = _LEAST_OF_GROUP * int(size.sum())
    for place, each in enumerate(np.argsort(-total, kind="stable")[:_SITES_OF_GROUP].tolist()):
        if place == 0 or total[each] >= least:
            usual = int(np.bincount(stack[known][site == each]).argmax())
            yield (what, *sites.name(usual), int(count[each]), len(chosen), int(total[each]))
    unknown = int(size[~known].sum())
    if unknown >= least and not known.all():
        yield (what, NOT_KNOWN, "", int(np.count_nonzero(~known)), len(chosen), unknown)


def sampled_table(sampled: SampledSites, types: Iterable[str]) -> DetailTable:
    """List the sites of some types, and of all samples.

    Args:
        sampled: The known sites.
        types: Names of the types, those of the first rows first.
    """
    rows: list[tuple[Cell, ...]] = []
    if sampled.sites:
        by_type: dict[str, list[SampledAllocation]] = {}
        for each in sampled.sites:
            by_type.setdefault(each.type_name, []).append(each)
        for name in types:
            rows.extend(_sampled_rows(name, by_type.get(name, ()), _SITES_OF_GROUP))
        together: dict[SiteName, list[SampledAllocation]] = {}
        for each in sampled.sites:
            together.setdefault(each.site, []).append(each)
        everything = [
            SampledAllocation("", site, sum(e.samples for e in some), sum(e.size for e in some))
            for site, some in together.items()
        ]
        rows.extend(_sampled_rows(ALL_SAMPLED, everything, 2 * _SITES_OF_GROUP))
    return DetailTable(columns=_SAMPLED_COLUMNS, rows=tuple(rows), note=sampled.note)


def _sampled_rows(
    what: str, some: Sequence[SampledAllocation], most: int
) -> Iterator[tuple[Cell, ...]]:
    samples, size = sum(each.samples for each in some), sum(each.size for each in some)
    largest = sorted(some, key=lambda each: -each.size)[:most]
    for place, each in enumerate(largest):
        if place == 0 or each.size >= _LEAST_OF_GROUP * size:
            yield (what, *each.site, each.samples, samples, each.size)


def totals_by_site(sites: AllocationSites) -> dict[str, tuple[int, int]]:
    """Return blocks and bytes of each site, by its key."""
    count = np.bincount(sites.site, weights=sites.blocks, minlength=len(sites.keys))
    size = np.bincount(sites.site, weights=sites.size, minlength=len(sites.keys))
    totals = zip(count.astype(np.int64).tolist(), size.astype(np.int64).tolist(), strict=True)
    return dict(zip(sites.keys, totals, strict=True))


def growth_rows(
    before: Mapping[str, tuple[int, int]], sites: AllocationSites, most: int
) -> list[tuple[Cell, ...]]:
    """List the sites whose blocks grew most, or have most bytes if there is no earlier sample.

    Args:
        before: `totals_by_site` of the earlier sample; empty: there is none.
        sites: The later sample.
        most: Maximum rows.

    Returns:
        Rows as of `site_rows`.
    """
    now = totals_by_site(sites)
    grew = [
        (size - before.get(key, (0, 0))[1], count - before.get(key, (0, 0))[0], at)
        for at, (key, (count, size)) in enumerate(now.items())
    ]
    blocks = sum(count for count, _ in now.values()) - sum(count for count, _ in before.values())
    grew.sort(key=lambda each: -each[0])
    return [
        (ALL_TRACED, *sites.name(int(sites.usual_stack[at])), count, blocks, size)
        for size, count, at in grew[:most]
        if size > 0 and size >= _LEAST_OF_GROUP * grew[0][0]
    ]


def members_of(tree: DominatorTree, holders: Sequence[int]) -> NDArray[np.int32]:
    """Return (n,) the row of the holder that dominates each object; -1: none does.

    Args:
        tree: Dominators.
        holders: The holders, none of which dominates another.
    """
    own = np.arange(len(tree.dominator), dtype=np.int32)
    above = np.where(tree.dominator == NO_NODE, own, tree.dominator)
    above[list(holders)] = list(holders)
    while not np.array_equal(further := above[above], above):
        above = further
    row = np.full(len(own), -1, dtype=np.int32)
    row[list(holders)] = np.arange(len(holders), dtype=np.int32)
    return row[above]
