"""`gcspy growth`: which types grew over a recording."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command()
@click.argument("sources", metavar="FILE", nargs=-1, required=True)
@click.option(
    "--from",
    "first",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Number of the earlier event; by default the first.",
)
@click.option(
    "--to",
    "last",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Number of the later event; by default the last.",
)
@click.option(
    "--top", type=click.IntRange(1, 4096), default=20, show_default=True, metavar="N", help="Rows."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(
    sources: tuple[str, ...], first: int | None, last: int | None, top: int, as_json: bool
) -> None:
    """Tell which types grew from one event of a recording to another, in bytes and objects.

    Types are in recordings that were made at level 3: `gcspy record PID -o FILE --level 3`. Where an event has none, the nearest that
    has is taken: behind the first, before the last.
    """
    from gcspy.grown import grown, print_as_json, print_as_text

    found = grown([Path(source) for source in sources], first, last, top)
    (print_as_json if as_json else print_as_text)(found)
