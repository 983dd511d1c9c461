"""Ways as a tree: divided where they branch, summed where that means something, and never deeper than a stranger's text may make it."""

from __future__ import annotations

from typing import Any

from gcspy_protocol.details import Answer, AnswerState, ColumnKind, DetailColumn, DetailTable, Query

from gcspy_client.model.panels.heap_inquiry import DOMINATORS, HOLDERS, HeapInquiry, HeapSubject
from gcspy_client.model.panels.holder_tree import HolderNode, holder_tree, steps_of

COLUMNS = (
    DetailColumn(name="Holder", kind=ColumnKind.TEXT),
    DetailColumn(name="Objects"),
    DetailColumn(name="Holders"),
    DetailColumn(name="Retained", kind=ColumnKind.BYTES),
    DetailColumn(name="Address", kind=ColumnKind.TEXT),
)


def shown(nodes: list[HolderNode], depth: int = 0) -> list[tuple[str, object, object]]:
    rows: list[tuple[str, object, object]] = []
    for node in nodes:
        rows.append((". " * depth + node.label, node.cells[0], node.cells[2]))
        rows += shown(node.children, depth + 1)
    return rows


def test_a_way_is_divided_at_its_steps() -> None:
    for way in (
        "__main__| .AUDIT|[3]|.items",
        "a|['k.e[y']|.x",
        "__main__|.errors|[0]|.__traceback__|.tb_frame| (variable seen)",
        "thread 4712|, worker()|, variable in_thread",
        "x",
        "",
    ):
        steps = [step.strip() if step.startswith(" .") else step for step in way.split("|")]
        assert steps_of("".join(steps)) == steps
    assert len(steps_of(".a" * 65)) == 1, "nobody reads it"
    assert len(steps_of(".a" * 64)) == 64
    assert len(steps_of("[" * 3000)) == 1


def test_rows_stand_below_what_their_ways_have_in_common() -> None:
    table = DetailTable(
        columns=COLUMNS,
        rows=(
            ("m.AUDIT", 100, 1, 900, "0x10"),
            ("m.CACHE.items", 30, 1, 300, "0x20"),
            ("m.CACHE.items['a'].more", 5, 1, None, "0x30"),
            ("m.A and m.B", 7, 2, None, "0x40"),
            ("other.x.y", 1, 1, 10, "no address"),
        ),
        rest=3,
        rest_cells=("", 4, None, None, ""),
    )
    top = holder_tree(table)
    assert shown(top) == [
        ("m", 135, None),
        (". .AUDIT", 100, 900),
        (". .CACHE.items", 35, None),
        (". . itself", 30, 300),
        (". . ['a'].more", 5, None),
        ("m.A and m.B", 7, None),
        ("other.x.y", 1, 10),
        ("(3 others)", 4, None),
    ]
    audit, cache = top[0].children
    assert (audit.way, audit.address, audit.answered) == ("m.AUDIT", 0x10, True)
    assert (cache.way, cache.address, cache.answered) == ("m.CACHE.items", None, False)
    assert (cache.children[0].way, cache.children[0].address) == ("m.CACHE.items", 0x20)
    assert top[2].address is None
    assert cache.children[1].parent is cache
    assert top[0].parent is None


def test_what_dominators_retain_is_summed_and_two_rows_of_one_way_are_two() -> None:
    columns = (COLUMNS[0], COLUMNS[1], COLUMNS[3])
    rows = (("m.A", 1, 10), ("m.A", 2, 20), ("m.B", None, 5))
    (top,) = holder_tree(DetailTable(columns=columns, rows=rows))
    assert (top.label, top.cells) == ("m", (None, 35))
    assert [(row.label, row.cells) for row in top.children] == [
        (".A", (3, 30)),
        (".B", (None, 5)),
    ]
    assert [(row.label, row.way, row.cells) for row in top.children[0].children] == [
        ("1 of 2", "m.A", (1, 10)),
        ("2 of 2", "m.A", (2, 20)),
    ]


def test_a_strangers_tree_is_no_deeper_than_python_can_go() -> None:
    rows = tuple((".a" * depth, 1, 1, 1, "0x1") for depth in range(1, 1000))
    assert holder_tree(DetailTable(columns=COLUMNS, rows=rows))


def test_what_was_told_stays_with_its_age_until_a_newer_answer() -> None:
    sent: list[Query] = []
    now = [100.0]
    asking = HeapInquiry(sent.append, lambda: now[0])
    orders = HeapSubject(HOLDERS, "Who holds Order", type_name="Order")
    table = DetailTable(columns=COLUMNS, rows=(("m.A", 1, 1, 1, "0x1"),))

    def answer(state: AnswerState, **more: Any) -> Answer:
        return Answer(number=sent[-1].number, space=0, sequence=4, state=state, **more)

    assert not asking.turn_to(orders)
    asking.ask(orders, held=True)
    assert (sent[0].kind, sent[0].text, sent[0].held, sent[0].space) == (
        "holders",
        "Order",
        True,
        0,
    )
    assert not asking.take(Answer(number=1, space=0, sequence=0, state=AnswerState.ANSWERED))
    assert asking.take(answer(AnswerState.UNDER_WAY, reason="copying", done=3, total=9))
    assert (asking.waits, asking.step) == (True, ("copying", 3, 9))
    assert asking.take(answer(AnswerState.ANSWERED, table=table))
    now[0] = 112.0
    assert asking.told is not None
    assert (asking.told.table, asking.age_secs, asking.waits) == (table, 12.0, False)
    asking.ask(orders, held=False)
    asking.forget()
    assert "connection" in asking.failure
    assert asking.told.table is table, "the latest answer stays"
    asking.ask(orders, held=False)
    asking.take(answer(AnswerState.REFUSED, reason="no"))
    assert (asking.failure, asking.told.table) == ("no", table)
    everything = HeapSubject(DOMINATORS, "all")
    assert not asking.turn_to(everything)
    assert asking.failure == ""
    assert asking.turn_to(orders)
    asking.clear()
    assert asking.told is None
