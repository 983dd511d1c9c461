"""Opening the files and folders that a target names, without trusting the names.

A target may be hostile and gcspy may be root. A path from its maps, its command line or its
environment may lead through links that change between two accesses, and may end at a FIFO, a
device, a socket or a file without end. So here:

* A path is resolved from the target's own root, one folder at a time, each opened relative to the
  previous one. A link is followed only if nobody but an administrator of that file system could
  have made it, and it then leads to a place below the same root. ``..`` is refused.
* A file is checked (``O_PATH``, which opens no device and waits for no writer) before it is opened,
  and the file that is opened is the one that was checked.
* A file is read with ``pread`` and up to a limit, never mapped: a mapping of a file that is
  truncated kills its reader with SIGBUS.

Every module of the drivers opens a target's files with this one;
``tests/house/test_target_files.py`` checks that none opens a path otherwise.

Knows files; does not know their content, or whose rights are used (`gcspy_drivers.remote.user`).

Source: open(2) on O_PATH and O_NOFOLLOW, path_resolution(7), proc(5) on ``/proc/PID/root``, mmap(2) on SIGBUS.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gcspy_drivers.remote.positioned_file import PositionedFile
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.user import User

__all__ = [
    "MAX_FILE_BYTES",
    "RegularFile",
    "TargetRoot",
    "find_open_file",
    "open_regular",
    "refuse_shared",
    "remove",
    "reopen_regular",
    "reopen_sealed_memory",
]

MAX_FILE_BYTES: Final = 4 << 30
"""Maximum bytes read of one file: a libpython has 6 to 30 MB, a program with debugging symbols up to 3 GB."""

_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_LINKS: Final = 8
_MOST_PARTS: Final = 256
_OTHERS_WRITE: Final = 0o022


class TargetRoot:
    """The root of a target's file system, and access to its files; use it in a ``with``.

    Args:
        process: The target; borrowed.

    Attributes:
        owner: Owner of the root folder: this user can change anything below it anyway.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, process: Process) -> None:
        self._fd = process.follow("root")
        self.owner = os.fstat(self._fd).st_uid

    def __enter__(self) -> TargetRoot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it. May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def folder(self, path: str) -> int:
        """Open a folder.

        Args:
            path: Absolute path, as named by the target.

        Returns:
            A descriptor (``O_PATH``), which the caller closes.

        Raises:
            OSError: There is no such folder, or the path contains a link that another user could
                have made.
        """
        return self._walk(path)

    def regular(self, path: str) -> int:
        """Open a regular file for reading.

        Args:
            path: Absolute path, as named by the target.

        Returns:
            A descriptor, which the caller closes.

        Raises:
            OSError: It is not a regular file, or cannot be opened.
        """
        before, _, name = path.rpartition("/")
        folder = self._walk(before)
        try:
            return open_regular(name, folder)
        finally:
            os.close(folder)

    def _walk(self, path: str) -> int:
        parts = _parts(path)
        fd, links = os.dup(self._fd), 0
        try:
            while parts:
                if len(parts) > _MOST_PARTS:
                    raise OSError(errno.ENAMETOOLONG, "it has too many parts")
                found = os.open(parts.pop(0), _LOOK, dir_fd=fd)
                outer, fd = fd, found
                try:
                    kind = os.fstat(found)
                    if stat.S_ISLNK(kind.st_mode):
                        links += 1
                        to = self._trusted_link(found, kind, os.fstat(outer), links)
                        outer, fd = found, outer
                        parts = _parts(to) + parts
                        if to.startswith("/"):
                            inner, fd = fd, os.dup(self._fd)
                            os.close(inner)
                    elif not stat.S_ISDIR(kind.st_mode):
                        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                finally:
                    os.close(outer)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _trusted_link(
        self, link: int, found: os.stat_result, folder: os.stat_result, links: int
    ) -> str:
        """Return the target of a link, if nobody but an administrator can have made it (``/var/run`` in most systems)."""
        trusted = (0, self.owner)
        if found.st_uid not in trusted or folder.st_uid not in trusted or links > _MOST_LINKS:
            raise OSError(errno.ELOOP, "its path has a symbolic link")
        if folder.st_mode & _OTHERS_WRITE:
            raise OSError(
                errno.ELOOP, "its path has a symbolic link in a folder that others can write to"
            )
        return os.readlink("", dir_fd=link)


class RegularFile(PositionedFile):
    """A regular file that is read with ``pread``, up to a limit; if it shrinks meanwhile, it reads as end of file.

    Args:
        fd: See `open_regular`; this takes ownership.
        most_bytes: Bytes beyond it read as end of file.
    """

    def __init__(self, fd: int, most_bytes: int = MAX_FILE_BYTES) -> None:
        super().__init__()
        self._fd = fd
        self._most_bytes = most_bytes

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def close(self) -> None:
        """Close it. May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        super().close()

    def end(self) -> int:
        """Return the file's end, or the limit."""
        return min(os.fstat(self._fd).st_size, self._most_bytes)

    def readinto(
        self, buffer: Any, /
    ) -> int:  # a writable buffer, which has no name before Python 3.12
        """Fill a buffer from the position on, up to the end of the file or the limit."""
        room = memoryview(buffer).cast("B")
        size_bytes = min(len(room), max(0, self._most_bytes - self.position))
        found = os.pread(self._fd, size_bytes, self.position) if size_bytes else b""
        room[: len(found)] = found
        self.position += len(found)
        return len(found)


def open_regular(name: str, folder: int) -> int:
    """Open a regular file for reading; nothing else is ever opened, not even for a moment.

    Args:
        name: Its name, without a folder.
        folder: Descriptor of its folder.

    Returns:
        A descriptor, which the caller closes.

    Raises:
        OSError: It is not a regular file, or cannot be opened.
    """
    if not name or "/" in name or name == "..":
        raise OSError(errno.EINVAL, f"{name!r} is not a file name")
    looked_at = os.open(name, _LOOK, dir_fd=folder)
    try:
        return reopen_regular(looked_at)
    finally:
        os.close(looked_at)


def reopen_regular(looked_at: int) -> int:
    """Open for reading the file of an ``O_PATH`` descriptor, if it is a regular file.

    Raises:
        OSError: It is not, or cannot be opened.
    """
    if not stat.S_ISREG(os.fstat(looked_at).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.open(f"/proc/self/fd/{looked_at}", _READ)


def reopen_sealed_memory(looked_at: int, size_bytes: int) -> int:
    """Open for reading and writing the shared memory of an ``O_PATH`` descriptor, which its owner can neither shrink nor grow.

    Args:
        looked_at: The descriptor.
        size_bytes: The size that it must have.

    Returns:
        A descriptor, which the caller closes.

    Raises:
        OSError: It is not such a memory, or cannot be opened.
    """
    if not stat.S_ISREG(os.fstat(looked_at).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    fd = os.open(f"/proc/self/fd/{looked_at}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Files of other kinds have no seals: the kernel refuses the question.
        sealed = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        if (
            fcntl.fcntl(fd, fcntl.F_GET_SEALS) & sealed != sealed
            or os.fstat(fd).st_size != size_bytes
        ):
            raise OSError(errno.EINVAL, f"it is not a sealed memory of {size_bytes} bytes")
    except BaseException:
        os.close(fd)
        raise
    return fd


def find_open_file(pid: int, beginning: bytes) -> Path | None:
    """Return the first regular file that a process has open and that begins with these bytes.

    Args:
        pid: The process.
        beginning: Its first bytes, such as the magic number of its format.

    Returns:
        Its path as the process knows it; None: there is none. The name may belong to another file
        by now.

    Raises:
        OSError: The process has ended, or may not be examined.
    """
    for number in sorted(os.listdir(f"/proc/{pid}/fd"), key=int):
        with suppress(OSError):  # closed meanwhile, or not a regular file
            looked_at = os.open(f"/proc/{pid}/fd/{number}", os.O_PATH | os.O_CLOEXEC)
            try:
                path = os.readlink(f"/proc/{pid}/fd/{number}")
                opened = reopen_regular(looked_at)
            finally:
                os.close(looked_at)
            try:
                if os.pread(opened, len(beginning), 0) == beginning:
                    return Path(path)
            finally:
                os.close(opened)
    return None


def refuse_shared(folder: int, user: User, owner: int) -> None:
    """Refuse a folder in which a user other than the target's controls the names.

    Args:
        folder: Its descriptor.
        user: The target's.
        owner: See `TargetRoot`: the administrator of the target's file system.

    Raises:
        OSError: It is another user's, or others may replace its content.
    """
    found = os.fstat(folder)
    sticky = bool(found.st_mode & stat.S_ISVTX)
    if sticky and found.st_uid in (0, owner, user.uid):
        return
    if found.st_uid != user.uid:
        raise OSError(errno.EACCES, f"it is a folder of uid {found.st_uid}")
    if found.st_mode & _OTHERS_WRITE:
        raise OSError(errno.EACCES, "it is a folder that others can write to")


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise OSError(errno.EINVAL, "its path contains ..")
    return parts


def remove(name: str, folder: int) -> None:
    """Remove a file; ignore errors."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)
