"""The C program with a heap that says of it what malloc says, for each glibc that there is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.waiting import PATIENCE_SECS

__all__ = ["FIGURES", "GLIBCS", "MallocProgram", "glibcs", "machine_program"]

FIGURES = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)
"""The fields of ``mallinfo2``, in the order in which the program says them."""

GLIBCS = "GCSPY_GLIBCS"
"""Variable that names a folder of unpacked packages libc6, each in a folder of its own, and `malloc_target-old`: the program linked against the oldest."""

_SOURCE = Path(__file__).with_name("malloc_target.c")


@cache
def machine_program(kind: str = "dynamic") -> Path:
    """Return the program for this machine's glibc, compiled once and stripped."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: malloc is not compared with what it says of itself")
    folder = Path(tempfile.mkdtemp(prefix="gcspy-test-malloc-"))
    _FOLDERS.append(folder)
    program = folder / f"malloc-{kind}"
    flags = ["-DSTATIC", "-static"] if kind == "static" else []
    done = subprocess.run(
        [
            compiler,
            "-O1",
            "-w",
            "-s",
            *flags,
            "-o",
            str(program),
            str(_SOURCE),
            "-lpthread",
            "-ldl",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and kind == "static":
        pytest.skip("no C library to link statically: apt-get install libc6-dev")
    assert not done.returncode, done.stderr
    return program


_FOLDERS: list[Path] = []


def remove_programs() -> None:
    """Remove what was compiled."""
    for folder in _FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
    _FOLDERS.clear()
    machine_program.cache_clear()


def glibcs() -> dict[str, list[str]]:
    """Return the beginning of a command line for each other glibc that was unpacked, by its name."""
    folder = os.environ.get(GLIBCS)
    if not folder:
        return {}
    found = {}
    for loader in sorted(Path(folder).glob("*/**/x86_64-linux-gnu/ld-linux-x86-64.so.2")):
        name = loader.relative_to(folder).parts[0]
        program = Path(folder) / "malloc_target-old"
        found[name] = [str(loader), "--library-path", str(loader.parent), str(program)]
    return found


@dataclass
class MallocProgram:
    """A running one.

    Args:
        command: The beginning of its command line.
        threads: Threads that allocate.
        size_bytes: Bytes that they allocate.
        churns: Whether they allocate and free all the time.
        environment: More variables.
    """

    command: list[str]
    threads: int = 3
    size_bytes: int = 6_000_000
    churns: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start it, and wait until its heap is made."""
        self.folder = Path(tempfile.mkdtemp(prefix="gcspy-test-malloc-"))
        arguments = [str(self.threads), str(self.size_bytes), "churn" if self.churns else "still"]
        self._process = subprocess.Popen(
            [*self.command, *arguments, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | self.environment,
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def __enter__(self) -> MallocProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def ask(self, command: str) -> list[int]:
        """Give it a command, and return the numbers of its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        words = self._process.stdout.readline().split()
        assert words, f"the program ended at {command}"
        return [] if words == ["done"] else [int(word) for word in words]

    def mallinfo(self) -> dict[str, int]:
        """Return what malloc says of itself; of 32 bits before 2.33."""
        return dict(zip(FIGURES, self.ask("info"), strict=True))

    def arenas(self) -> list[dict[str, int]]:
        """Return what ``malloc_info`` says of each arena, the main one first. `mallinfo` comes before."""
        text = (self.folder / "info").read_text()
        found = []
        for body in re.findall(r"<heap nr=\"\d+\">(.*?)</heap>", text, re.DOTALL):
            row = {"system": int(re.findall(r'<system type="current" size="(\d+)"', body)[0])}
            for kind, count, size in re.findall(
                r'<total type="(fast|rest)" count="(\d+)" size="(\d+)"', body
            ):
                row |= {f"{kind}_count": int(count), f"{kind}_bytes": int(size)}
            found.append(row)
        return found

    def live(self) -> npt.NDArray[np.uint64]:
        """Return address and usable bytes of all that the program holds, (n, 2)."""
        self.ask("live")
        return np.fromfile(self.folder / "live", dtype=np.uint64).reshape(-1, 2)

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate(timeout=PATIENCE_SECS)
        shutil.rmtree(self.folder, ignore_errors=True)
