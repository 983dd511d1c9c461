"""Plans, the solver, new plans, and code objects that stay what they were."""

from __future__ import annotations

import dis
import os
import sys
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from gcspy_counting.flow_graph import OUTSIDE, EdgeKind, flow_graph_of
from gcspy_counting.instrumented_code import InstrumentedCode
from gcspy_counting.network import network_of
from gcspy_counting.plans.frequencies import guessed_frequencies
from gcspy_counting.plans.path_plan import path_plan, paths_of
from gcspy_counting.plans.plan import Plan, PlanKind
from gcspy_counting.plans.tree_plan import tree_plan
from gcspy_counting.program import CountedProgram
from gcspy_counting.sites import SiteChoice
from gcspy_counting.solver import FlowSolver, NotATreeError

pytestmark = pytest.mark.skipif(
    not (3, 11) <= sys.version_info[:2] <= (3, 14), reason="instrumented are 3.11 to 3.14"
)

BRANCHES = """
def branches(values):
    out = []
    for value in values:
        if value % 2:
            out += [value]
        else:
            out += (value, value)
        if value > 5:
            out += [{value}]
    return out
"""


def function_code(source: str) -> CodeType:
    module = compile(source, "source", "exec")
    return next(each for each in module.co_consts if isinstance(each, CodeType))


def test_what_flows_in_flows_out() -> None:
    network = network_of(flow_graph_of(function_code(BRANCHES)))
    flow = guessed_frequencies(network)
    edges = network.graph.edges
    assert edges[0].kind is EdgeKind.ENTRY
    for block in range(len(network.graph.blocks)):
        into = sum(flow[at] for at, each in enumerate(edges) if each.target == block)
        out = sum(flow[at] for at, each in enumerate(edges) if each.source == block)
        assert out == pytest.approx(into, rel=0.5)
    assert {each.target for each in edges if each.kind is EdgeKind.EXIT} == {OUTSIDE}


def test_each_edge_belongs_to_one_path() -> None:
    network = network_of(flow_graph_of(function_code(BRANCHES)))
    paths = paths_of(network, guessed_frequencies(network))
    taken = [edge for path in paths for edge in path]
    assert sorted(taken) == list(range(len(network.graph.edges)))
    assert len(paths) >= 4  # the function, its loop, two branches


@pytest.mark.parametrize("make", [tree_plan, path_plan])
def test_a_counter_less_leaves_a_site_unknown(make: Any) -> None:
    network = network_of(flow_graph_of(function_code(BRANCHES)))
    plan = make(network, guessed_frequencies(network))
    needed = network.block_edges.values()
    FlowSolver(network, plan.counted, needed)
    for edge in plan.counted:
        with pytest.raises(NotATreeError):
            FlowSolver(network, plan.counted - {edge}, needed)


def test_frequent_edges_carry_no_counters() -> None:
    """With observed frequencies of 1,000 odd and 1 even values, the odd branch is not counted."""
    program = CountedProgram(PlanKind.TREE, least_increments=10)
    names: dict[str, Any] = {}
    exec(program.instrument(compile(BRANCHES, "source", "exec")), names)  # noqa: S102  # a program of this test
    values = [1] * 1000 + [2]
    expected = {"list": 1000, "tuple": 1}
    names["branches"](values)
    done = program.replan()
    assert done.code_objects == 1
    assert done.expected < done.before
    before = program.increments()
    names["branches"](values)
    assert program.increments() - before == pytest.approx(done.expected, abs=3)
    counts = {
        (each.place.what, each.place.line): each.count
        for each in program.counts()
        if each.place.function == "branches" and each.place.always
    }
    assert counts["list", 6] == 2 * expected["list"]
    assert counts["tuple", 8] == 2 * expected["tuple"]
    assert counts["set", 10] == 0


def test_functions_in_the_middle_of_a_call_are_counted_while_they_are() -> None:
    source = "def middle(probe):\n    for n in range(5):\n        x = [n]\n        probe()\n        y = {n}\n"
    for kind in (PlanKind.BLOCK, PlanKind.PATHS, PlanKind.TREE):
        program = CountedProgram(kind, SiteChoice.DEFINITE)
        names: dict[str, Any] = {}
        exec(program.instrument(compile(source, "source", "exec")), names)  # noqa: S102  # a program of this test
        found: list[dict[str, int | None]] = []

        def probe(program: CountedProgram = program, found: list[Any] = found) -> None:
            found.append({each.place.what: each.count for each in program.counts()})

        names["middle"](probe)
        assert [(each["list"], each["set"]) for each in found] == [(n + 1, n) for n in range(5)]


def test_places_in_the_source_stay() -> None:
    """Instrument modules of the standard library: each instruction keeps its lines and columns, each handler its cover."""
    paths = sorted(Path(os.__file__).parent.glob("*.py"))[:12]
    checked = 0
    for path in paths:
        todo = [compile(path.read_bytes(), path, "exec", dont_inherit=True)]
        while todo:
            code = todo.pop()
            todo += [each for each in code.co_consts if isinstance(each, CodeType)]
            network = network_of(flow_graph_of(code))
            plan = tree_plan(network, guessed_frequencies(network))
            if not network.graph.is_conserved:
                plan = Plan(PlanKind.BLOCK, network, frozenset(network.block_edges.values()))
            new = InstrumentedCode(plan, code.co_consts).code
            if new is code:
                continue
            old_lines = [each[2] for each in code.co_lines() if each[2] is not None]
            new_lines = [each[2] for each in new.co_lines() if each[2] is not None]
            assert set(new_lines) == set(old_lines)
            names = [each.opname for each in dis.get_instructions(code)]
            added = [each.opname for each in dis.get_instructions(new)]
            assert len(added) > len(names)
            checked += 1
    assert checked > 300


def test_a_traceback_names_the_same_place() -> None:
    source = "def fails(x):\n    a = [x]\n    return (a[0] +\n        (1 // x))\n"
    texts = []
    for instrumented in (False, True):
        code = compile(source, "source", "exec")
        if instrumented:
            code = CountedProgram().instrument(code)
        names: dict[str, Any] = {}
        exec(code, names)  # noqa: S102  # a program of this test
        try:
            names["fails"](0)
        except ZeroDivisionError as error:
            texts.append(
                [
                    (f.lineno, f.end_lineno, f.colno, f.end_colno, f.name)
                    for f in traceback.extract_tb(error.__traceback__)
                ][1:]
            )
    assert texts[0] == texts[1]
    assert texts[0]
