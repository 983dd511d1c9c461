"""`gcspy lesson mark`: a table of students' reports."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.errors import CommandError
from gcspy_protocol.text.visible import Lines, visible

from gcspy.options import json_option
from gcspy.output.terminal import say, say_aside

if TYPE_CHECKING:
    from gcspy_client.lessons.report import StudentReport

__all__ = ["command"]

_COLUMNS = (
    "student",
    "lesson",
    "right at first try",
    "right later",
    "questions",
    "seconds",
    "code",
    "code right",
    "remarks",
)


@click.command()
@click.argument("reports", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--lesson",
    metavar="LESSON",
    help="Lesson of which all reports should be: others are remarked on.",
)
@click.option(
    "--run",
    "runs",
    is_flag=True,
    help="Run the code in the reports here, instead of trusting its results: each file in a process without network, that can write nothing and read programs only, with limits of time and memory.",
)
@click.option("--csv", "as_csv", is_flag=True, help="As CSV.")
@json_option
def command(
    reports: tuple[Path, ...], lesson: str | None, runs: bool, as_csv: bool, as_json: bool
) -> None:
    """Mark the reports of students.

    REPORTS are files, or folders of them. Each becomes a line: answers, exercises and own code. An
    invalid file is named and skipped.
    """
    from gcspy_client.lessons import find_lesson
    from gcspy_client.lessons.report import digest_of, read_report

    wanted = None if lesson is None else find_lesson(lesson)
    digest = "" if wanted is None else digest_of(wanted)
    rows: list[dict[str, Any]] = []
    left_open: set[str] = set()
    for path in _files(reports):
        try:
            report = read_report(path)
        except CommandError as error:
            say_aside(f"gcspy: {error}")
            continue
        rows.append(_row(report, digest, left_open, runs=runs))
    for one in sorted(left_open):
        say_aside(f"gcspy: not confined on this system: {one}")
    rows.sort(key=lambda row: str(row["student"]).lower())
    if as_json:
        say(json.dumps(rows))
    elif as_csv:
        text = io.StringIO()
        writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
        say(Lines(*text.getvalue().splitlines()))
    else:
        say(Lines(*_table(rows)))


def _files(paths: tuple[Path, ...]) -> list[Path]:
    """The files of all folders, in the order of their names."""
    return [
        file
        for path in paths
        for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])
    ]


def _cell(value: object) -> object:
    """A value of a table that a spreadsheet does not take for a formula: names come from students."""
    text = visible(str(value))
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@") else text


def _row(report: StudentReport, digest: str, left_open: set[str], *, runs: bool) -> dict[str, Any]:
    remarks = []
    if digest and report.digest != digest:
        remarks.append("another lesson, or another version of it")
    code = [
        _run_again(one.name, one.source, left_open) if runs else asdict(one) for one in report.code
    ]
    remarks += [f"{one['name']}: {one['problem']}" for one in code if one["problem"]]
    return {
        "student": report.student,
        "lesson": report.lesson,
        "right at first try": report.first,
        "right later": report.later,
        "questions": len(report.questions),
        "seconds": round(sum(one.secs for one in report.questions)),
        "code": sum(one["runs"] for one in code),
        "code right": sum(one["right"] for one in code),
        "remarks": "; ".join(remarks),
    }


def _run_again(name: str, source: str, left_open: set[str]) -> dict[str, Any]:
    """Run a student's code in a confined process; `left_open` gets what could not be confined."""
    from gcspy.classroom.confined_trial import try_confined

    done = try_confined(source)
    left_open |= set(done.open)
    problem = done.problem.replace("student.py", name)
    return {"name": name, "runs": done.runs, "right": done.right, "problem": problem}


def _table(rows: list[dict[str, Any]]) -> list[str]:
    cells = [_COLUMNS, *([visible(str(row[one])) for one in _COLUMNS] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_COLUMNS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
