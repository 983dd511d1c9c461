"""Targets that do not come to run Python, or end: attaching to them ends, with a clear message, and delays no other."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from typing import NoReturn

import psutil
import pytest
from gcspy_drivers.cpython.cooperation.injection import bring_in
from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.target import Target
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_server.api import AttachOptions, Mode
from tests.drivers.cpython.answering import running
from tests.drivers.targets import find_python
from tests.waiting import wait_until

SAY = "print(1, flush=True)\n"

ELSEWHERE = {
    "reading": "import sys; " + SAY + "sys.stdin.readline()",
    "sleeping": "import time; " + SAY + "time.sleep(1000)",
    "in a long call of C without the lock": "import ctypes; "
    + SAY
    + "ctypes.CDLL(None).sleep(1000)",
    "in a long call of C with the lock": "import itertools; " + SAY + "sum(itertools.repeat(1))",
    "waiting for a thread": (
        "import threading; thread = threading.Thread(target=threading.Event().wait); thread.start()\n"
        + SAY
        + "thread.join()"
    ),
    "waiting for a child": "import os, sys\nchild = os.fork()\nif not child: sys.stdin.read(); os._exit(0)\n"
    + SAY
    + "os.waitpid(child, 0)",
}


def _asked_python() -> str:
    found = find_python("3.15") or find_python("3.14")
    if found is None:
        pytest.skip(
            "no Python 3.14 or 3.15 on PATH or in ~/.pyenv/versions: asking it to run a script is not tested here"
        )
    return found


_COMPUTED_SECS = 0.1
"""Of processor time: from its line to the call, a program takes microseconds."""


def _begun(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"


def _elsewhere(process: subprocess.Popen[str]) -> None:
    """Wait until it is in the call after its line: its main thread sleeps, or has computed for long."""
    _begun(process)
    seen = psutil.Process(process.pid)
    enough = seen.cpu_times().user + _COMPUTED_SECS
    wait_until(
        lambda: seen.status() == psutil.STATUS_SLEEPING or seen.cpu_times().user >= enough,
        "that the program is elsewhere",
    )


@pytest.mark.parametrize("source", ELSEWHERE.values(), ids=ELSEWHERE)
def test_one_that_is_elsewhere_is_watched_from_outside(source: str, own_python: str) -> None:
    with running(own_python, source) as process:
        _elsewhere(process)
        driver = CPythonDriver.attach(process.pid, AttachOptions())
        server = driver.describe().server()
        driver.open(server)
        driver.tick()
        driver.close()
        assert server.spaces
        assert process.poll() is None


@pytest.mark.parametrize("source", ELSEWHERE.values(), ids=ELSEWHERE)
def test_one_that_is_elsewhere_is_asked_for_a_while_and_let_be(source: str) -> None:
    with running(_asked_python(), source) as process:
        _elsewhere(process)
        with (
            Target(process.pid) as target,
            pytest.raises(TargetError, match="did not come to run Python within"),
        ):
            bring_in(target, "auto", secs=0.3)
        assert process.poll() is None


FORKING = (
    SAY
    + """
import os
while True:
    child = os.fork()
    if not child: os._exit(0)
    os.waitpid(child, 0)
"""
)


def test_one_that_forks_all_the_time_takes_the_stub_in_and_its_children_take_no_part() -> None:
    with running(_asked_python(), FORKING) as process:
        _begun(process)
        driver = CPythonDriver.attach(process.pid, AttachOptions(values={"inject": "remote-exec"}))
        assert isinstance(driver, CooperativeDriver)
        server = driver.describe().server()
        driver.open(server)
        assert server.mode is Mode.COOPERATIVE
        for _ in range(20):
            driver.wait(0.005)
            driver.tick()
        driver.close()


def test_one_that_ends_meanwhile_is_gone(own_python: str) -> None:
    for _ in range(5):
        with running(own_python, SAY + "raise SystemExit") as process, ExitStack() as stack:
            _begun(process)
            with pytest.raises(TargetError) as told:
                _watch_to_the_end(process.pid, stack)
            assert isinstance(told.value, TargetGone) or "starting or ending" in str(told.value), (
                told.value
            )


def _watch_to_the_end(pid: int, stack: ExitStack) -> NoReturn:
    driver = CPythonDriver.attach(pid, AttachOptions())
    stack.callback(driver.close)
    driver.open(driver.describe().server())
    while True:
        driver.tick()
