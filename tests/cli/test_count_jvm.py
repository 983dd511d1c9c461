"""`gcspy count` of JVMs: exact with threads and exceptions, from the start and in a JVM that runs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import gcspy_drivers.hotspot
import pytest
from gcspy_drivers.hotspot.agent.attach_protocol import AttachListener
from gcspy_drivers.hotspot.counting import counting_agent
from gcspy_drivers.hotspot.counting.counting_agent import path_of_agent
from gcspy_drivers.hotspot.counting.site_files import SiteFiles
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError

from gcspy.site_counts.counted_jvm import count_running_jvm
from tests.cli.conftest import Run
from tests.drivers.hotspot.jvms import HOMES, compile_java, find_javas
from tests.waiting import PATIENCE_SECS, wait_until

SOURCE = """
import java.util.*;
public class Work {
    static class Node { Node l, r; int[] v; Node(int d) { v = new int[] {d}; if (d > 0) { l = new Node(d - 1); r = new Node(d - 1); } } }
    static Object mayThrow(int n) {
        Object first = new Object();
        if (n % 3 == 0) throw new IllegalStateException();
        return new Object[] {first, new long[2][n % 3 + 1]};
    }
    static void work(int rounds) {
        for (int n = 0; n < rounds; n++) { try { mayThrow(n); } catch (IllegalStateException e) { } }
    }
    public static void main(String[] args) throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) { Thread t = new Thread(() -> work(30000)); t.start(); all.add(t); }
        for (Thread t : all) t.join();
        new Node(8);
        Object chosen = new StringBuilder(args.length > 9 ? "a" : "b");
        System.out.println("ready");
        for (int read; args.length > 0 && (read = System.in.read()) >= 0 && read != 'q'; )
            if (read == 'w') { work(300); System.out.println("done"); }
        System.exit(3);
    }
}
"""
FOLDER = Path(gcspy_drivers.hotspot.__file__).parent

pytestmark = pytest.mark.skipif(
    not list(FOLDER.glob("gcspy-counting-*.jar")),
    reason="the agent in Java was not built (no JDK): allocation sites of JVMs are not counted here",
)


@pytest.fixture(name="java")
def _java() -> str:
    javas = find_javas()
    if not javas:
        pytest.skip(f"no java on PATH or in {HOMES}")
    return javas[0]


@pytest.fixture(name="classes")
def _classes(tmp_path: Path) -> Path:
    return compile_java(tmp_path, {"Work": SOURCE})


def _counts(text: str) -> dict[str, int]:
    report: dict[str, Any] = json.loads(text[text.index("{") :])
    found: dict[str, int] = {}
    for site in report["sites"]:
        name = f"{site['function']} {site['what']}"
        found[name] = found.get(name, 0) + site["count"]
    return {name: count for name, count in found.items() if count}


def test_a_jvm_counts_from_its_start(java: str, classes: Path, gcspy: Run) -> None:
    done = gcspy("count", "--json", java, "-cp", str(classes), "Work")
    assert done.returncode == 3
    assert done.stdout == "ready\n"
    assert _counts(done.stderr) == {
        "Work.mayThrow java.lang.Object": 120_000,
        "Work.mayThrow java.lang.IllegalStateException": 40_000,
        "Work.mayThrow java.lang.Object[]": 80_000,
        "Work.mayThrow long[][]": 80_000,
        "Work$Node.<init> int[]": 511,
        "Work$Node.<init> Work$Node": 510,
        "Work.main Work$Node": 1,
        "Work.main java.lang.Thread": 4,
        "Work.main java.util.ArrayList": 1,
        "Work.main java.lang.StringBuilder": 1,
    }
    report = json.loads(done.stderr[done.stderr.index("{") :])
    assert report["code_unit"] == "classes"
    assert 0 < report["instrumenting_secs"] < PATIENCE_SECS


def test_the_table_of_a_jvm_tells_how_long_its_classes_were_rewritten(
    java: str, classes: Path, gcspy: Run
) -> None:
    done = gcspy("count", java, "-cp", str(classes), "Work")
    assert re.search(r"\b2 classes instrumented in \d+\.\d\d s$", done.stderr, re.MULTILINE)


def _agent_without(parts: tuple[str, ...], folder: Path) -> Path:
    """Copy the agent without parts that no JDK could compile."""
    whole = path_of_agent()
    with zipfile.ZipFile(whole) as jar, zipfile.ZipFile(folder / whole.name, "w") as cut:
        for name in jar.namelist():
            if not name.startswith(tuple(f"gcspy/{part}" for part in parts)):
                cut.writestr(name, jar.read(name))
    return folder / whole.name


REFUSED = "no allocation sites are counted in this JVM, Java "


def test_a_program_runs_without_counters_where_a_part_of_the_agent_was_not_built(
    java: str, classes: Path, tmp_path: Path
) -> None:
    agent = _agent_without(("SiteCounters", "OldSiteCounters"), tmp_path)
    done = subprocess.run(
        [java, f"-javaagent:{agent}={tmp_path}", "-cp", str(classes), "Work"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECS,
    )
    assert (done.returncode, done.stdout) == (3, "ready\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gcspy: {REFUSED}")
    assert "the agent has no part for it: install a JDK" in line
    with pytest.raises(TargetError, match=REFUSED):
        SiteFiles(tmp_path).read()


def test_a_jvm_that_runs_goes_on_where_a_part_of_the_agent_was_not_built(
    java: str, classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = _agent_without(("AsmSites", "ClassFileSites"), tmp_path)
    monkeypatch.setattr(counting_agent, "path_of_agent", lambda: agent)
    command = [java, "-cp", str(classes), "Work", "wait"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(TargetError, match=REFUSED):
            count_running_jvm(process.pid, 60.0)
        said, complaints = process.communicate(b"wq", timeout=PATIENCE_SECS)
    assert (process.returncode, said) == (3, b"done\n")
    assert b"Exception" not in complaints


def _wait_for_counters(pid: int) -> None:
    """Wait until the classes of a JVM have counters: its listener serves us after it has loaded the agent."""
    process = Process(pid)
    try:
        wait_until(lambda: "gcspy-count-" in Path(f"/proc/{pid}/maps").read_text(), "the counters")
        AttachListener(process).ask("properties", secs=PATIENCE_SECS)
    finally:
        process.close()


@pytest.mark.soak
@pytest.mark.parametrize("place", range(5))
def test_a_jvm_that_runs_counts_until_it_is_interrupted(place: int, classes: Path) -> None:
    if place >= len(find_javas()):
        pytest.skip("there are fewer JVMs here")
    java = find_javas()[place]
    command = [java, "-cp", str(classes), "Work", "wait"]
    counting = [sys.executable, "-m", "gcspy", "count", "--json", "--over", "600", "--attach"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"w")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n", "not counted"
        with subprocess.Popen(
            [*counting, str(process.pid)], stderr=subprocess.PIPE, text=True
        ) as ours:
            _wait_for_counters(process.pid)
            process.stdin.write(b"w")
            process.stdin.flush()
            assert process.stdout.readline() == b"done\n"
            ours.send_signal(signal.SIGINT)
            _, told = ours.communicate(timeout=PATIENCE_SECS)
        assert ours.returncode == 0, told
        assert _counts(told) == {
            "Work.mayThrow java.lang.Object": 300,
            "Work.mayThrow java.lang.IllegalStateException": 100,
            "Work.mayThrow java.lang.Object[]": 200,
            "Work.mayThrow long[][]": 200,
        }
        process.stdin.write(b"wq")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n", "it runs on"
