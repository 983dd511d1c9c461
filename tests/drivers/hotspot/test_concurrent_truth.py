"""Shenandoah and ZGC: what is read from outside is what the JVM says of itself, as far as it says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.hotspot.driver import HotSpotDriver
from gcspy_protocol.errors import Unsupported

from gcspy_server.api import AttachOptions, Control
from tests.drivers.hotspot.jvms import Jvm, agreed, kib
from tests.drivers.hotspot.watching import Watched

_UNLOCK = "-XX:+UnlockExperimentalVMOptions"


@pytest.fixture(scope="module", params=["satb", "generational"])
def shenandoah(request: pytest.FixtureRequest, java: str, classes: Path) -> Iterator[Jvm]:
    """Return a JVM with Shenandoah in each mode, of the tests here; one that does not export it, or does not have the mode, is skipped."""
    mode = f"-XX:ShenandoahGCMode={request.param}"
    with Jvm(java, classes, _UNLOCK, "-XX:+UseShenandoahGC", mode, "-Xms64m", "-Xmx96m") as started:
        try:
            HotSpotDriver.attach(started.pid, AttachOptions()).close()
        except Unsupported as error:
            pytest.skip(str(error))
        yield started


@pytest.fixture(scope="module", params=["-XX:-ZGenerational", "-XX:+ZGenerational"])
def zgc(request: pytest.FixtureRequest, java: str, classes: Path) -> Iterator[Jvm]:
    """Return a JVM with ZGC of one generation or two, of the tests here; a version that has but one is tried once."""
    flags = (_UNLOCK, "-XX:+UseZGC", "-XX:+IgnoreUnrecognizedVMOptions", request.param, "-Xmx96m")
    with Jvm(java, classes, *flags) as started:
        with Watched(started.pid) as watched:
            found = watched.driver.describe().target["collector"]
        if found != {"-": "ZGC", "+": "Generational ZGC"}[request.param[4]]:
            pytest.skip(f"{java} has no ZGC with {request.param}")
        yield started


def test_shenandoah_has_as_many_bytes_as_it_says(shenandoah: Jvm) -> None:
    shenandoah.tell("keep", 8)
    shenandoah.tell("large", 3)
    shenandoah.tell("collect")
    with Watched(shenandoah.pid) as watched:
        called = watched.driver.describe().target["collector"]
        assert called in ("Shenandoah", "Generational Shenandoah")
        assert ("-XX:ShenandoahGCMode=generational" in shenandoah.flags) == called.startswith(
            "Generational"
        )

        def read() -> tuple[list[int], list[int], str]:
            watched.driver.tick()
            used, state = watched.values("Heap", "Used"), watched.values("Heap", "State")
            return used.tolist(), state.tolist(), watched.space("Heap").info

        (used, state, info), text = agreed(read, lambda: shenandoah.ask("GC.heap_info"))
        assert abs(sum(used) - kib(text, r"(\d+)K used")) < 256 * 1024, text
        found = re.search(r"(\d+) x (\d+) ?K regions", text)
        assert found is not None
        assert info.startswith(f"{found[1]} regions of {found[2]} KiB")
        names = watched.stream("Heap", "State").schema.enum_names
        counts = np.bincount(state, minlength=len(names)).tolist()
        grain = int(found[2]) * 1024
        assert counts[names.index("humongous")] >= 1
        assert counts[names.index("humongous, continued")] >= 3 * (1 << 20) // grain - 1
        control = watched.space("Heap").control
        joined = np.flatnonzero(control & Control.LINK)
        assert {names[state[tile + 1]] for tile in joined.tolist()} == {"humongous, continued"}
        said = re.search(r"(\d+)([KM]) committed", text)
        assert said is not None, text
        assert (
            watched.values("Heap", "Committed").sum() == int(said[1]) << {"K": 10, "M": 20}[said[2]]
        )


def test_zgc_has_the_pages_that_it_says(zgc: Jvm) -> None:
    zgc.tell("keep", 8)
    zgc.tell("large", 5)
    zgc.tell("collect")
    zgc.tell("collect")
    with Watched(zgc.pid) as watched:

        def read() -> tuple[list[int], list[int]]:
            watched.driver.tick()
            return watched.values("Heap", "Size").tolist(), watched.values("Heap", "Type").tolist()

        (sizes, kinds), text = agreed(read, lambda: zgc.ask("GC.heap_info"))
        used = re.search(r"used (\d+)M", text)
        assert used is not None
        more = sum(sizes) - (int(used[1]) << 20)
        if "Used" in {stream.name for stream in watched.space("Heap").streams}:
            assert more == 0, text
        else:  # 11 has pages in its table that it does not count any more
            assert 0 <= more <= 96 << 20, text
        names = watched.stream("Heap", "Type").schema.enum_names
        large = [size for size, kind in zip(sizes, kinds, strict=True) if names[kind] == "large"]
        assert large == [6 << 20], "5 MiB and a header take three granules"
        for stream in watched.space("Heap").streams:
            if stream.name == "Used":
                assert (watched.values("Heap", "Used") <= np.array(sizes)).all()
            if stream.name == "Generation":
                assert "old" in {stream.schema.enum_names[value] for value in stream.data.tolist()}
