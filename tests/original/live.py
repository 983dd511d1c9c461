"""Programs with a server of GCspy 1.0, and sessions of ours that are clients of them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcspy.connection.link import connect
from gcspy.hosts.process_host import ServingOptions, serve_target
from gcspy_server.api import ServedSession, Server
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS, wait_until

_PROGRAM = Path(__file__).with_name("server.py")


class OriginalProgram:
    """The program of `server.py`, and what it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        assert process.stdout is not None
        self.port = int(process.stdout.readline())
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    @property
    def address(self) -> str:
        return f"gcspy666://127.0.0.1:{self.port}"

    def until(self, line: str, *, times: int = 1) -> None:
        wait_until(
            lambda: sum(one.startswith(line) for one in list(self.lines)) >= times,
            f"{line}, {times} times, in {self.lines[-30:]}",
        )

    def works(self) -> bool:
        """Whether it still does its work: waits for a sign of it."""
        before = sum(one.startswith("works") for one in list(self.lines))
        self.until("works", times=before + 1)
        return self.process.poll() is None and not any(one.startswith("died") for one in self.lines)

    def join(self) -> None:
        self._reader.join(PATIENCE_SECS)


@contextmanager
def program(*arguments: str) -> Iterator[OriginalProgram]:
    """A program that runs for the block."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(_PROGRAM), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            found = OriginalProgram(process)
            yield found
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE_SECS)
            found.join()


@contextmanager
def session(address: str, folder: Path) -> Iterator[tuple[Server, Viewer]]:
    """A session of a server of GCspy 1.0 in this process, and a viewer in control of it."""
    stop, ready = threading.Event(), threading.Event()
    made: list[tuple[Server, ServedSession]] = []
    ended: list[str] = []

    def on_ready(server: Server, listening: ServedSession) -> None:
        made.append((server, listening))
        ready.set()

    def serve() -> None:
        try:
            options = ServingOptions(pid=0, original=address, listen=(f"unix:{folder}/o.sock",))
            ended.append(serve_target(options, stop=stop, on_ready=on_ready))
        finally:
            ready.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert ready.wait(PATIENCE_SECS)
        assert made
        server, listening = made[0]
        with connect(listening.addresses[0], wants_control=True) as link:
            yield server, Viewer(link)
    finally:
        stop.set()
        thread.join(PATIENCE_SECS)


def kill_when(process: subprocess.Popen[str], secs: float) -> None:
    """Kill a process after a moment."""
    time.sleep(secs)
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_SECS)
