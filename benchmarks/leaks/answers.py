"""`ask`: run `gcspy why` on a process as a user does, and take from its text what it says and when.

Knows the command and what it prints; does not know what is right.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Answer", "ask", "holder_in", "sentence_in"]

_MOST_SECS = 300.0
_GREW, _HELD_BY = "What grew most", "What holds it"


@dataclass(frozen=True, slots=True)
class Answer:
    """The command's answer.

    Attributes:
        first_secs: From its start to its first line; 0: it printed nothing.
        whole_secs: From its start to its end.
        sentence: The cause of the growth; empty: the command reported none.
        holder: The first row of the holders of the grown memory; empty: the command reported none.
        problem: Its complaint, if it failed.
    """

    first_secs: float
    whole_secs: float
    sentence: str
    holder: str
    problem: str


def ask(pid: int, options: Sequence[str] = ()) -> Answer:
    """Ask once; the command is ended after five minutes.

    Args:
        pid: The process.
        options: Of the command.
    """
    command = [sys.executable, "-m", "gcspy", "why", str(pid), *options]
    began, first = time.monotonic(), 0.0
    lines: list[str] = []
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True) as process,
    ):
        assert process.stdout is not None
        end = threading.Timer(_MOST_SECS, process.kill)
        end.start()
        for line in process.stdout:
            first = first or time.monotonic() - began
            lines.append(line.rstrip("\n"))
        code = process.wait()
        whole = time.monotonic() - began
        end.cancel()
        complaints.seek(0)
        said = complaints.read().strip().splitlines()
    problem = f"exit code {code}: {said[-1] if said else 'no word why'}" if code else ""
    return Answer(first, whole, sentence_in(lines), holder_in(lines), problem)


def sentence_in(lines: Sequence[str]) -> str:
    """Return the sentence about growth: the last text before the table of what grew; empty: there is none."""
    if _GREW not in lines:
        return ""
    before = [line for line in lines[: lines.index(_GREW)] if line]
    return before[-1] if before else ""


def holder_in(lines: Sequence[str]) -> str:
    """Return the first row's name in the table of what holds what grew; empty: there is none."""
    if _HELD_BY not in lines:
        return ""
    head, *rows = lines[lines.index(_HELD_BY) + 1 :]
    # The first column is as wide as its longest name; two spaces stand before the second one.
    return rows[0][: head.index("  Type")].rstrip() if rows else ""
