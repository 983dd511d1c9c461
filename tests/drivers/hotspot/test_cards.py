"""The search for reportable cards gives the same result as a check of each card by itself."""

from __future__ import annotations

import os

import numpy as np
from gcspy_drivers.hotspot.heaps.cards import CardKind, JvmCardTable
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from hypothesis import given
from hypothesis import strategies as st

_CLEAN, _DIRTY, _YOUNG = 0xFF, 0, 2
_SHIFT = 9


@given(
    st.lists(
        st.sampled_from([_CLEAN, _CLEAN, _CLEAN, _YOUNG, _YOUNG, _DIRTY, 0x11, 3]), max_size=200
    ),
    st.integers(0, 20),
    st.integers(0, 200),
)
def test_rare_cards_are_those_that_a_look_at_each_finds(
    values: list[int], first: int, count: int
) -> None:
    kinds = np.full(256, CardKind.OTHER, dtype=np.uint8)
    kinds[[_CLEAN, _DIRTY, _YOUNG]] = CardKind.CLEAN, CardKind.DIRTY, CardKind.YOUNG
    table = np.array([*values, *[_CLEAN] * 260], dtype=np.uint8)
    with Process(os.getpid()) as process:
        cards = JvmCardTable(Memory(process), table.ctypes.data, _SHIFT, kinds)
        for end in (
            first + 230,
            first + count,
        ):  # the second one finds what the first one left in the buffer
            found = cards.read(first << _SHIFT, end << _SHIFT)
            assert found is not None
            wanted = kinds[table[first:end]]
            assert found.dirty.tolist() == np.flatnonzero(wanted == CardKind.DIRTY).tolist()
            assert found.other.tolist() == np.flatnonzero(wanted == CardKind.OTHER).tolist()


def test_cards_that_cannot_be_read_are_not_made_up() -> None:
    with Process(os.getpid()) as process:
        cards = JvmCardTable(Memory(process), 8, _SHIFT, np.zeros(256, dtype=np.uint8))
        assert cards.read(0, 1 << 20) is None
