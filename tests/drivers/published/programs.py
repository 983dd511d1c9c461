"""Programs that show themselves with gcspy.h: built from the examples and from `target.c`, once a run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from gcspy_drivers.published.include_folder import include_folder

from tests.drivers.behaviour.target_programs import TargetProgram
from tests.house.rooms import ROOT
from tests.once import made_once

__all__ = ["EXAMPLES", "STRICT", "CommandedProgram", "ExampleProgram", "build", "find_tool", "started"]  # fmt: skip

EXAMPLES = ROOT / "docs/examples/gcspy_h"
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
_RUSTC = Path.home() / ".cargo/bin/rustc"


def find_tool(*names: str) -> str:
    """Return the first of some tools that is there, or skip the test."""
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.skip(f"none of {', '.join(names)} is here: programs with gcspy.h are not tested")


def build(name: str) -> Path:
    """Build an example, or ``target``, once a run; skip the test where a tool or library is missing."""
    compiler = find_tool("cc", "gcc", "clang")
    if name == "page_cache" and not Path("/usr/include/sqlite3.h").is_file():
        pytest.skip("there is no sqlite3.h (Debian: libsqlite3-dev): its page cache is not tested")
    rustc = shutil.which("rustc") or (str(_RUSTC) if _RUSTC.is_file() else "")
    if name == "arena" and not rustc:
        pytest.skip("there is no rustc (Debian: rustc): the example in Rust is not tested")
    return made_once(f"gcspy-h-{name}", partial(_build, name, compiler, rustc)) / name


def _build(name: str, compiler: str, rustc: str, folder: Path) -> None:
    program, include = str(folder / name), f"-I{include_folder()}"
    if name == "arena":
        shim = str(folder / "shim.o")
        _run(compiler, "-O2", "-c", include, str(EXAMPLES / "rust/shim.c"), "-o", shim)
        _run(rustc, "-O", "-C", f"link-arg={shim}", str(EXAMPLES / "rust/arena.rs"), "-o", program)
        return
    target = Path(__file__).with_name("target.c")
    source = str(target if name == "target" else EXAMPLES / f"{name}.c")
    libraries = ("-lsqlite3",) if name == "page_cache" else ()
    _run(compiler, *_FLAGS, include, source, *libraries, "-o", program)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


class ExampleProgram(TargetProgram):
    """An example that does a round for each line.

    Args:
        name: Its name.
        argument: Its argument.

    Attributes:
        said: What it printed last: the number of the round, and what it counts itself.
    """

    def __init__(self, name: str, argument: str = "asked") -> None:
        self._process = subprocess.Popen(
            [build(name), argument], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self.said = self._read()

    def ask(self) -> int:
        """Have it do a round; return its number."""
        self.tell("")
        self.said = self._read()
        return self.said[0]

    def tell(self, line: str) -> None:
        """Send it a line, without waiting for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def line(self) -> str:
        """Read a line of its output."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _read(self) -> tuple[int, int]:
        round_, _, own = self.line().partition(" ")
        return int(round_), int(own or 0)


class CommandedProgram(ExampleProgram):
    """`target.c`, which does what it is told.

    Args:
        flags: Of gcspy_open: 1: it can wait.
    """

    def __init__(self, flags: int = 0) -> None:
        self._asked = 0
        super().__init__("target", str(flags))

    def do(self, command: str) -> int:
        """Have it do something; return what it answers."""
        self.tell(command)
        return int(self.line())

    def ask(self) -> int:
        """Have it write an event."""
        self._asked += 1
        self.do(f"first {self._asked}")
        return self._asked

    def _read(self) -> tuple[int, int]:
        assert self.line() == "ready"
        return 0, 0


@contextmanager
def started(flags: int = 0) -> Iterator[CommandedProgram]:
    """Run `target.c` for the body of the `with`."""
    program = CommandedProgram(flags)
    try:
        yield program
    finally:
        program.end()
