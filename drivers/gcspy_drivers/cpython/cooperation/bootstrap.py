"""Begin a program with a stub in it: ``python begin.py STUB LIBRARY FD COUNT KIND PROGRAM ARGUMENTS…``; what `gcspy run` starts.

LIBRARY is that which records events, or empty. COUNT is empty, or says as a JSON list what counts allocation sites: its folder, the choice of sites, and modules
of libraries. KIND is ``script``, ``module`` or ``code``. The program's environment is as if Python had been
started with it: ``__main__``, ``sys.argv``, ``sys.path``. It begins when the sidecar has sampled
the process, or has gone. Runs on 3.9 and later; it knows nothing of GCspy but the file of the stub.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import socket
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is a large import for a program that does not use it
    from collections.abc import Callable
    from types import CodeType

__all__ = ["main"]


def _begin_counting(count: str) -> tuple[int, Callable[[CodeType], CodeType]]:
    """Begin to count; return a descriptor for the sidecar, or -1, and what instruments a code object."""
    if count:
        import json

        folder, sites, hot_secs, *include = json.loads(count)
        sys.path.insert(0, folder)
        try:
            from gcspy_counting.live.attachment import begin_started
        finally:
            sys.path.remove(folder)
        fd, instrument = begin_started(sites, include, hot_secs)
        if instrument is not None:
            return fd, instrument
    return -1, lambda code: code


def _connect(stub_path: str, library: str, fd: int, counts: int) -> None:
    os.set_inheritable(fd, False)
    spec = importlib.util.spec_from_file_location("gcspy_stub", stub_path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"gcspy: there is no stub at {stub_path}")
    stub = importlib.util.module_from_spec(spec)
    sys.modules["gcspy_stub"] = stub
    spec.loader.exec_module(stub)
    with socket.socket(fileno=fd) as connection:
        stub.let_read(stub.peer_of(connection))  # before the hello: then it may be read
        try:
            stub.Stub(connection, waits=True, library=library, counts=counts).wait()
        except (BrokenPipeError, ConnectionResetError):
            return  # the monitoring process was killed before: the program begins all the same


def main(arguments: list[str]) -> None:
    """Connect, and become the program."""
    stub_path, library, fd, count, kind, program = arguments[:6]
    counts, instrument = _begin_counting(count)
    _connect(stub_path, library, int(fd), counts)
    fresh = types.ModuleType("__main__")
    fresh.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = fresh
    sys.argv = [{"script": program, "module": "-m", "code": "-c"}[kind], *arguments[6:]]
    if kind == "module":
        sys.path[0] = os.getcwd()
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    if kind == "code":
        sys.path[0], name, text = "", "<string>", program.encode()
    else:
        sys.path[0], name = os.path.dirname(os.path.realpath(program)), program
        with open(program, "rb") as file:
            text = file.read()
        fresh.__file__ = program
    code = instrument(compile(text, name, "exec", dont_inherit=True))
    exec(code, fresh.__dict__)  # noqa: S102  # it is what was asked for


if __name__ == "__main__":
    main(sys.argv[1:])
