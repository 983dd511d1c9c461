"""`explain`: reports what the memory of a PID is used for and why it grows, with progress.

Knows drivers and questions; does not format answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gcspy.connection.target import one_driver_of
from gcspy.output.progress import steps_shown
from gcspy_server.api import MemoryQuestion, MemoryReport

__all__ = ["explain"]


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
    shown: list[Callable[[str, int, int], None]] = []

    def show(what: str, done: int, total: int) -> None:
        shown[-1](what, done, total)

    reports = driver.explain_memory(pid, question, show)
    while True:
        # The progress display is removed before the report is printed.
        with steps_shown() as progress:
            shown.append(progress)
            report = next(reports, None)
        if report is None:
            return
        yield report
