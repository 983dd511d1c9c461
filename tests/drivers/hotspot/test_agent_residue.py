"""A busy JVM that is attached to and detached from again and again, by any way in, misses nothing and keeps no residue."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.cooperative_driver import GC_END, GC_START, CooperativeHotSpotDriver
from gcspy_drivers.hotspot.driver import HotSpotDriver

from gcspy_server.api import AttachOptions, Event
from tests.drivers.hotspot.agents import need_agent
from tests.drivers.hotspot.jvms import Jvm
from tests.drivers.hotspot.residue import residue

_TIMES = 200
_MORE_RSS_KIB = 8192
"""Largest permitted change of a JVM's memory: its heap has its final size from the start, but its compilers and malloc vary."""


def _rss_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def _attach_and_detach(pid: int, way: str) -> None:
    events: list[Event] = []
    driver = HotSpotDriver.attach(pid, AttachOptions(values={"inject": way}))
    assert isinstance(driver, CooperativeHotSpotDriver) == bool(way)
    try:
        server = driver.describe().server()
        server.add_observer(events.append)
        driver.open(server)
        while len(events) < 3:
            if isinstance(driver, CooperativeHotSpotDriver):
                driver.wait(1.0)
            else:
                driver.tick()
    finally:
        driver.close()
    if way:  # the first may be the end of a collection that began before any client wanted it
        assert [event.event for event in events] in (
            [GC_START, GC_END, GC_START],
            [GC_END, GC_START, GC_END],
        )


@pytest.mark.soak
@pytest.mark.parametrize("way", ["", "agent"])
@pytest.mark.parametrize("collector", ["Serial", "G1"])
def test_200_attaches_leave_nothing_in_a_busy_jvm(
    java: str, classes: Path, way: str, collector: str
) -> None:
    need_agent()
    flags = ("-Xms64m", "-Xmx64m", "-Xmn16m", "-XX:+AlwaysPreTouch", f"-XX:+Use{collector}GC")
    with Jvm(java, classes, *flags) as jvm:
        jvm.ask("VM.version")
        jvm.tell("churn", 8)
        for _ in range(20):
            _attach_and_detach(jvm.pid, way)
        before, kib = residue(jvm.pid), _rss_kib(jvm.pid)
        begin = time.monotonic()
        for _ in range(_TIMES):
            _attach_and_detach(jvm.pid, way)
        each = (time.monotonic() - begin) / _TIMES * 1000
        more = _rss_kib(jvm.pid) - kib
        print(f"{java} {collector} {way or 'passive'}: {each:.0f} ms each, memory {more:+} KiB")
        jvm.tell("churn", 0)
        after = residue(jvm.pid)
        assert {**after, "threads": []} == {**before, "threads": []}
        # Compilers and collectors start and end threads of their own as they like.
        assert len(after["threads"]) <= len(before["threads"]) + 2, set(after["threads"]) - set(
            before["threads"]
        )
        assert more < _MORE_RSS_KIB
