"""Files that a target names: a pipe, a device, a link or a file that shrinks is never more than a refusal in words."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.remote.elf.file import ElfFile
from gcspy_drivers.remote.elf.image import open_file
from gcspy_drivers.remote.files import RegularFile, TargetRoot, open_regular
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import NotPermitted, TargetError

from tests.drivers.strangers import NOBODY, folder_of, need_root, program_of

MAPPING = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
kept = mmap.mmap(file, 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
os.close(file)
print('ready', flush=True)
sys.stdin.read()
"""
"""Maps a file as a library is mapped."""

SWAPPING = """
import os, sys
path, secret, least = sys.argv[1:]
def link(): os.symlink(secret, "new")
def pipe(): os.mkfifo("new")
def device(): os.symlink("/dev/zero", "new")
def folder(): os.mkdir("new")
def nothing(): pass
def again(): os.link("kept", "new")
os.chdir(os.path.dirname(path))
os.link(path, "kept")
print('ready', flush=True)
swaps = 0
while not os.path.exists("stop"):
    for make in (link, again, pipe, again, device, again, folder, again, nothing, again):
        try:
            os.rmdir(path)
        except OSError:
            pass
        make()
        try:
            if make in (folder, nothing):
                os.unlink(path)
            os.rename("new", path)
        except OSError:
            pass
        if make is pipe:
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                pass
            else:
                print("somebody reads", flush=True)
        swaps += 1
    if swaps >= int(least):
        open("enough", "w").close()
print(swaps, flush=True)
"""
"""Puts everything but a file in the place of a file, in turn with the file."""


@contextmanager
def mapped(uid: int, folder: Path) -> Iterator[tuple[Process, Path]]:
    """Run a program of a user's that has mapped a copy of a library in a folder."""
    path = folder / "library"
    shutil.copy("/bin/cat", path)
    os.chown(path, uid, uid)
    with program_of(uid, MAPPING, str(path)) as running, Process(running.pid) as process:
        yield process, path


def put(kind: str, path: Path, folder: Path) -> None:
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(folder / "secret")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link", "socket"])
def test_what_stands_in_the_place_of_a_mapped_file_is_not_opened(kind: str) -> None:
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with folder_of(uid) as folder, mapped(uid, folder) as (process, path):
        maps = read_maps(process)
        (folder / "secret").write_bytes(path.read_bytes())
        inode = path.stat().st_ino
        put(kind, path, folder)
        found = open_file(process, maps, str(path))
        # The kernel still has the very file, for users that may open it; others read the mappings.
        if found is not None:
            with found:
                assert os.fstat(found._stream.fileno()).st_ino == inode


def swap_while_opening(tries: int, swaps: int) -> int:
    """Open a mapped file while its owner exchanges it, until both have done so often enough."""
    with (
        folder_of(0, 0o700) as own,
        folder_of(NOBODY) as folder,
        mapped(NOBODY, folder) as (process, path),
    ):
        secret = own / "secret"
        secret.write_text("nobody may read this")
        maps = read_maps(process)
        inode = path.stat().st_ino
        before = os.stat(secret)
        os.utime(secret, ns=(0, before.st_mtime_ns))
        with program_of(NOBODY, SWAPPING, str(path), str(secret), str(swaps)) as attacker:
            while tries > 0 or not (folder / "enough").exists():
                tries -= 1
                found = open_file(process, maps, str(path))
                assert found is not None, "root can ask the kernel for the very file"
                with found:
                    assert os.fstat(found._stream.fileno()).st_ino == inode
            (folder / "stop").touch()
            assert attacker.stdout is not None
            said = attacker.stdout.read().split()
        assert os.stat(secret).st_atime_ns == 0, "it was not read, not even by mistake"
        assert said[:-1] == [], "no pipe was opened"
        return int(said[-1])


@need_root
@pytest.mark.timeout(120)
def test_a_file_that_is_exchanged_all_the_time_is_the_mapped_one_or_none() -> None:
    assert swap_while_opening(800, 400) >= 400


@need_root
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_file_that_is_exchanged_all_the_time_is_the_mapped_one_or_none_in_thousands_of_tries() -> (
    None
):
    assert swap_while_opening(20_000, 20_000) >= 20_000


def test_a_file_that_its_owner_has_a_lease_on_is_not_waited_for(tmp_path: Path) -> None:
    """The kernel has who opens it wait until the owner gives it up, 45 s as it comes."""
    path = tmp_path / "leased"
    path.write_text("x")
    with path.open("r+") as file:
        folder = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
        try:
            ready, done = os.pipe()
            child = os.fork()
            if child == 0:  # of another process: one's own lease does not block it
                import signal

                signal.signal(signal.SIGIO, signal.SIG_IGN)
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                os.write(done, b"x")
                signal.pause()
            try:
                os.read(ready, 1)
                with pytest.raises(BlockingIOError):
                    open_regular("leased", folder)
            finally:
                os.kill(child, 9)
                os.waitpid(child, 0)
                os.close(ready)
                os.close(done)
        finally:
            os.close(folder)


def test_a_file_that_shrinks_while_it_is_read_ends_there(tmp_path: Path) -> None:
    """In a process of its own: a mapping of it would end that by a signal."""
    path = tmp_path / "library"
    shutil.copy(sys.executable if Path(sys.executable).stat().st_size > 20000 else "/bin/cat", path)
    source = """
import os, sys
from gcspy_drivers.remote.elf.file import ElfFile
from gcspy_drivers.remote.files import RegularFile, open_regular
from gcspy_protocol.errors import TargetError
folder = os.open(os.path.dirname(sys.argv[1]), os.O_PATH)
with ElfFile(RegularFile(open_regular("library", folder)), "it") as file:
    os.truncate(sys.argv[1], 5000)
    for ask in (lambda: file.exported("main"), lambda: file.static("main"), lambda: file.bytes_at(file.loads[-1].vaddr, 8)):
        try:
            print(ask())
        except TargetError as error:
            print("refused", str(error)[:20])
"""
    done = subprocess.run(
        [sys.executable, "-c", source, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3
    assert done.stdout.count("refused it is damaged") + done.stdout.count("None") == 3


@pytest.mark.timeout(60)
def test_a_file_of_a_terabyte_costs_no_more_than_what_is_asked_of_it(tmp_path: Path) -> None:
    path = tmp_path / "library"
    shutil.copy("/bin/cat", path)
    data = bytearray(path.read_bytes())
    data[40:48] = (1 << 39).to_bytes(8, "little")  # its sections, half way
    path.write_bytes(data)
    os.truncate(path, 1 << 40)
    folder = os.open(tmp_path, os.O_PATH)
    try:
        with ElfFile(RegularFile(open_regular("library", folder)), "it") as file:
            assert file.exported("no such symbol") is None
            with pytest.raises(TargetError, match="damaged"):
                file.static("main")
    finally:
        os.close(folder)


def test_a_bounded_file_reads_as_any_other_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(200)))
    folder = os.open(tmp_path, os.O_PATH)
    try:
        with RegularFile(open_regular("file", folder), 150) as file:
            assert file.seek(0, io.SEEK_END) == 150
            file.seek(100)
            assert file.read(1000) == bytes(range(100, 150))
            assert file.read(10) == b""
            assert file.seek(-20, io.SEEK_CUR) == 130
            assert file.read(5) == bytes(range(130, 135))
            with pytest.raises(ValueError, match="offset -1"):
                file.seek(-1)
        for name in ("", "..", "a/b"):
            with pytest.raises(OSError, match="not a file name"):
                open_regular(name, folder)
    finally:
        os.close(folder)


def test_a_path_is_walked_below_the_targets_root_and_never_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with Process(os.getpid()) as process, TargetRoot(process) as root:
        os.close(root.regular(str(tmp_path / "file")))
        for path, said in (
            (f"{tmp_path}/../{tmp_path.name}/file", "contains .."),
            (f"{tmp_path}/no/file", "No such file"),
            (f"{tmp_path}/file/file", "Not a directory"),
            (str(tmp_path), "not a regular file"),
            ("/" + "a/" * 300 + "b", "too many parts"),
        ):
            with pytest.raises(OSError, match=said):
                root.regular(path)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            with pytest.raises(OSError, match="No such file"):
                root.folder(f"{tmp_path}/no/no")
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_of_the_kernels_is_read_up_to_its_bound_and_links_are_none() -> None:
    with Process(os.getpid()) as process:
        status = process.read_file("status")
        assert process.read_file("status", most_bytes=len(status) + 100).startswith(b"Name:")
        with pytest.raises(TargetError, match="longer than 10 bytes"):
            process.read_file("status", most_bytes=10)
        for name in ("exe", "cwd", "root"):
            with pytest.raises(TargetError):
                os.close(process.open_file(name))
            os.close(process.follow(name))


GROWING = """
import ctypes, mmap, os, sys
# struct prctl_mm_map: the arguments are where a process says that they are.
fields = [int(word) for word in open("/proc/self/stat").read().rpartition(")")[2].split()[1:]]
start_code, end_code, start_stack = fields[22:25]
start_data, end_data, start_brk, arg_start, arg_end, env_start, env_end = fields[41:48]
memory = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
class Map(ctypes.Structure):
    _fields_ = [(f"f{n}", ctypes.c_uint64) for n in range(11)] + [("auxv", ctypes.c_void_p), ("auxv_size", ctypes.c_uint32), ("exe_fd", ctypes.c_int32)]
brk = ctypes.CDLL(None).sbrk
brk.restype = ctypes.c_void_p
new = Map(start_code, end_code, start_data, end_data, start_brk, brk(0), start_stack, at, at + (1 << 30), at, at + (1 << 30), None, 0, -1)
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(35, 14, ctypes.byref(new), ctypes.c_ulong(ctypes.sizeof(new)), 0) != 0:
    print("cannot", os.strerror(ctypes.get_errno()), flush=True)
else:
    print("ready", flush=True)
sys.stdin.read()
"""
"""Says that its arguments and its environment are a gigabyte of its memory each, which any process may."""


@pytest.mark.timeout(120)
def test_arguments_and_environment_of_a_gigabyte_are_not_read_whole() -> None:
    from gcspy_drivers.cpython.discovery import pymalloc_setting
    from gcspy_drivers.hotspot.agent.meeting_place import meeting_place

    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    try:
        with program_of(uid, GROWING) as running, Process(running.pid) as process:
            with pytest.raises(TargetError, match="longer than 8388608 bytes"):
                process.read_file("cmdline", most_bytes=8 << 20)
            assert meeting_place(process) == ""
            assert pymalloc_setting(process) == ""
    except AssertionError as error:
        if "cannot" not in str(error):
            raise
        pytest.skip(f"this kernel lets nobody move his arguments: {error}")


def test_a_root_that_may_not_be_looked_at_is_refused_in_our_words() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may look at all of them")
    with Process(1) as process, pytest.raises(NotPermitted):
        TargetRoot(process)
