"""Counts of allocation sites as text, as JSON, and the graph of one function as a picture."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gcspy_protocol.details import Cell, ColumnKind, DetailColumn, DetailTable
from gcspy_protocol.errors import CommandError
from gcspy_protocol.text.visible import Lines

from gcspy.output.detail_text import print_table
from gcspy.output.terminal import say, say_aside
from gcspy.site_counts.counted_run import CountedRun

__all__ = ["print_as_json", "print_as_text", "table_of", "write_graph"]


def table_of(run: CountedRun, top: int) -> DetailTable:
    """Return the sites with the largest counts; those of one line and kind are one row."""
    sums: dict[tuple[str, int, str, str, bool], int | None] = {}
    for site in run.report["sites"]:
        key = (site["file"], site["line"], site["function"], site["what"], site["always"])
        before = sums.get(key, 0)
        count = site["count"]
        sums[key] = None if before is None or count is None else before + count
    rows: list[tuple[Cell, ...]] = []
    ordered = sorted(sums.items(), key=lambda each: (each[1] is not None, -(each[1] or 0), each[0]))
    shown = [each for each in ordered if each[1] != 0]
    for (file, line, function, what, always), count in shown[:top]:
        place = f"{_short(file)}:{line}"
        rows.append((place, count, what, "always" if always else "may", function))
    left = [count for _, count in shown[top:]]
    return DetailTable(
        columns=(
            DetailColumn(name="Site", kind=ColumnKind.TEXT),
            DetailColumn(name="Executions", kind=ColumnKind.NUMBER),
            DetailColumn(name="Makes", kind=ColumnKind.TEXT),
            DetailColumn(name="Allocates", kind=ColumnKind.TEXT),
            DetailColumn(name="Function", kind=ColumnKind.TEXT),
        ),
        rows=tuple(rows),
        rest=len(left),
        rest_cells=("", sum(each for each in left if each is not None), "", "", "") if left else (),
    )


def _short(file: str) -> str:
    """Return a path below the working folder relative to it."""
    here = os.path.join(os.getcwd(), "")
    return file[len(here) :] if file.startswith(here) else file


def _summary(report: dict[str, Any]) -> list[str]:
    executions = sum(site["count"] or 0 for site in report["sites"])
    share = f"{report['increments'] / executions:.0%}" if executions else "none"
    lines = [
        f"{executions:,} executions at {len(report['sites']):,} sites, counted with {report['increments']:,} increments ({share} of one for each execution)",
    ]
    unit = report.get("code_unit", "code objects")
    if report["instrumenting_secs"]:
        lines.append(
            f"{report['code_objects']:,} {unit} instrumented in {report['instrumenting_secs']:.2f} s"
        )
    planned = report["replanned"]
    if planned:
        before = sum(each["before"] for each in planned)
        expected = sum(each["expected"] for each in planned)
        lines.append(
            f"new places for the counters of {sum(each['code_objects'] for each in planned):,} code objects, with {expected / before:.0%} of the increments for the same executions"
        )
    if report["not_countable"]:
        lines.append(
            f"{report['not_countable']:,} {unit} have no counters: their form is not known"
        )
    unknown = sum(site["count"] is None for site in report["sites"])
    if unknown:
        lines.append(
            f"the counts of {unknown:,} sites are unknown: their counters contradict each other"
        )
    return lines


def print_as_text(run: CountedRun, top: int) -> None:
    """Print the sites with the largest counts, and how they were counted, on standard error."""
    print_table(table_of(run, top), err=True)
    for line in _summary(run.report):
        say(line, err=True)


def print_as_json(run: CountedRun) -> None:
    """Print the report on standard error as one object: all sites, those with the largest counts first; unknown is null."""
    report = {name: value for name, value in run.report.items() if name != "graphs"}
    report["sites"] = sorted(report["sites"], key=lambda each: -(each["count"] or 0))
    report["exit_code"] = run.exit_code
    say(Lines.of(json.dumps(report, indent=2)), err=True)


def write_graph(run: CountedRun, function: str, file: Path) -> None:
    """Write the picture of a function's graph.

    Raises:
        CommandError: The program has no such function, or the file cannot be written.
    """
    pictures = run.report.get("graphs", [])
    if not pictures:
        raise CommandError(
            f"no function {function!r} was loaded; give its qualified name, such as Class.method"
        )
    try:
        file.write_text(pictures[0], encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error.strerror}") from error
    if len(pictures) > 1:
        say_aside(f"{len(pictures)} functions are called {function!r}: the first was drawn")
