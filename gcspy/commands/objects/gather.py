"""`gcspy objects gather`: the lives of a trace's objects, gathered for all later questions."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.commands.objects.options import trace_argument
from gcspy.options import engine_option, jobs_option, json_option

__all__ = ["command"]


@click.command()
@trace_argument
@jobs_option
@engine_option
@click.option(
    "--ranges",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Number of parts of the trace that are worked through apart. Default: 4 for each process, 64 for Dask.",
)
@click.option(
    "--forget", is_flag=True, help="Remove what is kept about the trace, and gather nothing."
)
@json_option
def command(
    trace: Path, jobs: int, engine: str, ranges: int | None, forget: bool, as_json: bool
) -> None:
    """Gather the lives of all objects of a trace once.

    Later questions about the same trace start from them and do not read it again. Each question
    gathers them where this command did not; this one can share the work between processes or
    machines. They are kept in the user's cache as long as the trace does not change. GCSPY_CACHE
    names another folder; "no" keeps nothing. All traces together take a tenth of what the disk has
    left, and 10 GiB at most, or GCSPY_CACHE_BYTES; those not used for longest are removed first.
    """
    from gcspy.objects.life_collection import forget_trace, gather_trace

    if forget:
        forget_trace(trace, as_json=as_json)
    else:
        gather_trace(trace, jobs=jobs, engine=engine, ranges=ranges, as_json=as_json)
