"""A report on many recordings as text and for JSON; knows the report, not the recordings."""

from __future__ import annotations

from typing import Any

from gcspy_protocol.details import Cell, ColumnKind, DetailColumn, DetailTable

from gcspy.fleet.report import LEAST, FleetReport, Measure
from gcspy.output.detail_text import print_table
from gcspy.output.terminal import say
from gcspy_client.model.text import size_in_words

__all__ = ["number_in_words", "print_report", "report_as_json"]


def number_in_words(value: float, measure: Measure) -> str:
    """Return a number with its unit."""
    match measure.unit:
        case "bytes":
            sign = "-" if value < 0 else ""
            return sign + size_in_words(round(abs(value)))
        case "share":
            return f"{100 * value:.1f} %"
        case _:
            return f"{1000 * value:.2f} ms" if value < 1 else f"{value:.2f} s"


def print_report(report: FleetReport, *, most: int) -> None:
    """Print it, with at most so many rows in each table."""
    say(f"{len(report.rows):,} recordings of {len(report.programs):,} programs")
    if report.unread:
        say(
            f"{len(report.unread):,} cannot be read; the first: {report.unread[0].file}: {report.unread[0].error}"
        )
    for name, count in report.anomalies.items():
        say(f"{name}: {count:,}")
    _print(
        "Growing",
        ("Recording", "Program", "Resident", "Grew a minute", "Largest type"),
        [
            (
                row.file,
                row.program or "",
                "" if row.resident_last is None else size_in_words(row.resident_last),
                "" if row.growth_per_minute is None else size_in_words(row.growth_per_minute),
                row.type_names[0] if row.type_names else "",
            )
            for row in report.growing
        ],
        most,
    )
    _print(
        "Outliers",
        ("Recording", "Program", "Number", "Here", "Median", "Deviations"),
        [
            (
                one.row.file,
                one.row.program or "",
                one.measure.title,
                number_in_words(one.value, one.measure),
                number_in_words(one.median, one.measure),
                f"{one.score:+.1f}",
            )
            for one in report.outliers
        ],
        most,
    )
    if report.too_few:
        say("")
        names = ", ".join(sorted(report.too_few)[:5])
        say(
            f"{len(report.too_few):,} programs have fewer than {LEAST} recordings, too few for outliers: {names}"
        )
    if report.deployed is not None:
        _print_changes(report, most)


def _print_changes(report: FleetReport, most: int) -> None:
    assert report.deployed is not None
    title = f"Before and after {report.deployed:%Y-%m-%d %H:%M} UTC"
    if not report.changes:
        say("")
        say(f"{title}: no program has {LEAST} recordings on either side")
        return
    _print(
        title,
        ("Program", "Number", "Before", "After", "Recordings", "After is larger", "p"),
        [
            (
                one.program,
                one.measure.title,
                number_in_words(float(one.before[len(one.before) // 2]), one.measure),
                number_in_words(float(one.after[len(one.after) // 2]), one.measure),
                f"{len(one.before)} and {len(one.after)}",
                f"in {100 * one.larger:.0f} % of pairs",
                "< 0.001" if one.p < 0.001 else f"{one.p:.3f}",
            )
            for one in sorted(report.changes, key=lambda one: one.p)
        ],
        most,
    )


def _print(title: str, heads: tuple[str, ...], rows: list[tuple[Cell, ...]], most: int) -> None:
    if not rows:
        return
    say("")
    say(title)
    columns = tuple(DetailColumn(name=head, kind=ColumnKind.TEXT) for head in heads)
    print_table(
        DetailTable(columns=columns, rows=tuple(rows[:most]), rest=max(0, len(rows) - most)),
        rounded=True,
    )


def report_as_json(report: FleetReport) -> dict[str, Any]:
    """Return it for JSON: bytes, shares and seconds as numbers."""
    return {
        "recordings": len(report.rows),
        "unread": [{"file": row.file, "error": row.error} for row in report.unread],
        "programs": report.programs,
        "anomalies": report.anomalies,
        "growing": [
            {
                "file": row.file,
                "program": row.program,
                "resident_last": row.resident_last,
                "growth_per_minute": row.growth_per_minute,
            }
            for row in report.growing
        ],
        "outliers": [
            {
                "file": one.row.file,
                "program": one.row.program,
                "number": one.measure.column,
                "value": one.value,
                "median": one.median,
                "score": round(one.score, 3),
            }
            for one in report.outliers
        ],
        "deployed": None if report.deployed is None else report.deployed.isoformat(),
        "changes": [
            {
                "program": one.program,
                "number": one.measure.column,
                "before": {
                    "recordings": len(one.before),
                    "median": float(one.before[len(one.before) // 2]),
                },
                "after": {
                    "recordings": len(one.after),
                    "median": float(one.after[len(one.after) // 2]),
                },
                "after_larger": round(one.larger, 4),
                "p": one.p,
            }
            for one in report.changes
        ],
    }
