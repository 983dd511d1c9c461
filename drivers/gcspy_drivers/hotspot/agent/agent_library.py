"""`AgentLibrary`: one of our libraries in a JVM: loaded once, and loaded again to be told what to do.

A JVM gets a copy of its own, in a folder that is removed again as soon as it is loaded: so the
installed file may be replaced, and the JVM need not be able to read it. A JVM that already has it
uses that one: it is never unmapped, so there is one.

Knows requests and answers; does not know what the libraries do.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.agent.attach_protocol import AttachListener
from gcspy_drivers.remote.handover import PLACES, Handover
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.process import Process

__all__ = ["AgentLibrary", "installed"]


def installed(prefix: str) -> Path | None:
    """Return the latest of our libraries whose name begins with this; None: it was not built."""
    found = sorted(
        Path(__file__).parents[1].glob(f"{prefix}-*.so"), key=lambda path: path.stat().st_mtime
    )
    return found[-1] if found else None


class AgentLibrary:
    """A library in one JVM.

    Args:
        process: The process; borrowed.
        answers: Meaning of each answer code; ``{pid}`` is replaced by the process id.
    """

    def __init__(self, process: Process, answers: Mapping[str, str]) -> None:
        self._process = process
        self._answers = answers
        self._listener = AttachListener(process)
        self._path = ""

    def load(self, image: Path, folder: Handover, option: str, deadline: float) -> None:
        """Load the library, and make it carry out an option.

        Args:
            image: The installed file.
            folder: Folder in which the JVM finds a copy.
            option: The option to carry out.
            deadline: On the monotonic clock, when to give up.

        Raises:
            TargetError: The JVM did not load it, or the library did not carry out the option.
        """
        before = self._had(image.name)
        # The copy is made in any case: it is needed if the evidence in the maps turns out to be
        # wrong.
        fresh = folder.add(image.name, image.read_bytes())
        paths = [path for path in (before, fresh) if path]
        for last, path in [(path is paths[-1], path) for path in paths]:
            if self._ask(path, option, max(0.1, deadline - time.monotonic()), last=last):
                self._path = path
                return

    def ask(self, option: str, *, secs: float) -> None:
        """Have it do something; nothing is done if it was not loaded by this.

        Raises:
            TargetError: It did not do it.
        """
        if self._path:
            self._ask(self._path, option, secs, last=True)

    def take_out(self, *, secs: float) -> None:
        """Make it release all its resources; a JVM that does not answer keeps one that does nothing."""
        with suppress(TargetError):
            self.ask("stop", secs=secs)

    def _ask(self, path: str, option: str, secs: float, *, last: bool) -> bool:
        """Load it by a path; False: it is not there, and another path remains to be tried."""
        answer = self._listener.ask("load", path, "true", option, secs=secs)
        # Since 9 "return code: 0", before that "0"; anything else is why it was not even loaded, also behind a code 0.
        found = re.search(r"(?:^|return code:)\s*(\d+)\s*$", answer)
        if found is not None and found[1] == "0":
            return True
        if found is None and not last:
            return False
        pid = self._process.pid
        said = self._answers.get(found[1], "").format(pid=pid) if found else ""
        said = said or " ".join(answer.split())[:400] or "no reason given"
        raise TargetError(f"process {pid}: the JVM did not load the agent: {said}")

    def _had(self, name: str) -> str:
        """Return the path by which the JVM knows the library that it has already; empty if it has none."""
        places = "|".join(PLACES)
        for path in read_maps(self._process).path:
            if path.removesuffix(" (deleted)").endswith(f"/{name}"):
                # In another root we see it by our own path: the JVM's path begins at a place of
                # ours.
                inside = re.search(rf"/(?:{places})/gcspy-[0-9a-f]{{16}}/{re.escape(name)}", path)
                return inside[0] if inside else path
        return ""
