"""The sockets that a session listens on: made, checked, and removed again.

They are made in the caller's thread, so that the caller gets the error if an address is in use.
Knows addresses and sockets; does not know clients.
"""

from __future__ import annotations

import os
import socket
import ssl
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gcspy_protocol.address import TcpAddress, UnixAddress, parse_address
from gcspy_protocol.errors import CommandError, LinkError, LocalProtocolError

from gcspy_session.network.address import own_directories
from gcspy_session.network.tls import session_certificate

__all__ = ["SocketListener", "close_all", "open_all", "sweep"]

_BACKLOG = 128
_NEW_SECS = 10.0


@dataclass
class SocketListener:
    """A listening socket.

    Attributes:
        socket: The socket.
        address: The address for clients.
        tls: The TLS context, if TLS is used.
        inode: For a Unix socket, device and inode: what we may remove later.
    """

    socket: socket.socket
    address: UnixAddress | TcpAddress
    tls: ssl.SSLContext | None = None
    inode: tuple[int, int] | None = field(default=None)

    def close(self) -> None:
        """Close it, and remove a Unix socket's name if it is still ours."""
        self.socket.close()
        if isinstance(self.address, UnixAddress):
            try:
                found = os.lstat(self.address.path)
                if (found.st_dev, found.st_ino) == self.inode:
                    os.unlink(self.address.path)
            except OSError:
                pass  # it was removed already


def open_all(addresses: Sequence[str], *, token: str | None) -> list[SocketListener]:
    """Listen at every address, or at none.

    Raises:
        CommandError: An address is malformed, needs a token, or TLS.
        LinkError: An address is taken, or cannot be listened at.
    """
    if not addresses:
        raise LocalProtocolError(
            "serve needs at least one address: unix:/PATH, HOST:PORT or tls:HOST:PORT"
        )
    opened: list[SocketListener] = []
    try:
        for text in addresses:
            address = parse_address(text)
            opened.append(
                _open_unix(address)
                if isinstance(address, UnixAddress)
                else _open_tcp(address, token)
            )
    except BaseException:
        close_all(opened)
        raise
    return opened


def close_all(listeners: Sequence[SocketListener]) -> None:
    """Close them."""
    for listener in listeners:
        listener.close()


def sweep(folder: Path) -> None:
    """Remove the sockets of servers that were killed before they could do it."""
    for path in folder.glob("*.sock"):
        with suppress(OSError):
            # One that was bound a moment ago may not be listening yet.
            found = path.lstat()
            # A time in the future is old: the clock was set back since.
            if not stat.S_ISSOCK(found.st_mode) or abs(time.time() - found.st_mtime) < _NEW_SECS:
                continue
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.setblocking(False)
                try:
                    probe.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink()


def _open_unix(address: UnixAddress) -> SocketListener:
    folder = Path(address.path).parent
    if folder in own_directories():
        sweep(folder)
    _remove_stale(address)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The socket's own mode is that of the file that bind makes: nothing is changed by name.
        os.fchmod(listening.fileno(), 0o600)
        listening.bind(address.path)
        listening.listen(_BACKLOG)
        found = os.lstat(address.path)
    except OSError as error:
        listening.close()
        raise LinkError(
            f"cannot listen at {address}: {error.strerror}; give another path"
        ) from error
    return SocketListener(listening, address, inode=(found.st_dev, found.st_ino))


def _remove_stale(address: UnixAddress) -> None:
    """Remove the socket of a server that was killed; refuse any other file there."""
    try:
        found = os.lstat(address.path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LinkError(
            f"cannot listen at {address}: {error.strerror}; give another path"
        ) from error
    if not stat.S_ISSOCK(found.st_mode):
        raise LinkError(
            f"cannot listen at {address}: a file that is not a socket exists there; give another path"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(address.path)
        except ConnectionRefusedError:
            os.unlink(address.path)
            return
        except OSError as error:
            raise LinkError(f"cannot listen at {address}: {error}; give another path") from error
    raise LinkError(
        f"cannot listen at {address}: a server already listens there; connect to it with `gcspy view {address}`, "
        "or give another path"
    )


def _open_tcp(address: TcpAddress, token: str | None) -> SocketListener:
    if not token:
        raise CommandError(
            f"{address} needs a token, because any local user can connect to it: "
            "give a token file or GCSPY_TOKEN, or listen at a Unix socket"
        )
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise LinkError(
            f"cannot listen at {address}: {error.strerror or error}; give an address of this host"
        ) from error
    family, _, _, _, place = found[0]
    if not address.tls and not TcpAddress(str(place[0]), 0).is_loopback:
        raise CommandError(f"{address.exposure}: listen at tls:{address}")
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise LinkError(
            f"cannot listen at {address}: {error.strerror}; give another port, or 0 for any free one"
        ) from error
    port = int(listening.getsockname()[1])
    if not address.tls:
        return SocketListener(listening, TcpAddress(address.host, port))
    context, fingerprint = session_certificate()
    return SocketListener(listening, TcpAddress(address.host, port, True, fingerprint), context)
