"""Questions about all objects of a process, a heap dump or an object trace: finds the driver, shows progress, and prints text or JSON.

Knows drivers and questions; does not know their subjects.
"""

from __future__ import annotations

from pathlib import Path

from gcspy_protocol.details import DetailTable
from gcspy_protocol.errors import CommandError

from gcspy.connection.target import one_driver_of
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
    target: int | Path, question: HeapQuestion, drivers: tuple[str, ...] = (), at: str | None = None
) -> DetailTable:
    """Ask a process, a heap dump, or an object trace.

    Args:
        target: A PID, or a file.
        question: The question.
        drivers: Of a process, the chosen driver.
        at: Of an object trace, the moment, as `event_of` has it; None: its end.

    Raises:
        CommandError: A file cannot be read, or is something else than `at` is for; and what `ask` does.
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

    from gcspy.objects.trace_conversion import event_of, opened_heap

    with steps_shown() as progress, opened_heap(path, progress) as heap:
        event = event_of(heap, at)
        graph = graph_at(heap, event, heap.at(event))
        return answer_of_graph(graph, heap.trace, question)


def print_answer(table: DetailTable, target: int | Path, *, as_json: bool) -> None:
    """Print a table for people, or one JSON object; unknown is null there."""
    if as_json:
        key = {"pid": target} if isinstance(target, int) else {"file": str(target)}
        say_json({**key, **rows_as_json(table)})
    else:
        print_table(table)
