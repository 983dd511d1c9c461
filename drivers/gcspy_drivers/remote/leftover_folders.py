"""`remove_abandoned`: the next debugger removes folders of killed debuggers, in a place where a target may write.

The maker of such a folder holds a lock on it while it is needed, and a lock ends with its holder,
in whatever way. So a folder that can be locked is abandoned. Everything is done with the rights of
the target's user, below open descriptors; no link is followed.

Knows files; does not know the purpose of the folders.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from contextlib import suppress
from itertools import islice
from typing import Final

from gcspy_drivers.remote.files import remove

__all__ = ["NAME", "keep", "remove_abandoned"]

NAME: Final = re.compile(r"gcspy-[0-9a-f]{16}\Z")
"""Names of such folders."""

_NEW_SECS: Final = 10.0
"""A folder that was changed more recently may be one whose maker has not locked it yet."""

_MOST_NAMES: Final = 10_000
_MOST_FILES: Final = 64
_MOST_FOLDERS: Final = 64
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def keep(folder: int) -> None:
    """Lock a folder that is in use, given as a descriptor; on a file system without locks, others do not remove it either."""
    with suppress(OSError):
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_abandoned(place: int) -> None:
    """Remove folders of makers that have ended.

    Args:
        place: A descriptor of their parent folder. Folders that cannot be removed stay; at most 64
            are examined.
    """
    with suppress(OSError):
        # The descriptor of the place may not be readable.
        listed = os.open(".", _FOLDER, dir_fd=place)
        try:
            with os.scandir(listed) as entries:
                found = [each.name for each in islice(entries, _MOST_NAMES)]
        finally:
            os.close(listed)
        for name in [each for each in found if NAME.match(each)][:_MOST_FOLDERS]:
            with suppress(OSError):
                _remove(name, place)


def _remove(name: str, place: int) -> None:
    folder = os.open(name, _FOLDER, dir_fd=place)
    try:
        state = os.fstat(folder)
        if state.st_uid != os.geteuid() or abs(time.time() - state.st_mtime) < _NEW_SECS:
            return
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.scandir(folder) as entries:
            for each in list(islice(entries, _MOST_FILES)):
                if not stat.S_ISDIR(os.lstat(each.name, dir_fd=folder).st_mode):
                    remove(each.name, folder)
        os.rmdir(name, dir_fd=place)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.ENOTEMPTY, errno.ENOENT):
            raise
    finally:
        os.close(folder)
