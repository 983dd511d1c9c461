"""`gcspy lesson template`: write a file to begin with."""

from __future__ import annotations

from pathlib import Path

import click
from gcspy_protocol.errors import CommandError

from gcspy.output.terminal import say

__all__ = ["command"]


@click.command()
@click.argument("what", type=click.Choice(["collector", "program", "lesson"]))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write. It must not exist yet.",
)
def command(what: str, output: Path) -> None:
    """Write a collector, a program or a lesson to begin with.

    The collector is a mark-sweep of thirty lines, the program a stack of plates, the lesson has two
    steps. Each works as it is.
    """
    from gcspy_drivers.simulator.user_code.template import template

    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(template(what))
    except FileExistsError:
        raise CommandError(f"{output} exists already: name another file") from None
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}") from None
    show = f"gcspy demo {output}" if what == "lesson" else f"gcspy demo --{what} {output}"
    test = "check" if what == "lesson" else "verify"
    say(f"{output}: show it with `{show}`, test it with `gcspy lesson {test} {output}`")
