"""`gcspy lesson verify`: run a student's collector or program, and compare its heap with the program's own graph at every step."""

from __future__ import annotations

import getpass
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from gcspy_protocol.text.visible import Lines

from gcspy.exit_codes import ExitCode
from gcspy.options import json_option
from gcspy.output.terminal import say

if TYPE_CHECKING:
    from gcspy.classroom.trial import Trial

__all__ = ["command"]


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--program",
    "programs",
    multiple=True,
    metavar="NAME",
    help="Program to run a collector with: a name, or a file of your own. Repeatable. Default: five built-in programs.",
)
@click.option("--heap", default="16KiB", show_default=True, metavar="SIZE", help="Heap size.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add the file and its result to this report, which is made if it does not exist.",
)
@click.option("--student", metavar="NAME", help="Name in a new report. Default: your login name.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    programs: tuple[str, ...],
    heap: str,
    report: Path | None,
    student: str | None,
    as_json: bool,
) -> None:
    """Verify a collector or a program of your own.

    FILE has functions mark(heap) and sweep(heap), or a function work(stack, dice); `gcspy lesson
    template` writes one. A collector is run with several programs; at each step the heap is compared
    with a second copy of the program's graph. The exit code is 1 if anything is wrong.
    """
    from gcspy_drivers.simulator.driver.options import parse_size

    from gcspy.classroom.trial import PROGRAMS_TO_TRY, try_collector, try_program

    size = parse_size(heap)
    if _is_program(file):
        trials = try_program(file, heap_bytes=size)
    else:
        trials = try_collector(file, programs or PROGRAMS_TO_TRY, heap_bytes=size)
    if report is not None:
        _add(report, student or getpass.getuser(), file, trials)
    if as_json:
        say(json.dumps({"file": str(file), "trials": [asdict(one) for one in trials]}))
    else:
        say(Lines(*_told(file, trials)))
    right = all(one.right for one in trials)
    context.exit(ExitCode.OK if right else ExitCode.FAILED)


def _is_program(file: Path) -> bool:
    """Whether a file has a function ``work`` or a class derived from `Program`, as far as its text says."""
    try:
        source = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "def work(" in source


def _add(report: Path, student: str, file: Path, trials: list[Trial]) -> None:
    from gcspy_client.lessons.report import CodeResult, StudentReport, read_report, write_report

    there = read_report(report) if report.exists() else StudentReport(student=student)
    problems = [one.problem for one in trials if one.problem]
    result = CodeResult(
        name=file.name,
        source=file.read_text(encoding="utf-8", errors="replace"),
        runs=len(trials),
        right=sum(one.right for one in trials),
        problem=problems[0] if problems else "",
    )
    write_report(there.with_code(result), report)


def _told(file: Path, trials: list[Trial]) -> list[str]:
    lines = []
    for one in trials:
        what = f"{one.collector} with {one.program}"
        if one.right:
            lines.append(
                f"right  {what}: {one.collections:,} collections freed {one.freed:,} objects; the heap was right at every step"
            )
        else:
            lines.append(f"WRONG  {what}: {one.problem}")
    lines.append(f"{file}: {sum(one.right for one in trials)} of {len(trials)} right")
    return lines
