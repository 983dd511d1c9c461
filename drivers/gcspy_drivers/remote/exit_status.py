"""`ExitStatus`: how a process has ended, by its exit code or by the signal that killed it.

Only a parent is told by ``waitpid``. To others the kernel reports it in two places: once the
process was reaped by ``PIDFD_GET_INFO`` of a descriptor that was opened before (since Linux 6.15),
and until then, as long as it is a zombie, in ``/proc/PID/stat``.

Knows statuses as ``waitpid`` has them; does not know targets.

Source: include/uapi/linux/pidfd.h (struct pidfd_info), fs/pidfs.c, proc(5), wait(2).
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
from typing import Final

__all__ = ["ExitStatus", "status_words"]

_GET_INFO: Final = 0xC040FF0B  # _IOWR(0xFF, 11, struct pidfd_info of 64 bytes)
_INFO_BYTES: Final = 64
_MASK: Final = struct.Struct("<Q")
_INFO_EXIT: Final = 1 << 3
_EXIT_CODE: Final = struct.Struct("<i")
_EXIT_CODE_AT: Final = 60


class ExitStatus:
    """The status of one process, which must be alive now.

    Args:
        pid: Its process id in our own PID namespace.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._fd = os.pidfd_open(pid)
        except OSError:  # an old kernel, or a sandbox that forbids it: the status will not be known
            self._fd = -1

    def close(self) -> None:
        """Close it. May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def read(self) -> int | None:
        """Return the status as ``waitpid`` has it; None: the process was not reaped yet, or the kernel does not say."""
        if self._fd < 0:
            return None
        info = bytearray(_INFO_BYTES)
        _MASK.pack_into(info, 0, _INFO_EXIT)
        try:
            fcntl.ioctl(self._fd, _GET_INFO, info)
        except OSError:
            return None
        if not _MASK.unpack_from(info)[0] & _INFO_EXIT:
            return None
        return int(_EXIT_CODE.unpack_from(info, _EXIT_CODE_AT)[0])


def status_words(status: int | None) -> str:
    """Return ``: exit code 3`` or ``: killed by SIGSEGV``, to follow "has ended"; empty if the status is not known."""
    if status is None:
        return ""
    if os.WIFEXITED(status):
        return f": exit code {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f": killed by {name}"
