"""Who holds the objects of a trace, asked at the events of its session, as the window does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gcspy_drivers.traced import TracedOptions, TracedSession, TraceQueryService
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import CommandError, TargetError

from gcspy_server.api import HeapQuestion, HeapQuestionKind
from tests.objects.samples import path_of


@pytest.fixture(scope="module", name="session")
def _session() -> Iterator[TracedSession]:
    with open_trace(path_of("pointers")) as trace, RebuiltHeap(trace) as heap:
        session = TracedSession(heap, TracedOptions())
        session.run()
        yield session


@pytest.fixture(name="service")
def _service(session: TracedSession) -> Iterator[TraceQueryService]:
    service = TraceQueryService(session)
    yield service
    service.close()


def test_every_event_is_answered_or_says_why_not(
    session: TracedSession, service: TraceQueryService
) -> None:
    question = HeapQuestion(kind=HeapQuestionKind.HOLDERS, type_name="Promote$Tree")
    first = session.heap.collections[0]
    answered = 0
    for number, event in list(enumerate(session.events, start=1))[::3]:
        if event <= first.end_event:
            with pytest.raises(CommandError, match="no collection has ended yet"):
                service.investigate(question, number)
            continue
        table = service.investigate(question, number)
        assert table is not None
        last = max(
            (one for one in session.heap.collections if one.end_event < event),
            key=lambda one: one.number,
        )
        assert f" GC {last.number}: " in table.note
        assert table.rows[0][1] == "Promote$Tree[]"
        for row in table.rows[1:]:
            # A running method holds trees at a minor collection, which does not report it.
            assert not last.full
            assert str(row[0]).startswith("(a root that is not in the trace)")
        answered += 1
    assert answered > len(session.heap.collections) // 3
    assert service.investigate(question, len(session.events) + 1) is None


def test_a_tile_an_address_and_a_field_are_found(
    session: TracedSession, service: TraceQueryService
) -> None:
    last = len(session.events)
    table = service.investigate(
        HeapQuestion(kind=HeapQuestionKind.HOLDERS, type_name="URLClassPath", most=5), last
    )
    assert table is not None
    assert any(str(row[0]).endswith(".ucp") for row in table.rows), "a field by its name"
    address = int(str(table.rows[0][6]), 16)
    one = service.investigate(
        HeapQuestion(kind=HeapQuestionKind.HOLDERS, address=address, most=5), last
    )
    assert one is not None
    assert sum(int(row[2] or 0) for row in one.rows) == 1
    many = service.investigate(
        HeapQuestion(
            kind=HeapQuestionKind.HOLDERS, address=address, extent_bytes=1 << 14, most=1000
        ),
        last,
    )
    assert many is not None
    assert sum(int(row[2] or 0) for row in many.rows) > 50
    with pytest.raises(TargetError, match="no object"):
        service.investigate(HeapQuestion(kind=HeapQuestionKind.HOLDERS, address=8), last)
