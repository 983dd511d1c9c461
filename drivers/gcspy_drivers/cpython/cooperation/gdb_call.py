"""Function calls in a process that gdb makes: a page of text is put there, and one function is called with it.

gdb has our rights and would open any file that the target has mapped; so it gets addresses instead
and opens no file but one of ours.

gdb 13 and older cannot write the registers of a processor with more state than they know. They
notice it in the middle of a call, when some registers are changed already, and a system call in
which the program waited then fails with the kernel's own ``ERESTARTSYS`` (512). So gdb calls a
function in a process of ours first, and never sees the target if that fails (`check_gdb`).
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.remote.elf.image import open_image
from gcspy_drivers.remote.mapping_table import EXECUTE
from gcspy_drivers.remote.maps import Maps, read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

__all__ = ["OLD_GDB", "call_in", "check_gdb", "free_page"]

OLD_GDB = "gdb is older than this processor and cannot write its registers"
"""Reason for which gdb can load nothing into any process of this machine."""

_GDB_SECS: Final = 60.0
_UNWRITTEN: Final = "extended state"
"""Words with which gdb says that it could not write all registers."""

_NOWHERE: Final = "/proc/self/fdinfo/none"
"""Folder in which gdb looks for the target's files; it is empty, and nobody can create files there."""

_C_LIBRARY: Final = re.compile(r"/(libc[.-]|ld-musl-)[^/]*$")
_PAGE_BYTES: Final = 4096
_LOWEST_PAGE: Final = 0x1000_0000_0000
"""Lowest address at which a free page is searched: far from the addresses of programs and the kernel."""

_WAITING: Final = "print(flush=True); input()"
"""Program of the process in which a call is rehearsed: it waits in a read."""


def check_gdb(gdb: str, pid: int) -> None:
    """Have gdb call a function in a process of ours, before it touches the target.

    Args:
        gdb: Its path.
        pid: The target, for the error.

    Raises:
        TargetError: It cannot write this processor's registers, so that it would harm the target.
    """
    if not _writes_registers(gdb):
        raise TargetError(
            f"process {pid}: {OLD_GDB}; it was tried on another process, this one is untouched: install gdb 14 or later; from Python 3.14 on --inject remote-exec needs no gdb, and --inject library none with older ones"
        )


@functools.cache
def _writes_registers(gdb: str) -> bool:
    """Return whether gdb did not say in a rehearsal that it cannot write all registers."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WAITING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            process = Process(child.pid)
            try:
                page = free_page(read_maps(process))
                done = _run_gdb(gdb, process, (), _allocation(process, page))
            finally:
                process.close()
        finally:
            child.kill()
    return _UNWRITTEN not in done.stderr


def free_page(maps: Maps) -> int:
    """Find an address for a page, far from those of programs and the kernel, at which nothing is mapped.

    Args:
        maps: What is mapped in a process.
    """
    page = _LOWEST_PAGE
    for start, end in zip(maps.start.tolist(), maps.end.tolist(), strict=True):
        if start < page + _PAGE_BYTES and end > page:
            page = end
    return int(page)


def call_in(
    process: Process, text: bytes, page: int, function: int, argument: int, *, gdb: str
) -> None:
    """Have gdb put a text into a new page of a process, and call a function with it.

    Args:
        process: The process.
        text: What to put there, without a final zero.
        page: Where; a `free_page`.
        function: Address of a function ``int (*)(long, long)`` that returns 0.
        argument: Its first argument; the second is the page.
        gdb: Its path; `check_gdb` found it able.

    Raises:
        Unsupported: No C library was found there.
        TargetError: gdb did not manage it, or took too long.
    """
    # Not a file that the target could exchange: gdb would copy into it whatever we may read.
    own = os.memfd_create("gcspy")
    try:
        os.write(own, text + b"\0")
        done = _run_gdb(
            gdb,
            process,
            (own,),
            _allocation(process, page),
            f"restore /proc/self/fd/{own} binary {page}",
            f"print ((int (*)(long, long)) {function})({argument}, {page})",
        )
    finally:
        os.close(own)
    if "$1 = 1" not in done.stdout or "$2 = 0" not in done.stdout:
        said = " ".join(done.stderr.split())[-400:]
        raise TargetError(
            f"process {process.pid}: gdb could not load the stub: {said or 'no reason given'}"
        )


def _allocation(process: Process, page: int) -> str:
    """Return gdb's command that maps one page in a process and prints 1 if it is there."""
    private_anonymous_exactly_there = 0x2 | 0x20 | 0x100000
    arguments = f"{page}, {_PAGE_BYTES}, 3, {private_anonymous_exactly_there}, -1, 0"
    return f"print ((long (*)(long, long, int, int, int, long)) {_mmap(process)})({arguments}) == {page}"


def _mmap(process: Process) -> int:
    """Return where `mmap` is in a process.

    Raises:
        Unsupported: None of its libraries is a C library that we know.
    """
    maps = read_maps(process)
    paths = {maps.path[row] for row in range(len(maps)) if maps.permissions[row] & EXECUTE}
    program = process.read_link("exe")
    for path in sorted(paths):
        if not _C_LIBRARY.search(path) and path != program:
            continue
        image = open_image(process, Memory(process), maps, path)
        try:
            found = image.exported("mmap")
        finally:
            image.close()
        if found is not None:
            return found
    raise Unsupported(
        "gdb cannot allocate a page there: start the program with `gcspy run`, or let it call gcspy.listen()",
        found=f"process {process.pid}, without a C library that exports mmap",
        known="glibc, musl",
    )


def _run_gdb(
    gdb: str, process: Process, passed: tuple[int, ...], *calls: str
) -> subprocess.CompletedProcess[str]:
    """Have gdb do something in a process; return what it printed."""
    settings = (
        "set auto-load off",
        "set debuginfod enabled off",
        f"set sysroot {_NOWHERE}",
        "set auto-solib-add off",
    )
    command = [gdb, "-nx", "-batch"]
    for setting in settings:
        command += ["-iex", setting]
    command += ["-p", str(process.pid)]
    for call in calls:
        command += ["-ex", call]
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_GDB_SECS,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",  # gdb looks for its history in its working directory
            pass_fds=passed,
        )
    except subprocess.TimeoutExpired:
        raise TargetError(
            f"process {process.pid}: gdb did not finish within {_GDB_SECS:g} s and was killed; the target keeps running"
        ) from None
