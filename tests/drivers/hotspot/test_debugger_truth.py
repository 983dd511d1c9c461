"""Spaces and regions read from outside equal those that the JDK's own debugger finds in the JVM, to the byte.

`jhsdb` stops the JVM while it looks, and has to be of the same build; where it is not beside the launcher, nothing is compared.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gcspy_server.api import UniformNames
from tests.drivers.hotspot.jvms import Jvm, agreed
from tests.drivers.hotspot.watching import Watched

_REGION = re.compile(r"^Region: (0x\w+),(0x\w+),(0x\w+):(\w+)(?::(\w+))?", re.M)
_SPACE = re.compile(
    r"(eden|from|to|tenured|old) *(?:space|gen)? *=? *(?:\[ *)?\[(0x\w+), *(0x\w+), *(0x\w+)[])]",
    re.I,
)
_KINDS = {
    "Free": "free",
    "Eden": "eden",
    "Survivor": "survivor",
    "Old": "old",
    "StartsHumongous": "humongous",
    "Archive": "archive",
}


def ask_debugger(java: str, pid: int, *commands: str) -> str:
    """Return what the debugger answers."""
    debugger = Path(java).with_name("jhsdb")
    if not debugger.exists():
        pytest.skip(f"{java} has no jhsdb beside it: not compared with it")
    lines = "".join(f"{command}\n" for command in (*commands, "quit"))
    done = subprocess.run(
        [str(debugger), "clhsdb", "--pid", str(pid)],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout


def test_regions_of_g1_are_those_that_the_debugger_finds(java: str, classes: Path) -> None:
    with Jvm(java, classes, "-XX:+UseG1GC", "-Xms64m", "-Xmx64m", "-XX:G1HeapRegionSize=1m") as jvm:
        jvm.tell("keep", 8)
        jvm.tell("collect")
        jvm.tell("large", 3)
        jvm.tell("waste", 2)
        with Watched(jvm.pid) as watched:

            def read() -> tuple[list[int], list[int]]:
                watched.driver.tick()
                return watched.values("Heap", "Used").tolist(), watched.values(
                    "Heap", "Type"
                ).tolist()

            (used, kinds), text = agreed(
                read, lambda: ask_debugger(java, jvm.pid, "g1regiondetails")
            )
            found = _REGION.findall(text)
            names = watched.space("Heap").names
            assert isinstance(names, UniformNames)
            texts = watched.stream("Heap", "Type").schema.enum_names
            assert len(found) == len(used) == 64, text
            seen = set()
            for number, (bottom, top, end, kind, _) in enumerate(found):
                assert (int(bottom, 16), int(end, 16)) == (
                    names.base + (number << 20),
                    names.base + (number + 1 << 20),
                )
                if kind != "Free":
                    assert used[number] == int(top, 16) - int(bottom, 16), (number, kind)
                if kind in _KINDS:
                    assert texts[kinds[number]] == _KINDS[kind], (number, kind)
                    seen.add(kind)
            assert {"Free", "Old"} <= seen, text


@pytest.mark.parametrize("collector", ["Serial", "Parallel"])
def test_spaces_are_those_that_the_debugger_finds(java: str, classes: Path, collector: str) -> None:
    with Jvm(java, classes, f"-XX:+Use{collector}GC", "-Xms64m", "-Xmx64m") as jvm:
        jvm.tell("keep", 8)
        jvm.tell("collect")
        jvm.tell("keep", 3)
        with Watched(jvm.pid) as watched:

            def read() -> dict[str, int]:
                watched.driver.tick()
                return {
                    name: used
                    for name, used in watched.pools().items()
                    if name in ("eden", "from", "to", "old")
                }

            pools, text = agreed(read, lambda: ask_debugger(java, jvm.pid, "universe"))
            bounds = {
                name.lower(): (int(bottom, 16), int(top, 16))
                for name, bottom, top, _ in _SPACE.findall(text)
            }
            assert len(bounds) == 4, text
            for name, (bottom, top) in bounds.items():
                assert pools["old" if name == "tenured" else name] == top - bottom, (name, text)
