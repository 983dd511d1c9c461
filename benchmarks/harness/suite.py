"""The pyperformance suite, in a throw-away environment: the programs that `programs` records.

The suite is installed from a package index, at a pinned version, into a virtual environment in a temporary folder: nothing
of it enters the project's own. Its programs are files of that package, and what they need is pinned by it.

Knows the suite's files; does not know recordings.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.environment import Unavailable, install, make_environment

__all__ = ["PROGRAMS", "VERSION", "Program", "Suite", "installed"]

VERSION = "1.14.0"
"""Of pyperformance: the programs, and the versions of what they need, are those of this release."""

# Lets the program start when a line comes, so that the recorder is there from the first statement on. Otherwise it is as if it had
# been started by its name; nothing of GCspy is in it.
_GATE = """
import sys
sys.stdin.readline()
import runpy
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the suite.

    Attributes:
        name: As the suite calls it.
        loops: How often it does its work: about four seconds on the machine where this was written.
        arguments: Which of its variants.
        folder: Where the suite keeps it; by default its name.
        note: Why it is here, if not because it allocates.
    """

    name: str
    loops: int
    arguments: tuple[str, ...] = ()
    folder: str = ""
    note: str = ""

    @property
    def path(self) -> str:
        """Its folder in the suite."""
        return f"bm_{self.folder or self.name}"


PROGRAMS = (
    Program("async_tree_none", 5, ("none",), "async_tree"),
    Program("chameleon", 220),
    Program("deepcopy", 9_000, ("--worker-task", "0")),
    Program("deltablue", 900),
    Program("docutils", 1),
    Program("float", 40),
    Program("gc_collect", 950),
    Program("gc_traversal", 400),
    Program("html5lib", 50),
    Program("json_dumps", 250),
    Program("mako", 300),
    Program("nbody", 35, note="allocates floats only"),
    Program("pickle_pure_python", 500, ("--pure-python", "pickle"), "pickle"),
    Program("pyflate", 8),
    Program("raytrace", 10),
    Program("richards", 70),
    Program("tomli_loads", 2),
    Program("unpack_sequence", 50_000, note="allocates nothing"),
)


class Suite:
    """The suite, installed; made by `installed`.

    Attributes:
        python: The interpreter of its environment.
    """

    def __init__(self, python: Path) -> None:
        self.python = python
        where = "import pyperformance; print(pyperformance.__path__[0])"
        found = subprocess.run(
            [python, "-c", where], capture_output=True, text=True, check=True
        ).stdout
        self._programs = Path(found.strip()) / "data-files" / "benchmarks"

    def prepare(self, program: Program) -> None:
        """Install what a program needs.

        Raises:
            Unavailable: There is no such program, or it needs what cannot be installed.
        """
        folder = self._programs / program.path
        if not folder.is_dir():
            raise Unavailable(f"pyperformance {VERSION} has no {program.path}")
        requirements = folder / "requirements.txt"
        if requirements.exists():
            install(self.python, "-r", str(requirements))

    def add(self, *packages: str) -> None:
        """Install other packages beside the suite.

        Raises:
            Unavailable: They cannot be installed.
        """
        install(self.python, *packages)

    def folder_of(self, program: Program) -> Path:
        """Where a program stands, and wants to be run."""
        return self._programs / program.path

    def arguments_of(self, program: Program, *, scale: float = 1.0) -> list[str]:
        """A program's file and arguments, as the suite's own runner starts the process that does the work: one value, no warm-up.

        Args:
            program: Which.
            scale: Factor of the number of loops.
        """
        loops = max(1, round(program.loops * scale))
        return [
            "run_benchmark.py",
            "--worker",
            f"--loops={loops}",
            "--values=1",
            "--warmups=0",
            *program.arguments,
        ]

    def start(self, program: Program, *, scale: float = 1.0) -> subprocess.Popen[str]:
        """Start a program, which waits for a line on its standard input before its first statement.

        Args:
            program: Which.
            scale: Factor of the number of loops.
        """
        return subprocess.Popen(
            [self.python, "-c", _GATE, *self.arguments_of(program, scale=scale)],
            cwd=self.folder_of(program),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def installed(python: str) -> Iterator[Suite]:
    """Install the suite for the body of the `with`.

    Args:
        python: The interpreter that is to run it.

    Raises:
        Unavailable: It cannot be installed.
    """
    with tempfile.TemporaryDirectory(prefix="gcspy-suite-") as folder:
        inside = make_environment(python, Path(folder))
        install(inside, f"pyperformance=={VERSION}")
        yield Suite(inside)
