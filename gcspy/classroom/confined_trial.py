"""Trials of a stranger's code in a process of their own, which is confined before the code is loaded.

`python -m gcspy.classroom.confined_trial` is that process: it reads the code from a folder, and writes one JSON object. What it writes comes
from a stranger, so no more than a limit is read, and each value is checked.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from gcspy_protocol.errors import CommandError

from gcspy.classroom.confinement import CPU_SECS, MEMORY_BYTES, SIGNALLED, confine

__all__ = ["ConfinedResult", "try_confined"]

_MOST_SECS: Final = 2 * CPU_SECS
_MOST_OUTPUT: Final = 1 << 20
_PIECE: Final = 1 << 16
_MOST_CHARS: Final = 2000
_OUT_OF_TIME: Final = tuple(
    code for number in (signal.SIGKILL, signal.SIGXCPU) for code in (-number, SIGNALLED + number)
)
_FILE: Final = "student.py"
_NEEDED: Final = tuple(
    f"gcspy_drivers.simulator.{name}" for name in ("plans", "programs", "verify", "mutator")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfinedResult:
    """How a file ran.

    Attributes:
        runs: How often it was run; right: how many of these were right.
        problem: The first problem; empty: none.
        open: What could not be confined on this system, each a clause.
    """

    runs: int = 1
    right: int = 0
    problem: str = ""
    open: tuple[str, ...] = ()


def try_confined(source: str, *, most_secs: float = _MOST_SECS) -> ConfinedResult:
    """Try the code of a student.

    Args:
        source: Its text: a collector, or a program with a function ``work``.
        most_secs: How long to wait for it.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")
    }
    environment |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "GCSPY_MACHINE_CODE": "no",
        "OPENBLAS_NUM_THREADS": "1",  # a process with threads gets no namespace of its own
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory(prefix="gcspy-mark-") as folder:
        (Path(folder) / _FILE).write_text(source, encoding="utf-8")
        child = subprocess.Popen(
            [sys.executable, "-m", __name__, folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        try:
            output = _read(child, most_secs)
        except TimeoutError:
            return ConfinedResult(problem=f"{_FILE}: not done after {most_secs:g} s")
        finally:
            _end(child)
    return _checked(output, child.returncode, folder)


def _read(child: subprocess.Popen[bytes], most_secs: float) -> bytes:
    """Return the output of a child, and await its end; of more output than the limit, little more than the limit is read.

    Raises:
        TimeoutError: It did not end in time.
    """
    assert child.stdout is not None
    until = time.monotonic() + most_secs
    output = bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(child.stdout, selectors.EVENT_READ)
        while len(output) <= _MOST_OUTPUT:
            if not ready.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            more = os.read(child.stdout.fileno(), _PIECE)
            if not more:
                break
            output += more
    if len(output) <= _MOST_OUTPUT:
        try:
            child.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
    return bytes(output)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it has started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


def _checked(output: bytes, code: int, folder: str) -> ConfinedResult:
    if not output and code in _OUT_OF_TIME:
        return ConfinedResult(problem=f"{_FILE}: more than {CPU_SECS} s of processor time")
    try:
        said: Any = json.loads(output) if len(output) <= _MOST_OUTPUT else None
        runs, right, problem, left_open = (
            said[key] for key in ("runs", "right", "problem", "open")
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        runs = None
    if (
        runs is None
        or not all(isinstance(one, int) and not isinstance(one, bool) for one in (runs, right))
        or not 0 <= right <= runs <= 1000
        or not isinstance(problem, str)
        or not isinstance(left_open, list)
        or not all(isinstance(one, str) for one in left_open)
    ):
        return ConfinedResult(
            problem=f"{_FILE}: its process ended without a result (exit code {code}): more than {MEMORY_BYTES >> 30} GiB, or the code ended it"
        )
    text = problem.replace(f"{folder}/", "")[:_MOST_CHARS]
    return ConfinedResult(runs=runs, right=right, problem=text, open=tuple(left_open[:4]))


def _main(folder: str) -> None:
    """Load what trials need, confine this process, and try the file."""
    from gcspy.classroom.trial import try_collector, try_program

    for module in _NEEDED:  # before files are closed
        importlib.import_module(module)
    result = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    left_open = confine([folder])
    path = Path(folder) / _FILE
    source = path.read_text(encoding="utf-8")
    found = ConfinedResult(open=tuple(left_open))
    try:
        trials = try_program(path) if "def work(" in source else try_collector(path)
    except CommandError as error:
        said = {**asdict(found), "problem": str(error)}
    else:
        problems = [one.problem for one in trials if one.problem]
        said = {
            **asdict(found),
            "runs": len(trials),
            "right": sum(one.right for one in trials),
            "problem": problems[0] if problems else "",
        }
    with result:
        json.dump(said, result)


if __name__ == "__main__":
    _main(sys.argv[1])
