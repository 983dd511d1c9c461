"""`gcspy growth`: the types that grew over a recording."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.options import json_option, top_option

__all__ = ["command"]


@click.command()
@click.argument("sources", metavar="FILE", nargs=-1, required=True)
@click.option(
    "--from",
    "first",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Earlier event. Default: the first.",
)
@click.option(
    "--to",
    "last",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Later event. Default: the last.",
)
@top_option(4096)
@json_option
def command(
    sources: tuple[str, ...], first: int | None, last: int | None, top: int, as_json: bool
) -> None:
    """Show which types grew between two events.

    The recording must have types: `gcspy record PID -o FILE --level 3`. If an event has none, the
    nearest event with types is used: after the first, before the last.
    """
    from gcspy.objects.type_growth import grown, print_as_json, print_as_text

    found = grown([Path(source) for source in sources], first, last, top)
    (print_as_json if as_json else print_as_text)(found)
