"""`gcspy objects collections`: what survived each collection, was promoted, or died in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gcspy.commands.objects.options import (
    bytes_option,
    only_options,
    output_options,
    trace_argument,
)

__all__ = ["command"]


@click.command()
@trace_argument
@only_options
@bytes_option
@output_options
def command(trace: Path, **options: Any) -> None:
    """Show what each collection did.

    Shows what was allocated before each collection, survived it, was promoted and died. With --type or --site, only objects of that type or from that site are counted.
    """
    from gcspy.objects.questions import ask_collections

    ask_collections(trace, **options)
