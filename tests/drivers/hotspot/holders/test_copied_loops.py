"""In heaps that nobody would have, the loops over a copy do the same in C and as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.hotspot.copied import machine_code
from gcspy_drivers.hotspot.copied.machine_code import CopyLoops
from gcspy_drivers.hotspot.objects.form import FORM, ObjectHeader
from gcspy_drivers.hotspot.vm.klasses import ClassShape
from hypothesis import given
from hypothesis import strategies as st

from tests.c_loops import check_accesses, need_c

BASE = 0x7F00_0000_0000
KLASSES = 12


class CopiedWords:
    """Words of a made-up span, classes for it, and what is told about it.

    Args:
        seed: Of all of it.
    """

    def __init__(self, seed: int) -> None:
        numbers = np.random.default_rng(seed)
        count = int(numbers.integers(0, 300))
        header = int(numbers.choice(list(ObjectHeader)))
        self.form = np.zeros(len(FORM), dtype=np.int64)
        for place, values in {
            FORM.CLASS_SHIFT: (42,),
            FORM.CLASS_MASK: ((1 << 22) - 1,),
            FORM.LENGTH_OFFSET: (8, 12, 16),
            FORM.ALIGNMENT: (8, 16),
            FORM.MIRROR_SIZE: (16, 20),
            FORM.CHUNK_SIZE: (24,),
            FORM.CHUNK_BITS: (1, 2),
            FORM.OOP_BYTES: (4, 8),
            FORM.OOP_BASE: (0, 1 << 35),
            FORM.OOP_SHIFT: (0, 3),
        }.items():
            self.form[place] = numbers.choice(values)
        self.form[FORM.HEADER] = header
        self.form[FORM.HEADER_WORDS] = 1 if header == ObjectHeader.COMPACT else 2
        classes = 0x800 + 8 * np.arange(1, KLASSES + 1)
        self.keys, self.numbers = np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int32)
        for number, word in enumerate(classes.tolist()):
            at = ((word >> 3) ^ (word >> 13) ^ word) & 63
            while self.keys[at]:
                at = (at + 1) & 63
            self.keys[at], self.numbers[at] = word, number
        self.classes = np.zeros((KLASSES, 6), dtype=np.int64)
        self.classes[:, 0] = numbers.choice([0, 1, 1, 2, 2, 3, 4], KLASSES)
        self.classes[:, 1] = 8 * numbers.integers(1, 6, KLASSES)
        self.classes[:, 2] = numbers.integers(0, 4, KLASSES)
        self.classes[:, 3] = numbers.integers(0, 4, KLASSES)
        some = classes[numbers.integers(0, KLASSES, count)]
        small = numbers.integers(0, 6, count)
        self.words = np.select(
            [numbers.random(count) < 0.9, numbers.random(count) < 0.5],
            [
                (some << 42 if header == ObjectHeader.COMPACT else some)
                | small << 32 * (header == ObjectHeader.NARROW),
                small,
            ],
            numbers.integers(-(1 << 62), 1 << 62, count),
        ).astype(np.int64)
        self.gaps = np.sort(BASE + 8 * numbers.integers(0, 300, 4)).reshape(2, 2).astype(np.int64)
        self.marks = numbers.integers(0, 1 << 20, 6).astype(np.int64)
        self.place = np.array(
            [
                BASE,
                numbers.choice([0, BASE + 400, BASE + 4000]),
                BASE + numbers.choice([-64, 0, 64]),
                numbers.choice([3, 4]),
                numbers.random() < 0.2,
                8 * count,
            ],
            dtype=np.int64,
        )
        self.types = np.where(self.classes[:, 0] == 2, numbers.choice([2, 5, 11], KLASSES), 0)
        fields = numbers.integers(0, 4, KLASSES)
        self.starts = np.concatenate(([0], np.cumsum(fields))).astype(np.int64)
        self.plans = np.stack(
            (numbers.integers(0, 60, fields.sum()), numbers.choice([0, 1, 2, 4, 8], fields.sum())),
            axis=1,
        ).astype(np.int64)

    def dump(self, loops: CopyLoops) -> list[object]:
        """Find the objects, step over what is none, and write them; returns all that was written."""
        state = np.zeros(3, dtype=np.int64)
        where, kind = np.zeros(20, dtype=np.int64), np.zeros(20, dtype=np.int32)
        found: list[object] = []
        while state[0] < len(self.words):
            state[1] = 0
            why = loops.index(
                self.words, state, self.place, self.form, self.keys, self.numbers, self.classes, self.gaps, self.marks, where, kind
            )  # fmt: skip
            count = int(state[1])
            found += [why, state.tolist(), where[:count].tolist(), kind[:count].tolist()]
            data = self.words.view(np.uint8)
            lengths = [
                int.from_bytes(data[at + self.form[FORM.LENGTH_OFFSET] :][:4].tobytes(), "little")
                for at, each in zip(where[:count].tolist(), kind[:count].tolist(), strict=True)
                if self.classes[each, 0] == ClassShape.ARRAY  # of which the span has room for all
            ]
            out = np.zeros(8 * sum(lengths) + 100 * count, dtype=np.uint8)
            chosen = kind[:count].copy()
            chosen[::3] = -1
            filled = loops.emit(
                data, BASE, where[:count].copy(), chosen, self.classes, self.types, self.starts[:-1], self.starts,
                self.plans, self.form, out, 0,
            )  # fmt: skip
            found += [filled, out.tobytes()]
            state[0] += why != 4
        return found


@pytest.fixture(scope="module", name="in_c")
def _in_c() -> Iterator[CopyLoops]:
    with pytest.MonkeyPatch.context() as patch:
        need_c(machine_code.LIBRARY, patch)
        yield machine_code.load()


@given(seed=st.integers(0, 1 << 32))
def test_c_and_python_find_the_same_objects_and_write_the_same_bytes(
    in_c: CopyLoops, seed: int
) -> None:
    words = CopiedWords(seed)
    assert words.dump(in_c) == words.dump(machine_code.as_written())


@pytest.mark.soak
def test_no_access_is_out_of_bounds_and_nothing_is_undefined(tmp_path: Path) -> None:
    check_accesses(machine_code.LIBRARY, tmp_path, Path(__file__))
