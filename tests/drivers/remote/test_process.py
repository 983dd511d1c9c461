"""A process is the one it was, or is gone: identity, ends, refusals and their remedies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.remote import process as module
from gcspy_drivers.remote.process import Process, permission_remedy
from gcspy_protocol.errors import NotPermitted, TargetGone


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that waits for its input to end."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield child
    child.kill()
    child.communicate()


def test_a_running_process_is_itself(other: subprocess.Popen[bytes]) -> None:
    with Process(other.pid) as process:
        process.check()
        assert process.name == "cat"
        assert process.stat().start_ticks == process.start_ticks
        assert process.thread_ids() == [other.pid]
        assert (process.read_link("exe") or "").endswith("cat")
        assert b"cat" in process.read_file("cmdline")
        with Process(other.pid, start_ticks=process.start_ticks) as again:
            again.check()


def test_without_a_standard_input_its_number_is_that_of_a_file_like_any_other() -> None:
    program = (
        "import os\n"
        "from gcspy_drivers.remote.process import Process\n"
        "os.close(0)\n"
        "with Process(os.getpid()) as process:\n"
        "    assert process.thread_ids() == [os.getpid()]\n"
        "    assert process.read_link('exe')\n"
        "    assert process.stat().state == 'R'\n"
        "    os.fstat(0)\n"
        "try:\n"
        "    os.fstat(0)\n"
        "except OSError:\n"
        "    print('closed')\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (found.stdout, found.stderr) == ("closed\n", "")


def test_a_name_with_blanks_and_parentheses_is_read_whole(tmp_path: Path) -> None:
    strange = tmp_path / "a) S (b c"
    strange.symlink_to("/bin/cat")
    child = subprocess.Popen([strange], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        with Process(child.pid) as process:
            # The name is set by exec, before which the child still has ours.
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(b"x")
            child.stdin.flush()
            assert child.stdout.read(1) == b"x"
            assert process.stat().name == "a) S (b c"
            assert process.stat().state in "SR"
    finally:
        child.kill()
        child.communicate()


def test_another_start_time_is_another_process(other: subprocess.Popen[bytes]) -> None:
    with Process(other.pid) as process:
        ticks = process.start_ticks
    with pytest.raises(TargetGone, match="now belongs to another process"):
        Process(other.pid, start_ticks=ticks + 1)


def test_an_ended_process_is_gone_in_every_way(other: subprocess.Popen[bytes]) -> None:
    with Process(other.pid) as process:
        other.kill()
        other.wait()
        for ask in (
            process.check,
            process.stat,
            process.thread_ids,
            lambda: process.read_file("maps"),
        ):
            with pytest.raises(TargetGone):
                ask()
        assert process.read_link("exe") is None
    with pytest.raises(TargetGone, match=f"no process {other.pid}"):
        Process(other.pid)


def test_a_process_that_was_let_go_is_not_read(other: subprocess.Popen[bytes]) -> None:
    process = Process(other.pid)
    process.close()
    process.close()
    for ask in (process.check, lambda: process.read_file("maps"), lambda: process.read_link("exe")):
        with pytest.raises(TargetGone, match="was released"):
            ask()


def test_no_descriptor_is_left_open(other: subprocess.Popen[bytes]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with Process(other.pid) as process:
            process.read_file("maps")
            process.thread_ids()
        with pytest.raises(TargetGone):
            Process(other.pid, start_ticks=1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_process_that_is_hidden_from_us_is_not_permitted(
    other: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def hide(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "stat":
            raise PermissionError(1, "Operation not permitted")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", hide)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(NotPermitted, match=f"no permission to inspect process {other.pid}"):
        Process(other.pid)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (1, "ptrace_scope is 1.*sudo sysctl kernel.yama.ptrace_scope=0"),
        (2, "ptrace_scope is 2.*sudo gcspy attach"),
        (3, "is 3, so no user"),
    ],
)
def test_yama_is_named_with_its_value(
    monkeypatch: pytest.MonkeyPatch, scope: int, expected: str
) -> None:
    monkeypatch.setattr(module, "_has_capability", lambda who, bit: False)
    monkeypatch.setattr(module, "_yama_scope", lambda: scope)
    with pytest.raises(NotPermitted, match=expected), Process(os.getpid()) as process:
        process.refuse(PermissionError(1, "Operation not permitted"), "its memory")


def test_a_foreign_owner_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_has_capability", lambda who, bit: False)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert f"belongs to uid {os.getuid()} and gcspy runs as uid 12345" in permission_remedy(
        os.getpid()
    )


def test_with_every_capability_a_container_is_suspected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_has_capability", lambda who, bit: True)
    assert "--cap-add=SYS_PTRACE" in permission_remedy(os.getpid())


def test_without_a_known_reason_the_rights_of_a_debugger_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_has_capability", lambda who, bit: False)
    monkeypatch.setattr(module, "_yama_scope", lambda: None)
    assert "same rights as a debugger" in permission_remedy(os.getpid())
