"""`gcspy holders`: who holds objects in a process."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.options import heap_question_options

__all__ = ["command"]


def _address(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 16)
    except ValueError:
        raise click.BadParameter(f"{text} is not an address: give it as 0x7f12a0b3c4d0") from None


@click.command()
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
@heap_question_options
def command(
    target: int | Path | str,
    type_name: str,
    address: int | None,
    top: int,
    hold: bool,
    drivers: tuple[str, ...],
    at: str | None,
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Show who holds objects in memory.

    A row names a holder by its path from a module, a variable of a running function,
    or a library. The objects of a row would be freed with their holder, unless "Holders" says that
    several hold them independently.

    The process keeps running while its memory is copied, and nothing is left in it. With --hold
    all threads are stopped during the copy, so that the answer is exact.

    A JVM with --hold stops while it writes a heap dump, which is examined. Without it the heap is
    copied, and references from stacks and native code are missing. FILE is a
    heap dump (HPROF) or an object trace with pointers. Of a trace, the answer describes the latest
    collection before --at.

    ADDRESS is a running session (HOST:PORT or unix:PATH): its server reads the process, and answers
    the client that controls the session.
    """
    from gcspy.connection.heap_answer import answer_for, print_answer
    from gcspy_server.api import HeapQuestion, HeapQuestionKind

    question = HeapQuestion(
        kind=HeapQuestionKind.HOLDERS, type_name=type_name, address=address, most=top, held=hold
    )
    print_answer(answer_for(target, question, drivers, at, token_file), target, as_json=as_json)
