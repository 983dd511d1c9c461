"""`gcspy objects types`: of which types a program's objects were, and what became of them."""

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
    "--each-gc", is_flag=True, help="What happened in each collection, of the --top types."
)
@bytes_option
@top_option(20)
@output_options
def command(trace: Path, **options: Any) -> None:
    """Tell of which types a program's objects were: allocated, survived, promoted, died, left.

    A type's objects survived when a collection looked at them and let them live; an old object is looked at by full collections only. What
    died, a collection found dead. What is left was not found dead before the trace ended.
    """
    from gcspy.asked import ask_kinds

    ask_kinds(trace, "type", **options)
