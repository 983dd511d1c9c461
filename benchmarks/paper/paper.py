"""The GCspy paper's evaluation, done again: ``python -m benchmarks paper``, or ``make paper``.

    python -m benchmarks paper [--part tables|sessions|lessons]... [--folder FOLDER]

Writes the measured sections of docs/paper.md, and its pictures into screenshots/: of programs that
are compiled, run and recorded here, and of lessons. Nothing is timed but pauses in a JVM's own log: table 2
is taken from the pages that have those measurements. A study whose needs are missing (a JDK, a C
compiler) is named, and left as it was.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.report_section import put_section
from benchmarks.paper import studies, tables

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs/paper.md"
_LESSONS = ("generations", "diagonals", "freelists", "barrier", "train")


def _tables(_: argparse.Namespace) -> None:
    put_section(_PAGE, tables.table_1(), "table 1")
    put_section(_PAGE, f"{tables.paper_table_3()}\n\n{tables.table_3()}", "table 3")
    put_section(_PAGE, tables.table_2(), "table 2")
    put_section(_PAGE, tables.real_programs(), "real programs")


def _sessions(options: argparse.Namespace) -> None:
    for study in studies.STUDIES:
        try:
            put_section(_PAGE, study.run(options.folder), study.name)
        except Unavailable as why:
            print(f"{study.name} stays as it was: {why}", file=sys.stderr)


def _lessons(_: argparse.Namespace) -> None:
    subprocess.run([sys.executable, str(_ROOT / "screenshots/lessons.py"), *_LESSONS], check=True)


_PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "tables": _tables,
    "sessions": _sessions,
    "lessons": _lessons,
}


def main() -> int:
    """Do the parts that are named, or all; the exit code is 1 if one could not be done."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    parser = argparse.ArgumentParser(prog="python -m benchmarks paper")
    parser.add_argument("--part", action="append", choices=list(_PARTS))
    parser.add_argument(
        "--pairs", type=int, default=2, help="monitored runs of each row of table 2"
    )
    parser.add_argument("--folder", type=Path, help="keep the recordings here")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="gcspy-paper-") as folder:
        options.folder = options.folder or Path(folder)
        options.folder.mkdir(exist_ok=True)
        for part in options.part or _PARTS:
            try:
                _PARTS[part](options)
            except Unavailable as why:
                print(f"{part} stays as it was: {why}", file=sys.stderr)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
