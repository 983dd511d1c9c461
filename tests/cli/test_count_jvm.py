"""`gcspy count` of JVMs: exact with threads and exceptions, from the start and in a JVM that runs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import gcspy_drivers.hotspot
import pytest

from tests.cli.conftest import Run
from tests.drivers.hotspot.jvms import HOMES, compile_java, find_javas

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
        for (int read; args.length > 0 && (read = System.in.read()) != 'q'; )
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


@pytest.mark.soak
@pytest.mark.parametrize("place", range(4))
def test_a_jvm_that_runs_counts_for_some_seconds(place: int, classes: Path, gcspy: Run) -> None:
    if place >= len(find_javas()):
        pytest.skip("there are fewer JVMs here")
    java = find_javas()[place]
    command = [java, "-cp", str(classes), "Work", "wait"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        feed = f"sleep 4; printf w > /proc/{os.getpid()}/fd/{process.stdin.fileno()}"
        with subprocess.Popen(["sh", "-c", feed]):
            done = gcspy("count", "--json", "--over", "8", "--attach", str(process.pid))
        assert done.returncode == 0, done.stderr
        assert process.stdout.readline() == b"done\n"
        assert _counts(done.stderr) == {
            "Work.mayThrow java.lang.Object": 300,
            "Work.mayThrow java.lang.IllegalStateException": 100,
            "Work.mayThrow java.lang.Object[]": 200,
            "Work.mayThrow long[][]": 200,
        }
        process.stdin.write(b"wq")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n", "it runs on"
