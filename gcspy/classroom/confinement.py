"""Confines the calling process before it runs a stranger's code: limits of time, memory and files, no network, no writing, no reading beyond programs.

What Linux offers without privileges: resource limits; namespaces of its own for users, network, processes and messages; Landlock, which closes the file
system. The code then sees no process but its own, and whatever it starts ends with it. What the system does not permit is reported, not hidden. The stranger's code still runs in this process: it cannot harm others, and can deceive
whoever believes what the process reports.

Source: landlock(7), namespaces(7), setrlimit(2); numbers of system calls and flags are those of x86-64 and of <linux/landlock.h>.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import sys
from collections.abc import Iterable
from typing import Final

__all__ = ["CPU_SECS", "MEMORY_BYTES", "SIGNALLED", "confine"]

CPU_SECS: Final = 120
MEMORY_BYTES: Final = 2 << 30
_FILES: Final = 64
_PROCESSES: Final = 16
"""Threads and processes in the namespace; the kernel exempts the administrator."""

_NEW_USER, _NEW_NET, _NEW_IPC, _NEW_UTS = 0x10000000, 0x40000000, 0x08000000, 0x04000000
_NEW_PID = 0x20000000
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_END_WITH_PARENT: Final = 1
SIGNALLED: Final = 128
"""Exit codes from here on stand for signals, as in a shell."""
_EXECUTE, _READ_FILE, _READ_DIRECTORY = 1, 4, 8
_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
"""Rights that each version of Landlock can take away; later ones have one more, for devices."""
_NET_RIGHTS: Final = 3
_SCOPES: Final = 3


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def confine(readable: Iterable[str]) -> list[str]:
    """Confine this process, for good; the caller goes on in a child of it, and this process ends as the child does.

    Args:
        readable: Folders that may be read besides those of Python and of the system's libraries.

    Returns:
        What could not be confined, each a clause; empty: everything was.
    """
    _limit()
    missing = []
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return ["the network and files are open: only Linux on x86-64 can close them"]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_USER | _NEW_NET | _NEW_IPC | _NEW_UTS | _NEW_PID) == 0:
        _go_on_in_child(libc)  # it reaps whatever the code starts, and all of that ends with it
        _go_on_in_child(libc)
        resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
    else:
        missing.append(
            "the network and other processes are open: this system permits no user namespaces "
            f"({os.strerror(ctypes.get_errno())})"
        )
    closed, network = _close_files(libc, readable)
    if not closed:
        missing.append("files are open: this kernel has no Landlock")
    elif network and missing:
        missing = [
            "the network is open for anything but TCP, and so are other processes: no user namespaces"
        ]
    return missing


def _go_on_in_child(libc: ctypes.CDLL) -> None:
    """Return in a child, which ends with this process; this process waits for it, and ends as it does."""
    child = os.fork()
    if child == 0:
        libc.prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else SIGNALLED - code)


def _limit() -> None:
    """Set limits that even the administrator's process cannot raise again without privileges."""
    wanted = {
        resource.RLIMIT_CPU: CPU_SECS,
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _FILES,
    }
    for kind, value in wanted.items():
        most = resource.getrlimit(kind)[1]
        limit = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (limit, limit))


def _close_files(libc: ctypes.CDLL, readable: Iterable[str]) -> tuple[bool, bool]:
    """Let files be read in some folders only, and nothing be written.

    Returns:
        Whether files are closed, and whether TCP is.
    """
    version = libc.syscall(_CREATE, None, 0, _VERSION)
    if version < 1:
        return False, False
    files = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    rules = _Ruleset(files, _NET_RIGHTS if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(_CREATE, ctypes.byref(rules), size, 0)
    if ruleset < 0:
        return False, False
    try:
        for folder in dict.fromkeys((*_system_folders(), *readable)):
            _permit(libc, ruleset, folder)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        closed = libc.syscall(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)
    return closed, closed and version >= 4


def _permit(libc: ctypes.CDLL, ruleset: int, folder: str) -> None:
    try:
        parent = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this system
    try:
        rights = _READ_FILE | _READ_DIRECTORY | _EXECUTE if os.path.isdir(folder) else _READ_FILE
        rule = _Beneath(rights, parent)
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)


def _system_folders() -> list[str]:
    """Where Python, its packages and the system's libraries are."""
    folders = {
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        "/usr",
        "/lib",
        "/lib64",
        "/dev/urandom",
    }
    folders |= {path for path in sys.path if path and os.path.isdir(path)}
    return sorted(folders)
