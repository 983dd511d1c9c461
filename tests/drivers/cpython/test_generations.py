"""The collector's state is read where its own pointer says, and refused when it cannot be one."""

from __future__ import annotations

import ctypes
import os
import struct

import numpy as np
import pytest
from gcspy_drivers.cpython.collector.generations import Generations, read_generations
from gcspy_drivers.cpython.layouts import GcLayout
from gcspy_drivers.cpython.spaces.generation_space import (
    GenerationSpace,
    cause_text,
    collections_between,
)
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

from gcspy_server.api import Server

LAYOUT = GcLayout()


def made(
    *, generations_at: int = 24, pointer: int | None = None, **changes: int
) -> tuple[ctypes.Array[ctypes.c_char], Addr]:
    """Make a collector's state in our own memory, with the array of generations where a build may have it."""
    state = ctypes.create_string_buffer(LAYOUT.size_bytes)
    where = ctypes.addressof(state)
    struct.pack_into("<i", state, LAYOUT.enabled, changes.get("enabled", 1))
    struct.pack_into("<i", state, LAYOUT.collecting, changes.get("collecting", 0))
    for number in range(3):
        struct.pack_into(
            "<ii",
            state,
            generations_at + 24 * number + 16,
            700 + number,
            changes.get("count", 10 + number),
        )
        struct.pack_into(
            "<3q",
            state,
            LAYOUT.stats + 24 * number,
            5 + number,
            changes.get("collected", 100 + number),
            number,
        )
    struct.pack_into(
        "<Q", state, LAYOUT.generation0, where + generations_at if pointer is None else pointer
    )
    return state, Addr(where)


def read(state: tuple[ctypes.Array[ctypes.c_char], Addr]) -> Generations | None:
    with Process(os.getpid()) as process:
        return read_generations(Memory(process), state[1], LAYOUT)


@pytest.mark.parametrize("generations_at", [24, 20])
def test_the_array_is_found_by_the_states_own_pointer(generations_at: int) -> None:
    """Debian and Ubuntu patch 3.13 so that it is at 20."""
    found = read(made(generations_at=generations_at))
    assert found is not None
    assert found.threshold.tolist() == [700, 701, 702]
    assert found.count.tolist() == [10, 11, 12]
    assert found.collections.tolist() == [5, 6, 7]
    assert found.collected.tolist() == [100, 101, 102]
    assert found.uncollectable.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "state",
    [
        made(pointer=0),
        made(pointer=1 << 40),
        made(enabled=7),
        made(collecting=-1),
        made(count=-3),
        made(collected=-1),
    ],
    ids=[
        "no pointer",
        "pointer elsewhere",
        "enabled 7",
        "collecting -1",
        "count -3",
        "collected -1",
    ],
)
def test_what_no_collector_says_is_unknown(state: tuple[ctypes.Array[ctypes.c_char], Addr]) -> None:
    assert read(state) is None


def test_a_pointer_to_the_end_of_the_state_is_refused() -> None:
    state, where = made()
    struct.pack_into("<Q", state, LAYOUT.generation0, where + LAYOUT.generation0 - 68)
    assert read((state, where)) is None


def test_collections_are_told_by_generation_and_interpreter() -> None:
    before, after = read(made()), read(made())
    assert before is not None
    assert after is not None
    assert collections_between(before, after) == (0, 0, 0)
    after.collections[:] = [8, 6, 9]
    assert collections_between(before, after) == (3, 0, 2)
    assert collections_between(None, after) == collections_between(before, None) == (0, 0, 0)
    after.collections[:] = np.array([1, 6, 7])
    assert collections_between(before, after) == (0, 0, 0), (
        "another interpreter's numbers are no collections"
    )
    assert cause_text({0: (3, 1, 0)}) == "gen0 +3, gen1 +1"
    assert cause_text({2: (0, 0, 1), 0: (1, 0, 0)}) == "gen0 +1; interpreter 2: gen2 +1"
    assert cause_text({0: (0, 0, 0)}) == ""


def test_counts_may_pass_their_threshold() -> None:
    server = Server("test", events=("Clock",))
    space = GenerationSpace(server, "Generations")
    declared = {stream.name for stream in space.space.schema.streams if stream.threshold}
    assert declared == {"Count"}
    server.close()
