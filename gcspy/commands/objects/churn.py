"""`gcspy objects churn`: the sites that allocate and free most, how long their objects live, and which are temporary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gcspy.commands.objects.options import (
    bytes_option,
    only_options,
    output_options,
    top_option,
    trace_argument,
)
from gcspy.output.quantities import amount_of

__all__ = ["command"]


@click.command()
@trace_argument
@only_options
@click.option(
    "--within",
    "within_bytes",
    type=amount_of,
    metavar="BYTES",
    help="Count an object as temporary if it died before the program allocated more than BYTES after it. Default: 0, freed before the "
    "next allocation of any thread.",
)
@bytes_option
@top_option(20)
@output_options
def command(trace: Path, within_bytes: int | None, **options: Any) -> None:
    """Show short-lived allocations by site and type.

    Temporary objects come first: a loop that makes them can often reuse one. Half of the objects
    that died lived for at most as many further bytes of allocation as the column "Median life" has.
    """
    from gcspy.objects.questions import ask_churn

    ask_churn(trace, within_bytes=within_bytes or 0, **options)
