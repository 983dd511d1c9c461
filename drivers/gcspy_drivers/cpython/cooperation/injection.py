"""Loads a stub into a running CPython that was not prepared for it; only on explicit request.

``remote-exec`` (Python 3.14 and later) stores the path of a script where the runtime looks for one
(`remote_exec`), and stops nothing.

``gdb`` stops the process for a moment and calls two functions in it: `mmap`, for a page with some
lines of Python, and `Py_AddPendingCall`, which may be called at any time from any thread, to run
them. So no Python runs while gdb is attached. gdb has our rights and would open any file that the
target has mapped; so it gets addresses instead and opens no file but one of ours.

``library`` has a thread that waits for the outside world load a small library, which calls
`Py_AddPendingCall` with some lines of Python (`gcspy_drivers.remote.shared_library_load`); the
library stays.

In all ways the main thread does it when it is next between two instructions. One that is blocked gets there when it is not any more.

Knows the ways in; knows neither stub nor line of it.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.cpython.cooperation import stub
from gcspy_drivers.cpython.cooperation.collect_library import collect_library, entry_library
from gcspy_drivers.cpython.cooperation.remote_exec import RemoteScript
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.elf.image import open_image
from gcspy_drivers.remote.handover import Handover
from gcspy_drivers.remote.mapping_table import EXECUTE
from gcspy_drivers.remote.maps import Maps, read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.shared_library_load import load_library

__all__ = ["OLD_GDB", "WAYS", "bring_in"]

WAYS: Final = ("auto", "remote-exec", "gdb", "library")
"""``auto`` uses the way that stops nothing: ``remote-exec``, never ``gdb`` or ``library``."""

OLD_GDB = "gdb is older than this processor and cannot write its registers"
"""Reason for which gdb can load nothing into any process of this machine."""
_GDB_SECS: Final = 60.0
_HURRY_SECS: Final = 0.2
"""How long a target may take to run it by itself before it is interrupted."""

_BEGUN_SECS: Final = 2.0
"""How long it may take, once it has begun, until it connects or reports an error."""

_LOOK_SECS: Final = 0.05
_ACCEPT_SECS: Final = 1.0
_NOWHERE: Final = "/proc/self/fdinfo/none"
"""Folder in which gdb looks for the target's files; it is empty, and nobody can create files there."""

_C_LIBRARY: Final = re.compile(r"/(libc[.-]|ld-musl-)[^/]*$")
_PAGE_BYTES: Final = 4096
_LOWEST_PAGE: Final = 0x1000_0000_0000
"""Lowest address at which a free page is searched: far from the addresses of programs and the kernel."""

_LIBRARY: Final = "collect.so"
_COUNTING: Final = "counting"
_ENTRY: Final = "entry.so"

_ATTACH: Final = """
try:
    import sys
    stub = sys.modules.get("gcspy_stub")
    if not hasattr(stub, "COUNTS"):
        import types
        stub = types.ModuleType("gcspy_stub")
        stub.__file__ = "<gcspy stub>"
        with open(folder + "/stub.py") as file:
            exec(compile(file.read(), "<gcspy stub>", "exec"), stub.__dict__)
        sys.modules["gcspy_stub"] = stub
    counts = -1
    if counting:
        import json
        with open(folder + "/" + counting) as file:
            texts, choice, include, hot_secs = json.load(file)
        names = {"__name__": "gcspy_counting.live.attachment"}
        exec(compile(texts["gcspy_counting.live.attachment"], "<gcspy counting>", "exec"), names)
        counts = names["begin_attached"](texts, choice, include, hot_secs=hot_secs)
    stub.connect(folder + "/socket", library and folder + "/" + library, counts)
    if page:
        stub.unmap(page, 4096)
except BaseException as error:
    try:
        with open(folder + "/error", "w") as file:
            file.write(repr(error))
    except OSError:
        pass
"""
"""The code for the target. It reports errors in a file: no exception may leave it there."""


_LINES: Final = """\
try:
    with open("{folder}/attach.py") as _gcspy_file:
        exec(_gcspy_file.read(), dict(folder="{folder}", page={page}, library="{library}", counting="{counting}"))
    del _gcspy_file
except BaseException:
    pass
"""
"""The code that the target is made to run. No exception may leave this either: it would be raised
at a random place in the program. It may run much later, when nothing waits for it any more and the
folder is gone."""


def bring_in(target: Target, how: str, *, secs: float, counting: bytes = b"") -> socket.socket:
    """Bring a stub into a process and wait until it connects.

    Args:
        target: The process.
        how: One of `WAYS`.
        secs: How long to wait for the target's main thread to come to it.
        counting: What counts allocation sites, as JSON for `_ATTACH`; empty: they are not counted.

    Returns:
        The connection; the caller's to close.

    Raises:
        Unsupported: This way is not available here.
        TargetError: It was not managed, or the target did not come to it.
    """
    if how not in WAYS:
        raise Unsupported(
            "no such way to load a stub into a process", found=how, known=", ".join(WAYS)
        )
    script = None if how in ("gdb", "library") else RemoteScript(target)
    gdb = shutil.which("gdb")
    if how == "gdb" and gdb is None:
        raise Unsupported(
            "gdb is not installed: install it, or start the program with `gcspy run`, or let it call gcspy.listen()",
            found="no gdb on PATH",
            known="gdb",
        )
    entry = entry_library() if how == "library" else ""
    if how == "library" and not entry:
        raise Unsupported(
            "the library that brings a stub in was not built: install a C compiler, and gcspy again, or use --inject gdb",
            found="no gcspy-entry library",
            known="one that was built when gcspy was installed",
        )
    with Handover(target.process, code=bool(entry)) as folder:
        folder.add("stub.py", Path(stub.__file__).read_bytes())
        folder.add("attach.py", _ATTACH.encode())
        library = collect_library()
        if library:
            folder.add(_LIBRARY, Path(library).read_bytes())
        if counting:
            folder.add(_COUNTING, counting)
        names = {"library": _LIBRARY if library else "", "counting": _COUNTING if counting else ""}
        if script is not None:
            lines = _LINES.format(folder=folder.path, page=0, **names).encode()
            connected = _ask(script, folder.add("lines", lines), folder, secs)
        elif entry:
            folder.add("lines", _LINES.format(folder=folder.path, page=0, **names).encode())
            load_library(target.process, folder.add(_ENTRY, Path(entry).read_bytes()))
            connected = _answered(folder, secs)
        else:
            assert gdb is not None
            page = _free_page(read_maps(target.process))
            lines = _LINES.format(folder=folder.path, page=page, **names).encode()
            _have_it_run(gdb, target, lines, page)
            connected = _answered(folder, secs)
        connection = folder.accept(_ACCEPT_SECS) if connected else None
        if connection is None:
            raise TargetError(_why_not(target, folder, secs))
        return connection


def _ask(script: RemoteScript, path: str, folder: Handover, secs: float) -> bool:
    """Ask the target to run a script, and withdraw the request if it does not; return whether it connects."""
    deadline = time.monotonic() + secs
    try:
        script.ask(path)
        if not _answered(folder, min(_HURRY_SECS, secs)):
            script.hurry()
            _answered(folder, deadline - time.monotonic())
    finally:
        # A script that has begun needs its files; without them it would print an error.
        begun = not script.take_back()
        connected = begun and _answered(folder, _BEGUN_SECS)
    return connected


def _answered(folder: Handover, secs: float) -> bool:
    """Wait until the target connects, or reports an error; return whether it connects."""
    deadline = time.monotonic() + secs
    while (left := deadline - time.monotonic()) > 0:
        if select.select([folder.listener], [], [], min(left, _LOOK_SECS))[0]:
            return True
        if folder.told("error"):
            return False
    return bool(select.select([folder.listener], [], [], 0)[0])


def _free_page(maps: Maps) -> int:
    """Find an address at which nothing is mapped."""
    page = _LOWEST_PAGE
    for start, end in zip(maps.start.tolist(), maps.end.tolist(), strict=True):
        if start < page + _PAGE_BYTES and end > page:
            page = end
    return int(page)


def _have_it_run(gdb: str, target: Target, lines: bytes, page: int) -> None:
    """Have the main thread run some lines of Python when it is next able to."""
    pending, run = target.function("Py_AddPendingCall"), target.function("PyRun_SimpleString")
    private_anonymous_exactly_there = 0x2 | 0x20 | 0x100000
    arguments = f"{page}, {_PAGE_BYTES}, 3, {private_anonymous_exactly_there}, -1, 0"
    # Not a file that the target could exchange: gdb would copy into it whatever we may read.
    own = os.memfd_create("gcspy")
    try:
        os.write(own, lines + b"\0")
        _run_gdb(
            gdb,
            target.process,
            own,
            f"print ((long (*)(long, long, int, int, int, long)) {_mmap(target.process)})({arguments}) == {page}",
            f"restore /proc/self/fd/{own} binary {page}",
            f"print ((int (*)(long, long)) {pending})({run}, {page})",
        )
    finally:
        os.close(own)


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


def _run_gdb(gdb: str, process: Process, passed: int, *calls: str) -> None:
    """Have gdb do something in a process."""
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
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_GDB_SECS,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",  # gdb looks for its history in its working directory
            pass_fds=(passed,),
        )
    except subprocess.TimeoutExpired:
        raise TargetError(
            f"process {process.pid}: gdb did not finish within {_GDB_SECS:g} s and was killed; the target keeps running"
        ) from None
    if "$1 = 1" not in done.stdout or "$2 = 0" not in done.stdout:
        if "extended state" in done.stderr:
            raise TargetError(
                f"process {process.pid}: {OLD_GDB}: install gdb 14 or later; from Python 3.14 on --inject remote-exec needs no gdb"
            )
        said = " ".join(done.stderr.split())[-400:]
        raise TargetError(
            f"process {process.pid}: gdb could not load the stub: {said or 'no reason given'}"
        )


def _why_not(target: Target, folder: Handover, secs: float) -> str:
    pid = target.process.pid
    target.check()
    error = folder.told("error")
    if error is not None:
        return f"process {pid}: the stub could not start: {error}"
    return f"process {pid}: its main thread did not come to run Python within {secs:g} s; it is blocked, for example in a read: try again later, or let the program call gcspy.listen()"
