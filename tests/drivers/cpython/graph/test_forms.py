"""Words of an object that hold nothing are bits, one for each of the first sixty-two."""

from __future__ import annotations

import pytest
from gcspy_drivers.cpython.graph.forms import _all, _bits


@pytest.mark.parametrize(
    ("offsets", "bits"),
    [
        ((), 0),
        ((0,), 0b1),
        ((16, 24, 16), 0b1100),
        ((8, 72), 0b10_0000_0010),
        ((8 * 61,), 1 << 61),
        ((8 * 62,), 0),
        ((8 * 63, 8), 0b10),
    ],
)
def test_a_word_is_the_bit_of_its_number_and_those_beyond_are_left_out(
    offsets: tuple[int, ...], bits: int
) -> None:
    assert _bits(offsets) == bits


def test_all_words_are_those_that_have_a_bit() -> None:
    assert _all() == _bits(tuple(range(0, 8 * 100, 8))) == (1 << 62) - 1
