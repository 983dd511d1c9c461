"""`gcspy objects sites`: the places where objects were allocated, and the fate of the objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gcspy.commands.objects.options import only_options, table_options, trace_argument

__all__ = ["command"]


@click.command()
@trace_argument
@only_options
@table_options("sites")
def command(trace: Path, **options: Any) -> None:
    """Show objects by allocation site.

    A site is a method, a position in its bytecode, and the allocated type. The columns mean the
    same as for `gcspy objects types`.
    """
    from gcspy.objects.questions import ask_kinds

    ask_kinds(trace, "site", **options)
