"""The attach protocol against false listeners: it sends nothing where it would harm, and waits for nothing without a bound."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.agent.attach_protocol import AttachListener
from gcspy_drivers.remote.files import TargetRoot
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from tests.drivers.hotspot.jvms import remove_socket, socket_of
from tests.drivers.strangers import NOBODY, folder_of, need_root, program_of, python_of_all

HANDLING = """
import signal, sys
sys.stdin.readline()
signal.signal(signal.SIGQUIT, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGQUIT])
print('ready', flush=True)
while True:
    signal.sigwait([signal.SIGQUIT])
    print('quit', flush=True)
"""
"""Handles the signal by waiting for it: none comes unreported between two instructions."""

PLAIN = "import sys; sys.stdin.readline(); print('ready', flush=True); sys.stdin.read()"

ANSWERING = """
import os, signal, socket, struct, sys, threading, time
signal.signal(signal.SIGQUIT, signal.SIG_IGN if sys.argv[2:] else lambda *_: None)
server = socket.socket(socket.AF_UNIX)
path = f"/tmp/.java_pid{os.getpid()}"
sys.stdin.readline()
server.bind(path)
server.listen(1)

def silent(line):
    while line.recv(4096):
        pass

def closing(line):
    pass

def refusing(line):
    line.recv(4096)
    line.sendall(b"101\\nno such thing\\n")

def rubbish(line):
    line.recv(4096)
    line.sendall(bytes([255, 0]) * 100)

def endless(line):
    line.recv(4096)
    while True:
        line.sendall(b"0" * 65536)

def trickling(line):
    line.recv(4096)
    while True:
        line.sendall(b"0")
        time.sleep(0.01)

def telling(line):
    line.recv(4096)
    line.sendall(b"0\\n%d" % struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])

def serve():
    try:
        line, _ = server.accept()
        with line:
            globals()[sys.argv[1]](line)
    except OSError:
        pass

threading.Thread(target=serve, daemon=True).start()
print('ready', flush=True)
sys.stdin.read()
os.unlink(path)
"""
"""Listens where a JVM would and answers like none."""


def program(
    source: str, *arguments: str, uid: int | None = None
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run a program that is no JVM; what a JVM of its number has left is gone before it is ready."""
    if uid is None:
        python, uid = sys.executable, os.geteuid()
    else:
        python = python_of_all()
    return program_of(uid, source, *arguments, python=python, prepare=remove_socket)


@contextmanager
def answering(how: str, uid: int | None = None) -> Iterator[Process]:
    """Run a program that answers in some way."""
    with program(ANSWERING, how, uid=uid) as running, Process(running.pid) as process:
        try:
            yield process
        finally:
            remove_socket(running.pid)


def test_a_process_that_does_not_handle_sigquit_is_not_sent_it() -> None:
    with program(PLAIN) as process, Process(process.pid) as target:
        with pytest.raises(TargetError, match="does not handle SIGQUIT"):
            AttachListener(target).ask("jcmd", "VM.version", secs=5)
        target.check()
        assert not Path(f"/tmp/.attach_pid{process.pid}").exists()


def test_one_that_never_listens_is_not_waited_for_and_nothing_is_left() -> None:
    with program(HANDLING) as process, Process(process.pid) as target:
        with pytest.raises(
            TargetError,
            match="does not start to listen: it is in a long pause, is ending or stopped",
        ):
            AttachListener(target).ask("jcmd", "VM.version", secs=0.3)
        assert process.stdout is not None
        assert process.stdout.readline() == "quit\n"
        assert not Path(f"/tmp/.attach_pid{process.pid}").exists()


def test_a_socket_that_an_earlier_process_left_is_not_taken_for_its_own() -> None:
    with program(HANDLING) as process, Process(process.pid) as target:
        path = socket_of(process.pid)
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(str(path))
        try:
            with pytest.raises(TargetError, match="does not listen"):
                AttachListener(target).ask("jcmd", "VM.version", secs=0.3)
        finally:
            path.unlink()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("silent", "did not answer in time"),
        ("closing", "answered nothing|closed the connection"),
        ("refusing", r"refused to load: no such thing \(code 101\)"),
        ("rubbish", "refused to load: no reason given"),
        ("endless", r"refused to load: no reason given \(code 0{20}\)"),
        ("trickling", "did not answer in time"),
    ],
)
def test_whatever_answers_the_error_is_ours_and_says_what_it_was(how: str, said: str) -> None:
    with answering(how) as target, pytest.raises(TargetError, match=said) as refused:
        AttachListener(target).ask("load", "/nowhere", "true", "stop", secs=0.3)
    assert len(str(refused.value)) < 1000


def test_one_that_has_ended_is_said_to_have() -> None:
    with program(HANDLING) as process, Process(process.pid) as target:
        process.kill()
        process.wait()
        with pytest.raises(TargetGone):
            AttachListener(target).ask("jcmd", secs=1)


@need_root
def test_only_the_thread_that_connects_becomes_the_targets_user() -> None:
    with answering("telling", NOBODY) as target:
        assert AttachListener(target).ask("jcmd", secs=5) == str(NOBODY)
    assert os.geteuid() == 0


@need_root
def test_another_process_that_listens_in_its_place_is_not_spoken_to() -> None:
    """Also a listener of the same user: the socket's name is in a folder that everybody can write."""
    heard: list[bytes] = []
    with program(HANDLING, uid=NOBODY) as running, Process(running.pid) as target:
        path = socket_of(running.pid)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            path.chmod(0o666)
            try:
                server.listen(1)
                with pytest.raises(TargetError, match=r"another process \(\d+\) listens"):
                    AttachListener(target).ask("jcmd", secs=5)
                line, _ = server.accept()
                with line:
                    heard.append(line.recv(4096))
            finally:
                path.unlink()
    assert heard == [b""]


@need_root
def test_a_socket_that_a_jvm_of_root_left_is_named_with_the_remedy() -> None:
    with program(HANDLING, uid=NOBODY) as running, Process(running.pid) as target:
        path = socket_of(running.pid)
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(str(path))
        path.chmod(0o600)
        try:
            with pytest.raises(NotPermitted, match="belongs to another user") as refused:
                AttachListener(target).ask("jcmd", secs=5)
        finally:
            path.unlink()
    assert f"sudo rm {path}" in str(refused.value)


@need_root
def test_a_link_in_the_place_of_the_socket_leads_to_no_other_socket() -> None:
    with program(HANDLING, uid=NOBODY) as running, Process(running.pid) as target:
        path = socket_of(running.pid)
        with folder_of(0) as folder, socket.socket(socket.AF_UNIX) as others:
            others.bind(str(folder / "others"))
            (folder / "others").chmod(0o666)
            others.listen(1)
            path.symlink_to(folder / "others")
            try:
                with pytest.raises(TargetError, match="does not start to listen"):
                    AttachListener(target).ask("jcmd", secs=0.2)
            finally:
                path.unlink()
            others.setblocking(False)
            with pytest.raises(BlockingIOError):
                others.accept()


@need_root
def test_no_file_is_made_where_the_target_itself_may_make_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its working directory is any folder that it likes, and so is its /tmp where it has a root of its own."""
    going = "import os, sys; os.chdir(sys.argv[1])" + HANDLING

    def none(_root: TargetRoot, path: str) -> int:
        raise FileNotFoundError(2, f"{path} is not there")

    monkeypatch.setattr(TargetRoot, "folder", none)
    with (
        folder_of(0) as folder,
        program(going, str(folder), uid=NOBODY) as running,
        Process(running.pid) as target,
    ):
        before = folder.stat().st_mtime_ns
        with pytest.raises(
            TargetError, match="cannot create a file in its /tmp or its working dir"
        ):
            AttachListener(target).ask("jcmd", secs=0.2)
        assert folder.stat().st_mtime_ns == before, "not even for a moment"
    with (
        folder_of(NOBODY) as folder,
        program(going, str(folder), uid=NOBODY) as running,
        Process(running.pid) as target,
    ):
        before = folder.stat().st_mtime_ns
        with pytest.raises(TargetError, match="does not start to listen"):
            AttachListener(target).ask("jcmd", secs=0.2)
        assert folder.stat().st_mtime_ns != before
        assert list(folder.iterdir()) == []
