"""Counted programs: exactness, increments and time of each plan, on programs of the pyperformance suite.

    python -m benchmarks.cpython.site_counts [--program NAME]... [--python PATH] [--sites wide|definite] [--scale X] [--pairs N] [--json]

Each program runs with one counter a site, a block, a path (DuckTracks) and off a spanning tree that is placed anew from observed frequencies. The counts
of all sites are compared with those of one counter a site: the difference must be 0. Times are processor time, in pairs with the program alone.

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.figures import tell
from benchmarks.harness.suite import PROGRAMS, Program, Suite, installed

__all__ = ["main"]

_PLANS = ("site", "block", "paths", "tree")
_LIBRARIES = {
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
        differing: Sites whose counts differ from one counter a site, by plan.
        increments: By plan.
        slowdown: Processor time divided by that of the program alone, by plan, median of the pairs.
        instrumenting_secs: Of the last plan.
        raises: Exceptions that left a block.
    """

    program: str
    sites: int
    executions: int
    differing: dict[str, int]
    increments: dict[str, int]
    slowdown: dict[str, float]
    instrumenting_secs: float
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
    suite: Suite, program: Program, plan: str, choice: str, scale: float
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


def _counts(report: dict[str, Any]) -> dict[tuple[Any, ...], int | None]:
    found: dict[tuple[Any, ...], int | None] = {}
    for site in report["sites"]:
        key = (site["file"], site["line"], site["column"], site["function"], site["what"])
        found[key] = (found.get(key) or 0) + site["count"] if site["count"] is not None else None
    return found


def measure(suite: Suite, program: Program, choice: str, scale: float, pairs: int) -> Result:
    """Run one program under each plan."""
    suite.prepare(program)
    script = suite.arguments_of(program, scale=scale)
    ratios: dict[str, list[float]] = {plan: [] for plan in _PLANS}
    reports: dict[str, dict[str, Any]] = {}
    for _ in range(pairs):
        for plan in _PLANS:
            alone, _ = _processor_secs([str(suite.python), *script], suite.folder_of(program))
            secs, reports[plan] = _counted(suite, program, plan, choice, scale)
            ratios[plan].append(secs / alone)
    counts = {plan: _counts(report) for plan, report in reports.items()}
    expected = counts["site"]
    return Result(
        program.name,
        sum(bool(count) for count in expected.values()),
        sum(count or 0 for count in expected.values()),
        {
            plan: sum(counts[plan].get(key) != count for key, count in expected.items())
            for plan in _PLANS[1:]
        },
        {plan: reports[plan]["increments"] for plan in _PLANS},
        {plan: statistics.median(values) for plan, values in ratios.items()},
        reports["tree"]["instrumenting_secs"],
        reports["tree"]["raises"],
    )


def _print(results: list[Result]) -> None:
    print(
        "| program | sites | executions | differing | block | paths | tree | time site | paths | tree | instrumenting, s | raises |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for each in results:
        whole = each.increments["site"] or 1
        shares = " | ".join(f"{each.increments[plan] / whole:.0%}" for plan in _PLANS[1:])
        times = " | ".join(f"{each.slowdown[plan]:.2f}" for plan in ("site", "paths", "tree"))
        print(
            f"| {each.program} | {each.sites:,} | {each.executions:,} | {sum(each.differing.values())} | {shares} | {times} | {each.instrumenting_secs:.2f} | {each.raises:,} |"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", action="append", dest="names", metavar="NAME")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sites", choices=["wide", "definite"], default="wide")
    parser.add_argument("--scale", type=float, default=0.3)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    try:
        with installed(options.python) as suite:
            for program in PROGRAMS:
                if options.names and program.name not in options.names:
                    continue
                try:
                    results.append(
                        measure(suite, program, options.sites, options.scale, options.pairs)
                    )
                except Unavailable as error:
                    print(f"{program.name}: {error}", file=sys.stderr)
    except Unavailable as error:
        print(f"counting: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps([asdict(each) for each in results]))
    else:
        _print(results)
    shares = [
        each.increments["tree"] / each.increments["site"]
        for each in results
        if each.increments["site"]
    ]
    if shares:
        tell("counting, increments of per-site, median", statistics.median(shares), budget="0.55")
        tell("counting, increments of per-site, largest", max(shares), budget="0.70")
        tell(
            "counting, time, median",
            statistics.median(each.slowdown["tree"] for each in results),
            budget="1.12",
        )
    return 1 if any(sum(each.differing.values()) for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
