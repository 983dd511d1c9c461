"""The commands on a real JVM: they find the driver by what the process is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_protocol.errors import TargetGone

from gcspy.exit_codes import ExitCode
from tests.drivers.hotspot.agents import need_agent
from tests.drivers.hotspot.jvms import HOMES, Jvm, find_javas
from tests.drivers.hotspot.watching import Watched


@pytest.fixture(scope="module")
def jvm(classes: Path) -> Iterator[Jvm]:
    """Return one JVM, of whatever version, with its usual collector."""
    javas = find_javas()
    if not javas:
        pytest.skip(f"no java on PATH or in {HOMES}: JVMs are not tested here")
    with Jvm(javas[0], classes, "-Xmx64m", "-XX:+UseSerialGC") as started:
        yield started


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the commands a runtime folder of the test's own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def gcspy(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [sys.executable, "-m", "gcspy", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )


def test_ps_says_main_class_version_collector_heap_and_modes(jvm: Jvm, runtime: None) -> None:
    need_agent()
    done = gcspy("ps", "--json")
    (row,) = [row for row in json.loads(done.stdout) if row["pid"] == jvm.pid]
    assert (row["runtime"], row["driver"], row["watchable"]) == ("HotSpot", "hotspot", True)
    assert row["program"] == "Still an argument"
    assert row["detail"].startswith("Serial, heap ")
    assert row["detail"].endswith(" of 67 MB")
    assert row["modes"] == ["passive", "agent"]
    (line,) = [
        line for line in gcspy("ps").stdout.splitlines() if line.split()[:1] == [str(jvm.pid)]
    ]
    assert "Still an argument (Serial, heap" in line


def test_tail_and_record_find_the_driver_by_the_process(
    jvm: Jvm, runtime: None, tmp_path: Path
) -> None:
    done = gcspy("tail", str(jvm.pid), "--events", "2", "--json", "--values", "--clock", "20")
    assert done.returncode == ExitCode.OK, done.stderr
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 2
    file = tmp_path / "jvm.gcspy"
    done = gcspy("record", str(jvm.pid), "-o", str(file), "--events", "3", "--clock", "20")
    assert done.returncode == ExitCode.OK, done.stderr
    assert "Still (Java " in gcspy("info", str(file)).stdout


def test_what_a_jvm_cannot_do_yet_is_said(jvm: Jvm, runtime: None) -> None:
    done = gcspy("attach", str(jvm.pid), "--no-window", "--mode", "stopped")
    assert done.returncode == ExitCode.USAGE
    assert "option mode is passive; got 'stopped'" in done.stderr


def test_types_and_growth_tell_classes(jvm: Jvm, runtime: None, tmp_path: Path) -> None:
    jvm.tell("keep", 1)
    done = gcspy("types", str(jvm.pid), "--top", "3", "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    (first, *others) = json.loads(done.stdout)["rows"]
    assert first["class"] == "[B"
    assert first["objects"] > 1023
    assert first["bytes"] > 1_000_000
    assert len(others) == 2
    file = tmp_path / "jvm.gcspy"
    done = gcspy(
        "record", str(jvm.pid), "-o", str(file), "--events", "2", "--clock", "5", "--level", "3"
    )
    assert done.returncode == ExitCode.OK, done.stderr
    done = gcspy("growth", str(file), "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    assert json.loads(done.stdout)["space"] == "Classes"


def test_a_jvm_that_ends_is_gone_and_said_so(classes: Path, jvm: Jvm) -> None:
    with (
        Jvm(jvm.java, classes, "-Xmx32m", "-XX:+UseSerialGC") as other,
        Watched(other.pid) as watched,
    ):
        watched.driver.tick()
        assert watched.driver.alive()
        other.process.kill()
        other.process.wait()
        assert not watched.driver.alive()
        with pytest.raises(TargetGone):
            watched.driver.tick()
