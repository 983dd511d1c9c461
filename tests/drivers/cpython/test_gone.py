"""Targets that end, are replaced, or may not be read: one clear error each, whenever it happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import NotPermitted, TargetGone, Unsupported

from gcspy_server.api import AttachOptions
from tests.drivers.conftest import Start

WAIT = "print('ready', flush=True); sys.stdin.readline()"


def test_a_target_that_ends_while_it_is_watched_is_gone(python: str, start: Start) -> None:
    child = start(python, WAIT)
    child.read_line()
    driver = CPythonDriver.attach(child.pid, AttachOptions())
    try:
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(lambda event: None)
        driver.tick()
        child.say("end")
        child.process.wait()
        with pytest.raises(TargetGone, match=f"process {child.pid} has ended"):
            driver.tick()
        assert server.counts()[0] == 1, "an event without its data was counted"
    finally:
        driver.close()


def test_a_target_that_ended_and_was_not_waited_for_is_gone(own_python: str, start: Start) -> None:
    child = start(own_python, WAIT)
    child.read_line()
    with Target(child.pid) as target:
        os.kill(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now, and stays one
        with pytest.raises(TargetGone):
            target.check()
        with pytest.raises(TargetGone):
            target.interpreters()
    with pytest.raises(TargetGone):
        Target(child.pid)
    assert "has ended" in CPythonDriver.recognise(child.pid).why_not


def test_a_target_that_executes_another_program_is_another_one(
    own_python: str, start: Start
) -> None:
    child = start(
        own_python,
        WAIT
        + "\nos.execv(sys.executable, [sys.executable, '-c', 'print(1, flush=True); input()'])",
    )
    child.read_line()
    with Target(child.pid) as target:
        target.check()
        child.say("go")
        assert child.read_line() == "1"
        with pytest.raises(TargetGone, match="executed another program"):
            target.check()


def test_a_number_that_was_given_to_another_process_is_noticed(
    own_python: str, start: Start
) -> None:
    """The test sets the kernel's next process id, which only root may: the real thing, not a simulation."""
    knob = Path("/proc/sys/kernel/ns_last_pid")
    if not os.access(knob, os.W_OK):
        pytest.skip("only root may choose the number of the next process")
    child = start(own_python, WAIT)
    child.read_line()
    target = Target(child.pid)
    try:
        ticks = target.process.start_ticks
        child.end()
        for _ in range(50):
            knob.write_text(str(child.pid - 1))
            heir = subprocess.Popen(
                [own_python, "-c", "print(1, flush=True); input()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            try:
                if heir.pid != child.pid:
                    continue  # another process of this system came first
                with pytest.raises(TargetGone):
                    target.check()
                with pytest.raises(TargetGone, match="now belongs to another process"):
                    Process(heir.pid, start_ticks=ticks - 1)
                with Process(heir.pid) as new:
                    assert new.start_ticks >= ticks
                return
            finally:
                heir.kill()
                heir.communicate()
        pytest.skip("other processes took the number each time")
    finally:
        target.close()


def test_there_is_no_such_process() -> None:
    number = int(Path("/proc/sys/kernel/pid_max").read_text()) + 1
    with pytest.raises(TargetGone, match=f"there is no process {number}.*gcspy ps"):
        Target(number)
    found = CPythonDriver.recognise(number)
    assert not found.supported
    assert "no process" in found.why_not


def test_a_process_that_is_no_python_is_refused_with_what_it_is() -> None:
    other = subprocess.Popen(["sleep", "1000"])
    try:
        with pytest.raises(Unsupported, match=r"not a Python process.*sleep.*3\.11, 3\.12, 3\.13"):
            Target(other.pid)
        found = CPythonDriver.recognise(other.pid)
        assert (found.runtime, found.supported) == ("", False)
        assert found.why_not == "not a Python process"
    finally:
        other.kill()
        other.wait()


ATTACH_AS_NOBODY = """
import os, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_protocol.errors import NotPermitted
from gcspy_server.api import AttachOptions
try:
    CPythonDriver.attach(int(sys.argv[1]), AttachOptions())
except NotPermitted as error:
    print(error)
print(CPythonDriver.recognise(int(sys.argv[1])))
"""


def test_another_users_process_is_refused_with_the_remedy(own_python: str, start: Start) -> None:
    if os.geteuid():
        pytest.skip("only root can become somebody else")
    child = start(own_python, WAIT)
    child.read_line()
    root = Path(__file__).parents[3]
    # Loads everything while it still may, then becomes user nobody.
    program = ATTACH_AS_NOBODY.replace(
        "import os, sys\n",
        "import os, sys\nimport gcspy_drivers.cpython.driver, gcspy_server.api\n",
    )
    path = os.pathsep.join(str(root / part) for part in ("", "protocol", "drivers"))
    done = subprocess.run(
        [sys.executable, "-c", program, str(child.pid)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    refused, recognised = done.stdout.splitlines()
    assert f"no permission to read process {child.pid}" in refused
    assert "belongs to uid 0 and gcspy runs as uid 65534" in refused
    assert f"sudo gcspy attach {child.pid}" in refused
    assert "supported=False" in recognised
    assert "no permission to read" in recognised


def test_the_remedy_is_part_of_the_error() -> None:
    error = NotPermitted("no", remedy="ask")
    assert error.remedy == "ask"
