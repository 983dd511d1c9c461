"""The driver: readings become spaces, tiles and streams; collections become events; no tile moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.cpython.driver import CLOCK, COLLECTIONS, CPythonDriver
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_protocol.errors import TargetGone

from gcspy_server.api import (
    AttachOptions,
    Control,
    Event,
    ExtentNames,
    Mode,
    PauseActsOn,
    Presentation,
    Server,
    ServerSpace,
    ServerStream,
)
from tests.drivers.conftest import Start
from tests.drivers.cpython.test_truth import BUSY
from tests.drivers.targets import StillTarget


class Watched:
    """An opened driver of a target that holds still, and the events that it sent."""

    def __init__(self, child: StillTarget, *, tiles: int = 65536, observed: bool = True) -> None:
        self.child = child
        self.driver = CPythonDriver.attach(child.pid, AttachOptions(tiles=tiles))
        self.server: Server = self.driver.describe().server()
        self.driver.open(self.server)
        self.events: list[Event] = []
        if observed:
            self.server.add_observer(self.events.append)

    def space(self, name: str) -> ServerSpace:
        (found,) = [space for space in self.server.spaces if space.name == name]
        return found

    def stream(self, space: str, name: str) -> ServerStream:
        (found,) = [one for one in self.space(space).streams if one.name == name]
        return found

    def column(self, space: str, stream: str) -> npt.NDArray[np.int64]:
        (found,) = [one for one in self.space(space).streams if one.name == stream]
        assert found.known is None
        return found.data.astype(np.int64)

    def bases(self) -> list[int]:
        names = self.space("pymalloc arenas").names
        assert isinstance(names, ExtentNames)
        return [int(base) for base in names.bases]


@pytest.fixture
def watched() -> Iterator[list[Watched]]:
    """Return a list: what is put in is closed at the end."""
    opened: list[Watched] = []
    yield opened
    for one in opened:
        one.driver.close()


def test_streams_are_what_the_target_says(
    python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(python, BUSY)
    truth = child.wait_still()
    watched.append(one := Watched(child))
    one.driver.tick()
    for position, name in enumerate(("Pools", "Blocks in use", "Free blocks")):
        found = one.column("Size classes", name)
        assert found.tolist() == [
            truth.classes.get(number, (0, 0, 0))[position] for number in range(32)
        ]
    wasted = one.column("Size classes", "Wasted")
    pool_bytes = one.driver._target.geometry.pool_bytes
    for number, (pools, _, _) in truth.classes.items():
        size = 16 * (number + 1)
        assert wasted[number] == pools * (pool_bytes - (pool_bytes - 48) // size * size)
    assert one.column("GC generations", "Count").tolist() == list(truth.count)
    assert one.column("GC generations", "Threshold").tolist() == list(truth.threshold)
    for position, name in enumerate(("Collections", "Collected", "Uncollectable")):
        assert one.column("GC generations", name).tolist() == [
            stats[position] for stats in truth.stats
        ]

    classes = one.column("pymalloc arenas", "Size class")
    blocks = one.column("pymalloc arenas", "Blocks in use")
    used_bytes = one.column("pymalloc arenas", "Used")
    assert np.bincount(classes, weights=blocks, minlength=34)[1:33].tolist() == [
        truth.classes.get(n, (0, 0, 0))[1] for n in range(32)
    ]
    assert (used_bytes == blocks * classes * 16).all()
    control = one.space("pymalloc arenas").control
    assert int(((control & Control.SEPARATOR) != 0).sum()) == truth.arenas
    not_in_use = int((classes == 0).sum())
    assert not_in_use == truth.unused_pools
    heaps = one.driver._target.heaps(one.driver._target.interpreters() or ())
    uncarved = heaps[0].reading.pools.state == PoolState.UNCARVED
    assert np.array_equal((control & Control.UNUSED) != 0, uncarved)
    assert np.array_equal((control & Control.USED) != 0, ~uncarved)
    assert one.stream("pymalloc arenas", "Used")._summary == (
        (int(used_bytes.sum()), int((~uncarved).sum()) * pool_bytes),
        int((~uncarved).sum()),
    )


def test_pools_that_were_never_carved_are_unused_and_not_empty(
    python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(
        python,
        "keep = []\nfor _ in range(100):\n    keep += [bytes(400) for _ in range(200)]\ntell()",
    )
    child.wait_still()
    watched.append(one := Watched(child))
    one.driver.tick()
    (heap,) = one.driver._target.heaps(one.driver._target.interpreters() or ())
    uncarved = heap.reading.pools.state == PoolState.UNCARVED
    assert uncarved.any()
    control = one.space("pymalloc arenas").control
    assert ((control[uncarved] & (Control.USED | Control.UNUSED)) == Control.UNUSED).all()
    assert ((control[~uncarved] & (Control.USED | Control.UNUSED)) == Control.USED).all()


def test_the_session_says_what_it_is(python: str, start: Start, watched: list[Watched]) -> None:
    child = start(python, "tell()")
    child.wait_still()
    watched.append(one := Watched(child))
    found = one.driver.describe()
    assert (found.mode, found.pause_acts_on, found.events) == (
        Mode.PASSIVE,
        PauseActsOn.SAMPLING,
        ("Clock", "Collections"),
    )
    assert found.target["pid"] == str(child.pid)
    assert found.target["runtime"] == "CPython"
    assert f"process {child.pid}" in found.name
    assert [space.name for space in one.server.spaces] == [
        "pymalloc arenas",
        "Size classes",
        "Whole arenas",
        "GC generations",
        "Process memory",
        "Memory over time",
    ]
    assert [space.schema.main for space in one.server.spaces] == [True] + [False] * 5
    arenas = one.space("pymalloc arenas")
    assert arenas.count > 0, "the tiles are there before the first event"
    in_order = sorted(arenas.streams, key=lambda stream: stream.schema.order)
    assert [stream.name for stream in in_order] == [
        "Used",
        "Blocks in use",
        "Free blocks",
        "Size class",
        "Carved",
    ]
    assert in_order[0].schema.presentation is Presentation.PERCENT_VAR
    assert in_order[0].schema.max_stream == in_order[-1].schema.id


COLLECTING = """
gc.disable()
tell()
gc.collect(0); gc.collect(0); gc.collect(1)
tell()
tell()
gc.collect()
tell()
"""


def test_collections_since_the_last_tick_are_one_event_with_its_cause(
    python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(python, COLLECTING)
    child.wait_still()
    watched.append(one := Watched(child))
    one.driver.tick()
    for _ in range(3):
        child.go_on()
        child.wait_still()
        one.driver.tick()
    # 3.15 appends the time of each.
    assert [(event.event, event.occurrence, event.cause.split(";")[0]) for event in one.events] == [
        (CLOCK, 1, ""),
        (COLLECTIONS, 1, "gen0 +2, gen1 +1"),
        (CLOCK, 3, ""),
        (COLLECTIONS, 2, "gen2 +1"),
    ]
    assert one.server.counts() == (4, 2), (
        "the clock is counted when the collections are sent in its place"
    )


def test_filtered_collections_are_counted_and_the_clock_is_sent(
    own_python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(own_python, COLLECTING)
    child.wait_still()
    watched.append(one := Watched(child))
    (kind,) = [each for each in one.server._core.filters if each.event == COLLECTIONS]
    one.server._core.set_filters((type(kind)(event=COLLECTIONS, enabled=False),))
    one.driver.tick()
    child.go_on()
    child.wait_still()
    one.driver.tick()
    assert [(event.event, event.occurrence) for event in one.events] == [(CLOCK, 1), (CLOCK, 2)]
    assert one.server.counts() == (2, 1)


def test_without_anybody_nothing_is_gathered_and_everything_is_counted(
    own_python: str, start: Start, watched: list[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(own_python, COLLECTING)
    child.wait_still()
    watched.append(one := Watched(child, observed=False))
    monkeypatch.setattr(
        one.driver._target, "heaps", lambda interpreters: pytest.fail("read for nobody")
    )
    monkeypatch.setattr(
        one.driver._target, "memory_map", lambda arenas: pytest.fail("read for nobody")
    )
    one.driver.tick()
    child.go_on()
    child.wait_still()
    one.driver.tick()
    assert one.server.counts() == (2, 1)


def test_an_event_that_may_be_another_processs_is_not_sent(
    own_python: str, start: Start, watched: list[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(own_python, "tell()")
    child.wait_still()
    watched.append(one := Watched(child))

    def gone() -> None:
        raise TargetGone("its PID now belongs to another process")

    monkeypatch.setattr(one.driver._target, "check", gone)
    with pytest.raises(TargetGone):
        one.driver.tick()
    assert one.events == []


ARENAS_COME_AND_GO = """
chunks = [[bytes(200) for _ in range(20_000)] for _ in range(6)]
tell()
del chunks[1:4]
gc.collect()
tell()
chunks += [[bytes(200) for _ in range(20_000)] for _ in range(4)]
tell()
"""


@pytest.mark.parametrize("tiles", [65536, 100])
def test_an_arena_that_is_given_back_moves_nobody(
    python: str, start: Start, watched: list[Watched], tiles: int
) -> None:
    child = start(python, ARENAS_COME_AND_GO)
    child.wait_still()
    watched.append(one := Watched(child, tiles=tiles))
    one.driver.tick()
    before = dict(
        zip(one.bases(), one.column("pymalloc arenas", "Blocks in use").tolist(), strict=True)
    )
    child.go_on()
    child.wait_still()
    one.driver.tick()
    after = dict(
        zip(one.bases(), one.column("pymalloc arenas", "Blocks in use").tolist(), strict=True)
    )
    assert set(after) < set(before), "the tiles that stay keep their names, and others are gone"
    assert any(base > max(set(before) - set(after)) for base in after), (
        "one in the middle was freed"
    )
    child.go_on()
    child.wait_still()
    one.driver.tick()
    assert set(after) < set(one.bases())
    assert one.bases() == sorted(one.bases())


def test_too_many_pools_become_groups_that_hold_the_same_blocks(
    python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(python, BUSY)
    truth = child.wait_still()
    watched.append(fine := Watched(child))
    watched.append(coarse := Watched(child, tiles=64))
    fine.driver.tick()
    coarse.driver.tick()
    space = coarse.space("pymalloc arenas")
    # The group is at most an arena: of small arenas there are more than that.
    assert 16 < space.count <= max(64, truth.arenas or 0)
    for name in ("Blocks in use", "Free blocks", "Used"):
        assert (
            coarse.column("pymalloc arenas", name).sum()
            == fine.column("pymalloc arenas", name).sum()
        )
    names = space.names
    assert isinstance(names, ExtentNames)
    assert (
        int(names.sizes.sum())
        == fine.space("pymalloc arenas").count * fine.driver._target.geometry.pool_bytes
    )
    assert int(((space.control & Control.SEPARATOR) != 0).sum()) == truth.arenas
    assert "a tile is" in space.info
    carved = coarse.column("pymalloc arenas", "Carved")
    assert carved.sum() == fine.column("pymalloc arenas", "Carved").sum()
    assert (carved <= names.sizes).all()
    assert (coarse.column("pymalloc arenas", "Used") <= carved).all()
    assert carved.max() <= coarse.stream("pymalloc arenas", "Carved").schema.maximum


GROWING = """
kept = [bytes(100) for _ in range(1000)]
tell()
kept += [bytes(100) for _ in range(200_000)]
tell()
"""


def test_tiles_of_a_heap_that_outgrew_them_are_in_percent_of_what_they_are_now(
    own_python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(own_python, GROWING)
    child.wait_still()
    watched.append(one := Watched(child, tiles=256))
    one.driver.tick()
    carved = one.stream("pymalloc arenas", "Carved")
    largest = int(carved.data.max())
    child.go_on()
    child.wait_still()
    one.driver.tick()
    assert int(carved.data.max()) > largest, "the tiles were regrouped"
    used = one.column("pymalloc arenas", "Used")
    assert used.max() > largest, "measured by what a tile was, one would be more than full"
    assert (used <= carved.data).all()
