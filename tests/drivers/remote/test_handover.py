"""The folder in which a target gets its files is made with the target's rights, and no other user can exchange it."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.remote.handover import PLACES, Handover
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import NotPermitted, TargetError

from tests.drivers.strangers import NOBODY, folder_of, need_root, program_of

WAITING = "import sys; print('ready', flush=True); sys.stdin.read()"

CONFINED = """
import os, sys
os.chroot(sys.argv[1])
os.chdir("/")
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
print('ready', flush=True)
sys.stdin.read()
"""
"""A program with a root of its own, as in a container."""

SWAPPING = """
import os, sys
os.chdir(sys.argv[1])
os.mkdir("folder")
print('ready', flush=True)
swaps = 0
while not os.path.exists("stop"):
    os.rename("folder", "tmp")
    os.rename("tmp", "folder")
    os.symlink(sys.argv[2], "tmp")
    os.unlink("tmp")
    swaps += 1
    if swaps == int(sys.argv[3]):
        open("enough", "w").close()
print(swaps, flush=True)
"""
"""Makes ``tmp`` a folder, nothing, and a link to another user's folder, in turn; reports when it did so often enough."""

COMING = """
import socket, sys
print('ready', flush=True)
for line in sys.stdin:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line_to:
        try:
            line_to.connect(line.strip())
            print("connected", flush=True)
            line_to.recv(1)
        except OSError as error:
            print(error.strerror, flush=True)
"""


@contextmanager
def confined(prepare: Callable[[Path], None]) -> Iterator[tuple[Process, Path]]:
    """Run a program of user nobody whose root is a prepared folder."""
    with folder_of(NOBODY) as folder:
        prepare(folder)
        with (
            program_of(0, CONFINED, str(folder)) as running,
            Process(running.pid) as process,
        ):
            yield process, folder


def nothing(_folder: Path) -> None:
    pass


def own_tmp(folder: Path) -> None:
    (folder / "tmp").mkdir()
    os.chown(folder / "tmp", NOBODY, NOBODY)


def test_what_is_in_it_is_the_targets_and_goes() -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    was = os.umask(0)
    try:
        with program_of(uid, WAITING) as running, Process(running.pid) as process:
            with Handover(process) as folder:
                assert folder.add("stub.py", b"print()") == f"{folder.path}/stub.py"
                path = Path(folder.path)
                looks = {
                    one.name: (one.lstat().st_uid, oct(one.lstat().st_mode))
                    for one in (path, *path.iterdir())
                }
                assert looks == {
                    path.name: (uid, oct(stat.S_IFDIR | 0o700)),
                    "stub.py": (uid, oct(stat.S_IFREG | 0o600)),
                    "socket": (uid, oct(stat.S_IFSOCK | 0o600)),
                }
                assert (path / "stub.py").read_bytes() == b"print()"
                assert folder.told("error") is None
                (path / "error").write_text("x" * 1000)
                assert folder.told("error") == "x" * 400
            assert not path.exists()
            folder.close()
    finally:
        os.umask(was)


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_the_target_tells_is_read_from_a_file_only(kind: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("root's")
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with program_of(uid, WAITING) as running, Process(running.pid) as process:
        with Handover(process) as folder:
            path = Path(folder.path) / "error"
            if kind == "pipe":
                os.mkfifo(path)
            elif kind == "link":
                path.symlink_to(tmp_path / "secret")
            else:
                path.mkdir()
            assert folder.told("error") is None
            if kind == "folder":
                path.rmdir()
        assert not Path(folder.path).exists()


def test_nobody_but_the_target_itself_is_listened_to() -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with (
        program_of(uid, COMING) as running,
        program_of(uid, COMING) as other,
        Process(running.pid) as process,
        Handover(process) as folder,
    ):
        accepted: list[socket.socket | None] = []
        waiting = threading.Thread(target=lambda: accepted.append(folder.accept(60)))
        waiting.start()
        for comer in (other, running):
            assert comer.stdin is not None
            assert comer.stdout is not None
            comer.stdin.write(f"{folder.path}/socket\n")
            comer.stdin.flush()
            assert comer.stdout.readline() == "connected\n"
        waiting.join()
        (connection,) = accepted
        assert connection is not None
        with connection:
            data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            assert int.from_bytes(data[:4], "little") == running.pid
        assert folder.accept(0) is None


@need_root
def test_a_place_behind_a_link_of_the_targets_is_none() -> None:
    with folder_of(0) as own:

        def link(folder: Path) -> None:
            (folder / "tmp").symlink_to(own)
            os.chown(folder / "tmp", NOBODY, NOBODY, follow_symlinks=False)

        before = own.stat().st_mtime_ns
        with (
            confined(link) as (process, _),
            pytest.raises(TargetError, match="found no folder for a"),
        ):
            Handover(process)
        assert own.stat().st_mtime_ns == before


@need_root
def test_a_place_where_the_target_may_write_nothing_is_none() -> None:
    """As a folder of the host's that an unprivileged user has mounted at his own /tmp."""

    def prepare(folder: Path) -> None:
        for place in PLACES:
            (folder / place).mkdir(parents=True, mode=0o755)

    with confined(prepare) as (process, folder):
        before = [(folder / place).stat().st_mtime_ns for place in PLACES]
        with pytest.raises(TargetError, match=r"found no folder for a file .* in its root: "):
            Handover(process)
        assert [(folder / place).stat().st_mtime_ns for place in PLACES] == before


@need_root
@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o777, NOBODY), (0o1777, 12345)])
def test_a_place_where_others_may_exchange_the_folder_is_none(mode: int, owner: int) -> None:
    """A third user would have the target run what he likes."""

    def prepare(folder: Path) -> None:
        (folder / "tmp").mkdir()
        os.chown(folder / "tmp", owner, owner)
        (folder / "tmp").chmod(mode)

    with confined(prepare) as (process, folder):
        with pytest.raises(TargetError, match="found no folder for a file"):
            Handover(process)
        assert list((folder / "tmp").iterdir()) == []


@need_root
def test_a_program_with_a_root_of_its_own_has_its_folder_there() -> None:
    with confined(own_tmp) as (process, folder):
        with Handover(process, code=True) as made:
            assert [path.name for path in (folder / "tmp").iterdir()] == [made.path.split("/")[-1]]
        assert list((folder / "tmp").iterdir()) == []


def swap_while_handing_over(tries: int) -> tuple[int, int]:
    """Make a folder again and again while its place is exchanged; return how often it was, and how often one was made."""
    with folder_of(0, 0o777) as own, confined(nothing) as (process, folder):
        before = own.stat().st_mtime_ns
        made = 0
        with program_of(NOBODY, SWAPPING, str(folder), str(own), str(tries + 1)) as attacker:
            tried = 0
            while tried < tries or not (folder / "enough").exists():
                tried += 1
                try:
                    with Handover(process) as handover:
                        handover.add("stub.py", b"print()")
                        made += 1
                except TargetError:
                    pass
                assert own.stat().st_mtime_ns == before
            (folder / "stop").touch()
            assert attacker.stdout is not None
            return int(attacker.stdout.readline()), made


@need_root
@pytest.mark.timeout(120)
def test_a_place_that_is_exchanged_all_the_time_leads_nowhere_else() -> None:
    """Not even into a folder in which the target might write as well."""
    swaps, made = swap_while_handing_over(300)
    assert swaps > 300
    assert made > 0


@need_root
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_place_that_is_exchanged_thousands_of_times_leads_nowhere_else() -> None:
    swaps, made = swap_while_handing_over(10_000)
    assert swaps > 10_000
    assert made > 100


def test_the_program_of_another_user_is_refused_with_the_remedy() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may act as anybody")
    with Process(1) as process, pytest.raises(NotPermitted):
        Handover(process)


def test_a_folder_of_a_killed_debugger_goes_when_the_next_one_comes() -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with program_of(uid, WAITING) as running, Process(running.pid) as process:
        with Handover(process) as folder:
            place = Path(folder.path).parent
        abandoned, new, in_use, strange = (
            place / f"gcspy-{secrets.token_hex(8)}" for _ in range(4)
        )
        stranger = place / "gcspy-not-ours"
        try:
            for each in (abandoned, new, in_use, strange, stranger):
                each.mkdir(mode=0o700)
                (each / "agent.so").write_bytes(b"code")
                os.mkfifo(each / "socket")
                os.chown(each, uid, -1)
            (strange / "folder").mkdir()
            os.chown(strange / "folder", uid, -1)
            for each in (abandoned, in_use, strange, stranger):
                os.utime(each, (0, 0))
            held = os.open(in_use, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(held, fcntl.LOCK_EX)
            with Handover(process) as one, Handover(process) as another:
                assert Path(one.path).exists()
                assert Path(another.path).exists()
            os.close(held)
            assert not abandoned.exists()
            assert sorted(each.name for each in new.iterdir()) == ["agent.so", "socket"]
            assert sorted(each.name for each in in_use.iterdir()) == ["agent.so", "socket"]
            assert (strange / "folder").is_dir(), "what is no file stays"
            assert (stranger / "agent.so").exists()
        finally:
            for each in (abandoned, new, in_use, strange, stranger):
                shutil.rmtree(each, ignore_errors=True)


def test_a_link_that_is_named_like_an_abandoned_folder_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("somebody's")
    os.utime(tmp_path, (0, 0))
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with program_of(uid, WAITING) as running, Process(running.pid) as process:
        with Handover(process) as folder:
            link = Path(folder.path).parent / f"gcspy-{secrets.token_hex(8)}"
        link.symlink_to(tmp_path)
        try:
            with Handover(process):
                pass
            assert (tmp_path / "file").read_text() == "somebody's"
            assert link.is_symlink()
        finally:
            link.unlink()
