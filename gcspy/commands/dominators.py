"""`gcspy dominators`: which objects keep most of a process's memory alive."""

from __future__ import annotations

import click

from gcspy.options import driver_option

__all__ = ["command"]


@click.command()
@click.argument("pid", type=click.IntRange(1), metavar="PID")
@click.option(
    "--top",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of rows.",
)
@click.option("--hold", is_flag=True, help="Stop the process while its memory is copied.")
@driver_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(pid: int, top: int, hold: bool, drivers: tuple[str, ...], as_json: bool) -> None:
    """Show the objects that keep most memory alive.

    "Retained" is what would be freed with an object: its own bytes and those of all objects that
    only it leads to. Modules and their tables of names are not listed.

    The process keeps running while its memory is copied, and nothing is left in it. With --hold
    all threads are stopped during the copy, so that the answer is exact.
    """
    from gcspy.connection.heap_answer import ask, print_answer
    from gcspy_server.api import HeapQuestion, HeapQuestionKind

    question = HeapQuestion(kind=HeapQuestionKind.DOMINATORS, most=top, held=hold)
    print_answer(ask(pid, question, drivers), pid, as_json=as_json)
