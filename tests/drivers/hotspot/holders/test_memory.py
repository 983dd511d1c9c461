"""The uses of a JVM's memory add up to its resident set, and growing parts are named with their holders, wherever objects have moved."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.driver import HotSpotDriver

from gcspy.output.memory_text import sentence_of
from gcspy_server.api import MemoryQuestion, MemoryReport
from tests.drivers.hotspot.jvms import compile_java
from tests.drivers.report_tables import column, total
from tests.matrix import matrix
from tests.once import machine_code_allowed

PROGRAM = """
import java.util.*;

public class Growing {
    static class Order { final byte[] body = new byte[1000]; }
    static class Old { long a; }
    static final List<Order> AUDIT = new ArrayList<>();
    static final List<Old> STEADY = new ArrayList<>();
    static Object garbage;

    static void step(int orders) throws Exception {
        for (int i = 0; i < orders; i++) { AUDIT.add(new Order()); garbage = new byte[500]; }
        if (orders > 1000) System.gc();
        System.out.println("ready");
        if (System.in.read() < 0) System.exit(0);
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 40000; i++) STEADY.add(new Old());
        step(1000);
        step(20000);
        step(0);
    }
}
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("held", [True, False], ids=["dump", "running"])
@pytest.mark.parametrize(
    "collector",
    matrix(["-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC"], usual=["-XX:+UseG1GC"]),
)
def test_what_memory_is_for_and_what_grew(
    java: str, collector: str, tmp_path: Path, *, held: bool
) -> None:
    first, later = looks(java, collector, tmp_path, held=held)
    for report, orders in ((first, 1000), (later, 21_000)):
        objects, sizes = column(report.memory, "Objects"), column(report.memory, "Bytes")
        assert (objects["Growing$Order"], objects["Growing$Old"]) == (orders, 40_000)
        assert total(report.memory, "Bytes") == report.resident
        assert 1000 * orders < (sizes["byte[]"] or 0) < 1030 * orders + 3_000_000
        assert 20_000_000 < report.resident < 500_000_000
        assert min(size or 0 for size in sizes.values()) > -65536
        assert (sizes["Stacks"] or 0) > 0
        assert (sizes["Code cache"] or 0) > 0
    garbage = (
        "that was not collected yet" if held else "or held by stacks of threads or by native code"
    )
    comma = "" if held else ","
    assert (column(first.memory, "Bytes")[f"Java heap: garbage{comma} {garbage}"] or 0) > 0
    assert later.grew == later.resident - first.resident == total(later.memory, "Grew")
    grew = column(later.memory, "Grew")
    assert 20_300_000 < (grew["byte[]"] or 0) < 21_000_000
    assert grew["Growing$Old"] == 0, "they have moved, and are the same"
    (holder, by), *others = column(later.holders, "Grew").items()
    assert holder == "Growing.AUDIT"
    assert abs((by or 0) - (grew["byte[]"] or 0) - (grew["Growing$Order"] or 0)) < 200_000
    assert all((each or 0) < 100_000 for _, each in others)
    assert "Held by Growing.AUDIT" in sentence_of(later)
    assert "byte[]" in sentence_of(later)


def looks(
    java: str, collector: str, folder: Path, *, held: bool
) -> tuple[MemoryReport, MemoryReport]:
    """Look before and after the program has grown."""
    compile_java(folder, {"Growing": PROGRAM})
    command = [java, "-Xmx128m", collector, "-cp", str(folder), "Growing"]
    with (
        pytest.MonkeyPatch.context() as patched,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        machine_code_allowed(patched)
        assert process.stdout.readline() == "ready\n"
        question = MemoryQuestion(over_secs=0.01, most=100_000, held=held)
        reports = HotSpotDriver.explain_memory(process.pid, question, lambda *_: None)
        first = next(reports)
        process.stdin.write("x")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        later = next(reports)
        assert next(reports, None) is None
        process.stdin.close()
    return first, later
