"""Pages that are packed by what changed: the same come out, in whatever order they were written."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from gcspy_drivers.cooperative.page_packer import PagePacker
from gcspy_protocol.errors import TargetError
from hypothesis import given
from hypothesis import strategies as st

EVENTS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 3)), max_size=4, unique_by=lambda a: a[0]
    ),
    max_size=6,
)


@given(EVENTS, st.integers(0, 1 << 30))
def test_what_was_packed_comes_out(events: list[list[tuple[int, int]]], seed: int) -> None:
    chance = np.random.default_rng(seed)
    packer, unpacker = PagePacker(), PagePacker()
    packed = []
    for event in events:
        regions = np.array([(4096 * 10 * at, pages) for at, pages in event], dtype="<u8")
        view = regions.reshape(-1).view(np.uint8).data
        pages = int(regions.reshape(-1, 2)[:, 1].sum())
        content = chance.integers(0, 2, 4096 * pages, dtype=np.uint8)
        packed.append((view, content, packer.pack(view, content.data)))
    for view, content, data in packed:
        assert unpacker.unpack(view, data, len(content)) == content.data


def test_a_page_that_changed_little_takes_little() -> None:
    packer = PagePacker()
    regions = np.array([4096, 1], dtype="<u8").view(np.uint8).data
    content = np.random.default_rng(1).integers(0, 256, 4096, dtype=np.uint8)
    assert len(packer.pack(regions, content.data)) > 4000
    content[100] ^= 1
    assert len(packer.pack(regions, content.data)) < 100


def test_what_is_kept_has_no_memory_but_its_own() -> None:
    """The library's own result keeps room for all that the pages could have needed."""
    packer = PagePacker()
    regions = np.array([4096, 200], dtype="<u8").view(np.uint8).data
    content = bytes(4096 * 200)
    packer.pack(regions, memoryview(content))
    tracemalloc.start()
    kept = [packer.pack(regions, memoryview(content)) for _ in range(20)]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < sum(map(len, kept)) + 100_000


def test_regions_that_do_not_fit_the_content_are_refused() -> None:
    for pages in (0, 2, 1 << 60):
        regions = np.array([4096, pages], dtype="<u8").view(np.uint8).data
        with pytest.raises(TargetError, match="another number"):
            PagePacker().pack(regions, memoryview(bytes(4096)))
