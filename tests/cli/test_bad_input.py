"""Bad input: each one clear line with a remedy, and the exit code of its kind."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.remote import process_hold
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.process_hold import held

from benchmarks.targets.busy_target import BusyTarget
from gcspy.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.unknown_process import unknown_process


def _one_line(done: subprocess.CompletedProcess[str], code: ExitCode, *words: str) -> None:
    assert done.returncode == code, (done.returncode, done.stderr)
    (line,) = done.stderr.splitlines()
    assert line.startswith("gcspy: ")
    for word in words:
        assert word in line
    assert done.stdout == ""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[int]:
    """A process without a memory manager that a driver knows."""
    with unknown_process(tmp_path) as pid:
        yield pid


def _impossible_pid() -> int:
    """No process has it, now or later: the kernel's numbers are smaller."""
    return int(Path("/proc/sys/kernel/pid_max").read_text())


@pytest.mark.parametrize("command", [["tail"], ["attach", "--no-window"]])
def test_no_such_process(gcspy: Run, command: list[str]) -> None:
    _one_line(
        gcspy(*command, str(_impossible_pid())), ExitCode.TARGET_GONE, "no process", "gcspy ps"
    )


def test_a_process_without_a_known_memory_manager(here: Run, sleeper: int) -> None:
    _one_line(here("tail", str(sleeper)), ExitCode.UNSUPPORTED, str(sleeper), "pause", "cpython")


def test_a_program_that_a_debugger_has_is_not_held(
    gcspy: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_hold, "STOP_SECS", 30.0)
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with Process(child.pid) as process, held(process, longest_secs=60):
            refused = gcspy("attach", "--no-window", "--mode", "stopped", str(child.pid))
        child.kill()
    _one_line(
        refused,
        ExitCode.NOT_PERMITTED,
        f"process {os.getpid()} is attached to it as a debugger",
        "--mode passive",
    )
    both = gcspy("attach", "--mode", "stopped", "--inject", "gdb", "1")
    assert both.returncode == ExitCode.USAGE
    assert "omit --inject" in both.stderr


def test_an_unsupported_version(here: Run) -> None:
    python = next(iter(sorted(Path.home().glob(".pyenv/versions/3.[78]*/bin/python3"))), None)
    if python is None:
        pytest.skip("no interpreter older than 3.9 here")
    with subprocess.Popen(
        [str(python), "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as old:
        assert old.stdout is not None
        old.stdout.readline()
        _one_line(here("tail", str(old.pid)), ExitCode.UNSUPPORTED, "3.11", "3.12", "3.13")
        old.kill()


def test_a_process_of_another_user(busy_target: BusyTarget) -> None:
    setpriv, python = shutil.which("setpriv"), Path("/usr/bin/python3")
    if setpriv is None or not python.exists() or Path.home() != Path("/root"):
        pytest.skip("needs root, setpriv and a system Python to become somebody else")
    path = ":".join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [
            setpriv,
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            str(python),
            "-m",
            "gcspy",
            "tail",
            str(busy_target.pid),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )
    if "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr:
        pytest.skip(
            f"the system's Python cannot use these packages: {done.stderr.splitlines()[-1]}"
        )
    _one_line(done, ExitCode.NOT_PERMITTED, "debugger")


def test_a_target_that_ends_while_we_attach(here: Run) -> None:
    """Whatever moment it ends at, it is one line and the code for a target that is gone, or an event or two."""
    for delay in ("0", "0.05", "0.2", "0.4", "0.6"):
        with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({delay})"]) as short:
            done = here("tail", str(short.pid))
        if done.returncode != ExitCode.OK:
            assert done.returncode == ExitCode.TARGET_GONE, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_nobody_listens_there(here: Run, tmp_path: Path) -> None:
    _one_line(here("tail", f"unix:{tmp_path}/nobody.sock"), ExitCode.NO_CONNECTION, "nobody.sock")


def test_a_taken_port(gcspy: Run, busy_target: BusyTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCSPY_TOKEN", "secret")
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        done = gcspy("attach", str(busy_target.pid), "--no-window", "--listen", f"127.0.0.1:{port}")
    _one_line(done, ExitCode.NO_CONNECTION, str(port))


@pytest.mark.parametrize(
    "text", ["nonsense", "127.0.0.1:99999", "unix:relative", "tls:host:1#sha256=12"]
)
def test_an_address_that_is_none(here: Run, text: str) -> None:
    _one_line(here("tail", text), ExitCode.USAGE, text)


def _answer_once(listener: socket.socket, data: bytes) -> None:
    peer, _ = listener.accept()
    with peer:
        peer.recv(4096)
        peer.sendall(data)
        peer.recv(4096)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GCspy\r\n\x1a" + struct.pack("<HH", 7, 9), ["7 to 9", "1 to 2"]),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ["GCspy"]),
    ],
    ids=["another version", "another protocol"],
)
def test_a_server_of_another_protocol(
    here: Run, tmp_path: Path, data: bytes, words: list[str]
) -> None:
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        server = threading.Thread(target=_answer_once, args=(listener, data))
        server.start()
        done = here("tail", f"unix:{path}")
        server.join()
    _one_line(done, ExitCode.PROTOCOL, *words)


def test_an_empty_or_public_token_file(here: Run, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    _one_line(here("tail", "127.0.0.1:1", "--token-file", str(token)), ExitCode.USAGE, "chmod 600")
    token.chmod(0o600)
    token.write_text("")
    _one_line(here("tail", "127.0.0.1:1", "--token-file", str(token)), ExitCode.USAGE, "no token")
