"""`gcspy objects survival`: the share of objects that is still present at each age."""

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
    help="Approximate number of ages per generation. 0: all.",
)
@output_options
def command(trace: Path, **options: Any) -> None:
    """Show the share of objects that survives to each age.

    The age of old objects counts from their promotion. "Held" is the share that occupies memory.
    "Seen alive" assumes that each object died right after the last collection that kept it. The
    share that the program could still reach lies between the two. Objects that remain at the end
    of the trace count for as long as they were observed.
    """
    from gcspy.objects.questions import ask_survival

    ask_survival(trace, **options)
