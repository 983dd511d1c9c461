"""A folder in the target's own file system, for files that the target loads, and a socket in it; removed when it is no longer needed.

The target may have another root than we (a container, a chroot), so the folder is made in *its*
root. We may be root and its user may control its file system (an unprivileged user can mount any
folder of the host at ``/tmp`` of a namespace). So everything is made, read and removed with the
rights of the target's user, relative to folders that are open already, and no link is followed.

The target can replace the content of the folder; it runs that with its own rights. We read nothing
from there that we rely on. A debugger that is killed leaves its folder; the next one in the same
place removes it (`abandoned`).

Knows files; does not know runtimes or the content of the files.
"""

from __future__ import annotations

import errno
import os
import secrets
import socket
from contextlib import suppress
from types import TracebackType
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.remote.files import TargetRoot, open_regular, refuse_shared, remove
from gcspy_drivers.remote.leftover_folders import keep, remove_abandoned
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.sockets import accept_from, bind_in, packet_socket
from gcspy_drivers.remote.user import as_user, user_of

__all__ = ["PLACES", "Handover"]

PLACES: Final = ("tmp", "var/tmp", "dev/shm", "run")
"""Folders where programs may write, in most systems and containers."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_TOLD_BYTES: Final = 400
_MOST_FILES: Final = 1024


class Handover:
    """The folder, and a listening socket ``socket`` in it; use it in a ``with``.

    Args:
        process: The target.
        code: Whether the target is to map code from it, which some places refuse.
        room_bytes: Free bytes that the place must have for the target's output.

    Attributes:
        path: The folder, as the target sees it.
        listener: The socket, which listens; SOCK_SEQPACKET.

    Raises:
        TargetError: There is no place in the target's file system where it may be made.
        NotPermitted: The target belongs to another user, and we are not root.
    """

    def __init__(self, process: Process, *, code: bool = False, room_bytes: int = 0) -> None:
        self._process = process
        self._code = code
        self._room_bytes = room_bytes
        self._expected = ""
        self._user = user_of(process)
        self._names: list[str] = []
        self._name = f"gcspy-{secrets.token_hex(8)}"
        self._place_fd = self._fd = -1
        self.listener = packet_socket()
        try:
            with TargetRoot(process) as root:
                self._place_fd, place = as_user(self._user, lambda: self._make(root))
            self.path = f"/{place}/{self._name}"
            as_user(self._user, self._open)
            as_user(self._user, lambda: remove_abandoned(self._place_fd))
            self.listener.listen(8)
        except OSError as error:
            self.close()
            raise TargetError(
                f"process {process.pid}: cannot create a folder in its file system: {error.strerror}"
            ) from error
        except BaseException:
            self.close()
            raise

    def add(self, name: str, content: bytes) -> str:
        """Make a file.

        Returns:
            Its path as the target sees it.

        Raises:
            TargetError: It cannot be made.
        """

        def make() -> None:
            with open(os.open(name, _NEW_FILE, 0o600, dir_fd=self._fd), "wb") as file:
                self._names.append(name)
                file.write(content)

        try:
            as_user(self._user, make)
        except OSError as error:
            raise TargetError(
                f"process {self._process.pid}: cannot create a file in its {self.path}: {error.strerror}"
            ) from error
        return f"{self.path}/{name}"

    def accept(self, secs: float) -> socket.socket | None:
        """Wait until the target itself connects; None: it did not. The caller closes the connection."""
        return accept_from(self.listener, self._process.pid, secs)

    def told(self, name: str) -> str | None:
        """Return the beginning of a file that the target made; None if there is none."""
        if name not in self._names:
            self._names.append(name)  # so that it is removed, too
        try:
            fd = as_user(self._user, lambda: open_regular(name, self._fd))
        except OSError:
            return None
        try:
            return os.pread(fd, _MOST_TOLD_BYTES, 0).decode("utf-8", "replace")
        finally:
            os.close(fd)

    def expect(self, name: str) -> str:
        """Return the path, as the target sees it, of a file that it is to make; in the end everything whose name begins with this is removed."""
        self._expected = name
        return f"{self.path}/{name}"

    def take(self, name: str) -> int:
        """Open a file that the target made, and remove its name at once, so that it disappears however we end.

        Returns:
            A descriptor, which the caller closes.

        Raises:
            TargetError: There is none, or it is not a regular file.
        """

        def open_it() -> int:
            try:
                return open_regular(name, self._fd)
            finally:
                remove(name, self._fd)

        try:
            return as_user(self._user, open_it)
        except OSError as error:
            raise TargetError(
                f"process {self._process.pid}: cannot open {self.path}/{name}, which it was to write: {error.strerror}"
            ) from error

    def close(self) -> None:
        """Remove everything; files that the target made there under other names stay. May be called twice."""
        self.listener.close()
        if self._place_fd >= 0:
            with suppress(NotPermitted):
                as_user(self._user, self._remove)
        for fd in {self._fd, self._place_fd} - {-1}:
            os.close(fd)
        self._fd = self._place_fd = -1

    def __enter__(self) -> Handover:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _make(self, root: TargetRoot) -> tuple[int, str]:
        """Make the folder where that is possible; return the descriptor of its parent, and its path without a slash."""
        why = "it has none of them"
        for place in PLACES:
            fd = -1
            try:
                fd = root.folder(place)
                refuse_shared(fd, self._user, root.owner)
                if self._code and os.fstatvfs(fd).f_flag & os.ST_NOEXEC:
                    raise OSError(errno.EPERM, f"/{place} is mounted noexec")
                room = os.fstatvfs(fd)
                if room.f_bavail * room.f_frsize < self._room_bytes:
                    raise OSError(
                        errno.ENOSPC,
                        f"/{place} has no room for {self._room_bytes / 1e6:,.0f} MB",
                    )
                os.mkdir(self._name, 0o700, dir_fd=fd)
            except OSError as error:
                why = error.strerror or str(error)
                if fd >= 0:
                    os.close(fd)
            else:
                return fd, place
        raise TargetError(
            f"process {self._process.pid}: found no folder for a file that it can read among {', '.join(PLACES)} in its root: {why}; "
            "start it with `gcspy run`"
        )

    def _open(self) -> None:
        self._fd = os.open(self._name, _FOLDER, dir_fd=self._place_fd)
        keep(self._fd)
        bind_in(self.listener, "socket", self._fd)
        self._names.append("socket")

    def _remove(self) -> None:
        for name in self._names:  # harmless if it is gone already
            remove(name, self._fd)
        self._names.clear()
        if self._expected:
            with suppress(OSError):
                for name in os.listdir(self._fd)[:_MOST_FILES]:
                    if name.startswith(self._expected):
                        remove(name, self._fd)
        with suppress(OSError):
            os.rmdir(self._name, dir_fd=self._place_fd)
