"""Allocation sites of a JVM: counters in its classes from its start, or for some seconds in one that runs, and what they say.

The counters are in a file that the JVM maps, and the sites in another: both are read when counting ends, also when the JVM was killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from gcspy_protocol.errors import CommandError, TargetError

from gcspy.site_counts.counted_run import CountedRun

__all__ = ["count_running_jvm", "is_jvm", "run_counted_jvm"]


def is_jvm(program: str) -> bool:
    """Say whether a program that the user named is the launcher of a JVM."""
    return os.path.basename(program) == "java" and not program.endswith(".py")


def run_counted_jvm(program: str, arguments: tuple[str, ...], *, shares: bool = True) -> CountedRun:
    """Run a JVM to its end, with counters in the classes of its program. Its input and output are ours.

    Args:
        program: The launcher.
        arguments: Its arguments.
        shares: Whether sites may share counters.

    Raises:
        CommandError: There is no such program.
        Unsupported: The agent was not built.
    """
    from gcspy_drivers.hotspot.counting.counting_agent import path_of_agent

    agent = f"{path_of_agent()}={'' if shares else 'site:'}"
    with tempfile.TemporaryDirectory(prefix="gcspy-count-") as folder:
        try:
            process = subprocess.Popen([program, f"-javaagent:{agent}{folder}", *arguments])
        except OSError as error:
            raise CommandError(f"cannot start {program}: {error.strerror}") from error
        # The terminal sends Ctrl-C to the whole group: the program decides what it means.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            status = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        return CountedRun(128 - status if status < 0 else status, _report(Path(folder)))


def count_running_jvm(pid: int, secs: float, *, shares: bool = True) -> CountedRun:
    """Give counters to the classes of a JVM that runs, and take them out after some seconds, or at Ctrl-C.

    Args:
        pid: The JVM.
        secs: How long to count.
        shares: Whether sites may share counters.

    Raises:
        TargetError: It does not load the agent, or has ended.
        Unsupported: The agent was not built; or it is another user's or container's JVM.
    """
    from gcspy_drivers.hotspot.counting.counting_agent import CountingAgent
    from gcspy_drivers.remote.process import Process

    process = Process(pid)
    try:
        agent = CountingAgent(process, shares=shares)
        try:
            agent.load()
            try:
                with suppress(KeyboardInterrupt):
                    time.sleep(secs)
            finally:
                agent.stop()
            return CountedRun(0, _report(agent.folder))
        finally:
            agent.close()
    finally:
        process.close()


def _report(folder: Path) -> dict[str, Any]:
    """Return what was counted, in the form of a counted program of Python.

    Raises:
        TargetError: There is nothing, or what is there has another form.
    """
    from gcspy_drivers.hotspot.counting.site_files import SiteFiles

    files = SiteFiles(folder)
    try:
        counts, increments = files.read()
    except TargetError as error:
        if files.refused():
            raise
        raise TargetError(
            "the JVM ended before it counted; it says why above, or it is older than Java 8"
        ) from error
    sites = [
        {
            "file": files.files[site.file],
            "line": site.line,
            "column": 0,
            "function": site.function,
            "what": site.what,
            "always": True,
            "count": count,
            "size": None,
        }
        for site, count in zip(files.sites, counts.tolist(), strict=True)
    ]
    return {
        "sites": sites,
        "increments": int(increments.sum()),
        "counters": len(increments),
        "code_objects": len({site.function.rpartition(".")[0] for site in files.sites}),
        "not_countable": files.failed,
        "raises": 0,
        "code_unit": "classes",
        "instrumenting_secs": files.rewriting_secs,
        "replanned": [],
    }
