"""`explain`: reports what the memory of a PID is used for and why it grows, with progress.

Knows drivers and questions; does not format answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from gcspy.connection.target import one_driver_of
from gcspy.output.progress import results_with_steps
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
    yield from results_with_steps(lambda progress: driver.explain_memory(pid, question, progress))
