"""Questions about all objects: the controller's alone, one at a time, with progress, never in the way of an event, bounded, and given up with who asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.details import (
    HEAP_KINDS,
    MEMORY_KIND,
    AnswerState,
    ColumnKind,
    DetailColumn,
    DetailTable,
    MemoryReport,
)
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_server.api import HeapQuestion, HeapQuestionKind, MemoryQuestion, ServedSession
from tests.server.target import START, Target
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]
Progress = Callable[[str, int, int], None]

COLUMNS = (DetailColumn(name="Holder", kind=ColumnKind.TEXT), DetailColumn(name="Objects"))


class Asked(Target):
    """A target whose driver answers with what it was asked, once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[HeapQuestion] = []
        self.given_up = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()
        self.at_once = 0
        self.error: Exception | None = None
        self.asked_memory: list[MemoryQuestion] = []
        self.server.investigate_with(self.investigate)
        self.server.explain_memory_with(self.explain)

    def explain(self, question: MemoryQuestion, progress: Progress) -> Iterator[MemoryReport]:
        self.asked_memory.append(question)
        yield self.report(0, None)
        if question.over_secs:
            table = self.investigate(HeapQuestion(kind=HeapQuestionKind.HOLDERS), progress)
            yield replace(self.report(question.over_secs, 77), holders=table)

    def report(self, secs: float, grew: int | None) -> MemoryReport:
        rows = (("y" * 70_000, 1), ("z", None))
        table = DetailTable(columns=COLUMNS, rows=rows * 1000)
        return MemoryReport(
            secs=secs,
            resident=1 << 40,
            grew=grew,
            memory=table,
            holders=table,
            sites=table,
            unsure=5,
            note="n" * 70_000,
        )

    def investigate(self, question: HeapQuestion, progress: Progress) -> DetailTable:
        self.asked.append(question)
        self.at_once += 1
        try:
            assert self.at_once == 1, "two at once"
            progress("following references", 7, 9)
            while not self.go_on.wait(0.01):
                progress("following references", 8, 9)
        except Exception:
            self.given_up.release()
            raise
        finally:
            self.at_once -= 1
        if self.error is not None:
            raise self.error
        rows = (("x" * 70_000, len(self.asked)), ("other", None))
        return DetailTable(columns=COLUMNS, rows=rows * 1000, note="n" * 70_000)


def ask(viewer: Viewer, number: int = 5, **fields: Any) -> None:
    query: dict[str, Any] = {"space": 0, "kind": "holders", "text": "Order", "most": 9, **fields}
    viewer.send(m.Query(number=number, **query))


def answer(viewer: Viewer) -> m.Answer:
    """The next answer that is not a progress message."""
    while True:
        found = viewer.next(m.Answer)
        if found.state is not AnswerState.UNDER_WAY:
            return found


@pytest.fixture
def asked(serve: Serve) -> tuple[Asked, str]:
    target = Asked()
    (address,) = serve(target).addresses
    return target, address


def test_the_controller_is_told_in_bounds(asked: tuple[Asked, str], join: Join) -> None:
    target, address = asked
    viewer = join(address, control=True)
    target.event(START)
    viewer.event()
    ask(viewer, held=True)
    found = answer(viewer)
    assert (found.number, found.state, found.sequence) == (5, AnswerState.ANSWERED, 1)
    assert len(found.table.rows) == 9
    assert len(str(found.table.rows[0][0])) == 500
    assert len(found.table.note) == 2000
    assert target.asked == [
        HeapQuestion(kind=HeapQuestionKind.HOLDERS, type_name="Order", most=9, held=True)
    ]
    ask(viewer, kind="dominators", text="", key=0x1234)
    assert answer(viewer).state is AnswerState.ANSWERED
    assert target.asked[-1].kind is HeapQuestionKind.DOMINATORS
    assert (target.asked[-1].address, target.asked[-1].extent_bytes) == (0x1234, 0)
    assert tuple(kind.value for kind in HeapQuestionKind) == HEAP_KINDS


def test_a_tile_stands_for_its_addresses(asked: tuple[Asked, str], join: Join) -> None:
    target, address = asked
    viewer = join(address, control=True)
    target.event(START)
    viewer.event()
    ask(viewer, space=target.heap.id, key=0x1200, text="")
    assert answer(viewer).state is AnswerState.ANSWERED
    assert (target.asked[-1].address, target.asked[-1].extent_bytes) == (0x1200, 0x100)
    for key in (0x1208, 0x9999999):
        ask(viewer, space=target.heap.id, key=key, text="")
        assert answer(viewer).state is AnswerState.GONE
    assert len(target.asked) == 1


def test_who_does_not_control_is_refused(asked: tuple[Asked, str], join: Join) -> None:
    target, address = asked
    join(address, control=True)
    viewer = join(address)
    ask(viewer)
    found = answer(viewer)
    assert found.state is AnswerState.REFUSED
    assert "controls" in found.reason
    assert not target.asked


def test_how_far_it_is_is_told_and_events_go_on_meanwhile(
    asked: tuple[Asked, str], join: Join
) -> None:
    target, address = asked
    viewer = join(address, control=True)
    target.go_on.clear()
    ask(viewer)
    while True:
        told = viewer.next(m.Answer)
        assert (told.state, told.number) == (AnswerState.UNDER_WAY, 5)
        if told.done == 8:
            break
    assert (told.reason, told.total) == ("following references", 9)
    for _ in range(3):
        target.event(START)
    viewer.until_events(3)
    target.go_on.set()
    assert answer(viewer).state is AnswerState.ANSWERED


def test_who_asks_again_or_goes_gives_the_question_up(asked: tuple[Asked, str], join: Join) -> None:
    target, address = asked
    viewer = join(address, control=True)
    target.go_on.clear()
    ask(viewer, 1)
    viewer.next(m.Answer)
    ask(viewer, 2)
    replaced = answer(viewer)
    assert (replaced.number, replaced.state) == (1, AnswerState.REFUSED)
    assert target.given_up.acquire(timeout=PATIENCE_SECS), "the first is worked at no more"
    while viewer.next(m.Answer).number != 2:
        pass
    viewer.link.close()
    assert target.given_up.acquire(timeout=PATIENCE_SECS), "the second neither"
    other = join(address, control=True)
    target.go_on.set()
    ask(other, 3)
    assert answer(other).number == 3


def test_what_goes_wrong_is_said_and_ends_nothing(asked: tuple[Asked, str], join: Join) -> None:
    target, address = asked
    viewer = join(address, control=True)
    for error, state, words in (
        (Unsupported("process 1", found="a", known="b"), AnswerState.REFUSED, "process 1"),
        (TargetError("no object of a type 'Order'"), AnswerState.UNKNOWN, "no object"),
        (ZeroDivisionError(), AnswerState.UNKNOWN, "the driver failed"),
    ):
        target.error = error
        ask(viewer)
        found = answer(viewer)
        assert found.state is state
        assert words in found.reason
    target.server.investigate_with(None)
    ask(viewer)
    assert "does not follow references" in answer(viewer).reason


def ask_memory(viewer: Viewer, number: int = 6, **fields: Any) -> None:
    query: dict[str, Any] = {"space": 0, "kind": MEMORY_KIND, "most": 9, **fields}
    viewer.send(m.Query(number=number, **query))


def test_the_first_of_two_samples_comes_before_the_second_and_all_is_bounded(
    asked: tuple[Asked, str], join: Join
) -> None:
    target, address = asked
    viewer = join(address, control=True)
    target.go_on.clear()
    ask_memory(viewer, over_millis=1500, held=True, sample_bytes=3)
    while (told := viewer.next(m.Answer)).report is None:
        assert told.state is AnswerState.UNDER_WAY
    assert told.state is AnswerState.UNDER_WAY
    assert told.report.grew is None
    target.go_on.set()
    found = answer(viewer)
    assert (found.number, found.state) == (6, AnswerState.ANSWERED)
    assert found.report is not None
    assert (found.report.secs, found.report.grew, found.report.resident) == (1.5, 77, 1 << 40)
    for report in (told.report, found.report):
        assert len(report.note) == 2000
        for table in (report.memory, report.holders, report.sites):
            assert len(table.rows) == 9
            assert len(str(table.rows[0][0])) == 250
    assert target.asked_memory == [
        MemoryQuestion(over_secs=1.5, most=9, held=True, sample_bytes=1024)
    ]


def test_one_sample_is_one_answer_that_a_client_accepts_at_its_largest(
    asked: tuple[Asked, str], join: Join
) -> None:
    target, address = asked
    viewer = join(address, control=True)
    ask_memory(viewer, most=1024)
    found = answer(viewer)
    assert found.report is not None
    assert len(found.report.memory.rows) == 1024
    assert target.asked_memory == [MemoryQuestion(over_secs=0, most=1024)]


def test_what_memory_is_for_is_told_to_the_controller_alone(
    asked: tuple[Asked, str], join: Join
) -> None:
    target, address = asked
    join(address, control=True)
    viewer = join(address)
    ask_memory(viewer)
    found = answer(viewer)
    assert found.state is AnswerState.REFUSED
    assert "controls" in found.reason
    assert not target.asked_memory


def test_a_question_about_memory_and_one_about_objects_take_each_others_place(
    asked: tuple[Asked, str], join: Join
) -> None:
    target, address = asked
    viewer = join(address, control=True)
    target.go_on.clear()
    ask_memory(viewer, 1, over_millis=1000)
    while viewer.next(m.Answer).report is None:
        pass
    ask(viewer, 2)
    replaced = answer(viewer)
    assert (replaced.number, replaced.state) == (1, AnswerState.REFUSED)
    assert target.given_up.acquire(timeout=PATIENCE_SECS), "the first is worked at no more"
    target.go_on.set()
    assert answer(viewer).number == 2


def test_what_goes_wrong_after_the_first_sample_is_said(
    asked: tuple[Asked, str], join: Join
) -> None:
    target, address = asked
    viewer = join(address, control=True)
    target.error = TargetError("process 1 has ended")
    ask_memory(viewer, over_millis=1)
    found = answer(viewer)
    assert (found.state, found.reason) == (AnswerState.UNKNOWN, "process 1 has ended")
    target.server.explain_memory_with(None)
    ask_memory(viewer)
    assert "does not say what all of the memory is for" in answer(viewer).reason
