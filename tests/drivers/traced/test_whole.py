"""Reports about a whole trace equal the results of the analyses, in numbers that the wire has."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from gcspy_drivers.traced import TracedOptions, TracedSession, TraceQueryService
from gcspy_drivers.traced.kinds import KINDS_OF_ALL, TYPES
from gcspy_objects.analysis.gather import gather
from gcspy_objects.analysis.kinds import collections
from gcspy_objects.analysis.survival import survival
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import CommandError, GCspyError

from gcspy_server.api import DetailTable
from tests.objects.samples import path_of


@pytest.fixture(scope="module")
def heap() -> Iterator[RebuiltHeap]:
    with open_trace(path_of("promote")) as trace:
        made = RebuiltHeap(trace)
        yield made
        made.close()


@pytest.fixture
def query_service(heap: RebuiltHeap) -> Iterator[TraceQueryService]:
    session = TracedSession(heap, TracedOptions())
    session.run()
    made = TraceQueryService(session)
    yield made
    made.close()


def ask(
    query_service: TraceQueryService, kind: str, text: str = "", most: int = 1024
) -> DetailTable:
    table = query_service.tell(kind, text, most, number=1, space="Eden", tile=None, extent=None)
    assert table is not None
    return table


def test_each_space_tells_of_the_whole_trace_and_what_is_in_its_tiles_first(
    query_service: TraceQueryService, heap: RebuiltHeap
) -> None:
    session = TracedSession(heap, TracedOptions())
    for space in session.server.spaces:
        assert space.schema.details[0] == TYPES
        assert set(KINDS_OF_ALL) <= set(space.schema.details)


def test_what_is_told_of_all_objects_is_what_the_analyses_find(
    query_service: TraceQueryService, heap: RebuiltHeap
) -> None:
    with gather(heap) as store:
        assert list(ask(query_service, "collections").rows) == list(collections(store).rows)
        found = survival(store, points=240).rows
    told = ask(query_service, "survival.bytes").rows
    assert len(told) == len(found) > 100
    for row, exact in zip(told, found, strict=True):
        assert row[:2] == exact[:2]
        assert [int(str(cell)) / 1e6 for cell in row[2:6]] == pytest.approx(
            list(exact[2:6]), abs=1e-6
        )


def test_a_type_can_be_named_and_rows_that_are_too_many_are_counted(
    query_service: TraceQueryService,
) -> None:
    table = ask(query_service, "collections", " Promote$Tmp ", 3)
    assert (len(table.rows), table.rest) == (3, 5)
    with pytest.raises(GCspyError, match="no type called 'Nobody'"):
        ask(query_service, "lifetimes.gcs", "Nobody")


def test_without_the_engine_the_remedy_is_told(
    query_service: TraceQueryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("gcspy_objects.analysis")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(CommandError, match=r"pip install '\.\[objects\]'"):
        ask(query_service, "survival.gcs")
