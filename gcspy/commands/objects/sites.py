"""`gcspy objects sites`: the places where objects were allocated, and the fate of the objects."""

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

__all__ = ["command"]


@click.command()
@trace_argument
@only_options
@click.option(
    "--gc",
    "number",
    type=click.IntRange(1),
    metavar="N",
    help="Count only collection N and the allocations since the collection before it.",
)
@click.option(
    "--each-gc", is_flag=True, help="Show one row per collection for each of the --top sites."
)
@bytes_option
@top_option(20)
@output_options
def command(trace: Path, **options: Any) -> None:
    """Show objects by allocation site.

    A site is a method, a position in its bytecode, and the allocated type. The columns mean the
    same as for `gcspy objects types`.
    """
    from gcspy.objects.questions import ask_kinds

    ask_kinds(trace, "site", **options)
