"""The holders of planted objects in a JVM are named, with the program's names; and no residue of ours is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.driver import HotSpotDriver
from gcspy_protocol.errors import TargetError

from gcspy_server.api import DetailTable, HeapQuestion, HeapQuestionKind
from tests.drivers.hotspot.holders.planted import ORDERS, running
from tests.drivers.hotspot.residue import residue
from tests.once import machine_code_allowed


def ask(
    pid: int,
    type_name: str = "",
    kind: HeapQuestionKind = HeapQuestionKind.HOLDERS,
    most: int = 30,
    held: bool = True,
) -> DetailTable:
    question = HeapQuestion(kind=kind, type_name=type_name, most=most, held=held)
    with pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        return HotSpotDriver.investigate(pid, question, lambda *_: None)


def dumps() -> list[Path]:
    """Dumps that were made for us and are still there."""
    return [*Path("/tmp").glob("gcspy-" + "[0-9a-f]" * 16 + "/heap.hprof*")]


def rows(table: DetailTable) -> dict[str, tuple[object, ...]]:
    return {str(row[0]): row[1:] for row in table.rows}


@pytest.mark.timeout(300)
def test_planted_holders_are_named_and_counted(planted: int) -> None:
    table = ask(planted, "Order")
    found = rows(table)
    for way, (type_, count) in ORDERS.items():
        assert way in found, sorted(found)
        assert found[way][:2] == (type_, count), way
        assert found[way][3] == 1
    both = [row for way, row in found.items() if "BOTH" in way]
    assert [(row[1], row[3], row[4]) for row in both] == [(7, 2, None)]
    assert any("ALSO" in way and " and " in way for way in found)
    assert sum(int(str(row[2])) for row in table.rows) == sum(n for _, n in ORDERS.values()) + 7
    assert table.rows[0][3] == 3000 * 16, "an order has a header and a number"
    assert "for the heap dump" in table.note


@pytest.mark.timeout(300)
def test_locals_loaders_listeners_and_soft_references_are_told(planted: int) -> None:
    expected = {
        "Kept": ("thread main, Planted.hold(), a local", 6),
        "Waiting": ("thread waiter, Planted.waiting(), a local", 5),
        "Session": ("Planted.BUS.handlers", 12),
        "Plugin": ("Planted.LOADERS", 50),
        "Softly": ("Planted.SOFT.referent", 9),
    }
    for type_name, (way, count) in expected.items():
        assert [(row[0], row[2], row[4]) for row in ask(planted, type_name).rows] == [
            (way, count, 1)
        ]
    weak = ask(planted, "Weakly")
    assert not weak.rows
    assert weak.note.startswith("1 of 1 objects are held by nothing that was seen")
    ended = ask(planted, "Ended")
    assert [row[2] for row in ended.rows] == [1], "it waits for its finalizer"
    with pytest.raises(TargetError, match="no object of a type 'Orders'"):
        ask(planted, "Orders")


@pytest.mark.timeout(300)
def test_what_keeps_most_alive_comes_first_and_nothing_is_left(planted: int) -> None:
    table = ask(planted, kind=HeapQuestionKind.DOMINATORS, most=12)
    found = rows(table)
    # The set, its map, its table; of each name a node, a text and its bytes.
    assert found["Planted.INTERNED"][:2] == ("java.util.HashSet", 3 + 3 * 500)
    sizes = [int(str(row[3])) for row in table.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert residue(planted)["left"] == []


def test_a_jvm_without_room_for_a_dump_is_refused(
    planted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gcspy_drivers.hotspot import requested_dump

    monkeypatch.setattr(requested_dump, "_ROOM", 1e9)
    with pytest.raises(TargetError, match=r"has no room for .* MB"):
        ask(planted, "Order")
    assert not dumps()


def test_a_jvm_that_takes_no_commands_is_refused(java: str, planted_classes: Path) -> None:
    with running(java, planted_classes, "-XX:+DisableAttachMechanism") as pid:
        with pytest.raises(TargetError, match="DisableAttachMechanism"):
            ask(pid, "Order")
        assert not [name for name in os.listdir("/tmp") if name == f".attach_pid{pid}"]


def test_a_dump_is_its_users_alone_and_gone_before_it_is_read(planted: int) -> None:
    """A SIGKILL then leaves nothing; an earlier one leaves a folder that the next sidecar removes (tests/drivers/remote/test_handover.py)."""
    before = {each.name for each in Path("/tmp").glob("gcspy-" + "[0-9a-f]" * 16)}
    modes: list[int] = []
    left: list[Path] = []

    def progress(what: str, done: int, whole: int) -> None:
        if what.startswith("waiting"):
            made = Path("/tmp").glob("gcspy-" + "[0-9a-f]" * 16)
            modes.extend(each.stat().st_mode & 0o777 for each in made if each.name not in before)
        if what == "reading":
            left.extend(dumps())

    question = HeapQuestion(kind=HeapQuestionKind.DOMINATORS, most=1, held=True)
    HotSpotDriver.investigate(planted, question, progress)
    assert 0o700 in modes
    assert set(modes) == {0o700}
    assert not left


def test_a_dump_that_is_damaged_is_an_error_of_ours(
    planted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gcspy_drivers.hotspot import requested_dump

    monkeypatch.setattr(requested_dump, "MOST_BYTES", 1000)
    with pytest.raises(TargetError, match="more than 1,000 bytes does not fit"):
        ask(planted, "Order")
    assert not dumps()
