"""The compiled loops give bit for bit the results of numpy, on real heaps, damaged ones and random lists; and no caller waits for them."""

from __future__ import annotations

import os
import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.cpython.collector.generations import LISTS
from gcspy_drivers.cpython.objects import machine_code
from gcspy_drivers.cpython.objects.lists import Lists
from gcspy_drivers.cpython.objects.machine_code import Kernels
from gcspy_drivers.cpython.objects.scan import Nodes, ScannedObjects
from gcspy_drivers.cpython.objects.ways import UNKNOWN, LoopWays, NumpyWays
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.cpython.target import ObjectReading, Target

from gcspy_compiled.c_loops import CLoop
from tests.c_loops import check_accesses, need_c, without_c
from tests.drivers.conftest import Start
from tests.drivers.cpython.test_objects import ZOO, by_type
from tests.drivers.targets import write_memory
from tests.matrix import matrix
from tests.once import compiled_once

U64 = npt.NDArray[np.uint64]


@pytest.fixture(params=matrix(["numba", "c"], usual=["c"]), scope="module")
def code(request: pytest.FixtureRequest) -> Iterator[Kernels]:
    """The kernels, in C or compiled."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "c":
            need_c(machine_code.LIBRARY, patched)
            found = machine_code.load()
        else:
            pytest.importorskip("numba")
            without_c(patched)
            found = compiled_once(machine_code.load)
        assert found is not None
        assert isinstance(found.walk, CLoop) == (request.param == "c")
        yield found


def assert_same(one: Any, other: Any, names: tuple[str, ...]) -> None:
    for name in names:
        mine: npt.NDArray[Any] = getattr(one, name)
        theirs: npt.NDArray[Any] = getattr(other, name)
        assert mine.dtype == theirs.dtype, name
        assert np.array_equal(mine, theirs), name


SUMS = (
    "known",
    "objects",
    "trackable",
    "tracked",
    "blocks",
    "pool",
    "type",
    "count",
    "block_bytes",
    "holders",
)
LARGE = (
    "address",
    "size",
    "kind",
    "type",
    "owner",
    "of_list",
    "elsewhere",
    "elsewhere_bytes",
    "torn",
)
COLUMNS = ("address", "following", "before", "pool", "type", "block_bytes")


def assert_objects_same(one: ScannedObjects, other: ScannedObjects) -> None:
    assert_same(one, other, SUMS)
    assert_same(one.nodes, other.nodes, COLUMNS)


def assert_lists_same(one: Lists | None, other: Lists | None, pools: int) -> None:
    assert one is not None
    assert other is not None
    assert (one.code is None) != (other.code is None)
    assert one.complete == other.complete
    assert_same(one, other, ("of_node",))
    assert_same(one.inside, other.inside, COLUMNS)
    assert_same(one.outside, other.outside, COLUMNS)
    mine = one.sums(pools=pools, lists=LISTS, each=LISTS)
    theirs = other.sums(pools=pools, lists=LISTS, each=LISTS)
    assert mine[0].dtype == theirs[0].dtype
    assert np.array_equal(mine[0], theirs[0])
    assert np.array_equal(mine[1], theirs[1])


def read(target: Target, code: Kernels | None) -> ObjectReading:
    interpreters = target.interpreters() or ()
    return target.objects(
        target.heaps(interpreters), interpreters, code=code, references=True, large=True
    )


def assert_readings_same(one: ObjectReading, other: ObjectReading) -> None:
    pools = 0
    for mine, theirs in zip(one.heaps, other.heaps, strict=True):
        assert_objects_same(mine.objects, theirs.objects)
        pools += len(mine.heap.reading.pools)
    assert_lists_same(one.lists, other.lists, pools)
    assert one.references is not None
    assert other.references is not None
    assert np.array_equal(one.references, other.references)
    assert one.large is not None
    assert other.large is not None
    for name in LARGE:
        assert np.array_equal(getattr(one.large, name), getattr(other.large, name)), name


@pytest.mark.parametrize("setting", matrix(["", "debug"], usual=[""]))
def test_loops_and_numpy_find_the_same_in_a_real_heap(
    python: str, start: Start, code: Kernels, setting: str
) -> None:
    child = start(python, ZOO, {"PYTHONMALLOC": setting} if setting else None)
    child.wait_objects()
    with Target(child.pid) as target:
        # Types are numbered as they are met, which is not the same order.
        looped = read(target, code)
        assert looped.lists is not None
        assert looped.lists.complete
        assert len(looped.lists.of_node) > 30_000
        assert_readings_same(read(target, code), read(target, None))
    with Target(child.pid) as target:
        plain = read(target, None)
        assert_readings_same(read(target, None), read(target, code))
    assert by_type(looped) == by_type(plain)


def test_loops_and_numpy_find_the_same_in_a_damaged_heap(
    own_python: str, start: Start, code: Kernels
) -> None:
    child = start(own_python, ZOO)
    child.wait_objects()
    rng = random.Random(12)
    with Target(child.pid) as target:
        interpreters = target.interpreters() or ()
        read(target, None)
        for _ in range(4):
            pools = target.heaps(interpreters)[0].reading.pools
            used = pools.address[pools.state == PoolState.USED].tolist()
            for _ in range(300):
                where = rng.choice(used) + 8 * rng.randrange(2048)
                word = rng.choice(
                    [
                        0,
                        1,
                        8,
                        (1 << 64) - 1,
                        rng.getrandbits(64),
                        rng.choice(used) + 16 * rng.randrange(1024),
                    ]
                )
                write_memory(child.pid, where, struct.pack("<Q", word))
            one, other = read(target, code), read(target, None)
            assert_readings_same(one, other)
            assert not one.heaps[0].objects.known.all()
            assert one.lists is not None


def random_nodes(
    rng: np.random.Generator, count: int, *, far: bool
) -> tuple[Nodes, Nodes, dict[int, int]]:
    """Nodes on four lists, some of them outside of the pools, with ways that are broken, crossed, and closed to rings."""
    span = 1 << (44 if far else 20)
    places = np.unique(rng.integers(1 << 16, span, count) * 16).astype(np.uint64)
    order = rng.permutation(len(places))
    heads = {8 * (number + 1): number for number in range(4)}
    following = np.zeros(len(places), dtype=np.uint64)
    before = np.zeros(len(places), dtype=np.uint64)
    for number, part in enumerate(np.array_split(order, 4)):
        ring = np.concatenate((places[part], [np.uint64(8 * (number + 1))]))
        following[part], before[part] = np.roll(ring, -1)[:-1], np.roll(ring, 1)[:-1]
    for ways in (following, before):
        broken = rng.integers(0, len(places), max(1, len(places) // 50))
        ways[broken] = rng.choice(
            np.concatenate((places[:8], [np.uint64(0), np.uint64(17), np.uint64((1 << 63) + 16)])),
            len(broken),
        )
    outside = rng.random(len(places)) < 0.1
    none = np.zeros(len(places), dtype=np.int32)
    size = np.full(len(places), 64, dtype=np.uint16)

    def some(which: npt.NDArray[np.bool_], pool: int) -> Nodes:
        return Nodes(
            places[which],
            following[which],
            before[which],
            none[which] + np.int32(pool),
            none[which],
            size[which],
        )

    return some(~outside, 0), some(outside, -1), heads


@pytest.mark.soak
def test_no_access_in_c_is_outside_of_an_array(tmp_path: Path) -> None:
    check_accesses(machine_code.LIBRARY, tmp_path, Path(__file__))


@pytest.mark.parametrize("far", [False, True])
def test_ways_of_random_lists_end_at_the_same_heads(code: Kernels, far: bool) -> None:
    rng = np.random.default_rng(3)
    for count in (1, 2, 5, 100, 3_000):
        for _ in range(5):
            inside, outside, ends = random_nodes(rng, count, far=far)
            plain = NumpyWays(inside.address)
            loop = LoopWays.of(code, inside.address)
            if loop is None:
                assert far
                continue
            heads: U64 = np.array(sorted(ends), dtype=np.uint64)
            ways = (inside.following, inside.before, heads)
            assert np.array_equal(plain.strangers(ways, heads), loop.strangers(ways, heads))
            found = plain.resolve(inside, outside, ends)
            assert np.array_equal(found, loop.resolve(inside, outside, ends))
            if count == 3_000:
                assert {UNKNOWN, 0, 1, 2, 3} == set(found.tolist())


def test_no_nodes_are_no_trouble_for_the_loops(code: Kernels) -> None:
    none = Nodes.together([])
    loop = LoopWays.of(code, none.address)
    assert loop is not None
    assert len(loop.resolve(none, none, {8: 0})) == 0


def test_what_was_compiled_is_kept_only_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = machine_code.cache_folder()
    assert folder == tmp_path / "gcspy" / "numba"
    assert folder.stat().st_mode & 0o777 == 0o700
    for unsafe in (folder, folder.parent):
        unsafe.chmod(0o777)
        assert machine_code.cache_folder() is None
        unsafe.chmod(0o700)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert machine_code.cache_folder() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert machine_code.cache_folder() is None


def test_without_numba_and_where_it_is_not_wanted_there_are_no_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert os.environ[machine_code.VARIABLE] == "no"
    without_c(monkeypatch)
    machine_code.want()
    assert machine_code.compiled(wait_secs=30) is None
    monkeypatch.setitem(sys.modules, "numba", None)
    assert machine_code.load() is None
