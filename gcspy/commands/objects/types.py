"""`gcspy objects types`: the types of a program's objects, and the fate of the objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gcspy.commands.objects.options import only_options, table_options, trace_argument

__all__ = ["command"]


@click.command()
@trace_argument
@only_options
@table_options("types")
def command(trace: Path, **options: Any) -> None:
    """Show objects by type.

    The columns are allocated, survived, promoted, died and remaining.

    "Survived" counts objects that a collection examined and kept; old objects are examined by full
    collections only. "Died" counts objects that a collection found dead. "Remaining" objects were
    not found dead before the trace ended.
    """
    from gcspy.objects.questions import ask_kinds

    ask_kinds(trace, "type", **options)
