"""`gcspy why` names the line, the function and the caller that allocated what grew."""

from __future__ import annotations

import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.kit.allocation_sites import ALL_TRACED, NOT_KNOWN

from gcspy_server.api import Cell, HeapQuestion, HeapQuestionKind, MemoryQuestion, MemoryReport
from tests.drivers.conftest import Start
from tests.drivers.report_tables import column
from tests.once import machine_code_allowed

PROGRAM = """
import copy, json
class Order:
    def __init__(self, number):
        self.items = [number, number]
class Early:
    pass
class Shop:
    def load(self, count):
        return [Order(n) for n in range(count)]
    def again(self, count):
        found = []
        for n in range(count): found.append(Order(n))
        return found
def parse(count):
    return [json.loads('["a", "b"]') for n in range(count)]
def blocks():
    return [bytearray(200_000) for _ in range(10)]
AUDIT = Shop().load(20_000)
_kill(_pid, _stop)
AUDIT += Shop().load(40_000)
AUDIT += Shop().again(15_000)
PARSED = parse(25_000)
RAW = blocks()
_kill(_pid, _stop)
"""


def line_of(text: str) -> int:
    """Return the line of the program; the text of the target begins with what stands before it."""
    from tests.drivers.targets import TELL, TELL_OBJECTS

    return (TELL + TELL_OBJECTS + PROGRAM).split(text)[0].count("\n") + 1


def looked_at_twice(
    start: Start, python: str, env: dict[str, str]
) -> tuple[MemoryReport, MemoryReport, tuple[int, ...]]:
    """Run the program between two samples."""
    target = start(python, PROGRAM, env)
    target.wait_objects()
    with Target(target.pid) as reader:
        version = reader.version
    with pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        question = MemoryQuestion(over_secs=0.01, most=50)
        reports = CPythonDriver.explain_memory(target.pid, question, lambda *_: None)
        first = next(reports)
        target.go_on()
        target.wait_objects()
        later = next(reports)
        assert next(reports, None) is None
    return first, later, version


def rows_of(report: MemoryReport, what: str) -> list[tuple[Cell, ...]]:
    """Return the rows of a group, without its name."""
    return [row[1:] for row in report.sites.rows if row[0] == what]


@pytest.mark.timeout(300)
def test_each_new_object_has_the_site_that_the_program_has(
    start: Start, python: str, compiled: Loops
) -> None:
    first, later, version = looked_at_twice(start, python, {"PYTHONTRACEMALLOC": "10"})
    assert first.sites.note.startswith("tracemalloc has ")
    assert "could not be read" not in first.sites.note

    def site(text: str, function: str) -> str:
        name = function if version >= (3, 11) else function.rpartition(".")[2]
        return f"<string>:{line_of(text)} {name}"

    loads = site("return [Order", "Shop.load")
    ((place, caller, count, of, size),) = rows_of(first, "Order")
    assert (place, caller, count, of) == (loads, "", 20_000, 20_000)
    assert isinstance(size, int)
    again = site("for n in range(count): found", "Shop.again")
    rows = rows_of(later, "Order")
    assert [row[:4] for row in rows] == [(loads, "", 40_000, 55_000), (again, "", 15_000, 55_000)]
    ((place, *_), (parsed, caller, count, of, _)) = rows_of(later, "list")[:2]
    assert place == site("self.items =", "Order.__init__")
    assert "json/decoder.py:" in str(parsed)
    assert str(parsed).endswith("raw_decode")
    assert caller == site("return [json.loads", "parse")
    assert (count, of) == (25_000, 55_000 + 25_000 + 2)  # two hold what was made
    ((place, _, count, of, size),) = rows_of(later, "held by __main__.RAW")
    held = 21 if version >= (3, 15) else 11  # there the bytes of each are an object, too
    assert (place, count, of) == (site("return [bytearray", "blocks"), held, held)
    assert isinstance(size, int)
    assert 2_000_000 <= size < 2_010_000
    traced = {row[0]: row[4] for row in rows_of(later, ALL_TRACED)}
    size = traced[site("return [bytearray", "blocks")]
    assert isinstance(size, int)
    assert 2_000_000 <= size < 2_010_000
    # tracemalloc's own memory is not counted as memory whose owner is not known.
    own = column(later.memory, "Bytes")["malloc: tracemalloc's own tables"]
    assert own is not None
    assert own > 80 * 150_000


@pytest.mark.timeout(300)
def test_objects_from_before_tracing_began_have_no_site(
    start: Start, own_python: str, compiled: Loops
) -> None:
    source = "import tracemalloc\nclass Early: pass\nclass Late: pass\nA = [Early() for _ in range(60_000)]\n"
    source += "tracemalloc.start()\nB = [Late() for _ in range(60_000)]\n_kill(_pid, _stop)"
    target = start(own_python, source)
    target.wait_objects()
    with pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        (report,) = CPythonDriver.explain_memory(
            target.pid, MemoryQuestion(over_secs=0, most=50), lambda *_: None
        )
    ((place, _, count, of, _),) = rows_of(report, "Early")
    assert (place, count, of) == (NOT_KNOWN, 60_000, 60_000)
    ((place, _, count, of, _),) = rows_of(report, "Late")
    assert (count, of) == (60_000, 60_000)
    assert str(place).startswith("<string>:")


@pytest.mark.timeout(300)
def test_without_tracemalloc_it_is_said_how_to_turn_it_on(
    start: Start, own_python: str, compiled: Loops
) -> None:
    first, later, _ = looked_at_twice(start, own_python, {"PYTHONTRACEMALLOC": "0"})
    for report in (first, later):
        assert not report.sites.rows
        assert report.sites.note.startswith("tracemalloc is off")
        assert "-X tracemalloc" in report.sites.note


@pytest.mark.timeout(300)
def test_the_answer_who_holds_objects_names_the_lines_that_allocated_them(
    start: Start, own_python: str, compiled: Loops
) -> None:
    source = PROGRAM.replace("_kill(_pid, _stop)\nAUDIT +=", "AUDIT +=")
    answers = []
    for frames in ("5", "0"):
        target = start(own_python, source, {"PYTHONTRACEMALLOC": frames})
        target.wait_objects()
        question = HeapQuestion(kind=HeapQuestionKind.HOLDERS, type_name="Order", most=5)
        with pytest.MonkeyPatch.context() as patched:
            machine_code_allowed(patched)
            answers.append(CPythonDriver.investigate(target.pid, question, lambda *_: None))
    with_sites, without = answers
    assert with_sites.rows[0][:3] == without.rows[0][:3] == ("__main__.AUDIT", "list", 75_000)
    assert with_sites.note.startswith("allocated at <string>:")
    assert "Shop.load (60,000 of 75,000 objects) and <string>:" in with_sites.note
    assert "Shop.again (15,000 of 75,000 objects); " in with_sites.note
    assert "allocated" not in without.note
