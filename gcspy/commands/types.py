"""`gcspy types`: of which types a process's objects are, once and as a table."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command()
@click.argument("pid", type=click.IntRange(1), metavar="PID")
@click.option(
    "--top", type=click.IntRange(1, 1024), default=20, show_default=True, metavar="N", help="Rows."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(pid: int, top: int, as_json: bool) -> None:
    """Tell of which types the objects of a process are: looks once, and lets go.

    The process is not stopped, and nothing is left in it. What changed while it was looked into is told as unknown. Bytes are
    those of the objects themselves; of a Python program the items of a list and the keys of a dict are in "(no object)". Of a JVM it
    tells classes, and counts objects whether they are reachable or not.
    """
    from gcspy.looking import look_once, print_as_json, print_as_text

    found = look_once(pid, "types", most=top)
    (print_as_json if as_json else print_as_text)(found)
