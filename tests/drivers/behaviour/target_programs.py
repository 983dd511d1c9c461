"""Programs to watch: they answer each line with a number that grows, and hold still when they are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path

from tests.drivers.hotspot.jvms import Jvm
from tests.original.live import program

__all__ = ["JavaProgram", "OriginalTarget", "PythonProgram", "TargetProgram"]

_SOURCE = """
import gc, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("CREATE TABLE large (content BLOB)")
database.executemany("INSERT INTO large VALUES (?)", [(b"x" * 500,)] * 500)
database.commit()
kept = [[number, str(number) * 3] for number in range(20_000)]
gc.collect()
print("ready", flush=True)
for number, line in enumerate(sys.stdin):
    kept.append([number])
    gc.collect()
    print(number, flush=True)
"""


class TargetProgram(ABC):
    """A running program.

    Attributes:
        pid: Its process.
    """

    pid: int

    @abstractmethod
    def ask(self) -> int:
        """Have it do something, and return how often it did so; waits for the answer."""

    @abstractmethod
    def end(self) -> None:
        """End it and wait until it is gone; may be called twice."""

    def hold(self) -> None:
        """Stop it, and wait until all of it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def kill(self) -> None:
        """Kill it, and wait until its memory is gone; its number stays taken until `end`."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def tracer(self) -> int:
        """Return the number of the process that holds it as a debugger would; 0: none does."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("TracerPid:"):
                return int(line.split()[1])
        raise AssertionError("the kernel does not say who traces it")


class PythonProgram(TargetProgram):
    """A Python with some objects and an open database.

    Args:
        folder: Where the database is made.
    """

    def __init__(self, folder: Path) -> None:
        self.database = folder / "some.db"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SOURCE, str(self.database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        assert self._line() == "ready"

    def ask(self) -> int:
        """Have it keep another object and collect."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._line())

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


class JavaProgram(TargetProgram):
    """A JVM with some objects.

    Args:
        java: The launcher.
        classes: Folder of the compiled program.
        collector: Name of its collector, as flags have it.
    """

    def __init__(self, java: str, classes: Path, collector: str = "Serial") -> None:
        self._jvm = Jvm(java, classes, f"-XX:+Use{collector}GC", "-Xmx32m")
        self.pid = self._jvm.pid
        self._asked = 0
        self._jvm.tell("keep", 2)
        self._jvm.tell("collect")

    def ask(self) -> int:
        """Have it keep another megabyte."""
        self._jvm.tell("keep", 1)
        self._asked += 1
        return self._asked

    def end(self) -> None:
        """End it."""
        self._jvm.end()


class OriginalTarget(TargetProgram):
    """A program with a server of GCspy 1.0, whose events are its own."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._program = self._stack.enter_context(program("serve"))
        self.pid, self.port = self._program.process.pid, self._program.port

    def ask(self) -> int:
        """Wait for a sign of its work."""
        assert self._program.works()
        return int(
            next(one for one in reversed(self._program.lines) if one.startswith("works"))[5:]
        )

    def hold(self) -> None:
        """Nothing: a program that stands still has no events."""

    def end(self) -> None:
        """End it."""
        self._stack.close()
