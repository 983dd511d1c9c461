"""How real processes have ended, as seen by one that is not their parent."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from gcspy_drivers.remote.exit_status import ExitStatus, status_words
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetGone

ENDS = {
    "sys.exit(3)": ": exit code 3",
    "os.kill(os.getpid(), signal.SIGSEGV)": ": killed by SIGSEGV",
    "os.kill(os.getpid(), signal.SIGKILL)": ": killed by SIGKILL",
    "os.kill(os.getpid(), 40)": ": killed by signal 40",
}
PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
print(child.pid, flush=True)
for line in sys.stdin:
    if line == "end\\n":
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    else:
        child.wait()
    print(line, end="", flush=True)
"""
"""Starts a process; "end" lets it end and "reap" waits for it: we are not its parent."""


class Stranger:
    """A process whose parent is not ours."""

    def __init__(self, ending: str) -> None:
        source = f"import os, resource, signal, sys; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); sys.stdin.read(); {ending}"
        self._parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = int(self._line())

    def tell(self, word: str) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.write(word + "\n")
        self._parent.stdin.flush()
        assert self._line() == word

    def _line(self) -> str:
        assert self._parent.stdout is not None
        return self._parent.stdout.readline().strip()

    def close(self) -> None:
        self._parent.communicate()


@pytest.fixture
def stranger(request: pytest.FixtureRequest) -> Iterator[Stranger]:
    made = Stranger(request.param)
    yield made
    made.close()


def kernel_says_it_of_reaped_processes() -> bool:
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    return version is not None and (int(version[1]), int(version[2])) >= (6, 15)


@pytest.mark.parametrize(
    ("stranger", "words"), list(ENDS.items()), indirect=["stranger"], ids=list(ENDS.values())
)
def test_the_error_says_how_a_process_ended(stranger: Stranger, words: str) -> None:
    with Process(stranger.pid) as process:
        process.check()
        stranger.tell("end")
        with pytest.raises(TargetGone, match=f"has ended{words}$"):
            process.check()
        stranger.tell("reap")
        with pytest.raises(TargetGone) as gone:
            process.check()
    known = words if kernel_says_it_of_reaped_processes() else ""
    assert str(gone.value) == f"process {stranger.pid} has ended{known}"


@pytest.mark.parametrize("stranger", ["sys.exit(0)"], indirect=True)
def test_a_zombie_with_status_zero_is_not_said_to_have_succeeded(stranger: Stranger) -> None:
    with Process(stranger.pid) as process:
        stranger.tell("end")
        with pytest.raises(TargetGone, match="it is a zombie that its parent has not reaped"):
            process.check()
        stranger.tell("reap")
        with pytest.raises(TargetGone) as gone:
            process.check()
    known = ": exit code 0" if kernel_says_it_of_reaped_processes() else ""
    assert str(gone.value) == f"process {stranger.pid} has ended{known}"


def test_of_a_process_that_lives_nothing_is_known() -> None:
    status = ExitStatus(os.getpid())
    assert status.read() is None
    status.close()
    status.close()
    assert status.read() is None


def test_where_the_kernel_says_nothing_it_is_only_said_to_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_pid: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "pidfd_open", refused)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Process(child.pid) as process:
        child.communicate(b"\n")
        with pytest.raises(TargetGone) as gone:
            process.check()
    assert str(gone.value) == f"process {child.pid} has ended"
    assert status_words(None) == ""
