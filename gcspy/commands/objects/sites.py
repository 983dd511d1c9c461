"""`gcspy objects sites`: where in the program objects were allocated, and what became of them."""

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
    help="What happened in collection N, and was allocated just before it.",
)
@click.option(
    "--each-gc", is_flag=True, help="What happened in each collection, of the --top sites."
)
@bytes_option
@top_option(20)
@output_options
def command(trace: Path, **options: Any) -> None:
    """Tell where in the program objects were allocated: allocated, survived, promoted, died, left.

    A site is a method, a place in its byte code, and the type that is allocated there. Words are those of `gcspy objects types`.
    """
    from gcspy.asked import ask_kinds

    ask_kinds(trace, "site", **options)
