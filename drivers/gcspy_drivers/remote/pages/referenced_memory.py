"""`ReferencedMemory`: how much of each mapping of a process was read or written since the kernel's marks were cleared.

For any process, without a stub. The kernel tells this for whole mappings only. It is the one way to
see reads, and it costs the process: after clearing, the first use of each page takes some
microseconds, since the processor has to look the page up again.

Knows the kernel's files; does not know what is in the mappings.

Source: proc_pid_clear_refs(5), proc_pid_smaps(5) Referenced.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.maps import ResidentMaps, figures_of, parse_smaps
from gcspy_drivers.remote.process import Process

__all__ = ["ReferencedMemory", "clear_referenced", "read_referenced"]

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class ReferencedMemory:
    """The mappings of a process.

    Attributes:
        resident: The mappings and their resident bytes.
        referenced_bytes: (n,) bytes of each that were read or written since the marks were cleared.
    """

    resident: ResidentMaps
    referenced_bytes: U64

    def by_name(self) -> dict[str, tuple[int, int]]:
        """Return resident and referenced bytes by what a mapping is: its file, the kernel's name, or ``[anonymous]``; most idle first."""
        sums: dict[str, Any] = {}
        for path, resident, used in zip(
            self.resident.maps.path,
            self.resident.rss_bytes.tolist(),
            self.referenced_bytes.tolist(),
            strict=True,
        ):
            before = sums.get(path or "[anonymous]", (0, 0))
            sums[path or "[anonymous]"] = before[0] + resident, before[1] + used
        return dict(sorted(sums.items(), key=lambda one: (one[1][1] - one[1][0], one[0])))


def clear_referenced(process: Process) -> None:
    """Clear the kernel's marks of a process.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not let us.
    """
    process.check()
    try:
        fd = os.open(f"/proc/{process.pid}/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"1")
        finally:
            os.close(fd)
    except OSError as error:
        process.refuse(error, "clear_refs")


def read_referenced(process: Process) -> ReferencedMemory:
    """Read what was used since the marks were cleared.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not show us its maps.
    """
    text = process.read_file("smaps")
    resident = parse_smaps(text)
    return ReferencedMemory(resident, figures_of(text, b"Referenced", resident.maps))
