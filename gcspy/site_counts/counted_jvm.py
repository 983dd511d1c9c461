"""Allocation sites of a JVM: counters in its classes from its start, or for some seconds in one that runs, and what they say.

The counters are in a file that the JVM maps, and the sites in another: both are read when counting ends, also when the JVM was killed.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from gcspy_protocol.errors import CommandError, TargetError, Unsupported

from gcspy.site_counts.counted_run import CountedRun

__all__ = ["count_running_jvm", "is_jvm", "run_counted_jvm"]

_ATTACH_SECS = 60.0
_LARGEST_LIST = 256 << 20
"""Bytes of the largest list of sites that is read."""
_COUNTER = struct.Struct("<q")


def is_jvm(program: str) -> bool:
    """Say whether a program that the user named is the launcher of a JVM."""
    return os.path.basename(program) == "java" and not program.endswith(".py")


def _agent() -> Path:
    """Return the agent that counts.

    Raises:
        Unsupported: It was not built.
    """
    import gcspy_drivers.hotspot

    found = sorted(Path(gcspy_drivers.hotspot.__file__).parent.glob("gcspy-counting-*.jar"))
    if not found:
        raise Unsupported(
            "allocation sites of JVMs are counted by an agent in Java, which was not built: install a JDK (default-jdk-headless), and gcspy again",
            found="no gcspy-counting agent",
            known="one that was built when gcspy was installed",
        )
    return found[-1]


def run_counted_jvm(program: str, arguments: tuple[str, ...]) -> CountedRun:
    """Run a JVM to its end, with counters in the classes of its program. Its input and output are ours.

    Args:
        program: The launcher.
        arguments: Its arguments.

    Raises:
        CommandError: There is no such program.
        Unsupported: The agent was not built.
    """
    agent = _agent()
    with tempfile.TemporaryDirectory(prefix="gcspy-count-") as folder:
        try:
            process = subprocess.Popen([program, f"-javaagent:{agent}={folder}", *arguments])
        except OSError as error:
            raise CommandError(f"cannot start {program}: {error.strerror}") from error
        # The terminal sends Ctrl-C to the whole group: the program decides what it means.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            status = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        return CountedRun(128 - status if status < 0 else status, _report(Path(folder)))


def count_running_jvm(pid: int, secs: float) -> CountedRun:
    """Give counters to the classes of a JVM that runs, and take them out after some seconds.

    Args:
        pid: The JVM.
        secs: How long to count.

    Raises:
        TargetError: It does not load the agent, or has ended.
        Unsupported: The agent was not built; or it is another user's or container's JVM.
    """
    from gcspy_drivers.hotspot.agent.attach_protocol import AttachListener
    from gcspy_drivers.remote.process import Process

    agent = _agent()
    process = Process(pid)
    try:
        if not _shares_files(pid):
            raise Unsupported(
                "the agent writes counts into a folder that both of us use: count as the user of the JVM, and in its container",
                found=f"process {pid}, of another user or with other files",
                known="a JVM of this user, with the same files",
            )
        listener = AttachListener(process)
        with tempfile.TemporaryDirectory(prefix="gcspy-count-") as folder:
            _load(listener, agent, folder)
            try:
                time.sleep(secs)
            finally:
                _load(listener, agent, "stop")
            return CountedRun(0, _report(Path(folder)))
    finally:
        process.close()


def _load(listener: Any, agent: Path, argument: str) -> None:
    """Have a JVM load the agent, or tell it something."""
    said = listener.ask("load", "instrument", "false", f"{agent}={argument}", secs=_ATTACH_SECS)
    if said.strip() not in ("", "0", "return code: 0"):
        raise TargetError(f"the JVM did not load the agent that counts: {said.strip()[:200]}")


def _shares_files(pid: int) -> bool:
    try:
        theirs = os.stat(f"/proc/{pid}")
        same = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    except OSError:
        return False
    return same and theirs.st_uid == os.geteuid()


def _report(folder: Path) -> dict[str, Any]:
    """Return what was counted, in the form of a counted program of Python.

    Raises:
        TargetError: There is nothing, or what is there has another form.
    """
    try:
        if (folder / "sites").stat().st_size > _LARGEST_LIST:
            raise CommandError("the list of sites is larger than 256 MiB: it is not read")
        lines = (folder / "sites").read_text(encoding="utf-8", errors="replace").split("\n")
        counters = (folder / "counters").read_bytes()
    except OSError as error:
        raise TargetError(
            "the JVM ended before it counted; it says why above, or it is older than Java 11"
        ) from error
    sites: list[dict[str, Any]] = []
    failed = 0
    classes = set()
    for line in lines:
        fields = line.split("\t")
        if fields[0] == "!":
            failed += 1
            continue
        if len(fields) != 5 or not fields[0].isdigit() or not fields[2].isdigit():
            continue
        at = _COUNTER.size * int(fields[0])
        if at + _COUNTER.size > len(counters):
            continue
        (count,) = _COUNTER.unpack_from(counters, at)
        classes.add(fields[3].rpartition(".")[0])
        sites.append(
            {
                "file": fields[1],
                "line": int(fields[2]),
                "column": 0,
                "function": fields[3],
                "what": fields[4],
                "always": True,
                "count": count,
                "size": None,
            }
        )
    return {
        "sites": sites,
        "increments": sum(each["count"] for each in sites),
        "counters": len(sites),
        "code_objects": len(classes),
        "not_countable": failed,
        "raises": 0,
        "instrumenting_secs": 0.0,
        "replanned": [],
    }
