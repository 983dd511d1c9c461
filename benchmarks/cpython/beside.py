"""Beside other tools: what memray, tracemalloc, py-spy and this one cost the same programs, how long attaching takes, and how long it stalls the target.

    python -m benchmarks.cpython.beside [--program NAME]... [--pairs N] [--scale X]

The tools do different things: memray and tracemalloc see every allocation, py-spy samples stacks,
gcspy shows the heap itself. They stand in one table because a user has to choose. Each program
measures itself (`timed`), in turn alone and with each tool. Then each tool that can attach is
attached to a program that only reads the clock: the longest interval between two of its readings is
the stall.

Needs a package index for the suite and the tools (see `suite`), and some minutes: it is not one of those that run by default.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.suite import PROGRAMS, Program, Suite, installed
from benchmarks.harness.timed_run import CODE, TimedRun, run_timed

__all__ = ["main"]

_TOOLS = ("memray==1.20.0", "py-spy==0.4.3")
_BY_DEFAULT = ("async_tree_none", "deltablue", "docutils", "html5lib", "pickle_pure_python")

_BEATING = """
import signal, sys, time
kept = [[{} for _ in range(100)] for _ in range(int(sys.argv[1]) // 100)]
worst = 0.0
def tell(*_):
    global worst, last
    print(worst, flush=True)
    worst, last = 0.0, time.perf_counter()
signal.signal(signal.SIGUSR1, tell)
print("ready", flush=True)
last = time.perf_counter()
while True:
    now = time.perf_counter()
    if now - last > worst:
        worst = now - last
    last = now
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A way to run a program under a tool.

    Attributes:
        name: As it stands in the table.
        before: Arguments in front of the program's own; "{python}" and "{out}" are filled in.
        attached: Command that attaches to the process once it runs; "{pid}" is filled in, too.
    """

    name: str
    before: tuple[str, ...] = ("{python}", "-c")
    attached: tuple[str, ...] = ()


_GCSPY = (sys.executable, "-m", "gcspy")
TOOLS = (
    Tool("gcspy record, 10 Hz", attached=(*_GCSPY, "record", "{pid}", "-o", "{out}", "--clock", "10")),
    Tool("gcspy record, 10 Hz, level 3", attached=(*_GCSPY, "record", "{pid}", "-o", "{out}", "--clock", "10", "--level", "3")),
    Tool("py-spy record, 100 Hz", ("{py-spy}", "record", "-r", "100", "-f", "raw", "-o", "{out}", "--", "{python}", "-c")),
    Tool("tracemalloc", ("{python}", "-X", "tracemalloc", "-c")),
    Tool("memray", ("{python}", "-m", "memray", "run", "-q", "-f", "-o", "{out}", "-c")),
    Tool("memray --native", ("{python}", "-m", "memray", "run", "-q", "-f", "--native", "-o", "{out}", "-c")),
    Tool("memray, Python's allocators", ("{python}", "-m", "memray", "run", "-q", "-f", "--trace-python-allocators", "-o", "{out}", "-c")),
)  # fmt: skip

ATTACHED = (
    Tool("gcspy tail: one event, level 2", attached=(*_GCSPY, "tail", "{pid}", "--events", "1")),
    Tool(
        "gcspy tail: one event, level 3",
        attached=(*_GCSPY, "tail", "{pid}", "--events", "1", "--level", "3"),
    ),
    Tool("py-spy dump", attached=("{py-spy}", "dump", "--pid", "{pid}")),
    Tool(
        "memray attach (by gdb)",
        attached=(
            "{python}",
            "-m",
            "memray",
            "attach",
            "--method",
            "gdb",
            "-f",
            "-o",
            "{out}",
            "{pid}",
        ),
    ),
    Tool("nothing, as long", attached=("sleep", "2")),
)


def _filled(words: tuple[str, ...], suite: Suite, out: Path, pid: int = 0) -> list[str]:
    spy = str(suite.python.parent / "py-spy")
    known = {"{python}": str(suite.python), "{py-spy}": spy, "{out}": str(out), "{pid}": str(pid)}
    return [known.get(word, word) for word in words]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gcspy-beside-") as folder:
        yield Path(folder)


def _run(
    suite: Suite, program: Program, tool: Tool | None, options: argparse.Namespace
) -> TimedRun:
    with _folder() as folder:
        out = folder / "out.gcspy"
        attached: list[subprocess.Popen[bytes]] = []

        def attach(pid: int) -> None:
            if tool is not None and tool.attached:
                words = _filled(tool.attached, suite, out, pid)
                attached.append(
                    subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                )

        before = ("{python}", "-c") if tool is None else tool.before
        try:
            return run_timed(
                [*_filled(before, suite, out), CODE, *suite.arguments_of(program, scale=options.scale)],
                folder=suite.folder_of(program), told=folder / "told", most_secs=options.most, started=attach,
            )  # fmt: skip
        finally:
            for process in attached:
                process.terminate()
                process.wait()


def _slowdowns(suite: Suite, options: argparse.Namespace) -> None:
    by_name = {program.name: program for program in PROGRAMS}
    print(
        "| program | tool | slowdown | pairs | own cpu | load |\n|---|---|---|---|---|---|",
        flush=True,
    )
    for name in options.program or _BY_DEFAULT:
        if name not in by_name:
            raise Unavailable(f"there is no program {name}; there are {', '.join(by_name)}")
        suite.prepare(by_name[name])
        for tool in TOOLS:
            walls, owns = [], []
            for _ in range(options.pairs):
                alone, watched = (
                    _run(suite, by_name[name], each, options) for each in (None, tool)
                )
                walls.append(watched.wall_secs / alone.wall_secs)
                owns.append(watched.own_secs / alone.own_secs)
            cells = (
                name, tool.name, f"{statistics.median(walls):.3f}", f"{min(walls):.3f} to {max(walls):.3f}",
                f"{statistics.median(owns):.3f}", f"{os.getloadavg()[0]:.1f}",
            )  # fmt: skip
            print("| " + " | ".join(cells) + " |", flush=True)


def _stalls(suite: Suite, options: argparse.Namespace) -> None:
    print(f"\nattached to a program with {options.objects:,} dictionaries\n")
    print(
        "| tool | command to end, s | longest stall of the target, ms | exit | load |\n|---|---|---|---|---|",
        flush=True,
    )
    for tool in ATTACHED:
        if "attach" in tool.attached and shutil.which("gdb") is None:
            print(f"{tool.name} is left out: there is no gdb", file=sys.stderr)
            continue
        took, stalls, codes = [], [], set()
        for _ in range(options.pairs):
            beating = subprocess.Popen(
                [suite.python, "-c", _BEATING, str(options.objects)],
                stdout=subprocess.PIPE,
                text=True,
            )
            with _folder() as folder, beating:
                assert beating.stdout is not None
                beating.stdout.readline()
                time.sleep(0.5)
                beating.send_signal(signal.SIGUSR1)
                beating.stdout.readline()
                began = time.monotonic()
                words = _filled(tool.attached, suite, folder / "out", beating.pid)
                codes.add(
                    subprocess.run(
                        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
                    ).returncode
                )
                took.append(time.monotonic() - began)
                beating.send_signal(signal.SIGUSR1)
                stalls.append(float(beating.stdout.readline()) * 1e3)
                beating.kill()
        cells = (
            tool.name, f"{statistics.median(took):.2f}", f"{statistics.median(stalls):.1f} ({min(stalls):.1f} to {max(stalls):.1f})",
            ", ".join(map(str, sorted(codes))), f"{os.getloadavg()[0]:.1f}",
        )  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter of the programs")
    parser.add_argument(
        "--program", action="append", metavar="NAME", help="only this one (may be given again)"
    )
    parser.add_argument("--pairs", type=int, default=3, help="runs without and with each tool")
    parser.add_argument("--scale", type=float, default=0.5, help="so many times the work")
    parser.add_argument(
        "--most", type=float, default=120.0, metavar="SECONDS", help="a run is ended after so long"
    )
    parser.add_argument(
        "--objects",
        type=int,
        default=1_000_000,
        help="dictionaries of the program that is attached to",
    )
    options = parser.parse_args()
    try:
        with installed(options.python) as suite:
            suite.add(*_TOOLS)
            _slowdowns(suite, options)
            _stalls(suite, options)
    except Unavailable as why:
        print(f"benchmarks.cpython.beside: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
