"""A program with threads, a generator and exceptions that gives counters to its own functions while it runs, and compares.

``python attached_program.py FOLDER``: FOLDER has `gcspy_counting`; prints a JSON object. It counts by itself what its sites do. Runs in the interpreter
whose code objects are tested, so it is the standard library alone.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROUNDS = 300
THREADS = 3
HEADER = struct.Struct("<4sIQQQ")


def pair(n: int) -> list[Any]:
    first = [n]
    second = {n}
    if n % 3 == 0:
        raise ValueError(first)
    return [first, second]


def items(n: int) -> Iterator[Any]:
    for k in range(n):
        yield [k]


def outer(n: int) -> Any:
    def inner() -> tuple[int, int]:
        return n, n + 1

    return inner


def work(rounds: int) -> None:
    for n in range(rounds):
        try:
            pair(n)
        except ValueError:
            pass
        for _ in items(4):
            pass
        outer(n)()
        grown(n % 40)


def grown(n: int) -> tuple[int, ...]:
    """Make a tuple item by item: CPython refuses to go on if somebody else has got hold of it meanwhile."""
    return tuple(k for k in range(n))


def _bytes(line: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = line.recv(size - len(found))
        assert piece
        found += piece
    return found


class Counts:
    """The other end of the line."""

    def __init__(self, fd: int) -> None:
        self.line = socket.socket(fileno=fd)
        self.sites: list[Any] = []
        self.told: dict[str, Any] = {}

    def read(self) -> dict[tuple[str, int, str], int]:
        self.line.sendall(b"c")
        _, size, sites, _, _ = HEADER.unpack(_bytes(self.line, HEADER.size))
        self.told = json.loads(_bytes(self.line, size))
        self.sites += self.told["sites"]
        counts = struct.unpack(f"<{sites}q", _bytes(self.line, 8 * sites))
        _bytes(self.line, 2 * sites)
        found: dict[tuple[str, int, str], int] = {}
        for (_, line, _, function, what, _, _), count in zip(self.sites, counts, strict=True):
            assert count >= 0
            key = function, line, what
            found[key] = found.get(key, 0) + count
        return found


def _difference(now: dict[Any, int], before: dict[Any, int]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for (function, _, what), count in now.items():
        if what in ("list", "set", "tuple", "function", "generator"):
            name = f"{function} {what}"
            sums[name] = sums.get(name, 0) + count
    for (function, _, what), count in before.items():
        name = f"{function} {what}"
        if name in sums:
            sums[name] -= count
    return {name: count for name, count in sums.items() if count}


def main(folder: str) -> dict[str, Any]:
    package = Path(folder) / "gcspy_counting"
    texts = {}
    for path in package.rglob("*.py"):
        parts = ["gcspy_counting", *path.relative_to(package).with_suffix("").parts]
        texts[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    names: dict[str, Any] = {"__name__": "gcspy_counting.live.attachment"}
    exec(compile(texts["gcspy_counting.live.attachment"], "<attached>", "exec"), names)  # noqa: S102  # as a stub does
    early = outer(0)  # made before there are counters
    suspended = items(3)
    next(suspended)
    originals = pair.__code__, early.__code__
    busy = True

    broken = []

    def spin() -> None:
        while busy:
            try:
                work(3)
            except SystemError as error:
                broken.append(str(error))

    spinning = threading.Thread(target=spin, daemon=True)
    spinning.start()
    counts = Counts(names["begin_attached"](texts, "wide", [], 0.5))
    while not counts.told or counts.told["done"] < counts.told["found"] or not counts.told["found"]:
        counts.read()
        time.sleep(0.01)
    contradictions = 0
    for _ in range(20):  # while threads are in the middle of everything
        now = counts.read()
        sums = _difference(now, {})
        lists = [now[key] for key in sorted(now) if key[0] == "pair" and key[2] == "list"]
        sets = [now[key] for key in sorted(now) if key[0] == "pair" and key[2] == "set"]
        contradictions += not (lists[0] >= sets[0] >= lists[1] and lists[0] - sets[0] <= 1)
        assert sums
    busy = False
    spinning.join()
    before = counts.read()
    threads = [threading.Thread(target=work, args=(ROUNDS,)) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    list(suspended)
    early()
    found = _difference(counts.read(), before)
    instrumented = pair.__code__ is not originals[0], early.__code__ is not originals[1]
    counts.line.close()
    deadline = time.monotonic() + 60
    while pair.__code__ is not originals[0] or early.__code__ is not originals[1]:
        assert time.monotonic() < deadline, "no code was given back"
        time.sleep(0.01)
    work(10)
    return {
        "found": found,
        "contradictions": contradictions,
        "broken": broken,
        "instrumented": instrumented,
        "left": [name for name in sys.modules if name.startswith("gcspy_counting")],
        "finders": [
            type(each).__name__ for each in sys.meta_path if type(each).__name__[1:] == "Finder"
        ],
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])), flush=True)
    os._exit(0)
