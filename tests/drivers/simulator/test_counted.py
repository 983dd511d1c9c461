"""The counted function: what follows from the counters of each plan is what was executed, at every step, and what real counters say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest
from gcspy_counting.flow_graph import OUTSIDE, flow_graph_of
from gcspy_counting.instrumented_code import InstrumentedCode
from gcspy_counting.sites import SiteChoice
from gcspy_drivers.simulator.counted import PLANS, CountedExecution, sort_out, walk
from gcspy_drivers.simulator.counted.execution import OBSERVED
from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plans import make_plan
from gcspy_drivers.simulator.programs import make_run
from gcspy_protocol.errors import LocalProtocolError


def calls(number: int, *, texts: float = 0.1) -> Iterator[list[Any]]:
    dice = random.Random(5)
    for _ in range(number):
        yield ["text" if dice.random() < texts else dice.randrange(100) for _ in range(6)]


def check(execution: CountedExecution) -> None:
    """Compare what follows from the counters with what was executed."""
    executed, inside = execution.executed, execution.inside
    for name, tally in zip(PLANS, execution.plans, strict=True):
        for edge, flow in tally.flows(executed, inside).items():
            assert flow == executed.taken[edge], f"{name}, edge {edge}"
        counts = tally.site_counts(executed, inside)
        assert counts == {
            site.row: executed.executions.get(site.row, 0) for site in execution.sites
        }, name


def test_all_flows_follow_at_every_step_also_within_a_call_and_behind_an_exception() -> None:
    execution = CountedExecution(sort_out)
    raised = 0
    for number, rows in enumerate(calls(60)):
        for visit in execution.call(rows):
            raised += visit.raised
            check(execution)
        if number in (20, 40):
            execution.plan_anew()
            check(execution)
    assert raised > 20
    assert execution.inside is None


def test_counters_that_really_stand_in_the_function_say_the_same() -> None:
    execution = CountedExecution(sort_out)
    rows = list(calls(40))
    for each in rows:
        for _ in execution.call(each):
            pass
    for name, tally in zip(PLANS, execution.plans, strict=True):
        real = InstrumentedCode(tally.plan, sort_out.__code__.co_consts)
        instrumented = FunctionType(real.code, globals())
        for each in rows:
            instrumented(each)
        assert real.counts() == tally.site_counts(execution.executed, None), name
        assert real.increments() == tally.increments(execution.executed), name


def test_new_plans_take_fewer_increments_and_keep_what_was_counted_before() -> None:
    execution = CountedExecution(sort_out)
    for each in calls(40):
        list(execution.call(each))
    before = execution.plans[OBSERVED].increments(execution.executed)
    assert execution.plan_anew() > 0
    assert execution.plans[OBSERVED].increments(execution.executed) == before
    for each in calls(40):
        list(execution.call(each))
    shares = execution.shares()
    assert shares[0] == 100
    assert shares[OBSERVED] == min(each for each in shares if each is not None)
    assert execution.plan_anew() == 0, "the rows are what they were"


def fails(number: int) -> Any:
    try:
        if number:
            return [number // (number - 1)]
        raise KeyError(number)
    except ZeroDivisionError:
        return {number}


@pytest.mark.parametrize(("number", "leaves"), [(0, True), (1, False), (2, False)])
def test_the_way_of_a_call_leads_from_edge_to_edge_and_out(number: int, leaves: bool) -> None:
    graph = flow_graph_of(fails.__code__, SiteChoice.DEFINITE)
    way = walk(graph, fails, number)
    at = OUTSIDE
    for visit in way:
        edge = graph.edges[visit.edge]
        assert (edge.source, edge.target) == (at, visit.block)
        at = OUTSIDE if visit.raised else visit.block
    assert at == OUTSIDE
    assert any(visit.raised for visit in way) == (number == 1)
    assert (graph.instructions.ops[way[-2].rows[-1]] in _raising()) == leaves


def _raising() -> frozenset[int]:
    from gcspy_counting.bytecode.opcodes import RAISES

    return RAISES


def test_a_knob_with_names_is_turned_by_a_name_and_refuses_others() -> None:
    run = make_run("counted", Mutator(make_plan("marksweep", Heap(16384, roots=96))))
    run.program.turn("counters", PLANS[2])
    assert next(each for each in run.program.knobs() if each.name == "counters").value == PLANS[2]
    with pytest.raises(LocalProtocolError, match="paths: DuckTracks"):
        run.program.turn("counters", "none")


def test_a_call_ends_before_another_thread_begins_one() -> None:
    run = make_run("counted", Mutator(make_plan("marksweep", Heap(32768, roots=192), threads=2)))
    ended = 0
    for _ in range(400):
        assert run.step()
        ended += sum(kind == "Call ends" for kind, _ in run.program.happened())
    assert ended >= 3
