"""G1: what is read from outside is what the JVM says of itself, region by region and to the byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.hotspot.driver import COLLECTIONS
from gcspy_drivers.hotspot.heaps.heap_view import TILE_SIZE

from gcspy_server.api import Control
from tests.drivers.hotspot.jvms import Jvm, agreed, kib
from tests.drivers.hotspot.watching import Watched

_MEGABYTE = 1 << 20
_LOGGED = re.compile(r"\| *(\d+)\|(0x\w+), (0x\w+), (0x\w+)\| *\d+%\| *(\w+)\|")
_LETTERS = {
    "F": "free",
    "E": "eden",
    "S": "survivor",
    "O": "old",
    "HS": "humongous",
    "HC": "humongous, continued",
    "CA": "archive",
    "OA": "archive",
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the JVM's log of regions."""
    return tmp_path_factory.mktemp("g1") / "regions.log"


@pytest.fixture(scope="module")
def jvm(java: str, classes: Path, log: Path) -> Iterator[Jvm]:
    """Return a JVM with G1, of all tests here."""
    size = ("-XX:+UseG1GC", "-Xms64m", "-Xmx96m", "-XX:G1HeapRegionSize=1m")
    logging = f"-Xlog:gc+heap+region=trace:file={log}:none"
    with Jvm(
        java, classes, *size, "-XX:+IgnoreUnrecognizedVMOptions", "-XX:-G1UseAdaptiveIHOP", logging
    ) as started:
        yield started


def test_every_region_is_as_the_jvm_logs_it(jvm: Jvm, log: Path) -> None:
    jvm.tell("keep", 8)
    jvm.tell("large", 3)
    jvm.tell("waste", 16)
    jvm.tell("collect")
    if not log.exists():
        pytest.skip(f"{jvm.java} does not log its regions: compared by sums only")
    logged: dict[int, tuple[int, int, int, str]] = {}
    for line in log.read_text().rpartition("Heap Regions:")[2].splitlines():
        if found := _LOGGED.search(line):
            bottom, top, end = (int(found[at], 16) for at in (2, 3, 4))
            logged[int(found[1])] = (bottom, top, end, _LETTERS[found[5]])
    assert len(logged) >= 16, "the JVM logs regions"
    with Watched(jvm.pid) as watched:
        watched.driver.tick()
        names = watched.stream("Heap", "Type").schema.enum_names
        kinds = [names[kind] for kind in watched.values("Heap", "Type").tolist()]
        used = watched.values("Heap", "Used").tolist()
        compared = 0
        for number, (bottom, top, end, kind) in logged.items():
            if kind == "free" and kinds[number] == "eden":
                continue  # what the program was given since
            assert end - bottom == _MEGABYTE
            assert (kinds[number], used[number]) == (kind, top - bottom if kind != "free" else 0), (
                number
            )
            compared += kind != "free"
        assert compared >= 12
        assert kinds.count("humongous, continued") >= 3
        assert set(kinds[max(logged) + 1 :]) <= {"not committed"}


def test_sums_are_those_that_the_jvm_says(jvm: Jvm) -> None:
    with Watched(jvm.pid) as watched:

        def read() -> dict[str, int]:
            watched.driver.tick()
            return watched.pools()

        pools, text = agreed(read, lambda: jvm.ask("GC.heap_info"))
        heap = ("eden", "survivor", "old", "humongous")
        more = sum(pools[name] for name in heap) - kib(text, r"garbage-first heap.* used (\d+)K")
        # Until 11 the JVM leaves out the region from which it allocates just now.
        eden_used = watched.values("Heap", "Used")[_of_kind(watched, "eden")].tolist()
        assert any(0 <= more - size < 1024 for size in [0, *eden_used]), (more, eden_used, text)
        young = re.search(r"(\d+) young .*, (\d+) survivors", text)
        assert young is not None
        names = watched.stream("Heap", "Type").schema.enum_names
        counts = np.bincount(watched.values("Heap", "Type"), minlength=len(names)).tolist()
        eden, survivor = (counts[names.index(name)] for name in ("eden", "survivor"))
        assert (eden + survivor, survivor) == (int(young[1]), int(young[2]))
        committed = watched.values("Heap", "Committed")
        assert committed.sum() == kib(
            text, r"garbage-first heap +total(?: reserved \d+K, committed)? (\d+)K"
        )


def test_parts_of_regions_and_groups_say_the_same(jvm: Jvm) -> None:
    with Watched(jvm.pid) as watched:
        watched.driver.tick()
        whole = watched.values("Heap", "Used")
        setting = next(one for one in watched.server.settings if one.id == TILE_SIZE)
        watched.server.set_setting(TILE_SIZE, setting.choices.index("64 KiB"))
        watched.driver.tick()
        parts = watched.values("Heap", "Used")
        separators = np.flatnonzero(watched.space("Heap").control & Control.SEPARATOR)
        assert separators.tolist() == list(range(16, 16 * len(whole), 16))
        if any(stream.name == "Live" for stream in watched.space("Heap").streams):
            assert not np.any(watched.stream("Heap", "Live").known), (
                "nobody says in which part what lives"
            )
        watched.server.set_setting(TILE_SIZE, setting.choices.index("4 MiB"))
        watched.driver.tick()
        groups = watched.values("Heap", "Used")
        same = (
            np.abs(parts.reshape(-1, 16).sum(axis=1) - whole) <= 64 * 1024
        )  # the program is given a little meanwhile
        assert same.mean() > 0.9
        assert (
            np.abs(groups - np.add.reduceat(whole, np.arange(0, len(whole), 4))).max() <= _MEGABYTE
        )


def test_a_dirty_card_is_where_the_store_was(jvm: Jvm) -> None:
    jvm.tell("drop")
    jvm.tell("keep", 4)
    jvm.tell("collect")
    jvm.tell("collect")
    with Watched(jvm.pid) as watched:
        watched.driver.tick()
        dirty = watched.values("Heap", "Dirty cards")
        cards = watched.values("Heap", "Cards")
        names = watched.stream("Heap", "Type").schema.enum_names
        in_use = watched.values("Heap", "Type") > names.index("free")
        assert ((cards > 0) == in_use).all()
        jvm.tell("store", 1000)
        watched.driver.tick()
        more = np.maximum(watched.values("Heap", "Dirty cards") - dirty, 0)
        # 1,000 references of 4 bytes: 8 cards of 512 bytes, or 4 of 1,024; the JVM refines so few
        # later.
        assert 4 <= more.sum() <= 200, (dirty.sum(), more.sum())


def test_a_heap_that_is_collected_all_the_time_never_contradicts_itself(jvm: Jvm) -> None:
    jvm.tell("churn", 10)
    with Watched(jvm.pid) as watched:
        whole = 0
        for _ in range(40):
            watched.driver.tick()
            used, committed = (watched.stream("Heap", name) for name in ("Used", "Committed"))
            assert (used.data <= committed.data).all()
            whole += used.known is None or bool(used.known.all())
        assert whole, (
            "a machine that is busy may let a collection in between any two looks, but not between all"
        )
        assert any(event.event == COLLECTIONS for event in watched.events)
    jvm.tell("churn", 0)


def _of_kind(watched: Watched, kind: str) -> npt.NDArray[np.intp]:
    """Return the numbers of the regions of a kind."""
    names = watched.stream("Heap", "Type").schema.enum_names
    return np.flatnonzero(watched.values("Heap", "Type") == names.index(kind))
