"""Target programs with a stub in them, and a driver that holds its other end."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver
from gcspy_drivers.cpython.driver import CPythonDriver

from gcspy_server.api import AttachOptions, Event, Server
from gcspy_server.interpreter.core import Audience
from gcspy_session.interest import EVERYTHING

STUB = Path(__file__).parents[3] / "drivers/gcspy_drivers/cpython/cooperation/stub.py"

BEGIN = """
import gc, importlib.util, json, os, socket, sys, threading, time
spec = importlib.util.spec_from_file_location("stub", sys.argv[1])
stub_module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stub_module)
def begin():
    library = os.environ.get("TEST_LIBRARY", "")
    stub = stub_module.Stub(socket.socket(fileno=int(sys.argv[2])), waits=True, library=library)
    assert stub.wait()
    return stub
def say(what):
    print(json.dumps(what), flush=True)
"""


class StubbedTarget:
    """A program with a stub, and the socket that its stub talks to.

    Args:
        python: The interpreter.
        source: The program, after `BEGIN`; it calls ``begin()``.
        arguments: Its arguments from ``sys.argv[3]`` on.
        library: Path of the library with which its stub records events; empty: it waits at each.
    """

    def __init__(self, python: str, source: str, *arguments: str, library: str = "") -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [
                    python,
                    "-I",
                    "-W",
                    "error",
                    "-c",
                    BEGIN + source,
                    str(STUB),
                    str(theirs.fileno()),
                    *arguments,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                text=True,
                env={**os.environ, "TEST_LIBRARY": library},
            )
        self.pid = self.process.pid
        self.connection = ours

    def __enter__(self) -> StubbedTarget:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.connection.close()
        self.process.kill()
        self.process.communicate()

    def read_line(self) -> str:
        """Wait for a line that it prints; empty once it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, line: str) -> None:
        """Give it a line to read."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def errors(self) -> str:
        """Wait for its end, and return what it complained of."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def ended(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None


class Watching:
    """A driver of a stubbed target, the server, and the events that it sent.

    Args:
        target: The target.
        watched: Whether events are requested.
        level: The level.
        budget: The budget, in thousandths.
        may_hold: Whether a program reads every event before the target goes on.
        values: Options of the driver.
    """

    def __init__(
        self,
        target: StubbedTarget,
        *,
        watched: bool = True,
        level: int = 2,
        budget: int | None = None,
        may_hold: bool = True,
        values: Mapping[str, str] | None = None,
    ) -> None:
        options = AttachOptions(
            stub_fd=os.dup(target.connection.fileno()), level=level, values=values or {}
        )
        target.connection.close()  # the only end on our side is the driver's
        driver = CPythonDriver.attach(target.pid, options)
        assert isinstance(driver, CooperativeDriver)
        self.driver = driver
        self.server: Server = driver.describe().server(budget=budget)
        self.events: list[Event] = []
        if watched and may_hold:
            self.server.add_observer(self.events.append)
        elif watched:  # as a window does, for which nothing is held
            self.server._core.set_audience(Audience(clients=1, wants=EVERYTHING))
        try:
            driver.open(self.server)
            driver.wait(0)
        except BaseException:
            driver.close()
            raise

    def serve(self) -> NoReturn:
        """Serve the target's events until something ends that."""
        while True:
            self.driver.wait(5.0)

    def __enter__(self) -> Watching:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.driver.close()
