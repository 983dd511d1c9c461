"""Loads a stub into a running CPython that was not prepared for it; only on explicit request.

``remote-exec`` (Python 3.14 and later) stores the path of a script where the runtime looks for one
(`remote_exec`), and stops nothing.

``gdb`` stops the process for a moment and calls two functions in it: `mmap`, for a page with some
lines of Python, and `Py_AddPendingCall`, which may be called at any time from any thread, to run
them (`gdb_call`). So no Python runs while gdb is attached.

``library`` has a thread that waits for the outside world load a small library, which calls
`Py_AddPendingCall` with some lines of Python (`gcspy_drivers.remote.shared_library_load`); the
library stays.

In all ways the main thread does it when it is next between two instructions. One that is blocked gets there when it is not any more.

Knows the ways in; knows neither stub nor line of it.
"""

from __future__ import annotations

import select
import shutil
import socket
import time
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.cpython.cooperation import stub
from gcspy_drivers.cpython.cooperation.collect_library import collect_library, entry_library
from gcspy_drivers.cpython.cooperation.gdb_call import call_in, check_gdb, free_page
from gcspy_drivers.cpython.cooperation.remote_exec import RemoteScript
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.handover import Handover
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.shared_library_load import load_library

__all__ = ["WAYS", "bring_in"]

WAYS: Final = ("auto", "remote-exec", "gdb", "library")
"""``auto`` uses the way that stops nothing: ``remote-exec``, never ``gdb`` or ``library``."""

_HURRY_SECS: Final = 0.2
"""How long a target may take to run it by itself before it is interrupted."""

_BEGUN_SECS: Final = 2.0
"""How long it may take, once it has begun, until it connects or reports an error."""

_LOOK_SECS: Final = 0.05
_ACCEPT_SECS: Final = 1.0
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
    if how == "gdb":
        assert gdb is not None
        check_gdb(gdb, target.process.pid)
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
            page = free_page(read_maps(target.process))
            lines = _LINES.format(folder=folder.path, page=page, **names).encode()
            pending = target.function("Py_AddPendingCall")
            run = target.function("PyRun_SimpleString")
            call_in(target.process, lines, page, pending, run, gdb=gdb)
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


def _why_not(target: Target, folder: Handover, secs: float) -> str:
    pid = target.process.pid
    target.check()
    error = folder.told("error")
    if error is not None:
        return f"process {pid}: the stub could not start: {error}"
    return f"process {pid}: its main thread did not come to run Python within {secs:g} s; it is blocked, for example in a read: try again later, or let the program call gcspy.listen()"
