"""JVMs with the agent: a driver that holds them, in this process or in one that may be killed."""

from __future__ import annotations

import importlib.util
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import pytest
from gcspy_drivers.hotspot.cooperative_driver import CooperativeHotSpotDriver

from gcspy_server.api import AttachOptions
from tests.drivers.hotspot.jvms import Jvm
from tests.drivers.hotspot.watching import Watched

ROOT = Path(__file__).parents[3]
_SILENT_SECS = 10.0

HOLDING = """
import os, sys, time
from gcspy_drivers.hotspot.driver import HotSpotDriver
from gcspy_server.api import AttachOptions
driver = HotSpotDriver.attach(int(sys.argv[1]), AttachOptions(values={"inject": "agent"}))
server = driver.describe().server()
driver.open(server)
def hold(event):
    print("held", event.event, flush=True)
    sys.stdin.readline()
server.add_observer(hold)
driver.wait(0)  # from now on the agent knows what is wanted
print("ready", flush=True)
while True:
    driver.wait(0.05)
"""
"""A sidecar that holds the program at each event until the test releases it."""


def need_agent() -> None:
    """Build the agent if it is not there, or is of another source; skip where that cannot be."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    why_not = hook.build()
    if why_not:
        pytest.skip(f"the agent for JVMs is not built: {why_not}")


class Told(Watched):
    """A JVM that is watched through its agent."""

    def __init__(
        self,
        pid: int,
        options: AttachOptions | None = None,
        *,
        observed: bool = True,
        budget: int | None = None,
    ) -> None:
        super().__init__(
            pid,
            options or AttachOptions(level=1, values={"inject": "agent"}),
            observed=observed,
            budget=budget,
        )
        assert isinstance(self.driver, CooperativeHotSpotDriver)
        self.holder = self.driver

    def serve(self) -> NoReturn:
        """Serve the JVM's events until something ends that."""
        while True:
            self.holder.wait(1.0)

    def during(self, work: Callable[[], object]) -> None:
        """Serve the JVM's events during an action that makes it collect, until the action is done and all events are reported.

        A JVM that keeps collecting never reports all: `beside` is for that. An event at which gcspy
        was silent, on a busy machine, is reported with the next one: it is not waited for any longer
        once nothing came for a while.
        """
        self.beside(work)
        counts, since = self.server.counts(), time.monotonic()
        while self.holder._events.line.counts != counts[1:3]:
            self.holder.wait(0.01)
            if self.server.counts() != counts:
                counts, since = self.server.counts(), time.monotonic()
            elif time.monotonic() - since > _SILENT_SECS:
                return

    def beside(self, work: Callable[[], object]) -> None:
        """Serve the JVM's events while something is done, until that is done."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  # shown by the test, in its own thread
                failed.append(error)

        working = threading.Thread(target=run)
        working.start()
        while working.is_alive():
            self.holder.wait(0.01)
        working.join()
        if failed:
            raise failed[0]


class HoldingSidecar:
    """A process that holds a JVM at each of its events.

    Args:
        jvm: The JVM.
    """

    def __init__(self, jvm: Jvm) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDING, str(jvm.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.line() == "ready"

    def __enter__(self) -> HoldingSidecar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def line(self) -> str:
        """Wait for its next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        """Let the JVM continue."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


class Doing:
    """A request to a JVM whose end is not awaited yet.

    Args:
        jvm: The JVM.
        command: As in `Jvm.tell`.
        number: As in `Jvm.tell`.
    """

    def __init__(self, jvm: Jvm, command: str, number: int = 1) -> None:
        assert jvm.process.stdin is not None
        assert jvm.process.stdout is not None
        self._output = jvm.process.stdout
        jvm.process.stdin.write(f"{command} {number}\n")
        jvm.process.stdin.flush()

    def done(self, secs: float) -> bool:
        """Wait for its end, at most this long."""
        while select.select([self._output], [], [], secs)[0]:
            line = self._output.readline().strip()
            if line == "done" or not line:
                return bool(line)
            # A JVM from 21 on warns of an agent that came later, in three lines at once, of which some are in the buffer now.
            while line.startswith("WARNING") and "future release" not in line:
                line = self._output.readline().strip()
        return False
