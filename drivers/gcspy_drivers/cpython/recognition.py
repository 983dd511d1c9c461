"""Recognition of CPython processes, for lists of processes: without loading the drivers.

One of the two knows a process: that for programs with a GIL, or that for programs without one.
"""

from __future__ import annotations

from gcspy_drivers.cpython.discovery import FREE_THREADED_RUNTIME, look
from gcspy_drivers.kit.runtime_discovery import answered
from gcspy_server.driver_recognition import Recognition

__all__ = ["find_free_threaded", "find_with_gil", "recognise", "recognise_free_threaded"]


def find_with_gil(pid: int) -> Recognition | None:
    """Check quickly whether a process is a CPython with a GIL.

    Raises:
        TargetGone: There is no such process.
    """
    found = look(pid)
    return None if found.runtime == FREE_THREADED_RUNTIME else found.recognition()


def find_free_threaded(pid: int) -> Recognition | None:
    """Check quickly whether a process is a CPython without a GIL.

    Raises:
        TargetGone: There is no such process.
    """
    found = look(pid)
    return found.recognition() if found.runtime == FREE_THREADED_RUNTIME else None


def recognise(pid: int) -> Recognition:
    """Return the statement of the driver for programs with a GIL; see `gcspy_server.drivers.Driver.recognise`."""
    return answered(find_with_gil, pid)


def recognise_free_threaded(pid: int) -> Recognition:
    """Return the statement of the driver for programs without a GIL; see `gcspy_server.drivers.Driver.recognise`."""
    return answered(find_free_threaded, pid)
