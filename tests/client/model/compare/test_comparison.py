"""Laws of comparing whole spaces: painted as compared, one scale a unit, the list of what changed most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.model import Control, Naming, PaintStyle, Presentation, Space, Stream
from hypothesis import given

from gcspy_client.model.codes import TileCodes
from gcspy_client.model.compare.comparison import (
    MOST_CHANGES,
    ComparedState,
    Comparison,
    TilePairing,
    compare_spaces,
    ordered_changes,
    steady_scale,
    unit_of,
)
from gcspy_client.model.compare.difference import codes_of, difference, scale_of
from gcspy_client.model.compare.difference_source import signed_words
from gcspy_client.model.palette import ONLY_LEFT, ONLY_RIGHT, UNKNOWN, UNUSED, ZERO, Theme
from gcspy_client.model.renderers.cell_renderers import TilesRenderer
from gcspy_client.model.tile_source import StreamSource
from tests.client.feeding import uniform
from tests.client.model.compare.test_difference import sides, state_of

BYTES = Stream(id=0, name="Used", dtype="i4", maximum=1000, suffix=" bytes")


def space_of(values: list[int], stream: Stream = BYTES, number: int = 1) -> SpaceState:
    space = SpaceState(
        Space(id=number, name=f"space {number}", tile_title="Tile ", streams=(stream,))
    )
    space.resize(uniform(number, len(values)))
    space.streams[stream.id].values[:] = values
    space.streams[stream.id].known = None
    space.control.values[:] = Control.USED
    space.control.known = None
    return space


def compared(left: list[int], right: list[int], **more: Any) -> Comparison:
    subject = ComparedState(
        1, space_of(left), space_of(right), StreamSource(BYTES), StreamSource(BYTES)
    )
    return compare_spaces([subject], **more)


@given(sides(), sides())
def test_what_is_painted_are_the_codes_of_the_comparison(
    one: tuple[dict[int, Any], str], two: tuple[dict[int, Any], str]
) -> None:
    (left, source), (right, other) = state_of(*one), state_of(*two)
    found = compare_spaces([ComparedState(1, left, right, source, other)]).spaces[1]
    plain = difference(left, right, source, other)
    codes = TileCodes(found.source.schema)
    codes.refresh(found.source.tiles(found.space))
    assert codes.codes.tolist() == codes_of(plain, found.source.scale).tolist()
    assert found.source.scale == scale_of(plain)
    assert [found.space.names.key(tile) for tile in range(found.space.count)] == plain.keys.tolist()
    assert [found.space.names.index_of(key) for key in plain.keys.tolist()] == list(
        range(len(plain))
    )


def test_each_tile_tells_what_it_was_is_and_how_much_more() -> None:
    left, source = state_of({1: 10, 2: 20, 3: None, 4: 5}, "i4", Naming.EXTENTS)
    right, _ = state_of({2: 25, 3: 7, 4: 5, 5: 1}, "i4", Naming.EXTENTS)
    found = compare_spaces([ComparedState(1, left, right, source, source)]).spaces[1]
    told = {
        found.space.names.key(tile): (
            found.source.side_words(tile, left=True),
            found.source.side_words(tile, left=False),
            found.source.text(found.space, tile),
        )
        for tile in range(found.space.count)
    }
    assert told == {
        1: ("10", "not there", "disappeared"),
        2: ("20", "25", "+5"),
        3: ("unknown", "7", "unknown"),
        4: ("5", "5", "0"),
        5: ("not there", "1", "appeared"),
    }


def test_the_palette_tells_less_more_equal_unknown_came_and_went_apart() -> None:
    left, right = space_of([1, 1, 1, 1, 1, 1]), space_of([0, 5, 1, 1, 1, 1])
    left.streams[0].known = np.array([True, True, True, False, True, True])
    left.control.values[4] = Control.UNUSED
    right.control.values[5] = Control.UNUSED
    source = StreamSource(BYTES)
    found = compare_spaces([ComparedState(1, left, right, source, source)]).spaces[1]
    renderer = TilesRenderer(found.space, found.source, found.source.palette(Theme.DARK))
    assert renderer.codes[2:].tolist() == [ZERO, UNKNOWN, ONLY_RIGHT, ONLY_LEFT]
    assert (renderer.codes[0] - 5) % 2 == 0, "less"
    assert (renderer.codes[1] - 5) % 2 == 1, "more"
    assert len({*renderer.codes.tolist(), UNUSED}) == 7


def test_what_is_measured_alike_shares_a_scale_and_the_rest_has_its_own() -> None:
    objects = Stream(id=0, name="Objects", dtype="i4", maximum=1000)
    plain, counted = StreamSource(BYTES), StreamSource(objects)
    subjects = [
        ComparedState(1, space_of([0, 0]), space_of([100, 0]), plain, plain),
        ComparedState(2, space_of([0, 0], number=2), space_of([7, 0], number=2), plain, plain),
        ComparedState(3, space_of([0], objects, 3), space_of([3], objects, 3), counted, counted),
    ]
    found = compare_spaces(subjects).spaces
    assert [found[number].source.scale for number in (1, 2, 3)] == [100.0, 100.0, 3.0]
    assert unit_of(BYTES) != unit_of(objects)


def test_a_scale_stays_while_it_serves() -> None:
    assert steady_scale(50, None) == 50
    assert steady_scale(50, 60) == 60
    assert steady_scale(50, 49) == 50
    assert steady_scale(20, 60) == 20
    first = compared([0, 0], [100, 0])
    second = compared([0, 0], [80, 0], scales=first.scales)
    assert second.spaces[1].source.scale == 100


def test_the_list_of_changes_begins_with_the_largest_and_has_what_came_and_went() -> None:
    left, right = space_of([10, 10, 500, 10, 0]), space_of([10, 40, 500, 5, 0])
    left.control.values[2] = Control.UNUSED
    source = StreamSource(BYTES)
    found = compare_spaces([ComparedState(1, left, right, source, source)]).spaces[1]
    assert [(one.tile, one.more) for one in found.changes] == [
        (2, "appeared"),
        (1, "+30 B"),
        (3, "−5 B"),
    ]
    assert found.changes[1].name == "Tile [0x11000, 0x12000)"
    assert (found.summary.changed, found.net) == (2, "+525 bytes"), "what appeared counts, too"


def test_the_list_of_changes_is_bounded_and_keeps_the_largest() -> None:
    values = np.random.default_rng(3).permutation(1000).tolist()
    changes = compared([0] * 1000, values).spaces[1].changes
    assert [one.size for one in changes] == list(range(999, 999 - MOST_CHANGES, -1))


def test_two_processes_are_compared_by_place() -> None:
    (left, source), (right, _) = (
        state_of({base + 16 * i: value for i, value in enumerate(values)}, "i4")
        for base, values in ((0x1000, [1, 2]), (0x9000, [1, 5]))
    )
    found = compare_spaces(
        [ComparedState(1, left, right, source, source)], pairing=TilePairing(by_place=True)
    ).spaces[1]
    assert found.space.count == 2
    assert [found.source.text(found.space, tile) for tile in range(2)] == ["0", "+3"]


@pytest.mark.parametrize(
    ("more", "short", "words"),
    [
        (0, False, "0 bytes"),
        (1024, False, "+1,024 bytes"),
        (-1536, True, "−1.5 KiB"),
        (0.25, False, "+0.25"),
        (-(1 << 63), False, "−9,223,372,036,854,775,808 bytes"),
    ],
)
def test_a_difference_is_told_with_its_sign(more: float, short: bool, words: str) -> None:
    assert signed_words(BYTES, more, short=short) == words


def test_names_are_the_same_or_another() -> None:
    kinds = Stream(
        id=0,
        name="Kind",
        dtype="u1",
        presentation=Presentation.ENUM,
        enum_names=("a", "b"),
        paint_style=PaintStyle.PLAIN,
    )
    source = StreamSource(kinds)
    found = compare_spaces(
        [ComparedState(1, space_of([0, 1], kinds), space_of([0, 0], kinds), source, source)]
    ).spaces[1]
    assert [found.source.text(found.space, tile) for tile in range(2)] == ["the same", "changed"]
    assert found.source.scale_text(0.0, 0) == ""
    assert found.net == ""


def test_the_list_of_changes_has_one_unit_and_no_percent_beside_bytes() -> None:
    share = Stream(
        id=0,
        name="Used",
        dtype="i8",
        maximum=1 << 20,
        suffix=" bytes",
        presentation=Presentation.PERCENT,
    )
    source = StreamSource(share)
    left, right = space_of([0, 1 << 19], share), space_of([1 << 18, 1 << 18], share)
    found = compare_spaces([ComparedState(1, left, right, source, source)]).spaces[1]
    assert {(one.left, one.right) for one in found.changes} == {
        ("0 B", "256 KiB"),
        ("512 KiB", "256 KiB"),
    }


def test_the_largest_change_of_each_space_comes_before_all_others_and_that_of_the_active_one_first() -> (
    None
):
    subjects = [
        ComparedState(
            number,
            space_of([0] * 4, number=number),
            space_of([factor * i for i in (1, 2, 3, 4)], number=number),
            StreamSource(BYTES),
            StreamSource(BYTES),
        )
        for number, factor in ((1, 10), (2, 1), (3, 5))
    ]
    found = list(compare_spaces(subjects).spaces.values())
    for active in (1, 2, 3, None):
        listed = ordered_changes(found, active)
        assert sorted(map(id, listed)) == sorted(
            id(change) for one in found for change in one.changes
        )
        heads = [change.space for change in listed[:3]]
        others = [number for number in (1, 3, 2) if number != active]
        assert heads == ([] if active is None else [active]) + others
        assert [change.size for change in listed[:3]] == [
            {1: 40.0, 2: 4.0, 3: 20.0}[number] for number in heads
        ]
        shares = [change.share for change in listed[3:]]
        assert shares == sorted(shares, reverse=True)
