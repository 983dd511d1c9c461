"""A folder in the target's own file system, for what it is to run, and a socket in it; gone when it is not needed any more.

The target may have another root than we (a container, a chroot), so the folder is made in *its* root, and what has to be
made there belongs to its user and to nobody else. We may be root and its file system may be its user's to arrange, so
nothing here follows a link: everything is made and removed relative to folders that are open already.

Knows files; knows neither runtimes nor what is in the files.
"""

from __future__ import annotations

import errno
import os
import secrets
import socket
from contextlib import suppress
from types import TracebackType
from typing import Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.process import Process

__all__ = ["PLACES", "Handover"]

PLACES: Final = ("tmp", "var/tmp", "dev/shm", "run")
"""Where programs may write, in most systems and containers."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_TOLD_BYTES: Final = 400


class Handover:
    """The folder, and a listening socket ``socket`` in it; use it in a ``with``.

    Args:
        process: The target.
        code: Whether the target is to map code from it, which some places refuse.

    Attributes:
        path: The folder, as the target sees it.
        listener: The socket, which listens; SOCK_SEQPACKET.

    Raises:
        TargetError: There is no place in the target's file system where it may be made.
    """

    def __init__(self, process: Process, *, code: bool = False) -> None:
        self._pid = process.pid
        self._code = code
        self._names: list[str] = []
        self._name = f"gcspy-{secrets.token_hex(8)}"
        self._place_fd, place = self._make()
        self._fd = -1
        self.path = f"/{place}/{self._name}"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._fd = os.open(self._name, _FOLDER, dir_fd=self._place_fd)
            self.listener.bind(f"/proc/self/fd/{self._fd}/socket")
            self._names.append("socket")
            self.listener.listen(1)
        except OSError as error:
            self.close()
            raise TargetError(
                f"process {self._pid}: nothing can be made in its {self.path}: {error.strerror}"
            ) from error

    @property
    def seen_from_here(self) -> str:
        """The folder, as other processes of this host see it."""
        return f"/proc/{self._pid}/root{self.path}"

    def add(self, name: str, content: bytes) -> str:
        """Make a file.

        Returns:
            Its path as the target sees it.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o600, dir_fd=self._fd), "wb") as file:
            self._names.append(name)
            file.write(content)
        return f"{self.path}/{name}"

    def give(self) -> None:
        """Let the target's user, and nobody else, have it all; only root can and need do that."""
        owner = os.stat(f"/proc/{self._pid}")
        if owner.st_uid == os.geteuid():
            return
        for name in self._names:  # and nothing that the target made
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=self._fd, follow_symlinks=False)
        os.chown(self._fd, owner.st_uid, owner.st_gid)

    def told(self, name: str) -> str | None:
        """Return the beginning of a file that the target made; None when there is none."""
        if name not in self._names:
            self._names.append(name)  # so that it is removed, too
        try:
            fd = os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._fd
            )
        except OSError:
            return None
        try:
            return os.read(fd, _MOST_TOLD_BYTES).decode("utf-8", "replace")
        finally:
            os.close(fd)

    def close(self) -> None:
        """Remove it all; what the target made there under other names stays. May be called twice."""
        self.listener.close()
        for name in self._names:
            with suppress(OSError):  # it was never made, or has gone with the target's root
                os.unlink(name, dir_fd=self._fd)
        self._names.clear()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        place, self._place_fd = self._place_fd, -1
        if place >= 0:
            with suppress(OSError):
                os.rmdir(self._name, dir_fd=place)
            os.close(place)

    def __enter__(self) -> Handover:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _make(self) -> tuple[int, str]:
        """Make the folder where that is possible; return the descriptor of the place it is in, and its path without a slash."""
        why = "it has none of them"
        for place in PLACES:
            fd = -1
            try:
                fd = os.open(f"/proc/{self._pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                for part in place.split("/"):
                    outer, fd = fd, os.open(part, _FOLDER, dir_fd=fd)
                    os.close(outer)
                if self._code and os.fstatvfs(fd).f_flag & os.ST_NOEXEC:
                    raise OSError(errno.EPERM, f"/{place} is mounted noexec")
                os.mkdir(self._name, 0o700, dir_fd=fd)
            except OSError as error:
                why = error.strerror or str(error)
                if fd >= 0:
                    os.close(fd)
            else:
                return fd, place
        raise TargetError(
            f"process {self._pid}: there is no place for a file that it may read, of {', '.join(PLACES)} in its root: {why}; "
            "start it with `gcspy run`"
        )
