"""`gcspy fleet report`: which recordings grow, which are outliers, and what a deployment changed."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from gcspy.options import json_option, top_option

__all__ = ["command"]

_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]


@click.command()
@click.argument("table", metavar="TABLE", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--deployed",
    type=click.DateTime(_FORMATS),
    metavar="TIME",
    help="Compare the recordings that began before this time (UTC) with the later ones: "
    "2026-11-25 or 2026-11-25T14:30.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a page with the tables and pictures, for any web browser.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing page.")
@top_option(1000)
@json_option
def command(
    table: Path,
    deployed: datetime | None,
    output: Path | None,
    force: bool,
    top: int,
    as_json: bool,
) -> None:
    r"""Show which recordings grow, which are outliers, and what a deployment changed.

    \b
      gcspy features night/*.gcspy -o fleet.parquet
      gcspy fleet report fleet.parquet
      gcspy fleet report fleet.parquet --deployed 2026-11-25T14:30 -o report.html

    An outlier is more than 3.5 robust standard deviations away from the median of the recordings of
    the same program. docs/fleets.md describes the numbers.
    """
    from datetime import UTC

    from gcspy.fleet.report import report_of
    from gcspy.fleet.report_page import page_of
    from gcspy.fleet.report_text import print_report, report_as_json
    from gcspy.fleet.stored_features import read_features
    from gcspy.output.terminal import say, say_json
    from gcspy.recorder.new_file import need_place, new_file

    if output is not None:
        need_place(output, replace=force)
    at = None if deployed is None else deployed.replace(tzinfo=UTC)
    report = report_of(read_features(table), deployed=at)
    if output is not None:
        with new_file(output, replace=force) as path:
            path.write_text(page_of(report, table.name, most=top), encoding="utf-8")
    if as_json:
        say_json(report_as_json(report))
        return
    print_report(report, most=top)
    if output is not None:
        say(f"gcspy: wrote {output}")
