"""`gcspy objects flame`: a flame graph of a trace: who allocated what lives at a moment, came since another, or was ever allocated."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.commands.objects.options import at_option, search_options, search_text, trace_argument

__all__ = ["command"]


@click.command()
@trace_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write: .svg for web browsers, .folded for other tools. Default: the trace's name with .svg.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--of",
    "of",
    type=click.Choice(["live", "allocated", "temporary"]),
    default="live",
    show_default=True,
    help="live: objects that are there at --at. allocated: all of the trace. temporary: those freed before the next allocation.",
)
@at_option()
@click.option(
    "--since",
    metavar="WHEN",
    help="Only live objects that were allocated after this earlier time.",
)
@click.option(
    "--compare",
    metavar="WHEN",
    help="Colour each function by how much more (red) or less (blue) of it lives than at this earlier time.",
)
@click.option("--count", "count", is_flag=True, help="Draw widths by objects instead of bytes.")
@click.option(
    "--inverted",
    is_flag=True,
    help="Put functions that allocate on top, and what called them below.",
)
@click.option("--lines", is_flag=True, help="Keep two places in one function apart.")
@click.option(
    "--theme",
    type=click.Choice(["light", "dark"]),
    default="light",
    show_default=True,
    help="Colour theme.",
)
@search_options
def command(
    trace: Path,
    output: Path | None,
    force: bool,
    of: str,
    at: str,
    since: str | None,
    compare: str | None,
    count: bool,
    inverted: bool,
    lines: bool,
    theme: str,
    **search: str | None,
) -> None:
    """Draw a flame graph of allocation stacks.

    Each box is a function, as wide as the memory that it and all that it called allocated; below it
    are the functions that it called, and at the end the types. In a web browser a click on a box
    makes it as wide as the picture, Esc goes back, Ctrl+F searches. A trace has whole stacks if it
    was written with `gcspy trace --stacks full`.
    """
    from gcspy.objects.flame_graph import FlameOptions, write_flame_graph

    options = FlameOptions(
        of=of, at=at, since=since, compare=compare, in_bytes=not count, inverted=inverted, lines=lines, dark=theme == "dark",
        search=search_text(search),
    )  # fmt: skip
    write_flame_graph(trace, output, options, force=force)
