"""Loops: as they are written and as machine code they do the same; what they may not be is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gcspy_drivers.simulator import heap, loops
from gcspy_drivers.simulator.heap import Heap, bump, make_object
from gcspy_drivers.simulator.loops import SimulatorLoop, Words, as_machine_code, as_written, loop
from gcspy_drivers.simulator.policies import freelist
from gcspy_protocol.errors import LocalProtocolError

from tests.drivers.simulator.variants import VARIANTS, Variant, make, run_at_random


@pytest.fixture(scope="module")
def machine_code() -> Iterator[None]:
    """Compile the loops that allocate and sweep: those of all collectors take half a minute."""
    numba = pytest.importorskip("numba")
    for one in (bump, make_object, freelist.take, freelist.sweep):
        one.compile(numba.njit, keep=False)
    yield
    loops.forget()


def assert_same(variant: Variant, turns: int) -> None:
    written, _ = make(variant, watched=False)
    compiled, _ = make(variant, watched=False)
    with as_written():
        run_at_random(written, turns)
        written.plan.collect()
        with as_machine_code():
            run_at_random(compiled, turns)
            compiled.plan.collect()
    assert written.plan.collections == compiled.plan.collections
    np.testing.assert_array_equal(written.heap.words, compiled.heap.words)
    np.testing.assert_array_equal(written.heap.roots, compiled.heap.roots)


@pytest.mark.parametrize(
    "variant", [one for one in VARIANTS if one.plan in {"marksweep", "nogc"}], ids=str
)
def test_machine_code_does_what_is_written(variant: Variant, machine_code: None) -> None:
    assert_same(variant, 900)


def test_a_compiled_loop_is_the_one_that_runs(machine_code: None) -> None:
    small = Heap(4096)
    buffer: Any = np.array([small.start, small.end], dtype=np.int32)
    with as_written():
        assert bump(small.words, buffer, 4, 1) == small.start
    # Machine code takes words only; what is written takes whatever can be indexed.
    with pytest.raises(TypeError, match="No matching definition"):
        bump(small.words, buffer, 4, 1)


@pytest.mark.soak
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_machine_code_of_every_collector_does_what_is_written(variant: Variant) -> None:
    numba = pytest.importorskip("numba")
    for each in vars(loops)["_loops"]:
        each.compile(numba.njit, keep=False)
    assert_same(variant, 2000)


def double(words: Words, at: int) -> int:
    return int(words[at]) * 2


def test_a_loop_says_what_numba_is_told_and_what_it_is_made_of() -> None:
    first: SimulatorLoop[[Words, int], int] = loop(double)
    assert first.signature == "int64(int64[::1], int64)"
    assert first(np.array([3, 4], dtype=np.int64), 1) == 8
    assert set(bump.used) == {"make_object", "free_cell"}
    assert bump.fingerprint != make_object.fingerprint
    # A loop's stored code is not used when a loop that it calls has changed.
    before, changed = bump.fingerprint, SimulatorLoop(double)
    inner = vars(heap)
    kept, inner["free_cell"] = inner["free_cell"], changed
    try:
        assert bump.fingerprint != before
    finally:
        inner["free_cell"] = kept


def test_a_loop_with_other_types_is_refused() -> None:
    def wrong(name: str) -> None:
        del name

    with pytest.raises(LocalProtocolError, match="'str' is not a type of Words"):
        _ = loop(wrong).signature


def test_where_machine_code_is_not_wanted_nothing_is_compiled() -> None:
    before = threading.active_count()
    loops.want()
    assert threading.active_count() == before
    assert not loops.available()
    assert not loops.compile_all()
