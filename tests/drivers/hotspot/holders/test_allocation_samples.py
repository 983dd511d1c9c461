"""Sampled allocations of a JVM name the line that allocated what grew, estimate its bytes, and end."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.agent.agent import BUILD_REMEDY
from gcspy_drivers.hotspot.agent.agent_library import installed
from gcspy_drivers.hotspot.agent.allocation_samples import (
    AllocationSampler,
    SampledSite,
    Samples,
    parse_samples,
    refuse_release,
)
from gcspy_drivers.hotspot.agent.sampled_sites import sites_of_samples
from gcspy_drivers.hotspot.driver import HotSpotDriver
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.allocation_sites import ALL_SAMPLED, SampledAllocation, SiteName
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_server.api import Cell, MemoryQuestion, MemoryReport
from tests.drivers.hotspot.jvms import compile_java
from tests.once import machine_code_allowed

PROGRAM = """
import java.util.*;

public class Sampled {
    static class Order { final byte[] body = new byte[1000]; }
    static final List<Order> AUDIT = new ArrayList<>();
    static final Map<String, String> CACHE = new HashMap<>();
    static Object garbage;

    static void load(int orders) { for (int i = 0; i < orders; i++) AUDIT.add(new Order()); }
    static void waste(int count) { for (int i = 0; i < count; i++) garbage = new long[60]; }
    static void cache(int count) {
        for (int i = 0; i < count; i++) CACHE.put(String.valueOf(i), "x");
    }

    static void hold() throws Exception {
        System.out.println("ready");
        if (System.in.read() < 0) System.exit(0);
    }

    public static void main(String[] arguments) throws Exception {
        load(3000);
        hold();
        load(20000);
        waste(100000);
        cache(60000);
        hold();
        hold();
    }
}
"""
INTERVAL = 16_384


def line_of(text: str) -> int:
    """Return the line of the program."""
    return PROGRAM.split(text)[0].count("\n") + 1


@contextmanager
def running(java: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the program up to its first stop."""
    if installed("gcspy-samples") is None:
        pytest.skip(f"the agent was not built: {BUILD_REMEDY}")
    compile_java(folder, {"Sampled": PROGRAM})
    command = [java, "-Xmx128m", "-cp", str(folder), "Sampled"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.stdin.close()


def go_on(process: subprocess.Popen[str]) -> None:
    """Let it run up to its next stop."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("x")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"


def rows_of(report: MemoryReport, what: str) -> list[tuple[Cell, ...]]:
    """Return the rows of a group, without its name."""
    return [row[1:] for row in report.sites.rows if row[0] == what]


@pytest.mark.timeout(300)
def test_what_is_alive_has_the_line_that_allocated_it_and_garbage_has_none(
    java: str, tmp_path: Path
) -> None:
    question = MemoryQuestion(over_secs=0.01, most=20, held=True, sample_bytes=INTERVAL)
    with running(java, tmp_path) as process, pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        reports = HotSpotDriver.explain_memory(process.pid, question, lambda *_: None)
        first = next(reports)
        go_on(process)
        later = next(reports)
        assert next(reports, None) is None
    assert not first.sites.rows
    assert first.sites.note == "allocations are sampled from now on"
    made = f"Sampled$Order.<init>(Sampled.java:{line_of('static class Order')})"
    place, caller, samples, of, size = rows_of(later, "byte[]")[0]
    assert (place, caller) == (made, "")
    assert isinstance(samples, int)
    assert isinstance(of, int)
    assert isinstance(size, int)
    # 20,320,000 bytes are 1,240 samples, each estimate of which is off by 3 % (one standard deviation).
    assert 0.75 < samples * INTERVAL / 20_320_000 < 1.25
    assert 0.75 < size / 20_320_000 < 1.25
    assert samples <= of
    nodes = rows_of(later, "java.util.HashMap$Node")
    assert str(nodes[0][0]).startswith("java.util.HashMap.")
    assert str(nodes[0][1]).startswith("Sampled.cache(Sampled.java:")
    together = rows_of(later, ALL_SAMPLED)
    assert together[0][0] == made
    assert not [row for row in together if "Sampled.waste" in str(row)], "it was collected"
    assert f"one for {INTERVAL:,} bytes" in later.sites.note
    assert "estimates" in later.sites.note


@pytest.mark.timeout(300)
def test_a_reader_that_leaves_early_ends_the_sampling(java: str, tmp_path: Path) -> None:
    question = MemoryQuestion(over_secs=60, most=20, held=True, sample_bytes=INTERVAL)
    with running(java, tmp_path) as target, pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        reports = HotSpotDriver.explain_memory(target.pid, question, lambda *_: None)
        next(reports)
        with Process(target.pid) as process, Jvm(process, read_maps(process)) as jvm:
            other = AllocationSampler(process, INTERVAL)
            with pytest.raises(TargetError, match="another gcspy samples"):
                other.start(jvm, secs=1)
            assert isinstance(reports, Generator)
            reports.close()
            other.start(jvm, secs=1)
            go_on(target)
            found = other.finish()
            assert sum(site.live for site in found.sites) > 500
            with pytest.raises(TargetError, match="its time was over"):
                other.finish()


def test_a_jvm_before_jdk_11_is_refused() -> None:
    refuse_release(1, 11)
    refuse_release(1, 25)
    for release in (8, 9, 10):
        with pytest.raises(Unsupported, match="only JDK 11 and later sample allocations") as error:
            refuse_release(4711, release)
        assert f"JDK {release}" in str(error.value)


@pytest.mark.timeout(300)
def test_without_being_asked_for_nothing_is_sampled(java: str, tmp_path: Path) -> None:
    question = MemoryQuestion(over_secs=0, held=True)
    with running(java, tmp_path) as process, pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        (report,) = HotSpotDriver.explain_memory(process.pid, question, lambda *_: None)
        maps = Path(f"/proc/{process.pid}/maps").read_text()
    assert "--allocation-samples" in report.sites.note
    assert not report.sites.rows
    assert "gcspy-samples" not in maps


TEXT = (
    b"gcspy-samples 1 65536 3\n"
    b"2\t700\t5\t900\t[Lshop/Order;\tLshop/Order;.<init>(Order.java:3)\tLa/B$C;.run(B.java:9)\n"
    b"0\t-1\t9\t9000\t[[J\n"
)


def test_the_text_of_the_library_is_parsed() -> None:
    assert parse_samples(TEXT) == Samples(
        65_536,
        3,
        (
            SampledSite(
                "shop.Order[]",
                ("shop.Order.<init>(Order.java:3)", "a.B$C.run(B.java:9)"),
                2,
                700,
            ),
            SampledSite("long[][]", (), 0, 0),
        ),
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"gcspy-samples 2 65536 0\n",
        b"gcspy-samples 1 65536 0",
        b"gcspy-samples 1 -1 0\n",
        b"gcspy-samples 1 99999999999999999999999 0\n",
        TEXT[:-1],
        TEXT.replace(b"700", b"7" * 5000),
        TEXT.replace(b"700", b""),
        TEXT.replace(b"\t[[J", b""),
        TEXT + b"\n",
        TEXT + TEXT,
        b"gcspy-samples 1 1 0\n" + b"1\t1\t1\t1\tI\n" * 9000,
    ],
)
def test_another_text_is_refused(data: bytes) -> None:
    assert parse_samples(data) is None


def test_samples_of_a_class_and_site_are_added_up_whatever_called_it() -> None:
    hash_map = "java.util.HashMap.newNode(HashMap.java:1)"
    sites = (
        SampledSite("Node", (hash_map, "java.util.HashMap.put(HashMap.java:2)", "a.B.c"), 3, 30),
        SampledSite("Node", (hash_map, "a.B.c", "a.B.main"), 4, 50),
        SampledSite("Node", (hash_map, "a.B.other"), 1, 20),
        SampledSite("Node", (), 2, 5),
        SampledSite("Gone", ("a.B.c",), 0, 0),
    )
    found = sites_of_samples(Samples(1024, 7, sites))
    assert found.sites == (
        SampledAllocation("Node", SiteName(hash_map, "a.B.c"), 7, 80),
        SampledAllocation("Node", SiteName(hash_map, "a.B.other"), 1, 20),
        SampledAllocation("Node", SiteName("the VM itself"), 2, 5),
    )
    assert "10 samples" in found.note
    assert "7 samples had no room" in found.note
