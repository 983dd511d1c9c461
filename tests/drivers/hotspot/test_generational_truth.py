"""Serial and Parallel: what is read from outside is what the JVM says of itself, to the byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.hotspot.driver import COLLECTIONS
from gcspy_drivers.hotspot.heaps.heap_view import TILE_SIZE

from gcspy_server.api import Control, UniformNames
from tests.drivers.hotspot.jvms import Jvm, agreed
from tests.drivers.hotspot.watching import Watched

_BOUNDS = re.compile(
    r"^ +(eden|from|to|the|object) +space.*?\[(0x[0-9a-f]+), ?(0x[0-9a-f]+),.*?(0x[0-9a-f]+)\)$",
    re.M,
)
_KIND = {"eden": "eden", "from": "from", "to": "to", "the": "old", "object": "old"}


@pytest.fixture(scope="module", params=["Serial", "Parallel"])
def jvm(request: pytest.FixtureRequest, java: str, classes: Path) -> Iterator[Jvm]:
    """Return a JVM with each collector, of all tests here."""
    with Jvm(java, classes, f"-XX:+Use{request.param}GC", "-Xms64m", "-Xmx96m") as started:
        yield started


def test_every_tile_is_as_the_jvm_says(jvm: Jvm) -> None:
    jvm.tell("keep", 8)
    jvm.tell("collect")
    jvm.tell("keep", 3)
    with Watched(jvm.pid) as watched:

        def read() -> tuple[list[int], list[int]]:
            watched.driver.tick()
            return watched.values("Heap", "Used").tolist(), watched.values("Heap", "Space").tolist()

        (used, part), text = agreed(read, lambda: jvm.ask("GC.heap_info"))
        said = {
            _KIND[found[1]]: [int(found[at], 16) for at in (2, 3, 4)]
            for found in _BOUNDS.finditer(text)
        }
        assert set(said) == {"eden", "from", "to", "old"}, text
        names = watched.space("Heap").names
        assert isinstance(names, UniformNames)
        # A different method from the driver's: byte by byte for every 8 bytes of the heap.
        words = np.zeros(names.count * names.tile_bytes // 8, dtype=np.int64)
        where = np.zeros(len(words), dtype=np.int64)
        texts = watched.stream("Heap", "Space").schema.enum_names
        for name, bounds in said.items():
            bottom, top, end = ((bound - names.base) // 8 for bound in bounds)
            words[bottom:top] = 8
            where[bottom:end] = texts.index(name)
            assert watched.pools()[name] == (top - bottom) * 8
        assert words.reshape(names.count, -1).sum(axis=1).tolist() == used
        first = where[:: names.tile_bytes // 8]
        assert (first == part).mean() > 0.999, (
            "but for tiles in which one space begins and another ends"
        )
        committed = watched.values("Heap", "Committed")
        control = watched.space("Heap").control
        assert ((control & Control.UNUSED) != 0).tolist() == (committed == 0).tolist()
        assert (committed == 0).any(), "of 96 MB only 64 are committed"
        separators = np.flatnonzero(control & Control.SEPARATOR)
        assert len(separators) >= 3


def test_a_collection_is_an_event_and_says_its_cause(jvm: Jvm) -> None:
    with Watched(jvm.pid) as watched:
        watched.driver.tick()
        jvm.tell("collect")
        watched.driver.tick()
        event = watched.events[-1]
        assert event.event == COLLECTIONS
        assert event.cause.startswith("1 × ")
        assert event.cause.endswith("the latest: System.gc()")
        watched.driver.tick()
        assert watched.events[-1].event != COLLECTIONS, "it is told once"


def test_a_store_into_an_old_object_dirties_its_cards(jvm: Jvm) -> None:
    jvm.tell("drop")
    jvm.tell("keep", 4)
    jvm.tell("collect")
    jvm.tell("collect")
    with Watched(jvm.pid) as watched:
        watched.driver.tick()
        cards, before = watched.values("Heap", "Cards"), watched.values("Heap", "Dirty cards")
        part = watched.values("Heap", "Space")
        old = watched.stream("Heap", "Space").schema.enum_names.index("old")
        assert (cards[part == old] > 0).all()
        jvm.tell("store", 1000)
        watched.driver.tick()
        after = watched.values("Heap", "Dirty cards")
        # 1,000 references of 4 bytes: 8 cards of 512 bytes, or 4 of 1,024.
        assert 4 <= int(np.maximum(after - before, 0).sum()) <= 200, (before.sum(), after.sum())


def test_another_tile_size_says_the_same(jvm: Jvm) -> None:
    with Watched(jvm.pid) as watched:
        watched.driver.tick()
        count, used = watched.space("Heap").count, watched.values("Heap", "Used").sum()
        setting = next(one for one in watched.server.settings if one.id == TILE_SIZE)
        assert setting.choices[setting.value] == "4 KiB"
        watched.server.set_setting(TILE_SIZE, setting.choices.index("64 KiB"))
        watched.driver.tick()
        assert watched.space("Heap").count == count // 16
        assert watched.values("Heap", "Used").sum() == pytest.approx(used, rel=0.05)


def test_the_code_cache_has_as_much_as_the_jvm_says(jvm: Jvm) -> None:
    with Watched(jvm.pid) as watched:
        try:
            jvm.ask("Compiler.codecache")
        except AssertionError:
            pytest.skip(f"{jvm.java} does not say what is in its code cache")

        def read() -> int:
            watched.driver.close()
            watched.attach()
            watched.driver.tick()
            return int(watched.values("Code cache", "Used").sum())

        used, text = agreed(read, lambda: jvm.ask("Compiler.codecache"))
        said = [int(number) for number in re.findall(r"^CodeHeap.* used=(\d+)Kb", text, re.M)] or [
            int(number) for number in re.findall(r"^CodeCache:.* used=(\d+)Kb", text, re.M)
        ]
        assert 0 <= used - sum(said) * 1024 < len(said) * 1024, text
        assert watched.pools()["code cache"] == used
