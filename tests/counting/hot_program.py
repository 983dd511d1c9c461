"""A program that counts only its functions that run: ``python hot_program.py FOLDER [--started]`` prints a JSON object.

It runs in the interpreter whose code objects are tested, so it is the standard library alone.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
import time
from pathlib import Path
from types import FunctionType
from typing import Any

Counts: Any = runpy.run_path(str(Path(__file__).with_name("attached_program.py")))["Counts"]
HOT_SECS = 0.4


def made_by(n: int) -> Any:
    """Make a function of which only what it makes is executed for long."""

    def inner() -> list[int]:
        spin = 0
        while spin < 3000:
            spin += 1
        return [n]

    return inner


def hot(n: int) -> list[int]:
    spin = 0
    while spin < 3000:
        spin += 1
    return [n]


def cold(n: int) -> list[int]:
    return [n]


def main(folder: str, *, started: bool) -> dict[str, Any]:
    originals: dict[str, Any] = {each.__name__: each.__code__ for each in (hot, cold, made_by)}
    early = made_by(0)
    busy = True

    def run() -> None:
        while busy:
            hot(1)
            early()

    running = threading.Thread(target=run, daemon=True)
    running.start()
    sys.path.insert(0, folder)
    from gcspy_counting.live.attachment import begin_attached, begin_started

    if started:
        fd, instrument = begin_started("definite", [], HOT_SECS)
        assert instrument is not None
        assert instrument(cold.__code__) is cold.__code__
    else:
        texts = {}
        package = Path(folder) / "gcspy_counting"
        for path in package.rglob("*.py"):
            parts = ["gcspy_counting", *path.relative_to(package).with_suffix("").parts]
            texts[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
        fd = begin_attached(texts, "definite", [], 0.5, HOT_SECS)
    counts = Counts(fd)
    while not counts.told or not counts.told["found"] or counts.told["done"] < counts.told["found"]:
        counts.read()
        time.sleep(0.01)
    busy = False
    running.join()
    before = counts.read()
    for _ in range(100):
        hot(2)
        cold(2)
        made_by(3)()
    now = counts.read()
    told = {
        "counted": {
            function: now[function, line, what] - before.get((function, line, what), 0)
            for function, line, what in now
            if what == "list"
        },
        "cold": counts.told["cold"],
        "changed": [
            name
            for name, code in originals.items()
            if isinstance(function := globals()[name], FunctionType)
            and function.__code__ is not code
        ],
    }
    counts.line.close()
    deadline = time.monotonic() + 60
    while hot.__code__ is not originals["hot"]:
        assert time.monotonic() < deadline, "no code was given back"
        time.sleep(0.01)
    return told


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], started="--started" in sys.argv)), flush=True)
    os._exit(0)
