"""`gcspy holders`: who holds objects in a process."""

from __future__ import annotations

import click

from gcspy.options import driver_option

__all__ = ["command"]


def _address(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 16)
    except ValueError:
        raise click.BadParameter(f"{text} is not an address: give it as 0x7f12a0b3c4d0") from None


@click.command()
@click.argument("pid", type=click.IntRange(1), metavar="PID")
@click.option(
    "--type",
    "type_name",
    default="",
    metavar="NAME",
    help="Show holders of objects of this type, with or without its module.",
)
@click.option(
    "--address",
    callback=_address,
    default=None,
    metavar="HEX",
    help="Show holders of the object at this address.",
)
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
def command(
    pid: int,
    type_name: str,
    address: int | None,
    top: int,
    hold: bool,
    drivers: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show who holds objects in memory.

    A row names a holder by its path from a module, a variable of a running function,
    or a library. The objects of a row would be freed with their holder, unless "Holders" says that
    several hold them independently.

    The process keeps running while its memory is copied, and nothing is left in it. With --hold
    all threads are stopped during the copy, so that the answer is exact.
    """
    from gcspy.connection.heap_answer import ask, print_answer
    from gcspy_server.api import HeapQuestion, HeapQuestionKind

    question = HeapQuestion(
        kind=HeapQuestionKind.HOLDERS, type_name=type_name, address=address, most=top, held=hold
    )
    print_answer(ask(pid, question, drivers), pid, as_json=as_json)
