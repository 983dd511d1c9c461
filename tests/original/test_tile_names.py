"""Names of tiles are addresses only if all of them are."""

from __future__ import annotations

import numpy as np
from gcspy_original.wire.tile_names import address_names, addresses_of, text_names, texts_of
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(1, 1 << 20)), max_size=8))
def test_addresses_come_back(steps: list[tuple[int, int]]) -> None:
    starts, sizes, at = [], [], 0
    for gap, size in steps:
        starts.append(at + gap)
        sizes.append(size)
        at += gap + size
    order = np.random.default_rng(len(steps)).permutation(len(starts))
    starts, sizes = [starts[i] for i in order], [sizes[i] for i in order]
    names = address_names(starts, [a + b for a, b in zip(starts, sizes, strict=True)])
    found = addresses_of(names)
    if not steps:
        assert found is None
        return
    assert found is not None
    assert found[0].tolist() == starts
    assert found[1].tolist() == sizes


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_texts_come_back(texts: list[str]) -> None:
    assert texts_of(text_names(texts)) == texts


def test_other_texts_are_no_addresses() -> None:
    good = b"[0x10-0x20)\0"
    assert addresses_of(good) is not None
    assert addresses_of(b"  [0X10 - 0x20) \0") is not None
    for bad in (
        b"", b"\0", good + b"\0", good + b"x\0", b"x" + good, good + b"[0x20-0x20)\0", good + b"[0x18-0x30)\0",
        b"[0x30-0x20)\0", b"[0x10-0x20]\0", b"[0x10-0x20)", b"[0x" + b"1" * 17 + b"-0x2)\0", good + good,
    ):  # fmt: skip
        assert addresses_of(bad) is None, bad
