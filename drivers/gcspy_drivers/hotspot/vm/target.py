"""`open_jvm`: a process, and the JVM in it that can be read. Knows no spaces."""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.process import Process

__all__ = ["JvmTarget", "open_jvm"]


@dataclass(frozen=True)
class JvmTarget:
    """A process, and the JVM in it."""

    process: Process
    jvm: Jvm

    def close(self) -> None:
        """Release both."""
        self.jvm.close()
        self.process.close()


def open_jvm(pid: int) -> JvmTarget:
    """Find the VM's structures in a process, and verify them; the caller closes the result.

    Raises:
        TargetGone: There is no such process.
        NotPermitted: The system does not let us read it.
        Unsupported: It is not a JVM that can be read.
        TargetError: It is, and is not as its version should be; or it is starting.
    """
    process = Process(pid)
    try:
        target = JvmTarget(process, Jvm(process, read_maps(process)))
    except BaseException:
        process.close()
        raise
    try:
        target.jvm.refuse_unsupported()
        target.jvm.heap()
    except BaseException:
        target.close()
        raise
    return target
