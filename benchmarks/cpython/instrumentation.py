"""Instrumentation for counting: milliseconds of processor time for each code object of modules of the standard library, and for each step.

    python -m benchmarks.cpython.instrumentation [--python PATH]... [--rounds N] [--json]

*All* is measured without the others: the difference to the sum of the steps is what lies between them, collections of garbage included. Each round is a process
of its own; the least of all rounds is printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.figures import tell

__all__ = ["main"]

_MEASURE = """
import importlib.util, json, sys, time
sys.path.insert(0, sys.argv[1])
from gcspy_counting import code_unit, instrumented_code, program

MODULES = "argparse bdb csv dataclasses html.parser json.encoder logging pathlib shutil textwrap tokenize".split()
steps, inner = {}, []

def timed(owner, name, step):
    called = getattr(owner, name)
    def run(*arguments):
        inner.append(0)
        begin = time.process_time_ns()
        try:
            return called(*arguments)
        finally:
            spent = time.process_time_ns() - begin
            steps[step] = steps.get(step, 0) + spent - inner.pop()
            if inner:
                inner[-1] += spent
    setattr(owner, name, run)

if sys.argv[2] == "steps":
    timed(program, "flow_graph_of", "flow graph")
    timed(program, "network_of", "flow graph")
    timed(program, "guessed_frequencies", "guess")
    timed(program, "path_plan", "plan")
    timed(instrumented_code, "FlowSolver", "solver")
    timed(program, "InstrumentedCode", "counters")
    timed(instrumented_code, "assemble", "assembler")
    timed(code_unit.CodeUnit, "find_sites", "sites")
sources = [importlib.util.find_spec(name).origin for name in MODULES]
codes = [compile(open(each, encoding="utf-8").read(), each, "exec", dont_inherit=True) for each in sources]
counted = program.CountedProgram()
begin = time.process_time_ns()
for each in codes:
    counted.instrument(each)
steps["all"] = time.process_time_ns() - begin
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2],
    "code_objects": counted.code_objects(),
    "millis": {step: nanos / 1e6 / counted.code_objects() for step, nanos in steps.items()},
}))
"""
STEPS = ("assembler", "flow graph", "guess", "plan", "solver", "counters", "sites")


def _round(python: str, what: str) -> dict[str, Any]:
    """Instrument once; return milliseconds a code object by step, or of all.

    Raises:
        RuntimeError: It failed.
    """
    import gcspy_counting

    folder = str(Path(gcspy_counting.__file__).parents[1])
    done = subprocess.run(
        [python, "-c", _MEASURE, folder, what], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(python: str, rounds: int) -> dict[str, Any]:
    """Return the least of some rounds.

    Raises:
        RuntimeError: It failed.
    """
    whole = [_round(python, "all") for _ in range(rounds)]
    parts = [_round(python, "steps") for _ in range(rounds)]
    millis = {step: min(each["millis"][step] for each in parts) for step in STEPS}
    millis["all"] = min(each["millis"]["all"] for each in whole)
    return {**whole[0], "millis": millis}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", dest="pythons")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        results = [measure(each, options.rounds) for each in options.pythons or [sys.executable]]
    except (OSError, RuntimeError) as error:
        print(f"instrumentation: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(results))
    else:
        print(f"| Python | code objects | all | {' | '.join(STEPS)} |")
        print("|---|--:|--:|" + "--:|" * len(STEPS))
    for each in results:
        millis = each["millis"]
        if not options.json:
            cells = " | ".join(f"{millis[step]:.2f}" for step in STEPS)
            print(f"| {each['version']} | {each['code_objects']} | {millis['all']:.2f} | {cells} |")
        name = f"instrumentation, {each['version']}, ms a code object"
        tell(f"{name}, assembler", millis["assembler"], "ms", budget="0.3")
        tell(f"{name}, all", millis["all"], "ms", budget="told")
    return 0


if __name__ == "__main__":
    sys.exit(main())
