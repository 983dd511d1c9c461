"""The attach protocol against listeners that are none: nothing is sent where it would harm, and nothing is waited for without a bound."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.attaching import AttachListener
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, TargetGone

HANDLING = "import signal, sys; signal.signal(signal.SIGQUIT, lambda *_: print('quit', flush=True)); print('ready', flush=True); sys.stdin.read()"
PLAIN = "import sys; print('ready', flush=True); sys.stdin.read()"


@contextmanager
def program(source: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program that is no JVM."""
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@contextmanager
def listener(pid: int, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """Listen where a JVM of this number would."""
    path = Path(f"/tmp/.java_pid{pid}")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        try:
            server.listen(1)

            def run() -> None:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    serve(connection)

            thread = threading.Thread(target=run)
            thread.start()
            yield
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
        finally:
            path.unlink()


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
            match="does not begin to listen: it is in a long pause, is ending or stopped",
        ):
            AttachListener(target).ask("jcmd", "VM.version", secs=0.3)
        assert process.stdout is not None
        assert process.stdout.readline() == "quit\n"
        assert not Path(f"/tmp/.attach_pid{process.pid}").exists()


def test_a_socket_that_an_earlier_process_left_is_not_taken_for_its_own() -> None:
    with program(HANDLING) as process, Process(process.pid) as target:
        path = Path(f"/tmp/.java_pid{process.pid}")
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(str(path))
        try:
            with pytest.raises(TargetError, match="nobody listens"):
                AttachListener(target).ask("jcmd", "VM.version", secs=0.3)
        finally:
            path.unlink()


def silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def closing(_connection: socket.socket) -> None:
    pass


def refusing(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"101\nno such thing\n")


def rubbish(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"\xff\x00" * 100)


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        (silent, "did not answer in time"),
        (closing, "answered nothing|closed the connection"),
        (refusing, r"refused to load: no such thing \(code 101\)"),
        (rubbish, "refused to load: it did not say why"),
    ],
)
def test_whatever_answers_the_error_is_ours_and_says_what_it_was(
    serve: Callable[[socket.socket], None], said: str
) -> None:
    with (
        program(HANDLING) as process,
        Process(process.pid) as target,
        listener(process.pid, serve),
        pytest.raises(TargetError, match=said),
    ):
        AttachListener(target).ask("load", "/nowhere", "true", "stop", secs=0.3)


def test_one_that_has_ended_is_said_to_have() -> None:
    with program(HANDLING) as process, Process(process.pid) as target:
        process.kill()
        process.wait()
        with pytest.raises(TargetGone):
            AttachListener(target).ask("jcmd", secs=1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_only_the_thread_that_connects_becomes_the_targets_user() -> None:
    users: list[int] = []
    seen: list[int] = []

    def serve(connection: socket.socket) -> None:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        users.append(int.from_bytes(credentials[4:8], "little"))
        seen.append(os.geteuid())
        connection.recv(4096)
        connection.sendall(b"0\nhello")

    nobody = 65534
    command = [
        "setpriv",
        f"--reuid={nobody}",
        f"--regid={nobody}",
        "--clear-groups",
        "/usr/bin/sleep",
        "60",
    ]
    with subprocess.Popen(command) as process:
        try:
            while Path(f"/proc/{process.pid}/exe").resolve().name != "sleep":
                assert process.poll() is None
            with Process(process.pid) as target, listener(process.pid, serve):
                os.chown(f"/tmp/.java_pid{process.pid}", nobody, nobody)
                assert AttachListener(target).ask("jcmd", secs=5) == "hello"
        finally:
            process.kill()
    assert (users, seen, os.geteuid()) == ([nobody], [0], 0)
