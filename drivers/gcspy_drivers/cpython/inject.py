"""Bring a stub into a running CPython that was not prepared for it, by gdb; only ever when somebody asks for it.

gdb stops the process for a moment and calls two functions in it: `mmap`, for a page that holds some lines of Python, and
`Py_AddPendingCall`, which may be called at any time and by anybody, to have them run. So no Python runs while gdb is there; the main
thread does so when it is next between two instructions. One that is blocked gets there when it is not any more.

Knows gdb and where two functions are; knows neither stub nor line of it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.cpython import stub
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.maps import Maps, read_maps

__all__ = ["bring_in"]

_GDB_SECS: Final = 60.0
_PAGE_BYTES: Final = 4096
_LOWEST_PAGE: Final = 0x1000_0000_0000
"""Where a free page is looked for: far from what programs and the kernel use."""

_ATTACH: Final = """
try:
    import sys
    stub = sys.modules.get("gcspy_stub")
    if stub is None:
        import types
        stub = types.ModuleType("gcspy_stub")
        stub.__file__ = "<gcspy stub>"
        with open(folder + "/stub.py") as file:
            exec(compile(file.read(), "<gcspy stub>", "exec"), stub.__dict__)
        sys.modules["gcspy_stub"] = stub
    stub.connect(folder + "/socket")
    stub.unmap(page, 4096)
except BaseException as error:
    try:
        with open(folder + "/error", "w") as file:
            file.write(repr(error))
    except OSError:
        pass
"""
"""What runs in the target. It tells what went wrong in a file: nothing may come out of it there."""


_LINES: Final = """\
try:
    with open("{folder}/attach.py") as _gcspy_file:
        exec(_gcspy_file.read(), dict(folder="{folder}", page={page}))
    del _gcspy_file
except BaseException:
    pass
"""
"""What gdb has it run. Nothing may come out of this either: it would be raised wherever the program is. It may run much later, when
nobody waits for it any more and the folder is gone."""


def bring_in(target: Target, how: str, *, secs: float) -> socket.socket:
    """Bring a stub into a process and wait until it connects.

    Args:
        target: The process.
        how: ``gdb``.
        secs: How long to wait, after gdb has gone, for the target's main thread to come to it.

    Returns:
        The connection; the caller's to close.

    Raises:
        Unsupported: There is no such way here.
        TargetError: gdb did not manage, or the target did not come to it.
    """
    if how != "gdb":
        raise Unsupported("no such way to bring a stub into a process", found=how, known="gdb")
    gdb = shutil.which("gdb")
    if gdb is None:
        raise Unsupported(
            "gdb is not installed: install it, or start the program with `gcspy run`, or let it call gcspy.listen()",
            found="no gdb on PATH",
            known="gdb",
        )
    # A folder of mode 0700, which is the target's user's as soon as it is filled.
    with (
        tempfile.TemporaryDirectory(prefix="gcspy-inject-") as name,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
    ):
        folder = Path(name)
        listener.bind(str(folder / "socket"))
        listener.listen(1)
        listener.settimeout(secs)
        (folder / "stub.py").write_bytes(Path(stub.__file__).read_bytes())
        (folder / "attach.py").write_text(_ATTACH)
        page = _free_page(read_maps(target.process))
        (folder / "lines").write_bytes(_LINES.format(folder=folder, page=page).encode() + b"\0")
        _hand_over(folder, target.process.pid)
        _have_it_run(gdb, target, folder / "lines", page)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            raise TargetError(_why_not(target, folder, secs)) from None
        connection.settimeout(None)
        return connection


def _free_page(maps: Maps) -> int:
    """Find an address at which nothing is mapped."""
    page = _LOWEST_PAGE
    for start, end in zip(maps.start.tolist(), maps.end.tolist(), strict=True):
        if start < page + _PAGE_BYTES and end > page:
            page = end
    return int(page)


def _hand_over(folder: Path, pid: int) -> None:
    """Let the target's user, and nobody else, have the folder; only root can and need do that."""
    owner = os.stat(f"/proc/{pid}")
    if owner.st_uid != os.geteuid():
        for path in (*folder.iterdir(), folder):
            os.chown(path, owner.st_uid, owner.st_gid)


def _have_it_run(gdb: str, target: Target, lines: Path, page: int) -> None:
    """Have the main thread run some lines of Python when it is next able to."""
    pending, run = target.function("Py_AddPendingCall"), target.function("PyRun_SimpleString")
    private_anonymous_exactly_there = 0x2 | 0x20 | 0x100000
    arguments = f"{page}, {_PAGE_BYTES}, 3, {private_anonymous_exactly_there}, -1, 0"
    calls = (
        f"print ((long (*)(long, long, int, int, int, long)) mmap)({arguments}) == {page}",
        f"restore {lines} binary {page}",
        f"print ((int (*)(long, long)) {pending})({run}, {page})",
    )
    command = [gdb, "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    command += ["-p", str(target.process.pid)]
    for call in calls:
        command += ["-ex", call]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GDB_SECS, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise TargetError(
            f"process {target.process.pid}: gdb did not come to an end within {_GDB_SECS:g} s and was killed; the target runs on"
        ) from None
    if "$1 = 1" not in done.stdout or "$2 = 0" not in done.stdout:
        said = " ".join(done.stderr.split())[-400:]
        raise TargetError(f"process {target.process.pid}: gdb could not bring the stub in: {said or 'it did not say why'}")


def _why_not(target: Target, folder: Path, secs: float) -> str:
    pid = target.process.pid
    target.check()
    error = folder / "error"
    if error.exists():
        return f"process {pid}: the stub could not begin there: {error.read_text()[:400]}"
    return (
        f"process {pid}: its main thread did not come to run Python within {secs:g} s; it is blocked somewhere, "
        "as in reading: try again when it is not, or let the program call gcspy.listen()"
    )
