"""`gcspy objects lifetimes`: how long objects lived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gcspy.commands.objects.options import (
    bytes_option,
    clock_option,
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
    "--each",
    type=click.Choice(["type", "site"]),
    help="Show the age at which half of the objects of each type or site are dead.",
)
@clock_option
@bytes_option
@top_option(20)
@output_options
def command(trace: Path, **options: Any) -> None:
    """Show the age at which objects died.

    Also shows the ages of the remaining objects. The age of a dead object is its age at the
    collection that found it dead. It may have died earlier, at any time since the collection
    before.
    """
    from gcspy.objects.questions import ask_lifetimes

    ask_lifetimes(trace, **options)
