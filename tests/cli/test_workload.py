"""The demo's workload: it stops on request, and does the same for the same seed in every interpreter."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gcspy.demo import workload

SCRIPT = Path(workload.__file__)


def start(*arguments: str, python: str = sys.executable) -> subprocess.Popen[str]:
    command = [python, "-W", "error", str(SCRIPT), "--scale", "0.05", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def last_line(*arguments: str, python: str = sys.executable) -> str:
    process = start("--load", "1", *arguments, python=python)
    with process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output.splitlines()[-1]


def runs(python: str) -> bool:
    return subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0


def pythons() -> list[str]:
    found = {shutil.which(f"python3.{minor}") for minor in range(9, 14)}
    found.update(map(str, Path.home().glob(".pyenv/versions/3.9*/bin/python3.9")))
    found.update(map(str, Path.home().glob(".pyenv/versions/3.1[0-3]*/bin/python3.1[0-3]")))
    return sorted(path for path in found if path and runs(path))


def test_same_seed_same_work_and_another_seed_other_work() -> None:
    one = last_line("--ticks", "130", "--seed", "7")
    assert one == last_line("--ticks", "130", "--seed", "7")
    assert (
        one.partition("checksum=")[2]
        != last_line("--ticks", "130", "--seed", "8").partition("checksum=")[2]
    )


def test_every_interpreter_here_does_the_same_work() -> None:
    lines = {
        python: last_line("--ticks", "130", python=python)
        for python in [sys.executable, *pythons()]
    }
    assert len(set(lines.values())) == 1, lines


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_good_order(signal_number: signal.Signals) -> None:
    with start() as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"serving: pid {process.pid}, ")
        process.send_signal(signal_number)
        assert process.stdout.read().splitlines()[-1].startswith("stopped: ")
    assert process.returncode == 0


def test_the_end_of_its_standard_input_stops_it() -> None:
    with start() as process:
        assert process.stdout is not None
        process.stdout.readline()
        output, _ = process.communicate(timeout=60)  # closes the input
    assert output.splitlines()[-1].startswith("stopped: ")
    assert process.returncode == 0


def test_an_input_that_never_was_a_pipe_does_not_stop_it() -> None:
    with open(os.devnull) as nothing:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), "--scale", "0.05", "--ticks", "3"],
            check=True,
            stdin=nothing,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert "requests=180 " in done.stdout.splitlines()[-1]


def test_the_heap_has_what_there_is_to_see() -> None:
    site = workload.Site(1, 0.05)
    limit = site.cache.limit
    for _ in range(workload.IMPORT_ENDS_AT_TICK):
        site.tick()
    assert len(site.imports.records) == int(workload.IMPORT_RECORDS * 0.05)
    assert len(site.cache.pages) <= limit
    leaked = len(site.metrics.listeners)
    assert leaked > 0
    site.tick()
    assert site.imports.records == []
    assert site.metrics.imports == 1
    assert len(site.imports.kept[0]) == workload.KEPT_OF_IMPORT
    for _ in range(20):
        site.tick()
    assert len(site.metrics.listeners) > leaked


def test_sessions_that_expired_need_the_cycle_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        site = workload.Site(1, 0.05)
        for _ in range(40):
            site.tick()
        living = sum(type(thing) is workload.Session for thing in gc.get_objects())
        assert living > len(site.sessions)
        gc.collect()
        living = sum(type(thing) is workload.Session for thing in gc.get_objects())
        assert living == len(site.sessions)
    finally:
        gc.enable()


@pytest.mark.parametrize("arguments", [["--load", "0"], ["--load", "1.5"], ["--scale", "0"]])
def test_settings_without_sense_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refusal:
        workload.main(arguments)
    assert refusal.value.code == 2
    assert "above 0" in capsys.readouterr().err
