"""`gcspy types` on a large heap: estimates in a terminal, and the result alone on standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.agent.agent import BUILD_REMEDY
from gcspy_drivers.hotspot.agent.agent_library import installed

from tests.cli.conftest import Run
from tests.drivers.hotspot.jvms import compile_java, find_javas

LARGE = """
class Order:
    __slots__ = ("number", "note")
    def __init__(self, number): self.number, self.note = number, str(number)
AUDIT = [Order(n) for n in range(1000, 401000)]
print("begun", flush=True)
input()
"""
"""A heap of some 60 MB."""


@pytest.fixture(name="large", scope="module")
def _large() -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", LARGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        try:
            yield child.pid
        finally:
            child.kill()


def asked(pid: int, *options: str) -> tuple[str, str]:
    """Return standard output, a pipe, and standard error, a terminal."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", "types", str(pid), "--top", "4", *options],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as command:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 4096):
                parts.append(part)
        except OSError:  # the other end was closed
            pass
        os.close(ours)
        assert command.stdout is not None
        out = command.stdout.read()
    assert command.returncode == 0
    return out, b"".join(parts).decode()


@pytest.mark.timeout(300)
def test_estimates_come_first_in_a_terminal(large: int) -> None:
    out, err = asked(large)
    assert "of the heap" in err
    assert "the exact counts follow" in err
    assert err.index("Order") < err.index("the exact counts follow")
    assert "estimated" not in out
    assert next(line for line in out.splitlines() if line.startswith("Order")).split()[1:3] == [
        "400,000",
        "19,200,000",
    ]


@pytest.mark.timeout(300)
def test_json_has_the_result_alone(large: int) -> None:
    out, err = asked(large, "--json")
    rows = {row["type"]: row for row in json.loads(out)["rows"]}
    assert rows["Order"]["objects"] == 400_000
    assert "estimated" not in err


@pytest.mark.timeout(300)
@pytest.mark.parametrize("traced", [True, False])
def test_the_lines_that_allocated_the_objects_are_named_if_tracemalloc_is_on(traced: bool) -> None:
    options = ["-X", "tracemalloc=2"] if traced else []
    with subprocess.Popen(
        [sys.executable, *options, "-c", LARGE.replace("401000", "21000")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        text, _ = asked(child.pid, "--sites")
        found = json.loads(asked(child.pid, "--sites", "--json")[0])
        child.kill()
    assert found["rows"][0]["objects"] > 0
    if traced:
        place = "<string>:5"
        assert any(line.startswith("Order") and place in line for line in text.splitlines())
        rows = [row for row in found["allocated"]["rows"] if row["what"] == "Order"]
        assert rows[0]["allocated at"].startswith(place)
        assert (rows[0]["objects"], rows[0]["of"]) == (20_000, 20_000)
    else:
        remedy = "tracemalloc is off: start the program with `python -X tracemalloc=10`"
        assert remedy in text
        assert remedy in found["allocated"]["note"]
        assert found["allocated"]["rows"] == []


ALLOCATING = """
import java.util.*;

public class Allocating {
    static class Order { final byte[] body = new byte[1000]; }
    static final Deque<Order> RECENT = new ArrayDeque<>();

    public static void main(String[] arguments) throws Exception {
        System.out.println("begun");
        while (true) {
            RECENT.add(new Order());
            if (RECENT.size() > 5000) RECENT.remove();
            if (RECENT.peekLast().hashCode() % 50 == 0) Thread.sleep(1);
        }
    }
}
"""


@pytest.fixture(name="allocating")
def _allocating(tmp_path: Path) -> Iterator[int]:
    if installed("gcspy-samples") is None:
        pytest.skip(f"the agent was not built: {BUILD_REMEDY}")
    javas = find_javas()
    if not javas:
        pytest.skip("no JDK on this system: allocation samples of a JVM are not tested here")
    compile_java(tmp_path, {"Allocating": ALLOCATING})
    with subprocess.Popen(
        [javas[0], "-Xmx128m", "-cp", str(tmp_path), "Allocating"], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        try:
            yield child.pid
        finally:
            child.kill()


@pytest.mark.usefixtures("compiled")
@pytest.mark.timeout(300)
def test_sites_of_a_jvm_are_known_from_samples_or_one_line_says_how(
    allocating: int, gcspy: Run
) -> None:
    pid = str(allocating)
    unknown = gcspy("types", pid, "--sites")
    assert unknown.returncode == 0, unknown.stderr
    (line,) = [one for one in unknown.stdout.splitlines() if one.startswith("Allocation sites")]
    assert "--hold" in line
    line_of_body = ALLOCATING.split("static class Order")[0].count("\n") + 1
    sampled = gcspy("types", pid, "--hold", "--allocation-samples", "16384", "--over", "3")
    assert sampled.returncode == 0, sampled.stderr
    assert f"Order.<init>(Allocating.java:{line_of_body})" in sampled.stdout
    assert "one for 16,384 bytes on average" in sampled.stdout
    assert "are off by a share of about 1/√n" in sampled.stdout
