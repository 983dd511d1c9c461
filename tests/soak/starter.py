"""Starts commands for the soak: a process that has imported everything, and forks.

Starting Python and importing takes longer than most commands live in a soak, and a kill while modules are imported shows
nothing. A forked child calls `gcspy.cli.main`, as `python -m gcspy` does; what that starts itself, such as a sidecar, is
started as usual. Orphans become children of this process (a subreaper), so that its children are all that is left of a round.

    one JSON line in:   {"argv": ["tail", "unix:/path"], "out": FILE, "err": FILE, "fsize": null, "env": {}}
    one JSON line out:  {"pid": 4711}; and, when a process has ended:  {"ended": 4711, "status": -9}

With ``"clock": [AFTER, BY]`` the wall clock, as Python reports it, is BY seconds further from AFTER
seconds on. With ``"program": true`` argv is executed instead. Standard input's end ends this
process and all its children.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import random
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

PRELOADED = (
    "gcspy.commands.attach",
    "gcspy.commands.record",
    "gcspy.commands.replay",
    "gcspy.commands.run",
    "gcspy.commands.tail",
    "gcspy.recorder.lossless",
    "gcspy.recorder.recorder",
    "gcspy.recorder.report",
    "gcspy.connection.target",
    "gcspy.connection.stop_condition",
    "gcspy_client.app",
    "gcspy_drivers.cpython.cooperative_driver",
    "gcspy_drivers.cpython.driver",
    "gcspy_drivers.hotspot.cooperative_driver",
    "gcspy_drivers.hotspot.driver",
    "gcspy_replay.file",
    "gcspy_replay.player",
    "gcspy_server.api",
    "gcspy_server.sampler",
    "gcspy_server.clients.session",
)

_PR_SET_CHILD_SUBREAPER = 36
_INTERRUPTED = 130


def children() -> list[int]:
    """The children of this process, those of ended children too."""
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def _say(**fields: object) -> None:
    os.write(1, json.dumps(fields).encode() + b"\n")


def _become(request: dict[str, Any]) -> None:
    """In the child: take the place of a process that was started from a shell."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.closerange(3, 256)
    os.environ.update(request.get("env", {}))
    if request.get("fsize") is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python has it anyway
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["fsize"], resource.RLIM_INFINITY))
    random.seed()
    if request.get("clock"):
        _jump(*request["clock"])
    if request.get("program"):
        os.execvp(request["argv"][0], request["argv"])
    sys.argv = ["gcspy", *request["argv"]]


def _jump(after_secs: float, by_secs: float) -> None:
    """Make the wall clock jump: the machine's own is shared, so the functions that read it are replaced."""
    began, real = time.monotonic(), time.time_ns

    def time_ns() -> int:
        jumped = time.monotonic() - began >= after_secs
        return real() + (int(by_secs * 1e9) if jumped else 0)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        _say(ended=pid, status=os.waitstatus_to_exitcode(status))


def _serve() -> list[str] | None:
    """Fork what is requested; returns in a child, with its arguments, and here when nothing more is requested."""
    woken, waking = os.pipe()
    for end in (woken, waking):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pending = b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap()
        if 0 not in ready:
            continue
        more = os.read(0, 65536)
        if not more:
            return None
        *lines, pending = (pending + more).split(b"\n")
        for line in lines:
            request = json.loads(line)
            pid = os.fork()
            if not pid:
                _become(request)
                return list(sys.argv[1:])
            _say(pid=pid)


def _end_all() -> None:
    """Kill the remaining processes, and their children."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while left := children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        for pid in left:
            os.waitpid(pid, 0)


def main() -> int:
    """Serve until standard input ends."""
    # Ending a run ends all of its group; this process ends with its standard input, and its
    # children with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for name in PRELOADED:
        importlib.import_module(name)
    from gcspy.cli import main as run_command

    gc.collect()
    gc.freeze()
    _say(ready=True)
    arguments = _serve()
    if arguments is None:
        _end_all()
        return 0
    try:
        return run_command(arguments)
    except KeyboardInterrupt:  # while it reported something else; see gcspy.__main__
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
