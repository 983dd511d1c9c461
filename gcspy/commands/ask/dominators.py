"""`gcspy dominators`: which objects keep most of a process's memory alive."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.options import heap_question_options

__all__ = ["command"]


@click.command()
@heap_question_options
def command(
    target: int | Path | str,
    top: int,
    hold: bool,
    drivers: tuple[str, ...],
    at: str | None,
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Show the objects that keep most memory alive.

    "Retained" is the memory that would be freed with an object: its own bytes and those of all
    objects that can be reached only through it. Modules and their tables of names are not listed.

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

    question = HeapQuestion(kind=HeapQuestionKind.DOMINATORS, most=top, held=hold)
    print_answer(answer_for(target, question, drivers, at, token_file), target, as_json=as_json)
