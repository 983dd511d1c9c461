"""One JVM: its tables, flags and counters, and its own description: version, collector, command, size of its heap.

Made once for a process, and verified. Knows where things are; reads no heap. Why the version is the VM's own word: folders and files are
often named otherwise.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

import numpy as np
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.hotspot.vm.collector import collector_of
from gcspy_drivers.hotspot.vm.counters import PerfCounters, find_counters
from gcspy_drivers.hotspot.vm.flags import read_flags
from gcspy_drivers.hotspot.vm.tables import read_tables, read_texts
from gcspy_drivers.remote.elf.file import MACHINE_X86_64
from gcspy_drivers.remote.elf.image import open_image
from gcspy_drivers.remote.mapping_table import EXECUTE
from gcspy_drivers.remote.maps import LiveMaps, Maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

__all__ = ["COLLECTORS", "Jvm"]

COLLECTORS: Final = (
    "Serial",
    "Parallel",
    "Epsilon",
    "G1",
    "Shenandoah",
    "Generational Shenandoah",
    "ZGC",
    "Generational ZGC",
)
"""Collectors whose heaps are supported."""

_LIBRARY: Final = re.compile(r"/libjvm\.so$")
_OLDEST: Final = 8
_COMMAND_BYTES: Final = 2000


class Jvm:
    """A HotSpot in a process.

    Args:
        process: The process; not closed here.
        maps: Its mappings.

    Raises:
        TargetError: It is not a JVM, is starting, or is damaged.
        NotPermitted: The system does not let us read it.
        TargetGone: It has ended.
    """

    def __init__(self, process: Process, maps: Maps) -> None:
        path = next(
            (
                path
                for row, path in enumerate(maps.path)
                if maps.permissions[row] & EXECUTE and _LIBRARY.search(maps.file_of(row))
            ),
            None,
        )
        if path is None:
            raise Unsupported("it is not a JVM", found=process.name, known="HotSpot 8 to 25")
        self.process = process
        self.memory = Memory(process)
        self.maps = LiveMaps(process, maps)
        self.image = open_image(process, self.memory, maps, path)
        try:
            self.tables = read_tables(self.memory, self.image)
            self.flags = read_flags(self.memory, self.tables)
        except BaseException:
            self.image.close()
            raise
        self.counters: PerfCounters = find_counters(self.memory, self.tables)
        self.collector = collector_of(self.flags, self.tables)

    def __enter__(self) -> Jvm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go; the process is its owner's."""
        self.image.close()

    @cached_property
    def version(self) -> str:
        """The version as reported by the VM: ``17.0.15+6-Debian-1deb12u1``, ``1.8.0_504``."""
        return self.counters.text("java.property.java.version") or self._static_text(
            "Abstract_VM_Version", "_s_vm_release"
        )

    @cached_property
    def release(self) -> int:
        """The number of the release: 8, 17; 0 if unknown."""
        match = re.match(r"(?:1\.)?(\d+)", self.version)
        number = int(match[1]) if match else 0
        # Without counters an 8 only reports the version of the VM, 25.504: its tables are older
        # than those of a real 25.
        return _OLDEST if number == 25 and "JVMFlag" not in self.tables.types else number

    @cached_property
    def command(self) -> str:
        """Main class or jar and its arguments; empty while not available."""
        return self.counters.text("sun.rt.javaCommand") or self._static_text(
            "Arguments", "_java_command"
        )

    @cached_property
    def main_class(self) -> str:
        """Main class or jar, without arguments."""
        return self.command.split(" ", 1)[0]

    def heap(self) -> int:
        """Return the address of its CollectedHeap.

        Raises:
            TargetError: There is none yet.
        """
        place = self.tables.need_static("Universe", "_collectedHeap")
        found = int.from_bytes(self.memory.read(place, 8), "little")
        if not found:
            raise TargetError(
                f"process {self.process.pid}: it has no heap yet: the JVM is starting, try again"
            )
        return found

    def heap_text(self) -> str:
        """Describe the size of its heap and the maximum: ``64 of 256 MB``; empty if unknown."""
        most = self.flags.number("MaxHeapSize")
        now = [self.counters.number(name) for name in self._capacities()]
        known = [number for number in now if number is not None]
        if most is None:
            return ""
        if not known:
            return f"up to {most / 1e6:,.0f} MB"
        return f"{sum(known) / 1e6:,.0f} of {most / 1e6:,.0f} MB"

    def _capacities(self) -> list[str]:
        names = self.counters.names("sun.gc.generation.", ".capacity")
        return [name for name in names if ".space." not in name]

    def refuse_unsupported(self) -> None:
        """Refuse what cannot be read.

        Raises:
            Unsupported: The JVM is not supported; the error names its kind or version, and the supported ones.
        """
        if self.image.file.machine != MACHINE_X86_64:
            raise Unsupported(
                "HotSpot is read on x86-64 only",
                found=f"ELF machine {self.image.file.machine}",
                known=MACHINE_X86_64,
            )
        if self.collector not in COLLECTORS:
            raise Unsupported(
                f"the heap of this collector cannot be read in Java {self.release}",
                found=self.collector or "an unknown collector",
                known=", ".join(COLLECTORS),
            )

        if (
            self.collector == "Shenandoah"
            and self.tables.offset("ShenandoahHeap", "_regions") is None
        ):
            raise Unsupported(
                f"Java {self.release} does not export the regions of Shenandoah",
                found=f"Shenandoah of {self.version}",
                known="Shenandoah of 17 and later",
            )

    def _static_text(self, type_name: str, field: str) -> str:
        place = self.tables.static(type_name, field)
        found = None if place is None else self.memory.try_read(place, 8)
        where = int.from_bytes(found or b"", "little")
        if not where:
            return ""
        return read_texts(self.memory, np.array([where], dtype=np.uint64)).get(where, "")
