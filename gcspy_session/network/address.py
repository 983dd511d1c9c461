"""The default address of a target's server, and its access rights.

`gcspy_protocol.address` parses addresses, because clients need that on any system; this module
accesses the file system.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from gcspy_protocol.address import Address, TcpAddress, UnixAddress, parse_address
from gcspy_protocol.errors import LinkError

__all__ = [
    "Address",
    "TcpAddress",
    "UnixAddress",
    "default_address",
    "own_directories",
    "parse_address",
    "runtime_directory",
]


_SHARED = Path("/tmp")
_log = logging.getLogger("gcspy")


def runtime_directory() -> Path:
    """The folder of this user's sockets, made if it does not exist.

    ``$XDG_RUNTIME_DIR/gcspy`` if that is this user's, else ``/tmp/gcspy-UID``. Another user can
    make the latter first; then it is a folder ``/tmp/gcspy-UID-…`` with an unpredictable name,
    which all processes of the user find by its owner, and a warning says so.

    Raises:
        LinkError: None can be made.
    """
    preferred = _preferred()
    with suppress(OSError):  # what exists there decides
        preferred.mkdir(mode=0o700, exist_ok=True)
    if _is_own(preferred):
        return preferred
    try:
        if not _others():
            tempfile.mkdtemp(prefix=f"gcspy-{os.geteuid()}-", dir=_SHARED)
        found = _others()[0]  # of two that were made at once all processes take the same
    except (OSError, IndexError) as error:
        raise LinkError(
            f"cannot create a folder for sockets in {_SHARED}: {error}; set XDG_RUNTIME_DIR"
        ) from error
    _say(preferred, found)
    return found


def own_directories() -> list[Path]:
    """Every folder in which a server of this user may have left its socket; makes none."""
    preferred = _preferred()
    return [preferred, *_others()] if _is_own(preferred) else _others()


def default_address(pid: int) -> UnixAddress:
    """The Unix socket on which the server of a process listens, in a directory of this user alone.

    If it exists already in one of this user's directories, that one is returned.

    Raises:
        LinkError: No such directory can be made.
    """
    name = f"{pid}.sock"
    for directory in own_directories():
        if os.path.lexists(directory / name):
            return UnixAddress(str(directory / name))
    return UnixAddress(str(runtime_directory() / name))


def _preferred() -> Path:
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    with suppress(OSError):
        # Another user's directory, as left by `sudo -E`, could be replaced by that user.
        if given.startswith("/") and os.stat(given).st_uid == os.geteuid() and os.path.isdir(given):
            return Path(given) / "gcspy"
    return _SHARED / f"gcspy-{os.geteuid()}"


def _others() -> list[Path]:
    return sorted(path for path in _SHARED.glob(f"gcspy-{os.geteuid()}-*") if _is_own(path))


def _is_own(directory: Path) -> bool:
    """Whether it is a folder, and this user's alone."""
    try:
        found = directory.lstat()  # in /tmp a link could lead into another user's folder
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    )


@cache
def _say(taken: Path, instead: Path) -> None:
    _log.warning(
        "%s does not belong to uid %d alone: using %s for sockets",
        taken,
        os.geteuid(),
        instead,
    )
