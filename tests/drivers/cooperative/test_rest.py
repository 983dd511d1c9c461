"""A thread is at rest when the kernel says so: in its own poll, and in no other; where the kernel does not say, when it sleeps."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from gcspy_drivers.cooperative.rest import Rest
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetGone

from tests.waiting import PATIENCE_SECS

POLLING = """
import ctypes, sys, threading
room = ctypes.create_string_buffer(16)
print(ctypes.addressof(room), threading.get_native_id(), flush=True)
sys.stdin.readline()
ctypes.CDLL(None).poll(room, 0, -1)
"""


@contextmanager
def polling(python: str) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Run a program that will wait in a poll; also yield the address that this has, and its thread."""
    with subprocess.Popen(
        [python, "-c", POLLING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address, thread = map(int, process.stdout.readline().split())
            yield process, address, thread
        finally:
            process.kill()


def reaches(rest: Rest, thread: int) -> bool:
    until = time.monotonic() + PATIENCE_SECS
    while time.monotonic() < until:
        if rest.reached_by(thread):
            return True
    return False


def test_it_is_seen_in_its_own_poll_only(own_python: str) -> None:
    with polling(own_python) as (target, address, thread), Process(target.pid) as process:
        own, other = Rest(process, address), Rest(process, address + 1)
        assert not own.reached_by(thread), "it sleeps, and in another call"
        assert target.stdin is not None
        target.stdin.write("\n")
        target.stdin.flush()
        assert reaches(own, thread)
        assert not other.reached_by(thread)
        assert not own.reached_by(thread + 1), "there is no such thread"
        target.kill()
        target.wait()
        with pytest.raises(TargetGone):
            own.reached_by(thread)


def test_where_the_call_is_not_shown_it_has_to_do_that_it_sleeps(
    own_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with polling(own_python) as (target, address, thread), Process(target.pid) as process:
        read = process.read_file
        monkeypatch.setattr(
            process,
            "read_file",
            lambda name: read("task/0/none" if name.endswith("syscall") else name),
        )
        rest = Rest(process, address)
        assert reaches(rest, thread)
        assert not rest.reached_by(thread + 1)
