"""`LeakingProgram`: a program of the folder `programs`, what its docstring says of it, and how it is started.

The docstring has a line ``Cause:`` and a line ``Holder:`` with the regular expression that the holder's whole name must match.

Knows files, pip, and javac; does not know `gcspy why`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.harness.environment import Unavailable, install, make_environment

__all__ = ["Group", "LeakingProgram", "programs", "running"]

Group = str
"""``standard``, ``pypi`` or ``java``: a folder of `programs`."""

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_REQUIREMENTS = _HERE / "requirements.txt"
_COMPLETE = "complete"
_HEAP = "-Xmx400m"


@dataclass(frozen=True, slots=True)
class LeakingProgram:
    """One program.

    Attributes:
        name: Of its file.
        group: Its group, by its requirements.
        path: Its file.
        cause: Why its memory grows.
        holder: Pattern that the whole name of the holder must match.
    """

    name: str
    group: Group
    path: Path
    cause: str
    holder: re.Pattern[str]


def programs() -> list[LeakingProgram]:
    """Return all programs; those that need nothing first."""
    return [
        LeakingProgram(path.stem, group, path, cause, re.compile(holder))
        for group in ("standard", "pypi", "java")
        for path in sorted((_HERE / "programs" / group).iterdir())
        if path.suffix in (".py", ".java")
        for text in [path.read_text(encoding="utf-8")]
        for cause, holder in [(_stated("Cause", text), _stated("Holder", text))]
        if cause
    ]


@contextmanager
def running(program: LeakingProgram, python: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program for the body of the `with`, which begins when the program has grown.

    Args:
        program: Which.
        python: The interpreter of programs in Python.

    Raises:
        Unavailable: It cannot run here.
    """
    with subprocess.Popen(
        _command(program, python), cwd=_ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            for line in ("begun", "grown"):
                said = process.stdout.readline().strip()
                if said != line:
                    raise Unavailable(f"{program.name} said {said!r} and not {line!r}")
            yield process
        finally:
            process.kill()


def _command(program: LeakingProgram, python: str) -> list[str]:
    if program.group == "java":
        return [_tool("java"), _HEAP, "-cp", str(_classes(program.path.parent)), program.name]
    module = f"benchmarks.leaks.programs.{program.group}.{program.name}"
    return [str(_environment(python)) if program.group == "pypi" else python, "-m", module]


def _stated(what: str, text: str) -> str:
    found = re.search(rf"^[ *]*{what}: (.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


@cache
def _environment(python: str) -> Path:
    """Return the interpreter of an environment with the packages; made once for these versions of them."""
    version = subprocess.run(
        [python, "--version"], capture_output=True, text=True, check=True
    ).stdout
    folder = _cache_folder(python, version, _REQUIREMENTS.read_text(encoding="utf-8"))
    if not (folder / _COMPLETE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing {_REQUIREMENTS.name} into {folder}", file=sys.stderr, flush=True)
        install(make_environment(python, folder), "-r", str(_REQUIREMENTS))
        (folder / _COMPLETE).touch()
    return folder / "bin" / "python"


@cache
def _classes(sources: Path) -> Path:
    """Return a folder with the compiled programs in Java."""
    files = sorted(sources.glob("*.java"))
    version = subprocess.run(
        [_tool("javac"), "-version"], capture_output=True, text=True, check=True
    ).stdout
    folder = _cache_folder(version, *(file.read_text(encoding="utf-8") for file in files))
    if not (folder / _COMPLETE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [_tool("javac"), "-nowarn", "-d", str(folder), *map(str, files)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"javac: {done.stderr.strip()}")
        (folder / _COMPLETE).touch()
    return folder


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"there is no {name} on the path")
    return found


def _cache_folder(*contents: str) -> Path:
    """Return the folder in the user's cache for what is made of some contents."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path("~/.cache").expanduser()
    digest = hashlib.sha256("\0".join(contents).encode()).hexdigest()[:16]
    return base / "gcspy" / "leaks" / digest
