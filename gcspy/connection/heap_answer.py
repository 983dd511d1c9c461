"""Questions about all objects of a process, a heap dump, an object trace or a session: finds the driver, shows progress, and prints text or JSON.

Knows drivers and questions; does not know their subjects.
"""

from __future__ import annotations

from pathlib import Path

from gcspy_protocol.details import DetailTable
from gcspy_protocol.errors import CommandError

from gcspy.connection.target import one_driver_of
from gcspy.options import needs_token, read_token
from gcspy.output.detail_text import print_table, rows_as_json
from gcspy.output.progress import steps_shown
from gcspy.output.terminal import say_json
from gcspy_server.api import HeapQuestion

__all__ = ["answer_for", "ask", "ask_file", "ask_trace", "print_answer"]


def ask(pid: int, question: HeapQuestion, drivers: tuple[str, ...] = ()) -> DetailTable:
    """Ask the chosen driver, or the most specific one for the process.

    Raises:
        TargetError: The process cannot be read, or has no such objects.
        CommandError: Several drivers were named.
    """
    driver = one_driver_of(pid, drivers)
    with steps_shown() as progress:
        return driver.investigate(pid, question, progress)


def answer_for(
    target: int | Path | str,
    question: HeapQuestion,
    drivers: tuple[str, ...] = (),
    at: str | None = None,
    token_file: Path | None = None,
) -> DetailTable:
    """Ask a process, a heap dump, an object trace, or a session.

    Args:
        target: A PID, a file, or the address of a session.
        question: The question.
        drivers: Of a process, the chosen driver.
        at: Of an object trace, the moment, as `event_of` has it; None: its end.
        token_file: Of a session that is joined over TCP, the file with its token.

    Raises:
        CommandError: A file cannot be read, or is something else than `at` or `drivers` are for; and what `ask` does.
        LinkError: The session cannot be joined, or refuses.
        TargetError: See `ask`.
        TraceError: A dump or a trace is damaged.
    """
    if isinstance(target, Path):
        from gcspy.objects.trace_conversion import names_trace

        if names_trace(target):
            return ask_trace(target, question, at or "end")
    if at is not None:
        raise CommandError("--at needs an object trace: a process and a heap dump have one moment")
    if isinstance(target, Path):
        return ask_file(target, question)
    if isinstance(target, str):
        from gcspy.connection.session_question import ask_session

        if drivers:
            raise CommandError("--driver needs a process: a session has its own drivers")
        token = read_token(token_file, ask=needs_token(target))
        return ask_session(target, question, token or "")
    return ask(target, question, drivers)


def ask_file(path: Path, question: HeapQuestion) -> DetailTable:
    """Ask a heap dump that a JVM wrote.

    Raises:
        CommandError: It cannot be read.
        TraceError: It is not a heap dump, or is damaged.
        TargetError: It has no such objects.
    """
    from gcspy_drivers.kit.dump_answers import answer_of_file

    try:
        with path.open("rb", buffering=0) as file, steps_shown() as progress:
            return answer_of_file(file, str(path), question, progress)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None


def ask_trace(path: Path, question: HeapQuestion, at: str) -> DetailTable:
    """Ask an object trace about one of its moments.

    Raises:
        CommandError: There is no such moment, or the trace does not say who refers to whom there.
        TraceError: It cannot be read.
        TargetError: It has no such objects.
    """
    from gcspy_drivers.traced.heap_answers import answer_of_graph, graph_at

    from gcspy.objects.trace_conversion import opened_heap
    from gcspy.objects.trace_moment import event_of

    with steps_shown() as progress, opened_heap(path, progress) as heap:
        event = event_of(heap, at)
        graph = graph_at(heap, event, heap.at(event))
        return answer_of_graph(graph, heap.trace, question)


def print_answer(table: DetailTable, target: int | Path | str, *, as_json: bool) -> None:
    """Print a table for people, or one JSON object; unknown is null there."""
    if as_json:
        names = {int: "pid", str: "session"}
        key = names.get(type(target), "file")
        say_json({key: str(target) if key == "file" else target, **rows_as_json(table)})
    else:
        print_table(table)
