"""The space "Allocation sites": what a program's counters say, what a hostile program says, and what is left when gcspy is killed."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from gcspy_counting.count_answer import HEADER, MAGIC
from gcspy_drivers.cpython.counting.site_counts import SiteCounts
from gcspy_drivers.cpython.driver import CPythonDriver

from gcspy_server.api import AttachOptions, Event, ProgramStart, Server
from tests.waiting import wait_until

PROGRAM = """
import gc, sys
def work(n):
    out = []
    for k in range(n):
        out.append((k, n))
    return {n: out}
for line in sys.stdin:
    work(int(line))
    print("done", flush=True)
    gc.collect()
"""


class Started:
    """A program that `gcspy run --count` started, and its driver."""

    def __init__(self, python: str, program: Path) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            start = ProgramStart(
                program=str(program),
                interpreter=python,
                stub_fd=theirs.fileno(),
                values={"count": "wide"},
            )
            offer = CPythonDriver.command_line(start)
            assert offer is not None
            self.process = subprocess.Popen(
                offer[1],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        self.driver = CPythonDriver.attach(
            self.process.pid, AttachOptions(stub_fd=ours.detach(), values={"count": "wide"})
        )
        self.server: Server = self.driver.describe().server(budget=None)
        self.events: list[Event] = []
        self.closed = False
        self.server.add_observer(self.events.append)
        self.driver.open(self.server)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.driver.close()

    def tick(self) -> None:
        self.driver.notice()
        self.driver.sample()
        self.driver.wait(0.01)

    def work(self, number: int) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@contextmanager
def started(python: str, folder: Path) -> Iterator[Started]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    found = Started(python, program)
    try:
        yield found
    finally:
        with found.process:
            found.process.kill()
        found.close()


def _values(found: Started, stream: str) -> dict[str, int | None]:
    space = next(one for one in found.server.spaces if one.name == "Allocation sites")
    values = next(one for one in space.streams if one.name == stream)
    known = values.known if values.known is not None else np.ones(space.count, dtype=np.bool_)
    return {
        space.names.names[tile]: int(values.data[tile]) if known[tile] else None
        for tile in range(space.count)
    }


def test_it_shows_what_the_program_did(own_python: str, tmp_path: Path) -> None:
    with started(own_python, tmp_path) as found:
        found.tick()
        found.work(1000)
        name = f"{tmp_path.name}/program.py:6:20 tuple in work"

        def shown(stream: str, value: int | None) -> bool:
            found.tick()
            return _values(found, stream).get(name) == value

        wait_until(lambda: shown("Allocations", 1000), "a thousand tuples")
        assert _values(found, "Bytes")[name] == 1000 * (24 + 16 + 16)
        assert _values(found, "Allocates")[name] == 1
        found.work(500)
        wait_until(lambda: shown("Allocations", 1500), "five hundred more")
        table = next(one for one in found.server.spaces if one.name == "Allocation sites")
        source = table._details["source"](list(_values(found, "Bytes")).index(name), 100)
        assert source is not None
        marked = next(row for row in source.rows if str(row[0]).startswith("▶"))
        assert marked[:2] == ("▶ 6", "        out.append((k, n))")
        found.close()
        found.work(10)  # it runs on without us


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"nope" + bytes(28), "it is none"),
        (HEADER.pack(MAGIC, 1 << 31, 0, 0, 0), "bytes of text"),
        (HEADER.pack(MAGIC, 2, 1 << 40, 0, 0), "sites"),
        (HEADER.pack(MAGIC, 2, 0, 1 << 63, 0), "time"),
        (HEADER.pack(MAGIC, 2, 3, 0, 0) + b"{}", "KeyError"),
        (HEADER.pack(MAGIC, 2, 0, 0, 0) + b"[]", "TypeError"),
        (HEADER.pack(MAGIC, 2, 0, 0, 0) + b"[[", "JSONDecodeError"),
        (
            HEADER.pack(MAGIC, 54, 1, 0, 0)
            + json.dumps({"files": [], "sites": [[0, 1, 1, "f", "list", 1, 8]]}).encode(),
            "ValueError",
        ),
    ],
)
def test_an_impossible_answer_ends_the_line(answer: bytes, why: str) -> None:
    ours, theirs = socket.socketpair()
    counts = SiteCounts(ours.detach())
    with theirs:
        assert theirs.recv(1)
        theirs.sendall(answer)
        wait_until(lambda: bool(counts.problem))
        assert "impossible answer" in counts.problem
        assert why in counts.problem
    counts.close()


def test_a_contradiction_is_unknown_and_no_number() -> None:
    ours, theirs = socket.socketpair()
    counts = SiteCounts(ours.detach())
    with theirs:
        text = json.dumps(
            {"files": [["a.py", None]], "sites": [[0, 1, 1, "f", "list", 1, 8]] * 2}
        ).encode()
        assert theirs.recv(1)
        header = HEADER.pack(MAGIC, len(text), 2, 1, 1)
        theirs.sendall(header + text + struct.pack("<2q2H", 5, -1, 1, 1))
        wait_until(lambda: counts.latest is not None)
        report = counts.latest
        assert report is not None
        assert report.counts.tolist() == [5, 0]
        assert report.known.tolist() == [True, False]
    counts.close()
