"""Kills, full disks and the end of gcspy: no program is harmed, and every trace can be read."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.remote.leftover_folders import remove_abandoned
from gcspy_objects.gctrace.reader import GCspyTrace
from gcspy_protocol.errors import TraceError

from gcspy.tracer.running_traces import trace_of
from gcspy.tracer.traced_run import TracedRun, TraceSettings
from tests.tracer.written_trace import OwnLog, WrittenTrace, lives_by_address
from tests.waiting import wait_until

KILLS = int(os.environ.get("GCSPY_SOAK_KILLS", "2500")) // 5


def kill(pid: int) -> None:
    """Kill a process that may have ended just now."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_after(programs: Path, folder: Path, name: str, secs: float) -> bool:
    """Kill a traced program after some time, and compare its trace with its log; return whether it had begun."""
    log_path, trace_path = folder / "log", folder / "trace"
    log_path.unlink(missing_ok=True)
    command = [str(programs / "own_log"), str(log_path), name]
    with TracedRun(command, TraceSettings(output=trace_path)) as traced:
        killer = threading.Timer(secs, kill, (traced.pid,))
        killer.start()
        traced.follow(lambda _definitions: b"")
        killer.cancel()
        killer.join()
    if not traced.summaries or not log_path.exists():
        return False
    trace, log = WrittenTrace.read(trace_path), OwnLog.read(log_path)
    assert trace.end["lost"] == trace.end["unknown_frees"] == trace.end["inferred_frees"] == "0"
    told, written = trace.lives(trace.sites_of("/own_log")), lives_by_address(log)
    # A thread that was killed between the event and its entry in the log has one more event, or one less.
    threads = len(np.unique(trace.thread))
    differing = [one for one in told.keys() | written.keys() if told.get(one) != written.get(one)]
    assert len(differing) <= threads
    return True


def test_a_killed_program_has_a_whole_trace(programs: Path, tmp_path: Path) -> None:
    wait_until(lambda: kill_after(programs, tmp_path, "storm", 0.2), "a program that began")


@pytest.mark.soak
def test_many_kills(programs: Path, tmp_path: Path, soak_seed: int) -> None:
    chance = random.Random(soak_seed)
    begun = 0
    for _ in range(KILLS):
        name = chance.choice(["single", "passing", "storm", "operators", "resizes"])
        begun += kill_after(programs, tmp_path, name, chance.random() * 0.4)
    assert begun > KILLS // 10


def test_a_full_disk_ends_the_trace_and_not_the_program(programs: Path, tmp_path: Path) -> None:
    command = [str(programs / "own_log"), str(tmp_path / "log"), "single"]
    with TracedRun(command, TraceSettings(output=Path("/dev/full"))) as traced:
        assert traced.follow(lambda _definitions: b"") == 0
    error = traced.summaries[0].error
    assert isinstance(error, TraceError)
    assert "No space left on device" in str(error)
    assert len(OwnLog.read(tmp_path / "log")) > 10_000


@pytest.mark.soak
def test_disks_that_become_full_at_any_byte(programs: Path, tmp_path: Path, soak_seed: int) -> None:
    chance = random.Random(soak_seed)
    log, path = tmp_path / "log", tmp_path / "trace"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ended = 0
    for _ in range(KILLS // 5):
        command = [str(programs / "own_log"), str(log), chance.choice(["single", "passing"])]
        settings = TraceSettings(output=path, stacks=chance.choice(["none", "caller", "full"]))
        with TracedRun(command, settings) as traced:  # the program has begun without the limit
            try:
                limit = int(2 ** (11 + 6 * chance.random()))
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
                assert traced.follow(lambda _definitions: b"") == 0
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert len(OwnLog.read(log)) > 1000
        ended += traced.summaries[0].error is not None
        size = path.stat().st_size
        assert size <= limit or traced.summaries[0].error is None
        with GCspyTrace(path) as trace:
            assert trace.ended == (traced.summaries[0].error is None)
            assert sum(len(one) for one in trace.batches()) <= traced.summaries[0].counts.events
    assert ended > KILLS // 25


def test_a_program_goes_on_when_gcspy_is_killed(programs: Path, tmp_path: Path) -> None:
    log, over, done = (tmp_path / name for name in ("log", "over", "done"))
    trace_path = tmp_path / "trace"
    command = [str(programs / "own_log"), str(log), "endless", str(over), str(done)]
    words = [sys.executable, "-m", "gcspy", "trace", "-o", str(trace_path), "--", *command]
    gcspy = subprocess.Popen(words, cwd=Path(__file__).parents[2])

    def rounds() -> int:
        return int(np.fromfile(log, np.uint64, 3)[2]) if log.exists() and log.stat().st_size else 0

    try:
        wait_until(lambda: rounds() > 10 and trace_path.exists(), "the program runs")
        wait_until(lambda: trace_path.stat().st_size > 0, "the trace begins")
        gcspy.send_signal(signal.SIGKILL)
        gcspy.wait()
        begin = rounds()
        wait_until(lambda: rounds() > begin + 2_000, "the program goes on")
    finally:
        over.touch()
        wait_until(done.exists, "the program ends")
    place = os.open("/dev/shm", os.O_PATH | os.O_DIRECTORY)
    try:
        remove_abandoned(place)  # as the next gcspy does: folders of others that run stay
    finally:
        os.close(place)
    assert WrittenTrace.read(trace_path).end == {}


@pytest.mark.soak
def test_threads_and_forks_in_a_storm(programs: Path, tmp_path: Path) -> None:
    for name in ("storm", "forks"):
        begin = time.monotonic()
        for _ in range(50):
            log, trace = tmp_path / "log", tmp_path / "trace"
            command = [str(programs / "own_log"), str(log), name]
            settings = TraceSettings(output=trace, stacks="full", children=True)
            with TracedRun(command, settings) as traced:
                assert traced.follow(lambda _definitions: b"") == 0
            for one in traced.summaries:
                written = WrittenTrace.read(one.path)
                assert written.end["lost"] == written.end["inferred_frees"] == "0"
        assert time.monotonic() > begin


def test_a_process_tells_which_trace_is_written_of_it(tmp_path: Path) -> None:
    path = tmp_path / "sleeper.gctrace"
    with TracedRun(["sleep", "60"], TraceSettings(output=path)) as traced:

        def end_when_noted() -> None:
            try:
                wait_until(lambda: trace_of(traced.pid) == path, "the note beside the segment")
                noted.set()
            finally:
                os.kill(traced.pid, signal.SIGKILL)

        noted = threading.Event()
        looking = threading.Thread(target=end_when_noted)
        looking.start()
        traced.follow(lambda _definitions: b"")
        looking.join()
    assert noted.is_set()
    assert trace_of(os.getpid()) is None
