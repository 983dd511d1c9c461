"""Recognition of processes with the Boehm collector, for lists of processes: without loading the driver.

A mapped ``libgc.so`` is one; whether its structures are as expected is only known when a session
begins. Knows the name of the library.
"""

from __future__ import annotations

import re
from typing import Final

from gcspy_protocol.errors import NotPermitted

from gcspy_drivers.kit.runtime_discovery import answered
from gcspy_drivers.remote.process import Process
from gcspy_server.driver_recognition import Recognition, Specificity

__all__ = ["find", "recognise"]

_LIBRARY: Final = re.compile(rb" (/[^\n]*/(libgc\.so(?:\.[\d.]+)?))(?: \(deleted\))?\n")


def find(pid: int) -> Recognition | None:
    """Check quickly whether a process has the Boehm collector; None: it has not.

    Raises:
        TargetGone: There is no such process.
    """
    with Process(pid) as process:
        try:
            found = _LIBRARY.search(process.read_file("maps"))
        except NotPermitted:
            return None
    if found is None:
        return None
    return Recognition(
        runtime="Boehm GC",
        version=found[2].decode("ascii", "replace"),
        detail=found[1].decode("utf-8", "replace"),
        modes=("passive",),
        supported=True,
        specificity=Specificity.LIBRARY,
    )


def recognise(pid: int) -> Recognition:
    """Return the driver's statement; see `gcspy_server.drivers.Driver.recognise`."""
    return answered(find, pid)
