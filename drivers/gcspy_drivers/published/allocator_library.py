"""The libraries that show jemalloc, mimalloc and tcmalloc: which one a process needs, how it is built, and loading it into one that runs.

Knows the sources beside `gcspy.h` and a C compiler; `remote.shared_library_load` knows how a program loads a library.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.native_heap.other_allocators import (
    SHOWN_BY_LIBRARY,
    allocator_of,
    describe_allocator,
)
from gcspy_drivers.published.include_folder import include_folder
from gcspy_drivers.published.names import MAPPED_AS
from gcspy_drivers.remote.handover import Handover
from gcspy_drivers.remote.mapping_table import read_mapping_table
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.shared_library_load import load_library

__all__ = ["load_allocator_library"]

_COMPILERS: Final = ("cc", "gcc", "clang")
_BUILD_SECS: Final = 60.0
_OPEN_SECS: Final = 5.0
_REST_SECS: Final = 0.02


def load_allocator_library(process: Process) -> None:
    """Load the library for a process's allocator into it, unless it shows something already.

    Raises:
        Unsupported: It has no such allocator, no library can be loaded, or there is no C compiler.
        NotPermitted: The system does not let us.
        TargetError: No thread was at a safe point, or the library shows nothing.
    """
    if _shows(process):
        return
    memory, maps = Memory(process), read_mapping_table(process)
    name = allocator_of(process, memory, maps)
    if name not in SHOWN_BY_LIBRARY:
        raise Unsupported(
            f"there is no library for the allocator of process {process.pid} ({process.name})",
            found=name or describe_allocator(process, memory, maps),
            known=", ".join(SHOWN_BY_LIBRARY),
        )
    image = _built(name)
    with Handover(process, code=True) as folder:
        load_library(process, folder.add(f"gcspy-{name}.so", image))
    until = time.monotonic() + _OPEN_SECS
    while not _shows(process):
        process.check()
        if time.monotonic() > until:
            raise TargetError(
                f"process {process.pid}: the library for {name} is loaded and shows nothing: the program does not export {name}'s functions"
            )
        time.sleep(_REST_SECS)


def _shows(process: Process) -> bool:
    return MAPPED_AS.encode() in process.read_file("maps")


def _built(name: str) -> bytes:
    """Build a library; return its content."""
    source = include_folder() / f"gcspy_{name}.c"
    command = f"cc -O2 -shared -fPIC {source} -o gcspy-{name}.so -pthread"
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise Unsupported(
            f"the library for {name} must be built: install a C compiler (Debian: apt-get install gcc libc6-dev)",
            found="no C compiler",
            known=f"a library built elsewhere by `{command}`, preloaded when the program starts",
        )
    with tempfile.TemporaryDirectory(prefix="gcspy-build-") as folder:
        made = Path(folder, f"gcspy-{name}.so")
        done = subprocess.run(
            [compiler, *command.split()[1:-3], "-o", str(made), "-pthread"],
            capture_output=True,
            text=True,
            timeout=_BUILD_SECS,
            check=False,
        )
        if done.returncode:
            raise Unsupported(
                f"the library for {name} could not be built: {done.stderr.strip()[-400:]}",
                found=compiler,
                known="a C compiler with the headers of the C library (Debian: libc6-dev)",
            )
        return made.read_bytes()
