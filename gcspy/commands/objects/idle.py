"""`gcspy objects idle`: objects that are reachable and not used, and other candidates that follow from accesses."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.commands.objects.options import only_options, top_option, trace_argument
from gcspy.options import json_option

__all__ = ["command"]


@click.command()
@trace_argument
@only_options
@click.option(
    "--kind",
    type=click.Choice(["idle", "never", "once", "arrival", "pretenure"]),
    default="idle",
    show_default=True,
    help="idle: reachable at the end and not accessed, leaks and caches. never, once: outlived a collection, and accessed in no or one later interval. "
    "arrival: died in the first collection, could be reused. pretenure: sites whose objects mostly live long.",
)
@click.option(
    "--for",
    "idle_for",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    metavar="N",
    help="For idle: intervals without an access. For pretenure: collections to outlive.",
)
@click.option(
    "--by",
    type=click.Choice(["type", "site"]),
    default="site",
    show_default=True,
    help="Group objects by type, or by allocation site and type.",
)
@top_option(20)
@json_option
@click.option(
    "--parquet",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write all rows to FILE as Parquet.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(
    trace: Path,
    type: str,
    site: str,
    kind: str,
    idle_for: int,
    by: str,
    top: int,
    as_json: bool,
    parquet: Path | None,
    force: bool,
) -> None:
    """Show objects that a program keeps and does not use.

    A collector keeps what is reachable; TRACE says what was accessed as well (docs/accesses.md).
    """
    from gcspy.objects.access_questions import ask_idle
    from gcspy.objects.results import Output

    ask_idle(
        trace,
        kind=kind,
        idle_for=idle_for,
        by=by,
        type=type,
        site=site,
        top=top,
        output=Output(as_json=as_json, parquet=parquet, force=force),
    )
