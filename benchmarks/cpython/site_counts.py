"""Counted programs: exactness, increments and time of each plan, on programs of the pyperformance suite.

    python -m benchmarks.cpython.site_counts [--program NAME]... [--python PATH] [--sites wide|definite] [--plan PLAN]... [--scale X] [--pairs N] [--least] [--json]

Each program runs with one counter a site, a block, a path (DuckTracks) and off a spanning tree that is placed anew from observed frequencies. The counts
of all sites are compared with those of one counter a site: the difference must be 0. Times are processor time, in pairs with the program alone; what starts
and instruments is not among them, and has columns of its own.

Needs a package index for the suite (see `suite`).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.figures import tell
from benchmarks.harness.suite import PROGRAMS, Program, Suite, installed

__all__ = ["main"]

_STARTS = 9
_REPETITIONS = 5
"""Runs with one counter a site in which a count that differs between plans is looked for again: it may differ by itself."""
_PLANS = ("site", "block", "paths", "tree")
_MORE = (
    Program("chaos", 50),
    Program("coroutines", 130),
    Program("crypto_pyaes", 45),
    Program("generators", 80),
    Program("go", 25),
    Program("hexiom", 400),
    Program("logging", 25_000, ("simple",)),
    Program("nqueens", 40),
)
"""Programs of the suite beside those that are recorded."""
_LIBRARIES = {
    "crypto_pyaes": ("pyaes",),
    "logging": ("logging",),
    "chameleon": ("chameleon",),
    "deepcopy": ("copy",),
    "docutils": ("docutils",),
    "html5lib": ("html5lib",),
    "json_dumps": ("json",),
    "mako": ("mako",),
    "pickle_pure_python": ("pickle",),
    "tomli_loads": ("tomli",),
}
"""Modules of libraries that a program consists of, and that are counted, too."""


@dataclass(frozen=True, slots=True)
class Result:
    """One program.

    Attributes:
        program: Its name.
        sites: Number of sites that ran.
        executions: Of all of them.
        differing: Sites whose counts differ from one counter a site, by plan, without those that are unsteady.
        unsteady: Sites whose counts differ between runs of one counter a site, as that of what happens in the last millisecond of a second.
        increments: By plan.
        least: Increments of the best places of counters for what was executed, in a run of its own; None: not asked for.
        slowdown: Processor time without start and instrumentation, divided by that of the program alone, by plan, median of the pairs.
        instrumenting_secs: Of the last plan.
        code_objects: Number of code objects.
        raises: Exceptions that left a block.
    """

    program: str
    sites: int
    executions: int
    differing: dict[str, int]
    unsteady: int
    increments: dict[str, int]
    least: int | None
    slowdown: dict[str, float]
    instrumenting_secs: float
    code_objects: int
    raises: int


def _processor_secs(command: list[str], folder: Path) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise Unavailable(done.stderr.strip()[-300:])
    secs = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return secs, done.stderr


def _counted(
    suite: Suite, program: Program, plan: str, choice: str, scale: float, *, least: bool = False
) -> tuple[float, dict[str, Any]]:
    import gcspy_counting

    with tempfile.TemporaryDirectory(prefix="gcspy-count-") as folder:
        result = Path(folder) / "counts.json"
        settings = {
            "result": str(result),
            "plan": plan,
            "sites": choice,
            "include": _LIBRARIES.get(program.name, ()),
            "replan": True,
            "graph": None,
            "least": least,
        }
        begin = Path(gcspy_counting.__file__).parent / "begin.py"
        script, *arguments = suite.arguments_of(program, scale=scale)
        command = [
            str(suite.python),
            str(begin),
            json.dumps(settings),
            "script",
            script,
            *arguments,
        ]
        secs, _ = _processor_secs(command, suite.folder_of(program))
        return secs, json.loads(result.read_text())


def _start_secs(python: Path) -> float:
    """Return the processor time that the start of counting takes, of a program that does nothing."""
    import gcspy_counting

    begin = Path(gcspy_counting.__file__).parent / "begin.py"
    with tempfile.TemporaryDirectory(prefix="gcspy-count-") as folder:
        settings: dict[str, object] = {
            "result": f"{folder}/counts.json",
            "plan": "tree",
            "sites": "wide",
        }
        settings |= {"include": (), "replan": True, "graph": None}
        counted = [str(python), str(begin), json.dumps(settings), "code", "pass"]
        alone = [str(python), "-c", "pass"]
        pairs = [
            _processor_secs(counted, Path(folder))[0] - _processor_secs(alone, Path(folder))[0]
            for _ in range(_STARTS)
        ]
    return statistics.median(pairs)


def _counts(report: dict[str, Any]) -> dict[tuple[Any, ...], int | None]:
    found: dict[tuple[Any, ...], int | None] = {}
    for site in report["sites"]:
        key = (site["file"], site["line"], site["column"], site["function"], site["what"])
        found[key] = (found.get(key) or 0) + site["count"] if site["count"] is not None else None
    return found


def measure(
    suite: Suite,
    program: Program,
    plans: Sequence[str],
    choice: str,
    scale: float,
    pairs: int,
    start_secs: float,
    least: bool,
) -> Result:
    """Run one program under each plan, the first of which is one counter a site."""
    suite.prepare(program)
    script = suite.arguments_of(program, scale=scale)
    ratios: dict[str, list[float]] = {plan: [] for plan in plans}
    reports: dict[str, dict[str, Any]] = {}
    for _ in range(pairs):
        for plan in plans:
            alone, _ = _processor_secs([str(suite.python), *script], suite.folder_of(program))
            secs, reports[plan] = _counted(suite, program, plan, choice, scale)
            counting = start_secs + reports[plan]["instrumenting_secs"]
            ratios[plan].append((secs - counting) / alone)
    counts = {plan: _counts(report) for plan, report in reports.items()}
    expected = counts["site"]
    differing = {
        plan: {key for key, count in expected.items() if counts[plan].get(key) != count}
        for plan in plans[1:]
    }
    unsteady: set[tuple[Any, ...]] = set()
    for _ in range(_REPETITIONS):
        if not set().union(*differing.values()) - unsteady:
            break
        again = _counts(_counted(suite, program, "site", choice, scale)[1])
        unsteady |= {key for key, count in expected.items() if again.get(key) != count}
    found: dict[str, Any] = {}
    if least:
        _, found = _counted(suite, program, plans[-1], choice, scale, least=True)
    return Result(
        program.name,
        sum(bool(count) for count in expected.values()),
        sum(count or 0 for count in expected.values()),
        {plan: len(keys - unsteady) for plan, keys in differing.items()},
        len(unsteady),
        {plan: reports[plan]["increments"] for plan in plans},
        found.get("least_increments"),
        {plan: statistics.median(values) for plan, values in ratios.items()},
        reports[plans[-1]]["instrumenting_secs"],
        reports[plans[-1]]["code_objects"],
        reports[plans[-1]]["raises"],
    )


def _print(results: list[Result], plans: Sequence[str]) -> None:
    names = " | ".join(plans[1:])
    times = " | ".join(f"time {plan}" for plan in plans)
    print(
        f"| program | sites | executions | differing | unsteady | {names} | least | {times} | code objects | instrumenting, s | raises |"
    )
    print("|---|" + "--:|" * (7 + 2 * len(plans)))
    for each in results:
        whole = each.increments["site"] or 1
        shares = " | ".join(f"{each.increments[plan] / whole:.0%}" for plan in plans[1:])
        times = " | ".join(f"{each.slowdown[plan]:.2f}" for plan in plans)
        print(
            f"| {each.program} | {each.sites:,} | {each.executions:,} | {sum(each.differing.values())} | {each.unsteady} | {shares} | {'' if each.least is None else f'{each.least / whole:.0%}'} | {times} | {each.code_objects:,} | {each.instrumenting_secs:.2f} | {each.raises:,} |"
        )
    median = statistics.median
    shares = " | ".join(
        f"{median(each.increments[plan] / (each.increments['site'] or 1) for each in results):.0%}"
        for plan in plans[1:]
    )
    times = " | ".join(f"{median(each.slowdown[plan] for each in results):.2f}" for plan in plans)
    print(f"| median | | | | | {shares} | | {times} | | | |")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", action="append", dest="names", metavar="NAME")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--plan", action="append", dest="plans", choices=_PLANS[1:])
    parser.add_argument("--sites", choices=["wide", "definite"], default="wide")
    parser.add_argument("--scale", type=float, default=0.3)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument(
        "--least",
        action="store_true",
        help="tell how few increments the best places of counters would have taken, had all frequencies been known",
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    plans = ("site", *(options.plans or _PLANS[1:]))
    results = []
    try:
        with installed(options.python) as suite:
            start_secs = _start_secs(suite.python)
            for program in sorted((*PROGRAMS, *_MORE), key=lambda each: each.name):
                if options.names and program.name not in options.names:
                    continue
                try:
                    results.append(
                        measure(
                            suite,
                            program,
                            plans,
                            options.sites,
                            options.scale,
                            options.pairs,
                            start_secs,
                            options.least,
                        )
                    )
                except Unavailable as error:
                    print(f"{program.name}: {error}", file=sys.stderr)
    except Unavailable as error:
        print(f"counting: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps([asdict(each) for each in results]))
    else:
        _print(results, plans)
    shares = [
        each.increments[plans[-1]] / each.increments["site"]
        for each in results
        if each.increments["site"]
    ]
    if results:
        tell("counting, start", start_secs, "s", budget="told")
    if shares:
        tell("counting, increments of per-site, median", statistics.median(shares), budget="0.55")
        tell("counting, increments of per-site, largest", max(shares), budget="0.70")
        tell(
            "counting, time, median",
            statistics.median(each.slowdown[plans[-1]] for each in results),
            budget="1.12",
        )
    return 1 if any(sum(each.differing.values()) for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
