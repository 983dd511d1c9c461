"""A program with the Boehm collector, built from `target.c`, once a run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.drivers.behaviour.target_programs import TargetProgram
from tests.once import made_once

__all__ = ["BoehmProgram", "Dump", "Stats", "started"]

_HEADER = Path("/usr/include/gc.h")


class Stats(NamedTuple):
    """What GC_get_prof_stats says."""

    heap_bytes: int
    free_bytes: int
    unmapped_bytes: int
    number: int


class Dump(NamedTuple):
    """What GC_dump says.

    Attributes:
        blocks: Kind, object size, marked objects, objects of each block, in the order of the dump.
        free: Address and bytes of each free block.
        heap_bytes: Size of the heap.
    """

    blocks: list[tuple[int, int, int, int]]
    free: list[tuple[int, int]]
    heap_bytes: int


class BoehmProgram(TargetProgram):
    """`target.c`, which does what it is told.

    Args:
        objects: How many it keeps at first; two thirds of them are garbage that was collected.
    """

    def __init__(self, objects: int = 20_000) -> None:
        self._process = subprocess.Popen(
            [_built()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        assert self._line() == "ready"
        self._asked = 0
        for command in (f"keep {objects}", "drop 3", "collect"):
            self.do(command)

    def do(self, command: str) -> Stats:
        """Have it do something; return what the collector says afterwards."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return Stats(*map(int, self._line().split()))

    def dump(self, path: Path) -> Dump:
        """Have the collector write down its heap."""
        self.do(f"dump {path}")
        text = path.read_text()
        blocks = re.findall(r"^(\d+),(\d+),(\d+),(\d+)$", text.partition("Blocks in use:")[2], re.M)
        free = re.findall(r"^\t0x([0-9a-f]+) size (\d+) ", text, re.M)
        total = re.search(r"Total heap size: (\d+)", text)
        assert total is not None
        return Dump(
            [(int(kind), int(size), int(marked), int(count)) for kind, size, marked, count in blocks],
            [(int(address, 16), int(size)) for address, size in free],
            int(total[1]),
        )  # fmt: skip

    def ask(self) -> int:
        """Have it keep some more, and collect."""
        self.do("keep 10")
        self.do("collect")
        self._asked += 1
        return self._asked

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


def _built() -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not _HEADER.is_file():
        pytest.skip(
            "there is no C compiler, or no gc.h (Debian: gcc, libgc-dev): libgc is not tested"
        )

    def build(folder: Path) -> None:
        source = Path(__file__).with_name("target.c")
        subprocess.run(
            [compiler, "-std=gnu11", "-O2", "-Wall", "-Werror", str(source), "-lgc", "-o", str(folder / "target")],
            check=True,
        )  # fmt: skip

    return made_once("boehm-target", build) / "target"


@contextmanager
def started(objects: int = 20_000) -> Iterator[BoehmProgram]:
    """Run the program for the body of the `with`."""
    program = BoehmProgram(objects)
    try:
        yield program
    finally:
        program.end()
