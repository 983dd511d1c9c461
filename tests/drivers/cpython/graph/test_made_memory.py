"""In memory that nobody would have, with forms of every kind, the loops in C and as they are written do the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.cpython.graph import machine_code
from gcspy_drivers.cpython.graph.forms import COLUMNS, Form, TypeForm
from gcspy_drivers.cpython.graph.loops import Place, State
from gcspy_drivers.cpython.graph.machine_code import Loops
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.c_loops import check_accesses, need_c

BASE = 5 << 21
PAGE_WORDS = 512
RUNS = ((BASE, 2), (BASE + 4 * 4096, 1), (BASE + (1 << 21) - 4096, 2))
"""First address and pages of each run; the last one reaches into the next granule."""
TYPES = BASE + (3 << 21)
KINDS = 2 * len(Form)

VERSIONS = {
    Place.MULTIPLIER: (1,),
    Place.SHIFT: (4,),
    Place.MASK: (63,),
    Place.VERSION: (9, 10, 11, 12, 13, 14, 15),
    Place.MOST_REFERENCES: (1 << 32,),
    Place.REFERENCE_BITS: (0, 1 << 40),
    Place.FRAME_IN_GENERATOR: (56, 72),
    Place.GENERATOR_STATE: (67, 75),
    Place.CODE_LOCALS: (72, 76),
    Place.FRAME_CODE: (0, 32),
    Place.FRAME_LOCALS: (72, 80),
    Place.FRAME_TOP: (64, 56),
    Place.FRAME_OWNER: (69, 70),
    Place.ASCII_AT: (40, 48),
    Place.TEXT_AT: (56, 72),
    Place.DIGITS_SHIFT: (0, 3),
    Place.BASIC_TYPE_BYTES: (408,),
    Place.COMPACT_KEYS: (0, 1),
    Place.STACK_AT: (64,),
    Place.FRAME_TAGS: (0, 1),
    Place.GENERATOR_ENDED: (1, 4),
    Place.MODULE_STATE: (32,),
    Place.MODULE_STATE_BYTES: (0, 40),
    Place.BYTEARRAY_OBJECT: (0, 1),
    Place.CACHED_KEYS: (864, 40),
}


class Memory:
    """A copy of made-up memory, and types for it.

    Args:
        seed: Of all of it.
    """

    def __init__(self, seed: int) -> None:
        numbers = np.random.default_rng(seed)
        sizes = [PAGE_WORDS * pages for _, pages in RUNS]
        before = np.cumsum([0, *sizes[:-1]])
        self.runs = np.array(
            [
                (start, start + 8 * size, at)
                for (start, _), size, at in zip(RUNS, sizes, before, strict=True)
            ],
            dtype=np.int64,
        )
        self.granules = np.zeros(8, dtype=np.int32)
        self.granules[5], self.granules[6] = 1, 3
        self.address = np.concatenate(
            [start + 8 * np.arange(size) for (start, _), size in zip(RUNS, sizes, strict=True)]
        ).astype(np.int64)
        count = len(self.address)
        kinds = numbers.integers(0, 8, count)
        edges = np.array(
            [0, 1, 7, 40, 63, 64, 1 << 20, 1 << 40, (1 << 40) + 1, (1 << 47) - 8, -1, -(1 << 63)]
        )
        heads = 2 * np.flatnonzero(numbers.random(count // 2) < 0.6)
        some = np.where(
            numbers.random(count) < 0.7,
            self.address[numbers.choice(heads, count)],
            self.address[numbers.integers(0, count, count)],
        )
        self.words = np.select(
            [kinds < 3, kinds < 5, kinds == 5, kinds == 6],
            [
                some,
                numbers.integers(0, 20, count),
                edges[numbers.integers(0, len(edges), count)],
                some + numbers.integers(0, 8, count),
            ],
            numbers.integers(-(1 << 62), 1 << 62, count),
        ).astype(np.int64)
        # Objects, each with a possible count of references.
        self.words[heads] = numbers.integers(1, 5, len(heads))
        self.words[heads + 1] = TYPES + 16 * numbers.integers(0, KINDS, len(heads))
        self.type_address = (TYPES + 16 * np.arange(KINDS)).astype(np.int64)
        self.slots = np.full(64, -1, dtype=np.int32)
        self.slots[(self.type_address >> 4) & 63] = np.arange(KINDS)
        self.layout = np.zeros(len(Place), dtype=np.int64)
        for place, values in VERSIONS.items():
            self.layout[place] = numbers.choice(values)
        self.forms = np.zeros((KINDS, COLUMNS), dtype=np.int64)
        self.forms[:, TypeForm.FORM] = np.arange(KINDS) % len(Form)
        self.forms[:, TypeForm.BASIC_BYTES] = 8 * numbers.integers(2, 12, KINDS)
        self.forms[:, TypeForm.ITEM_BYTES] = numbers.choice([0, 0, 1, 4, 8], KINDS)
        self.forms[:, TypeForm.SKIPPED] = numbers.integers(0, 1 << 62, KINDS)
        self.forms[:, TypeForm.HEAP] = numbers.integers(0, 2, KINDS)
        self.forms[:, TypeForm.KEYS] = self.address[numbers.integers(0, count, KINDS)]
        self.forms[:, TypeForm.PREFIX_BYTES] = numbers.choice([0, 16, 32], KINDS)
        self.forms[:, TypeForm.ATTRIBUTES] = numbers.choice([0, 0, 1, 2, 3], KINDS)
        self.forms[:, TypeForm.IS_DICT] = self.forms[:, TypeForm.FORM] == Form.DICT
        self.forms[:, TypeForm.ITEMS_REFER] = self.forms[:, TypeForm.FORM] == Form.TUPLE
        self.forms[:, TypeForm.DICT_AT] = numbers.choice([0, 0, 24, -8], KINDS)
        self.roots = self.address[numbers.choice(heads, 20)]

    def walked(self, loops: Loops, most: int) -> list[NDArray[np.int64] | NDArray[np.int32]]:
        """Follow everything from the roots.

        Args:
            loops: The loops.
            most: Examine this many objects.

        Returns:
            All that the loops have written.
        """
        count = len(self.words)
        room, references = int(count // 2 + 1), 2 * count
        state = np.zeros(len(State), dtype=np.int64)
        seen = np.zeros(count // 2 + 2, dtype=np.int32)
        address = np.zeros(room, dtype=np.int64)
        kind, parent = np.zeros(room, dtype=np.int32), np.zeros(room, dtype=np.int32)
        targets = np.zeros(references, dtype=np.int32)
        walked = (
            self.words,
            self.runs,
            self.granules,
            seen,
            address,
            kind,
            parent,
            targets,
            state,
            self.slots,
            self.type_address,
            self.layout,
        )
        starts = np.zeros(room + 1, dtype=np.int64)
        own, elsewhere = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
        loops.enter_all(self.roots, walked)
        loops.walk(walked, self.forms, starts, own, elsewhere, most)
        return [seen, address, kind, parent, targets, state, starts, own, elsewhere]


@pytest.fixture(scope="module", name="in_c")
def _in_c() -> Iterator[Loops]:
    with pytest.MonkeyPatch.context() as patch:
        need_c(machine_code.LIBRARY, patch)
        yield machine_code.load()


@given(seed=st.integers(0, 1 << 32))
def test_c_and_python_find_the_same_objects_references_and_sizes(in_c: Loops, seed: int) -> None:
    memory = Memory(seed)
    for one, other in zip(
        memory.walked(in_c, 200), memory.walked(machine_code.as_written(), 200), strict=True
    ):
        assert one.tolist() == other.tolist()


@given(seed=st.integers(0, 1 << 32))
def test_c_and_python_agree_on_the_other_loops(in_c: Loops, seed: int) -> None:
    memory = Memory(seed)
    numbers = np.random.default_rng(seed)
    written = machine_code.as_written()
    copy = (memory.words, memory.runs, memory.granules)
    first = BASE - 8192 + numbers.integers(0, 1 << 22, 30)
    last = first + numbers.integers(-4096, 1 << 15, 30)
    wanted = np.sort(numbers.choice(memory.words, 9))
    start = int(memory.address[numbers.integers(0, 512)])
    memory.words[1:] = np.where(
        numbers.random(len(memory.words) - 1) < 0.9, 33, memory.words[1:]
    )  # chunks of malloc
    found = []
    for loops in (in_c, written):
        places, listed = np.zeros(5, dtype=np.int64), np.zeros(64, dtype=np.int64)
        sizes = np.zeros(30, dtype=np.int64)
        begin, size = np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64)
        loops.residents(first, last, memory.runs, sizes)
        found.append(
            (
                loops.find_words(memory.words, wanted, places),
                places.tolist(),
                loops.on_lists(memory.roots, *copy, listed),
                listed.tolist(),
                sizes.tolist(),
                loops.malloc_free_bytes(start, BASE + 8192, *copy),
                loops.malloc_unknown(start, BASE + 8192, *copy, np.sort(memory.roots), begin, size),
                begin.tolist(),
                size.tolist(),
            )
        )
    assert found[0] == found[1]


@pytest.mark.soak
def test_no_access_is_out_of_bounds_and_nothing_is_undefined(tmp_path: Path) -> None:
    check_accesses(machine_code.LIBRARY, tmp_path, Path(__file__))
