"""`gcspy objects accessed`: which objects of a program were accessed between collections."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.commands.objects.options import (
    only_options,
    output_options,
    top_option,
    trace_argument,
)

__all__ = ["command"]


@click.command()
@trace_argument
@only_options
@click.option(
    "--by",
    type=click.Choice(["type", "site"]),
    default="type",
    show_default=True,
    help="Group objects by type, or by allocation site and type.",
)
@click.option(
    "--order",
    type=click.Choice(["bytes", "objects", "accesses", "idle"]),
    default="bytes",
    show_default=True,
    help="Show the rows with most of this first; idle: idle bytes.",
)
@click.option(
    "--each-gc",
    is_flag=True,
    help="Show one row per interval between collections: allocated, accessed, collected.",
)
@click.option(
    "--vectors",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.csv",
    help="Also write each object: site, born, died, type, size, address, intervals in which it was accessed. FILE.parquet: as Parquet.",
)
@top_option(20)
@output_options
def command(
    trace: Path,
    type: str,
    site: str,
    by: str,
    order: str,
    each_gc: bool,
    vectors: Path | None,
    top: int,
    as_json: bool,
    parquet: Path | None,
    plot: Path | None,
    theme: str | None,
    force: bool,
) -> None:
    """Show accesses to objects between collections.

    TRACE needs records of accesses (docs/accesses.md). An interval lies between two collections.
    "Idle" objects were there at the end, and were not accessed in the last interval. Objects that
    are "dead on arrival" died in the first collection after their birth. "Never again" and "once"
    are objects that outlived a collection, and were accessed in no later interval, or in one. The plot shows what was allocated, accessed and collected in each interval.
    """
    from gcspy.objects.access_questions import ask_accessed
    from gcspy.objects.results import Output

    ask_accessed(
        trace,
        by=by,
        type=type,
        site=site,
        order=order,
        each_gc=each_gc,
        vectors=vectors,
        top=top,
        output=Output(
            as_json=as_json,
            parquet=parquet,
            plot=plot,
            theme=theme or "light",
            force=force,
            in_bytes=order in ("bytes", "idle"),
        ),
    )
