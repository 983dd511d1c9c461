"""Random Java programs: counts of shared counters are those of one counter a site, with exceptions and in threads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import gcspy_drivers.hotspot
import pytest
from gcspy_drivers.hotspot.counting.counting_agent import path_of_agent
from gcspy_drivers.hotspot.counting.site_files import SiteFiles

from tests.drivers.hotspot.jvms import HOMES, compile_java, find_javas
from tests.drivers.hotspot.random_java import random_java
from tests.waiting import PATIENCE_SECS

pytestmark = pytest.mark.skipif(
    not list(Path(gcspy_drivers.hotspot.__file__).parent.glob("gcspy-counting-*.jar")),
    reason="the agent in Java was not built (no JDK): allocation sites of JVMs are not counted here",
)
_PROGRAMS = 12
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m", "-Xverify:all")
SEED = int(os.environ.get("GCSPY_SOAK_SEED", "1"))


def _counts(java: str, classes: Path, name: str, plan: str) -> tuple[list[tuple[str, int]], int]:
    """Run a program; return its sites with their counts, and the increments."""
    folder = classes / f"{name}-{plan or 'shared'}-{Path(java).parts[-3]}"
    folder.mkdir()
    done = subprocess.run(
        [java, *_FLAGS, f"-javaagent:{path_of_agent()}={plan}{folder}", "-cp", str(classes), name],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECS,
    )
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stderr
    files = SiteFiles(folder)
    counts, increments = files.read()
    assert not files.failed
    sites = [
        (f"{each.function}:{each.line} {each.what} {at}", int(count))
        for at, (each, count) in enumerate(zip(files.sites, counts, strict=True))
    ]
    # Classes are loaded in an order of their own; within one the sites are in the order of the code.
    return sorted(sites, key=lambda each: each[0].rpartition(" ")[0]), int(increments.sum())


def _check(java: str, folder: Path, programs: int, seed: int) -> None:
    names = [f"Random{number}" for number in range(programs)]
    sources = {name: random_java(name, seed + at) for at, name in enumerate(names)}
    classes = compile_java(folder, sources)
    saved = total = 0
    for name in names:
        alone, executions = _counts(java, classes, name, "site:")
        shared, increments = _counts(java, classes, name, "")
        assert [each[1] for each in shared] == [each[1] for each in alone], f"{name}, seed {seed}"
        assert sum(count for _, count in alone) == executions
        total += executions
        saved += executions - increments
    assert saved > 0
    assert total > 1000 * programs


@pytest.mark.soak
@pytest.mark.parametrize("place", range(5))
def test_shared_counters_count_random_programs_as_one_counter_a_site(
    place: int, tmp_path: Path
) -> None:
    javas = find_javas()
    if place >= len(javas):
        pytest.skip(f"there are fewer JVMs on PATH and in {HOMES}")
    _check(javas[place], tmp_path, _PROGRAMS, SEED)
