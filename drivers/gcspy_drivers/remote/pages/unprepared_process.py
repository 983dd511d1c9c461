"""`open_written_pages`: the written pages of a process that has no stub.

Where the kernel can protect pages so that it notes writes by itself (Linux 6.7), the process must
make a userfaultfd: a small library is loaded into it at a safe point, which hands one over and
keeps no copy. Otherwise the kernel's soft-dirty bits are used, where it has them; they need nothing
in the process, but belong to it as a whole. Which of the two works is tried on pages of ours.

Knows both ways; does not know what is in the pages. `remote.shared_library_load` knows how a program loads a library.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_compiled.libraries import find_library
from gcspy_drivers.remote.handover import Handover
from gcspy_drivers.remote.pages.protection import ProtectedPages
from gcspy_drivers.remote.pages.soft_dirty import SoftDirtyPages
from gcspy_drivers.remote.pages.trial import try_pages, try_soft_dirty
from gcspy_drivers.remote.pages.written_pages import WrittenPages
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.shared_library_load import load_library

__all__ = ["open_written_pages"]

_FOLDER: Final = Path(__file__).parent / "loaded"
_NAME: Final = "gcspy-pages"
_MARK: Final = b"GCSPY-PATH-OF-THE-SOCKET"
_MOST_PATH_BYTES: Final = 107
_ANSWER: Final = struct.Struct("<i")
_ANSWER_SECS: Final = 5.0


def open_written_pages(process: Process) -> tuple[WrittenPages, int]:
    """Make it possible to see which pages of a process are written.

    Args:
        process: The process; borrowed.

    Returns:
        Its written pages, which the caller closes, and what the first write to a page costs it, in nanoseconds.

    Raises:
        Unsupported: Neither way works on this system, or no library can be loaded into the process.
        NotPermitted: The system does not let us.
        TargetError: No thread was at a safe point, or the process did not answer.
    """
    trial = try_pages()
    if trial.works:
        return WrittenPages(
            ProtectedPages(process, _request_descriptor(process))
        ), trial.fault_nanos
    passive = try_soft_dirty()
    if passive.works:
        return WrittenPages(SoftDirtyPages(process)), passive.fault_nanos
    raise Unsupported(
        "this system cannot say which pages are written",
        found=f"{os.uname().release}: {trial.refusal}",
        known="Linux 6.7 and later, or a kernel with CONFIG_MEM_SOFT_DIRTY",
    )


def _request_descriptor(process: Process) -> int:
    """Load the library; return the userfaultfd."""
    library = find_library(_NAME, _FOLDER)
    if library is None:
        raise Unsupported(
            "the library that makes written pages visible was not built",
            found="no file " + _NAME,
            known="an installation with a C compiler: apt-get install gcc libc6-dev, and install gcspy again",
        )
    with Handover(process, code=True) as folder:
        path = os.fsencode(f"{folder.path}/socket")
        content = library.read_bytes()
        if content.count(_MARK) != 1 or len(path) > _MOST_PATH_BYTES:
            raise TargetError(f"process {process.pid}: {folder.path} is too long for a socket")
        at = content.index(_MARK)
        content = content[:at] + path.ljust(_MOST_PATH_BYTES + 1, b"\0") + content[at + 108 :]
        load_library(process, folder.add(f"{_NAME}.so", content))
        line = folder.accept(_ANSWER_SECS)
        if line is None:
            raise TargetError(
                f"process {process.pid} loaded gcspy's library and did not connect to gcspy: it may be in a sandbox"
            )
        with line:
            return _received(process, line)


def _received(process: Process, line: socket.socket) -> int:
    line.settimeout(_ANSWER_SECS)
    try:
        said, descriptors, _, _ = socket.recv_fds(line, _ANSWER.size, 4, socket.MSG_CMSG_CLOEXEC)
    except OSError as error:
        raise TargetError(
            f"process {process.pid} did not answer gcspy's library: {error.strerror or error}"
        ) from None
    if len(said) == _ANSWER.size and len(descriptors) == 1:
        return descriptors[0]
    for fd in descriptors:
        os.close(fd)
    why = os.strerror(_ANSWER.unpack(said)[0]) if len(said) == _ANSWER.size else "no answer"
    raise Unsupported(
        f"the system allows process {process.pid} no userfaultfd",
        found=why,
        known="processes whose sandbox permits userfaultfd",
    )
