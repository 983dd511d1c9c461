"""Names of tiles, and keys that stay with their tile through any resize."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.messages import TileNames
from gcspy_protocol.model import Naming
from gcspy_protocol.streams.names import TileNameTable
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import remaps, tiles_of


def page(first: int, *names: str) -> TileNames:
    return TileNames(space=1, sequence=1, first=first, names=names)


def test_uniform_tiles_are_named_by_their_address_range() -> None:
    table = TileNameTable(Naming.UNIFORM)
    table.resize(tiles_of(1, Naming.UNIFORM, [None] * 3, base=0x1000, tile_bytes=0x100))
    assert table.name(2) == "[0x1200, 0x1300)"
    assert table.extent(2) == (0x1200, 0x100)
    assert (table.key(2), table.index_of(0x1200)) == (2 * 0x100 + 0x1000, 2)
    for key in (0xF00, 0x1300, 0x1201, -1, 1 << 70):
        assert table.index_of(key) is None
    assert not table.missing(0)
    table.add_page(page(0, "not for addresses"))
    assert table.name(0) == "[0x1000, 0x1100)"


def test_uniform_tiles_without_a_size_are_named_by_their_number() -> None:
    table = TileNameTable(Naming.UNIFORM)
    table.resize(tiles_of(1, Naming.UNIFORM, [None] * 3))
    assert (table.name(2), table.key(2), table.index_of(2), table.index_of(3)) == ("2", 2, 2, None)
    assert table.extent(2) is None


def test_texts_come_a_page_at_a_time_and_stay_with_the_tiles_that_stay() -> None:
    table = TileNameTable(Naming.STRINGS)
    table.resize(tiles_of(1, Naming.STRINGS, [None] * 4))
    assert table.missing(1)
    assert table.name(1) == "1"
    table.add_page(page(1, "one", "two"))
    assert (table.name(1), table.name(2), table.name(3)) == ("one", "two", "3")
    assert [table.missing(i) for i in range(4)] == [True, False, False, True]
    table.add_page(page(3, "three", "four is not there"))
    assert (table.name(3), table.key(3), table.index_of(3), table.index_of(4)) == (
        "three",
        3,
        3,
        None,
    )
    table.resize(tiles_of(1, Naming.STRINGS, [0, 2, None, 1]))
    assert [table.missing(i) for i in range(4)] == [True, False, True, False]
    assert (table.name(1), table.name(3)) == ("two", "one")
    assert table.all_texts(3) == ("0", "two", "2")


def test_texts_held_are_bounded_by_what_the_window_needs() -> None:
    table = TileNameTable(Naming.STRINGS)
    table.resize(tiles_of(1, Naming.STRINGS, [None] * 300_000))
    for first in range(0, 300_000, 4096):
        table.add_page(page(first, *(str(i) for i in range(first, min(first + 4096, 300_000)))))
    assert not table.missing(299_999)
    assert sum(not table.missing(i) for i in range(300_000)) <= 1 << 18


@given(st.data())
def test_an_extent_and_its_key_stay_with_the_tile(data: st.DataObject) -> None:
    table = TileNameTable(Naming.EXTENTS)
    truth: list[tuple[int, int]] = []
    fresh = iter(
        data.draw(st.permutations(range(1, 200)).map(lambda order: [i << 57 for i in order]))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        cells = data.draw(remaps(len(truth)))
        new = [((next(fresh) + i) % (1 << 64), i) for i in range(cells.count(None))]
        bases, sizes = np.array(new, dtype="<u8").reshape(-1, 2).T
        table.resize(tiles_of(1, Naming.EXTENTS, cells, bases=bases, sizes=sizes))
        names = iter(new)
        truth = [next(names) if old is None else truth[old] for old in cells]
        assert [table.extent(i) for i in range(len(truth))] == truth
        for i, (base, size) in enumerate(truth):
            assert table.name(i) == f"[{base:#x}, {base + size:#x})"
            assert table.key(i) == base
            assert truth[table.index_of(base) or 0][0] == base
        assert table.keys().tolist() == [base for base, _ in truth]
        assert table.progression() is None
        for key in (-1, 1 << 64, 3):
            assert table.index_of(key) is None or (key, 0) in [(b, 0) for b, _ in truth]


@pytest.mark.parametrize("naming", list(Naming))
def test_a_table_without_tiles_knows_no_key(naming: Naming) -> None:
    assert TileNameTable(naming).index_of(0) is None


@pytest.mark.parametrize("naming", [Naming.UNIFORM, Naming.STRINGS])
def test_the_keys_of_all_tiles_are_those_of_each(naming: Naming) -> None:
    table = TileNameTable(naming)
    table.resize(tiles_of(1, naming, [None] * 5))
    assert table.keys().tolist() == [table.key(i) for i in range(5)]
    steps = table.progression()
    assert steps is not None
    base, step, count = steps
    assert [base + i * step for i in range(count)] == table.keys().tolist()


def test_all_extents_are_had_at_once_and_cannot_be_written() -> None:
    table = TileNameTable(Naming.EXTENTS)
    places = {"bases": np.array([9, 1, 5], dtype="<u8"), "sizes": np.array([1, 2, 3], dtype="<u8")}
    table.resize(tiles_of(1, Naming.EXTENTS, [None] * 3, **places))
    found = table.extents()
    assert found is not None
    assert [tuple(pair) for pair in np.stack(found, axis=1).tolist()] == [
        table.extent(i) for i in range(3)
    ]
    for array in found:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for naming in (Naming.UNIFORM, Naming.STRINGS):
        assert TileNameTable(naming).extents() is None


def test_what_tiles_said_of_all_tiles_is_had_as_it_was_said() -> None:
    table = TileNameTable(Naming.UNIFORM)
    table.resize(tiles_of(1, Naming.UNIFORM, [None] * 3, base=0x1000, tile_bytes=0x100))
    assert table.uniform == (0x1000, 0x100)


def test_the_texts_that_are_here_are_had_at_once() -> None:
    table = TileNameTable(Naming.STRINGS)
    table.resize(tiles_of(1, Naming.STRINGS, [None] * 4))
    table.add_page(page(1, "one", "two"))
    assert dict(table.texts()) == {1: "one", 2: "two"}
