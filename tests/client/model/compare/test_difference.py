"""Laws of the comparison: exact to 64 bits, antisymmetric, by key, and unknown is no zero."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.model import DTYPES, Control, Naming, Presentation, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.compare.difference import (
    _renumbered,
    codes_of,
    difference,
    scale_of,
    summary_of,
)
from gcspy_client.model.palette import LOW, ONLY_LEFT, ONLY_RIGHT, SIDES, UNKNOWN, UNUSED, ZERO
from gcspy_client.model.raster import pool
from gcspy_client.model.tile_source import StreamSource
from tests.client.feeding import uniform
from tests.client.model.changing import Changing

dtypes = st.sampled_from(sorted(DTYPES))


def state_of(
    cells: dict[int, int | None], dtype: str, naming: Naming = Naming.EXTENTS
) -> tuple[SpaceState, StreamSource]:
    """A space of tiles by key; None is an unknown value, -1 … cannot be distinguished from a value."""
    stream = Stream(id=0, name="s", dtype=dtype, maximum=100)
    changing = Changing(naming, stream)
    info = np.iinfo(dtype)
    changing.event({key: int(info.max) if value is None else value for key, value in cells.items()})
    space = changing.space
    known = np.array([value is not None for value in cells.values()], dtype=np.bool_)
    space.streams[0].known = None if known.all() else known
    return space, StreamSource(stream)


@st.composite
def sides(draw: st.DrawFn) -> tuple[dict[int, int | None], str]:
    dtype = draw(dtypes)
    info = np.iinfo(dtype)
    value = st.one_of(
        st.none(),
        st.integers(int(info.min), int(info.max)),
        st.sampled_from([int(info.min), int(info.max), 0, 1]),
    )
    cells = draw(
        st.lists(st.tuples(st.integers(0, 12), value), unique_by=lambda cell: cell[0], max_size=12)
    )
    return dict(cells), dtype


@given(sides(), sides())
def test_the_difference_is_exact_whatever_the_types(
    one: tuple[dict[int, Any], str], two: tuple[dict[int, Any], str]
) -> None:
    (left, source), (right, other) = state_of(*one), state_of(*two)
    got = difference(left, right, source, other)
    assert sorted(got.keys.tolist()) == sorted(set(one[0]) | set(two[0]))
    for i, key in enumerate(got.keys.tolist()):
        a, b = one[0].get(key), two[0].get(key)
        assert (got.left[i] >= 0, got.right[i] >= 0) == (key in one[0], key in two[0])
        if a is None or b is None:
            assert not got.compared[i]
            assert got.direction[i] == 0
        else:
            assert got.compared[i]
            assert int(got.size[i]) == min(abs(b - a), (1 << 64) - 1)
            assert got.direction[i] == (b > a) - (b < a)
    order = [key for key in got.keys.tolist() if key in two[0]]
    assert order == list(two[0]), "the order of the right side"


@given(sides(), sides())
def test_the_other_way_round_it_is_the_same_with_the_other_sign(
    one: tuple[dict[int, Any], str], two: tuple[dict[int, Any], str]
) -> None:
    (left, source), (right, other) = state_of(*one), state_of(*two)
    there, back = difference(left, right, source, other), difference(right, left, other, source)
    a, b = np.argsort(there.keys), np.argsort(back.keys)
    assert (there.direction[a] == -back.direction[b]).all()
    assert (there.size[a][there.compared[a]] == back.size[b][back.compared[b]]).all()
    mine, theirs = summary_of(there), summary_of(back)
    assert (mine.up, mine.gained, mine.only_left) == (theirs.down, theirs.lost, theirs.only_right)
    assert (mine.same, mine.unknown, mine.unused) == (theirs.same, theirs.unknown, theirs.unused)
    assert mine.net == -theirs.net


@given(sides(), sides())
def test_the_summary_counts_each_tile_once(
    one: tuple[dict[int, Any], str], two: tuple[dict[int, Any], str]
) -> None:
    (left, source), (right, other) = state_of(*one), state_of(*two)
    got = difference(left, right, source, other)
    told = summary_of(got)
    assert (
        len(got)
        == told.same + told.changed + told.only_left + told.only_right + told.unknown + told.unused
    )
    both = [(one[0][key], two[0][key]) for key in one[0] if key in two[0]]
    gained = sum(
        min(b - a, (1 << 64) - 1) for a, b in both if a is not None and b is not None and b > a
    )
    assert told.gained == gained


@given(sides(), sides(), st.sampled_from([1.0, 0.9, 0.5]))
def test_codes_grow_with_the_difference_on_both_sides_alike(
    one: tuple[dict[int, Any], str], two: tuple[dict[int, Any], str], share: float
) -> None:
    (left, source), (right, other) = state_of(*one), state_of(*two)
    got = difference(left, right, source, other)
    codes = codes_of(got, scale_of(got, share=share))
    assert (codes[got.compared & (got.direction == 0)] == ZERO).all()
    assert (codes[got.right < 0] == ONLY_LEFT).all()
    assert (codes[got.left < 0] == ONLY_RIGHT).all()
    differ = np.flatnonzero(got.direction)
    level, side = np.divmod(codes[differ].astype(int) - LOW, 2)
    assert ((level >= 0) & (level < SIDES)).all()
    assert (side == (got.direction[differ] > 0)).all()
    order = np.argsort(got.size[differ], kind="stable")
    assert (np.diff(level[order]) >= 0).all()
    if len(codes):
        pooled = pool(codes, 4)
        groups = [codes[i : i + 4] for i in range(0, len(codes), 4)]
        assert all(
            set(group) <= {ZERO, UNKNOWN, UNUSED} or code > UNKNOWN
            for code, group in zip(pooled, groups, strict=True)
        )


def test_unused_on_both_sides_is_unused_and_on_one_the_tile_came_or_went() -> None:
    (left, source), (right, _) = (
        state_of(dict.fromkeys(range(4), 5), "i4", Naming.UNIFORM) for _ in range(2)
    )
    left.control.values[:] = [Control.UNUSED, Control.USED, Control.UNUSED, Control.USED]
    right.control.values[:] = [Control.UNUSED, Control.UNUSED, Control.USED, Control.USED]
    got = difference(left, right, source)
    assert codes_of(got, 1.0).tolist() == [UNUSED, ONLY_LEFT, ONLY_RIGHT, ZERO]
    told = summary_of(got)
    assert (told.unused, told.only_left, told.only_right, told.unknown, told.same) == (
        1,
        1,
        1,
        0,
        1,
    )


def test_by_place_tiles_of_other_addresses_are_matched_by_their_numbers() -> None:
    (left, source), (right, _) = (
        state_of({base + 16 * i: value for i, value in enumerate(values)}, "i4")
        for base, values in ((0x1000, [1, 2, 3]), (0x9000, [1, 5, 3, 4]))
    )
    assert summary_of(difference(left, right, source)).only_left == 3, "by key nothing is paired"
    got = difference(left, right, source, by_place=True)
    told = summary_of(got)
    assert (told.same, told.up, told.net, told.only_right, told.only_left) == (2, 1, 3, 1, 0)
    assert got.keys.tolist() == [0x9000, 0x9010, 0x9020, 0x9030]


def test_names_are_the_same_or_not() -> None:
    stream = Stream(
        id=0, name="state", dtype="u1", presentation=Presentation.ENUM, enum_names=("a", "b", "c")
    )
    states = []
    for values in ([0, 1, 2], [0, 2, 0]):
        space = SpaceState(Space(id=1, name="s", streams=(stream,)))
        space.resize(uniform(1, 3))
        space.streams[0].values[:] = values
        space.streams[0].known = None
        space.control.values[:] = Control.USED
        states.append(space)
    got = difference(states[0], states[1], StreamSource(stream))
    codes = codes_of(got, scale_of(got))
    assert codes[0] == ZERO
    assert codes[1] == codes[2] > UNKNOWN
    told = summary_of(got)
    assert (told.changed, told.net) == (2, 0)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=60), st.floats(0.1, 1.0))
def test_the_scale_holds_the_share_that_was_asked_for(values: list[int], share: float) -> None:
    (left, source), (right, _) = (
        state_of(dict(enumerate(side)), "i4", Naming.UNIFORM)
        for side in ([0] * len(values), values)
    )
    got = difference(left, right, source)
    scale = scale_of(got, share=share)
    sizes = Counter(value for value in values if value)
    within = sum(count for size, count in sizes.items() if size <= scale)
    assert within >= share * sum(sizes.values()) - 1e-9
    assert scale in sizes or not sizes


def test_every_name_has_its_number_of_the_other_list_also_the_first() -> None:
    table = np.array([5, -1, 7], dtype=np.int64)
    values = np.array([0, 1, 2, 3, -1], dtype=np.int32)
    assert _renumbered(values, table).tolist() == [5, -1, 7, -1, -1]
