"""`explain`: reports what the memory of a PID is used for and why it grows, with progress; `sites_of_process`: its allocation sites only.

Knows drivers and questions; does not format answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from gcspy_protocol.details import DetailTable
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy.connection.target import one_driver_of
from gcspy.output.progress import results_with_steps
from gcspy_server.api import MemoryQuestion, MemoryReport

__all__ = ["explain", "sites_of_process"]


def explain(
    pid: int, question: MemoryQuestion, drivers: tuple[str, ...] = ()
) -> Iterator[MemoryReport]:
    """Ask the chosen driver, or the most specific one for the process.

    Yields:
        The result of the first sample; then, if a second one is requested, the growth until then.

    Raises:
        TargetError: The process cannot be read.
        CommandError: Several drivers were named.
    """
    driver = one_driver_of(pid, drivers)
    yield from results_with_steps(lambda progress: driver.explain_memory(pid, question, progress))


def sites_of_process(
    pid: int, question: MemoryQuestion, drivers: tuple[str, ...] = ()
) -> DetailTable:
    """Return the allocation sites of the last report; a process that is not examined has its reason in the note.

    Raises:
        TargetError: The process has ended; or its allocations were to be sampled, and cannot be.
        CommandError: Several drivers were named.
    """
    sites = DetailTable()
    try:
        for report in explain(pid, question, drivers):
            sites = report.sites
    except TargetError as error:
        if question.sample_bytes or isinstance(error, TargetGone):
            raise
        return DetailTable(note=str(error))
    return sites
