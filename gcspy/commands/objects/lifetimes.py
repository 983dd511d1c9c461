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
    help="By which age a half of each type's or site's objects is gone.",
)
@clock_option
@bytes_option
@top_option(20)
@output_options
def command(trace: Path, **options: Any) -> None:
    """Tell how many objects died at which age, and how old those are that are left.

    An object's age is told as it was when a collection found it dead: it may have died sooner, after the collection before.
    """
    from gcspy.asked import ask_lifetimes

    ask_lifetimes(trace, **options)
