"""`Snapshot`: the numbers of all processes at one event; immutable, so that any thread may read it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from gcspy.metrics.measures import Reading

__all__ = ["ProcessReadings", "Snapshot", "SnapshotBoard"]


@dataclass(frozen=True, slots=True)
class ProcessReadings:
    """The numbers of one process.

    Attributes:
        pid: The process.
        name: Name of its program.
        started: When it started, in seconds since 1970.
        readings: The numbers.
    """

    pid: int
    name: str
    started: int
    readings: tuple[Reading, ...]

    @property
    def labels(self) -> dict[str, str]:
        """Attributes of all of its series, by OpenTelemetry's names."""
        return {
            "process.pid": str(self.pid),
            "process.executable.name": self.name,
            "process.creation.time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
        }


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The numbers of all processes.

    Attributes:
        secs: When they were read, by the monotonic clock.
        processes: The processes.
    """

    secs: float
    processes: tuple[ProcessReadings, ...] = ()


@dataclass(slots=True)
class SnapshotBoard:
    """The latest snapshot, which the driver's thread replaces and others read.

    Attributes:
        join: The command that shows the tiles of these processes.
        latest: The latest snapshot.
    """

    join: str = ""
    latest: Snapshot = field(default_factory=lambda: Snapshot(time.monotonic()))

    @property
    def age_secs(self) -> float:
        """Age of the latest snapshot, in seconds."""
        return time.monotonic() - self.latest.secs
