"""Where a target's server listens by default, and who may be there.

The parsing of addresses is `gcspy_protocol.address`, because clients need it on
any system; what touches the file system is here.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gcspy_protocol.address import Address, TcpAddress, UnixAddress, parse_address
from gcspy_protocol.errors import LinkError

__all__ = [
    "Address",
    "TcpAddress",
    "UnixAddress",
    "default_address",
    "parse_address",
    "runtime_directory",
]


def runtime_directory() -> Path:
    """Where this user's sockets are: ``$XDG_RUNTIME_DIR/gcspy``, or ``/tmp/gcspy-UID``; not made here."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given.startswith("/") and os.path.isdir(given):
        return Path(given) / "gcspy"
    return Path("/tmp") / f"gcspy-{os.geteuid()}"


def default_address(pid: int) -> UnixAddress:
    """The Unix socket on which the server of a process listens, in a directory made for this user alone.

    Raises:
        LinkError: The directory is somebody else's, or open to others.
    """
    directory = runtime_directory()
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        # lstat: in /tmp a link could lead into somebody else's directory.
        found = directory.lstat()
    except OSError as error:
        raise LinkError(
            f"cannot make {directory} for sockets: {error.strerror}; set XDG_RUNTIME_DIR"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise LinkError(
            f"{directory} is not a directory of uid {os.geteuid()} alone (owner {found.st_uid}, "
            f"mode {stat.S_IMODE(found.st_mode):o}): remove it, or set XDG_RUNTIME_DIR to a directory of yours"
        )
    return UnixAddress(str(directory / f"{pid}.sock"))
