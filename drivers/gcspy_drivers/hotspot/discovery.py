"""Checks whether a process is a HotSpot JVM, and can be monitored; quickly, for lists of processes.

A mapped ``libjvm.so`` that exports the tables for debuggers is one. Knows names, and leaves the rest to `jvm`,
which is loaded when there is one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone, Unsupported

from gcspy_drivers.kit.runtime_discovery import RuntimeDiscovery
from gcspy_drivers.remote.mapping_table import EXECUTE, MappingTable, read_mapping_table
from gcspy_drivers.remote.process import Process

if TYPE_CHECKING:
    from gcspy_drivers.hotspot.vm.jvm import Jvm

__all__ = ["library_of", "look"]

_LIBRARY: Final = re.compile(r"/libjvm\.so$")
_JAVA: Final = re.compile(r"/java$")


def look(pid: int) -> RuntimeDiscovery:
    """Check a process without attaching to it.

    Raises:
        TargetGone: There is no such process.
    """
    with Process(pid) as process:
        try:
            maps = read_mapping_table(process)
        except NotPermitted as error:
            # For another user's process only the name of its program may be known, and often not
            # even that.
            seems = process.name == "java" or bool(_JAVA.search(process.read_link("exe") or ""))
            return RuntimeDiscovery(runtime="HotSpot" if seems else "", why_not=str(error))
        if library_of(maps) is None:
            return RuntimeDiscovery(why_not="not a JVM")
        from gcspy_drivers.hotspot.vm.jvm import Jvm
        from gcspy_drivers.remote.maps import Maps

        try:
            with Jvm(process, Maps(maps.rows)) as jvm:
                return _judge(jvm)
        except (TargetGone, NotPermitted) as error:
            return RuntimeDiscovery(runtime="HotSpot", why_not=str(error))
        except TargetError as error:
            return RuntimeDiscovery(runtime="HotSpot", why_not=str(error))


def library_of(maps: MappingTable) -> str | None:
    """Return the path of the VM's library as the maps name it; None when none is mapped with its code."""
    for row in maps.rows:
        if row.permissions & EXECUTE and _LIBRARY.search(row.file):
            return row.path
    return None


def _judge(jvm: Jvm) -> RuntimeDiscovery:
    from gcspy_drivers.hotspot.agent.agent import why_not_loaded

    why_not, heap = "", jvm.heap_text()
    try:
        jvm.refuse_unsupported()
    except Unsupported as error:
        why_not = str(error)
    return RuntimeDiscovery(
        runtime="HotSpot",
        version=jvm.version,
        program=jvm.command,
        facts=(jvm.collector, heap and f"heap {heap}"),
        why_not=why_not,
        modes=("passive",) if why_not_loaded(jvm) else ("passive", "agent"),
    )
