"""Runs random programs under each plan and compares the counts of all sites with one counter a site.

``python plan_comparison.py FOLDER FIRST LAST [small]``: FOLDER has `gcspy_counting`; prints a JSON object. Runs in the interpreter whose code objects are tested, so it is
the standard library alone.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

__all__ = ["compare"]

Reading = dict[tuple[Any, ...], "int | None"]
_MOST_READINGS = 5
_BETWEEN = 8
_HEAD_EVERY = 8
_FREED_EVERY = 8
"""Programs after which what they left is freed."""


def _run(
    codes: list[CodeType], plain: CodeType | None, plan: str, planned_anew: bool
) -> tuple[list[Reading | str], int, int]:
    """Return the counts at some probes and at the end, the increments, and the raises.

    Args:
        codes: What runs and is counted, one after the other.
        plain: What runs before it and is not counted.
        plan: Where counters stand.
        planned_anew: Whether they are placed anew now and then.
    """
    from gcspy_counting.plans.plan import PlanKind
    from gcspy_counting.program import CountedProgram

    program = CountedProgram(PlanKind(plan), least_increments=20)
    found: list[Reading | str] = []
    probes = 0

    def read() -> None:
        reading: Reading = {}
        for place, site in enumerate(program.counts()):
            where = site.place
            reading[place, where.line, where.function, where.what] = site.count
        found.append(reading)

    def probe() -> None:
        nonlocal probes
        probes += 1
        if probes % _BETWEEN == 3 and len(found) < _MOST_READINGS:
            read()
        if planned_anew and probes % _BETWEEN == 5:
            program.replan()

    counted = [program.instrument(code) for code in codes]
    names: dict[str, Any] = {"__name__": "program", "probe": probe}
    gc.freeze()  # what is there now holds no frame of the program: it is not looked through
    gc.disable()
    try:
        for code in [plain, *counted] if plain is not None else counted:
            exec(code, names)  # noqa: S102  # a program of this test
    except BaseException as error:  # noqa: BLE001  # the same in all plans, or the plans differ
        found.append(type(error).__name__)
    read()
    names.clear()
    gc.enable()
    gc.collect(0)  # nothing has been collected since the program began: all of it is young
    read()
    return found, program.increments(), program.raises()


def compare(first: int, last: int, small: bool = False) -> dict[str, Any]:
    """Compare the programs of the seeds `first` to `last` - 1.

    Args:
        first: First seed.
        last: Seed behind the last.
        small: Programs of one function, each with two of the three plans; what all of them call is counted in one of eight only.
    """
    programs = import_module("random_programs")
    warnings.simplefilter("ignore")  # coroutines that nobody awaits are part of it
    sys.unraisablehook = lambda _: None
    head = compile(programs.random_head(), "head", "exec", dont_inherit=True)
    counted = import_module("gcspy_counting.program")
    graph_of = counted.flow_graph_of
    increments: dict[str, int] = {}
    differing = []
    raises = 0
    for seed in range(first, last):
        if seed % _FREED_EVERY == 0:
            gc.unfreeze()
            gc.collect()
        source = programs.random_program(seed, small)
        code = compile(source, "program", "exec", dont_inherit=True)
        # The graph of a code object does not depend on the plan.
        vars(counted)["flow_graph_of"] = cache(graph_of)
        plain = head if small and seed % _HEAD_EVERY else None
        codes = [code] if plain is not None else [head, code]
        expected, count, _ = _run(codes, plain, "site", False)
        increments["site"] = increments.get("site", 0) + count
        plans: tuple[str, ...] = ("block", "paths", "tree")
        if small:
            plans = (plans[seed // 2 % 2], "tree")
        for plan in plans:
            got, count, raised = _run(codes, plain, plan, plan == "tree")
            increments[plan] = increments.get(plan, 0) + count
            raises += raised
            if got != expected:
                differing.append([seed, plan, _first_difference(got, expected)])
    return {"increments": increments, "differing": differing, "raises": raises}


def _first_difference(got: list[Reading | str], expected: list[Reading | str]) -> str:
    for place, (one, other) in enumerate(zip(got, expected, strict=False)):
        if isinstance(one, str) or isinstance(other, str):
            if one != other:
                return f"reading {place}: {one} instead of {other}"
            continue
        for key in other:
            if one.get(key) != other[key]:
                return f"reading {place}: {key}: {one.get(key)} instead of {other[key]}"
    return f"{len(got)} instead of {len(expected)} readings"


if __name__ == "__main__":
    sys.path[:0] = [sys.argv[1], str(Path(__file__).parent)]
    print(json.dumps(compare(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["small"])))
