"""Questions about all objects of a process: from a PID to an answer, with progress, and to text or JSON.

Knows drivers and questions; does not know what is asked.
"""

from __future__ import annotations

import json

from gcspy_protocol.details import DetailTable
from gcspy_protocol.errors import CommandError

from gcspy.connection.target import driver_of
from gcspy.output.detail_text import print_table, rows_as_json
from gcspy.output.progress import steps_shown
from gcspy.output.terminal import say
from gcspy_server.api import HeapQuestion

__all__ = ["ask", "print_answer"]


def ask(pid: int, question: HeapQuestion, drivers: tuple[str, ...] = ()) -> DetailTable:
    """Ask the driver that was named, or the one that knows the process best.

    Raises:
        TargetError: The process cannot be read, or has no such objects.
        CommandError: Several drivers were named.
    """
    if len(drivers) > 1:
        raise CommandError("only one driver can be asked: name one with --driver")
    driver = driver_of(pid, *drivers)
    with steps_shown() as progress:
        return driver.investigate(pid, question, progress)


def print_answer(table: DetailTable, pid: int, *, as_json: bool) -> None:
    """Print a table for people, or one JSON object; unknown is null there."""
    if as_json:
        say(json.dumps({"pid": pid, **rows_as_json(table)}, indent=2))
    else:
        print_table(table)
