"""The user of a target, and running code with no more rights than that user has.

A target names folders, files and sockets, and gcspy may be root. Whatever gcspy makes, opens for
writing, connects to or removes at a path that a target chose is therefore done as the target's
user: the kernel then refuses what the target itself may not do.

Credentials belong to a thread. `as_user` starts one, drops its rights and lets it end, so nothing has to be restored.
The system calls are used, not the functions of libc, because those change all threads.

Knows credentials; does not know files or sockets.

Source: credentials(7), setresuid(2) "C library/kernel differences", proc_pid_status(5).
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.remote.process import Process

__all__ = ["User", "as_user", "user_of"]

# x86-64
_SETGROUPS: Final = 116
_SETRESUID: Final = 117
_SETRESGID: Final = 119
_KEEP: Final = -1
_MOST_GROUPS: Final = 65536  # NGROUPS_MAX of the kernel

_LIBC = ctypes.CDLL(None, use_errno=True)
_SYSCALL = _LIBC.syscall
_SYSCALL.restype = ctypes.c_long

Result = TypeVar("Result")


@dataclass(frozen=True)
class User:
    """The effective credentials of a process, in our user name space."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


def user_of(process: Process) -> User:
    """Return the user of a process.

    Raises:
        TargetGone: It has ended.
        TargetError: The kernel does not say.
    """
    text = process.read_file("status").decode("ascii", "replace")
    fields = dict(re.findall(r"^(\w+):[ \t]*(.*)$", text, re.M))
    try:
        return User(
            uid=int(fields["Uid"].split()[1]),
            gid=int(fields["Gid"].split()[1]),
            groups=tuple(int(group) for group in fields["Groups"].split()),
        )
    except (KeyError, IndexError, ValueError):
        process.check()
        raise TargetError(
            f"process {process.pid}: its /proc/PID/status has an unknown format"
        ) from None


def as_user(user: User, work: Callable[[], Result]) -> Result:
    """Call a function with the rights of a user.

    Args:
        user: The user.
        work: The function. It runs in a thread of its own if we are a different user.

    Returns:
        Its result.

    Raises:
        NotPermitted: We are another user, and not root.
        BaseException: Its exception.
    """
    if os.geteuid() == user.uid:
        return work()
    results: list[Result] = []
    errors: list[BaseException] = []

    def act() -> None:
        try:
            _become(user)
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # raised again below
            errors.append(error)

    thread = threading.Thread(target=act, name="gcspy acting", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _become(user: User) -> None:
    """Take a user's effective credentials in this thread; the real and the saved ones stay, so the user cannot send it signals."""
    groups = (ctypes.c_uint32 * len(user.groups))(*user.groups[:_MOST_GROUPS])
    keep = ctypes.c_long(_KEEP)
    for number, arguments in (
        (_SETGROUPS, (ctypes.c_long(len(groups)), groups)),
        (_SETRESGID, (keep, ctypes.c_long(user.gid), keep)),
        (_SETRESUID, (keep, ctypes.c_long(user.uid), keep)),
    ):
        if _SYSCALL(ctypes.c_long(number), *arguments) != 0:
            raise NotPermitted(
                f"cannot act as uid {user.uid}: {os.strerror(ctypes.get_errno())}",
                remedy="run gcspy as the target's user, or as root",
            )
