"""Recognition of JVMs, for lists of processes: without loading the driver."""

from __future__ import annotations

from gcspy_drivers.hotspot.discovery import look
from gcspy_drivers.kit.runtime_discovery import answered
from gcspy_server.driver_recognition import Recognition

__all__ = ["find", "recognise"]


def find(pid: int) -> Recognition:
    """Check quickly whether a process is a JVM that can be monitored.

    Raises:
        TargetGone: There is no such process.
    """
    return look(pid).recognition()


def recognise(pid: int) -> Recognition:
    """Return the driver's statement; see `gcspy_server.drivers.Driver.recognise`."""
    return answered(find, pid)
