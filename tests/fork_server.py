"""Starts processes of GCspy without the half second that their imports take.

A server process, one for each worker of a run, has imported what commands and sidecars need, and
forks for each of them. `install` has `subprocess` start ``python -m gcspy`` and the sidecar in this
way, also those that the started processes start. The new process is a child of who started it, has
the environment, folder, files and command line that were asked for, and runs what it would run
otherwise. What differs: it has loaded more modules, their memory is laid out alike, and it does not
take its modules apart at its end. A command with other options of Python, with another environment
variable that counts while Python starts, or with a `preexec_fn`, is started as ever, and so is any
in a test that has the fixture `real_starts`.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from tests import forked_command
from tests.forked_command import PLACE as _PLACE
from tests.once import RUN_FOLDER

__all__ = ["ForkServer", "forked", "install", "real_starts"]

_ROOT = Path(__file__).resolve().parent.parent
_COMMAND, _SIDECAR = "gcspy", "gcspy.hosts.sidecar"
_PR_SET_CHILD_SUBREAPER = 36
_ARGUMENTS_BYTES = 2048
"""Room for the arguments of what is started, in those of the server."""

# Counts while Python starts, or while modules are imported.
_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "GCSPY_C_CODE", "NUMBA_")

_SEARCHED = "PYTHONPATH"
"""This one also counts later."""

# Not pyarrow and duckdb, which start threads, and not numba, which few commands need: it takes longer
# than all others where its modules have to be compiled first.
_PACKAGES = ("gcspy", "gcspy_protocol", "gcspy_server", "gcspy_session", "gcspy_drivers")
_MODULES = (
    "gcspy_replay.file",
    "gcspy_replay.player",
    "gcspy_replay.samples",
    "gcspy_client.app",
    "gcspy_client.view.window",
    "rich.table",
)

_Popen: type[subprocess.Popen[Any]] = subprocess.Popen


# -------------------------------------------------------------------- in who starts one


class ForkServer:
    """The server of this worker; it is started when it is first needed, and ends with the worker."""

    def __init__(self) -> None:
        self.place = os.path.join(os.environ[RUN_FOLDER], f"fork-server-{os.getpid()}")
        self._process: subprocess.Popen[Any] | None = None
        self._owner = os.getpid()
        self._searched = os.environ.get(_SEARCHED, "")
        self._lock = threading.Lock()

    @property
    def pids(self) -> set[int]:
        """Its process id, once it is started."""
        return set() if self._process is None else {self._process.pid}

    def start(self) -> None:
        """Start it, unless it is."""
        with self._lock:
            if self._process is not None or os.getpid() != self._owner:
                return
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(self.place)
            listener.listen(64)
            with listener:
                self._process = _Popen(
                    [
                        *(sys.executable, "-m", "tests.fork_server", str(listener.fileno())),
                        "." * _ARGUMENTS_BYTES,
                    ],
                    cwd=_ROOT,
                    pass_fds=[listener.fileno()],
                    stdin=subprocess.PIPE,  # it ends when this is closed
                    env={
                        **os.environ,
                        _SEARCHED: self._searched,  # not that of the test that needs it first
                        "OPENBLAS_NUM_THREADS": "1",  # else numpy starts threads
                    },
                )

    def stop(self) -> None:
        """End it; what it started goes on."""
        if self._process is not None and os.getpid() == self._owner:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None
            with suppress(FileNotFoundError):
                os.unlink(self.place)


_server: ForkServer | None = None
_environment: dict[str, str] = {}
_real = 0


def install(server: ForkServer | None = None) -> None:
    """Have `subprocess` start what the server can.

    Args:
        server: Of this process; None: the one by which this process was started.
    """
    global _server, _environment
    if sys.platform != "linux":
        return
    _server, _environment = server, _counting(os.environ)
    if server is not None:
        os.environ[_PLACE] = server.place
    vars(subprocess)["Popen"] = _ForkedProcess


@contextmanager
def real_starts() -> Iterator[None]:
    """Have everything started as ever, meanwhile."""
    global _real
    _real += 1
    try:
        yield
    finally:
        _real -= 1


def forked(command: Sequence[str]) -> list[str]:
    """Return the command that has the server start this one, for who does not use `subprocess`."""
    if _real or not _forkable(command) or _server is None:
        return list(command)
    _server.start()
    return [sys.executable, "-I", "-S", forked_command.__file__, *command[1:]]


class _ForkedProcess(subprocess.Popen[Any]):
    """As `subprocess.Popen`."""

    def _execute_child(self, *given: Any) -> None:
        """Start the process; the arguments are in the order of CPython 3.11 to 3.14."""
        args, executable, preexec_fn, close_fds, pass_fds, cwd, env, _, _, shell = given[:10]
        p2cread, _, _, c2pwrite, _, errwrite = given[10:16]
        others, new_session = given[17:21], given[21]
        environment = dict(os.environ if env is None else env)
        if (
            _real
            or (executable, preexec_fn, shell, close_fds) != (None, None, False, True)
            or pass_fds
            or not all(one in (None, -1) for one in (*others, *given[22:]))
            or not _forkable(args)
            or _counting(environment) != _environment
            or _PLACE not in environment
        ):
            vars(_Popen)["_execute_child"](self, *given)
            return
        if _server is not None:
            _server.start()
        fds = (p2cread, c2pwrite, errwrite)
        request = {
            "args": [os.fspath(one) for one in args],
            "environment": environment,
            "folder": os.fspath(cwd or os.getcwd()),
            "new session": bool(new_session),
        }
        pid = _ask(
            environment[_PLACE], request, [n if fd == -1 else fd for n, fd in enumerate(fds)]
        )
        if pid is None:
            vars(_Popen)["_execute_child"](self, *given)
            return
        self.pid, self._child_created = pid, True
        vars(_Popen)["_close_pipe_fds"](self, *given[10:16])


def _forkable(args: object) -> bool:
    if not isinstance(args, list | tuple):
        return False
    words = [word for word in args[:4] if word != "-P"]
    return words[:2] == [sys.executable, "-m"] and words[2:3] in ([_COMMAND], [_SIDECAR])


def _counting(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_AT_START) and name != _SEARCHED
    }


_asking = threading.Lock()


def _ask(place: str, request: dict[str, Any], fds: Sequence[int]) -> int | None:
    """Have the server start a process; returns its process id, None where no server can be reached, or it ends."""
    data = json.dumps(request).encode()
    with _asking, socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(place)
        except OSError:
            return None
        # The process between the server and the new one ends at once: then this one is its parent.
        _adopt_orphans(True)
        try:
            socket.send_fds(sock, [len(data).to_bytes(4, "little")], list(fds))
            sock.sendall(data)
            return int.from_bytes(_read(sock, 4), "little")
        except (EOFError, ConnectionError):
            return None
        finally:
            _adopt_orphans(False)


def _adopt_orphans(on: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def _read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError("the fork server has ended, or who asked it")
        data += part
    return data


# ----------------------------------------------------------------------- in the server


def _serve(listener: socket.socket) -> dict[str, Any]:
    """Fork for each request; returns, in the new process alone, what it is to be."""
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            os._exit(0)
        sock, _ = listener.accept()
        request = None
        with suppress(EOFError, ConnectionError):
            request = _fork(sock)
        if request is not None:
            os.closerange(3, max(sock.detach(), listener.detach(), *request["fds"]) + 8)
            return request
        sock.close()


def _fork(sock: socket.socket) -> dict[str, Any] | None:
    """Start one process; returns, in it alone, what it is to be."""
    size, fds, _, _ = socket.recv_fds(sock, 4, 3)
    request: dict[str, Any] = json.loads(_read(sock, int.from_bytes(size, "little")))
    until, parent_known = os.pipe()
    said, say = os.pipe()
    between = os.fork()
    if between == 0:
        child = os.fork()
        if not child and request.get("waited for"):
            child = os.fork()
            if child:
                _wait_for(child, sock, say, (*fds, until, parent_known))
        if child:
            if not request.get("waited for"):
                os.write(say, child.to_bytes(4, "little"))
            os._exit(0)
        os.close(parent_known)
        os.read(until, 1)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        return {**request, "fds": fds}
    os.waitpid(between, 0)
    sock.sendall(os.read(said, 4))
    for fd in (*fds, until, parent_known, said, say):
        os.close(fd)
    return None


def _wait_for(child: int, sock: socket.socket, say: int, fds: Sequence[int]) -> NoReturn:
    """Tell who asked how the child ends; kill it if nobody is there any more."""
    for fd in fds:
        os.close(fd)
    os.write(say, child.to_bytes(4, "little"))
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, sock.fileno()], [], [])
    if ended not in ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):
        sock.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
    os._exit(0)


def _become(request: dict[str, Any]) -> str:
    """Give this process what a new one has; returns the module that it runs."""
    args: list[str] = request["args"]
    if request["new session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    tempfile.tempdir = None
    _show_arguments(args)
    for place in os.environ.get(_SEARCHED, "").split(os.pathsep)[::-1]:
        if place and place not in sys.path:
            sys.path.insert(1, place)
    at = args.index("-m")
    sys.orig_argv, sys.argv = args, ["", *args[at + 2 :]]
    if "-P" in args[:at]:
        del sys.path[0]
    else:
        sys.path[0] = request["folder"]
    modes = (
        ("stdin", "r", "strict"),
        ("stdout", "w", "strict"),
        ("stderr", "w", "backslashreplace"),
    )
    for fd, (name, mode, errors) in enumerate(modes):
        stream = os.fdopen(fd, mode, errors=errors, closefd=False)
        if isinstance(stream, io.TextIOWrapper) and fd != 0:
            stream.reconfigure(line_buffering=fd == 2 or os.isatty(fd))
        vars(sys)[name] = vars(sys)[f"__{name}__"] = stream
    return args[at + 1]


def _show_arguments(args: Sequence[str]) -> None:
    """Have ``/proc`` show other arguments of this process, where they fit; empty ones follow."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    data = b"".join(os.fsencode(arg) + b"\0" for arg in args)
    if len(data) <= end - start:
        ctypes.memmove(start, data.ljust(end - start, b"\0"), end - start)


def _import(name: str) -> None:
    with suppress(ImportError):  # its package may not be installed: who needs it says so
        importlib.import_module(name)


def _import_all() -> None:
    for package in map(importlib.import_module, _PACKAGES):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # Libraries of C that are no modules have a dash.
            if not found.name.endswith("__main__") and "-" not in found.name:
                _import(found.name)
    for name in _MODULES:
        _import(name)


def _run() -> int:
    listener = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    assert len(os.listdir("/proc/self/task")) == 1, "only what has one thread can be forked"
    gc.collect()
    gc.freeze()
    module = _become(_serve(listener))
    install()
    if module == _SIDECAR:
        from gcspy.hosts.sidecar import main as run
    else:
        from gcspy.__main__ import run
    return run()


def _main() -> None:
    try:
        code: object = _run()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    # As Python ends, without what takes longest: taking a thousand modules apart.
    vars(threading)["_shutdown"]()
    vars(atexit)["_run_exitfuncs"]()
    number = code if isinstance(code, int) else int(code is not None)
    try:
        sys.stdout.flush()
    except OSError:
        number = 120
    os._exit(number)


if __name__ == "__main__":
    _main()
