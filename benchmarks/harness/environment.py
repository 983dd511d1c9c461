"""Virtual environments for programs that are measured: made beside the project's own, filled with pip from whatever index it is configured for.

Knows venv and pip; does not know what is installed, or what for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["Unavailable", "install", "make_environment"]


class Unavailable(Exception):
    """A requirement of a benchmark could not be installed or made."""


def make_environment(python: str, folder: Path) -> Path:
    """Make an environment without packages; return its interpreter.

    Args:
        python: The interpreter that it is for.
        folder: Where.

    Raises:
        Unavailable: The interpreter makes none.
    """
    # Without pip: Debian's python3 has no ensurepip, and ours installs into it from outside.
    made = subprocess.run(
        [python, "-m", "venv", "--without-pip", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise Unavailable(f"{python} makes no virtual environment: {made.stderr.strip()}")
    return folder / "bin" / "python"


def install(python: Path, *what: str) -> None:
    """Install packages into an environment.

    Args:
        python: Its interpreter.
        what: As pip wants it.

    Raises:
        Unavailable: They cannot be installed.
    """
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--no-input",
            "--retries=1",
            *what,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [
            line for line in done.stderr.splitlines() if line.startswith("ERROR")
        ] or done.stderr.splitlines()
        raise Unavailable(
            f"pip could not install {' '.join(what)} (is a package index reachable?): {lines[-1] if lines else 'no word why'}"
        )
