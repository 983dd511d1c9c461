"""Answers to questions about who holds the memory of a JVM, and what all of it is for: from heap dumps that it is asked for.

Objects of a JVM move, so two dumps are compared by names and numbers, and not by addresses.

Knows dumps and graphs; how a dump is had, `requested_dump` says; what is in it, `gcspy_drivers.kit.dump_answers`.
"""

from __future__ import annotations

from dataclasses import replace

from gcspy_protocol.errors import TargetError, TraceError

from gcspy_drivers.hotspot.requested_dump import request_dump
from gcspy_drivers.kit.dump_answers import Progress, answer_of_dump
from gcspy_drivers.remote.process import Process
from gcspy_server.api import DetailTable, HeapQuestion

__all__ = ["answer"]


def answer(pid: int, question: HeapQuestion, progress: Progress) -> DetailTable:
    """Answer one question about a JVM.

    Args:
        pid: The process.
        question: What is asked; a JVM that may not be held is refused.
        progress: Told what is done, how much of it, and of how much.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The JVM may not be asked.
        Unsupported: It takes no commands.
        TargetError: It may not be held, there are no such objects, no room for a dump, or the JVM did not write one.
    """
    with Process(pid) as process:
        dump = request_dump(process, progress, held=question.held)
    try:
        table = answer_of_dump(dump.data, f"process {pid}", question, progress)
    except TraceError as error:
        raise TargetError(f"the heap dump of process {pid} cannot be read: {error}") from None
    return replace(table, note=f"{table.note}; {dump.cost}")
