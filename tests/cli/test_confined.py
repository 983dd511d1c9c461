"""Code of students in a confined process: what it may not do fails, and the teacher is told what came of it."""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path

import pytest
from gcspy_drivers.simulator.user_code.template import template

from gcspy.classroom.confined_trial import try_confined

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="confinement is Linux's"),
    pytest.mark.usefixtures("real_starts"),
]

PROGRAM = """
def work(stack, dice):
    with stack.scope() as here:
        for _ in range(3):
            here.new("A", fields=1)
            yield
"""


def attempt(code: str) -> str:
    """Try a program that does something first; return the error that it was told."""
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    return try_confined(PROGRAM.replace("    with", f"{lines}    with", 1)).problem


@pytest.mark.soak
def test_a_right_collector_is_right() -> None:
    done = try_confined(template("collector"))
    assert (done.runs, done.right, done.problem) == (5, 5, "")


def test_files_and_the_network_are_closed(tmp_path: Path) -> None:
    if try_confined(PROGRAM).open:
        pytest.skip("this system cannot confine everything")
    secret, new = tmp_path / "secret", tmp_path / "new"
    secret.write_text("x")
    code = f"""
import socket, os
tried = []
for what in (lambda: open({str(secret)!r}).read(), lambda: open({str(new)!r}, "w"), lambda: os.listdir({str(tmp_path)!r}),
             lambda: socket.create_connection(("127.0.0.1", {os.getpid() % 1000 + 20000}), 1)):
    try:
        what()
        tried.append("done")
    except OSError as error:
        tried.append(type(error).__name__)
raise ValueError(" ".join(tried))"""
    assert "PermissionError PermissionError PermissionError" in attempt(code)
    assert "done" not in attempt(code)
    assert not new.exists()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import os; os._exit(3)", "exit code 3"),
        ("import os; os.write(3, b'[1]')\nos._exit(0)", "without a result"),
        ("b = bytearray(4 << 30)", "no memory left"),
    ],
)
def test_a_process_that_ends_or_takes_too_much_is_told(code: str, says: str) -> None:
    assert says in attempt(code)


def test_no_more_than_a_limit_is_read_of_what_it_writes() -> None:
    code = "import os\nwhile True:\n    for number in range(3, 20):\n        try:\n            os.write(number, bytes(1 << 20))\n        except OSError:\n            pass"
    tracemalloc.start()
    try:
        assert "without a result" in attempt(code)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_it_reaches_no_other_process_and_leaves_none() -> None:
    if try_confined(PROGRAM).open:
        pytest.skip("this system cannot confine everything")
    code = f"""
import os, signal, time
if os.fork() == 0:
    os.setsid()
    while True:
        time.sleep(1)
tried = []
for pid in ({os.getpid()}, {os.getppid()}):
    try:
        os.kill(pid, signal.SIGWINCH)
        tried.append("reached")
    except OSError as error:
        tried.append(type(error).__name__)
raise ValueError(" ".join(tried))"""
    # What it started has the end that is written to, too: it has ended, or the answer would not be complete before the deadline.
    assert "ProcessLookupError ProcessLookupError" in attempt(code)


def test_code_that_waits_for_ever_is_ended() -> None:
    done = try_confined("import time\ntime.sleep(1000)\n" + PROGRAM, most_secs=3)
    assert "not done after 3 s" in done.problem
