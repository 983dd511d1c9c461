"""Holders of objects, and the objects that keep most alive: tables of small heaps, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_drivers.kit.heap_answers import answer_table, chosen_objects
from gcspy_protocol.errors import TargetError

from gcspy_server.api import DetailTable, HeapQuestion, HeapQuestionKind
from tests.drivers.kit.small_heap import Numbered, SmallHeap


def ask(
    heap: SmallHeap,
    kind: HeapQuestionKind = HeapQuestionKind.HOLDERS,
    *,
    type_name: str = "",
    address: int | None = None,
    extent_bytes: int = 0,
    most: int = 20,
) -> DetailTable:
    question = HeapQuestion(
        kind=kind, type_name=type_name, address=address, extent_bytes=extent_bytes, most=most
    )
    return answer_table(heap, heap.tree, Numbered(heap), question)


def chosen(
    heap: SmallHeap, type_name: str = "", address: int | None = None, extent_bytes: int = 0
) -> list[int]:
    question = HeapQuestion(
        kind=HeapQuestionKind.HOLDERS,
        type_name=type_name,
        address=address,
        extent_bytes=extent_bytes,
        most=20,
    )
    found: list[int] = chosen_objects(heap, question).tolist()
    return found


def shop() -> SmallHeap:
    """A module with a cache of ten orders, a list of five, and one order of its own; one order has two holders."""
    heap = SmallHeap()
    module = heap.namespace()  # 0
    cache, audit = heap.one("dict", 100, module), heap.one("list", 50, module)  # 1, 2
    for _ in range(10):
        heap.one("Order", 30, cache)  # 3 to 12
    for _ in range(5):
        heap.one("Order", 40, audit)  # 13 to 17
    heap.one("Order", 1, module)  # 18
    heap.one("Order", 2, cache, audit)  # 19
    return heap


def test_holders_are_listed_by_what_they_hold() -> None:
    table = ask(shop(), type_name="Order")
    assert table.rows == (
        ("holder 1", "dict that holds", 10, 300, 1, 400, "0x1010"),
        ("holder 2", "list that holds", 5, 200, 1, 250, "0x1020"),
        ("holder 1 and holder 2", "dict that holds", 1, 2, 2, None, "0x1010"),
        ("way to 18", "module that holds", 1, 1, 1, 7 + 400 + 250 + 1 + 2, "0x1120"),
    )
    assert (table.rest, table.rest_cells, table.note) == (0, (), "")


def test_holders_for_which_there_is_no_row_are_added_up() -> None:
    table = ask(shop(), type_name="Order", most=1)
    assert [row[0] for row in table.rows] == ["holder 1"]
    assert table.rest == 3
    assert table.rest_cells == ("", "", 7, 203, None, None, "")


def test_of_many_independent_holders_four_are_named() -> None:
    heap = SmallHeap()
    module = heap.namespace()
    for most in (5, 4):
        tables = [heap.one("dict", 10, module) for _ in range(most)]
        heap.one(f"Order of {most}", 3, *tables)
        ((text, _, objects, _, independent, retained, _),) = ask(
            heap, type_name=f"Order of {most}"
        ).rows
        named = [f"holder {one}" for one in tables[:4]]
        assert text == " and ".join([*named, "1 others"] if most == 5 else named)
        assert (objects, independent, retained) == (1, most, None)


def test_what_nothing_that_was_seen_holds_is_told() -> None:
    heap = shop()
    for _ in range(3):
        heap.one("Order", 9, heap.one("list", 9))
        heap.roots.pop()
    assert ask(heap, type_name="Order").note == (
        "3 of 20 objects are held by nothing that was seen"
    )


def test_what_keeps_most_alive_comes_first() -> None:
    heap = shop()
    table = ask(heap, HeapQuestionKind.DOMINATORS, most=2)
    assert table.rows == (
        ("way to 1", "dict", 11, 400, "0x1010"),
        ("way to 2", "list", 6, 250, "0x1020"),
    )
    assert (table.rest, table.rest_cells) == (2, ("", "", 2, 3, ""))
    whole = ask(heap, HeapQuestionKind.DOMINATORS)
    assert [row[0] for row in whole.rows] == ["way to 1", "way to 2", "way to 19", "way to 18"]
    assert (whole.rest, whole.rest_cells) == (0, ())


def test_objects_are_chosen_by_type_by_address_or_all() -> None:
    heap = shop()
    assert chosen(heap) == list(range(20))
    assert chosen(heap, "list") == [2]
    assert chosen(heap, address=0x1020) == [2]
    for type_name, address, why in (
        ("Customer", None, "no object of a type 'Customer' was found"),
        ("", 0x1021, "there is no object at 0x1021"),
    ):
        with pytest.raises(TargetError, match=why):
            chosen(heap, type_name, address)


def test_objects_are_chosen_that_begin_in_an_extent() -> None:
    heap = shop()
    assert chosen(heap, address=0x1000, extent_bytes=0x21) == [0, 1, 2]
    assert chosen(heap, address=0x1001, extent_bytes=0x1F) == [1]
    assert chosen(heap, "list", 0x1000, 0x40) == [2]
    for type_name, what in (("Order", "object of a type 'Order'"), ("", "object")):
        with pytest.raises(
            TargetError, match=f"no {what} that a root leads to begins in the 15 bytes from 0x1001"
        ):
            chosen(heap, type_name, 0x1001, 15)


def test_idle_bytes_are_summed_as_the_others_are() -> None:
    heap = shop()
    idle = np.zeros(heap.graph.nodes, dtype=np.int64)
    idle[3:7], idle[13], idle[19] = 30, 40, 2
    question = HeapQuestion(kind=HeapQuestionKind.HOLDERS, type_name="Order", most=2)
    table = answer_table(heap, heap.tree, Numbered(heap), question, idle)
    assert [column.name for column in table.columns][-2:] == ["Idle", "Address"]
    assert [(row[0], row[-2]) for row in table.rows] == [("holder 1", 120), ("holder 2", 40)]
    assert table.rest_cells[-2] == 2
    question = HeapQuestion(kind=HeapQuestionKind.DOMINATORS, type_name="", most=1)
    table = answer_table(heap, heap.tree, Numbered(heap), question, idle)
    assert [(row[3], row[-2]) for row in table.rows] == [(400, 120)]
    assert table.rest_cells[-2] == 42
