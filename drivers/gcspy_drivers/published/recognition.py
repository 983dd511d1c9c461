"""Recognition of programs that publish with `gcspy.h`, for lists of processes: without loading the driver.

Knows the name of the control page's mapping; a process without it costs one reading of its maps.
"""

from __future__ import annotations

from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.kit.runtime_discovery import answered
from gcspy_drivers.published.names import MAPPED_AS, RUNTIME
from gcspy_drivers.remote.process import Process
from gcspy_server.driver_recognition import Recognition, Specificity

__all__ = ["find", "recognise"]


def find(pid: int) -> Recognition | None:
    """Check quickly whether a process publishes with `gcspy.h`; None: it does not.

    Raises:
        TargetGone: There is no such process.
    """
    with Process(pid) as process:
        try:
            text = process.read_file("maps")
        except NotPermitted:
            return None
        if MAPPED_AS.encode() not in text:
            return None
        from gcspy_drivers.published.publication import find_publications

        try:
            found = find_publications(process)
        except TargetError as error:
            return Recognition(runtime=RUNTIME, why_not=str(error))
        return Recognition(
            runtime=RUNTIME,
            version=str(found[0].head.version),
            detail=", ".join(one.head.name for one in found),
            modes=("cooperative",),
            supported=True,
            specificity=Specificity.LIBRARY + 5,
        )


def recognise(pid: int) -> Recognition:
    """Return the driver's statement; see `gcspy_server.drivers.Driver.recognise`."""
    return answered(find, pid)
