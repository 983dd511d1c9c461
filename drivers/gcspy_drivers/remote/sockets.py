"""Unix sockets at paths that a target names: listening, connecting, and identifying the peer.

No mode and no owner is set by name. A socket's own mode, set before it is bound, becomes the mode
of the file that ``bind`` makes, so there is no moment at which others may connect and no name that
could be replaced. The caller's rights determine the owner of the file
(`gcspy_drivers.remote.user`).

Names are reached through the descriptor of their folder, or of the socket itself, in ``/proc/self/fd``: ``bind`` and ``connect`` have no
other way to take a folder.

Knows sockets and credentials; does not know the data.

Source: unix(7) on SO_PEERCRED and pathname sockets; net/unix/af_unix.c, unix_bind_bsd (the mode) and init_peercred (the credentials of a
listener are those at ``listen``).
"""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
import struct
import time
from typing import Final

__all__ = ["accept_from", "bind_in", "connect_in", "packet_socket", "peer_pid", "socket_owner"]

_CREDENTIALS: Final = struct.Struct("3i")
_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def packet_socket() -> socket.socket:
    """Make a socket of packets. When it is bound, only the owner of its name, and root, may connect to it."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.fchmod(made.fileno(), 0o600)
    return made


def bind_in(listener: socket.socket, name: str, folder: int) -> None:
    """Bind a socket to a new name, which belongs to the user whose rights are used.

    Args:
        listener: See `packet_socket`.
        name: Without a folder.
        folder: Descriptor of its folder.

    Raises:
        OSError: The name exists, or nothing may be made there.
    """
    listener.bind(f"/proc/self/fd/{folder}/{name}")


def connect_in(line: socket.socket, name: str, folder: int, owners: tuple[int, ...]) -> None:
    """Connect to a socket of that name; to the very one that was checked.

    Args:
        line: Not connected yet.
        name: Without a folder.
        folder: Descriptor of its folder.
        owners: Allowed owners.

    Raises:
        FileNotFoundError: There is no socket of that name and those owners.
        OSError: It cannot be connected to.
    """
    looked_at = os.open(name, _LOOK, dir_fd=folder)
    try:
        found = os.fstat(looked_at)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid not in owners:
            raise FileNotFoundError(errno.ENOENT, "another file with that name exists")
        line.connect(f"/proc/self/fd/{looked_at}")
    finally:
        os.close(looked_at)


def socket_owner(name: str, folder: int) -> int | None:
    """Return the owner of the socket with a name; None if there is none."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return found.st_uid if stat.S_ISSOCK(found.st_mode) else None


def peer_pid(line: socket.socket) -> int:
    """Return the process at the other end, as this PID namespace numbers it; 0 if it has no number here."""
    data = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[0])


def accept_from(listener: socket.socket, pid: int, secs: float) -> socket.socket | None:
    """Wait until a process connects; connections of others are closed.

    Args:
        listener: It listens.
        pid: The process.
        secs: How long to wait.

    Returns:
        The connection, which the caller closes; None if it did not come.
    """
    until = time.monotonic() + secs
    while True:
        ready, _, _ = select.select([listener], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        connection, _ = listener.accept()
        if peer_pid(connection) == pid:
            return connection
        connection.close()
        if time.monotonic() >= until:
            return None
