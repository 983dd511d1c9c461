"""G1's live bytes and remembered sets, which no version exports: equal, region by region, to what the JVM logs after a marking."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gcspy_server.api import UniformNames
from tests.drivers.hotspot.jvms import Jvm
from tests.drivers.hotspot.watching import Watched

_LINE = re.compile(
    r"### +(OLD|HUMS|HUMC|OARC|CARC) +(0x\w+)-0x\w+ +(\d+) +(\d+) .*?(?: (UNTRA|UPDAT|CMPLT) .*)?$",
    re.M,
)
_STATES = {"UNTRA": "untracked", "UPDAT": "being made", "CMPLT": "complete"}


def test_live_bytes_and_remembered_sets_are_those_of_the_log(
    java: str, classes: Path, tmp_path: Path
) -> None:
    log = tmp_path / "liveness.log"
    flags = [
        "-XX:+UseG1GC",
        "-Xms64m",
        "-Xmx96m",
        "-XX:G1HeapRegionSize=1m",
        "-XX:+ExplicitGCInvokesConcurrent",
    ]
    logging = f"-Xlog:gc+liveness=trace:file={log}:none"
    with Jvm(java, classes, *flags, "-XX:+IgnoreUnrecognizedVMOptions", logging) as jvm:
        jvm.tell("keep", 12)
        jvm.tell("large", 3)
        jvm.tell("collect")
        jvm.tell("drop")
        jvm.tell("keep", 4)
        for _ in range(2):  # a collection returns when its marking is done
            jvm.tell("collect")
        if not log.exists():
            pytest.skip(f"{java} does not log what lives: not compared")
        with Watched(jvm.pid) as watched:
            watched.driver.tick()
            streams = {stream.name: stream for stream in watched.space("Heap").streams}
            names = watched.space("Heap").names
            assert isinstance(names, UniformNames)
            live, used = streams["Live"], watched.values("Heap", "Used")
            logged = _LINE.findall(log.read_text().rpartition("### HEAP")[2])
            assert len(logged) >= 5
            partly = 0
            for _, bottom, said_used, said_live, state in logged:
                region = (int(bottom, 16) - names.base) // names.tile_bytes
                assert used[region] == int(said_used)
                assert live.known is None or live.known[region]
                assert live.data[region] == int(said_live), (region, said_used)
                partly += said_live != said_used
                if state and "Remembered set" in streams:
                    kinds = streams["Remembered set"].schema.enum_names
                    assert kinds[streams["Remembered set"].data[region]] == _STATES[state], region
            assert partly >= 3, "something died"
