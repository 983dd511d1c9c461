"""Cost of `gcspy trace`: processor time of programs with it and without, in pairs, and bytes an event.

    python -m benchmarks traced_programs [--rounds N] [--python INTERPRETER]...

Two ratios for each kind of stack: of the program alone, whose threads wait for nobody else, and with gcspy's own process, which
works on another core. Programs that are not installed are left out.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.figures import tell
from gcspy.tracer.traced_run import PythonProgram, TracedRun, TraceSettings

__all__ = ["main"]

_SQL = (
    "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<600000) "
    "insert into t select x, hex(x*7919)||'abc' from c; create index i on t(b); select count(*) from t where b like '%5%';"
)
_NATIVE = {
    "sqlite3": [":memory:", _SQL],
    "perl": ["-e", 'my %h; $h{$_}="x$_" for 1..800000; print scalar keys %h'],
}
_PYTHON = """
import json
rows = {f"a{one}": [{"x": one, "y": str(one), "z": [1.5 * one, None]}] * 3 for one in range(400)}
for _ in range(200):
    json.loads(json.dumps(rows))
def make(depth):
    return (make(depth - 1), make(depth - 1)) if depth else (None, None)
for _ in range(40):
    make(12)
"""


class _Cost(NamedTuple):
    """Processor time of a run."""

    program: float
    gcspy: float
    events: int
    file_bytes: int


def _children_secs() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def plain_secs(command: list[str]) -> float:
    """Return the processor time of a program alone."""
    before = _children_secs()
    pid = os.spawnvp(os.P_NOWAIT, command[0], command)
    os.waitpid(pid, 0)
    return _children_secs() - before


def traced_cost(command: list[str], stacks: str, python: str | None, folder: Path) -> _Cost:
    """Return the cost of a traced program."""
    settings = TraceSettings(output=folder / "trace", stacks=stacks)
    how = None if python is None else PythonProgram(interpreter=python, form="code")
    before, own = _children_secs(), time.process_time()
    with TracedRun(command, settings, how) as run:
        run.follow(lambda _definitions: b"")
    summary = run.summaries[0]
    own = time.process_time() - own
    return _Cost(_children_secs() - before, own, summary.counts.events, summary.bytes)


def compare(
    name: str, plain: list[str], command: list[str], python: str | None, rounds: int, folder: Path
) -> None:
    """Measure a program in pairs, and print a line for each kind of stack."""
    kinds = ("caller", "full") if python else ("none", "caller", "full")
    for stacks in kinds:
        alone, both = [], []
        for _ in range(rounds):
            base = plain_secs(plain)
            cost = traced_cost(command, stacks, python, folder)
            alone.append(cost.program / base)
            both.append((cost.program + cost.gcspy) / base)
        program, all_of_it = statistics.median(alone), statistics.median(both)
        each = cost.file_bytes / max(cost.events, 1)
        load = os.getloadavg()[0]
        print(
            f"{name:12} {stacks:7} program x{program:.2f}, with gcspy x{all_of_it:.2f}; {cost.events:,} events, {each:.2f} B each; load {load:.1f}",
            flush=True,
        )
        tell(f"{name}, stacks {stacks}: processor time of the program", program)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks traced_programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as place:
        for name, arguments in _NATIVE.items():
            if shutil.which(name) is None:
                print(f"{name} is not installed", flush=True)
                continue
            command = [name, *arguments]
            compare(name, command, command, None, options.rounds, Path(place))
        for python in options.python or [sys.executable]:
            plain = [python, "-c", _PYTHON]
            compare(Path(python).name, plain, [_PYTHON], python, options.rounds, Path(place))


if __name__ == "__main__":
    main()
