"""`RuntimeDiscovery`: the result of a quick check of a process, the same record for every driver.

Knows texts; does not know how they are found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gcspy_protocol.errors import TargetError

from gcspy_server.driver_recognition import Recognition, Specificity

__all__ = ["RuntimeDiscovery", "answered"]


@dataclass(frozen=True, kw_only=True)
class RuntimeDiscovery:
    """The result of a quick check of a process.

    Attributes:
        runtime: Name of the runtime; empty: the process has none that this driver knows.
        version: Its version, as far as known, as people write it.
        numbers: The same as numbers: (3, 11, 7), (3, 10), or () if it is not known, or not numeric.
        image: The executable or library that contains the runtime; empty: not known.
        facts: Further facts for a human, such as the image or the collector; empty ones are not
            shown.
        program: The program, if the command line does not show it well; may be empty.
        modes: The modes in which it can be monitored.
        why_not: Why it cannot be monitored, with the remedy; empty: it can.
        start_ticks: Start time of the process, which with the PID identifies it; 0: not noted.
    """

    runtime: str = ""
    version: str = ""
    numbers: tuple[int, ...] = ()
    image: str = ""
    facts: tuple[str, ...] = ()
    program: str = ""
    modes: tuple[str, ...] = ()
    why_not: str = ""
    start_ticks: int = 0

    @property
    def supported(self) -> bool:
        """Whether it can be monitored."""
        return bool(self.runtime) and not self.why_not

    def recognition(self) -> Recognition:
        """Return it as a driver's answer about the process."""
        return Recognition(
            runtime=self.runtime,
            specificity=Specificity.RUNTIME,
            version=self.version,
            detail=", ".join(fact for fact in self.facts if fact),
            program=self.program,
            modes=self.modes if self.supported else (),
            supported=self.supported,
            why_not=self.why_not,
        )


def answered(find: Callable[[int], Recognition | None], pid: int) -> Recognition:
    """Ask a quick check about a process; one that could not be made says why.

    Args:
        find: Checks it; None: nothing that the driver knows.
        pid: The process.
    """
    try:
        return find(pid) or Recognition()
    except (
        TargetError,
        OSError,
    ) as error:  # it ended meanwhile, or we may not see its files
        return Recognition(why_not=str(error))
