"""`python -m benchmarks`: all of them, one after the other, each in a process of its own; at the end, a summary.

    python -m benchmarks [NAME]... [--json] [--most-minutes M]
    python -m benchmarks NAME [--json] OPTION...

Of one benchmark alone, its own options can be given (but for `--json`, which is then this command's).
One that fails, or takes too long, does not hide the others. The output of each is shown as it comes; with `--json`
it goes to standard error, and standard output gets one object.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness.figures import VARIABLE, Figure, told_in

BENCHMARKS = {
    "encoding": "benchmarks.server.encoding",
    "spaces": "benchmarks.server.spaces",
    "cost": "benchmarks.cpython.cost",
    "exact": "benchmarks.cpython.exact",
    "hold": "benchmarks.cpython.hold",
    "accesses": "benchmarks.cpython.accesses",
    "viewers": "benchmarks.server.viewers",
    "classroom": "benchmarks.server.classroom",
    "pages": "benchmarks.window.pages",
    "flood": "benchmarks.server.flood",
    "paint": "benchmarks.window.paint",
    "start": "benchmarks.window.start",
    "idle": "benchmarks.window.idle",
    "recording": "benchmarks.recording.recording",
    "replay": "benchmarks.recording.replay",
    "storage": "benchmarks.recording.storage",
    "lossless": "benchmarks.server.lossless",
    "gcspy_h": "benchmarks.server.gcspy_h",
    "history": "benchmarks.window.history",
    "history_window": "benchmarks.window.history_window",
    "views": "benchmarks.window.views",
    "views_window": "benchmarks.window.views_window",
    "compare": "benchmarks.window.compare",
    "scrub": "benchmarks.window.scrub",
    "timeline": "benchmarks.window.timeline",
    "expressions": "benchmarks.window.expressions",
    "tasks": "benchmarks.window.tasks",
    "levels": "benchmarks.cpython.levels",
    "holders": "benchmarks.cpython.holders",
    "malloc": "benchmarks.native.malloc",
    "running_malloc": "benchmarks.native.running_malloc",
    "noted_accesses": "benchmarks.native.noted_accesses",
    "simulator": "benchmarks.objects.simulator",
    "traces": "benchmarks.objects.traces",
    "trace_format": "benchmarks.objects.trace_format",
    "traced_programs": "benchmarks.native.traced_programs",
    "rebuilt_heap": "benchmarks.objects.rebuilt_heap",
    "long_traces": "benchmarks.objects.long_traces",
    "capacity": "benchmarks.fleet.capacity",
    "export_metrics": "benchmarks.fleet.export_metrics",
    "trace_session": "benchmarks.objects.trace_session",
}
"""The modules of those that need nothing but this machine, by name. Those of `BY_NAME_ONLY` need a package index or a JVM, and are run by their names."""

BY_NAME_ONLY = {
    "programs": "benchmarks.cpython.programs",
    "paper": "benchmarks.paper.paper",
    "slowdown": "benchmarks.cpython.slowdown",
    "access_ratio": "benchmarks.cpython.access_ratio",
    "beside": "benchmarks.cpython.beside",
    "holders_beside": "benchmarks.cpython.holders_beside",
    "leaks": "benchmarks.leaks.leaks",
    "site_counts": "benchmarks.cpython.site_counts",
    "counter_cost": "benchmarks.cpython.counter_cost",
    "instrumentation": "benchmarks.cpython.instrumentation",
    "counter_encodings": "benchmarks.cpython.counter_encodings",
    "counts_beside_trace": "benchmarks.cpython.counts_beside_trace",
    "jvm_holders": "benchmarks.jvm.jvm_holders",
    "jvm_samples": "benchmarks.jvm.jvm_samples",
    "jvm_poll": "benchmarks.jvm.jvm_poll",
    "jvm_exact": "benchmarks.jvm.jvm_exact",
    "jvm_site_counts": "benchmarks.jvm.jvm_site_counts",
    "java_counter_cost": "benchmarks.jvm.java_counter_cost",
    "java_plans": "benchmarks.jvm.java_plans",
    "jvm_slowdown": "benchmarks.jvm.jvm_slowdown",
    "jvm_objects": "benchmarks.jvm.jvm_objects",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a benchmark went.

    Attributes:
        name: Its name.
        problem: Why it has not all its figures; "" when it has.
        seconds: It took.
        load: Processes that wanted a core in the minute before it ended, its own included.
        figures: The figures it reported.
    """

    name: str
    problem: str
    seconds: float
    load: float
    figures: tuple[Figure, ...]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a benchmark and every process that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # ended just now, and all its children with it
    process.wait()


def run(command: list[str], name: str, *, most_secs: float, to_stderr: bool) -> Outcome:
    """Run one benchmark to its end.

    Args:
        command: Command to run.
        name: Its name.
        most_secs: Time limit; the program is ended after it.
        to_stderr: Where what it prints goes.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder:
        path = Path(folder) / "figures"
        # A session of its own, so that a Ctrl-C comes here alone and what it started is ended with it.
        process = subprocess.Popen(
            command,
            env={**os.environ, VARIABLE: str(path)},
            stdout=sys.stderr if to_stderr else None,
            start_new_session=True,
        )
        try:
            code = process.wait(most_secs)
            problem = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            problem = f"ended after {most_secs / 60:.0f} minutes"
        except KeyboardInterrupt:
            problem = "interrupted"
        finally:
            _end(process)
        figures = tuple(told_in(path))
    load = os.getloadavg()[0]
    return Outcome(
        name=name, problem=problem, seconds=time.monotonic() - began, load=load, figures=figures
    )


def summary(outcomes: list[Outcome]) -> str:
    """All figures beside their budgets, and what could not be measured."""
    rows = [
        (o.name, figure.what, str(figure), figure.budget) for o in outcomes for figure in o.figures
    ]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    lines = [
        f"{name:<{widths[0]}}  {what:<{widths[1]}}  {value:>{widths[2]}}  {budget}".rstrip()
        for name, what, value, budget in rows
    ]
    times = ", ".join(f"{o.name} {o.seconds:.0f} s at load {o.load:.1f}" for o in outcomes)
    lines.append(f"{os.cpu_count()} cores; {times}")
    lines += [f"not complete: {o.name}, {o.problem}" for o in outcomes if o.problem]
    return "\n".join(lines)


def main() -> int:
    """Run them; the exit code is 1 when one has not all its figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join((*BENCHMARKS, *BY_NAME_ONLY))}; by default the first {len(BENCHMARKS)}",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    parser.add_argument(
        "--most-minutes", type=float, default=60.0, help="end a benchmark that takes longer"
    )
    options, own_options = parser.parse_known_args()
    if own_options and len(options.names) != 1:
        parser.error(f"{own_options[0]} is no option of all; name the benchmark that it is for")
    if unknown := [name for name in options.names if name not in (*BENCHMARKS, *BY_NAME_ONLY)]:
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    outcomes: list[Outcome] = []
    for name in options.names or BENCHMARKS:
        print(f"\n== {name}", flush=True, file=sys.stderr if options.json else sys.stdout)
        command = [sys.executable, "-m", {**BENCHMARKS, **BY_NAME_ONLY}[name], *own_options]
        outcomes.append(
            run(command, name, most_secs=options.most_minutes * 60, to_stderr=options.json)
        )
        if outcomes[-1].problem == "interrupted":
            break
    if options.json:
        facts = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "system": platform.platform(),
            "cores": os.cpu_count(),
        }
        print(json.dumps({**facts, "benchmarks": [asdict(outcome) for outcome in outcomes]}))
    else:
        print(f"\n== summary\n{summary(outcomes)}")
    return 1 if any(outcome.problem for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
