"""`gcspy objects live`: what is in the heap at a moment of a trace, by site and type; and what came and went since another."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.commands.objects.options import (
    at_option,
    search_options,
    search_text,
    top_option,
    trace_argument,
)
from gcspy.options import json_option

__all__ = ["command"]


@click.command()
@trace_argument
@at_option()
@click.option(
    "--since",
    metavar="WHEN",
    help="Earlier time: also count objects that came after it and are there, and those that were there and are gone.",
)
@click.option(
    "--by",
    type=click.Choice(["site", "type", "stack"]),
    default="site",
    show_default=True,
    help="site: the line or function that allocated, and the type. type: the type. stack: the whole stack, and the type.",
)
@search_options
@top_option(20)
@json_option
def command(
    trace: Path, at: str, since: str | None, by: str, top: int, as_json: bool, **search: str | None
) -> None:
    r"""Show live bytes by site and type, at any time of a trace.

    \b
      gcspy objects live TRACE --at peak                  when most bytes were live
      gcspy objects live TRACE                            what was never freed (leaks)
      gcspy objects live TRACE --since 60s                what came in since and was not freed
      gcspy objects live TRACE --address 0x1000..0x1fff   who allocated what lies in a tile
    """
    from gcspy.objects.live_objects import show_live

    show_live(trace, at, since, by, search_text(search), top=top, as_json=as_json)
