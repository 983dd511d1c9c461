"""The path where an agent that a JVM was started with (``-agentpath:…=at:PATH``) looks for a sidecar, at each collection; and listening there.

For JVMs that may not be attached to, or load no agent while they run. The path is in the JVM's own
command line; it connects only to a process of its own user or of root. The target chooses the path,
so the socket is made with the rights of the target's user, and only in a folder that is this user's
own, or sticky as ``/tmp`` is: never in one of root's, nor of others.

Knows the option; knows neither the attach protocol nor the agent's line.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from pathlib import PurePosixPath
from typing import Final

from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.remote.files import TargetRoot, refuse_shared, remove
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.sockets import accept_from, bind_in, connect_in, packet_socket
from gcspy_drivers.remote.user import User, as_user, user_of

__all__ = ["meet", "meeting_place"]

_OPTION: Final = re.compile(rb"-agentpath:[^\0 ]*/gcspy-agent-[0-9a-f]+\.so=at:([^\0 ]+)")
_TAKEN: Final = "another gcspy or another program already uses it"
_MOST_BYTES: Final = 8 << 20  # of arguments and of environment; the kernel takes 6 MB of both


def meeting_place(process: Process) -> str:
    """Return the path where a JVM looks for us, as it sees it; empty: none.

    Raises:
        TargetGone: It has ended.
    """
    for name in ("cmdline", "environ"):  # JAVA_TOOL_OPTIONS
        try:
            found = _OPTION.search(process.read_file(name, most_bytes=_MOST_BYTES))
        except TargetGone:
            raise
        except TargetError:
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
        place: See `meeting_place`.
        secs: How long to wait for a collection.

    Returns:
        The connection; the caller's to close.

    Raises:
        TargetError: The place cannot be had, or the JVM did not come in time.
        NotPermitted: The target is another user's, and we are not root.
    """
    path = PurePosixPath(place)
    user = user_of(process)
    if not path.is_absolute() or not path.name:
        raise TargetError(
            f"process {process.pid} looks for gcspy at {place!r}, which is not an absolute path of a socket"
        )
    with packet_socket() as listener:
        folder = -1
        try:
            with TargetRoot(process) as root:
                folder = as_user(user, lambda: _open_folder(root, str(path.parent), user))
            as_user(user, lambda: _bind(listener, path.name, folder, user))
            # Only now and with our own rights: the agent trusts any listener of its own user or
            # root.
            listener.listen(8)
            connection = accept_from(listener, process.pid, secs)
        except OSError as error:
            raise TargetError(
                f"process {process.pid} looks for gcspy at {place!r}, but a socket cannot be created there: {error.strerror}"
            ) from None
        finally:
            if folder >= 0:
                if _is_bound(listener):
                    as_user(user, lambda: remove(path.name, folder))
                os.close(folder)
    if connection is not None:
        return connection
    process.check()
    raise TargetError(
        f"process {process.pid} connects to gcspy at its collections, but there was none within {secs:g} s: try again"
    )


def _open_folder(root: TargetRoot, path: str, user: User) -> int:
    folder = root.folder(path)
    try:
        refuse_shared(folder, user, root.owner)
    except OSError:
        os.close(folder)
        raise
    return folder


def _bind(listener: socket.socket, name: str, folder: int, user: User) -> None:
    """Make the name; an abandoned one is removed."""
    try:
        bind_in(listener, name, folder)
        return
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
    with packet_socket() as there:
        there.setblocking(False)  # one whose queue is full is in use, too
        try:
            connect_in(there, name, folder, (user.uid, 0))
        except ConnectionRefusedError:
            remove(name, folder)
        except OSError:
            raise OSError(errno.EADDRINUSE, _TAKEN) from None
        else:
            raise OSError(errno.EADDRINUSE, _TAKEN)
    bind_in(listener, name, folder)


def _is_bound(listener: socket.socket) -> bool:
    return bool(listener.getsockname())
