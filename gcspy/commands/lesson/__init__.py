"""`gcspy lesson`: for authors of lessons and for teachers.

A new subcommand is a module here with a `command`, and its name in `_SUBCOMMANDS`.
"""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.lazy import LazyGroup
from gcspy.options import language_option

__all__ = ["command"]

_SUBCOMMANDS = ("template", "verify", "check", "mark", "translate")


@click.group(cls=LazyGroup, package=__name__, modules=_SUBCOMMANDS, invoke_without_command=True)
@click.option("--html", metavar="LESSON", help="Write this lesson as one HTML file, with --output.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --html: the file.",
)
@language_option
@click.option("--force", is_flag=True, help="With --html: overwrite an existing file.")
@click.pass_context
def command(context: click.Context, html: str | None, output: Path | None, force: bool) -> None:
    """Verify and mark students' code, check lessons, and export them as HTML files.

    LESSON is a name from `gcspy demo --list`, or a file of your own. `gcspy demo LESSON` shows one.
    `gcspy lesson --html LESSON -o FILE.html` writes one file for any web browser, with pictures,
    questions and a score; it needs no server and no installation.
    """
    if context.invoked_subcommand is not None:
        if html or output or force:
            raise click.UsageError("--html, --output and --force stand alone, without a subcommand")
        return
    if html is None:
        if output or force:
            raise click.UsageError("--output and --force need --html LESSON")
        from gcspy_protocol.text.visible import Lines

        from gcspy.output.terminal import say

        say(Lines.of(context.get_help()))
        context.exit(2)
    if output is None:
        raise click.UsageError("--html needs a file to write: -o FILE.html")
    from gcspy.output.page_export import write_lesson_page

    write_lesson_page(html, output, replace=force)
