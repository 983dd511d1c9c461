"""Charts equal the tables they show, and an invalid table is the server's fault."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from gcspy_drivers.traced.kinds import KINDS_OF_ALL
from gcspy_drivers.traced.whole import Whole
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace
from gcspy_protocol.details import AnswerState, DetailColumn, DetailTable, Query
from gcspy_protocol.errors import RemoteProtocolError

from gcspy_client.model.panels.chart import CHART_KINDS, chart_of
from gcspy_client.model.panels.session_questions import AskingOnce, SessionQuestion
from gcspy_server.api import Answer
from tests.objects.samples import path_of

MOST = 1024


@pytest.fixture(scope="module")
def whole() -> Iterator[Whole]:
    with open_trace(path_of("list")) as trace:
        made = Whole(RebuiltHeap(trace))
        yield made
        made.close()


def test_what_a_driver_tells_of_a_whole_trace_is_what_the_window_draws() -> None:
    assert CHART_KINDS == KINDS_OF_ALL


@pytest.mark.parametrize("in_bytes", [True, False])
def test_a_survival_curve_is_at_each_age_what_the_table_says(whole: Whole, in_bytes: bool) -> None:
    table = whole.tell("survival.gcs", "", MOST)
    chart = chart_of("survival.gcs", table, in_bytes=in_bytes)
    assert chart is not None
    names = [row[0] for row in table.rows]
    assert len(chart.curves) == len(set(names)) == 3
    for curve, name in zip(chart.curves, dict.fromkeys(names), strict=True):
        assert (np.diff(curve.y) <= 1e-9).all()
        for row in table.rows:
            if row[0] == name:
                _, age, *shares, _ = row
                high, low = shares[:2] if in_bytes else shares[2:]
                assert isinstance(age, int)
                assert isinstance(high, int)
                assert isinstance(low, int)
                assert curve.at(float(age)) == pytest.approx((high / 1e4, low / 1e4))
    assert "all objects" in chart.reading(1.0)


def test_ages_at_death_have_the_area_of_what_died_and_of_what_is_left(whole: Whole) -> None:
    for in_bytes, died, left in ((False, 2, 5), (True, 4, 6)):
        for kind in ("lifetimes.gcs", "lifetimes.bytes"):
            table = whole.tell(kind, "", MOST)
            chart = chart_of(kind, table, in_bytes=in_bytes)
            assert chart is not None
            for curve, place in zip(chart.curves, (died, left), strict=True):
                areas = np.diff(curve.x)[::2] * curve.y[::2]
                sums = sum(int(str(row[place])) for row in table.rows)
                assert areas.sum() == pytest.approx(sums)
    assert table.columns[died].name == "Died, bytes"
    assert table.columns[left].name == "Left, bytes"


def test_bars_of_collections_are_as_high_as_the_table_says_and_are_read_at_its_number(
    whole: Whole,
) -> None:
    table = whole.tell("collections", "ListLive$Node", MOST)
    chart = chart_of("collections", table, in_bytes=False)
    assert chart is not None
    for place, curve in enumerate(chart.curves):
        values = [int(str(row[3 + 2 * place])) for row in table.rows]
        assert curve.y[1::4].tolist() == values
        assert [curve.at(float(str(row[0]))) for row in table.rows] == [
            (value, value) for value in values
        ]
    assert chart.reading(1.0).startswith("GC 1  ·  allocated before 60.0 k objects")


def test_many_collections_are_lines(whole: Whole) -> None:
    row = whole.tell("collections", "", MOST).rows[0]
    table = DetailTable(rows=tuple((number, *row[1:]) for number in range(1, 100)))
    chart = chart_of("collections", table)
    assert chart is not None
    assert len(chart.curves[0].x) == 99


@pytest.mark.parametrize("kind", CHART_KINDS)
def test_an_empty_table_is_no_chart_and_a_strange_one_is_refused(kind: str) -> None:
    assert chart_of(kind, DetailTable()) is None
    for row in (
        (),
        ("all",),
        ("all", None, "x", 1, 1, 1, 1),
        (None,) * 11,
        ("a", "b", "c", "d", "e", "f", "g"),
    ):
        with pytest.raises(RemoteProtocolError, match="the table is not one of"):
            chart_of(kind, DetailTable(columns=(DetailColumn(name="?"),) * len(row), rows=(row,)))


def test_a_question_is_asked_once_and_of_what_is_requested_meanwhile_the_latest() -> None:
    sent: list[Query] = []
    asking = AskingOnce(sent.append)
    first, second, third = (SessionQuestion(1, kind) for kind in CHART_KINDS[:3])
    assert [asking.request(one) for one in (first, second, third, first)] == [None] * 4
    assert [query.kind for query in sent] == [first.kind]
    assert not asking.take(Answer(number=7, space=1, sequence=1, state=AnswerState.ANSWERED))
    told = Answer(number=sent[0].number, space=1, sequence=1, state=AnswerState.ANSWERED)
    assert asking.take(told)
    assert asking.request(first) is told
    assert len(sent) == 1
    asking.request(third)
    assert asking.take(
        Answer(number=sent[1].number, space=1, sequence=1, state=AnswerState.UNKNOWN)
    )
    assert asking.request(third) is not None
    asking.forgive()
    assert asking.request(third) is None
    assert asking.request(first) is told
