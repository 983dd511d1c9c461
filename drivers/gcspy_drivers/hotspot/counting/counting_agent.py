"""The agent in Java that counts: where it is, and how a JVM that runs loads it and is told to stop.

It writes into a folder that both processes use. While `CountingAgent` holds a lock there the agent counts; when that ends, however it ends, all classes
get their own code back.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.hotspot.agent.attach_protocol import AttachListener
from gcspy_drivers.hotspot.counting.site_files import SiteFiles
from gcspy_drivers.remote.process import Process

__all__ = ["CountingAgent", "path_of_agent"]

_ATTACH_SECS: Final = 60.0
_HELD: Final = "held"
"""File that is locked while the agent is wanted."""


def path_of_agent() -> Path:
    """Return the file of the agent.

    Raises:
        Unsupported: It was not built.
    """
    found = sorted(Path(__file__).parents[1].glob("gcspy-counting-*.jar"))
    if not found:
        raise Unsupported(
            "allocation sites of JVMs are counted by an agent in Java, which was not built: install a JDK (default-jdk-headless), and gcspy again",
            found="no gcspy-counting agent",
            known="one that was built when gcspy was installed",
        )
    return found[-1]


class CountingAgent:
    """The agent in a JVM that runs; it is loaded by `load`.

    Args:
        process: The JVM; borrowed.
        shares: Whether sites may share counters.

    Attributes:
        folder: Where it writes.

    Raises:
        Unsupported: It was not built; or it is another user's or container's JVM.
    """

    def __init__(self, process: Process, *, shares: bool = True) -> None:
        self._agent = path_of_agent()
        if not _shares_files(process.pid):
            raise Unsupported(
                "the agent writes counts into a folder that both of us use: count as the user of the JVM, and in its container",
                found=f"process {process.pid}, of another user or with other files",
                known="a JVM of this user, with the same files",
            )
        self._listener = AttachListener(process)
        self._shares = shares
        self.folder = Path(tempfile.mkdtemp(prefix="gcspy-count-"))
        self._lock = os.open(self.folder / _HELD, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.lockf(self._lock, fcntl.LOCK_EX)

    def load(self) -> None:
        """Give the classes of the program counters.

        Raises:
            TargetError: The JVM does not load the agent, or the agent does not count in it.
        """
        self._tell(f"{'' if self._shares else 'site:'}{self.folder}")
        why_not = SiteFiles(self.folder).refused()
        if why_not:
            raise TargetError(why_not)

    def stop(self) -> None:
        """Give the classes their own code back; what was counted stays until `close`.

        Raises:
            TargetError: The JVM does not answer. It does so by itself once this is closed.
        """
        self._tell("stop")

    def close(self) -> None:
        """Remove the folder. If the agent still counts, it stops within seconds."""
        os.close(self._lock)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _tell(self, argument: str) -> None:
        said = self._listener.ask(
            "load", "instrument", "false", f"{self._agent}={argument}", secs=_ATTACH_SECS
        )
        if said.strip() not in ("", "0", "return code: 0"):
            raise TargetError(f"the JVM did not load the agent that counts: {said.strip()[:200]}")


def _shares_files(pid: int) -> bool:
    try:
        theirs = os.stat(f"/proc/{pid}")
        same = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    except OSError:
        return False
    return same and theirs.st_uid == os.geteuid()
