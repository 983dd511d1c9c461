"""`gcspy objects survival`: which share of objects is still there at which age."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gcspy.commands.objects.options import (
    bytes_option,
    clock_option,
    only_options,
    output_options,
    trace_argument,
)

__all__ = ["command"]


@click.command()
@trace_argument
@only_options
@clock_option
@bytes_option
@click.option(
    "--points",
    type=click.IntRange(0),
    default=40,
    show_default=True,
    metavar="N",
    help="About so many ages of each generation; 0: all.",
)
@output_options
def command(trace: Path, **options: Any) -> None:
    """Tell which share of objects is still there at which age: of all, of young objects, and of old ones since they are old.

    Held is what takes up memory; seen alive is the same, had each object died right after a collection last saw it. What the
    program could still reach lies between. Objects that are left when the trace ends count as far as they were watched.
    """
    from gcspy.asked import ask_survival

    ask_survival(trace, **options)
