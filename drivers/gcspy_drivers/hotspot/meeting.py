"""Where an agent that a JVM was started with (``-agentpath:…=at:PATH``) looks for a sidecar, at each collection; and being there.

For JVMs that may not be attached to, or take no agent while they run. The JVM says the path in its own command line; it connects only to
a process of its own user or of root, and we make a socket only in a folder that is its user's or everybody's.

Knows the option and files; knows neither the attach protocol nor the agent's line.
"""

from __future__ import annotations

import os
import re
import select
import socket
import stat
import struct
import time
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.remote.process import Process

__all__ = ["meet", "meeting_place"]

_OPTION: Final = re.compile(rb"-agentpath:[^\0 ]*/gcspy-agent-[0-9a-f]+\.so=at:([^\0 ]+)")
_CREDENTIALS: Final = struct.Struct("3i")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def meeting_place(process: Process) -> str:
    """Return where a JVM looks for us, as it sees it; empty: nowhere.

    Raises:
        TargetGone: It has ended.
    """
    for name in ("cmdline", "environ"):  # JAVA_TOOL_OPTIONS
        try:
            found = _OPTION.search(process.read_file(name))
        except NotPermitted:
            continue
        if found is not None:
            numbers = re.search(rb"^NSpid:.*?(\d+)$", process.read_file("status"), re.M)
            return os.fsdecode(found[1]).replace(
                "%p", str(process.pid) if numbers is None else numbers[1].decode(), 1
            )
    return ""


def meet(process: Process, place: str, *, secs: float) -> socket.socket:
    """Wait at a meeting place until the JVM's agent comes.

    Args:
        process: The target.
        place: As of `meeting_place`.
        secs: How long to wait for a collection.

    Returns:
        The connection; the caller's to close.

    Raises:
        TargetError: The place cannot be had, or the JVM did not come in time.
    """
    path = PurePosixPath(place)
    owner = os.stat(f"/proc/{process.pid}")
    try:
        folder = os.open(
            os.path.join(f"/proc/{process.pid}/root", path.parent.relative_to("/")), _FOLDER
        )
    except (OSError, ValueError) as error:
        raise TargetError(
            f"process {process.pid} looks for gcspy at {place}, which cannot be opened: {error}"
        ) from None
    try:
        found = os.fstat(folder)
        if found.st_uid not in (owner.st_uid, os.geteuid()) and not found.st_mode & stat.S_ISVTX:
            raise TargetError(
                f"process {process.pid} looks for gcspy at {place}, in a folder of uid {found.st_uid}: no socket is made there"
            )
        return _meet_in(folder, path.name, process, owner, secs)
    finally:
        os.close(folder)


def _meet_in(
    folder: int, name: str, process: Process, owner: os.stat_result, secs: float
) -> socket.socket:
    seen = f"/proc/self/fd/{folder}/{name}"
    _clear(folder, name, seen, process)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        try:
            listener.bind(seen)
            os.chmod(name, 0o600, dir_fd=folder)
            if owner.st_uid != os.geteuid():
                os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise TargetError(
                f"process {process.pid} looks for gcspy at {name}, and no socket can be made there: {error.strerror}"
            ) from None
        try:
            listener.listen(1)
            until = time.monotonic() + secs
            while select.select([listener], [], [], max(0.0, until - time.monotonic()))[0]:
                connection, _ = listener.accept()
                pid, _, _ = _CREDENTIALS.unpack(
                    connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
                )
                if pid == process.pid:
                    return connection
                connection.close()  # another JVM that was told the same place
        finally:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
    process.check()
    raise TargetError(
        f"process {process.pid} was started so that it looks for gcspy at each collection, and there was none within {secs:g} s: try again"
    )


def _clear(folder: int, name: str, seen: str, process: Process) -> None:
    """Remove a socket that nobody listens to any more."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISSOCK(found.st_mode):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as there:
            try:
                there.connect(seen)
            except OSError:
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)
                return
    raise TargetError(
        f"process {process.pid} looks for gcspy at {name}, where another gcspy, or something else, is already"
    )
