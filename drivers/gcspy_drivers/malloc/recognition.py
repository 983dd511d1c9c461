"""Recognition of processes with glibc's malloc, for lists of processes: without loading the driver.

Nearly every process has it, so any driver of its runtime comes first.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.kit.runtime_discovery import answered
from gcspy_drivers.native_heap.main_arena import find_main_arena
from gcspy_drivers.native_heap.other_allocators import mapped_allocator, other_way
from gcspy_drivers.remote.mapping_table import read_mapping_table
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from gcspy_server.driver_recognition import Recognition, Specificity

__all__ = ["RUNTIME", "find", "recognise"]

RUNTIME: Final = "glibc malloc"


def find(pid: int) -> Recognition | None:
    """Check quickly whether a process has a malloc that can be monitored.

    Raises:
        TargetGone: There is no such process.
        NotPermitted: The system does not let us read it.
    """
    with Process(pid) as process:
        maps = read_mapping_table(process)
        located = find_main_arena(Memory(process), maps)
        if located is not None:
            return Recognition(
                runtime=RUNTIME,
                detail=located.path,
                modes=("passive", "stopped"),
                supported=True,
                specificity=Specificity.ANY_PROCESS,
            )
        other = mapped_allocator(maps)
        if not other:
            return None
        return Recognition(
            runtime=other,
            why_not=f"{other} replaces malloc of glibc: its heap cannot be read"
            + (f"; a library shows it: {way}" if (way := other_way(other, pid)) else ""),
            specificity=Specificity.ANY_PROCESS,
        )


def recognise(pid: int) -> Recognition:
    """Return the driver's statement; see `gcspy_server.drivers.Driver.recognise`."""
    return answered(find, pid)
