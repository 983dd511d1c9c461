"""A target that has only just started is waited for, a bounded time; one that will never be Python is not."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import pytest
from gcspy_drivers.cpython import target as target_module
from gcspy_drivers.cpython.collector.interpreters import Interpreter
from gcspy_drivers.cpython.cooperation import bootstrap as begin
from gcspy_drivers.cpython.cooperation import stub
from gcspy_drivers.cpython.layouts import VersionLayout
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, TargetGone, Unsupported

from tests.drivers.conftest import Start

WAIT = "print('ready', flush=True); sys.stdin.readline()"
LONG_SECS = 60.0


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def pipe_of(file: IO[bytes] | None) -> IO[bytes]:
    assert file is not None
    return file


def before_each_pause(patch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Call something with the number of the pause, from 1, each time before attaching is tried again."""
    pauses = 0

    def sleep(secs: float, real: Callable[[float], None] = time.sleep) -> None:
        nonlocal pauses
        pauses += 1
        act(pauses)
        real(secs)

    patch.setattr(time, "sleep", sleep)


def test_attaching_at_once_finds_the_whole_heap(
    python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_module, "_STARTING_SECS", LONG_SECS)
    for _ in range(5):
        with running(python, "-c", "input()") as child, Target(child.pid) as target:
            assert target.owners(target.interpreters() or ()) == (0,)


def test_a_process_that_is_about_to_execute_python_is_waited_for(
    python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_module, "_STARTING_SECS", LONG_SECS)
    with running("sh", "-c", 'echo; read line; exec "$0" -c "input()"', python) as child:
        pipe_of(child.stdout).readline()

        def let_go(pause: int) -> None:
            if pause == 2:
                pipe_of(child.stdin).write(b"\n")
                pipe_of(child.stdin).flush()

        before_each_pause(monkeypatch, let_go)
        with Target(child.pid) as target:
            assert target.owners(target.interpreters() or ()) == (0,)


def test_one_that_ends_before_it_has_started_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "_STARTING_SECS", LONG_SECS)
    with running("sh", "-c", "echo; read line") as child:
        pipe_of(child.stdout).readline()

        def end(pause: int) -> None:
            child.kill()
            child.wait()

        before_each_pause(monkeypatch, end)
        with pytest.raises(TargetGone, match=f"process {child.pid}"):
            Target(child.pid)


def test_one_that_never_is_there_whole_is_given_up(
    own_python: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(own_python, WAIT)
    child.read_line()
    tries: list[Addr] = []

    def nobody_yet(memory: Memory, layout: VersionLayout, runtime: Addr) -> tuple[Interpreter, ...]:
        tries.append(runtime)
        return ()

    monkeypatch.setattr(target_module, "_STARTING_SECS", 0.05)
    monkeypatch.setattr(target_module, "read_interpreters", nobody_yet)
    with pytest.raises(TargetError, match="it is starting or ending, try again"):
        Target(child.pid)
    assert len(tries) > 1


def test_an_older_process_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[int] = []
    before_each_pause(monkeypatch, pauses.append)
    monkeypatch.setattr(Process, "age_secs", lambda self: 1.5)
    with running("sh", "-c", "echo; read line") as child:
        pipe_of(child.stdout).readline()
        with pytest.raises(Unsupported, match="not a Python process"):
            Target(child.pid)
    assert pauses == []


def test_the_age_of_a_process_is_that_of_its_start(own_python: str, start: Start) -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    child = start(own_python, WAIT)
    child.read_line()
    with Process(child.pid) as process:
        age = process.age_secs()
        # A tick is a hundredth of a second, and the kernel cuts off what is less.
        assert 0 <= age <= time.clock_gettime(time.CLOCK_BOOTTIME) - before + 0.011


def test_a_program_begins_although_who_was_to_watch_it_is_gone(python: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    with theirs:
        fd = theirs.fileno()
        words = [python, begin.__file__, stub.__file__, "", str(fd), "", "code", "print('begun')"]
        done = subprocess.run(words, pass_fds=(fd,), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n", "")
