"""The holders of planted objects are named, with the program's names."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.graph.heap_graph import build_graph
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy, copy_memory
from gcspy_drivers.cpython.graph.names import Namer
from gcspy_drivers.cpython.target import Target
from gcspy_protocol.errors import TargetError

from gcspy_server.api import DetailTable, HeapQuestion, HeapQuestionKind
from tests.drivers.conftest import Start
from tests.once import machine_code_allowed
from tests.waiting import PATIENCE_SECS, wait_until

PLANTED = """
import collections, functools, threading
class Order:
    def __init__(self, number): self.number, self.items = number, [number]
class Slotted:
    __slots__ = ("item",)
    def __init__(self, item): self.item = item
class Cache:
    shared = {}
    def __init__(self): self.entries = {}
AUDIT = [Order(n) for n in range(3000)]
CACHE = Cache()
CACHE.entries.update(("k%d" % n, Order(n)) for n in range(300))
Cache.shared[7] = Order(0)
SLOT = Slotted([Order(n) for n in range(20)])
RECENT = collections.deque(Order(n) for n in range(90))
BOTH = tuple(Order(n) for n in range(7))
INDEX = dict(enumerate(BOTH))
def closing(kept):
    def inner(): return kept
    return inner
CLOSED = closing([Order(n) for n in range(11)])
@functools.lru_cache(maxsize=None)
def cached(number): return Order(number)
for number in range(13): cached(number)
errors = []
def failing():
    seen = [Order(n) for n in range(17)]
    raise ValueError(1)
try: failing()
except ValueError as error: errors.append(error)
each_has = threading.local()
each_has.orders = [Order(n) for n in range(19)]
ready = threading.Event()
def work():
    in_thread = [Order(n) for n in range(5)]
    ready.set()
    threading.Event().wait()
threading.Thread(target=work, daemon=True).start()
ready.wait()
def call():
    local = [Order(n) for n in range(6)]
    tell()
call()
"""

EXPECTED = {
    "__main__.AUDIT": ("list", 3000, 1),
    "__main__.CACHE.entries": ("dict", 300, 1),
    "__main__.Cache.shared": ("dict", 1, 1),
    "__main__.SLOT.item": ("list", 20, 1),
    "__main__.RECENT": ("collections.deque", 90, 1),
    "__main__.cached (its cache)": ("dict", 13, 1),
    "__main__.errors[0].__traceback__.tb_next.tb_frame (variable seen)": ("list", 17, 1),
    "work(), variable in_thread": ("list", 5, 1),
    "call(), variable local": ("list", 6, 1),
}


def ask(
    pid: int,
    kind: HeapQuestionKind = HeapQuestionKind.HOLDERS,
    type_name: str = "",
    address: int | None = None,
    most: int = 20,
    held: bool = False,
) -> DetailTable:
    """Ask the driver as the command does."""
    question = HeapQuestion(kind=kind, type_name=type_name, address=address, most=most, held=held)
    with pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        return CPythonDriver.investigate(pid, question, lambda *_: None)


@pytest.mark.timeout(300)
def test_planted_holders_are_named_and_counted(start: Start, python: str, compiled: Loops) -> None:
    target = start(python, PLANTED)
    target.wait_still()
    table = ask(target.pid, type_name="Order", most=50)
    rows = {str(row[0]): row[1:] for row in table.rows}
    for way, (type_, count, holders) in EXPECTED.items():
        found = [row for name, row in rows.items() if name == way or name.endswith(", " + way)]
        assert len(found) == 1, (way, sorted(rows))
        assert (found[0][0], found[0][1], found[0][3]) == (type_, count, holders), way
        assert isinstance(found[0][4], int)
        assert isinstance(found[0][2], int)
        assert found[0][4] > found[0][2], "with the holder more is freed than the orders alone"
    both = [row for name, row in rows.items() if "BOTH" in name and "INDEX" in name]
    assert [(row[1], row[3], row[4]) for row in both] == [(7, 2, None)]
    closed = [row for name, row in rows.items() if name.startswith("__main__.CLOSED")]
    assert [row[1] for row in closed] == [11]
    local = [row for name, row in rows.items() if "each_has" in name]
    assert [row[1] for row in local] == [19]
    planted = 3000 + 300 + 1 + 20 + 90 + 5 + 6 + 7 + 11 + 13 + 17 + 19
    assert sum(int(row[2] or 0) for row in table.rows) == planted
    assert "ran while" in table.note
    qualified = ask(target.pid, type_name="__main__.Order", most=1)
    assert qualified.rows[0] == table.rows[0]
    assert qualified.rest == len(table.rows) - 1
    with pytest.raises(TargetError, match="no object of a type 'Orders'"):
        ask(target.pid, type_name="Orders")


FUNCTION = """
import sys
def made(captured):
    def function(a: captured = ["default"], *, b=("only", "by", "name")):
        "a docstring of its own, long enough to be no other object"
        return captured
    return function
function = made([1])
function.own = 1
function.__type_params__ = types = ("of", "its", "own")
names = "closure defaults globals code module annotations dict kwdefaults doc name qualname".split()
names += [name for name in ("builtins", "type_params") if sys.version_info >= (3, 12) or name == "builtins" and sys.version_info >= (3, 10)]
if sys.version_info >= (3, 14):
    function.__annotations__ = annotations = {"a": int}
    function.__annotate__ = lambda format: annotations
    names.append("annotate")
print(id(function), *(f"{name}={id(getattr(function, f'__{name}__'))}" for name in names), flush=True)
input()
"""


@pytest.mark.timeout(300)
def test_what_a_function_refers_to_is_named(start: Start, python: str, compiled: Loops) -> None:
    target = start(python, FUNCTION)
    at, *attributes = target.read_line().split(" ")
    with Target(target.pid) as reader:
        source = reader.graph_source(held=False)
        graph = build_graph(source, compiled)
        namer = Namer(graph, source.memory)
        function = graph.number_of(int(at))
        assert function is not None
        assert len(attributes) >= 11
        for name, address in (each.split("=") for each in attributes):
            number = graph.number_of(int(address))
            assert number is not None, name
            assert namer.reference(function, number) == f".__{name}__"


def test_what_keeps_most_alive_comes_first(start: Start, own_python: str, compiled: Loops) -> None:
    target = start(own_python, PLANTED)
    target.wait_still()
    table = ask(target.pid, kind=HeapQuestionKind.DOMINATORS, most=3)
    assert table.rows[0][:2] == ("__main__.AUDIT", "list")
    # Each order has a list and, beyond the small ones, a number.
    objects, retained, address = table.rows[0][2:]
    assert str(address).startswith("0x")
    assert isinstance(objects, int)
    assert isinstance(retained, int)
    assert objects > 3000 * 2 + 2700
    assert retained > 3000 * (48 + 56)
    sizes = [int(row[3] or 0) for row in table.rows]
    assert sizes == sorted(sizes, reverse=True)


def test_an_object_is_asked_for_by_its_address(
    start: Start, own_python: str, compiled: Loops
) -> None:
    target = start(own_python, PLANTED)
    target.wait_still()
    with Target(target.pid) as reader:
        graph = build_graph(reader.graph_source(held=False), compiled)
    orders = graph.of_type("Order")
    last = int(orders[np.argmax(graph.address[orders])])
    table = ask(target.pid, address=int(graph.address[last]))
    assert [row[2] for row in table.rows] == [1]
    with pytest.raises(TargetError, match="there is no object at 0x10"):
        ask(target.pid, address=16)


def test_a_program_that_is_held_goes_on(start: Start, own_python: str, compiled: Loops) -> None:
    target = start(
        own_python,
        "KEPT = [[n] for n in range(1000)]\nprint('ready', flush=True)\n"
        "while True:\n    print(sum(map(len, KEPT)), flush=True)",
    )
    assert target.read_line() == "ready"
    table = ask(target.pid, kind=HeapQuestionKind.DOMINATORS, held=True)
    assert "held for" in table.note
    assert any(row[0] == "__main__.KEPT" for row in table.rows)
    assert [target.read_line() for _ in range(2)] == ["1000", "1000"]


def test_an_answer_is_json_of_numbers(start: Start, own_python: str, compiled: Loops) -> None:
    from gcspy.output.detail_text import rows_as_json

    target = start(own_python, PLANTED)
    target.wait_still()
    data = json.loads(json.dumps(rows_as_json(ask(target.pid, type_name="Slotted"))))
    assert data["rows"][0]["objects"] == 1
    assert data["rows"][0]["holder"] == "__main__.SLOT"


def test_a_hold_that_ends_before_the_copy_is_told(
    start: Start, own_python: str, compiled: Loops, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start(own_python, PLANTED)
    target.wait_still()
    monkeypatch.setattr("gcspy_drivers.cpython.target._LONGEST_HOLD_SECS", PATIENCE_SECS)
    whole = ask(target.pid, kind=HeapQuestionKind.DOMINATORS, held=True)
    assert "and ran while" not in whole.note

    def late(*arguments: Any) -> MemoryCopy:
        wait_until(lambda: "gcspy hold" not in [one.name for one in threading.enumerate()])
        return copy_memory(*arguments)

    monkeypatch.setattr("gcspy_drivers.cpython.target._LONGEST_HOLD_SECS", 1e-9)
    monkeypatch.setattr("gcspy_drivers.cpython.target.copy_memory", late)
    cut = ask(target.pid, kind=HeapQuestionKind.DOMINATORS, held=True)
    assert "and ran while the rest of its memory was copied" in cut.note
    assert len(cut.rows) == len(whole.rows)
