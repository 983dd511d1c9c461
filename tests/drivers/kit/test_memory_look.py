"""The result of one reading of all memory, and of two: reports of small heaps, computed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from gcspy_drivers.kit.memory_look import (
    KnownMemory,
    MemoryLook,
    MemoryPart,
    TypeBytes,
    first_report,
    later_report,
    remember,
)

from tests.drivers.kit.small_heap import Numbered, SmallHeap

KINDS = {5: "module", 6: "dict", 7: "Order", 8: "list", 9: "dict"}
"""Two kinds have one name, as two types of a program may."""


def look(
    heap: SmallHeap,
    secs: float = 0.0,
    types: Mapping[str, TypeBytes] | None = None,
    parts: Sequence[MemoryPart] = (),
    resident: int = 0,
    **ways: int,
) -> MemoryLook:
    """Read a heap; its types are counted only where a test says so."""
    number_of = {name: number for number, name in reversed(KINDS.items())}
    return MemoryLook(
        nanos=round(secs * 1e9),
        memory=KnownMemory(resident, types or {}, parts),
        heap=heap,
        address=heap.address,
        kind=np.array([number_of[name] for name in heap.types], dtype=np.int64),
        kind_names=KINDS,
        tree=heap.tree,
        namer=Numbered(heap, **ways),
        note="as far as it goes",
    )


def test_what_memory_is_for_is_listed_by_its_bytes() -> None:
    types = {"list": TypeBytes(3, 500), "dict": TypeBytes(2, 900)}
    parts = [
        MemoryPart("free", 700),
        MemoryPart("libraries", 100, unsure=True),
        MemoryPart("files", 50, unsure=True),
        MemoryPart("stacks", 0),
    ]
    one = look(SmallHeap(), types=types, parts=parts, resident=2250)
    report = first_report(one, 3)
    assert report.memory.rows == (("dict", 2, 900), ("free", None, 700), ("list", 3, 500))
    assert (report.memory.rest, report.memory.rest_cells) == (3, ("", 0, 150))
    assert (report.resident, report.grew, report.secs, report.unsure) == (2250, None, 0.0, 150)
    assert report.note == "as far as it goes"
    whole = first_report(one, 6).memory
    assert (len(whole.rows), whole.rest, whole.rest_cells) == (6, 0, ())


def test_holders_are_named_where_most_of_what_they_retain_comes_together() -> None:
    heap = SmallHeap()
    module = heap.namespace()  # 0
    cache = heap.one("dict", 100, module)  # 1
    entries = heap.one("list", 200, cache)  # 2
    for _ in range(10):
        heap.one("Order", 1000, entries)  # 3 to 12
    heap.one("Order", 5000, module)  # 13
    heap.one("Order", 50)  # 14, a root
    report = first_report(look(heap), 3)
    assert report.holders.rows == (
        ("holder 2", "list", 11, 10_200),
        ("holder 13", "Order", 1, 5000),
        ("holder 14", "Order", 1, 50),
    )
    assert [row[0] for row in first_report(look(heap), 1).holders.rows] == ["holder 2"]


def test_four_fifths_below_one_object_are_enough_and_less_is_not() -> None:
    for below, named in ((80, 2), (79, 1)):
        heap = SmallHeap()
        module = heap.namespace()
        upper = heap.one("dict", 100 - below, module)
        heap.one("list", below, upper)
        ((name, _, _, retained),) = first_report(look(heap), 5).holders.rows
        assert (name, retained) == (f"holder {named}", below if named == 2 else 100)


def test_one_byte_is_held_and_none_is_not() -> None:
    heap = SmallHeap()
    module = heap.namespace()
    heap.one("list", 0, module)
    heap.one("list", 1, module)
    heap.one("Order", 1, heap.one("dict", 0, module))
    assert first_report(look(heap), 5).holders.rows == (
        ("holder 2", "list", 1, 1),
        ("holder 4", "Order", 1, 1),
    )


def test_of_several_below_the_heaviest_is_followed() -> None:
    heap = SmallHeap()
    upper = heap.one("dict", 1, heap.namespace())
    for size in (3, 90, 2, 4):
        heap.one("list", size, upper)
    ((name, _, objects, retained),) = first_report(look(heap), 5).holders.rows
    assert (name, objects, retained) == ("holder 3", 1, 90)


def grown() -> tuple[SmallHeap, SmallHeap]:
    """A cache of four orders, one of which goes, one becomes a list, and three come."""
    before, after = SmallHeap(), SmallHeap()
    for heap in (before, after):
        heap.one("dict", 100, heap.namespace())
    for at in (0x2000, 0x2010, 0x2020, 0x2030):
        before.one("Order", 1000, 1, at=at)
    for type_name, at in (
        ("Order", 0x2000), ("list", 0x2010), ("Order", 0x2030),
        ("Order", 0x1800), ("Order", 0x2008), ("Order", 0x3000),
    ):  # fmt: skip
        after.one(type_name, 1000, 1, at=at)
    return before, after


def test_what_came_and_what_went_is_counted_object_by_object() -> None:
    before, after = grown()
    types = {"Order": TypeBytes(4, 4000), "dict": TypeBytes(1, 100), "str": TypeBytes(9, 90)}
    later = {"list": TypeBytes(1, 1000), "dict": TypeBytes(1, 100), "Order": TypeBytes(5, 5000)}
    first = look(
        before, 1.0, types, [MemoryPart("free", 600), MemoryPart("gone", 300)], 5090, cache=1
    )
    second = look(
        after, 3.5, later, [MemoryPart("free", 900), MemoryPart("new", 400, unsure=True)], 7400
    )
    report = later_report(remember(first), second, 20)
    assert report.memory.rows == (
        ("Order", 5, 5000, 1000, 3, 2),
        ("list", 1, 1000, 1000, 1, 0),
        ("new", None, 400, 400, None, None),
        ("free", None, 900, 300, None, None),
        ("dict", 1, 100, 0, 0, 0),
        ("str", 0, 0, -90, 0, 0),
        ("gone", None, 0, -300, None, None),
    )
    assert (report.secs, report.resident, report.grew, report.unsure) == (2.5, 7400, 2310, 400)
    assert report.note == "as far as it goes"
    short = later_report(remember(first), second, 2).memory
    assert (short.rest, short.rest_cells) == (5, ("", 1, 1400, 310, 0, 0))


def test_what_came_behind_the_only_object_of_the_first_look_is_new() -> None:
    heap = SmallHeap()
    heap.namespace()
    before = remember(look(heap))
    heap.one("Order", 10, 0)
    types = {"Order": TypeBytes(1, 10), "module": TypeBytes(1, 7)}
    report = later_report(before, look(heap, types=types), 20)
    assert report.memory.rows == (("Order", 1, 10, 10, 1, 0), ("module", 1, 7, 7, 0, 0))


def test_types_of_one_name_are_counted_together() -> None:
    heap = SmallHeap()
    module = heap.namespace()
    for size in (10, 20):
        heap.one("dict", size, module)
    one = look(heap, types={"dict": TypeBytes(2, 30)})
    one.kind[2] = 9
    nothing = look(SmallHeap())
    report = later_report(remember(nothing), one, 20)
    assert [row[4:] for row in report.memory.rows if row[0] == "dict"] == [(2, 0)]
    report = later_report(remember(one), nothing, 20)
    assert [row[4:] for row in report.memory.rows if row[0] == "dict"] == [(0, 2)]


def test_a_holder_is_told_with_what_it_retains_and_by_how_much_that_grew() -> None:
    before, after = grown()
    report = later_report(remember(look(before)), look(after), 20)
    assert report.holders.rows == (("holder 1", "dict", 7, 6100, 2000),)


def test_what_grew_by_less_than_a_kibibyte_is_not_named() -> None:
    for grew, named in ((1024, 1), (1023, 0)):
        before, after = SmallHeap(), SmallHeap()
        for heap, size in ((before, 500), (after, 500 + grew)):
            heap.one("dict", size, heap.namespace())
        rows = later_report(remember(look(before)), look(after), 20).holders.rows
        assert len(rows) == named
        assert all(row[4] == grew for row in rows)


def test_what_took_the_place_of_another_of_its_name_is_compared_with_that() -> None:
    before, after = SmallHeap(), SmallHeap()
    before.one("list", 3000, before.namespace(), at=0x4000)
    after.one("list", 5000, after.namespace(), at=0x5000)
    report = later_report(remember(look(before, table=1)), look(after, table=1), 20)
    assert [row[3:] for row in report.holders.rows] == [(5000, 2000)]
    report = later_report(remember(look(before, table=1)), look(after, other=1), 20)
    assert [row[3:] for row in report.holders.rows] == [(5000, 5000)]
    # Both at one address and of one name: what it is compared with is itself, once.
    after.places[1] = 0x4000
    report = later_report(remember(look(before, table=1)), look(after, table=1), 20)
    assert [row[3:] for row in report.holders.rows] == [(5000, 2000)]


def test_what_grew_most_when_that_is_taken_off_comes_first() -> None:
    before, after = SmallHeap(), SmallHeap()
    module = before.namespace()
    before.one("list", 3000, module, at=0x4000)
    before.one("dict", 1000, module, at=0x5000)
    module = after.namespace()
    after.one("list", 5000, module, at=0x6000)
    after.one("dict", 3500, module, at=0x5000)
    report = later_report(remember(look(before, table=1)), look(after, table=1), 20)
    assert [row[1:] for row in report.holders.rows] == [
        ("dict", 1, 3500, 2500),
        ("list", 1, 5000, 2000),
    ]


def test_one_that_grew_at_its_address_and_took_a_name_over_is_not_made_less_of_twice() -> None:
    """It retained 3000 already when another, which is gone, had its name and retained 2000."""
    before, after = SmallHeap(), SmallHeap()
    module = before.namespace()
    before.one("list", 3000, module, at=0x4000)
    before.one("list", 2000, module, at=0x5000)
    after.one("list", 9000, after.namespace(), at=0x4000)
    report = later_report(remember(look(before, other=1, table=2)), look(after, table=1), 20)
    assert [row[3:] for row in report.holders.rows] == [(9000, 6000)]


def test_more_that_grew_than_there_are_rows_for_is_added_up() -> None:
    before, after = SmallHeap(), SmallHeap()
    for heap, factor in ((before, 1), (after, 2)):
        module = heap.namespace()
        for size in (4000, 2000, 3000, 5000, 6000):
            heap.one("list", factor * size, module)
    table = later_report(remember(look(before)), look(after), 2).holders
    assert [row[4] for row in table.rows] == [6000, 5000]
    assert (table.rest, table.rest_cells) == (2, ("", "", 2, 14_000, 7000)), "twice as many rows"


def moving(sizes: Mapping[str, int]) -> MemoryLook:
    """A heap whose objects move: an application that has a few large lists, of these bytes."""
    heap = SmallHeap()
    application = heap.one("dict", 100, heap.namespace())
    ways = {"App.ONLY": application}
    for name, size in sizes.items():
        ways[name] = heap.one("list", 10, application)
        heap.one("Order", size, ways[name])
        ways[f"{name}[…]"] = len(heap.sizes) - 1
    # Addresses and numbers of the same objects differ from one heap to the next.
    heap.places = [each + 16 * sum(sizes.values()) for each in heap.places]
    return replace(look(heap), namer=Numbered(heap, **ways), moves=True)


def test_what_grew_below_something_larger_is_named_where_objects_move() -> None:
    before = moving({"App.ONLY.pages": 9_000_000, "App.ONLY.log": 300_000})
    after = moving({"App.ONLY.log": 1_300_000, "App.ONLY.pages": 9_000_000})
    ((name, kind, _, retained, grew),) = later_report(remember(before), after, 5).holders.rows
    assert (name, kind, retained, grew) == ("holder 3", "Order", 1_300_000, 1_000_000)


def test_growth_that_is_spread_is_told_of_what_holds_its_parts() -> None:
    sizes = {"App.ONLY.pages": 900_000, "App.ONLY.log": 300_000, "App.ONLY.users": 50_000}
    after = {name: size + 100_000 for name, size in sizes.items()}
    ((name, *_, grew),) = later_report(remember(moving(sizes)), moving(after), 5).holders.rows
    assert (name, grew) == ("holder 1", 300_000)


def test_what_was_too_small_to_be_kept_by_name_has_grown() -> None:
    before = moving({"App.ONLY.pages": 9_000_000, "App.ONLY.log": 3_000})
    after = moving({"App.ONLY.pages": 9_000_000, "App.ONLY.log": 1_003_000})
    ((name, *_, grew),) = later_report(remember(before), after, 5).holders.rows
    assert name == "holder 5"
    assert grew == 1_003_000 - (16 << 10), "it had no more than that"


def test_objects_that_share_a_name_are_not_told_apart() -> None:
    before = moving({"App.ONLY.pages": 9_000_000, "App.ONLY.log": 300_000})
    after = moving({"App.ONLY.pages": 9_000_000, "App.ONLY.log": 1_300_000})
    for each in (before, after):
        names = each.namer
        assert isinstance(names, Numbered)
        names._ways.update({2: "App.ONLY[…]", 4: "App.ONLY[…]"})
    ((name, *_, grew),) = later_report(remember(before), after, 5).holders.rows
    assert (name, grew) == ("holder 1", 1_000_000)


def test_a_long_list_is_kept_by_name_only_at_its_beginning() -> None:
    heap = SmallHeap()
    last = heap.one("list", 20_000, heap.namespace())
    for _ in range(50):
        last = heap.one("list", 20_000, last)
    found = remember(replace(look(heap), moves=True))
    assert len(found.below) == 30
