"""`gcspy types` counts without a session what a session counts, and of a large heap first estimates."""

from __future__ import annotations

import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_protocol.details import AnswerState, Query
from gcspy_protocol.errors import Unsupported

from gcspy_server.api import AttachOptions, DetailTable, Server, TypeCount
from tests.drivers.conftest import Start
from tests.drivers.cpython.test_objects import ZOO

ALL = 1000

LARGE = """
class Order:
    __slots__ = ("number", "note")
    def __init__(self, number): self.number, self.note = number, str(number)
keep = [Order(n) for n in range(1000, 401000)]
tell()
"""
"""A heap of some 60 MB, with a thousand pools and more of each type."""


def counted(pid: int) -> tuple[list[TypeCount], list[str]]:
    steps: list[str] = []

    def progress(what: str, done: int, total: int) -> None:
        assert done <= total
        steps.append(what)

    return list(CPythonDriver.count_types(pid, ALL, progress)), steps


def of_a_session(pid: int) -> DetailTable:
    driver = CPythonDriver.attach(pid, AttachOptions(level=3))
    try:
        server: Server = driver.describe().server()
        server.add_observer(lambda _: None)
        driver.open(server)
        driver.notice()
        driver.sample()
        types = next(space for space in server.spaces if space.name == "Types")
        answer = server.ask(Query(number=1, space=types.id, kind="types", most=ALL))
    finally:
        driver.close()
    assert answer.state is AnswerState.ANSWERED
    return answer.table


def test_the_counts_are_those_of_a_session(python: str, start: Start) -> None:
    child = start(python, ZOO)
    child.wait_objects()
    (count,), steps = counted(child.pid)
    assert count.share == 1
    assert count.table == of_a_session(child.pid)
    assert f"process {child.pid}" in count.name
    assert "examining pools" in steps


def test_a_large_heap_is_estimated_first(start: Start, own_python: str) -> None:
    child = start(own_python, LARGE)
    child.wait_still()
    (estimate, exact), _ = counted(child.pid)
    assert 0.1 < estimate.share < 0.6
    assert exact.share == 1
    assert estimate.gather_nanos < exact.gather_nanos
    assert f"estimated from {estimate.share:.1%} of the heap" in estimate.table.note
    assert [column.name for column in estimate.table.columns] == ["Type", "Objects", "Bytes"]
    estimated = {row[0]: row[1:] for row in estimate.table.rows}
    for name, objects, size, *_ in exact.table.rows[:3]:
        # Sampled pools are at equal distances, so that estimates of common types are close.
        assert isinstance(objects, int)
        assert isinstance(size, int)
        about = estimated[name]
        assert about[0] == pytest.approx(objects, rel=0.1)
        assert about[1] == pytest.approx(size, rel=0.1)


def test_a_process_without_pymalloc_is_left_to_a_session(start: Start, own_python: str) -> None:
    child = start(own_python, "tell()", {"PYTHONMALLOC": "malloc"})
    child.wait_still()
    with pytest.raises(Unsupported, match="pymalloc has no pool in use"):
        counted(child.pid)
