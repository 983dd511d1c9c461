"""The space "Allocation sites": what a program's counters say, what a hostile program says, and what is left when gcspy is killed."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from gcspy_counting.live.count_answer import HEADER, MAGIC
from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver
from gcspy_drivers.cpython.counting.site_counts import SiteCounts
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_protocol.errors import NotPermitted, Unsupported

from gcspy_server.api import AttachOptions, Event, ProgramStart, Server, StringNames
from tests.drivers.targets import find_python
from tests.waiting import wait_until

PROGRAM = """
import gc, json, select, sys
def work(n):
    out = []
    for k in range(n):
        out.append((k, n))
    return {n: out}
original = work.__code__
while True:
    if not select.select([0], [], [], 0.01)[0]:
        continue
    line = sys.stdin.readline()
    if not line:
        break
    if line == "how\\n":
        ours = [name for name in sys.modules if name.startswith("gcspy_counting")]
        print(json.dumps([work.__code__ is original, ours]), flush=True)
        continue
    work(int(line))
    print("done", flush=True)
    gc.collect()
"""

ATTACHING = """
import sys
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_server.api import AttachOptions
options = AttachOptions(values={"inject": "library", "count": "wide"})
driver = CPythonDriver.attach(int(sys.argv[1]), options)
server = driver.describe().server(budget=None)
server.add_observer(lambda event: None)
driver.open(server)
print("open", flush=True)
while True:
    driver.notice()
    driver.sample()
    driver.wait(0.05)
"""


class Counted:
    """A program whose sites are counted, and its driver.

    Args:
        process: The program.
        options: How the driver attaches.
    """

    def __init__(self, process: subprocess.Popen[str], options: AttachOptions) -> None:
        self.process = process
        driver = CPythonDriver.attach(process.pid, options)
        assert isinstance(driver, CooperativeDriver)
        self.driver = driver
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
        assert _answer(self.process, str(number)) == "done"


def _answer(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@contextmanager
def _running(command: list[str], *passed: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, pass_fds=passed, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def started(python: str, program: Path) -> Iterator[Counted]:
    """Start the program as `gcspy run --count` does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    values = {"count": "wide"}
    start = ProgramStart(
        program=str(program), interpreter=python, stub_fd=theirs.fileno(), values=values
    )
    offer = CPythonDriver.command_line(start)
    assert offer is not None
    with theirs, _running(offer[1], theirs.fileno()) as process:
        theirs.close()
        found = Counted(process, AttachOptions(stub_fd=ours.detach(), values=values))
        try:
            yield found
        finally:
            found.close()


@pytest.fixture(name="program")
def _program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def _values(found: Counted, stream: str) -> dict[str, int | None]:
    space = next(one for one in found.server.spaces if one.name == "Allocation sites")
    assert isinstance(space.names, StringNames)
    values = next(one for one in space.streams if one.name == stream)
    known = values.known if values.known is not None else np.ones(space.count, dtype=np.bool_)
    return {
        space.names.names[tile]: int(values.data[tile]) if known[tile] else None
        for tile in range(space.count)
    }


def _site(program: Path) -> str:
    return f"{program.parent.name}/program.py:6:20 tuple in work"


def test_it_shows_what_the_program_did(own_python: str, program: Path) -> None:
    with started(own_python, program) as found:
        found.tick()
        found.work(1000)
        name = _site(program)

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
        assert marked[0] == "▶  6          out.append((k, n))"
        found.close()
        found.work(10)  # it runs on without us


@contextmanager
def _without_ptrace_skipped() -> Iterator[None]:
    try:
        yield
    except (NotPermitted, Unsupported) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_program_that_runs_gets_counters_and_gives_them_back(version: str, program: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on PATH or in ~/.pyenv/versions")
    options = AttachOptions(values={"inject": "library", "count": "wide"})
    with _running([python, str(program)]) as process:
        assert _answer(process, "100") == "done"
        with _without_ptrace_skipped():
            found = Counted(process, options)
        name = _site(program)
        try:

            def instrumented() -> bool:
                found.tick()
                return json.loads(_answer(process, "how"))[0] is False

            wait_until(instrumented, "the function has counters")
            found.work(1000)

            def shown() -> bool:
                found.tick()
                return _values(found, "Allocations").get(name) == 1000

            wait_until(shown, "a thousand tuples, and not the hundred of before")
        finally:
            found.close()
        wait_until(lambda: _answer(process, "how") == "[true, []]", "all is as before")


def test_a_killed_gcspy_leaves_the_program_as_it_was(own_python: str, program: Path) -> None:
    with _running([own_python, str(program)]) as process:
        assert _answer(process, "1") == "done"
        with _running([sys.executable, "-c", ATTACHING, str(process.pid)]) as attaching:
            assert attaching.stdout is not None
            if attaching.stdout.readline() != "open\n":
                pytest.skip("no library can be loaded into a process here")
            wait_until(lambda: json.loads(_answer(process, "how"))[0] is False, "it counts")
            attaching.kill()
        wait_until(lambda: _answer(process, "how") == "[true, []]", "all is as before")
        assert _answer(process, "10") == "done"


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
