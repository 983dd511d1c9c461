"""The tests of the house share the trees of all sources, which are not kept beyond them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.house.rooms import parsed


@pytest.fixture(scope="package", autouse=True)
def _trees_forgotten() -> Iterator[None]:
    yield
    parsed.cache_clear()
