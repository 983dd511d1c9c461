"""`MemoryLook`: a driver's sample of all memory of its target; `first_report` and `later_report` make the report of one sample, or of two.

Two samples are compared object by object, by address and type: an object at an address that had no object of this type is new. If
objects move, only names and numbers are compared. Of holders, the retained bytes are compared; a holder that has replaced another one of the same name is compared with that one.

Knows graphs, sizes and names; does not know runtimes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from gcspy_objects.graph.dominators import DominatorTree
from gcspy_objects.graph.references import NO_NODE
from numpy.typing import NDArray

from gcspy_drivers.kit.allocation_sites import (
    AllocationSites,
    SampledSites,
    growth_rows,
    members_of,
    no_sites,
    sampled_table,
    site_rows,
    site_table,
    totals_by_site,
)
from gcspy_drivers.kit.heap_answers import (
    HOLDER,
    HOLDER_TYPE,
    RETAINED,
    KnownHeap,
    Namer,
    uppermost,
)
from gcspy_server.api import (
    Cell,
    ColumnKind,
    DetailColumn,
    DetailTable,
    MemoryQuestion,
    MemoryReport,
)

__all__ = [
    "KnownMemory",
    "MemoryLook",
    "MemoryPart",
    "RememberedLook",
    "TypeBytes",
    "bytes_by_type",
    "first_report",
    "later_report",
    "remember",
    "reports_of_looks",
]

_COMES_TOGETHER: Final = 0.8
"""The share of an object's retained bytes, or of their growth, that one object below it must have to be named instead."""

_REMEMBERED: Final = 200
"""Maximum holders whose names are kept from one sample to the next."""

_REMEMBERED_BELOW: Final = 1000
"""Maximum objects below them, of objects that move, whose bytes are kept by name."""

_MOST_LEVELS: Final = 30
"""How many of these may dominate each other; a linked list has a million."""

_LEAST_BELOW: Final = 16 << 10
"""Bytes that such an object retains."""

_MOST_GROUPS: Final = 5
"""Types, and holders, whose allocation sites are listed."""

_LEAST_GROWN: Final = 1024
"""Bytes; a holder that grew by less is not named."""

_WHAT = DetailColumn(name="What", kind=ColumnKind.TEXT, about="A type of objects, or other memory")
_OBJECTS = DetailColumn(name="Objects", about="How many; empty for memory without objects")
_BYTES = DetailColumn(
    name="Bytes",
    kind=ColumnKind.BYTES,
    about="Bytes in memory, with tables, items and data that the objects keep",
)
_GREW = DetailColumn(
    name="Grew", kind=ColumnKind.BYTES, about="By how many bytes, since the first look"
)
_CAME = DetailColumn(name="Came", about="Objects that are new since the first look")
_WENT = DetailColumn(name="Went", about="Objects of the first look that are no more")


class TypeBytes(NamedTuple):
    """Objects of one type.

    Attributes:
        objects: How many.
        size: Their resident bytes, including their memory elsewhere.
    """

    objects: int
    size: int


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Memory that does not belong to objects.

    Attributes:
        name: Its purpose, for people.
        size: Resident bytes.
        unsure: Whether its owner is unknown.
    """

    name: str
    size: int
    unsure: bool = False


class KnownMemory(NamedTuple):
    """The use of the resident memory; the types' bytes and the parts add up to it.

    Attributes:
        resident: Bytes of the resident set.
        types: Objects by the name of their type.
        parts: Memory that does not belong to objects.
    """

    resident: int
    types: Mapping[str, TypeBytes]
    parts: Sequence[MemoryPart]


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryLook:
    """One sample.

    Attributes:
        nanos: Its time, on a monotonic clock.
        memory: The use of the memory.
        heap: Objects and references.
        address: (n,) address of each object.
        kind: (n,) a number for the type of each, the same in all samples.
        kind_names: The name of each such type.
        tree: Dominators.
        namer: Names.
        note: How far it can be believed.
        moves: Whether objects move between two looks: then these are compared by names and numbers alone.
        garbage_name: Name, as a holder, of all objects that no root leads to; empty: they are not listed.
        sites: Where its objects were allocated.
    """

    nanos: int
    memory: KnownMemory
    heap: KnownHeap
    address: NDArray[np.int64]
    kind: NDArray[np.int64]
    kind_names: Mapping[int, str]
    tree: DominatorTree
    namer: Namer
    note: str
    moves: bool = False
    garbage_name: str = ""
    sites: AllocationSites | SampledSites = field(default_factory=lambda: no_sites(""))

    @cached_property
    def retained(self) -> NDArray[np.int64]:
        """(n,) bytes that each object keeps alive."""
        return self.tree.retained(self.heap.own)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(n,) how many objects each keeps alive, itself included."""
        return self.tree.retained(np.ones(len(self.address), dtype=np.int64))

    @cached_property
    def uppermost(self) -> NDArray[np.int32]:
        """(k,) what no other object keeps alive; see `heap_answers.uppermost`."""
        return uppermost(self.heap, self.tree)

    @cached_property
    def garbage(self) -> TypeBytes:
        """The objects that no root leads to; none if they are not listed."""
        if not self.garbage_name:
            return TypeBytes(0, 0)
        garbage = ~self.tree.reached
        return TypeBytes(int(garbage.sum()), int(self.heap.own[garbage].sum()))


@dataclass(frozen=True, eq=False)
class RememberedLook:
    """The part of a sample that is kept until the next; 24 bytes per object that does not move.

    Attributes:
        nanos: Its time.
        memory: The use of the memory.
        address: (n,) ascending, address of each object; empty if objects move.
        kind: (n,) its type.
        kind_names: The name of each type.
        retained: (n,) bytes that it kept alive.
        by_name: Address and retained bytes of the largest holders, by their names.
        least_named: Bytes; holders that retained more are in `by_name`.
        below: Of objects that move, the largest that another one dominates: retained bytes by name and type; None: several have
            these.
        least_below: Bytes; what retained more is in `below`, or is many levels down.
        garbage: Bytes of objects that no root led to.
        by_site: Blocks and bytes of each allocation site.
    """

    nanos: int
    memory: KnownMemory
    address: NDArray[np.int64]
    kind: NDArray[np.int64]
    kind_names: Mapping[int, str]
    retained: NDArray[np.int64]
    by_name: Mapping[str, tuple[int, int]]
    least_named: int
    below: Mapping[tuple[str, str], int | None]
    least_below: int
    garbage: int
    by_site: Mapping[str, tuple[int, int]]


def reports_of_looks(
    take: Callable[[], MemoryLook],
    question: MemoryQuestion,
    progress: Callable[[str, int, int], None],
    check: Callable[[], None],
) -> Iterator[MemoryReport]:
    """Take a sample, and a second one later if the question asks for growth.

    Args:
        take: Takes a sample.
        question: The question to answer.
        progress: Called with the name of the current step, and the done and total amounts of it.
        check: Raises an error if the target has ended.

    Yields:
        The report of the first sample; then the report of the growth until the second one.
    """
    look = take()
    yield first_report(look, question.most)
    if not question.over_secs:
        return
    before = remember(look)
    del look  # a copy of all memory is in it
    due = before.nanos + int(question.over_secs * 1e9)
    while (left := due - time.monotonic_ns()) > 0:
        passed = question.over_secs - left / 1e9
        progress("waiting for the second look", int(passed), int(question.over_secs))
        time.sleep(min(1.0, left / 1e9))
        check()
    yield later_report(before, take(), question.most)


def bytes_by_type(
    kind: NDArray[np.integer], held: NDArray[np.int64], name_of: Callable[[int], str]
) -> dict[str, TypeBytes]:
    """Add up objects by the names of their types; two types of one name are one row.

    Args:
        kind: (n,) number of each object's type.
        held: (n,) resident bytes of each object.
        name_of: Returns the name of a type.
    """
    count = np.bincount(kind)
    size = np.bincount(kind, weights=held).astype(np.int64)
    found: dict[str, TypeBytes] = {}
    for row in np.flatnonzero(count).tolist():
        name = name_of(row)
        before = found.get(name, TypeBytes(0, 0))
        found[name] = TypeBytes(before.objects + int(count[row]), before.size + int(size[row]))
    return found


def remember(look: MemoryLook) -> RememberedLook:
    """Return the part of a sample that the comparison with a later one needs."""
    retained = look.retained
    largest = _largest(look.uppermost, retained, _REMEMBERED)
    order = np.argsort(look.address[: 0 if look.moves else None], kind="stable")
    return RememberedLook(
        look.nanos,
        look.memory,
        look.address[order],
        look.kind[order],
        look.kind_names,
        retained[order],
        {
            # Of several of one name the largest is written last.
            look.namer.way_to(top): (int(look.address[top]), int(retained[top]))
            for top in reversed(largest)
        },
        int(retained[largest[-1]]) if len(largest) == _REMEMBERED else 0,
        *_sizes_below(look),
        look.garbage.size,
        {} if isinstance(look.sites, SampledSites) else totals_by_site(look.sites),
    )


def _sizes_below(look: MemoryLook) -> tuple[dict[tuple[str, str], int | None], int]:
    """Return what large dominated objects retain by name and type, if objects move, and the bytes from which on they are listed."""
    found: dict[tuple[str, str], int | None] = {}
    if not look.moves:
        return found, 0
    retained, order, dominator = look.retained, look.tree.order, look.tree.dominator
    inner = order[(dominator[order] != NO_NODE) & (retained[order] >= _LEAST_BELOW)]
    # Each is after its dominator, also where both retain the same.
    inner = inner[np.argsort(-retained[inner], kind="stable")]
    level: dict[int, int] = {}
    for number in inner.tolist():
        level[number] = level.get(int(dominator[number]), 0) + 1
        if level[number] > _MOST_LEVELS:
            continue
        if len(found) == _REMEMBERED_BELOW:
            return found, int(retained[number])
        name = _name_and_type(look, number)
        found[name] = None if name in found else int(retained[number])
    return found, _LEAST_BELOW


def _name_and_type(look: MemoryLook, number: int) -> tuple[str, str]:
    """Identify an object that moves. A part of another object may share its name, such as the table of a map, but not its type."""
    return look.namer.way_to(number), look.namer.type_name(number)


def first_report(look: MemoryLook, most: int) -> MemoryReport:
    """Report one sample.

    Args:
        look: The sample.
        most: Maximum rows of each table.
    """
    rows: list[tuple[Cell, ...]] = [
        (name, each.objects, each.size) for name, each in look.memory.types.items()
    ]
    rows += [(part.name, None, part.size) for part in look.memory.parts]
    rows.sort(key=lambda row: -_number(row[2]))
    retained = look.retained
    heaviest = _heaviest(look.tree, retained)
    held: list[tuple[Cell, ...]] = []
    chosen: list[int] = []
    for top in _largest(look.uppermost, retained, most):
        where = _where_it_comes_together(top, retained, heaviest)
        held.append((*_holder(look, where), int(look.counts[where]), int(retained[where])))
        chosen.append(where)
    if look.garbage.size >= _LEAST_GROWN:
        held.append((look.garbage_name, "", *look.garbage))
        held.sort(key=lambda row: -_number(row[3]))
    return MemoryReport(
        secs=0.0,
        resident=look.memory.resident,
        grew=None,
        memory=_table((_WHAT, _OBJECTS, _BYTES), rows, most),
        holders=_table((HOLDER, HOLDER_TYPE, _OBJECTS, RETAINED), held, most),
        sites=_allocated(look, rows, chosen, np.ones(len(look.address), dtype=np.bool_), {}),
        unsure=_unsure(look.memory),
        note=look.note,
    )


def later_report(before: RememberedLook, look: MemoryLook, most: int) -> MemoryReport:
    """Report the changes of a sample since an earlier one; the largest growth comes first.

    Args:
        before: The earlier sample.
        look: The later one.
        most: Maximum rows of each table.
    """
    stayed, place = _stayed(before, look)
    moved: list[dict[str, int]] = []
    if not look.moves:
        gone = np.ones(len(before.address), dtype=np.bool_)
        gone[place] = False
        moved = [
            _by_name(look.kind[~stayed], look.kind_names),
            _by_name(before.kind[gone], before.kind_names),
        ]
    rows = _grown_memory(before.memory, look.memory, moved)
    held = _grown_holders(before, look, stayed, place, most)
    grown = [row for row in rows if _number(row[3]) > 0]
    holders = [where for _, where in held if where != NO_NODE]
    return MemoryReport(
        secs=(look.nanos - before.nanos) / 1e9,
        resident=look.memory.resident,
        grew=look.memory.resident - before.memory.resident,
        unsure_grew=_unsure(look.memory) - _unsure(before.memory),
        memory=_table(
            (_WHAT, _OBJECTS, _BYTES, _GREW, *(_CAME, _WENT)[: len(moved)]),
            rows,
            most,
        ),
        holders=_table(
            (HOLDER, HOLDER_TYPE, _OBJECTS, RETAINED, _GREW),
            [row for row, _ in held],
            most,
        ),
        sites=_allocated(look, grown, holders, ~stayed, before.by_site),
        unsure=_unsure(look.memory),
        note=look.note,
    )


def _stayed(before: RememberedLook, look: MemoryLook) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return (n,) which objects were there before, and (k,) the earlier rows of these."""
    if not len(before.address):
        return np.zeros(len(look.address), dtype=np.bool_), np.zeros(0, dtype=np.intp)
    place = np.searchsorted(before.address, look.address)
    place[place == len(before.address)] = 0
    stayed = (before.address[place] == look.address) & (before.kind[place] == look.kind)
    return stayed, place[stayed]


def _grown_memory(
    before: KnownMemory, now: KnownMemory, moved: Sequence[Mapping[str, int]]
) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    none = TypeBytes(0, 0)
    for name in dict.fromkeys([*now.types, *before.types]):
        old, new = before.types.get(name, none), now.types.get(name, none)
        objects = (each.get(name, 0) for each in moved)
        rows.append((name, new.objects, new.size, new.size - old.size, *objects))
    parts = {part.name: part.size for part in before.parts}
    present = {part.name: part.size for part in now.parts}
    for name in dict.fromkeys([*present, *parts]):
        size = present.get(name, 0)
        rows.append((name, None, size, size - parts.get(name, 0), *(None for _ in moved)))
    rows.sort(key=lambda row: (-_number(row[3]), -_number(row[2])))
    return rows


def _grown_holders(
    before: RememberedLook,
    look: MemoryLook,
    stayed: NDArray[np.bool_],
    place: NDArray[np.intp],
    most: int,
) -> list[tuple[tuple[Cell, ...], int]]:
    """Return the rows of holders, and the object that each is of; `NO_NODE`: of garbage."""
    rows: list[tuple[tuple[Cell, ...], int]] = []
    found = (
        _grown_by_name(before, look, 2 * most)
        if look.moves
        else _grown_by_address(before, look, stayed, place, 2 * most)
    )
    for where, by in found:
        number, size = int(look.counts[where]), int(look.retained[where])
        rows.append(((*_holder(look, where), number, size, by), where))
    more = look.garbage.size - before.garbage
    if more >= _LEAST_GROWN:
        rows.append(((look.garbage_name, "", *look.garbage, more), NO_NODE))
    rows.sort(key=lambda row: -_number(row[0][4]))
    return rows


def _grown_by_address(
    before: RememberedLook,
    look: MemoryLook,
    stayed: NDArray[np.bool_],
    place: NDArray[np.intp],
    most: int,
) -> Iterator[tuple[int, int]]:
    """Find what grew most among objects that do not move; yields the object where most of the growth is, and by how much it grew."""
    retained = look.retained
    grew = retained.copy()
    grew[stayed] -= before.retained[place]
    heaviest = _heaviest(look.tree, grew)
    for top in _largest(look.uppermost, grew, most):
        where = _where_it_comes_together(top, grew, heaviest)
        address, retained_before = before.by_name.get(look.namer.way_to(top), (0, 0))
        by = int(grew[where])
        if address != look.address[top]:
            # An object that had this name before was another one, which this one may have replaced; an object that was at this address
            # before was unrelated.
            by -= max(0, retained_before - int(retained[top] - grew[top]))
        if by >= _LEAST_GROWN:
            yield where, by


def _grown_by_name(
    before: RememberedLook, look: MemoryLook, most: int
) -> Iterator[tuple[int, int]]:
    """Do the same among objects that move, by their names."""
    retained, none = look.retained, (0, before.least_named)
    grew = {
        top: int(retained[top]) - before.by_name.get(look.namer.way_to(top), none)[1]
        for top in _largest(look.uppermost, retained, _REMEMBERED)
    }
    tops = sorted((top for top in grew if grew[top] >= _LEAST_GROWN), key=lambda top: -grew[top])
    large = look.tree.order[retained[look.tree.order] >= _LEAST_GROWN]
    for top in tops[:most]:
        yield _where_it_grew(before, look, top, grew[top], large)


def _where_it_grew(
    before: RememberedLook, look: MemoryLook, top: int, whole: int, large: NDArray[np.int32]
) -> tuple[int, int]:
    """Return the lowest object below another one that has most of its growth, and by how much it grew.

    An object that was too small to be kept by name counts as if it had been as large as possible.

    Args:
        before: The first sample.
        look: The second one.
        top: The other object.
        whole: By how much that one grew.
        large: Shape (n,), objects of the second sample that retain so much that their growth counts.
    """
    retained, dominator = look.retained, look.tree.dominator
    least = max(_LEAST_GROWN, int(_COMES_TOGETHER * whole))
    # Only what retains so much can have grown by so much.
    large = large[retained[large] >= least]
    here, by = top, whole
    for _ in range(_MOST_LEVELS):
        below = large[dominator[large] == here]
        below = below[np.argsort(-retained[below], kind="stable")][:_REMEMBERED]
        most, child = 0, NO_NODE
        for each in below.tolist():
            size = before.below.get(_name_and_type(look, each), min(before.least_below, least))
            if size is not None and retained[each] - size > most:
                most, child = int(retained[each]) - size, each
        if most < least:
            break
        here, by = child, most
    return here, by


def _allocated(
    look: MemoryLook,
    memory: Sequence[tuple[Cell, ...]],
    holders: Sequence[int],
    chosen: NDArray[np.bool_],
    before: Mapping[str, tuple[int, int]],
) -> DetailTable:
    """Return where the objects of some types, what some holders hold, and all memory was allocated.

    Args:
        look: The sample.
        memory: Rows that begin with the name of a type.
        holders: Objects.
        chosen: (n,) which objects count.
        before: Blocks and bytes of each site in the earlier sample; empty: there is none.
    """
    sites = look.sites
    if isinstance(sites, SampledSites):
        types = [str(name) for name, objects, *_ in memory if objects is not None]
        return sampled_table(sites, types[:_MOST_GROUPS])
    if not sites.known:
        return site_table((), sites.note)
    groups: list[tuple[str, NDArray[np.integer]]] = []
    for name, objects, *_ in memory:
        if objects is not None and len(groups) < _MOST_GROUPS:
            kinds = [kind for kind, each in look.kind_names.items() if each == name]
            groups.append((str(name), np.flatnonzero(chosen & np.isin(look.kind, kinds))))
    holders = list(dict.fromkeys(holders))[:_MOST_GROUPS]
    member = members_of(look.tree, holders)
    for row, where in enumerate(holders):
        held = np.flatnonzero(chosen & (member == row))
        groups.append((f"held by {look.namer.holder_name(where)}", held))
    rows = site_rows(sites, groups, look.heap.own)
    return site_table([*rows, *growth_rows(before, sites, _MOST_GROUPS)], sites.note)


def _largest(numbers: NDArray[np.int32], amount: NDArray[np.int64], most: int) -> list[int]:
    """Return the objects with the largest amounts, the largest first."""
    chosen = numbers[amount[numbers] > 0]
    found: list[int] = chosen[np.argsort(-amount[chosen], kind="stable")[:most]].tolist()
    return found


def _heaviest(tree: DominatorTree, amount: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return (n,) for each object the largest of those that it dominates immediately."""
    inner = tree.order[(tree.dominator[tree.order] != NO_NODE) & (amount[tree.order] > 0)]
    inner = inner[np.argsort(amount[inner], kind="stable")]
    heaviest = np.full(len(tree.dominator), NO_NODE, dtype=np.int32)
    heaviest[tree.dominator[inner]] = inner  # ascending: the largest is written last
    return heaviest


def _where_it_comes_together(
    top: int, amount: NDArray[np.int64], heaviest: NDArray[np.int32]
) -> int:
    """Return the lowest object below another one that still has most of its amount."""
    here, whole = top, int(amount[top])
    while (child := int(heaviest[here])) != NO_NODE and amount[child] >= _COMES_TOGETHER * whole:
        here = child
    return here


def _holder(look: MemoryLook, number: int) -> tuple[Cell, ...]:
    return look.namer.holder_name(number), look.namer.type_name(number)


def _by_name(kinds: NDArray[np.int64], names: Mapping[int, str]) -> dict[str, int]:
    """Count objects by the name of their type."""
    found: dict[str, int] = {}
    for kind, count in zip(*np.unique(kinds, return_counts=True), strict=True):
        name = names[int(kind)]
        found[name] = found.get(name, 0) + int(count)
    return found


def _unsure(memory: KnownMemory) -> int:
    return sum(part.size for part in memory.parts if part.unsure)


def _number(cell: Cell) -> int:
    return cell if isinstance(cell, int) else 0


def _table(
    columns: tuple[DetailColumn, ...], rows: Sequence[tuple[Cell, ...]], most: int
) -> DetailTable:
    """Return the first rows, and sums of the others."""
    left = rows[most:]
    sums: tuple[Cell, ...] = ()
    if left:
        sums = tuple(
            "" if column.kind is ColumnKind.TEXT else sum(_number(row[at]) for row in left)
            for at, column in enumerate(columns)
        )
    return DetailTable(columns=columns, rows=tuple(rows[:most]), rest=len(left), rest_cells=sums)
