"""The target chooses the place where an agent looks for a sidecar: nobody can turn the files that root makes there against another user."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gcspy_drivers.hotspot.agent import meeting_place as meeting
from gcspy_drivers.hotspot.agent.meeting_place import meet, meeting_place
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError

from tests.drivers.strangers import NOBODY, folder_of, need_root, program_of

WAITING = "import sys; print('ready', flush=True); sys.stdin.read()"

SWAPPING = """
import ctypes, os, sys
folder, name, victim = sys.argv[1:]
os.chdir(folder)
os.symlink(victim, "link")
call = ctypes.CDLL(None, use_errno=True).syscall
here = ctypes.c_long(-100)
swap = [ctypes.c_long(316), here, b"link", here, name.encode(), ctypes.c_long(2)]  # renameat2, RENAME_EXCHANGE
print('ready', flush=True)
swaps = 0
while not os.path.exists("stop"):
    for _ in range(1000):
        if call(*swap) == 0:
            swaps += 1
            while os.path.lexists(name) and not os.path.exists("stop"):
                pass
            os.unlink("link")
            os.symlink(victim, "link")
print(swaps, flush=True)
"""
"""Puts a link to another user's file in the place of the socket, as fast as it can."""

COMING = """
import socket, sys
print('ready', flush=True)
for line in sys.stdin:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as agent:
            agent.connect(line.strip())
            agent.send(b"hello")
            print(int.from_bytes(agent.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], "little"), flush=True)
            agent.recv(1)
    except OSError as error:
        print(error.strerror, flush=True)
"""
"""Connects to the given address, as an agent does, and prints whom it found."""


def look_of(path: Path) -> tuple[int, ...]:
    """All of a file that could have been changed; its ctime shows any change of mode or owner, also one that was taken back."""
    found = path.lstat()
    return (
        found.st_mode,
        found.st_uid,
        found.st_gid,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


@contextmanager
def victim() -> Iterator[Path]:
    """Make a file of ours that everybody may read."""
    with folder_of(os.geteuid()) as folder:
        path = folder / "precious"
        path.write_text("root's")
        path.chmod(0o644)
        yield path


def swap_while_meeting(tries: int) -> int:
    """Meet in a stranger's folder again and again while he swaps links; return how many he has swapped in."""
    with (
        victim() as file,
        folder_of(NOBODY) as folder,
        program_of(NOBODY, WAITING) as target,
        program_of(NOBODY, SWAPPING, str(folder), "meet", str(file)) as attacker,
        Process(target.pid) as process,
    ):
        before = look_of(file)
        for _ in range(tries):
            with pytest.raises(TargetError):
                meet(process, f"{folder}/meet", secs=0)
            assert look_of(file) == before
        (folder / "stop").touch()
        assert attacker.stdout is not None
        return int(attacker.stdout.readline())


@need_root
def test_a_link_that_is_swapped_in_leads_root_nowhere() -> None:
    assert swap_while_meeting(400) > 0, "he has never been quick enough: this proves nothing"


@need_root
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_link_that_is_swapped_in_leads_root_nowhere_in_thousands_of_tries() -> None:
    assert swap_while_meeting(10_000) > 0


@need_root
def test_a_link_at_the_worst_moment_leads_root_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The race that the attacker above wins now and then: the name becomes a link as soon as the socket is bound."""
    with victim() as file, folder_of(NOBODY) as folder, program_of(NOBODY, WAITING) as target:

        class Swapped(socket.socket):
            def bind(self, address: Any, /) -> None:
                super().bind(address)
                (folder / "meet").unlink()
                (folder / "meet").symlink_to(file)

        monkeypatch.setattr("gcspy_drivers.hotspot.agent.meeting_place.socket.socket", Swapped)
        before = look_of(file)
        with Process(target.pid) as process, pytest.raises(TargetError, match="was none within"):
            meet(process, f"{folder}/meet", secs=0)
        assert look_of(file) == before


@need_root
@pytest.mark.parametrize("mode", [0o755, 0o777])
@pytest.mark.parametrize("owner", [0, 12345])
def test_no_socket_is_made_in_a_folder_of_root_or_of_others(owner: int, mode: int) -> None:
    with (
        folder_of(owner, mode) as folder,
        program_of(NOBODY, WAITING) as target,
        Process(target.pid) as process,
    ):
        with pytest.raises(TargetError, match=f"a folder of uid {owner}"):
            meet(process, f"{folder}/meet", secs=0)
        assert list(folder.iterdir()) == []


@need_root
def test_a_folder_of_everybody_serves_if_nobody_can_exchange_what_is_in_it() -> None:
    with (
        folder_of(0, 0o1777) as folder,
        program_of(NOBODY, COMING) as target,
        Process(target.pid) as process,
    ):
        assert come(target, process, f"{folder}/meet", folder / "meet") == "0"
    with (
        folder_of(NOBODY, 0o777) as folder,
        program_of(NOBODY, WAITING) as target,
        Process(target.pid) as process,
        pytest.raises(TargetError, match="others can write"),
    ):
        meet(process, f"{folder}/meet", secs=0)


def come(target: subprocess.Popen[str], process: Process, place: str, path: Path) -> str:
    """Meet a target that comes; return whom it found there."""
    met: list[socket.socket] = []
    waiting = threading.Thread(target=lambda: met.append(meet(process, place, secs=60)))
    waiting.start()
    assert target.stdin is not None
    assert target.stdout is not None
    found = "No such file or directory"
    while found in ("No such file or directory", "Connection refused") and waiting.is_alive():
        target.stdin.write(f"{place}\n")
        target.stdin.flush()
        found = target.stdout.readline().strip()
    waiting.join()
    (connection,) = met
    with connection:
        assert connection.recv(16) == b"hello"
    assert not path.exists(), "the name goes when it has served"
    return found


def test_the_socket_is_the_targets_and_nobody_elses_and_its_listener_is_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    seen: list[tuple[int, int]] = []

    class Looking(socket.socket):
        def listen(self, backlog: int = 0, /) -> None:
            found = (folder / "meet").lstat()
            seen.append((found.st_uid, stat.S_IMODE(found.st_mode)))
            super().listen(backlog)

    monkeypatch.setattr("gcspy_drivers.hotspot.agent.meeting_place.socket.socket", Looking)
    was = os.umask(0)
    try:
        with (
            folder_of(uid) as folder,
            program_of(uid, COMING) as target,
            Process(target.pid) as process,
        ):
            found = come(target, process, f"{folder}/meet", folder / "meet")
    finally:
        os.umask(was)
    assert seen == [(uid, 0o600)]
    assert found == str(os.geteuid())


def test_somebody_else_who_comes_is_sent_away() -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with (
        folder_of(uid) as folder,
        program_of(uid, COMING) as target,
        program_of(uid, COMING) as other,
        Process(target.pid) as process,
    ):
        met: list[socket.socket] = []
        waiting = threading.Thread(
            target=lambda: met.append(meet(process, f"{folder}/meet", secs=60))
        )
        waiting.start()
        for comer in (other, target):
            assert comer.stdin is not None
            assert comer.stdout is not None
            found = ""
            while found != str(os.geteuid()) and waiting.is_alive():
                comer.stdin.write(f"{folder}/meet\n")
                comer.stdin.flush()
                found = comer.stdout.readline().strip()
        waiting.join()
        with met[0] as connection:
            data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            assert int.from_bytes(data[:4], "little") == target.pid


@pytest.mark.parametrize("kind", ["file", "link to nowhere", "socket that is listened to"])
def test_what_is_there_already_stays(kind: str) -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with (
        folder_of(uid) as folder,
        program_of(uid, WAITING) as target,
        Process(target.pid) as process,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other,
    ):
        path = folder / "meet"
        if kind == "file":
            path.write_text("mine")
        elif kind == "link to nowhere":
            path.symlink_to("nowhere")
        else:
            other.bind(str(path))
            other.listen(1)
        before = look_of(path)
        with pytest.raises(TargetError, match="or another program already uses it"):
            meet(process, str(path), secs=0)
        assert look_of(path) == before


def test_a_socket_that_a_killed_one_left_is_replaced() -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with folder_of(uid) as folder, program_of(uid, COMING) as target:
        path = folder / "meet"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as old:
            old.bind(str(path))
        os.chown(path, uid, uid)
        with Process(target.pid) as process:
            assert come(target, process, str(path), path) == str(os.geteuid())


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("somewhere", "not an absolute path"),
        ("/", "not an absolute path"),
        ("/nowhere/at/all/meet", "No such file"),
        ("/tmp/../tmp/meet", "contains .."),
        ("/etc/hostname/meet", "Not a directory"),
        ("/tmp/..", "already uses it"),
    ],
)
def test_a_place_that_is_none_is_refused_in_words(place: str, said: str) -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with (
        program_of(uid, WAITING) as target,
        Process(target.pid) as process,
        pytest.raises(TargetError, match=said),
    ):
        meet(process, place, secs=0)


def test_a_link_on_the_way_is_followed_only_if_an_administrator_made_it() -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with (
        folder_of(uid) as folder,
        program_of(uid, COMING) as target,
        Process(target.pid) as process,
    ):
        (folder / "real").mkdir()
        os.chown(folder / "real", uid, uid)
        (folder / "own-link").symlink_to("real")
        os.chown(folder / "own-link", uid, uid, follow_symlinks=False)
        if os.geteuid() == 0:
            with pytest.raises(TargetError, match="symbolic link"):
                meet(process, f"{folder}/own-link/meet", secs=0)
            # The user may have moved a link there that an administrator made in one of the user's folders.
            (folder / "roots-link").symlink_to("real")
            with pytest.raises(TargetError, match="symbolic link"):
                meet(process, f"{folder}/roots-link/meet", secs=0)
            for name, to in (("relative", "own/real"), ("absolute", str(folder / "real"))):
                link = folder.parent / name
                link.symlink_to(to)
                assert come(target, process, f"{link}/meet", folder / "real/meet") == "0"
            loop = folder.parent / "loop"
            loop.symlink_to("loop")
            with pytest.raises(TargetError, match="symbolic link"):
                meet(process, f"{loop}/meet", secs=0)
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(TargetError):
            meet(process, f"{folder}/nowhere/meet", secs=0)
        assert len(os.listdir("/proc/self/fd")) == before


def test_arguments_that_go_on_without_end_name_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "_MOST_BYTES", 4096)
    option = "-agentpath:/x/gcspy-agent-0.so=at:/tmp/%p"
    with program_of(os.geteuid(), WAITING, option) as target, Process(target.pid) as process:
        assert meeting_place(process) == f"/tmp/{target.pid}"
    with (
        program_of(os.geteuid(), WAITING, "x" * 8192, option) as target,
        Process(target.pid) as process,
    ):
        assert meeting_place(process) == ""
