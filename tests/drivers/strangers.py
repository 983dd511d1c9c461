"""Programs of another, hostile user: run with a Python that this user can run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
READY = "print('ready', flush=True)"

need_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can run somebody else's program"
)


def python_of_all() -> str:
    """Return a Python that every user can run; skip where there is none."""
    found = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")
    if found is None:
        pytest.skip("there is no Python here that another user can run")
    return os.path.realpath(found)


@contextmanager
def program_of(
    uid: int,
    source: str,
    *arguments: str,
    python: str | None = None,
    prepare: Callable[[int], None] | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Run a program as a user, and wait until it has said that it is ready; it is killed at the end.

    Args:
        uid: The user.
        source: The program.
        arguments: Arguments of its start.
        python: Interpreter that runs it; None: a Python of all users.
        prepare: Called with its process id before it gets its first line of input.
    """
    command = [python or python_of_all(), "-I", "-c", source, *arguments]
    other = uid != os.geteuid()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        user=uid if other else None,
        group=uid if other else None,
        extra_groups=[] if other else None,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if prepare is not None:
                prepare(process.pid)
                process.stdin.write("\n")
                process.stdin.flush()
            said = process.stdout.readline()
            assert said == "ready\n", said
            yield process
        finally:
            process.kill()


@contextmanager
def folder_of(uid: int, mode: int = 0o755) -> Iterator[Path]:
    """Make a folder owned by a user, reachable by everybody; removed at the end."""
    outer = Path(tempfile.mkdtemp(prefix="gcspy-test-", dir="/tmp"))
    outer.chmod(0o755)
    folder = outer / "own"
    folder.mkdir()
    os.chown(folder, uid, uid)
    folder.chmod(mode)
    try:
        yield folder
    finally:
        shutil.rmtree(outer, ignore_errors=True)
